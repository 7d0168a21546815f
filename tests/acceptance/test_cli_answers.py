"""`cofire evaluate … --answer`: what a person sees who measures answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cofire.cli import main
from local_model import local_model as local_model  # noqa: PLC0414 - a fixture
from made_locomo import write_locomo


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    output: str
    errors: str


Evaluate = Callable[..., Ended]


@pytest.fixture
def evaluate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Evaluate:
    monkeypatch.setenv("COFIRE_EMBEDDER", "hashing:64")
    monkeypatch.setenv("COFIRE_GENERATOR_BASE_URL", "http://127.0.0.1:9/v1")

    def evaluated(*arguments: object) -> Ended:
        code = main(["evaluate", *map(str, arguments)])
        output, errors = capsys.readouterr()
        return Ended(code, output, " ".join(errors.split()))

    return evaluated


def tables(output: str) -> dict[str, list[str]]:
    """Each table's rows by its title."""
    found: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in output.splitlines():
        if line.endswith(":"):
            rows = found.setdefault(line, [])
        elif line:
            rows.append(line)
    return found


def test_the_oracle_with_every_ablation(tmp_path: Path, evaluate: Evaluate) -> None:
    data = write_locomo(tmp_path, 1)
    result = tmp_path / "result.json"
    ended = evaluate(
        "locomo", data, "--answer", "oracle", "--profiles", "cofire", "--ablations",
        "--tokens", "60,1000", "--k", "1", "--learn", "--json", result,
        "--report", tmp_path / "report",
    )  # fmt: skip
    assert ended.code == 0, ended.errors
    assert all(len(line) <= 100 for line in ended.output.splitlines())
    shown = tables(ended.output)
    assert "Right, in %:" in shown
    arms = json.loads(result.read_text())["arms"]
    bases = ["cofire", *(f"cofire without {what}" for what in (
        "learning", "spreading", "consolidation", "forgetting", "gate", "semantic nodes",
        "temporal links",
    )), "vectors only"]  # fmt: skip
    bounds = ("@60", "@1000", "k=1")
    assert list(arms) == [*(f"{base} {bound}" for base in bases for bound in bounds),
                          "full context"]  # fmt: skip
    right = {name: arm["all"]["measures"]["right"]["mean"] for name, arm in arms.items()}
    assert right["full context"] == 1.0
    assert right["cofire @60"] < 1.0
    assert right["cofire without gate @1000"] == 1.0
    assert all(arm["refusals"]["unanswerable"]["n"] == 1 for arm in arms.values())
    assert arms["cofire @1000"]["refusals"]["curve"]
    assert "# " in (tmp_path / "report" / "report.md").read_text()


def test_constants_chosen_without_what_is_scored_are_a_column(
    tmp_path: Path, evaluate: Evaluate
) -> None:
    data = write_locomo(tmp_path, 3)
    ended = evaluate("locomo", data, "--no-slept", "--answer", "oracle", "--profiles", "cofire",
                     "--cross-validate", "--json", "-")  # fmt: skip
    assert ended.code == 0, ended.errors
    arms = json.loads(ended.output)["arms"]
    assert list(arms) == ["cofire @1000", "cofire (left out) @1000"]
    assert arms["cofire (left out) @1000"]["all"]["outcomes"] == 15


def test_results_are_compared_question_by_question(tmp_path: Path, evaluate: Evaluate) -> None:
    data = write_locomo(tmp_path, 2)
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    common = ("locomo", data, "--no-slept", "--profiles", "cofire", "--answer")
    assert evaluate(*common, "oracle", "--k", 1, "--json", before).code == 0
    ended = evaluate(*common, "oracle", "--k", 1, "--compare", before, "--json", after)
    assert ended.code == 0, ended.errors
    compared = json.loads(after.read_text())["comparisons"]["comparisons"]
    assert [one["a"]["result"] for one in compared] == ["before.json"]
    assert compared[0]["pairs"] == 12


def test_without_a_model_the_best_sentence_answers(tmp_path: Path, evaluate: Evaluate) -> None:
    ended = evaluate("locomo", write_locomo(tmp_path, 1), "--no-slept", "--answer", "extractive",
                     "--profiles", "cofire,dense", "--json", "-")  # fmt: skip
    assert ended.code == 0, ended.errors
    result = json.loads(ended.output)
    assert result["model"] == "extractive"
    assert result["settings"]["complete"]
    assert list(result["arms"]) == ["cofire @1000", "dense @1000"]
    texts = {one["question"]: one["text"] for one in result["outcomes"]}
    assert "canoe" in texts["What did Ada buy?"]


def test_a_dry_run_says_what_it_would_take_and_asks_nothing(
    tmp_path: Path, evaluate: Evaluate
) -> None:
    data = write_locomo(tmp_path, 2)
    run = tmp_path / "run"
    ended = evaluate(
        "locomo", data, "--model", "openai:m", "--judge", "openai:j", "--judge-runs", 2,
        "--tokens", "500,1000", "--seeds", "0,1", "--run", run, "--dry-run",
    )  # fmt: skip
    assert ended.code == 0, ended.errors
    assert "12 questions of 2 materials, under 2 arms: 48 outcomes" in ended.output
    assert "At most 48 calls to answer and 80 to judge" in ended.output
    most = 48 * 512 + 80 * 1000
    assert f"{most:,} to receive if every reply were as long as it may be" in ended.output
    assert not run.exists()


def test_a_dry_run_counts_no_outcomes_of_another_run(tmp_path: Path, evaluate: Evaluate) -> None:
    data, run = write_locomo(tmp_path, 1), tmp_path / "run"
    oracle = ("locomo", data, "--no-slept", "--answer", "oracle", "--run", run)
    assert evaluate(*oracle, "--profiles", "lexical", "--json", "-").code == 0
    ended = evaluate("locomo", data, "--no-slept", "--model", "openai:m", "--run", run, "--dry-run")
    assert ended.code == 2
    assert "is of a run with another answer, model, endpoint" in ended.errors


def test_the_oracle_is_not_scored_on_choices_without_evidence(
    tmp_path: Path, evaluate: Evaluate
) -> None:
    known = case()["questions"][0]
    unknown = {name: value for name, value in known.items() if name != "evidence"}
    path = tmp_path / "set.json"
    path.write_text(json.dumps({**case(), "questions": [known, {**unknown, "id": "q2"}]}))
    common = ("choices", path, "--no-slept", "--profiles", "lexical", "--answer", "oracle")
    ended = evaluate(*common, "--json", "-")
    assert ended.code == 0, ended.errors
    right = json.loads(ended.output)["arms"]["lexical @1000"]["all"]["measures"]["right"]
    assert (right["n"], right["mean"]) == (1, 1.0)
    shown = evaluate(*common).output
    assert "1 question names no evidence: the oracle is not scored there." in shown
    assert "own key" in shown


def case() -> dict[str, Any]:
    return {
        "documents": [
            {"id": "d1", "date": "2024-03-01", "text": "Ada keeps her bees behind the old mill."},
            {"id": "d2", "date": "2024-03-02", "text": "Bea paints boats, mostly blue ones."},
        ],
        "questions": [
            {"id": "q1", "question": "What does Bea paint?", "choices": ["boats", "bees", "mills"],
             "answer": "A", "date": "2024-04-01", "evidence": ["d2"]},
        ],
    }  # fmt: skip


def test_choices(tmp_path: Path, evaluate: Evaluate) -> None:
    data = tmp_path / "choices.json"
    data.write_text(json.dumps(case()))
    for answer in ((), ("--answer", "oracle")):
        ended = evaluate("choices", data, "--no-slept", "--profiles", "cofire", *answer,
                         "--json", "-")  # fmt: skip
        assert ended.code == 0, ended.errors
        result = json.loads(ended.output)
        assert [one["right"] for one in result["outcomes"]] == [True]


def test_what_is_wrong_with_the_data_is_told(tmp_path: Path, evaluate: Evaluate) -> None:
    data = tmp_path / "choices.json"
    wrong = case()
    wrong["questions"].append({"question": "Which?", "choices": ["a", "b"], "answer": "D"})
    data.write_text(json.dumps(wrong))
    result = tmp_path / "result.json"
    ended = evaluate("choices", data, "--no-slept", "--profiles", "cofire", "--json", result)
    assert ended.code == 0, ended.errors
    assert "Of the file's entries 1 dropped" in ended.errors
    assert "question 1: dropped: \"answer\" 'D' is none of its choices" in ended.errors
    assert "is none of its choices" in result.read_text()
    del wrong["questions"][0]
    data.write_text(json.dumps(wrong))
    ended = evaluate("choices", data)
    assert ended.code == 2
    assert "choices.json: there is no question to ask" in ended.errors
    assert "is none of its choices" in ended.errors


def test_why_questions_failed_is_told(
    tmp_path: Path, evaluate: Evaluate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COFIRE_GENERATOR_RETRIES", "0")
    ended = evaluate("locomo", write_locomo(tmp_path, 1), "--no-slept", "--model", "openai:m",
                     "--limit", 2, "--run", tmp_path / "run")  # fmt: skip
    assert ended.code == 1
    assert "2 questions failed: The language model 'm' at http://127.0.0.1:9/v1" in ended.errors
    assert "2 questions still to be answered" in ended.errors


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--answer", "magic"), 2, "--answer takes oracle, oracle-any, extractive, model"),
        (("--answer", "oracle", "--model", "local"), 2, "--model goes with --answer model"),
        (("--answer", "model"), 4, "there is no model to answer"),
        (("--model", "openai:m", "--judge", "openai:m"), 2, "would judge its own answers"),
        (("--model", "openai:m", "--max-cost", "1"), 4, "--max-cost needs prices"),
        (("--model", "nobody:m"), 2, "there is no language model 'nobody:m'; name openai:NAME"),
        (("--answer", "oracle", "--json", "nowhere/x.json"), 2, "there is no folder nowhere"),
        (("--answer", "oracle", "--report", "/dev/null/x"), 2, "/dev/null is a file"),
        (("--answer", "oracle", "--judge", "local"), 2, "--judge has nothing to say of an oracle"),
        (("--answer", "oracle", "--tokens", "0"), 2, "--tokens takes whole numbers from 1"),
        (("--answer", "oracle", "--seeds", "x"), 2, "--seeds takes whole numbers from 0"),
        (("--answer", "oracle", "--parallel", "0"), 2, "--parallel takes a whole number from 1"),
        (("--answer", "oracle", "--temperature", "3"), 2, "--temperature takes a number"),
        (("--answer", "oracle", "--learning"), 2, "do not go with --answer"),
        (("--answer", "oracle", "--profiles", "magic"), 2, "there is no profile 'magic'"),
        (("--tokens", "5"), 2, "--tokens: only with --answer or --model"),
        (("--answer", "oracle", "--compare", "nothing.json"), 3, "there is no file nothing.json"),
    ],
)
def test_errors_say_what_to_do(
    tmp_path: Path, evaluate: Evaluate, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ended = evaluate("locomo", write_locomo(tmp_path, 1), *arguments)
    assert ended.code == code
    assert message in ended.errors


BRIEF = """---
version: 1
---
# System
Answer with a short phrase.
# User
{{context}}
{{question}}
"""
"""Our own prompt is four times as long, and reading it is what takes the time."""


def test_a_real_model_of_this_machine_answers(
    tmp_path: Path, local_model: str, evaluate: Evaluate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path, not the quality: a model of 135 million parameters knows little."""
    data = write_locomo(tmp_path, 1)
    (tmp_path / "short.md").write_text(BRIEF)
    monkeypatch.setenv("COFIRE_ANSWER_PROMPTS", str(tmp_path))
    command = (
        "locomo", data, "--no-slept", "--model", local_model, "--limit", 3, "--tokens", 70,
        "--reply-tokens", 8, "--run", tmp_path / "run", "--json", tmp_path / "result.json",
    )  # fmt: skip
    ended = evaluate(*command)
    assert ended.code == 0, ended.errors
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["model"].startswith("local:")
    assert len(result["outcomes"]) == 3
    asked = [one for one in result["outcomes"] if one["reason"] not in {"gate", "nothing"}]
    assert asked
    assert all(one["output_tokens"] > 0 and one["seconds"] > 0 for one in asked)
    again = evaluate(*command)
    assert again.code == 0
    assert json.loads((tmp_path / "result.json").read_text()) == result

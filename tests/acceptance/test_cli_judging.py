"""`evaluate judge` against an endpoint, `evaluate compare` of result files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cofire_process import Cofire

from cofire.evaluation.qa.judge_agreement import samples
from endpoint import Answer, Endpoint, completes, fails
from endpoint import endpoint as endpoint  # noqa: PLC0414 - a fixture
from outcomes_of_runs import outcome, result

LABELS = {(one.task.question, one.answer): one.right for one in samples()}


def labels(body: dict[str, Any]) -> Answer:
    """Replies as a good but untidy model's: some in prose, some cut, some in a fence."""
    data = json.loads(body["messages"][1]["content"].splitlines()[1])
    place = list(LABELS).index((data["question"], data["answer"]))
    said = json.dumps({"why": "it does", "right": LABELS[data["question"], data["answer"]]})
    text = [said, f"```json\n{said}\n```", f"Let me see. {said}", said[:12]][place % 4]
    return completes(text, usage={"prompt_tokens": 400, "completion_tokens": 20})(body)


@pytest.fixture
def judged(cofire: Cofire, endpoint: Endpoint) -> Cofire:
    """The command, with a judge that knows the labels."""
    endpoint.scripts = [labels]
    cofire.env |= {
        "COFIRE_GENERATOR_BASE_URL": endpoint.url,
        "COFIRE_GENERATOR_API_KEY": "k",
        "COFIRE_GENERATOR_INPUT_PRICE": "1",
        "COFIRE_GENERATOR_OUTPUT_PRICE": "10",
        "COFIRE_GENERATOR_RETRIES": "0",
    }
    return cofire


def test_a_judge_is_measured(judged: Cofire, endpoint: Endpoint) -> None:
    done = judged.ok("evaluate", "judge", "--judge", "openai:judge", "--json", "judge.json")
    total = len(LABELS)
    cut = sum(at % 4 == 3 for at in range(total))
    assert f"Judge openai:judge, 1 run(s) over {total} labelled answers." in done.out
    assert f"Unusable replies: {cut} cut, of {total}" in done.out
    assert f"{400 * total:,} sent" in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    assert done.err == "Figures written to judge.json.\n"
    figures = json.loads((judged.folder / "judge.json").read_text())
    assert figures["all"]["accuracy"] == 1.0
    assert figures["all"]["marked"] == total - cut
    assert figures["cost"] == pytest.approx(total * (400 + 200) / 1e6)
    assert figures["unusable"] == {"cut": cut}
    assert {"temporal", "adversarial", "single-session-preference"} <= set(figures["groups"])
    assert {body["temperature"] for body in endpoint.requests} == {0.0}
    assert not judged.store.exists()


def test_runs_have_seeds(judged: Cofire, endpoint: Endpoint) -> None:
    done = judged.ok(
        "evaluate", "judge", "--judge", "openai:judge", "--runs", "2", "--seed", "3", "--json", "-"
    )
    assert done.json["between_runs"]["agreement"] == 1.0
    assert {body["seed"] for body in endpoint.requests} == {3, 4}


def test_without_a_judge_or_without_an_endpoint(judged: Cofire, endpoint: Endpoint) -> None:
    none = judged.run("evaluate", "judge")
    assert none.code == 4
    assert "there is no judge" in none.err
    assert judged.run("evaluate", "judge", "--runs", "0").code == 2
    endpoint.scripts = [fails(401, "bad key")]
    refused = judged.run("evaluate", "judge", "--judge", "openai:judge")
    assert refused.code == 4
    assert len(endpoint.requests) == 1, "it is not asked again and again"


@pytest.fixture
def write(cofire: Cofire) -> Callable[..., Path]:
    """Writes a result with one answer per letter, right where it is "+"."""

    def written(
        name: str, verdicts: str, arms: tuple[str, ...] = ("cofire",), **values: Any
    ) -> Path:
        file = cofire.folder / name
        outcomes = [
            outcome(f"q{at}", arm=arm, judged=(letter == "+",), f1=float(letter == "+"))
            for arm in arms
            for at, letter in enumerate(verdicts if arm == "cofire" else "-" * len(verdicts))
        ]
        file.write_text(json.dumps(result(*outcomes, **values)))
        return file

    return written


def test_two_results(cofire: Cofire, write: Callable[..., Path]) -> None:
    write("a.json", "+-----+-")
    write("b.json", "+++++++")
    done = cofire.ok("evaluate", "compare", "a.json", "b.json", "--json", "c.json")
    assert "7 pairs of 7 questions; without a partner: 1 of a, 0 of b." in done.out
    assert "WARNING" not in done.out
    found = json.loads((cofire.folder / "c.json").read_text())["comparisons"][0]
    assert found["measures"]["judge"]["p"] == pytest.approx(2 / 32)
    assert cofire.ok("evaluate", "compare", "a.json", "b.json", "--json", "-").json["holm"] == {
        "judge": 1, "right": 0, "f1": 1, "bleu1": 0, "refused": 0, "falsely_refused": 0,
    }  # fmt: skip


def test_arms_of_one_result(cofire: Cofire, write: Callable[..., Path]) -> None:
    write("a.json", "++++", arms=("cofire", "dense"))
    done = cofire.ok("evaluate", "compare", "a.json", "--baseline", "dense")
    assert "a: dense\n" in done.out
    assert "+100" in done.out
    assert "identical in every comparison (1)" in done.out
    write("b.json", "++++", arms=("cofire @500", "dense @500", "cofire @900", "dense @900"))
    done = cofire.ok("evaluate", "compare", "b.json", "--groups", "--json", "b2.json")
    found = json.loads((cofire.folder / "b2.json").read_text())["comparisons"]
    assert [(one["a"]["arm"], one["b"]["arm"]) for one in found] == [
        ("cofire @500", "dense @500"), ("cofire @900", "dense @900"),
    ]  # fmt: skip
    assert cofire.run("evaluate", "compare", "a.json", "--baseline", "none").code == 2


def test_what_cannot_be_compared(cofire: Cofire, write: Callable[..., Path]) -> None:
    write("a.json", "+-")
    write("b.json", "+-", key="published")
    write("c.json", "+-", model="openai:b")
    refused = cofire.run("evaluate", "compare", "a.json", "b.json")
    assert refused.code == 2
    assert "'corrected'" in refused.err
    assert "'published'" in refused.err
    warned = cofire.ok("evaluate", "compare", "a.json", "c.json")
    assert "WARNING: answers come from different models" in warned.out
    assert "WARNING" in cofire.ok("evaluate", "compare", "a.json", "c.json", "--json", "-").err
    assert cofire.run("evaluate", "compare", "a.json", "none.json").code == 3
    (cofire.folder / "d.json").write_text("{}")
    assert cofire.run("evaluate", "compare", "a.json", "d.json").code == 1

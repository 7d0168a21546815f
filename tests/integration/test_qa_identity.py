"""A folder holds the outcomes of one run: what is another run is refused, whatever differs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from cofire.answering.answer import Spending
from cofire.errors import FormatError, GenerationError, InputError
from cofire.evaluation.qa import evaluate as evaluating
from cofire.evaluation.qa.arms import arms_for
from cofire.evaluation.qa.evaluate import (
    Evaluated,
    Evaluation,
    Limits,
    check_folder,
    evaluate,
    folder_name,
)
from cofire.evaluation.qa.identity import ABOUT, claim, code_digest, digest_of
from cofire.evaluation.qa.locomo_set import locomo_set
from cofire.evaluation.qa.longmemeval_set import longmemeval_set
from cofire.testing.generating import ScriptedGenerator
from made_locomo import write_locomo

ARMS = arms_for(["lexical"], slept=False)


def evaluation(folder: Path, **values: Any) -> Evaluation:
    """Two questions of LoCoMo's shape, answered by a model and judged by another."""
    given: dict[str, Any] = {
        "data": locomo_set(write_locomo(folder, 1)), "source": "made.json", "digest": "0",
        "arms": ARMS, "answer": "model", "limit": 2, "embedder": "hashing:64",
        "endpoint": "http://127.0.0.1:9/v1",
        "model": ScriptedGenerator(then="a green canoe [1]", name="openai:answers"),
        "judge": ScriptedGenerator(then='{"why": "so", "right": true}', name="openai:judge"),
        **values,
    }  # fmt: skip
    return Evaluation(**given)


@pytest.fixture(scope="module")
def about(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run says of itself."""
    return evaluation(tmp_path_factory.mktemp("about")).about()


MEMBERS = (
    "benchmark", "key", "data", "answer", "model", "judge", "endpoint", "judge_runs",
    "judge_prompts", "prompts", "temperature", "max_tokens", "window", "embedder", "cofire",
    "code",
)  # fmt: skip


def test_what_a_run_says_of_itself(about: dict[str, Any]) -> None:
    assert set(about) == set(MEMBERS)
    assert len(about["judge_prompts"]) == 6
    assert "127.0.0.1" not in json.dumps(about)  # results are shown to others


@pytest.mark.parametrize("member", MEMBERS)
def test_whatever_differs_the_folder_is_of_another_run(
    tmp_path: Path, about: dict[str, Any], member: str
) -> None:
    claim(tmp_path, about, {"lexical @1000": "1"})
    claim(tmp_path, about, {"lexical @1000": "1"})
    with pytest.raises(InputError, match=f"a run with another {member.replace('_', ' ')}\\."):
        claim(tmp_path, {**about, member: "other"}, {"lexical @1000": "1"})


def test_a_run_may_gain_arms_but_none_may_change(tmp_path: Path, about: dict[str, Any]) -> None:
    claim(tmp_path, about, {"a": "1"})
    claim(tmp_path, about, {"b": "2"})
    with pytest.raises(InputError, match="another arm 'a'"):
        claim(tmp_path, about, {"a": "3"})
    (tmp_path / ABOUT).write_text('{"arms": 1}')
    with pytest.raises(FormatError, match="does not describe a run"):
        claim(tmp_path, about, {"a": "1"})


def test_a_constant_of_a_profile_makes_another_arm() -> None:
    (arm,) = arms_for(["cofire"], slept=False)
    name, weight = next(iter(arm.profile.weights.items()))
    weights = MappingProxyType({**arm.profile.weights, name: weight + 0.01})
    assert digest_of(arm) == digest_of(replace(arm))
    assert digest_of(arm) != digest_of(replace(arm, profile=replace(arm.profile, weights=weights)))
    assert digest_of(arm) != digest_of(replace(arm, learn=True))


def test_changed_code_finds_its_folder_and_is_refused_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    first = evaluation(tmp_path)
    name = folder_name(first)
    asked(first, run)
    monkeypatch.setattr(evaluating, "code_digest", lambda: "other")
    assert folder_name(first) == name
    with pytest.raises(InputError, match="another code"):
        check_folder(first, run)
    with pytest.raises(InputError, match=r"another code.*replies that fit are used again"):
        asked(first, run)
    for file in (ABOUT, "outcomes.jsonl"):
        (run / file).unlink()
    model = ScriptedGenerator(name="openai:answers")  # asked for nothing
    judge = ScriptedGenerator(name="openai:judge")
    assert asked(replace(first, model=model, judge=judge), run).left == 0
    assert code_digest() != "other"


def asked(given: Evaluation, run: Path) -> Evaluated:
    return evaluate(given, run, Limits(parallel=1, attempts=1))


def test_outcomes_cost_what_they_cost_today(tmp_path: Path) -> None:
    run = tmp_path / "run"
    given = evaluation(tmp_path, spending=Spending(input_price=1.0, output_price=2.0))
    before = asked(given, run)
    dear = replace(given, spending=Spending(input_price=10.0, output_price=20.0))
    after = asked(dear, run)
    assert all(one.cost > 0.0 for one in before.outcomes)
    assert [one.cost for one in after.outcomes] == [
        pytest.approx(10.0 * one.cost) for one in before.outcomes
    ]
    assert all(one.judge_input_tokens > 0 for one in after.outcomes)
    assert after.spent.calls == 0


def test_a_question_without_a_reply_counts_wherever_it_would_with_one(tmp_path: Path) -> None:
    def item(name: str) -> dict[str, Any]:
        said = {"role": "user", "content": "My violin stands in the attic.", "has_answer": True}
        return {
            "question_id": name, "question_type": "single-session-user",
            "question": "Where does my violin stand?", "answer": "in the attic",
            "question_date": "2023/05/30 (Tue) 09:00", "haystack_session_ids": ["answer_1"],
            "haystack_dates": ["2023/05/01 (Mon) 10:00"], "haystack_sessions": [[said]],
            "answer_session_ids": ["answer_1"],
        }  # fmt: skip

    path = tmp_path / "data.json"
    path.write_text(json.dumps([item("q1"), item("q2_abs")]), encoding="utf-8")
    down = ScriptedGenerator(
        then=GenerationError("no reply", retryable=False), name="openai:answers"
    )
    data = longmemeval_set(path)
    failed = asked(evaluation(tmp_path, data=data, model=down), tmp_path / "failed").outcomes
    answered = asked(evaluation(tmp_path, data=data), tmp_path / "answered").outcomes
    for one, other in zip(failed, answered, strict=True):
        assert one.failed == "no reply"
        assert (one.f1 is None, one.bleu1 is None) == (other.f1 is None, other.bleu1 is None)
        assert one.judged == (False,)
    assert [one.f1 for one in failed] == [0.0, None]

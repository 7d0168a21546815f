"""LongMemEval's retrieval figures on its one complete item that is at hand, and on its errata."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cofire.errors import InputError
from cofire.evaluation.qa.locomo_set import locomo_set
from cofire.evaluation.qa.longmemeval_set import longmemeval_set
from cofire.evaluation.qa.retrieval import evaluate_retrieval

PROJECT = Path(__file__).resolve().parents[2]
EMBEDDER = "hashing:64"
"""Words decide here; MiniLM would take half a minute of embedding."""


def shared(path: str) -> Path:
    """A file of the folder `shared` (COFIRE_SHARED, or beside the project); skips without it."""
    base = Path(os.environ.get("COFIRE_SHARED") or PROJECT.parent / "shared")
    if not (base / path).exists():
        pytest.skip(f"{base / path} is not here; COFIRE_SHARED names the folder that has it")
    return base / path


def test_the_complete_item() -> None:
    path = shared("data/longmemeval_one/longmemeval_single.json")
    (material,) = longmemeval_set(path).materials()
    (task,) = material.tasks
    assert (task.id, task.group) == ("e47becba", "single-session-user")
    assert len(material.messages) == 550
    assert task.evidence_sessions == ("e47becba:answer_280352e9",)
    assert len(task.evidence) == 2
    result = evaluate_retrieval(path, profiles=("cofire", "lexical"), embedder=EMBEDDER)
    assert (result.questions, result.turns, dict(result.left_out)) == (1, 550, {})
    for profile in ("cofire", "lexical"):
        for level in ("user turns", "user sessions", "turns", "sessions"):
            row = result.rows(profile, level)["single-session-user"]
            assert row.all == (100.0,) * 4
    (cofire, _) = result.retrieved
    assert cofire.ranks[0] == 1


def test_locomo_with_its_corrections() -> None:
    path = shared("data/locomo/locomo6.json")
    data = locomo_set(path, corrections=shared("data/locomo/corrections.json"))
    tasks = [task for material in data.materials() for task in material.tasks]
    groups = [task.group for task in tasks]
    assert {group: groups.count(group) for group in sorted(set(groups))} == {
        "adversarial": 285, "multi-hop": 163, "open-domain": 56, "single-hop": 536,
        "temporal": 198,
    }  # fmt: skip
    assert sum(task.corrected for task in tasks) == 98
    assert not any("(answer is correct" in (task.answer or "") for task in tasks)
    assert all(task.answer for task in tasks if not task.unanswerable)
    assert all(task.trap for task in tasks if task.unanswerable)


FILLER = [
    "I like soup with leeks.", "My desk is by the window.", "The train was late again.",
    "We watched a film about whales.", "I am learning to knit scarves.",
]  # fmt: skip


def haystack(name: str, **fields: Any) -> dict[str, Any]:
    """Five sessions of filler before the question and the answer in one after it."""
    late = [
        {"role": "user", "content": "My violin stands in the attic.", "has_answer": True},
        {"role": "assistant", "content": "Attics are dry."},
    ]
    chats = [[{"role": "user", "content": text}] for text in FILLER]
    return {
        "question_id": name,
        "question_type": "single-session-user",
        "question": "Where does my violin stand?",
        "answer": "in the attic",
        "question_date": "2023/05/30 (Tue) 09:00",
        "haystack_session_ids": ["answer_1", "f", "f", "g", "h", "i"],
        "haystack_dates": ["2023/06/20 (Tue) 10:00"]
        + [f"2023/05/{day:02} (Mon) 10:00" for day in range(1, 6)],
        "haystack_sessions": [late, *chats],
        "answer_session_ids": ["answer_1"],
    } | fields


@pytest.mark.parametrize("slept", [False, True])
def test_a_session_after_the_question_is_recalled_like_any_other(
    tmp_path: Path, slept: bool
) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps([haystack("q1"), haystack("q2_abs")]), encoding="utf-8")
    data = longmemeval_set(path)
    assert {m.now for m in data.materials()} == {datetime(2023, 5, 30, 9, tzinfo=UTC)}
    result = evaluate_retrieval(path, ks=(1,), embedder=EMBEDDER, slept=slept)
    assert dict(result.left_out) == {"abstention": 1}
    for profile in ("cofire", "dense", "lexical"):
        assert result.rows(profile, "user turns")["all"].all == (100.0,)
        assert result.rows(profile, "sessions")["all"].any == (100.0,)


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    items = [haystack(f"q{number}") for number in range(4)]
    hello = [[{"role": "user", "content": "Hello."}]]
    items.append(haystack("none", answer_session_ids=[], haystack_sessions=hello))
    path.write_text(json.dumps(items), encoding="utf-8")
    one = evaluate_retrieval(path, profiles=("cofire",), embedder=EMBEDDER)
    two = evaluate_retrieval(path, profiles=("cofire",), embedder=EMBEDDER, jobs=2)
    assert [(r.task, r.measures, r.ranks) for r in one.retrieved] == [
        (r.task, r.measures, r.ranks) for r in two.retrieved
    ]
    assert dict(two.left_out) == {"no evidence": 1}
    few = evaluate_retrieval(path, limit=2, embedder=EMBEDDER, profiles=("lexical",))
    assert len(few.retrieved) == 2


def test_nothing_to_score_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps([haystack("q_abs")]), encoding="utf-8")
    with pytest.raises(InputError, match="no question of LongMemEval with evidence"):
        evaluate_retrieval(path, embedder=EMBEDDER)
    with pytest.raises(InputError):
        evaluate_retrieval(path, profiles=("nonsense",), embedder=EMBEDDER)

"""What use has taught, as it enters a recall."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cofire import Memory
from cofire.learning import cited_ids
from cofire.retrieval.profiles import AWAKE
from cofire.types import Recall

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
TURNS = [
    {"speaker": "Ada", "session": "a", "content": "The canoe is behind the shed."},
    {"speaker": "Ben", "session": "b", "content": "Soup is best with leeks."},
    {"speaker": "Ada", "session": "c", "content": "Paddles hang above the kiln."},
    {"speaker": "Ben", "session": "d", "content": "The parrot repeats the news."},
    {"speaker": "Ada", "session": "e", "content": "The mast needs paint."},
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", embedder="hashing:64", trusted=("ops",)) as memory:
        memory.remember(TURNS, time=NOW - timedelta(days=30), now=NOW)
        yield memory


def terms(recall: Recall, id: str) -> dict[str, float]:
    assert recall.trace is not None
    (item,) = (item for item in recall.trace.items if item.id == id)
    return {term.name: term.contribution for term in item.terms}


def named(memory: Memory, word: str) -> str:
    return next(item.id for item in memory.list() if word in item.content)


def test_a_question_asked_again_lifts_what_answered_it(memory: Memory) -> None:
    paddles = named(memory, "Paddles")
    question = "What do I need for a trip on the water?"
    before = memory.recall(question, now=NOW)
    memory.feedback(before, paddles, by="ops", now=NOW)
    after = memory.recall(question, now=NOW, explain=True)
    assert terms(after, paddles)["cue"] > 0.3
    assert dict(zip(after.ids, [hit.score for hit in after], strict=True))[paddles] > next(
        hit.score for hit in before if hit.id == paddles
    )
    assert after.trace is not None
    (item,) = (item for item in after.trace.items if item.id == paddles)
    assert "cue" in {path.type for path in item.paths}
    assert sum(term.contribution for term in item.terms) == pytest.approx(item.score, abs=1e-5)


def test_a_question_about_somebody_else_lifts_nothing(memory: Memory) -> None:
    paddles = named(memory, "Paddles")
    recall = memory.recall("What does Ada need for a trip?", now=NOW)
    memory.feedback(recall, paddles, by="ops", now=NOW)
    same = memory.recall("What does Ada need for a trip?", now=NOW, explain=True)
    other = memory.recall("What does Ben need for a trip?", now=NOW, explain=True)
    assert "cue" in terms(same, paddles)
    assert paddles not in other.ids or "cue" not in terms(other, paddles)


def test_memories_used_together_are_recalled_together(memory: Memory) -> None:
    canoe, paddles = named(memory, "canoe"), named(memory, "Paddles")
    memory.strengthen(canoe, paddles, by="ops", now=NOW)
    recall = memory.recall("Where is the canoe?", now=NOW, explain=True)
    given, taken = terms(recall, paddles)["association"], terms(recall, canoe)["association"]
    assert given > 10 * taken > 0.0  # the better match passes on more
    off = memory.recall("Where is the canoe?", now=NOW, profile=AWAKE.without("learning"))
    assert {hit.id: hit.score for hit in off}[paddles] == pytest.approx(
        {hit.id: hit.score for hit in recall}[paddles] - given, abs=2e-6
    )


def test_what_was_learned_fades_by_half_in_half_a_year(memory: Memory) -> None:
    canoe, paddles = named(memory, "canoe"), named(memory, "Paddles")
    memory.strengthen(canoe, paddles, by="ops", now=NOW)
    half = AWAKE.half_life_days
    assert half is not None
    (fresh,) = memory.strengths(now=NOW)
    (later,) = memory.strengths(now=NOW + timedelta(days=half))
    assert later.strength == pytest.approx(fresh.strength / 2)
    gifts = [
        terms(memory.recall("Where is the canoe?", now=moment, explain=True), paddles)
        for moment in (NOW, NOW + timedelta(days=half))
    ]
    assert gifts[1]["association"] == pytest.approx(gifts[0]["association"] / 2, rel=1e-3)


def test_filters_hold_for_what_was_learned_too(memory: Memory) -> None:
    canoe, soup = named(memory, "canoe"), named(memory, "Soup")
    recall = memory.recall("Where is the canoe?", now=NOW)
    memory.feedback(recall, (canoe, soup), by="ops", now=NOW)
    for query in ("Where is the canoe?", "canoe"):
        found = memory.recall(query, now=NOW, speakers="Ada")
        assert soup not in found.ids


def test_cues_are_never_memories(memory: Memory) -> None:
    paddles = named(memory, "Paddles")
    before = memory.stats().spaces[0].items
    question = "What do I need for a trip on the water?"
    memory.feedback(memory.recall(question, now=NOW), paddles, by="ops", now=NOW)
    assert question not in [hit.content for hit in memory.recall(question, 50, now=NOW)]
    assert question not in [item.content for item in memory.list()]
    assert question not in [hit.content for hit in memory.recall("", 50, now=NOW)]
    assert memory.stats().spaces[0].items == before
    assert [item.content for item in memory.list(kinds="cue")] == [question]


def test_cues_change_no_word_statistics(memory: Memory) -> None:
    paddles = named(memory, "Paddles")
    plain = AWAKE.without("learning")
    before = memory.recall("Which mast needs paint?", now=NOW, profile=plain)
    for i in range(5):
        recall = memory.recall(f"Which mast needs paint and number {i}?", now=NOW)
        memory.feedback(recall, paddles, by="ops", now=NOW)
    after = memory.recall("Which mast needs paint?", now=NOW, profile=plain)
    assert [(hit.id, hit.score) for hit in after] == [(hit.id, hit.score) for hit in before]


def test_the_same_question_in_another_case_is_one_cue(memory: Memory) -> None:
    paddles = named(memory, "Paddles")
    for question in ("Where do paddles hang?", "where do PADDLES hang?"):
        memory.feedback(memory.recall(question, now=NOW), paddles, by="ops", now=NOW)
    assert len(memory.list(kinds="cue")) == 1


def test_without_vectors_pairs_are_learned_and_cues_are_not(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "w.db", vectors=False) as memory:
        memory.remember(TURNS, time=NOW - timedelta(days=30), now=NOW)
        canoe, paddles = named(memory, "canoe"), named(memory, "Paddles")
        recall = memory.recall("canoe paddles", now=NOW)
        learned = memory.feedback(recall, (canoe, paddles), now=NOW)
        assert [frozenset((link.a, link.b)) for link in learned.links] == [
            frozenset((canoe, paddles))
        ]
        assert len(memory.list(kinds="cue")) == 0


def test_citations_are_read_from_an_answer(memory: Memory) -> None:
    recall = memory.recall("Where is the canoe?", now=NOW)
    answer = f"Behind the shed [1], see also [2, 99] and {recall.ids[2].upper()}; not {NOW}."
    assert cited_ids(recall.ids, answer) == recall.ids[:3]
    assert cited_ids(recall.ids, "No idea.") == ()
    assert memory.cited(recall, "No idea.").counted is False
    assert memory.cited(recall, "Behind the shed [1].", by="ops", now=NOW).counted is True


def test_uses_soon_after_each_other_in_one_interaction_are_linked_weakly(memory: Memory) -> None:
    canoe, mast = named(memory, "canoe"), named(memory, "mast")
    one = memory.recall("Where is the canoe?", now=NOW)
    memory.feedback(one, canoe, by="ops", interaction="chat", now=NOW)
    two = memory.recall("What needs paint?", now=NOW)
    memory.feedback(two, mast, by="ops", interaction="chat", now=NOW + timedelta(seconds=30))
    pairs = {frozenset((link.a, link.b)): link.strength for link in memory.strengths(now=NOW)}
    assert 0.0 < pairs[frozenset((canoe, mast))] <= 0.05 + 1e-9
    three = memory.recall("What repeats the news?", now=NOW)
    memory.feedback(
        three, named(memory, "parrot"), by="ops", interaction="other",
        now=NOW + timedelta(seconds=60),
    )  # fmt: skip
    assert (
        len({*pairs}) == len([link for link in memory.strengths(now=NOW) if link.a != link.b]) - 1
    )


def test_an_export_carries_what_was_learned(memory: Memory, tmp_path: Path) -> None:
    canoe, paddles = named(memory, "canoe"), named(memory, "Paddles")
    question = "What does Ada need for a trip on the water?"
    memory.feedback(memory.recall(question, now=NOW), (canoe, paddles), by="ada", now=NOW)
    memory.strengthen(canoe, named(memory, "mast"), by="ops", now=NOW)
    memory.export(tmp_path / "m.jsonl")
    with Memory.open(tmp_path / "n.db", embedder="hashing:64") as other:
        other.import_(tmp_path / "m.jsonl")
        assert other.strengths(now=NOW) == memory.strengths(now=NOW)
        assert other.replay() == 0
        assert other.check() == []
        assert [event.by for event in other.why(canoe, paddles)] == ["ada"]
        again = other.recall(question, now=NOW)
        assert again.ids == memory.recall(question, now=NOW).ids
        assert other.feedback(again, (canoe, paddles), by="ada", now=NOW).counted is False

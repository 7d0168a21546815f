"""How sure a recall is that there is an answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cofire import Memory
from cofire.dynamics.gate import Gate
from cofire.retrieval.profiles import COFIRE, GATE

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
TURNS = [
    {"speaker": "Ada", "session": "a", "content": "I bought a red canoe in Lisbon last spring."},
    {"speaker": "Ben", "session": "a", "content": "Nice, I never went there."},
    {"speaker": "Ben", "session": "b", "content": "My parrot repeats the news every morning."},
    {"speaker": "Ada", "session": "b", "content": "That must be loud."},
    {"speaker": "Ada", "session": "c", "content": "I paint my kitchen yellow on Sunday."},
    {"speaker": "Ben", "session": "c", "content": "Leeks make the best soup, I think."},
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", embedder="hashing:256") as memory:
        memory.remember(TURNS, time=NOW, now=NOW)
        yield memory


def confidence(memory: Memory, question: str) -> float:
    found = memory.recall(question, now=NOW).confidence
    assert found is not None
    return found


def test_what_somebody_else_did_is_doubted(memory: Memory) -> None:
    right = confidence(memory, "What did Ada buy in Lisbon?")
    wrong = confidence(memory, "What did Ben buy in Lisbon?")
    assert right > 0.8
    assert wrong < right - 0.3


def test_words_never_met_are_doubted(memory: Memory) -> None:
    met = confidence(memory, "Which parrot repeats the news?")
    unmet = confidence(memory, "Which submarine orbits Neptune?")
    assert unmet < GATE.threshold
    assert met > 0.5
    assert memory.recall("Which submarine orbits Neptune?", now=NOW).abstain
    assert not memory.recall("Which parrot repeats the news?", now=NOW).abstain


def test_nothing_remembered_is_no_confidence(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "e.db", embedder="hashing:64") as memory:
        recall = memory.recall("anything?", now=NOW)
        assert (recall.confidence, recall.abstain) == (0.0, True)


@pytest.mark.parametrize("profile", ["dense", "lexical"])
def test_profiles_without_a_gate_do_not_say(memory: Memory, profile: str) -> None:
    recall = memory.recall("Which parrot?", now=NOW, profile=profile)
    assert (recall.confidence, recall.abstain) == (None, False)


def test_an_empty_question_says_nothing(memory: Memory) -> None:
    assert memory.recall("", now=NOW).confidence is None


def test_the_gate_is_part_of_the_profile(memory: Memory) -> None:
    never = replace(COFIRE, gate=Gate(weights={"score": 1.0}, bias=0.0, threshold=0.0))
    recall = memory.recall("Which submarine orbits Neptune?", now=NOW, profile=never)
    assert not recall.abstain
    without = memory.recall("Which parrot?", now=NOW, profile=replace(COFIRE, gate=None))
    assert without.confidence is None


def test_confidence_does_not_change_what_is_returned(memory: Memory) -> None:
    gated = memory.recall("Which parrot repeats the news?", now=NOW)
    plain = memory.recall(
        "Which parrot repeats the news?", now=NOW, profile=replace(COFIRE, gate=None)
    )
    assert gated.ids == plain.ids

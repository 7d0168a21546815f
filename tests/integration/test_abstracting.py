"""Gists and words on a real store: what they are made of, what they lead to, when they go."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from cofire import Memory
from cofire.consolidation import abstracting
from cofire.store.records import LINK_CODES, DerivedRow
from cofire.types import Kind, LinkType

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
TALK = (
    ("Juno", "I saw the regatta on the lake. Where do you practise?"),
    ("Nora", "Hello there! In the park by the old mill, mostly. Lovely weather today."),
    ("Juno", "That sounds quiet."),
    ("Nora", "I took up pottery last spring. Pottery calms me."),
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", embedder="hashing:64") as opened:
        yield opened


def talk(memory: Memory) -> list[str]:
    return [
        memory.remember(text, speaker=who, session="one", time=START + timedelta(minutes=place)).id
        for place, (who, text) in enumerate(TALK)
    ]


def sleep(memory: Memory, days: float = 1.0) -> dict[str, dict[str, int]]:
    (report,) = memory.consolidate(("verify", "gists", "words"), now=START + timedelta(days=days))
    assert not report.failed
    return {step.name: dict(step.counts) for step in report.steps}


def derived(memory: Memory, kind: Kind) -> list[DerivedRow]:
    workings = memory._workings
    rows = workings.store.derived(workings.spaces.all()[0])
    return [row for row in rows if row.item.kind == kind.value]


def texts(memory: Memory, kind: Kind) -> set[str]:
    return {row.item.content for row in derived(memory, kind)}


ANSWER = (
    "Where do you practise? Hello there! In the park by the old mill, mostly. Lovely weather today."
)


def test_gists_are_verbatim_and_stand_for_one_turn(memory: Memory) -> None:
    talk(memory)
    sleep(memory)
    gists = derived(memory, Kind.GIST)
    assert ANSWER in {row.item.content for row in gists}
    said = {number: text for number, (_, text) in enumerate(TALK, 1)}
    for row in gists:
        parts = [said[one.source][one.start : one.end] for one in row.sources]
        assert " ".join(parts) == row.item.content
        assert (row.maker, row.state) == ("extractive", "current")
        assert row.item.tokens > 0


def test_they_are_never_memories(memory: Memory) -> None:
    ids = talk(memory)
    before = memory.recall("pottery", 10, now=START + timedelta(days=1)).ids
    sleep(memory)
    after = memory.recall("Where does Nora practise pottery?", 10, now=START + timedelta(days=1))
    assert set(after.ids) <= set(ids)
    assert set(memory.recall("pottery", 10, now=START + timedelta(days=1)).ids) >= set(before)
    assert memory.records() == () or not {Kind.GIST, Kind.WORD} & {
        one.item.kind for one in memory.records()
    }


def test_nothing_is_done_twice(memory: Memory) -> None:
    talk(memory)
    first = sleep(memory)
    assert first["gists"]["filed"] and first["words"]["filed"]
    kept = texts(memory, Kind.GIST), texts(memory, Kind.WORD)
    again = sleep(memory, 2.0)
    assert not again["gists"] and not again["words"]
    assert (texts(memory, Kind.GIST), texts(memory, Kind.WORD)) == kept


def test_what_an_edit_took_away_goes_and_what_it_brought_comes(memory: Memory) -> None:
    ids = talk(memory)
    sleep(memory)
    assert "pottery" in texts(memory, Kind.WORD)
    memory.update(ids[3], content="I took up weaving last spring. Weaving calms me.")
    memory.update(ids[0], content="I saw the regatta on the lake. Where do you train?")
    sleep(memory, 2.0)
    assert "pottery" not in texts(memory, Kind.WORD)
    assert "weaving" in texts(memory, Kind.WORD)
    gists = texts(memory, Kind.GIST)
    assert any("Weaving" in text or "weaving" in text for text in gists)
    assert not any("Pottery" in text or "practise" in text for text in gists)
    assert ANSWER.replace("practise", "train") in gists
    assert all(row.state == "current" for row in derived(memory, Kind.GIST))


def test_they_go_with_what_they_are_made_of(memory: Memory) -> None:
    ids = talk(memory)
    sleep(memory)
    memory.forget(ids[0])
    assert not any("practise" in text for text in texts(memory, Kind.GIST))
    assert "regatta" not in texts(memory, Kind.WORD)
    memory.forget(ids[3])
    assert "pottery" not in texts(memory, Kind.WORD)


def test_a_word_stays_while_somebody_says_it(memory: Memory) -> None:
    ids = talk(memory)
    memory.remember("Pottery again", speaker="Juno", time=START + timedelta(hours=1))
    sleep(memory)
    memory.update(ids[3], content="I took up weaving.")
    sleep(memory, 2.0)
    assert "pottery" in texts(memory, Kind.WORD)
    assert all(row.state == "current" for row in derived(memory, Kind.WORD))


def test_words_lead_to_akin_words(memory: Memory) -> None:
    talk(memory)
    sleep(memory)
    workings = memory._workings
    space = workings.spaces.all()[0]
    graph = workings.recaller.graph(space)
    rows = np.array([graph.row(row.item.number) for row in derived(memory, Kind.WORD)])
    edges = graph.neighbours(rows)
    assert set(edges.type.tolist()) == {LINK_CODES[LinkType.RELATED.value]}
    assert set(edges.target.tolist()) <= set(rows.tolist())


def test_a_memory_without_vectors_sleeps_all_the_same(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hashing:64", vectors=False) as plain:
        talk(plain)
        sleep(plain)
        assert not texts(plain, Kind.GIST) and not texts(plain, Kind.WORD)


def test_words_have_a_bound(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abstracting, "MOST_WORDS", 3)
    talk(memory)
    sleep(memory)
    assert len(texts(memory, Kind.WORD)) == 3
    memory.remember("Archery and falconry", time=START + timedelta(hours=1))
    sleep(memory, 2.0)
    assert len(texts(memory, Kind.WORD)) == 3

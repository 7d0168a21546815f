"""What holds for any opening context: within the budget, nothing twice, alike for one seed."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cofire import Memory
from cofire.types import HEADINGS, Hydration

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECTIONS = list(HEADINGS)
slow = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WORDS = ("boat", "dock", "kiln", "parrot", "soup", "Robin", "repaired", "the", "图书馆", "cafe")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
kinds = st.sampled_from(["episode", "episode", "episode", "goal", "thread", "trait", "persona"])


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "content": draw(texts),
        "kind": draw(kinds),
        "speaker": draw(st.none() | st.sampled_from(["Ada", "Sam"])),
        "time": NOW - timedelta(days=draw(st.integers(0, 400))),
        "pinned": draw(st.booleans()),
        "importance": draw(st.integers(1, 10)),
        "expires": draw(st.sampled_from([None, NOW - timedelta(days=1), NOW + timedelta(days=1)])),
    }


def gist(found: Hydration) -> list[tuple[str, str, str]]:
    return [(entry.id, entry.section, entry.why) for entry in found]


def check(memory: Memory, found: Hydration, budget: int) -> None:
    assert found.tokens == memory.count_tokens(found.text) <= budget
    assert len(set(found.ids)) == len(found)
    places = [SECTIONS.index(entry.section) for entry in found]
    assert places == sorted(places)
    assert all(entry.why for entry in found)
    assert all(entry.item.expires is None or entry.item.expires > NOW for entry in found)


@st.composite
def memories(draw: st.DrawFn) -> dict[str, Any]:
    """Messages of one's own and of a project, and pairs of one's own that are linked."""
    pairs = st.tuples(st.integers(0, 24), st.integers(0, 24))
    return {
        "own": draw(st.lists(messages(), max_size=25)),
        "shared": draw(st.lists(messages(), max_size=8)),
        "pairs": draw(st.lists(pairs, max_size=10)),
    }


@given(memories(), st.none() | texts, st.integers(1, 400), st.integers(0, 2**64))
@slow
def test_an_opening_context(said: dict[str, Any], cue: str | None, budget: int, seed: int) -> None:
    own, shared = said["own"], said["shared"]
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "m.db", projects="p", embedder="hashing:32") as memory,
    ):
        ids = memory.remember(own, now=NOW).ids if own else ()
        if shared:
            memory.remember(shared, project="p", now=NOW)
        for one, other in said["pairs"]:
            if max(one, other) < len(ids) and one != other:
                memory.link(ids[one], ids[other], type="supports", strength=0.8)
        found = memory.hydrate(cue, token_budget=budget, now=NOW, seed=seed)
        check(memory, found, budget)
        again = memory.hydrate(cue, token_budget=budget, now=NOW, seed=seed)
        assert gist(again) == gist(found)
        assert (again.text, again.tokens) == (found.text, found.tokens)
        assert again.id != found.id
        repeated = memory.hydrate(cue, token_budget=budget, now=NOW, seed=again.seed)
        assert gist(repeated) == gist(found)
        plenty = memory.hydrate(cue, token_budget=100_000, now=NOW, seed=seed)
        check(memory, plenty, 100_000)
        assert not plenty.left_out
        wanted = [*own, *shared]
        pinned = sum(one["pinned"] and one["expires"] != NOW - timedelta(days=1) for one in wanted)
        assert len(plenty.sections.get("pinned", ())) == pinned
        if found:
            memory.feedback(found, used=found.ids, now=NOW)
        assert list(memory.check()) == []
        assert memory.replay() == 0


@given(st.integers(1, 5_000), st.none() | texts)
@settings(max_examples=5, deadline=None)
def test_an_empty_memory_opens_with_nothing(budget: int, cue: str | None) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "m.db", embedder="hashing:32") as memory,
    ):
        found = memory.hydrate(cue, token_budget=budget)
        assert not found
        assert (found.text, found.tokens, dict(found.sections), found.ids) == ("", 0, {}, ())

"""However turns come and go, a session is a chain of those that remain, in order, without gaps."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.store import Store, open_store
from cofire.store.records import NewItem, SpaceInfo
from cofire.testing import an_item, make_space, some_segments

turns = st.tuples(st.sampled_from(["a", "b", None]), st.booleans())
"""In which session, and whether the turn is long enough for segments."""
steps = st.lists(
    st.lists(turns, min_size=1, max_size=8) | st.sets(st.integers(0, 30), min_size=1, max_size=12),
    min_size=1,
    max_size=8,
)
"""What is appended, or the places (modulo how many there are) of what is forgotten at once."""


def as_item(at: int, turn: tuple[str | None, bool]) -> NewItem:
    session, long = turn
    segments = some_segments((0, 2), (2, 4)) if long else ()
    return an_item("text", session=session, time=at, recorded=at, segments=segments)


def chained(store: Store, space: SpaceInfo) -> set[tuple[int, int]]:
    """The links between turns; those between segments must join neighbours."""
    links: set[tuple[int, int]] = set()
    segments: set[tuple[int, int]] = set()
    for link in store.iterate_links(space):
        assert (link.type, link.strength) == ("temporal", 0.5)
        whole = {row.parent for row in store.fetch(space, [link.source, link.target])}
        (links if whole == {0} else segments).add((link.source, link.target))
    assert all(target == source + 1 for source, target in segments)
    return links


@settings(max_examples=40, deadline=None)
@given(steps)
def test_a_session_stays_a_chain(steps: Sequence[list[tuple[str | None, bool]] | set[int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "m.db") as store:
        space = make_space(store)
        here: dict[int, str | None] = {}
        clock = 0
        for step in steps:
            if isinstance(step, set):
                among = sorted(here)
                gone = {among[place % len(among)] for place in step} if among else set()
                assert store.forget(space, sorted(gone)).memories == len(gone)
                for number in gone:
                    del here[number]
            else:
                items = [as_item(clock + at, turn) for at, turn in enumerate(step)]
                clock += len(items)
                appended = store.append(space, items)
                here.update(zip(appended.numbers, (item.session for item in items), strict=True))
            chains = [[n for n in sorted(here) if here[n] == name] for name in ("a", "b")]
            assert chained(store, space) == {pair for one in chains for pair in pairwise(one)}
        assert list(store.check()) == []

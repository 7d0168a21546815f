"""The look-ups that recall makes at once against those made one by one."""

from __future__ import annotations

from collections.abc import Iterable
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.dynamics.arrays import U64, Bool
from cofire.dynamics.scoring import dot_products
from cofire.graph import postings
from cofire.graph.links import LinkLists, Links, sort_links
from cofire.graph.postings import Entries, Postings

KEYS = np.arange(1, 9, dtype=np.uint64)
batches = st.lists(
    st.lists(st.sets(st.integers(1, 8)).map(sorted), max_size=5), min_size=1, max_size=6
)


def built(some: Iterable[list[list[int]]]) -> tuple[Postings, int]:
    """Rows with their keys, in several appends, so that base, recent and tail are all used."""
    found, row = Postings.empty(), 0
    for batch in some:
        keys = [key for one in batch for key in one]
        rows = [row + at for at, one in enumerate(batch) for _ in one]
        entries = Entries(
            np.array(keys, np.uint64), np.array(rows, np.int32), np.ones(len(keys), np.uint8)
        )
        found = found.append(entries, np.array([len(one) for one in batch], np.int64))
        row += len(batch)
    return found, row


@settings(max_examples=80, deadline=None)
@given(batches, st.integers(0, 6), st.integers(0, 6), st.integers(1, 5), st.data())
def test_postings(
    some: list[list[list[int]]], tail: int, delta: int, most: int, data: st.DataObject
) -> None:
    with patch.object(postings, "TAIL", tail), patch.object(postings, "DELTA_MIN", delta):
        found, size = built(some)
    alive = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    live: Bool | None = None if all(alive) else np.array(alive)
    asked: U64 = data.draw(st.permutations(KEYS.tolist()).map(lambda k: np.array(k, np.uint64)))
    lists = [rows for rows, _ in found.lookup(asked, live)]
    assert found.contains(asked, live).tolist() == [len(rows) > 0 for rows in lists]
    expected = sorted({int(r) for rows in lists if 1 < len(rows) <= most for r in rows})
    assert found.rows_sharing(asked, most, live).tolist() == expected


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=6), max_size=4),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=4),
    st.booleans(),
)
def test_links_to_at_most_one_neighbour(
    some: list[list[tuple[int, int]]], removed: list[tuple[int, int]], merged: bool
) -> None:
    links = Links.empty()
    for batch in some:
        pairs = list(dict.fromkeys(batch))
        source, target = (np.array([pair[end] for pair in pairs], np.int64) for end in (0, 1))
        kinds = (source % 2).astype(np.uint8)
        links = links.changed([], source, target, kinds, np.full(len(pairs), 0.5, np.float32))
        if merged:
            links = Links.adopt(_merged(links))
    none = np.empty(0, np.int64)
    links = links.changed(removed, none, none, none.astype(np.uint8), none.astype(np.float32))
    numbers = np.arange(1, 12, dtype=np.int64)
    before, after, known = links.lone_neighbours(numbers, 1)
    for outward, ends in ((True, after), (False, before)):
        edges = links.edges(numbers, outward=outward, inward=not outward)
        for at, end in enumerate(ends.tolist()):
            others = edges.target[(edges.origin == at) & (edges.type == 1)].tolist()
            if known[at]:
                assert others == ([end] if end else [])


def _merged(links: Links) -> LinkLists:

    return sort_links(*links.arrays())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 200), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_products_of_chosen_rows(count: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stored = rng.standard_normal((count, width)).astype(np.float16)
    query = rng.standard_normal(width)
    expected = stored.astype(np.float64) @ query
    np.testing.assert_allclose(dot_products(stored, query), expected, atol=1e-12)
    rows = np.sort(rng.choice(count, count // 2, replace=False)) if count else np.empty(0, np.intp)
    np.testing.assert_allclose(dot_products(stored, query, rows), expected[rows], atol=1e-12)

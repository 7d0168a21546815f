"""Postings through every stage: tail, recent, base, compaction."""

from __future__ import annotations

import numpy as np
import pytest

from cofire.graph import postings
from cofire.graph.postings import Entries, Postings, merge_lists, no_lists, sort_entries


def entries(*triples: tuple[int, int, int]) -> tuple[Entries, np.ndarray]:
    """(key, row, count) of consecutive rows, in order of rows."""
    keys, rows, counts = zip(*triples, strict=True)
    found = Entries(np.array(keys, np.uint64), np.array(rows, np.int32), np.array(counts, np.uint8))
    lengths = np.bincount(np.array(rows) - rows[0])
    return found, lengths.astype(np.int64)


def listed(found: Postings, key: int) -> list[tuple[int, int]]:
    rows, counts = found.lookup(np.array([key], np.uint64))[0]
    return list(zip(rows.tolist(), counts.tolist(), strict=True))


def test_unknown_keys_have_no_rows() -> None:
    empty = Postings.empty()
    assert listed(empty, 5) == []
    one = empty.append(*entries((5, 0, 1)))
    assert listed(one, 4) == []
    assert listed(one, 6) == []
    assert one.rows(5).tolist() == [0]


def test_the_largest_hash_is_found_exactly() -> None:
    """uint64 keys must not pass through float64."""
    top = 2**64 - 1
    one = Postings.empty().append(*entries((top - 1, 0, 1), (top, 0, 2)))
    full = Postings.adopt(one.merged(), None, None)
    for found in (one, full):
        assert listed(found, top) == [(0, 2)]
        assert listed(found, top - 1) == [(0, 1)]
        assert listed(found, top - 2) == []


def test_growth_passes_through_tail_recent_and_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "TAIL", 4)
    monkeypatch.setattr(postings, "DELTA_MIN", 10)
    found = Postings.empty(forward=True)
    stages = set()
    for row in range(60):
        found = found.append(*entries((row % 3, row, 1), (9, row, 2)))
        stages.add((found.tail.length > 0, len(found.recent) > 0, len(found.base) > 0))
        assert listed(found, 9) == [(r, 2) for r in range(row + 1)]
        assert listed(found, 0) == [(r, 1) for r in range(0, row + 1, 3)]
    assert (True, True, True) in stages
    assert len(found) == 120
    origin, keys, counts = found.keys_of(np.array([7, 0]))
    assert origin.tolist() == [0, 0, 1, 1]
    assert keys.tolist() == [1, 9, 0, 9]
    assert counts.tolist() == [1, 2, 1, 2]


def test_older_snapshots_do_not_see_newer_rows() -> None:
    old = Postings.empty().append(*entries((1, 0, 1)))
    new = old.append(*entries((1, 1, 1)))
    assert listed(old, 1) == [(0, 1)]
    assert listed(new, 1) == [(0, 1), (1, 1)]


def test_removed_rows_do_not_count() -> None:
    found = Postings.empty().append(*entries((1, 0, 1), (1, 1, 1), (2, 1, 1)))
    live = np.array([True, False])
    both = found.lookup(np.array([1, 2], np.uint64), live)
    assert [rows.tolist() for rows, _ in both] == [[0], []]


def test_compaction_drops_removed_rows_and_empty_keys() -> None:
    found = Postings.empty(forward=True).append(*entries((1, 0, 1), (2, 1, 4), (1, 2, 7)))
    kept = found.compacted(np.array([-1, -1, 0], np.int32))
    assert kept.base.keys.tolist() == [1]
    assert listed(kept, 1) == [(0, 7)]
    assert kept.keys_of(np.array([0]))[1].tolist() == [1]


def test_keys_of_rows_needs_the_forward_index() -> None:
    with pytest.raises(TypeError, match="forward"):
        Postings.empty().keys_of(np.array([0]))


def test_masks_of_any_key() -> None:
    found = Postings.empty().append(*entries((1, 0, 1), (2, 1, 1), (3, 2, 1)))
    assert found.any_of([1, 3], 4).tolist() == [True, False, True, False]
    assert found.any_of([], 2).tolist() == [False, False]


def test_merging_equals_sorting_all() -> None:
    rng = np.random.default_rng(2)
    older = sort_entries(
        Entries(
            rng.integers(0, 30, 200).astype(np.uint64),
            np.repeat(np.arange(50, dtype=np.int32), 4),
            rng.integers(1, 9, 200).astype(np.uint8),
        )
    )
    newer = sort_entries(
        Entries(
            rng.integers(10, 45, 80).astype(np.uint64),
            np.repeat(np.arange(50, 70, dtype=np.int32), 4),
            rng.integers(1, 9, 80).astype(np.uint8),
        )
    )
    merged = merge_lists(older, newer)
    for key in range(45):
        spans = [part.spans(np.array([key], np.uint64)) for part in (older, newer, merged)]
        lists = [
            part.rows[int(start[0]) : int(end[0])].tolist()
            for part, (start, end) in zip((older, newer, merged), spans, strict=True)
        ]
        assert lists[2] == lists[0] + lists[1]
    assert merge_lists(older, no_lists()) is older
    assert merge_lists(no_lists(), newer) is newer

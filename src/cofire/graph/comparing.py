"""Whether two snapshots of a space say the same: what `cofire doctor` asks of an active graph."""

from __future__ import annotations

import numpy as np

from cofire.dynamics.arrays import I32
from cofire.graph.active import ActiveGraph
from cofire.graph.postings import Postings
from cofire.graph.rows import COLUMNS


def differences(one: ActiveGraph, other: ActiveGraph) -> list[str]:
    """What two compacted snapshots of one space disagree in, in words; rows may be in another
    order. For `cofire doctor`: a graph kept up to date must equal one built anew."""
    numbers = one.column("number")
    others = other.column("number")
    if not np.array_equal(np.sort(numbers), np.sort(others)):
        missing = np.setdiff1d(others, numbers)
        extra = np.setdiff1d(numbers, others)
        return [f"{len(missing)} memories missing, {len(extra)} too many"]
    rows, same = np.argsort(numbers), np.argsort(others)
    found = [
        f"column {name} differs"
        for name in (*COLUMNS, "vector")
        if name not in {"speaker", "session"}
        and not np.array_equal(one.column(name)[rows], other.column(name)[same])
    ]
    mine, theirs = (
        sorted(zip(*graph.links.arrays(graph.numbers.array), strict=True)) for graph in (one, other)
    )
    if mine != theirs:
        found.append("links differ")
    new_rows = np.empty(len(rows), np.int32)
    new_rows[rows] = np.arange(len(rows), dtype=np.int32)
    other_rows = np.empty(len(same), np.int32)
    other_rows[same] = np.arange(len(same), dtype=np.int32)
    for name in ("terms", "concepts", "facets"):
        left = _sorted_entries(getattr(one, name), new_rows)
        right = _sorted_entries(getattr(other, name), other_rows)
        if not all(np.array_equal(a, b) for a, b in zip(left, right, strict=True)):
            found.append(f"{name} differ")
    return found


def _sorted_entries(postings: Postings, new_rows: I32) -> tuple[np.ndarray, ...]:
    """Keys, renumbered rows and counts, in order of (key, row)."""
    lists = postings.merged()
    keys = np.repeat(lists.keys, np.diff(lists.offsets))
    rows = new_rows[lists.rows]
    order = np.lexsort((rows, keys))
    return keys[order], rows[order], lists.counts[order]

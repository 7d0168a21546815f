"""Past questions of a space, as a recall looks at them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F32, I64, Bool, Rows
from cofire.graph.active import ActiveGraph


@dataclass(frozen=True, slots=True)
class Cues:
    """Live rows of one kind that have a vector: `rows`, ascending, their `numbers`, and their
    `vectors` (m, d)."""

    rows: Rows
    numbers: I64
    vectors: F32

    def __len__(self) -> int:
        return len(self.rows)


def cues_of(graph: ActiveGraph, kind: int) -> Cues:
    """The rows of `kind`; kept with the snapshot."""
    kept: Cues | None = graph.cache.get("cues")
    if kept is None:
        mask: Bool = graph.table["kind"] == kind
        mask = mask & graph.table["has_vector"]
        if graph.live is not None:
            mask &= graph.live
        rows = np.flatnonzero(mask)
        kept = Cues(
            rows,
            graph.table["number"][rows].astype(np.int64),
            graph.table["vector"][rows].astype(np.float32),
        )
        graph.cache["cues"] = kept
    return kept


def rows_of_numbers(graph: ActiveGraph, numbers: I64) -> tuple[I64, I64]:
    """(index into `numbers`, row) of every row that stands for one of them: its own, or those of
    its segments where a long text was cut. Numbers without a row are left out."""
    rows = graph.rows_of(numbers).astype(np.int64)
    known = np.flatnonzero(rows >= 0)
    whole = ~graph.recallable[rows[known]]
    if not whole.any():
        return known, rows[known]
    index, found = [known[~whole]], [rows[known[~whole]]]
    parents = graph.column("parent")
    for place in known[whole].tolist():
        parts = np.flatnonzero(parents == numbers[place])
        if graph.live is not None:
            parts = parts[graph.live[parts]]
        index.append(np.full(len(parts), place, np.int64))
        found.append(parts.astype(np.int64))
    return np.concatenate(index), np.concatenate(found)

"""What a mechanism sees of a graph: the edges that leave some nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cofire.dynamics.arrays import F32, I32, I64, U8, Bool


@dataclass(frozen=True, slots=True)
class Edges:
    """Links met from some nodes. `origin` is the position of the node among those asked for,
    `target` the node at the other end, `type` the link's code, `strength` in [0, 1], `outward`
    whether the link leads from the node asked for (False: to it)."""

    origin: I64
    target: I64
    type: U8
    strength: F32
    outward: Bool

    def __len__(self) -> int:
        return len(self.origin)

    def where(self, kept: Bool) -> Edges:
        return Edges(
            self.origin[kept],
            self.target[kept],
            self.type[kept],
            self.strength[kept],
            self.outward[kept],
        )


def no_edges() -> Edges:
    return Edges(
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.uint8),
        np.empty(0, np.float32),
        np.empty(0, np.bool_),
    )


def join_edges(parts: list[Edges]) -> Edges:
    """One after the other."""
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return no_edges()
    return Edges(
        np.concatenate([part.origin for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.type for part in parts]),
        np.concatenate([part.strength for part in parts]),
        np.concatenate([part.outward for part in parts]),
    )


def expand(starts: I64 | I32, ends: I64 | I32) -> tuple[I64, I64]:
    """Slices [starts[i], ends[i]) laid end to end: (i, place) of every element."""
    lengths = ends - starts
    total = int(lengths.sum())
    origins = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    before = np.cumsum(lengths) - lengths
    places = np.arange(total, dtype=np.int64)
    places += np.repeat(starts - before, lengths)
    return origins, places


class Adjacency(Protocol):
    """A graph of `size` nodes that can say which edges conduct from given, distinct nodes."""

    @property
    def size(self) -> int: ...

    def edges(self, nodes: I64, /) -> Edges: ...


@dataclass(frozen=True, slots=True)
class Csr:
    """Compressed sparse rows: edges of node n are `offsets[n]` to `offsets[n + 1]` of the arrays.

    Directed: for spreading both ways give each link twice.
    """

    offsets: I64
    targets: I64
    types: U8
    strengths: F32

    @property
    def size(self) -> int:
        return len(self.offsets) - 1

    def edges(self, nodes: I64, /) -> Edges:
        origins, places = expand(self.offsets[nodes], self.offsets[nodes + 1])
        return Edges(
            origins,
            self.targets[places],
            self.types[places],
            self.strengths[places],
            np.ones(len(places), np.bool_),
        )


def csr_from_pairs(
    size: int, sources: I64, targets: I64, types: U8, strengths: F32, *, both_ways: bool = False
) -> Csr:
    """Edges in any order → `Csr`; `both_ways` adds the reverse of each."""
    if both_ways:
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
        types, strengths = np.concatenate([types, types]), np.concatenate([strengths, strengths])
    order = np.lexsort((targets, sources))
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=size), out=offsets[1:])
    return Csr(offsets, targets[order], types[order], strengths[order])

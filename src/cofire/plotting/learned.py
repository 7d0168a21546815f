"""What a memory has learned, as links between memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F64
from cofire.memory import Memory
from cofire.types import Item, Strength, TimeLike

PAGE = 1_000
HUBS = 0.1
"""This share of the linked memories, those of the greatest total strength, are hubs."""


@dataclass(frozen=True, slots=True)
class LearnedGraph:
    """Memories that have learned links, strongest in total first, their matrix of strengths
    (n, n), symmetric; and how many memories have none."""

    items: tuple[Item, ...]
    strength: F64
    isolated: int

    @property
    def totals(self) -> F64:
        """D(v) = Σ_j w_vj of each: what makes a hub in HeLa-Mem's eq. 2."""
        totals: F64 = self.strength.sum(axis=1)
        return totals

    @property
    def hubs(self) -> int:
        """How many of the first are hubs."""
        return max(1, round(HUBS * len(self.items))) if self.items else 0

    def first(self, count: int) -> LearnedGraph:
        """The strongest `count`; the rest count neither as linked nor as isolated."""
        return LearnedGraph(self.items[:count], self.strength[:count, :count], self.isolated)


def learned_graph(memory: Memory, as_of: TimeLike | None = None) -> LearnedGraph:
    """Every learned link between two memories, now or as of a past moment. Cues are no memories
    and left out."""
    items: dict[str, Item] = {}
    after: str | None = None
    while True:
        page = memory.list(limit=PAGE, after=after)
        items.update((item.id, item) for item in page.items)
        after = page.next
        if after is None:
            break
    links = [
        link
        for link in memory.strengths(as_of=as_of)
        if link.a in items and link.b in items and link.strength > 0.0
    ]
    return graph_of(items, links)


def graph_of(items: Mapping[str, Item], links: list[Strength]) -> LearnedGraph:
    """The graph of some memories and links; of equal totals the older memory first."""
    total: dict[str, float] = {}
    for link in links:
        for end in (link.a, link.b):
            total[end] = total.get(end, 0.0) + link.strength
    order = sorted(total, key=lambda id: (-total[id], items[id].time, id))
    place = {id: at for at, id in enumerate(order)}
    matrix = np.zeros((len(order), len(order)), np.float64)
    for link in links:
        one, other = place[link.a], place[link.b]
        matrix[one, other] = matrix[other, one] = link.strength
    return LearnedGraph(tuple(items[id] for id in order), matrix, len(items) - len(order))

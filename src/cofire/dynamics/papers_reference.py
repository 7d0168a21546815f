"""The equations of `papers`, written to be read: one memory at a time.

They define what the fast versions must compute; tests run both on the same memories. Equals are
told apart by the position of a memory, which stands for its id here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from cofire.dynamics.activation_reference import Graph
from cofire.dynamics.papers import DAY_US, AtamaiaBoosts, SynapseWeights


def hela_mem_base(
    cosine: float,
    question: Collection[str],
    keywords: Collection[str],
    age_us: float,
    *,
    keyword_weight: float,
    tau_days: float | None,
) -> float:
    """`papers.hela_mem_base` with `papers.hela_mem_keywords`, for one memory."""
    asked = set(question)
    match = len(asked & set(keywords)) / len(asked) if asked else 0.0
    decay = 1.0 if tau_days is None else math.exp(-max(0.0, age_us) / DAY_US / tau_days)
    return ((cosine + 1.0) / 2.0 + keyword_weight * match) * decay


def _falling(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda row: (-round(scores[row], 6), row))


def dual_path(
    base: Sequence[float], spread: Sequence[float], k: int, m: int, raised_only: bool
) -> tuple[list[int], list[int]]:
    """`papers.dual_path`."""
    first = _falling(dict(enumerate(base)))[:k]
    rest = {row: score for row, score in enumerate(spread) if row not in first}
    if raised_only:
        rest = {row: score for row, score in rest.items() if score > base[row]}
    return first, _falling(rest)[:m]


def synapse_anchors(cosine: Sequence[float], lexical: Sequence[float], k: int) -> list[int]:
    """`papers.synapse_anchors`."""
    dense = _falling(dict(enumerate(cosine)))[:k]
    sparse = _falling({row: score for row, score in enumerate(lexical) if score > 0.0})[:k]
    return sorted({*dense, *sparse})


def synapse_score(
    cosine: float, activation: float, pagerank: float, weights: SynapseWeights
) -> float:
    """`papers.synapse_score`, for one memory."""
    return (
        weights.similarity * cosine + weights.activation * activation + weights.pagerank * pagerank
    )


def temporal_weight(gap_us: float, rho: float, unit_us: float) -> float:
    """`papers.temporal_weight`, for one edge."""
    return math.exp(-rho * abs(gap_us) / unit_us)


def atamaia_score(
    text_rank: float,
    cosine: float,
    importance: int,
    age_us: float,
    *,
    strength: float,
    boosts: AtamaiaBoosts,
) -> float:
    """`papers.atamaia_blend` and `papers.atamaia_boosted`, for one memory."""
    blend = 0.2 * text_rank + 0.8 * cosine
    if blend <= 0.0:
        return blend
    recency = math.exp2(-max(0.0, age_us) / DAY_US / boosts.recency_days)
    factor = 1.0 + boosts.importance * (importance - 1) / 9
    factor += boosts.recency * recency + boosts.hebbian * strength
    return blend * factor


def strength_to_hits(
    graph: Graph, size: int, hits: Collection[int], conductance: Mapping[int, float]
) -> list[float]:
    """`papers.strength_to_hits`, over links given from both ends."""
    strongest = [0.0] * size
    for node in range(size):
        for other, kind, strength in graph.get(node, ()):
            if other in hits and other != node:
                value = strength * conductance.get(kind, 0.0)
                strongest[node] = max(strongest[node], value)
    return strongest


def link_adjacent(
    graph: Graph, selected: Collection[int], conductance: Mapping[int, float], threshold: float
) -> dict[int, float]:
    """`papers.link_adjacent`, over outgoing links; in no order."""
    found: dict[int, float] = {}
    for node in selected:
        for target, kind, strength in graph.get(node, ()):
            conducts = conductance.get(kind, 0.0) > 0.0
            if conducts and strength > threshold and target not in selected:
                found[target] = max(found.get(target, 0.0), strength)
    return found

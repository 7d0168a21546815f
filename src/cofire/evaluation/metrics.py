"""Retrieval metrics over ranked ids."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AtK:
    """For one question at one k: the `share` of its evidence among the first k (evidence
    recall@k), whether `any` of it is, whether `all` of it is."""

    share: float
    any: bool
    all: bool


def at_k(ranked: Sequence[Hashable], evidence: Sequence[Hashable], k: int) -> AtK:
    """Raises ValueError if there is no evidence: such a question cannot be scored."""
    wanted = set(evidence)
    if not wanted:
        raise ValueError("a question without evidence has no recall")
    found = len(wanted.intersection(ranked[:k]))
    return AtK(found / len(wanted), found > 0, found == len(wanted))


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; NaN-free: 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0–1) of `values` lie, by linear interpolation."""
    if not values:
        return 0.0
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])

"""Whether a difference between two ways to answer the same questions may be chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cofire.dynamics.arrays import F64

EXACT = 16
"""Up to so many differences other than 0 the permutation test goes through every sign."""
FLIPS = 10_000
_CHUNK = 1_000
_CLOSE = 1e-9


def mcnemar(gained: int, lost: int) -> float:
    """The exact two-sided p of McNemar's test: of `gained` + `lost` questions that only one side
    answers right, how likely a split at least as uneven is if either side is as good as the other
    (binomial with ½; McNemar 1947). 1 where there are none. Raises ValueError below 0."""
    if gained < 0 or lost < 0:
        raise ValueError(f"counts cannot be negative: {gained}, {lost}")
    total = gained + lost
    ways, tail = 1, 0
    for count in range(min(gained, lost) + 1):
        tail += ways
        ways = ways * (total - count) // (count + 1)
    return min(1.0, float(2 * tail / 2**total))


def sign_flips(differences: F64, *, seed: int = 0, flips: int = FLIPS) -> float:
    """The two-sided p of a paired permutation test of the sum of `differences` (n,), one for each
    question: how often it is at least as far from 0 if a coin gave each its sign (Fisher 1935).

    Exact with at most `EXACT` differences other than 0; else of `flips` random draws, with the
    draw that was made counted as one more, so that p is never 0.
    """
    moved = differences[differences != 0.0]
    if not len(moved):
        return 1.0
    reached = abs(float(moved.sum())) - _CLOSE * float(np.abs(moved).sum())
    if len(moved) <= EXACT:
        ways = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1
        return float((np.abs((1.0 - 2.0 * ways) @ moved) >= reached).mean())
    generator = np.random.default_rng(seed)
    hits = 0
    for first in range(0, flips, _CHUNK):
        rows = min(_CHUNK, flips - first)
        signs = 1.0 - 2.0 * generator.integers(0, 2, (rows, len(moved)))
        hits += int((np.abs(signs @ moved) >= reached).sum())
    return (hits + 1) / (flips + 1)


def holm(values: Sequence[float]) -> list[float]:
    """The p of each of several tests, adjusted so that the chance of any false finding among them
    stays at the level that they are held against (Holm 1979): (m - i) · p of the i-th smallest from
    0, at least as large as those before it, at most 1."""
    adjusted = [0.0] * len(values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = least
    return adjusted

"""How far a mean difference is to be trusted: the paired bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cofire.dynamics.arrays import F64, I64

ROUNDS = 2_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean and the bounds of its interval, in the unit of what was averaged."""

    mean: float
    low: float
    high: float


def resampled_means(
    values: F64, groups: I64, *, seed: int | tuple[int, ...] = 0, rounds: int = ROUNDS
) -> F64:
    """The mean of each column of `values` (n ≥ 1, c) in each of `rounds` resamples, (rounds, c).
    What is drawn, as often as there are groups (n,), are groups as a whole."""
    names, place = np.unique(groups, return_inverse=True)
    sizes = np.bincount(place).astype(np.float64)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, place, values)
    drawn = _drawn(len(names), seed, rounds)
    means: F64 = (drawn @ sums) / (drawn @ sizes)[:, None]
    return means


@lru_cache(maxsize=8)
def _drawn(groups: int, seed: int | tuple[int, ...], rounds: int) -> NDArray[np.uint16]:
    """How often each group is drawn in each resample, (rounds, groups). Kept, because an evaluation
    asks for the same of many columns."""
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(groups, np.full(groups, 1.0 / groups), rounds)
    return drawn.astype(np.uint16)


def paired_intervals(
    differences: F64,
    groups: I64,
    *,
    seed: int = 0,
    rounds: int = ROUNDS,
    level: float = LEVEL,
) -> list[Interval]:
    """The mean of each column of `differences` (n, c) with its percentile bootstrap interval.

    What is resampled are groups (n,): a question that several splits test is one group, since its
    differences are not independent of each other. Of nothing the interval is 0 in every place.

    Raises:
        ValueError: the lengths differ.
    """
    if len(differences) != len(groups):
        raise ValueError(f"{len(differences)} differences have {len(groups)} groups")
    columns = differences.shape[1]
    if not len(differences):
        return [Interval(mean=0.0, low=0.0, high=0.0)] * columns
    means = resampled_means(differences, groups, seed=seed, rounds=rounds)
    tail = 100.0 * (1.0 - level) / 2.0
    low, high = np.percentile(means, [tail, 100.0 - tail], axis=0)
    return [
        Interval(mean=float(mean), low=float(lowest), high=float(highest))
        for mean, lowest, highest in zip(differences.mean(axis=0), low, high, strict=True)
    ]

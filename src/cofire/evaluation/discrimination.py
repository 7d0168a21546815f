"""How well a confidence tells the answerable from the rest, and whether it means what it says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F64, Bool

BINS = 10


def area_under_roc(positive: F64, negative: F64) -> float:
    """The chance that one of `positive` is above one of `negative`, ties counting half; ½ where
    either is empty."""
    if not len(positive) or not len(negative):
        return 0.5
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    up_to = np.searchsorted(ordered, positive, side="right")
    return float((below + up_to).mean() / 2.0 / len(negative))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Those whose confidence lies in one of the bins: their share of all weight, their mean
    confidence, and how often they were right."""

    share: float
    confidence: float
    frequency: float


def calibration(confidence: F64, right: Bool, weight: F64, bins: int = BINS) -> list[Bin]:
    """Equal bins of [0, 1] that hold anything, lowest first."""
    total = float(weight.sum())
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    found = []
    for one in range(bins):
        here = place == one
        mass = float(weight[here].sum())
        if mass > 0.0:
            found.append(
                Bin(
                    share=mass / total,
                    confidence=float(weight[here] @ confidence[here]) / mass,
                    frequency=float(weight[here] @ right[here].astype(np.float64)) / mass,
                )
            )
    return found


def calibration_error(bins: list[Bin]) -> float:
    """The expected calibration error: Σ share · |confidence - frequency|, in [0, 1]."""
    return sum(one.share * abs(one.confidence - one.frequency) for one in bins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Answering only the `coverage` most confident, the share `risk` of answers is wrong."""

    coverage: float
    risk: float


def risk_coverage(confidence: F64, right: Bool, weight: F64, coverages: F64) -> list[Point]:
    """The risk at each coverage in (0, 1]; equal confidences are answered together."""
    if not len(confidence):
        return []
    order = np.argsort(-confidence, kind="stable")
    values, mass = confidence[order], weight[order]
    wrong = np.where(right[order], 0.0, mass)
    last = np.append(values[1:] != values[:-1], True)  # the last of each run of equals
    covered = np.cumsum(mass)[last] / mass.sum()
    risk = np.cumsum(wrong)[last] / np.cumsum(mass)[last]
    points = []
    for coverage in coverages.tolist():
        at = min(int(np.searchsorted(covered, coverage - 1e-9)), len(covered) - 1)
        points.append(Point(coverage=coverage, risk=float(risk[at])))
    return points

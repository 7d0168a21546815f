"""What the tests of learning say: means, differences with intervals, the curve, flips, bins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from cofire.dynamics.arrays import F64
from cofire.evaluation.arms import ARMS
from cofire.evaluation.courses import Tested
from cofire.evaluation.intervals import paired_intervals
from cofire.evaluation.learning import KS, LearningResult, Pair
from cofire.evaluation.splits import CHRONOLOGICAL
from cofire.evaluation.sweeps import KS as SWEPT_KS
from cofire.interchange.locomo import CATEGORIES

FLIPS_AT = 10
EDGES = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Bins of strengths: none, then above each edge up to the next."""
Subset = Callable[[Tested], bool]


def _random(one: Tested) -> bool:
    return one.split != CHRONOLOGICAL


SUBSETS: Mapping[str, Subset] = {
    "all": _random,
    "single evidence": lambda one: _random(one) and not one.multi,
    "multi evidence": lambda one: _random(one) and one.multi,
    "evidence shared with training": lambda one: _random(one) and one.shared,
    "no evidence shared": lambda one: _random(one) and not one.shared,
    "multi evidence, none shared": lambda one: _random(one) and one.multi and not one.shared,
    "earlier half, later half": lambda one: not _random(one),
    **{
        CATEGORIES[category]: lambda one, category=category: (  # type: ignore[misc]
            _random(one) and one.category == category
        )
        for category in (1, 2, 3, 4)
    },
}
"""Random halves but for "earlier half, later half"."""


def learning_figures(result: LearningResult) -> dict[str, Any]:
    """Every figure, as JSON knows it. Recalls are per cent, differences points."""
    return {
        "benchmark": "locomo, learning",
        "source": result.source.rpartition("/")[2],
        "corrected_key": result.corrected,
        "conversations": result.conversations,
        "questions": result.questions,
        "splits": result.splits,
        "ground": result.ground,
        "near_identical_dropped": result.dropped,
        "popularity_boost": result.boost,
        "ks": list(KS),
        "arms": {
            name: {
                "says": ARMS[name].says,
                "base": ARMS[name].base,
                "subsets": _subsets(tested, result.tested[ARMS[name].base]),
                "flips": _flips(tested, result.tested[ARMS[name].base]),
            }
            for name, tested in result.tested.items()
        },
        "curve": [
            {"share": share, "subsets": _subsets(*result.curve[share])}
            for share in sorted(result.curve)
        ],
        "strengths": _bins(result.pairs),
        "swept_ks": list(SWEPT_KS),
        "sweeps": [asdict(swept) for swept in result.sweeps],
    }


def _subsets(tested: Sequence[Tested], base: Sequence[Tested]) -> dict[str, Any]:
    """By subset: how many tests, recall at each k, and the difference to the base, paired by
    question and split."""
    known = {(one.conversation, one.question, one.split): one for one in base}
    paired = [(one, known[one.conversation, one.question, one.split]) for one in tested]
    recalls = _recalls([one for one, _ in paired])
    before = _recalls([one for _, one in paired])
    groups = np.array([one.conversation * 1_000_000 + one.question for one in tested], np.int64)
    found = {}
    for name, belongs in SUBSETS.items():
        kept = np.array([belongs(one) for one in tested], np.bool_)
        if not kept.any():
            continue
        intervals = paired_intervals(recalls[kept] - before[kept], groups[kept])
        found[name] = {
            "tests": int(kept.sum()),
            "questions": len(np.unique(groups[kept])),
            "recall": recalls[kept].mean(axis=0).tolist(),
            "difference": [asdict(interval) for interval in intervals],
        }
    return found


def _recalls(tested: Sequence[Tested]) -> F64:
    rows = [[100.0 * one.recall(k) for k in KS] for one in tested]
    return np.array(rows, np.float64).reshape(len(rows), len(KS))


def _flips(tested: Sequence[Tested], base: Sequence[Tested]) -> dict[str, float]:
    """Per cent of the tests (random halves) some of whose evidence left the first ten by
    learning, and of those into whose first ten some came."""
    known = {(one.conversation, one.question, one.split): one for one in base}
    lost = gained = count = 0
    for one in filter(_random, tested):
        before = known[one.conversation, one.question, one.split].found(FLIPS_AT)
        after = one.found(FLIPS_AT)
        lost += bool(before - after)
        gained += bool(after - before)
        count += 1
    return {"lost": 100.0 * lost / max(count, 1), "gained": 100.0 * gained / max(count, 1)}


def _bins(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Does a strength predict joint use? By bins of strength."""
    bins = [("not linked", [pair for pair in pairs if pair.strength <= 0.0])]
    for low, high in pairwise(EDGES):
        here = [pair for pair in pairs if low < pair.strength <= high]
        bins.append((f"{low:g} to {high:g}", here))
    return [
        {
            "strength": name,
            "pairs": len(found),
            "mean_strength": float(np.mean([pair.strength for pair in found])),
            "uses": sum(pair.used for pair in found),
            "together": sum(pair.together for pair in found),
            "frequency": sum(pair.together for pair in found) / sum(pair.used for pair in found),
        }
        for name, found in bins
        if found
    ]

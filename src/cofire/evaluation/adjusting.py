"""Arms that need no learning store: they change the ranking of a memory that learned nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofire.dynamics.arrays import F64
from cofire.evaluation.arms import K
from cofire.evaluation.benches import Bench
from cofire.retrieval.features import TERMS
from cofire.retrieval.profiles import CUTOFF, Profile
from cofire.retrieval.ranking import LEAST

BOOSTS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Tried for popularity, in units of score. The best by recall@10 on the very test questions is
taken, so the arm stands better than it could in earnest."""


@dataclass(frozen=True, slots=True)
class Untaught:
    """Every candidate of a question, best first, with its score."""

    ids: NDArray[np.object_]
    scores: F64
    cutoff: float | None = CUTOFF

    def returned(self) -> tuple[str, ...]:
        """What a recall returns: see `Profile.cutoff`."""
        return self._first(self.scores)

    def boosted(self, used: Collection[str], boost: float) -> tuple[str, ...]:
        """The same with `boost` added to the score of whatever is among `used`."""
        raised = np.fromiter((id in used for id in self.ids), np.bool_, len(self.ids))
        return self._first(self.scores + boost * raised)

    def _first(self, scores: F64) -> tuple[str, ...]:
        if not len(scores):
            return ()
        order = np.argsort(-scores, kind="stable")
        least = -np.inf if self.cutoff is None else scores.max() - self.cutoff
        near = int(np.count_nonzero(scores >= least))
        return tuple(self.ids[order[: min(K, max(near, LEAST))]])


def untaught(bench: Bench, ground: Profile) -> list[Untaught]:
    """Of every question of a conversation, by a profile that weighs terms."""
    weights = np.array([ground.weights.get(term, 0.0) for term in TERMS])
    found = []
    for question in bench.asked():
        ids, terms = bench.memory.candidates(question, profile=ground, now=bench.now)
        scores = np.round(terms @ weights, 6)
        found.append(Untaught(np.array(ids, object), scores, ground.cutoff))
    return found


def foreknown(ranked: Sequence[str], evidence: Sequence[str], known: Collection[str]) -> list[str]:
    """What is known and will be needed goes first, the rest as it was."""
    first = [id for id in evidence if id in known]
    return (first + [id for id in ranked if id not in first])[:K]

"""From candidates to one order over all spaces: how a profile turns a question into scores.

A `Ranking` is a function; a profile names the one it wants (`Profile.ranking`, a key of `RANKINGS`)
as it names its weights, so a recipe that ranks by iterated spreading is one more function here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F64, U64, Rows
from cofire.dynamics.ranking import round_scores, top_k
from cofire.retrieval.atamaia import atamaia
from cofire.retrieval.candidates import Candidates, Scored, Searched
from cofire.retrieval.features import TERMS, find_candidates
from cofire.retrieval.hela_mem import hela_mem
from cofire.retrieval.learned import LEARNED, associate
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked
from cofire.retrieval.synapse import synapse
from cofire.store.records import SpaceInfo

LEAST = 10
"""A cutoff never takes the list below this many."""


Ranking = Callable[[Searched, Asked, Profile], list[Scored]]


def weighted_terms(searched: Searched, asked: Asked, profile: Profile) -> list[Scored]:
    """score = Σ over the profile's terms of weight · value."""
    found = [find_candidates(graph, asked, profile, mask) for graph, mask in searched]
    best = max((candidates.best_bm25 for candidates in found), default=0.0)
    scored = []
    for candidates in found:
        if best > 0.0:
            candidates.columns["bm25"] = candidates.bm25 / best
        total = np.zeros(len(candidates.rows), np.float64)
        addend = np.empty_like(total)
        for term in TERMS:
            weight = profile.weights.get(term, 0.0)
            column = candidates.columns.get(term)
            if weight and column is not None:
                total += np.multiply(column, weight, out=addend)
        scored.append(Scored(candidates, total))
    if profile.uses("cue"):
        _add_cues(scored, profile)
    if profile.uses("association"):
        _add_associations(scored, asked, profile)
    return scored


def _add_cues(scored: Sequence[Scored], profile: Profile) -> None:
    """Lifts what answered a question like this one by a part of what it lacks to the best score:

        cue_j = activation_j · (best - s_j)            s_j ← s_j + weight · cue_j

    So a past answer never overtakes the best match (weight ≤ 1), and hardly moves what is near it.
    """
    best = _top(scored)
    for one in scored:
        activation = one.candidates.recollected
        if activation is not None:
            column = one.candidates.columns["cue"] = activation * (best - one.scores)
            np.add(one.scores, profile.weights["cue"] * column, out=one.scores)


def _top(scored: Sequence[Scored]) -> float:
    return max((float(one.scores.max()) for one in scored if len(one.scores)), default=0.0)


def _add_associations(scored: Sequence[Scored], asked: Asked, profile: Profile) -> None:
    """Adds to the scores what good matches pass on to what was used with them."""
    top = _top(scored)
    for one in scored:
        associate(one.candidates, one.scores, top, asked, profile)
        column = one.candidates.columns.get("association")
        if column is not None:
            np.add(one.scores, profile.weights["association"] * column, out=one.scores)


RANKINGS: Mapping[str, Ranking] = {
    "terms": weighted_terms,
    "hela_mem": hela_mem,
    "synapse": synapse,
    "atamaia": atamaia,
}
"""By the name that profiles use."""


@dataclass(slots=True)
class Ranked:
    """All candidates of all spaces. Candidate i belongs to `space[i]`, is at position `at[i]`
    among that space's candidates and has the `score[i]`, rounded to 1e-6; `high`, `low` are the
    words of its uid. `confidence` is what the ranking itself says of it, if it does."""

    spaces: tuple[SpaceInfo, ...]
    candidates: tuple[Candidates, ...]
    space: Rows
    at: Rows
    score: F64
    high: U64
    low: U64
    confidence: float | None = None

    def __len__(self) -> int:
        return len(self.score)

    def first(self, count: int) -> Rows:
        """The `count` best, best first, ties by uid."""
        return top_k(self.score, self.high, self.low, count)

    def worthwhile(self, profile: Profile) -> int:
        """How many are worth their tokens: all within the profile's `cutoff` of the best, and
        the first `LEAST` in any case. What was learned lifts some; it must not shut out others, so
        the best is that of the scores without it."""
        if profile.cutoff is None or not len(self.score):
            return len(self.score)
        unlifted = self.score - np.concatenate(
            [_lifted(found, profile) for found in self.candidates]
        )
        near = int(np.count_nonzero(self.score >= unlifted.max() - profile.cutoff))
        return min(max(near, LEAST), len(self.score))


def _lifted(found: Candidates, profile: Profile) -> F64:
    """What the candidates of one space owe to what was learned."""
    lift = np.zeros(len(found.rows), np.float64)
    for term in LEARNED:
        column = found.columns.get(term)
        if column is not None:
            lift += profile.weights.get(term, 0.0) * column
    return lift


def rank(spaces: Sequence[SpaceInfo], searched: Searched, asked: Asked, profile: Profile) -> Ranked:
    """Every candidate of every space, scored as the profile wants it."""
    scored = RANKINGS[profile.ranking](searched, asked, profile)
    parts = []
    for index, one in enumerate(scored):
        high, low = one.candidates.graph.ties
        rows = one.candidates.rows
        count = len(rows)
        parts.append(
            (
                np.full(count, index, np.intp),
                np.arange(count, dtype=np.intp),
                round_scores(one.scores),
                high[rows],
                low[rows],
            )
        )
    columns = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    ranked = Ranked(tuple(spaces), tuple(one.candidates for one in scored), *columns)
    ranked.confidence = scored[0].confidence if scored else None
    return ranked

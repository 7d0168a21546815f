"""What use has taught, as terms of a score.

    cue          the question is like one that was asked before: what answered that
    association  a memory that matches well was used together with this one

Both lift single memories and lower none, both take the strongest way and never a sum, and both
are selective: a cue moves little unless it stands out among all past questions about the same
person, and then only by a part of what the memory lacks to the best match; an association carries
only what its other end is likely to be worth to this question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cofire.dynamics.arrays import F32, F64, I32, I64, Bool, Rows
from cofire.dynamics.cues import cue_match, strongest
from cofire.dynamics.ranking import best_positions, round_scores
from cofire.encoding.terms import asked_about
from cofire.graph.active import ActiveGraph
from cofire.graph.cues import Cues, cues_of, rows_of_numbers
from cofire.graph.snapshot import MINUTE
from cofire.retrieval.question import Asked
from cofire.store.records import KIND_CODES, LINK_CODES

if TYPE_CHECKING:
    from cofire.retrieval.candidates import Candidates
    from cofire.retrieval.profiles import Profile

LEARNED = ("cue", "association")
"""The terms of a score that use has taught."""
CUE = KIND_CODES["cue"]
CUE_LINK = LINK_CODES["association"]
PAIR_LINK = LINK_CODES["coactivation"]
SOURCES = 10
"""Best matches whose learned links are followed."""
HALF = 0.2
"""Strength of a cue's link that carries half of what the strongest could: what one principal may
give it on the first day. So a first answer counts, and a hundred more do not drown the rest."""
SAME = 0.95
"""Cosine from which two questions about the same people are one cue."""
DAY_MINUTES = 1_440.0


@dataclass(frozen=True, slots=True)
class Reached:
    """What learned links lead to: `rows` ascending, the `activation` in [0, 1] that arrives at
    each, and the `number` of the cue or memory it comes from."""

    rows: Rows
    activation: F64
    number: I64


def recollect(
    graph: ActiveGraph, asked: Asked, profile: Profile, mask: Bool | None
) -> Reached | None:
    """What answered past questions like this one; None if there is nothing of the kind.

    activation = max over cues c of  p_c · S_c / (S_c + ½S)     (p: `cue_match`, S: the link's
                                                                 strength now, ½S: `HALF`)
    """
    cues = _cues(graph, asked)
    if cues is None or asked.vector is None:
        return None
    among = _about_the_same(graph, cues, asked)
    cosines = _cosines(cues, among, asked.vector)
    match = cue_match(cosines, profile.cues)
    kept = np.flatnonzero(match > profile.cues.least)
    if not len(kept):
        return None
    numbers = cues.numbers[among[kept]]
    links = graph.links.learned(numbers, CUE_LINK, inward=False)
    strength = _strength_now(links.strength, links.when, asked.now, profile)
    amount = match[kept][links.origin] * strength / (strength + HALF)
    return _reached(graph, links.other, amount, numbers[links.origin], mask)


def same_question(graph: ActiveGraph, asked: Asked) -> int | None:
    """The number of the cue that asks this very question about the same people, if there is one."""
    cues = _cues(graph, asked)
    if cues is None or asked.vector is None:
        return None
    same = np.ones(graph.size, np.bool_)
    for name in asked.question.names or (None,):
        same &= graph.facets.any_of((asked_about(name),), graph.size)
    among = np.flatnonzero(same[cues.rows])
    if not len(among):
        return None
    cosines = _cosines(cues, among, asked.vector)
    best = int(cosines.argmax())
    return int(cues.numbers[among[best]]) if cosines[best] >= SAME else None


def _cues(graph: ActiveGraph, asked: Asked) -> Cues | None:
    """The cues that the question can be compared with, if there are any."""
    if asked.vector is None or CUE not in graph.kinds:
        return None
    cues = cues_of(graph, CUE)
    return cues if len(cues) and cues.vectors.shape[1] == len(asked.vector) else None


def _cosines(cues: Cues, among: I64, question: F32) -> F64:
    return round_scores((cues.vectors[among] @ question).astype(np.float64))


def _about_the_same(graph: ActiveGraph, cues: Cues, asked: Asked) -> I64:
    """Positions of the cues that ask about whom the question asks about. A question or cue that
    names nobody may go with any."""
    names = asked.question.names
    if not names:
        return np.arange(len(cues))
    about = np.zeros(graph.size, np.bool_)
    for name in (*names, None):
        about |= graph.facets.any_of((asked_about(name),), graph.size)
    return np.flatnonzero(about[cues.rows])


def associate(found: Candidates, scores: F64, best: float, asked: Asked, profile: Profile) -> None:
    """Adds the column "association": what the best matches pass on to what was used with them.

    activation_j = max over the 10 best i of  e^{s_i - best} · S_ij
    """
    graph = found.graph
    sources = best_positions(round_scores(scores), SOURCES)
    if not len(sources) or not graph.has_links(PAIR_LINK):
        return
    numbers = graph.column("number")[found.rows[sources]].astype(np.int64)
    parents = graph.column("parent")[found.rows[sources]].astype(np.int64)
    numbers = np.where(parents > 0, parents, numbers)
    numbers, first = np.unique(numbers, return_index=True)
    links = graph.links.learned(numbers, PAIR_LINK, inward=True)
    if not len(links.origin):
        return
    worth = np.exp(np.minimum(scores[sources[first]] - best, 0.0))
    strength = _strength_now(links.strength, links.when, asked.now, profile)
    amount = worth[links.origin] * strength
    reached = _reached(graph, links.other, amount, numbers[links.origin], None)
    place = found.rows.searchsorted(reached.rows)
    place = np.minimum(place, len(found.rows) - 1)
    inside = found.rows[place] == reached.rows
    column = np.zeros(len(found.rows), np.float64)
    column[place[inside]] = reached.activation[inside]
    found.columns["association"] = column
    found.partner = np.zeros(len(found.rows), np.int64)
    found.partner[place[inside]] = reached.number[inside]


def partners(graph: ActiveGraph, rows: Rows, mask: Bool | None) -> Rows:
    """Rows that were used together with some of `rows`: they become candidates."""
    if not graph.has_links(PAIR_LINK):
        return np.empty(0, np.intp)
    numbers = np.unique(graph.column("number")[rows].astype(np.int64))
    links = graph.links.learned(numbers, PAIR_LINK, inward=True)
    others = np.unique(links.other[links.strength > 0.0])
    _, reached = rows_of_numbers(graph, others)
    return reached if mask is None else reached[mask[reached]]


def _reached(
    graph: ActiveGraph, numbers: I64, amount: F64, sources: I64, mask: Bool | None
) -> Reached:
    index, rows = rows_of_numbers(graph, numbers)
    if mask is not None:
        allowed = mask[rows]
        index, rows = index[allowed], rows[allowed]
    targets, amounts, chosen = strongest(rows, amount[index])
    return Reached(targets.astype(np.intp), amounts, sources[index[chosen]])


def _strength_now(strength: F32, when: I32, now: int, profile: Profile) -> F64:
    """S · 2^(-age / half-life): see `plasticity.decayed`."""
    wide = strength.astype(np.float64)
    if profile.half_life_days is None:
        return wide
    age = np.maximum(now // MINUTE - when.astype(np.int64), 0) / DAY_MINUTES
    faded: F64 = np.where(when > 0, wide * np.exp2(-age / profile.half_life_days), wide)
    return faded

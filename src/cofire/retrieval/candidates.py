"""Who is ranked: the candidates of one space.

anchors      the best of the dense and of the lexical leg
candidates   anchors, what the best gists and records stand for, what has words akin to the
             question's, what past questions like this one found, what was used together with the
             strongest anchors or shares a rare concept with them, and what temporal links reach
             from these in one step
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cofire.dynamics.arrays import F64, I32, I64, U8, U64, Bool, Rows, distinct
from cofire.dynamics.association import SharedConcepts
from cofire.dynamics.ranking import best
from cofire.dynamics.scoring import bm25_term
from cofire.graph.active import ActiveGraph
from cofire.retrieval.abstractions import abstractions_of, kin
from cofire.retrieval.learned import Reached, partners, recollect
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked
from cofire.store.records import LINK_CODES
from cofire.types import Path

WIDEST_FAN = 30
"""A concept of more memories than this brings in no candidates: it says too little of each."""
TEMPORAL = LINK_CODES["temporal"]

_NOWHERE: I32 = np.array([-1], np.int32)

_LEXICAL = ("bm25", "coverage", "spread_coverage", "session_bm25")
_NEIGHBOURLY = (
    "spread_coverage",
    "similarity_before",
    "similarity_before_2",
    "similarity_after",
    "similarity_after_2",
)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Positions among the candidates of the turns around each: -1 where there is none."""

    before: I32
    after: I32
    before_2: I32
    after_2: I32
    before_3: I32

    def at(self, step: int) -> I32:
        """Positions so many turns away: negative before, positive after (-3 to 2)."""
        return {
            -3: self.before_3,
            -2: self.before_2,
            -1: self.before,
            1: self.after,
            2: self.after_2,
        }[step]


@dataclass(slots=True)
class Candidates:
    """The candidates of one space. `rows` (c,) of the snapshot, ascending; `columns` has a (c,)
    array per term computed; `bm25` is the raw score (columns["bm25"] is it divided by the best
    of all spaces); `around` the turns before and after."""

    graph: ActiveGraph
    rows: Rows
    columns: dict[str, F64]
    bm25: F64
    best_bm25: float
    around: Neighbours
    dense_anchor: Bool
    lexical_anchor: Bool
    matches: F64
    """Which question terms occur in which candidate: (terms, c), 0 or 1."""
    idfs: F64
    """idf of each question term, (terms,)."""
    terms: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    """The question's terms as hashes, (terms,), where something is looked up by them."""
    shared: SharedConcepts | None = None
    """What the strongest anchors have in common with other candidates."""
    standing: I64 | None = None
    """Row of the gist or record that is more like the question than the candidate that it stands
    for, the most alike of several; -1 for none."""
    recollected: F64 | None = None
    """How strongly past questions speak for each candidate, in [0, 1]."""
    cue: I64 | None = None
    """Number of the past question that speaks most for each candidate, 0 for none."""
    partner: I64 | None = None
    """Number of the memory whose association speaks most for each candidate, 0 for none."""
    paths: Callable[[int], list[Path]] | None = None
    """For a ranking that spreads by a rule of its own: how activation came to a row."""

    def via(self, at: int) -> int:
        """The cue or memory whose learned link alone brought a candidate; 0 if something else
        did, or would have."""
        if self.dense_anchor[at] or self.lexical_anchor[at]:
            return 0
        ways = []
        for term, numbers in (("cue", self.cue), ("association", self.partner)):
            if numbers is not None and numbers[at] and term in self.columns:
                ways.append((float(self.columns[term][at]), int(numbers[at])))
        return max(ways)[1] if ways else 0

    def matrix(self, terms: Sequence[str]) -> F64:
        """(c, terms); a term that was not computed is 0."""
        zero = np.zeros(len(self.rows), np.float64)
        return np.stack([self.columns.get(term, zero) for term in terms], axis=1)


@dataclass(frozen=True, slots=True)
class Scored:
    """The candidates of one space and their scores (c,), not rounded. Scores of all spaces of a
    recall are on one scale; the columns of the candidates tell what they are made of.
    `confidence` in [0, 1] is of the whole recall, where the ranking itself says how sure it is."""

    candidates: Candidates
    scores: F64
    confidence: float | None = None


Searched = Sequence[tuple[ActiveGraph, Bool | None]]
"""The snapshot of each space, and which of its rows may be recalled (None: all)."""


@dataclass(frozen=True, slots=True)
class Words:
    """Occurrences of the question's `terms` (hashes): one after the other, `term` (n,) which one,
    `rows` (n,) where, `counts` (n,) how often. `idfs` (terms,); `scores` BM25 of every row of the
    space, the `best` of them, and the rows `matched`, ascending."""

    terms: U64
    term: I64
    rows: I64
    counts: U8
    idfs: F64
    scores: F64
    matched: Rows
    best: float


@dataclass(frozen=True, slots=True)
class Gathered:
    """What finding the candidates brought to light besides them: the question's `words`; where
    rows are among the candidates (`place`, -1: nowhere); the strongest anchors (`seeds`, rows);
    the rows that were `scanned` and their `cosines`, gists and records among them; `kin` of every
    row, if it counts; what past questions like this one found."""

    words: Words
    place: I32
    seeds: Rows
    scanned: Rows
    cosines: F64
    kin: F64 | None
    recollected: Reached | None


def gather(
    graph: ActiveGraph, asked: Asked, profile: Profile, mask: Bool | None
) -> tuple[Candidates, Gathered]:
    """The candidates of one snapshot, without any term of their scores yet."""
    words = _find_words(graph, asked, profile, mask)
    compared = _compare(graph, asked, profile, mask)
    dense = compared.anchors
    high, low = graph.ties
    lexical, _ = best(words.scores[words.matched], high, low, profile.depth, rows=words.matched)
    strongest = {*dense[: profile.seeds].tolist(), *lexical[: profile.seeds].tolist()}
    seeds = np.array(sorted(strongest), np.intp)
    recollected = recollect(graph, asked, profile, mask) if profile.uses("cue") else None
    others = [compared.abstracted]
    akin = None
    if profile.uses("kin"):
        akin = kin(graph, words.terms, words.idfs, mask)
        matched = np.flatnonzero(akin > 0.0)
        others.append(best(akin[matched], high, low, profile.depth, rows=matched)[0])
    if recollected is not None:
        others.append(recollected.rows)
    if profile.uses("association"):
        others.append(partners(graph, seeds, mask))
    rows, before, after = _with_neighbours(graph, (dense, lexical, *others), seeds, mask, profile)
    place = np.full(graph.size + 1, -1, np.int32)  # the last entry is "no row"
    place[rows] = np.arange(len(rows), dtype=np.int32)
    found = Candidates(
        graph=graph,
        rows=rows,
        columns={},
        bm25=words.scores[rows],
        best_bm25=words.best,
        around=_around(place[before], place[after]),
        dense_anchor=_marked(place[dense], len(rows)),
        lexical_anchor=_marked(place[lexical], len(rows)),
        matches=_matches(words, place, len(rows)),
        idfs=words.idfs,
        terms=words.terms,
    )
    return found, Gathered(
        words, place, seeds, compared.scanned, compared.cosines, akin, recollected
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """Rows by cosine: the `anchors`, best first; what the best gists and records stand for
    (`abstracted`); every row that was `scanned`, and their `cosines`."""

    anchors: Rows
    abstracted: Rows
    scanned: Rows
    cosines: F64


def _compare(graph: ActiveGraph, asked: Asked, profile: Profile, mask: Bool | None) -> _Compared:
    """The dense leg. Gists and records compete with memories in one search of twice the depth."""
    none: Rows = np.empty(0, np.intp)
    if asked.vector is None or not profile.uses("similarity", "gist"):
        return _Compared(none, none, none, np.empty(0, np.float64))
    if not profile.uses("gist") or not graph.has_derived:
        top, cosines, rest, others = graph.dense_with_rest(asked.vector, mask, profile.depth)
        return _Compared(top, none, np.concatenate([top, rest]), np.concatenate([cosines, others]))
    standing = abstractions_of(graph)
    searched = None if mask is None else mask | standing.rows
    top, cosines, rest, others = graph.dense_with_rest(asked.vector, searched, 2 * profile.depth)
    recalled = top if mask is None else top[mask[top]]
    reached = standing.reached(top[standing.rows[top]][: profile.depth])
    return _Compared(
        recalled[: profile.depth],
        reached if mask is None else reached[mask[reached]],
        np.concatenate([top, rest]),
        np.concatenate([cosines, others]),
    )


def _find_words(graph: ActiveGraph, asked: Asked, profile: Profile, mask: Bool | None) -> Words:
    """BM25 over the space, and what each question term found."""
    terms = sorted(asked.question.terms)
    if not profile.uses(*_LEXICAL) or not terms:
        none: I64 = np.empty(0, np.int64)
        nothing = np.empty(0, np.float64)
        zeros = np.zeros(graph.size, np.float64)
        unasked = np.empty(0, np.uint64)
        return Words(
            unasked, none, none, np.empty(0, np.uint8), nothing, zeros, np.empty(0, np.intp), 0.0
        )
    hashes = np.array(terms, np.uint64)
    found = graph.terms_rows(hashes)
    idfs = np.array([term.idf for term in found])
    rows = np.concatenate([term.rows for term in found]).astype(np.int64)
    counts = np.concatenate([term.counts for term in found])
    term = np.repeat(np.arange(len(found)), [len(one.rows) for one in found])
    if mask is not None:
        kept = mask[rows]
        rows, counts, term = rows[kept], counts[kept], term[kept]
    gains = bm25_term(counts, graph.length_norms(profile.bm25)[rows], idfs[term], profile.bm25)
    scores: F64 = np.bincount(rows, gains, minlength=graph.size).astype(np.float64, copy=False)
    matched = np.flatnonzero(scores > 0.0)
    return Words(hashes, term, rows, counts, idfs, scores, matched, float(scores.max(initial=0.0)))


def _with_neighbours(
    graph: ActiveGraph,
    anchors: tuple[Rows, ...],
    seeds: Rows,
    mask: Bool | None,
    profile: Profile,
) -> tuple[Rows, I32, I32]:
    """Candidates (ascending) and the rows before and after each (-1: none)."""
    chosen = np.zeros(graph.size, np.bool_)
    for rows in anchors:
        chosen[rows] = True
    if not profile.uses(*_NEIGHBOURLY):
        found = np.flatnonzero(chosen)
        none = np.full(len(found), -1, np.int32)
        return found, none, none
    if profile.uses("concepts") and len(seeds):
        _, concepts, _ = graph.concepts_of(seeds)
        sharing = graph.sharing(distinct(concepts), WIDEST_FAN)
        chosen[sharing if mask is None else sharing[mask[sharing]]] = True
    first = np.flatnonzero(chosen)
    before, after = graph.adjacent(first, TEMPORAL)
    reached = np.concatenate([before, after])
    reached = reached[reached >= 0]
    # A whole that was cut into segments cannot be recalled itself.
    allowed = graph.recallable[reached]
    chosen[reached[allowed if mask is None else allowed & mask[reached]]] = True
    found = np.flatnonzero(chosen)
    chosen[first] = False  # what is left was reached; only its neighbours are not known yet
    new = chosen[found]
    befores, afters = np.empty(len(found), np.int32), np.empty(len(found), np.int32)
    befores[~new], afters[~new] = before, after
    befores[new], afters[new] = graph.adjacent(found[new], TEMPORAL)
    return found, befores, afters


def _around(before: I32, after: I32) -> Neighbours:
    """Neighbours up to three steps before and two after, as positions."""
    padded_before = np.concatenate((before, _NOWHERE))
    padded_after = np.concatenate((after, _NOWHERE))
    before_2 = padded_before[before]
    return Neighbours(
        before=before,
        after=after,
        before_2=before_2,
        after_2=padded_after[after],
        before_3=padded_before[before_2],
    )


def _marked(places: I32, count: int) -> Bool:
    marks = np.zeros(count, np.bool_)
    marks[places] = True
    return marks


def _matches(words: Words, place: I32, count: int) -> F64:
    matches = np.zeros((len(words.idfs), count), np.float64)
    places = place[words.rows]
    here = np.flatnonzero(places >= 0)
    matches[words.term[here], places[here]] = 1.0
    return matches

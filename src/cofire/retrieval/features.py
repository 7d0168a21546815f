"""The terms of a score: what speaks for each candidate of one space, as arrays.

    anchors      the best of the dense and of the lexical leg
    candidates   anchors, and what temporal links reach from them in one step
    terms        one column per entry of `TERMS`, over the candidates

All spreading here is over links between candidates: a memory's own match, that of the turns before
and after it (one and two steps), that of its session. Nothing a neighbour gives can lower what a
memory has itself, so spreading never demotes a direct hit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofire.dynamics.arrays import F64, I32, I64, U8, Bool, Rows
from cofire.dynamics.association import SharedConcepts, spread_over_steps
from cofire.dynamics.ranking import best
from cofire.dynamics.scoring import bm25_term, inverse_document_frequency, length_norms
from cofire.encoding.signals import Signal
from cofire.graph.active import ActiveGraph
from cofire.graph.rows import NO_TIME, NOBODY
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked
from cofire.store.records import LINK_CODES

TERMS: tuple[str, ...] = (
    "similarity",
    "bm25",
    "coverage",
    "spread_coverage",
    "similarity_before",
    "similarity_before_2",
    "similarity_after",
    "similarity_after_2",
    "session_bm25",
    "session_similarity",
    "concepts",
    "speaker",
    "speaker_first",
    "in_range",
    "near_range",
    "time_for_when",
    "name_for_who",
    "question_only",
    "asks",
    "tells_time",
    "first_person",
)
"""Every term a score can have, in the order of columns."""

DAY = 86_400_000_000  # µs
NEAR_BEFORE = 1 * DAY
"""People tell of a thing up to so long after it, seldom before."""
WIDEST_FAN = 30
"""A concept of more memories than this brings in no candidates: it says too little of each."""
TEMPORAL = LINK_CODES["temporal"]


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
    shared: SharedConcepts | None = None
    """What the strongest anchors have in common with other candidates."""

    def matrix(self, terms: tuple[str, ...] = TERMS) -> F64:
        """(c, terms); a term that was not computed is 0."""
        zero = np.zeros(len(self.rows), np.float64)
        return np.stack([self.columns.get(term, zero) for term in terms], axis=1)


@dataclass(frozen=True, slots=True)
class _Lexical:
    """Occurrences of the question's terms: one after the other, `term` (n,) which one, `rows` (n,)
    where, `counts` (n,) how often. `idfs` (terms,); `matched` rows with a score, ascending, their
    BM25 `scores` and the best of them."""

    term: I64
    rows: I64
    counts: U8
    idfs: F64
    matched: Rows
    scores: F64
    best: float


def find_candidates(
    graph: ActiveGraph, asked: Asked, profile: Profile, mask: Bool | None
) -> Candidates:
    """Anchors and their neighbours in one snapshot, with every term the profile weighs except
    "bm25", which needs the best of all spaces."""
    lexical = _lexical(graph, asked, profile, mask)
    dense_rows: Rows = np.empty(0, np.intp)
    scanned, cosines = dense_rows, np.empty(0, np.float64)
    if asked.vector is not None and profile.uses("similarity"):
        dense_rows, best_cosines, rest, others = graph.dense_with_rest(
            asked.vector, mask, profile.depth
        )
        scanned = np.concatenate([dense_rows, rest])
        cosines = np.concatenate([best_cosines, others])
    lexical_rows, _ = best(
        lexical.scores,
        graph.column("uid_high"),
        graph.column("uid_low"),
        profile.depth,
        rows=lexical.matched,
    )
    seeds = np.unique(np.concatenate([dense_rows[: profile.seeds], lexical_rows[: profile.seeds]]))
    rows, before, after = _candidates(graph, (dense_rows, lexical_rows), seeds, mask, profile)
    place = np.full(graph.size + 1, -1, np.int32)  # the last entry is "no row"
    place[rows] = np.arange(len(rows), dtype=np.int32)
    found = Candidates(
        graph=graph,
        rows=rows,
        columns={},
        bm25=_from_matched(lexical, rows),
        best_bm25=lexical.best,
        around=_around(place[before], place[after]),
        dense_anchor=_marked(place[dense_rows], len(rows)),
        lexical_anchor=_marked(place[lexical_rows], len(rows)),
        matches=_matches(lexical, place, len(rows)),
        idfs=lexical.idfs,
    )
    if len(rows):
        _add_dense(found, asked, profile, (place[scanned], cosines))
        _add_lexical(found, lexical, profile)
        _add_people(found, asked, profile)
        _add_times(found, asked, profile)
        _add_priors(found, asked, profile)
        if profile.uses("concepts"):
            _add_concepts(found, seeds, place, profile)
    return found


def _marked(places: I32, count: int) -> Bool:
    marks = np.zeros(count, np.bool_)
    marks[places] = True
    return marks


_LEXICAL = ("bm25", "coverage", "spread_coverage", "session_bm25")


def _lexical(graph: ActiveGraph, asked: Asked, profile: Profile, mask: Bool | None) -> _Lexical:
    """BM25 over the space, and what each question term found."""
    terms = sorted(asked.question.terms)
    if not profile.uses(*_LEXICAL) or not terms:
        none: I64 = np.empty(0, np.int64)
        nothing = np.empty(0, np.float64)
        return _Lexical(
            none, none, np.empty(0, np.uint8), nothing, np.empty(0, np.intp), nothing, 0.0
        )
    found = graph.terms_rows(np.array(terms, np.uint64))
    idfs = np.array([term.idf for term in found])
    rows = np.concatenate([term.rows for term in found]).astype(np.int64)
    counts = np.concatenate([term.counts for term in found])
    term = np.repeat(np.arange(len(found)), [len(one.rows) for one in found])
    if mask is not None:
        kept = mask[rows]
        rows, counts, term = rows[kept], counts[kept], term[kept]
    gains = bm25_term(counts, graph.length_norms(profile.bm25)[rows], idfs[term], profile.bm25)
    sums: F64 = np.bincount(rows, gains, minlength=graph.size).astype(np.float64, copy=False)
    matched = np.flatnonzero(sums > 0.0)
    scores = sums[matched]
    return _Lexical(term, rows, counts, idfs, matched, scores, float(scores.max(initial=0.0)))


def _from_matched(lexical: _Lexical, rows: Rows) -> F64:
    """BM25 of some rows, 0 where nothing matched."""
    if not len(lexical.matched):
        return np.zeros(len(rows), np.float64)
    places = np.minimum(lexical.matched.searchsorted(rows), len(lexical.matched) - 1)
    return np.where(lexical.matched[places] == rows, lexical.scores[places], 0.0)


_NEIGHBOURLY = (
    "spread_coverage",
    "similarity_before",
    "similarity_before_2",
    "similarity_after",
    "similarity_after_2",
)


def _candidates(
    graph: ActiveGraph,
    anchors: tuple[Rows, Rows],
    seeds: Rows,
    mask: Bool | None,
    profile: Profile,
) -> tuple[Rows, I64, I64]:
    """Candidates (ascending) and the rows before and after each (-1: none)."""
    chosen = np.zeros(graph.size, np.bool_)
    for rows in anchors:
        chosen[rows] = True
    found = np.flatnonzero(chosen)
    if not len(found) or not profile.uses(*_NEIGHBOURLY):
        none = np.full(len(found), -1, np.int64)
        return found, none, none
    if profile.uses("concepts"):
        _, concepts, _ = graph.concepts_of(seeds)
        sharing = graph.sharing(np.unique(concepts), WIDEST_FAN)
        chosen[sharing if mask is None else sharing[mask[sharing]]] = True
        found = np.flatnonzero(chosen)
    reached = np.concatenate(graph.adjacent(found, TEMPORAL))
    reached = reached[reached >= 0]
    # A whole that was cut into segments cannot be recalled itself.
    part = (graph.column("length")[reached] > 0) | graph.column("has_vector")[reached]
    chosen[reached[part if mask is None else part & mask[reached]]] = True
    found = np.flatnonzero(chosen)
    before, after = graph.adjacent(found, TEMPORAL)
    return found, before, after


def _around(before: I32, after: I32) -> Neighbours:
    """Neighbours up to three steps before and two after, as positions."""
    padded_before = np.append(before, np.int32(-1))
    padded_after = np.append(after, np.int32(-1))
    before_2 = padded_before[before]
    return Neighbours(
        before=before,
        after=after,
        before_2=before_2,
        after_2=padded_after[after],
        before_3=padded_before[before_2],
    )


def _matches(lexical: _Lexical, place: I32, count: int) -> F64:
    matches = np.zeros((len(lexical.idfs), count), np.float64)
    places = place[lexical.rows]
    here = np.flatnonzero(places >= 0)
    matches[lexical.term[here], places[here]] = 1.0
    return matches


def _add_dense(found: Candidates, asked: Asked, profile: Profile, known: tuple[I32, F64]) -> None:
    """`known`: positions (-1: no candidate) and cosines of the rows scanned."""
    if asked.vector is None or not profile.uses("similarity", *_DENSE):
        return
    places, cosines = known
    similarity = np.full(len(found.rows) + 1, np.nan)  # the last place is of no candidate
    similarity[places] = cosines
    similarity = similarity[:-1]
    missing = np.flatnonzero(np.isnan(similarity))
    if len(missing):
        similarity[missing] = found.graph.similarity(found.rows[missing], asked.vector)
    columns = found.columns
    columns["similarity"] = similarity
    padded = np.append(similarity, 0.0)  # the last entry is that of no neighbour
    for term, places in (
        ("similarity_before", found.around.before),
        ("similarity_after", found.around.after),
        ("similarity_before_2", found.around.before_2),
        ("similarity_after_2", found.around.after_2),
    ):
        if profile.uses(term):
            columns[term] = padded[places]
    if profile.uses("session_similarity"):
        codes = found.graph.column("session")[found.rows]
        best = np.full(len(found.graph.session_lengths()) + 1, -1.0)
        np.maximum.at(best, codes, similarity)
        columns["session_similarity"] = np.where(codes == NOBODY, similarity, best[codes])


_DENSE = (
    "similarity_before",
    "similarity_before_2",
    "similarity_after",
    "similarity_after_2",
    "session_similarity",
)


def _add_lexical(found: Candidates, lexical: _Lexical, profile: Profile) -> None:
    if not len(lexical.idfs):
        return
    total = float(lexical.idfs.sum()) or 1.0
    if profile.uses("coverage"):
        found.columns["coverage"] = (lexical.idfs @ found.matches) / total
    if profile.uses("spread_coverage"):
        around = {step: found.around.at(step) for step in profile.window}
        spread = spread_over_steps(found.matches, around, profile.window)
        found.columns["spread_coverage"] = (lexical.idfs @ spread) / total
    if profile.uses("session_bm25"):
        found.columns["session_bm25"] = _session_bm25(found, lexical, profile)


def _session_bm25(found: Candidates, lexical: _Lexical, profile: Profile) -> F64:
    """BM25 of the candidate's session as one document, divided by the best session's."""
    graph = found.graph
    codes = graph.column("session")
    lengths = graph.session_lengths()
    count = len(lengths)
    if not count:
        return np.zeros(len(found.rows), np.float64)
    constants = profile.session_bm25
    norms = length_norms(lengths.astype(np.float32), float(lengths.mean()), constants)
    # Terms by sessions, as one array: how often each occurs in each.
    where = codes[lexical.rows]
    inside = where != NOBODY
    cells = lexical.term[inside] * count + where[inside]
    terms = len(lexical.idfs)
    frequency = np.bincount(cells, lexical.counts[inside], minlength=terms * count)
    holding = np.flatnonzero(frequency)
    term, session = np.divmod(holding, count)
    idfs = np.array(
        [
            inverse_document_frequency(count, holders)
            for holders in np.bincount(term, minlength=terms).tolist()
        ]
    )
    numbers = np.minimum(frequency[holding], 255).astype(np.uint8)
    gains = bm25_term(numbers, norms[session], idfs[term], constants)
    scores = np.bincount(session, gains, minlength=count)
    best = float(scores.max())
    here = codes[found.rows]
    if best <= 0.0:
        return np.zeros(len(found.rows), np.float64)
    relative: F64 = scores[here] / best
    relative[here == NOBODY] = 0.0
    return relative


def _add_people(found: Candidates, asked: Asked, profile: Profile) -> None:
    names = asked.question.names
    if not names or not profile.uses("speaker", "speaker_first"):
        return
    term = "speaker" if len(names) == 1 else "speaker_first"
    if not profile.uses(term):
        return
    # Candidates are live, so those among all rows of the name are those among its live rows.
    spoken = found.graph.facets.rows(names[0])
    found.columns[term] = _among(spoken, found.rows).astype(np.float64)


def _among(ascending: I32, rows: Rows) -> Bool:
    """Which of `rows` are in a list of rows."""
    if not len(ascending):
        return np.zeros(len(rows), np.bool_)
    places = ascending.searchsorted(rows.astype(np.int32))
    inside: Bool = ascending[np.minimum(places, len(ascending) - 1)] == rows
    return inside


def _add_times(found: Candidates, asked: Asked, profile: Profile) -> None:
    question = asked.question
    if question.range is not None and profile.uses("in_range", "near_range"):
        start, end = question.range
        time = found.graph.column("time")[found.rows]
        event_start = found.graph.column("event_start")[found.rows]
        event_end = found.graph.column("event_end")[found.rows]
        told = (event_start != NO_TIME) & (event_start < end) & (event_end > start)
        inside = (time >= start) & (time < end)
        # Ranges may be open, and time must not overflow on their far side.
        low = start - NEAR_BEFORE if start > -(2**62) else start
        high = end + profile.days_after * DAY if end < 2**62 else end
        found.columns["in_range"] = (inside | told).astype(np.float64)
        found.columns["near_range"] = ((time >= low) & (time < high)).astype(np.float64)


def _add_priors(found: Candidates, asked: Asked, profile: Profile) -> None:
    signals = found.graph.column("signals")[found.rows]
    told = _flag(signals, Signal.FIRST_PERSON)
    makers: dict[str, Callable[[], F64]] = {
        "first_person": lambda: told,
        "question_only": lambda: _flag(signals, Signal.QUESTION) * (1.0 - told),
        "asks": lambda: _flag(signals, Signal.ASKS),
        "tells_time": lambda: _flag(signals, Signal.HAS_TIME),
    }
    if asked.question.asks_name:
        makers["name_for_who"] = lambda: _flag(signals, Signal.HAS_NAME)
    if asked.question.asks_when:
        makers["time_for_when"] = makers["tells_time"]
    for term, make in makers.items():
        if profile.uses(term):
            found.columns[term] = make()


def _flag(signals: NDArray[np.uint32], signal: Signal) -> F64:
    flags: F64 = ((signals & np.uint32(signal)) != 0).astype(np.float64)
    return flags


def _add_concepts(found: Candidates, seeds: Rows, place: I32, profile: Profile) -> None:
    """Activation that arrives over shared concepts from the strongest anchors."""
    energy = np.zeros(len(found.rows), np.float64)
    where = place[seeds]
    energy[where] = np.maximum(
        found.columns.get("similarity", energy)[where],
        found.bm25[where] / found.best_bm25 if found.best_bm25 > 0.0 else 0.0,
    )
    at, concepts, _ = found.graph.concepts_of(found.rows)
    found.shared = SharedConcepts.of(at, concepts, energy, profile.fan)
    found.columns["concepts"] = found.shared.activation(len(found.rows))

"""The terms of a score: what speaks for each candidate of one space, as arrays.

    anchors      the best of the dense and of the lexical leg
    candidates   anchors, and what temporal links reach from them in one step
    terms        one column per entry of `TERMS`, over the candidates

All spreading here is over links between candidates: a memory's own match, that of the turns before
and after it (one and two steps), that of its session. Nothing a neighbour gives can lower what a
memory has itself, so spreading never demotes a direct hit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F64, I64, Bool, Rows
from cofire.dynamics.ranking import round_scores, top_k
from cofire.dynamics.scoring import bm25_term, inverse_document_frequency, length_norms
from cofire.encoding.signals import Signal
from cofire.graph.active import ActiveGraph
from cofire.graph.rows import NO_TIME, NOBODY
from cofire.retrieval.concepts import SharedConcepts
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked
from cofire.store.records import LINK_CODES

TERMS: tuple[str, ...] = (
    "similarity",
    "bm25",
    "coverage",
    "spread_coverage",
    "spread_coverage_even",
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
    "names",
    "first_person",
    "length",
    "session_start",
)
"""Every term a score can have, in the order of columns."""

DAY = 86_400_000_000  # µs
NEAR_BEFORE, NEAR_AFTER = 1 * DAY, 10 * DAY
"""People tell of a thing up to so long after it, seldom before."""
SEEDS = 10
"""Best anchors of each leg whose concepts are activated."""
WIDEST_FAN = 30
"""A concept of more memories than this brings in no candidates: it says too little of each."""
TEMPORAL = LINK_CODES["temporal"]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Positions among the candidates of the turns around each: -1 where there is none. `first`
    marks candidates that no turn comes before, candidate or not."""

    before: I64
    after: I64
    before_2: I64
    after_2: I64
    before_3: I64
    first: Bool

    def at(self, step: int) -> I64:
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


@dataclass(slots=True)
class _Lexical:
    scores: F64
    best: float
    rows: list[I64]
    gains: list[F64]
    idfs: F64
    counts: list[F64]


def find_candidates(
    graph: ActiveGraph, asked: Asked, profile: Profile, mask: Bool | None
) -> Candidates:
    """Anchors and their neighbours in one snapshot, with every term the profile weighs except
    "bm25", which needs the best of all spaces."""
    lexical = _lexical(graph, asked, profile, mask)
    dense_rows: Rows = np.empty(0, np.intp)
    dense_sims = np.empty(0, np.float64)
    if asked.vector is not None and profile.uses("similarity"):
        dense_rows, dense_sims = graph.dense(asked.vector, mask, profile.depth)
    lexical_rows = _best_lexical(graph, lexical, profile)
    anchors = np.union1d(dense_rows, lexical_rows).astype(np.intp)
    seeds = np.union1d(dense_rows[:SEEDS], lexical_rows[:SEEDS]).astype(np.intp)
    associated = _associated(graph, seeds, mask) if profile.uses("concepts") else seeds
    rows, before, after = _with_neighbours(graph, anchors, associated, mask, profile)
    place = np.full(graph.size + 1, -1, np.int64)  # the last entry is "no row"
    place[rows] = np.arange(len(rows))
    around = _around(place[before], place[after], before < 0)
    found = Candidates(
        graph=graph,
        rows=rows,
        columns={},
        bm25=lexical.scores[rows],
        best_bm25=lexical.best,
        around=around,
        dense_anchor=np.isin(rows, dense_rows),
        lexical_anchor=np.isin(rows, lexical_rows),
        matches=_matches(lexical, place, len(rows)),
        idfs=lexical.idfs,
    )
    if len(rows):
        _add_dense(found, asked, profile, (place[dense_rows], dense_sims))
        _add_lexical(found, lexical, profile)
        _add_people(found, asked, profile)
        _add_times(found, asked, profile)
        _add_priors(found, asked, profile)
        if profile.uses("concepts"):
            _add_concepts(found, seeds, place)
    return found


def _lexical(graph: ActiveGraph, asked: Asked, profile: Profile, mask: Bool | None) -> _Lexical:
    """BM25 over the space, and what each question term found."""
    terms = sorted(asked.question.terms)
    scores = np.zeros(graph.size, np.float64)
    rows: list[I64] = []
    gains: list[F64] = []
    counts: list[F64] = []
    if not profile.uses(*_LEXICAL) or not terms:
        return _Lexical(scores, 0.0, rows, gains, np.zeros(0), counts)
    found = graph.terms_rows(np.array(terms, np.uint64))
    norms = graph.length_norms(profile.bm25)
    idfs = np.array([term.idf for term in found])
    for term in found:
        here = term.rows
        number = term.counts
        if mask is not None and len(here):
            kept = mask[here]
            here, number = here[kept], number[kept]
        rows.append(here.astype(np.int64))
        counts.append(number.astype(np.float64))
        gains.append(bm25_term(number, norms[here], term.idf, profile.bm25).astype(np.float64))
        scores[rows[-1]] += gains[-1]
    best = float(scores.max()) if len(scores) else 0.0
    return _Lexical(scores, best, rows, gains, idfs, counts)


_LEXICAL = ("bm25", "coverage", "spread_coverage", "spread_coverage_even", "session_bm25")


def _best_lexical(graph: ActiveGraph, lexical: _Lexical, profile: Profile) -> Rows:
    if lexical.best <= 0.0:
        return np.empty(0, np.intp)
    """Rows of the best scores, best first."""
    matched = np.flatnonzero(lexical.scores > 0.0)
    return top_k(
        round_scores(lexical.scores[matched]),
        graph.column("uid_high"),
        graph.column("uid_low"),
        profile.depth,
        rows=matched,
    )


def _associated(graph: ActiveGraph, seeds: Rows, mask: Bool | None) -> Rows:
    """Rows that share a rare concept with a seed."""
    _, concepts, _ = graph.concepts_of(seeds.astype(np.int64))
    found = graph.concepts.lookup(np.unique(concepts), graph.live)
    rare = [rows for rows, _ in found if 1 < len(rows) <= WIDEST_FAN]
    if not rare:
        return seeds
    rows = np.unique(np.concatenate(rare)).astype(np.intp)
    return rows if mask is None else rows[mask[rows]]


_NEIGHBOURLY = (
    "spread_coverage",
    "spread_coverage_even",
    "similarity_before",
    "similarity_before_2",
    "similarity_after",
    "similarity_after_2",
    "session_start",
)


def _with_neighbours(
    graph: ActiveGraph, anchors: Rows, associated: Rows, mask: Bool | None, profile: Profile
) -> tuple[Rows, I64, I64]:
    """Candidates (ascending) and the rows before and after each (-1: none)."""
    none = np.full(len(anchors), -1, np.int64)
    if not len(anchors) or not profile.uses(*_NEIGHBOURLY):
        return anchors, none, none
    anchors = np.union1d(anchors, associated).astype(np.intp)
    before, after = graph.adjacent(anchors, TEMPORAL)
    reached = np.unique(np.concatenate([before, after]))
    reached = reached[reached >= 0]
    # A whole that was cut into segments cannot be recalled itself.
    part = (graph.column("length")[reached] > 0) | graph.column("has_vector")[reached]
    reached = reached[part if mask is None else part & mask[reached]]
    extra = np.setdiff1d(reached, anchors)
    more_before, more_after = graph.adjacent(extra, TEMPORAL)
    rows = np.concatenate([anchors, extra]).astype(np.intp)
    order = np.argsort(rows)
    return (
        rows[order],
        np.concatenate([before, more_before])[order],
        np.concatenate([after, more_after])[order],
    )


def _around(before: I64, after: I64, first: Bool) -> Neighbours:
    """Neighbours one and two steps away, as positions."""
    padded_before = np.append(before, -1)
    padded_after = np.append(after, -1)
    before_2 = padded_before[before]
    return Neighbours(
        before=before,
        after=after,
        before_2=before_2,
        after_2=padded_after[after],
        before_3=padded_before[before_2],
        first=first,
    )


def _matches(lexical: _Lexical, place: I64, count: int) -> F64:
    matches = np.zeros((len(lexical.rows), count), np.float64)
    for index, rows in enumerate(lexical.rows):
        places = place[rows]
        matches[index, places[places >= 0]] = 1.0
    return matches


def _from(values: F64, places: I64, nothing: float) -> F64:
    """`values` of the neighbours, `nothing` where there is none."""
    return np.append(values, nothing)[places]


def _add_dense(found: Candidates, asked: Asked, profile: Profile, known: tuple[I64, F64]) -> None:
    """`known`: positions and similarities of the dense anchors."""
    if asked.vector is None or not profile.uses("similarity", *_DENSE):
        return
    similarity = np.zeros(len(found.rows), np.float64)
    similarity[known[0]] = known[1]
    others = np.flatnonzero(~found.dense_anchor)
    if len(others):
        similarity[others] = found.graph.similarity(found.rows[others], asked.vector)
    columns = found.columns
    columns["similarity"] = similarity
    columns["similarity_before"] = _from(similarity, found.around.before, 0.0)
    columns["similarity_after"] = _from(similarity, found.around.after, 0.0)
    columns["similarity_before_2"] = _from(similarity, found.around.before_2, 0.0)
    columns["similarity_after_2"] = _from(similarity, found.around.after_2, 0.0)
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
    if not len(lexical.rows):
        return
    total = float(lexical.idfs.sum()) or 1.0
    found.columns["coverage"] = (lexical.idfs @ found.matches) / total
    padded = np.concatenate([found.matches, np.zeros((len(found.matches), 1))], axis=1)
    for term, window in (
        ("spread_coverage", profile.window),
        ("spread_coverage_even", profile.even_window),
    ):
        if profile.uses(term):
            spread = found.matches.copy()
            for step, share in window.items():
                np.maximum(spread, share * padded[:, found.around.at(step)], out=spread)
            found.columns[term] = (lexical.idfs @ spread) / total
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
    scores = np.zeros(count, np.float64)
    for rows, numbers in zip(lexical.rows, lexical.counts, strict=True):
        where = codes[rows]
        inside = where != NOBODY
        if not inside.any():
            continue
        frequency = np.bincount(where[inside], numbers[inside], minlength=count)
        holding = np.flatnonzero(frequency)
        idf = inverse_document_frequency(count, len(holding))
        scores[holding] += bm25_term(
            np.minimum(frequency[holding], 255).astype(np.uint8), norms[holding], idf, constants
        )
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
    spoken = np.zeros(found.graph.size, np.bool_)
    spoken[found.graph.facets.rows(names[0], found.graph.live)] = True
    found.columns[term] = spoken[found.rows].astype(np.float64)


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
        high = end + NEAR_AFTER if end < 2**62 else end
        found.columns["in_range"] = (inside | told).astype(np.float64)
        found.columns["near_range"] = ((time >= low) & (time < high)).astype(np.float64)
    if question.asks_when:
        found.columns["time_for_when"] = _flag(found, Signal.HAS_TIME)


def _add_priors(found: Candidates, asked: Asked, profile: Profile) -> None:
    columns = found.columns
    first_person = _flag(found, Signal.FIRST_PERSON)
    columns["first_person"] = first_person
    columns["question_only"] = _flag(found, Signal.QUESTION) * (1.0 - first_person)
    columns["asks"] = _flag(found, Signal.ASKS)
    columns["tells_time"] = _flag(found, Signal.HAS_TIME)
    columns["names"] = _flag(found, Signal.HAS_NAME)
    columns["length"] = np.log1p(found.graph.column("length")[found.rows].astype(np.float64))
    if asked.question.asks_name:
        columns["name_for_who"] = _flag(found, Signal.HAS_NAME)
    if profile.uses("session_start"):
        alone = found.graph.column("session")[found.rows] == NOBODY
        columns["session_start"] = (found.around.first & ~alone).astype(np.float64)


def _flag(found: Candidates, signal: Signal) -> F64:
    bits = found.graph.column("signals")[found.rows]
    flags: F64 = ((bits & np.uint32(signal)) != 0).astype(np.float64)
    return flags


def _add_concepts(found: Candidates, seeds: Rows, place: I64) -> None:
    """Activation that arrives over shared concepts from the strongest anchors."""
    energy = np.zeros(len(found.rows), np.float64)
    where = place[seeds]
    energy[where] = np.maximum(
        found.columns.get("similarity", energy)[where],
        found.bm25[where] / found.best_bm25 if found.best_bm25 > 0.0 else 0.0,
    )
    at, concepts, _ = found.graph.concepts_of(found.rows.astype(np.int64))
    found.shared = SharedConcepts.of(at, concepts, energy)
    found.columns["concepts"] = found.shared.activation(len(found.rows))

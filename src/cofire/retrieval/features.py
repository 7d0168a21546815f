"""The terms of a score: what speaks for each candidate of one space, as arrays.

One column per entry of `TERMS`, over the candidates (`candidates.gather`). All spreading here is
over links between candidates: a memory's own match, that of the turns before and after it (one and
two steps), that of its session. Nothing a neighbour gives can lower what a memory has itself, so
spreading never demotes a direct hit.
"""

from __future__ import annotations

import numpy as np

from cofire.dynamics.arrays import F32, F64, I32, Bool, distinct
from cofire.dynamics.association import SharedConcepts, spread_over_steps
from cofire.dynamics.scoring import bm25_term, inverse_document_frequency
from cofire.encoding.signals import Signal
from cofire.graph.active import ActiveGraph
from cofire.graph.rows import NO_TIME, NOBODY
from cofire.retrieval.abstractions import abstractions_of
from cofire.retrieval.candidates import Candidates, Gathered, Words, gather
from cofire.retrieval.learned import Reached
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked

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
    "gist",
    "kin",
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
    "cue",
    "association",
    "embedded",
    "keywords",
    "age",
    "passed_on",
    "activation",
    "pagerank",
    "importance",
    "recency",
    "linked",
)
"""Every term a score can have, in the order of columns."""

DAY = 86_400_000_000  # µs
NEAR_BEFORE = 1 * DAY
"""People tell of a thing up to so long after it, seldom before."""

_DENSE = (
    "similarity_before",
    "similarity_before_2",
    "similarity_after",
    "similarity_after_2",
    "session_similarity",
)
_SIGNALS = (
    Signal.FIRST_PERSON,
    Signal.QUESTION,
    Signal.ASKS,
    Signal.HAS_TIME,
    Signal.HAS_NAME,
)
_SIGNAL_BITS = np.array([[int(signal)] for signal in _SIGNALS], np.uint32)


def find_candidates(
    graph: ActiveGraph, asked: Asked, profile: Profile, mask: Bool | None
) -> Candidates:
    """Anchors and their neighbours in one snapshot, with every term the profile weighs except
    "bm25", which needs the best of all spaces, and "cue" and "association", which need scores."""
    found, gathered = gather(graph, asked, profile, mask)
    if len(found.rows):
        _add_dense(found, asked, profile, gathered)
        if gathered.kin is not None:
            found.columns["kin"] = gathered.kin[found.rows]
        _add_lexical(found, gathered.words, profile)
        _add_people(found, asked, profile)
        _add_times(found, asked, profile)
        _add_priors(found, asked, profile)
        if profile.uses("concepts"):
            _add_concepts(found, gathered, profile)
        if gathered.recollected is not None:
            _add_cues(found, gathered.recollected, gathered.place)
    return found


def _add_cues(found: Candidates, reached: Reached, place: I32) -> None:
    """What past questions like this one found. The column "cue" needs the scores."""
    places = place[reached.rows]
    found.recollected = np.zeros(len(found.rows), np.float64)
    found.recollected[places] = reached.activation
    found.cue = np.zeros(len(found.rows), np.int64)
    found.cue[places] = reached.number


def _add_dense(found: Candidates, asked: Asked, profile: Profile, gathered: Gathered) -> None:
    if asked.vector is None or not profile.uses("similarity", "gist", *_DENSE):
        return
    similarity = np.full(len(found.rows) + 1, np.nan)  # the last place is of no candidate
    similarity[gathered.place[gathered.scanned]] = gathered.cosines
    similarity = similarity[:-1]
    missing = np.flatnonzero(np.isnan(similarity))
    if len(missing):
        similarity[missing] = found.graph.similarity(found.rows[missing], asked.vector)
    columns = found.columns
    columns["similarity"] = similarity
    if profile.uses("gist"):
        _add_gist(found, asked.vector, gathered)
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


def _add_gist(found: Candidates, question: F32, gathered: Gathered) -> None:
    """How much more alike to the question than a candidate itself the best record is that stands
    for it."""
    graph = found.graph
    own = found.columns["similarity"]
    more = found.columns["gist"] = np.zeros(len(own), np.float64)
    if not graph.has_derived:
        return
    at, records = abstractions_of(graph).of(found.rows)
    known = np.full(graph.size, np.nan)
    known[gathered.scanned] = gathered.cosines
    missing = distinct(records[np.isnan(known[records])])
    if len(missing):
        known[missing] = graph.similarity(missing, question)
    above = known[records] - own[at]
    np.maximum.at(more, at, above)
    found.standing = np.full(len(own), -1, np.int64)
    best = (above == more[at]) & (above > 0.0)
    found.standing[at[best]] = records[best]


def _add_lexical(found: Candidates, words: Words, profile: Profile) -> None:
    if not len(words.idfs):
        return
    total = float(words.idfs.sum()) or 1.0
    if profile.uses("coverage"):
        found.columns["coverage"] = (words.idfs @ found.matches) / total
    if profile.uses("spread_coverage"):
        around = {step: found.around.at(step) for step in profile.window}
        spread = spread_over_steps(found.matches, around, profile.window)
        found.columns["spread_coverage"] = (words.idfs @ spread) / total
    if profile.uses("session_bm25"):
        found.columns["session_bm25"] = _session_bm25(found, words, profile)


def _session_bm25(found: Candidates, words: Words, profile: Profile) -> F64:
    """BM25 of the candidate's session as one document, divided by the best session's."""
    graph = found.graph
    codes = graph.column("session")
    constants = profile.session_bm25
    norms = graph.session_norms(constants)
    count = len(norms)
    if not count:
        return np.zeros(len(found.rows), np.float64)
    # Terms by sessions, as one array: how often each occurs in each.
    where = codes[words.rows]
    inside = where != NOBODY
    cells = words.term[inside] * count + where[inside]
    terms = len(words.idfs)
    frequency = np.bincount(cells, words.counts[inside], minlength=terms * count)
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
    if profile.uses(term):
        # Candidates are live, so removed rows in the mask do no harm.
        found.columns[term] = found.graph.having(names[0])[found.rows].astype(np.float64)


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
    told, question, asks, time, name = ((signals & _SIGNAL_BITS) != 0).astype(np.float64)
    columns = {
        "first_person": told,
        "question_only": question * (1.0 - told),
        "asks": asks,
        "tells_time": time,
    }
    if asked.question.asks_name:
        columns["name_for_who"] = name
    if asked.question.asks_when:
        columns["time_for_when"] = time
    found.columns.update({term: column for term, column in columns.items() if profile.uses(term)})


def _add_concepts(found: Candidates, gathered: Gathered, profile: Profile) -> None:
    """Activation that arrives over shared concepts from the strongest anchors."""
    energy = np.zeros(len(found.rows), np.float64)
    where = gathered.place[gathered.seeds]
    energy[where] = np.maximum(
        found.columns.get("similarity", energy)[where],
        found.bm25[where] / found.best_bm25 if found.best_bm25 > 0.0 else 0.0,
    )
    at, concepts, _ = found.graph.concepts_of(found.rows)
    found.shared = SharedConcepts.of(at, concepts, energy, profile.fan)
    found.columns["concepts"] = found.shared.activation(len(found.rows))

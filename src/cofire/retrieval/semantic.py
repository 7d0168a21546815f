"""What consolidation derived, ranked apart from the memories it rests on, and told with them.

Semantic records are few beside turns, so all of them are scored:

    score = w_sim · max(0, cos) + w_lex · bm25 / best + w_sup · support

`support` is how well the best of the memories that a record rests on matches the question itself,
as the profile ranks memories: what activation reaches the record over its evidence links. Shapes,
the residue of what was archived, are scored by the first two alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cofire import views
from cofire.dynamics.arrays import F64, Bool, Rows
from cofire.dynamics.ranking import round_scores, top_k
from cofire.dynamics.scoring import bm25_term
from cofire.graph.active import BM25, ActiveGraph
from cofire.graph.masks import RowFilter, row_mask
from cofire.retrieval.question import Asked
from cofire.retrieval.ranking import Ranked
from cofire.store import Store
from cofire.store.records import KIND_CODES, LINK_CODES, DerivedRow, ItemRow, SpaceInfo
from cofire.types import INTERNAL_KINDS, Kind, SemanticRecord, Shape

SIMILARITY, WORDS, SUPPORT = 0.5, 0.2, 0.3
"""Weights of the score. Chosen, not fitted: no data set here has records of a model's making."""
LEAST = 0.15
"""A record that scores less has nothing to do with the question."""
LEAST_SHAPE = 0.25
"""A shape must match better: it brings no answer, only the news that there was one."""
SHAPES = 3
"""Shapes told of at most."""

_RESTS = (LINK_CODES["evidence"], LINK_CODES["abstraction"])
_SHAPES = (KIND_CODES[Kind.SHAPE.value],)
_HIDDEN = tuple(KIND_CODES[kind.value] for kind in INTERNAL_KINDS)


@dataclass(frozen=True, slots=True)
class Scored:
    """Rows of one space's graph and what the question scores them."""

    space: int
    graph: ActiveGraph
    rows: Rows
    scores: F64


def find_records(
    graphs: Sequence[ActiveGraph],
    asked: Asked,
    ranked: Ranked,
    wanted: Sequence[RowFilter],
    most: int,
    *,
    trust: float = 1.0,
) -> list[tuple[int, int, float]]:
    """The best semantic records as (index of the space, number, score), best first. `trust` in
    [0, 1]: how far support counts; it is relative to the best match, however bad that is."""
    found = []
    for index, graph in enumerate(graphs):
        rows = _rows(graph, "records", graph.has_derived, _recordable)
        if len(rows) and most > 0:
            allowed = row_mask(graph, replace(wanted[index], derived=True))
            found.append(
                _score(index, graph, asked, _of(rows, allowed), ranked=ranked, trust=trust)
            )
    return _best(found, LEAST, most)


def find_shapes(
    graphs: Sequence[ActiveGraph], asked: Asked, wanted: Sequence[RowFilter]
) -> list[tuple[int, int, float]]:
    """The shapes that match, as `find_records` gives records."""
    found = []
    for index, graph in enumerate(graphs):
        rows = _rows(graph, "shapes", _SHAPES[0] in graph.kinds, _shapes)
        if len(rows):
            shapely = replace(wanted[index], derived=True, kinds=_SHAPES, without_kinds=())
            found.append(_score(index, graph, asked, _of(rows, row_mask(graph, shapely))))
    return _best(found, LEAST_SHAPE, SHAPES)


def _rows(graph: ActiveGraph, name: str, any_: bool, chosen: Callable[[ActiveGraph], Bool]) -> Rows:
    """The rows of a sort, ascending; kept with the snapshot, for they are few."""
    if not any_:
        return np.empty(0, np.intp)
    kept: Rows | None = graph.cache.get(name)
    if kept is None:
        kept = graph.cache[name] = np.flatnonzero(chosen(graph) & graph.column("live"))
    return kept


def _recordable(graph: ActiveGraph) -> Bool:
    return graph.derived & ~np.isin(graph.column("kind"), _HIDDEN)


def _shapes(graph: ActiveGraph) -> Bool:
    return np.isin(graph.column("kind"), _SHAPES)


def _of(rows: Rows, mask: Bool | None) -> Rows:
    return rows if mask is None else rows[mask[rows]]


def _score(
    index: int,
    graph: ActiveGraph,
    asked: Asked,
    rows: Rows,
    *,
    ranked: Ranked | None = None,
    trust: float = 1.0,
) -> Scored:
    scores = np.zeros(len(rows), np.float64)
    if len(rows):
        if asked.vector is not None:
            scores += SIMILARITY * np.maximum(graph.similarity(rows, asked.vector), 0.0)
        words = _words(graph, asked, rows)
        if words.max(initial=0.0) > 0.0:
            scores += WORDS * words / words.max()
        if ranked is not None:
            scores += SUPPORT * trust * _support(index, graph, rows, ranked)
    return Scored(index, graph, rows, scores)


def _words(graph: ActiveGraph, asked: Asked, rows: Rows) -> F64:
    """BM25 of ascending rows."""
    scores = np.zeros(len(rows), np.float64)
    norms = graph.length_norms()
    for term in graph.terms_rows(np.array(sorted(asked.question.terms), np.uint64)):
        at = np.minimum(rows.searchsorted(term.rows), len(rows) - 1)
        here = rows[at] == term.rows
        gains = bm25_term(term.counts[here], norms[term.rows[here]], term.idf, BM25)
        scores[at[here]] += gains
    return scores


def _support(index: int, graph: ActiveGraph, rows: Rows, ranked: Ranked) -> F64:
    """How near the best memory that each record rests on is to the best of the ranking, in
    [0, 1]; 0 where none of them is a candidate."""
    support = np.zeros(len(rows), np.float64)
    candidates = ranked.candidates[index]
    here = np.flatnonzero(ranked.space == index)
    if not len(here):
        return support
    top, bottom = float(ranked.score.max()), float(ranked.score.min())
    near = np.zeros(graph.size, np.float64)
    own = ranked.score[here]
    near[candidates.rows[ranked.at[here]]] = (own - bottom) / (top - bottom) if top > bottom else 1
    edges = graph.neighbours(rows, _RESTS, inward=False)
    np.maximum.at(support, edges.origin, near[edges.target])
    return support


def _best(found: Sequence[Scored], least: float, most: int) -> list[tuple[int, int, float]]:
    if not found or most <= 0:
        return []
    scores = round_scores(np.concatenate([one.scores for one in found]))
    high = np.concatenate([one.graph.ties[0][one.rows] for one in found])
    low = np.concatenate([one.graph.ties[1][one.rows] for one in found])
    place = [(one, row) for one in found for row in one.rows.tolist()]
    chosen = []
    for at in top_k(scores, high, low, most).tolist():
        if scores[at] < least:
            break
        one, row = place[at]
        chosen.append((one.space, int(one.graph.column("number")[row]), float(scores[at])))
    return chosen


def told_records(
    store: Store, spaces: Sequence[SpaceInfo], found: Sequence[tuple[int, int, float]]
) -> list[tuple[int, SemanticRecord]]:
    """Records with the words they rest on, in the order found; what was forgotten meanwhile is
    left out. Each with the index of its space."""
    told: dict[tuple[int, int], SemanticRecord] = {}
    for index, space in enumerate(spaces):
        numbers = [number for at, number, _ in found if at == index]
        if numbers:
            for number, record in read_records(store, space, numbers).items():
                told[index, number] = record
    return [
        (index, replace(told[index, number], score=score))
        for index, number, score in found
        if (index, number) in told
    ]


def read_records(
    store: Store, space: SpaceInfo, numbers: Sequence[int] | None = None
) -> dict[int, SemanticRecord]:
    """Semantic records by number (None: all of the space), whatever their state."""
    rows = store.derived(space, numbers)
    ends = sorted({source.source for row in rows for source in row.sources})
    sources = {row.number: row for row in store.fetch(space, ends)}
    return {row.item.number: _record(space, row, sources) for row in rows}


def _record(space: SpaceInfo, row: DerivedRow, sources: Mapping[int, ItemRow]) -> SemanticRecord:
    quoted = tuple(
        views.quoted(sources[source.source], source)
        for source in row.sources
        if source.source in sources
    )
    return views.semantic_record(space, row, quoted)


def told_shapes(
    store: Store, spaces: Sequence[SpaceInfo], found: Sequence[tuple[int, int, float]]
) -> tuple[Shape, ...]:
    """Shapes in the order found."""
    told: dict[tuple[int, int], Shape] = {}
    for index in sorted({index for index, _, _ in found}):
        numbers = [number for at, number, _ in found if at == index]
        for row in store.derived(spaces[index], numbers):
            told[index, row.item.number] = views.shape(row)
    return tuple(
        replace(told[index, number], score=score)
        for index, number, score in found
        if (index, number) in told
    )

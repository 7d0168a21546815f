"""What consolidation derived, ranked apart from the memories it rests on, and told with them.

Semantic records are few beside turns, so all of them are scored:

    score = w_sim · max(0, cos) + w_lex · bm25 / best + w_sup · support

`support` is how well the best of the memories that a record rests on matches the question itself,
as the profile ranks memories: what activation reaches the record over its evidence links. Shapes,
the residue of what was archived, are scored by the first two alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cofire import views
from cofire.dynamics.arrays import F64, Bool, Rows
from cofire.dynamics.ranking import round_scores, top_k
from cofire.graph.active import ActiveGraph
from cofire.graph.masks import RowFilter, row_mask
from cofire.retrieval.question import Asked
from cofire.retrieval.ranking import Ranked
from cofire.store import Store
from cofire.store.records import KIND_CODES, LINK_CODES, DerivedRow, ItemRow, SpaceInfo
from cofire.types import Kind, SemanticRecord, Shape

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
) -> list[tuple[int, int, float]]:
    """The best semantic records as (index of the space, number, score), best first."""
    found = [
        _score(index, graph, asked, row_mask(graph, replace(wanted[index], derived=True)), ranked)
        for index, graph in enumerate(graphs)
        if graph.has_derived
    ]
    return _best(found, LEAST, most)


def find_shapes(
    graphs: Sequence[ActiveGraph], asked: Asked, wanted: Sequence[RowFilter]
) -> list[tuple[int, int, float]]:
    """The shapes that match, as `find_records` gives records."""
    found = [
        _score(
            index,
            graph,
            asked,
            row_mask(graph, replace(wanted[index], derived=True, kinds=_SHAPES, without_kinds=())),
            None,
        )
        for index, graph in enumerate(graphs)
        if _SHAPES[0] in graph.kinds
    ]
    return _best(found, LEAST_SHAPE, SHAPES)


def _score(
    index: int, graph: ActiveGraph, asked: Asked, mask: Bool | None, ranked: Ranked | None
) -> Scored:
    rows = np.arange(graph.size, dtype=np.intp) if mask is None else np.flatnonzero(mask)
    scores = np.zeros(len(rows), np.float64)
    if len(rows):
        if asked.vector is not None:
            scores += SIMILARITY * np.maximum(graph.similarity(rows, asked.vector), 0.0)
        words = graph.lexical(sorted(asked.question.terms))[rows].astype(np.float64)
        if words.max(initial=0.0) > 0.0:
            scores += WORDS * words / words.max()
        if ranked is not None:
            scores += SUPPORT * _support(index, graph, rows, ranked)
    return Scored(index, graph, rows, scores)


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
    return tuple(
        replace(views.shape(row), score=score)
        for index, number, score in found
        for row in store.derived(spaces[index], [number])
    )

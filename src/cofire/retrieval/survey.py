"""Every memory of the spaces asked, as one list: what the papers' recipes rank.

`candidates` looks at the best of each leg and what is around them; the papers score every memory.
Here a *place* is a number over all spaces: the rows of the first, then those of the second, and so
on. What spaces know of one question (cosines, BM25) lies in arrays by place, so "the best k" is
over all spaces and their scores are on one scale. Links never lead from one space to another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from cofire.dynamics.activation import Ties
from cofire.dynamics.arrays import F32, F64, I64, Bool, Rows
from cofire.dynamics.edges import Edges
from cofire.dynamics.scoring import Bm25, bm25_term
from cofire.graph.active import ActiveGraph
from cofire.retrieval.candidates import Candidates, Neighbours, Scored, Searched
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked
from cofire.store.records import LINK_TYPES
from cofire.types import Path

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Survey:
    """All places and what the question finds there.

    `starts` (spaces + 1,): first place of each space. `allowed`: memories that may be recalled.
    `compared`: those of them that have a cosine; `cosine` is 0 elsewhere. `words`: BM25, and
    `matched`: how many of the question's `asked` distinct terms occur; 0 where not allowed.
    `ties`: words of the uids.
    """

    graphs: tuple[ActiveGraph, ...]
    starts: I64
    allowed: Bool
    compared: Bool
    cosine: F64
    words: F64
    matched: I64
    asked: int
    ties: Ties

    @property
    def size(self) -> int:
        """Places."""
        return int(self.starts[-1])

    def relative_words(self) -> F64:
        """BM25 divided by the best of all spaces, in [0, 1]."""
        best = float(self.words.max(initial=0.0))
        return self.words / best if best > 0.0 else np.zeros(self.size, np.float64)

    def cosine_of(self, places: Rows, vector: F32 | None) -> F64:
        """Cosines of some memories; 0 where there is nothing to compare."""
        found = np.zeros(len(places), np.float64)
        if vector is not None:
            for graph, (start, end) in zip(self.graphs, self.parts(), strict=True):
                here = np.flatnonzero((places >= start) & (places < end) & self.compared[places])
                found[here] = graph.similarity(places[here] - start, vector)
        return found

    def column(self, name: str) -> I64:
        """A column of the graphs by place."""
        return _joined([graph.column(name).astype(np.int64) for graph in self.graphs])

    def parts(self) -> list[tuple[int, int]]:
        """First place and end of each space."""
        return list(pairwise(self.starts.tolist()))

    def space_of(self, place: int) -> int:
        """Which space a place is in."""
        return int(np.searchsorted(self.starts, place, side="right")) - 1

    def links_of(self, place: int) -> Edges:
        """The links of one memory, both ways; `target` holds places."""
        space = self.space_of(place)
        start = int(self.starts[space])
        found = self.graphs[space].adjacency().edges(np.array([place - start], np.int64))
        return replace(found, target=found.target + start)

    def path(self, giver: int, place: int, link_type: int, given: float) -> Path:
        """A step of a trace: what came from one memory of a space to another by a link."""
        via = (self.uid(giver), self.uid(place))
        return Path(via=via, type=LINK_TYPES[link_type].value, activation=given)

    def uid(self, place: int) -> str:
        """The id of a memory, as traces name it."""
        space = self.space_of(place)
        return str(UUID(bytes=self.graphs[space].uid(place - int(self.starts[space]))))

    def only(self, values: F64, kept: Bool) -> F64:
        """`values`, and -inf ("never") where not `kept`."""
        return np.where(kept, values, -np.inf)


def survey(searched: Searched, asked: Asked, constants: Bm25, *, compare: bool = True) -> Survey:
    """Look at every memory that may be recalled: O(memories · dimension), or without `compare`
    O(memories), and `cosine` is 0 everywhere."""
    parts = [_look(graph, mask, asked, constants, compare) for graph, mask in searched]
    sizes = [graph.size for graph, _ in searched]
    return Survey(
        graphs=tuple(graph for graph, _ in searched),
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        allowed=_joined([part[0] for part in parts]),
        compared=_joined([part[1] for part in parts]),
        cosine=_joined([part[2] for part in parts]),
        words=_joined([part[3] for part in parts]),
        matched=_joined([part[4] for part in parts]),
        asked=len(asked.question.terms),
        ties=(
            _joined([graph.ties[0] for graph, _ in searched]),
            _joined([graph.ties[1] for graph, _ in searched]),
        ),
    )


def _look(
    graph: ActiveGraph, mask: Bool | None, asked: Asked, constants: Bm25, compare: bool
) -> tuple[Bool, Bool, F64, F64, I64]:
    allowed: Bool = graph.recallable if mask is None else graph.recallable & mask
    compared = np.zeros(graph.size, np.bool_)
    cosine = np.zeros(graph.size, np.float64)
    if asked.vector is not None:
        compared = allowed & graph.column("has_vector")
        if compare:
            rows = np.flatnonzero(compared)
            cosine[rows] = graph.similarity(rows, asked.vector)
    words = np.zeros(graph.size, np.float64)
    matched = np.zeros(graph.size, np.int64)
    norms = graph.length_norms(constants)
    # In the order of the terms' hashes, so that sums do not depend on that of the words.
    for term in graph.terms_rows(np.array(sorted(asked.question.terms), np.uint64)):
        words[term.rows] += bm25_term(term.counts, norms[term.rows], term.idf, constants)
        matched[term.rows] += 1
    words[~allowed] = 0.0
    matched[~allowed] = 0
    return allowed, compared, cosine, words, matched


def scored(
    seen: Survey,
    places: Rows,
    columns: Mapping[str, F64],
    profile: Profile,
    *,
    dense: Bool,
    lexical: Bool,
    confidence: float | None = None,
    paths: Callable[[int], list[Path]] | None = None,
) -> list[Scored]:
    """The result of a ranking: `places` (c,), ascending, with a (c,) array per term and whether
    each was found by its meaning or by its words. `paths` tells of a place how activation came
    to it. score = Σ weight · value, in the order of `columns`.
    """
    total = np.zeros(len(places), np.float64)
    for term, column in columns.items():
        total += profile.weights.get(term, 0.0) * column
    bounds = places.searchsorted(seen.starts).tolist()
    found = []
    for index, graph in enumerate(seen.graphs):
        here = slice(bounds[index], bounds[index + 1])
        start = int(seen.starts[index])
        candidates = Candidates(
            graph=graph,
            rows=places[here] - start,
            columns={term: column[here] for term, column in columns.items()},
            bm25=seen.words[places[here]],
            best_bm25=float(seen.words[start : int(seen.starts[index + 1])].max(initial=0.0)),
            around=_nobody(bounds[index + 1] - bounds[index]),
            dense_anchor=dense[here],
            lexical_anchor=lexical[here],
            matches=np.zeros((0, bounds[index + 1] - bounds[index]), np.float64),
            idfs=np.empty(0, np.float64),
            paths=_from_row(paths, start),
        )
        found.append(Scored(candidates, total[here], confidence))
    return found


def _from_row(
    paths: Callable[[int], list[Path]] | None, start: int
) -> Callable[[int], list[Path]] | None:
    return None if paths is None else lambda row: paths(start + row)


def _nobody(count: int) -> Neighbours:
    none = np.full(count, -1, np.int32)
    return Neighbours(before=none, after=none, before_2=none, after_2=none, before_3=none)


def _joined(parts: Sequence[NDArray[Scalar]]) -> NDArray[Scalar]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)

"""The active graph of one space: everything a recall ranks with, as arrays.

An `ActiveGraph` is a snapshot and never changes. `apply` gives the snapshot after some changes and
shares nearly all memory with the old one, so any number of threads may read any snapshots while
one makes the next; none ever sees half a change. (`cache.GraphCache` lets one thread at a time
refresh a space. Applying to the same snapshot twice is allowed and only costs a copy.)

A *row* is a place in the arrays of one snapshot. An item that changes gets a new row and its old
one dies (`live` is False); when more than a fifth of the rows are dead, `apply` compacts, and rows
are numbered anew. So rows mean something within one snapshot only; across snapshots use the item's
`number` or uid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from cofire.dynamics.arrays import F32, F64, I32, I64, U8, U64, Bool, Floats, Indices, Rows
from cofire.dynamics.edges import Edges
from cofire.dynamics.ranking import best
from cofire.dynamics.scoring import (
    Bm25,
    bm25_term,
    inverse_document_frequency,
    length_norms,
)
from cofire.graph.links import Links, sort_links
from cofire.graph.postings import Postings
from cofire.graph.rows import (
    COLUMNS,
    NEVER,
    NOBODY,
    Changes,
    Interned,
    join_entries,
    read_batch,
)
from cofire.graph.table import NumberMap, Table
from cofire.graph.vectors import (
    COARSE_FROM,
    EXACT_BYTES,
    DenseView,
    Projection,
    as_unit,
    scan_rows,
)

COMPACT_SHARE = 5
"""Rows are compacted when more than 1 / COMPACT_SHARE of them are dead."""
_BATCH = 8192  # rows turned into arrays at a time: bounds the memory of a bulk load

BM25 = Bm25()


@dataclass(frozen=True, slots=True)
class TermRows:
    """Live rows that contain a term, ascending, with its counts and its idf in the space."""

    rows: I32
    counts: U8
    idf: float


class ActiveGraph:
    """A snapshot of one space's active graph; see the module's text for the rules."""

    __slots__ = (
        "_cache",
        "concepts",
        "dead",
        "dimension",
        "documents",
        "facets",
        "links",
        "numbers",
        "projection",
        "revision",
        "sessions",
        "speakers",
        "table",
        "terms",
        "total_length",
    )

    def __init__(self, dimension: int, projection: Projection | None = None) -> None:
        if dimension < 1:
            raise ValueError(f"the dimension must be positive, got {dimension}")
        if projection is not None and projection.matrix.shape[1] != dimension:
            raise ValueError(
                f"the projection is of {projection.matrix.shape[1]} dimensions, not {dimension}"
            )
        self.dimension = dimension
        self.projection = projection
        self.revision = 0
        """The space's revision of which this is the state."""
        layout = {**COLUMNS, "vector": (np.float16, (dimension,))}
        layout["scan"] = (np.float32, (dimension,))
        self.table = Table.empty(layout)
        self.numbers = NumberMap()
        self.terms = Postings.empty()
        self.concepts = Postings.empty(forward=True)
        self.facets = Postings.empty()
        self.links = Links.empty()
        self.speakers = Interned()
        self.sessions = Interned()
        self.dead = 0
        """Rows that are not live."""
        self.documents = 0
        """Live rows with terms: BM25's N."""
        self.total_length = 0
        """Sum of their lengths in terms."""
        self._cache: dict[Any, Any] = {}

    @classmethod
    def empty(cls, dimension: int, projection: Projection | None = None) -> ActiveGraph:
        """A graph of nothing, at revision 0."""
        return cls(dimension, projection)

    def _copy(self) -> ActiveGraph:
        copy = object.__new__(ActiveGraph)
        for name in ActiveGraph.__slots__:
            setattr(copy, name, getattr(self, name))
        copy._cache = {}
        return copy

    # -- growth ------------------------------------------------------------------------------

    def apply(self, changes: Changes) -> ActiveGraph:
        """The snapshot after `changes`: tombstones first, then the current rows and links.

        With `changes.rebuild` the rows are the whole space and nothing of this one is kept.

        Raises:
            StoreCorruptError: a packed column is malformed.
        """
        graph = ActiveGraph(self.dimension, self.projection) if changes.rebuild else self._copy()
        if changes.removed_items:
            graph._kill(np.array(sorted(set(changes.removed_items)), np.int64))
        if changes.rows:
            graph._add_rows(changes.rows)
        if changes.links or changes.removed_links:
            graph._change_links(changes.removed_links, changes.links)
        graph.revision = changes.revision
        if graph.dead * COMPACT_SHARE > graph.size:
            return graph.compacted()
        return graph

    def _kill(self, numbers: I64) -> None:
        """Remove the rows of `numbers`, where there are any."""
        rows = self.numbers.rows(numbers)
        present = rows >= 0
        if not present.any():
            return
        self._bury(rows[present])
        gone = numbers[present]
        self.numbers = self.numbers.with_rows(gone, np.full(len(gone), -1, np.int32))

    def _bury(self, rows: I32) -> None:
        live = self.table["live"].copy()
        live[rows] = False
        lengths = self.table["length"][rows]
        self.documents -= int(np.count_nonzero(lengths > 0))
        self.total_length -= int(lengths.sum(dtype=np.int64))
        self.dead += len(rows)
        self.table = self.table.replaced({"live": live})

    def _add_rows(self, rows: Sequence[Any]) -> None:
        if len(rows) > 1:
            last = {row[0]: row for row in rows}
            if len(last) < len(rows):
                rows = list(last.values())
        first = self.size
        numbers = np.array([row[0] for row in rows], np.int64)
        if int(numbers.min()) < len(self.numbers.array):  # else all are new: the common case
            former = self.numbers.rows(numbers)
            if (former >= 0).any():
                self._bury(former[former >= 0])
        terms, concepts, facets = [], [], []
        for start in range(0, len(rows), _BATCH):
            batch = read_batch(
                rows[start : start + _BATCH],
                self.size,
                self.dimension,
                self.speakers,
                self.sessions,
            )
            self._append_table(batch.columns, batch.count)
            terms.append(batch.terms)
            concepts.append(batch.concepts)
            facets.append(batch.facets)
        self.terms = self.terms.append(*join_entries(terms))
        self.concepts = self.concepts.append(*join_entries(concepts))
        self.facets = self.facets.append(*join_entries(facets))
        places = np.arange(first, self.size, dtype=np.int32)
        self.numbers = self.numbers.with_rows(numbers, places)
        lengths = self.table["length"][first:]
        self.documents += int(np.count_nonzero(lengths > 0))
        self.total_length += int(lengths.sum(dtype=np.int64))

    def _append_table(self, columns: dict[str, NDArray[Any]], count: int) -> None:
        self._choose_scan(self.size + count)
        if "scan" in self.table.names:
            columns["scan"] = scan_rows(columns["vector"], self._scan_projection)
        self.table = self.table.append(columns, count)

    def _choose_scan(self, size: int) -> None:
        """Keep the scanned matrix that fits `size` rows: exact, projected, or none."""
        coarse = self._coarse_matrix
        if coarse is not None and size >= COARSE_FROM:
            if self._scan_width != len(coarse):
                scan = scan_rows(self.table["vector"], coarse)
                self.table = self.table.replaced({"scan": scan})
        elif size * self.dimension * 4 > EXACT_BYTES and self._scan_width:
            self.table = self.table.replaced({"scan": None})

    @property
    def _coarse_matrix(self) -> F32 | None:
        """The projection, unless it is as wide as the vectors and so no gain."""
        if self.projection is None or len(self.projection.matrix) >= self.dimension:
            return None
        return self.projection.matrix

    @property
    def _scan_width(self) -> int:
        return self.table["scan"].shape[1] if "scan" in self.table.names else 0

    @property
    def _scan_projection(self) -> F32 | None:
        """The projection that `scan` is made with; None if it holds the vectors themselves."""
        coarse = self._coarse_matrix
        return coarse if coarse is not None and self._scan_width == len(coarse) else None

    def with_projection(self, projection: Projection | None) -> ActiveGraph:
        """The same state with another projection for the coarse scan (O(n))."""
        graph = self._copy()
        graph.projection = projection
        exact = graph.size * graph.dimension * 4 <= EXACT_BYTES
        scan = scan_rows(graph.table["vector"], None) if exact else None
        graph.table = graph.table.replaced({"scan": scan})
        graph._choose_scan(graph.size)
        return graph

    def _change_links(self, removed: Sequence[tuple[int, int]], links: Sequence[Any]) -> None:
        if links:
            columns = list(zip(*[link[:4] for link in links], strict=True))
        else:
            columns = [(), (), (), ()]
        self.links = self.links.changed(
            [(pair[0], pair[1]) for pair in removed],
            np.array(columns[0], np.int64),
            np.array(columns[1], np.int64),
            np.array(columns[2], np.uint8),
            np.array(columns[3], np.float32),
        )

    def compacted(self) -> ActiveGraph:
        """The same state without dead rows, everything merged; rows are numbered anew."""
        graph = self._copy()
        live = self.table["live"]
        new_rows = np.where(live, np.cumsum(live) - 1, -1).astype(np.int32)
        size = self.size - self.dead
        columns = {name: self.table[name][live] for name in self.table.names}
        graph.speakers, columns["speaker"] = self.speakers.compacted(columns["speaker"])
        graph.sessions, columns["session"] = self.sessions.compacted(columns["session"])
        graph.table = Table.full(columns, size)
        graph.terms = self.terms.compacted(new_rows)
        graph.concepts = self.concepts.compacted(new_rows)
        graph.facets = self.facets.compacted(new_rows)
        graph.links = Links.adopt(sort_links(*self.links.arrays(self.numbers.array)))
        numbers = graph.table["number"].astype(np.int64)
        graph.numbers = NumberMap().with_rows(numbers, np.arange(size, dtype=np.int32))
        graph.dead = 0
        return graph

    # -- columns -----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Rows, dead ones included: the length of every column and mask."""
        return self.table.length

    @property
    def items(self) -> int:
        """Live rows."""
        return self.size - self.dead

    @property
    def nbytes(self) -> int:
        """Bytes held, without what `apply` has reserved ahead."""
        parts = (self.table, self.numbers, self.terms, self.concepts, self.facets, self.links)
        interned = self.speakers.nbytes + self.sessions.nbytes
        return sum(part.nbytes for part in parts) + interned

    def column(self, name: str) -> NDArray[Any]:
        """A column over all rows, read-only: see `rows.COLUMNS`, and `vector` (n, d) float16."""
        return self.table[name]

    @property
    def live(self) -> Bool | None:
        """Mask of live rows; None if all are."""
        return self.table["live"] if self.dead else None

    def row(self, number: int) -> int:
        """The row of an item, -1 if it has none."""
        return self.numbers.get(number)

    def rows_of(self, numbers: I64) -> I32:
        """Rows of items, -1 where there is none."""
        return self.numbers.rows(numbers)

    def uid(self, row: SupportsIndex) -> bytes:
        """The 16 bytes of a row's uid."""
        high, low = int(self.table["uid_high"][row]), int(self.table["uid_low"][row])
        return high.to_bytes(8, "big") + low.to_bytes(8, "big")

    # -- dense -------------------------------------------------------------------------------

    def dense(self, query: Floats, mask: Bool | None = None, top: int = 300) -> tuple[Rows, F64]:
        """The `top` live rows most similar to `query` (d,), best first, and their cosines.

        Cosines are rounded to 1e-6, ties go by uid. Only rows of `mask` (all rows, boolean) and
        only rows with a vector. A zero or non-finite query finds nothing.
        """
        rows, cosines, _, _ = self.dense_with_rest(query, mask, top)
        return rows, cosines

    def dense_with_rest(
        self, query: Floats, mask: Bool | None = None, top: int = 300
    ) -> tuple[Rows, F64, Rows, F64]:
        """As `dense`; then the other rows whose cosines were computed on the way, in any order,
        and these cosines, which need not be computed again."""
        unit_query = as_unit(query, self.dimension)
        if unit_query is None or top <= 0 or not self.items:
            none: Rows = np.empty(0, np.intp)
            nothing = np.empty(0, np.float64)
            return none, nothing, none, nothing
        return self._dense_view().search(unit_query, mask, top)

    def similarity(self, rows: Indices, query: Floats) -> F64:
        """Cosine of `rows` to `query`, rounded to 1e-6; 0 for rows without a vector."""
        unit_query = as_unit(query, self.dimension)
        if unit_query is None:
            return np.zeros(len(rows), np.float64)
        return self._dense_view().similarity(np.asarray(rows, np.intp), unit_query)

    def _dense_view(self) -> DenseView:
        view: DenseView | None = self._cache.get("dense")
        if view is None:
            usable = self.table["has_vector"] & self.table["live"]
            view = DenseView(
                self.table["vector"],
                self.table["scan"] if self._scan_width else None,
                self._scan_projection,
                None if usable.all() else usable,
                self.table["uid_high"],
                self.table["uid_low"],
            )
            self._cache["dense"] = view
        return view

    # -- lexical -----------------------------------------------------------------------------

    @property
    def average_length(self) -> float:
        """Terms per document, over live rows with terms; 0 if there are none."""
        return self.total_length / self.documents if self.documents else 0.0

    def term_rows(self, term: int) -> TermRows:
        """Live rows with a hashed term; its document frequency is their number."""
        return self.terms_rows(np.array([term], np.uint64))[0]

    def terms_rows(self, terms: U64) -> list[TermRows]:
        """`term_rows` of each."""
        return [
            TermRows(rows, counts, inverse_document_frequency(self.documents, len(rows)))
            for rows, counts in self.terms.lookup(terms, self.live)
        ]

    def length_norms(self, constants: Bm25 = BM25) -> F32:
        """BM25's length part of every row (`scoring.length_norms`), kept with the snapshot."""
        key = ("norms", constants)
        norms: F32 | None = self._cache.get(key)
        if norms is None:
            lengths = self.table["length"].astype(np.float32)
            norms = length_norms(lengths, self.average_length, constants)
            self._cache[key] = norms
        return norms

    def session_lengths(self) -> I64:
        """Terms per session over live rows, by session code; kept with the snapshot."""
        lengths: I64 | None = self._cache.get("session_lengths")
        if lengths is None:
            codes = self.table["session"]
            inside = codes != NOBODY
            if self.dead:
                inside &= self.table["live"]
            sums = np.bincount(
                codes[inside], self.table["length"][inside], minlength=len(self.sessions)
            )
            lengths = sums.astype(np.int64)
            self._cache["session_lengths"] = lengths
        return lengths

    def lexical(
        self,
        terms: Iterable[int],
        weights: Sequence[float] | None = None,
        mask: Bool | None = None,
        constants: Bm25 = BM25,
    ) -> F32:
        """BM25 of hashed `terms` (times `weights`) for all rows; 0 where none occurs or outside
        `mask`. A term given twice counts twice. The order of terms does not matter."""
        scores = self._bm25(terms, weights, constants)
        if mask is not None:
            scores[~mask] = 0.0
        return scores.astype(np.float32)

    def lexical_top(
        self,
        terms: Iterable[int],
        weights: Sequence[float] | None = None,
        mask: Bool | None = None,
        top: int = 300,
        constants: Bm25 = BM25,
    ) -> tuple[Rows, F64]:
        """The `top` rows by BM25, best first, with their scores rounded to 1e-6."""
        scores = self._bm25(terms, weights, constants)
        allowed = scores > 0.0 if mask is None else (scores > 0.0) & mask
        np.copyto(scores, -np.inf, where=~allowed)
        return best(scores, self.table["uid_high"], self.table["uid_low"], top)

    def _bm25(self, terms: Iterable[int], weights: Sequence[float] | None, constants: Bm25) -> F64:
        total: dict[int, float] = {}
        given = list(terms)
        for term, weight in zip(given, weights or [1.0] * len(given), strict=True):
            total[term] = total.get(term, 0.0) + weight
        ordered = sorted(total)
        norms = self.length_norms(constants)
        rows, gains = [], []
        for term, found in zip(ordered, self.terms_rows(np.array(ordered, np.uint64)), strict=True):
            if len(found.rows):
                idf = found.idf * total[term]
                rows.append(found.rows)
                gains.append(bm25_term(found.counts, norms[found.rows], idf, constants))
        if not rows:
            return np.zeros(self.size, np.float64)
        sums = np.bincount(np.concatenate(rows), np.concatenate(gains), minlength=self.size)
        return sums.astype(np.float64, copy=False)

    # -- neighbourhood -----------------------------------------------------------------------

    def known_facets(self, facets: Sequence[int]) -> set[int]:
        """Those of hashed `facets` that a live row has."""
        keys = list(dict.fromkeys(facets))
        found = self.facets.contains(np.array(keys, np.uint64), self.live)
        return {facet for facet, known in zip(keys, found.tolist(), strict=True) if known}

    def sharing(self, concepts: U64, most: int) -> Rows:
        """Live rows, ascending, with one of distinct hashed `concepts` that at least two and at
        most `most` live rows have."""
        return self.concepts.rows_sharing(concepts, most, self.live)

    @property
    def kinds(self) -> frozenset[int]:
        """Codes of the kinds that rows have, dead ones included; kept with the snapshot."""
        found: frozenset[int] | None = self._cache.get("kinds")
        if found is None:
            found = frozenset(np.flatnonzero(np.bincount(self.table["kind"])).tolist())
            self._cache["kinds"] = found
        return found

    @property
    def first_expiry(self) -> int:
        """The earliest `expires` of any row, `rows.NEVER` if there is none; kept with the
        snapshot."""
        found: int | None = self._cache.get("first_expiry")
        if found is None:
            expires = self.table["expires"]
            found = int(expires.min()) if len(expires) else NEVER
            self._cache["first_expiry"] = found
        return found

    def concept_rows(self, concept: int) -> I32:
        """Live rows with a hashed concept."""
        return self.concepts.rows(concept, self.live)

    def concepts_of(self, rows: Indices) -> tuple[I64, U64, U8]:
        """(position within `rows`, concept hash, count) of every concept of `rows`."""
        return self.concepts.keys_of(rows)

    def neighbours(
        self,
        rows: Indices,
        types: Sequence[int] | None = None,
        *,
        outward: bool = True,
        inward: bool = True,
    ) -> Edges:
        """Visible links that leave (`outward`) or enter (`inward`) distinct live `rows`.

        `target` holds rows. `types` are link codes (None: every type).
        """
        numbers = self.table["number"][rows].astype(np.int64)
        found = self.links.edges(numbers, outward=outward, inward=inward)
        targets = self.numbers.rows(found.target)
        kept = targets >= 0
        if types is not None:
            kept &= np.isin(found.type, np.array(types, np.uint8))
        edges = Edges(
            found.origin, targets.astype(np.int64), found.type, found.strength, found.outward
        )
        return edges if kept.all() else edges.where(kept)

    def adjacency(self, *, outward: bool = True, inward: bool = True) -> LinkView:
        """This graph as `dynamics.activation` sees one: its nodes are rows."""
        return LinkView(self, outward, inward)

    @property
    def ties(self) -> tuple[U64, U64]:
        """(high, low) words of every row's uid: who goes first where scores are equal."""
        return self.table["uid_high"], self.table["uid_low"]

    def adjacent(self, rows: Indices, link_type: int) -> tuple[I64, I64]:
        """(previous, next) row of each of distinct `rows` along links of one type; -1 for none.

        With temporal links: the turns before and after. Of several, the one nearest by number.
        """
        own = self.table["number"][rows].astype(np.int64)
        numbers_before, numbers_after, known = self.links.lone_neighbours(own, link_type)
        before = self.numbers.rows(numbers_before).astype(np.int64)
        after = self.numbers.rows(numbers_after).astype(np.int64)
        if not known.all():
            several = np.flatnonzero(~known)
            places = np.asarray(rows, np.intp)[several]
            before[several], after[several] = self._nearest(places, link_type)
        return before, after

    def _nearest(self, rows: Indices, link_type: int) -> tuple[I64, I64]:
        """`adjacent` for rows with any number of links, a few times slower."""
        edges = self.neighbours(rows, (link_type,))
        own = self.table["number"][rows].astype(np.int64)
        others = self.table["number"][edges.target].astype(np.int64)
        farthest_first = np.lexsort((others, -np.abs(others - own[edges.origin])))
        before = np.full(len(own), -1, np.int64)
        after = np.full(len(own), -1, np.int64)
        for places, outward in ((before, False), (after, True)):
            chosen = farthest_first[edges.outward[farthest_first] == outward]
            places[edges.origin[chosen]] = edges.target[chosen]
        return before, after

    def session_rows(self, row: int) -> Rows:
        """Live rows of the row's session in order of (time, number); itself if it has none."""
        code = int(self.table["session"][row])
        if code == NOBODY:
            return np.array([row], np.intp)
        return self.rows_of_session(code)

    def rows_of_session(self, code: int) -> Rows:
        """Live rows of a session (by its code), in order of (time, number)."""
        inside = self.table["session"] == code
        if self.dead:
            inside &= self.table["live"]
        rows = np.flatnonzero(inside)
        return rows[np.lexsort((self.table["number"][rows], self.table["time"][rows]))]


@dataclass(frozen=True, slots=True)
class LinkView:
    """A graph's visible links as an `Adjacency` over rows, in the directions asked for."""

    graph: ActiveGraph
    outward: bool
    inward: bool

    @property
    def size(self) -> int:
        return self.graph.size

    def edges(self, nodes: I64, /) -> Edges:
        return self.graph.neighbours(nodes, outward=self.outward, inward=self.inward)

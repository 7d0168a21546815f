"""The arrays of one space's active graph, and how they grow.

A `Snapshot` never changes. `apply` gives the snapshot after some changes and shares nearly all
memory with the old one, so any number of threads may read any snapshots while one makes the next;
none ever sees half a change. (`cache.GraphCache` lets one thread at a time refresh a space.
Applying to the same snapshot twice is allowed and only costs a copy.)

A *row* is a place in the arrays of one snapshot. An item that changes gets a new row and its old
one dies (`live` is False); when more than a fifth of the rows are dead, `apply` compacts, and rows
are numbered anew. So rows mean something within one snapshot only; across snapshots use the item's
`number` or uid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from cofire.dynamics.arrays import F32, I32, I64, Bool
from cofire.graph.links import Links, sort_links
from cofire.graph.postings import Postings
from cofire.graph.rows import COLUMNS, Changes, Interned, join_entries, read_batch
from cofire.graph.table import NumberMap, Table
from cofire.graph.vectors import COARSE_FROM, EXACT_BYTES, Projection, scan_rows

COMPACT_SHARE = 5
"""Rows are compacted when more than 1 / COMPACT_SHARE of them are dead."""
MINUTE = 60_000_000
"""µs"""
_BATCH = 8192  # rows turned into arrays at a time: bounds the memory of a bulk load


class Snapshot:
    """The state of one space's active graph, and how the next one is made of it; see the module's
    text for the rules."""

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
    def empty(cls, dimension: int, projection: Projection | None = None) -> Self:
        """A graph of nothing, at revision 0."""
        return cls(dimension, projection)

    def _copy(self) -> Self:
        copy = object.__new__(type(self))
        for name in Snapshot.__slots__:
            setattr(copy, name, getattr(self, name))
        copy._cache = {}
        return copy

    # -- growth ------------------------------------------------------------------------------

    def apply(self, changes: Changes) -> Self:
        """The snapshot after `changes`: tombstones first, then the current rows and links.

        With `changes.rebuild` the rows are the whole space and nothing of this one is kept.

        Raises:
            StoreCorruptError: a packed column is malformed.
        """
        graph = type(self)(self.dimension, self.projection) if changes.rebuild else self._copy()
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

    def with_projection(self, projection: Projection | None) -> Self:
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
            columns = list(zip(*[(*link[:4], _minute(link)) for link in links], strict=True))
        else:
            columns = [(), (), (), (), ()]
        self.links = self.links.changed(
            [(pair[0], pair[1]) for pair in removed],
            np.array(columns[0], np.int64),
            np.array(columns[1], np.int64),
            np.array(columns[2], np.uint8),
            np.array(columns[3], np.float32),
            when=np.array(columns[4], np.int32),
        )

    def compacted(self) -> Self:
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
    def cache(self) -> dict[str, Any]:
        """What look-ups keep with this snapshot; a changed one starts empty."""
        return self._cache

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


def _minute(link: Sequence[Any]) -> int:
    """The minute in which a link had its strength; 0 if nothing ever moved it (or in a fixture
    that leaves it out)."""
    last = link[5] if len(link) > 5 else None
    return 0 if last is None else int(last // MINUTE)

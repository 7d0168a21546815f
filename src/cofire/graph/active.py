"""The active graph of one space: everything a recall ranks with, and what can be asked of it.

`snapshot.Snapshot` has the arrays and the rules for them; here are the look-ups: by vector, by
words, along links.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import numpy as np

from cofire.dynamics.arrays import F32, F64, I32, I64, U8, U64, Bool, Floats, Indices, Rows
from cofire.dynamics.edges import Edges
from cofire.dynamics.ranking import best
from cofire.dynamics.scoring import (
    Bm25,
    bm25_term,
    inverse_document_frequency,
    length_norms,
)
from cofire.graph.rows import NEVER, NOBODY
from cofire.graph.snapshot import Snapshot
from cofire.graph.vectors import DenseView, as_unit
from cofire.store.records import DERIVED_SIGNAL, UNTRUSTED_SIGNAL

BM25 = Bm25()
CHAINED_ROWS = 2_500
"""About so many rows' neighbours are found in the time that one look-up of a few costs anyway."""
KEPT_FACETS = 8
"""Masks of facets kept with a snapshot."""


@dataclass(frozen=True, slots=True)
class TermRows:
    """Live rows that contain a term, ascending, with its counts and its idf in the space."""

    rows: I32
    counts: U8
    idf: float


class ActiveGraph(Snapshot):
    """A snapshot of one space that can be searched and walked."""

    __slots__ = ()

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
        documents, known = self._cache.get("of_the_whole", (self.documents, {}))
        return [
            TermRows(
                rows,
                counts,
                inverse_document_frequency(documents, max(len(rows), known.get(int(term), 0))),
            )
            for term, (rows, counts) in zip(terms, self.terms.lookup(terms, self.live), strict=True)
        ]

    def as_part(self, documents: int, frequencies: Mapping[int, int]) -> Self:
        """This graph as part of a space of so many documents, in which a hashed term occurs at
        least so often: a word is as rare as it is in the space. Not kept by `apply`."""
        part = self._copy()
        part._cache["of_the_whole"] = max(documents, self.documents), frequencies
        return part

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

    def session_norms(self, constants: Bm25) -> F32:
        """BM25's length part of every session as one document; kept with the snapshot."""
        key = ("session_norms", constants)
        norms: F32 | None = self._cache.get(key)
        if norms is None:
            lengths = self.session_lengths()
            average = float(lengths.mean()) if len(lengths) else 0.0
            norms = length_norms(lengths.astype(np.float32), average, constants)
            self._cache[key] = norms
        return norms

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

    def having(self, facet: int) -> Bool:
        """Mask of the rows with a hashed facet, removed rows included; the last few asked for are
        kept with the snapshot. Do not write to it."""
        kept: OrderedDict[int, Bool] = self._cache.setdefault("having", OrderedDict())
        mask = kept.get(facet)
        if mask is None:
            mask = kept[facet] = self.facets.any_of((facet,), self.size)
            while len(kept) > KEPT_FACETS:
                with suppress(KeyError):  # another thread was first
                    kept.popitem(last=False)
        return mask

    def sharing(self, concepts: U64, most: int) -> Rows:
        """Live rows, ascending, with one of distinct hashed `concepts` that at least two and at
        most `most` live rows have."""
        return self.concepts.rows_sharing(concepts, most, self.live)

    @property
    def recallable(self) -> Bool:
        """Mask of rows that have terms or a vector: not those of wholes that were cut into
        segments. Kept with the snapshot; do not write to it."""
        mask: Bool | None = self._cache.get("recallable")
        if mask is None:
            mask = (self.table["length"] > 0) | self.table["has_vector"]
            self._cache["recallable"] = mask
        return mask

    @property
    def kinds(self) -> frozenset[int]:
        """Codes of the kinds that rows have, dead ones included; kept with the snapshot."""
        found: frozenset[int] | None = self._cache.get("kinds")
        if found is None:
            found = frozenset(np.flatnonzero(np.bincount(self.table["kind"])).tolist())
            self._cache["kinds"] = found
        return found

    def has_links(self, kind: int) -> bool:
        """Whether there is any link of one type, ended ones included; kept with the snapshot."""
        known: dict[int, bool] = self._cache.setdefault("linked", {})
        if kind not in known:
            known[kind] = self.links.has(kind)
        return known[kind]

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

    @property
    def first_end(self) -> int:
        """The earliest `valid_to` of any row, `rows.NEVER` if there is none; kept with the
        snapshot."""
        found: int | None = self._cache.get("first_end")
        if found is None:
            ends = self.table["valid_to"]
            found = self._cache["first_end"] = int(ends.min()) if len(ends) else NEVER
        return found

    @property
    def derived(self) -> Bool:
        """Mask of rows that consolidation derived, dead ones included; kept with the snapshot. Do
        not write to it."""
        mask: Bool | None = self._cache.get("derived")
        if mask is None:
            mask = (self.table["signals"] & np.uint32(DERIVED_SIGNAL)) != 0
            self._cache["derived"] = mask
            self._cache["has_derived"] = bool(mask.any())
        return mask

    @property
    def has_derived(self) -> bool:
        """Whether there is any derived row; kept with the snapshot."""
        known: bool | None = self._cache.get("has_derived")
        return bool(self.derived.any()) if known is None else known

    @property
    def untrusted(self) -> Bool:
        """Mask of rows that are not trusted, dead ones included; kept with the snapshot. Do not
        write to it."""
        mask: Bool | None = self._cache.get("untrusted")
        if mask is None:
            mask = (self.table["signals"] & np.uint32(UNTRUSTED_SIGNAL)) != 0
            self._cache["untrusted"] = mask
            self._cache["has_untrusted"] = bool(mask.any())
        return mask

    @property
    def has_untrusted(self) -> bool:
        """Whether there is any row that is not trusted; kept with the snapshot."""
        known: bool | None = self._cache.get("has_untrusted")
        return bool(self.untrusted.any()) if known is None else known

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

    def adjacent(self, rows: Indices, link_type: int) -> tuple[I32, I32]:
        """(previous, next) row of each of distinct `rows` along links of one type; -1 for none.

        With temporal links: the turns before and after. Of several, the one nearest by number.
        """
        chains = self._chains(link_type)
        if chains is not None:
            return chains[0][rows], chains[1][rows]
        return self._adjacent(rows, link_type)

    def _chains(self, link_type: int) -> tuple[I32, I32] | None:
        """`adjacent` of every row, kept with the snapshot once it was asked for so often that
        making this costs no more than has been spent without; None until then."""
        key = ("chains", link_type)
        made: tuple[I32, I32] | int = self._cache.get(key, 0)
        if isinstance(made, tuple):
            return made
        if made * CHAINED_ROWS < self.size:
            self._cache[key] = made + 1
            return None
        before, after = np.full(self.size, -1, np.int32), np.full(self.size, -1, np.int32)
        live = np.flatnonzero(self.table["live"])
        before[live], after[live] = self._adjacent(live, link_type)
        self._cache[key] = before, after
        return before, after

    def _adjacent(self, rows: Indices, link_type: int) -> tuple[I32, I32]:
        own = self.table["number"][rows]
        numbers_before, numbers_after, known = self.links.lone_neighbours(own, link_type)
        before = self.numbers.rows(numbers_before)
        after = self.numbers.rows(numbers_after)
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

"""Links of a space, by item number, in compressed sparse rows both ways.

Kept by number, not by row: an item that is updated moves to a new row, its links stay. A link is
visible while both its ends have a row, so removing an item needs no search for its links.

`base` is immutable and sorted by (source, target); newer links are an append-only log, searched
with a mark per number; links that were replaced or removed are masked. Log and masks are merged
into `base` when they pass a tenth of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cofire.dynamics.arrays import F32, I32, I64, U8, U64, Bool
from cofire.dynamics.edges import Edges, expand, join_edges, no_edges
from cofire.graph.table import Layout, Table, rows_of

DELTA_SHARE = 10
DELTA_MIN = 1024
_FEW = 64  # links of one batch that are looked up one by one
_SEVERAL = -2

_LOG: Layout = {
    "source": (np.int64, ()),
    "target": (np.int64, ()),
    "type": (np.uint8, ()),
    "strength": (np.float32, ()),
}


@dataclass(frozen=True, slots=True)
class LinkLists:
    """Links sorted by (source, target); `out_ends[n]` ends those of source n, `in_order` lists
    link indices by (target, source), `in_ends[n]` ends those of target n."""

    source: I32
    target: I32
    type: U8
    strength: F32
    out_ends: I32
    in_order: I32
    in_ends: I32
    _lone: dict[int, tuple[I32, I32]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def nbytes(self) -> int:
        arrays = (self.source, self.target, self.type, self.strength)
        return sum(a.nbytes for a in (*arrays, self.out_ends, self.in_order, self.in_ends))

    def lone(self, kind: int) -> tuple[I32, I32]:
        """By number: the link of one type from it, and the link of that type to it, as an index;
        -1 for none, -2 for several. Made when first asked for."""
        made = self._lone.get(kind)
        if made is None:
            links = np.flatnonzero(self.type == kind).astype(np.int32)
            made = (
                _only(self.source[links], links, len(self.out_ends)),
                _only(self.target[links], links, len(self.in_ends)),
            )
            self._lone[kind] = made
        return made


def _only(ends: I32, links: I32, size: int) -> I32:
    """By number: which of `links` has it as an end."""
    found = np.full(size, -1, np.int32)
    found[ends] = links
    if len(ends):
        found[np.bincount(ends, minlength=size) > 1] = _SEVERAL
    return found


def sort_links(source: I64, target: I64, kind: U8, strength: F32) -> LinkLists:
    """Distinct (source, target) pairs of numbers < 2^31 → lists both ways."""
    order = np.lexsort((target, source))
    sources, targets = source[order].astype(np.int32), target[order].astype(np.int32)
    size = int(max(sources.max(), targets.max())) + 1 if len(order) else 0
    in_order = np.lexsort((sources, targets)).astype(np.int32)
    return LinkLists(
        sources,
        targets,
        kind[order],
        strength[order],
        np.cumsum(np.bincount(sources, minlength=size)).astype(np.int32),
        in_order,
        np.cumsum(np.bincount(targets, minlength=size)).astype(np.int32),
    )


def _slices(ends: I32, numbers: I64) -> tuple[I64, I64]:
    known = numbers < len(ends)
    places = np.where(known, numbers, 0)
    if not len(ends):
        return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    stops = ends[places].astype(np.int64)
    starts = np.where(places > 0, ends[np.maximum(places - 1, 0)], 0).astype(np.int64)
    return starts, np.where(known, stops, starts)


class Links:
    """A snapshot of links; `changed` gives the next."""

    __slots__ = ("_in_log", "base", "base_gone", "highest", "log", "log_gone")

    def __init__(
        self, base: LinkLists, base_gone: Bool | None, log: Table, log_gone: Bool | None
    ) -> None:
        self.base = base
        self.base_gone = base_gone
        """Links of `base` that were replaced or removed; None if none."""
        self.log = log
        self.log_gone = log_gone
        """The same for the first `len(log_gone)` links of `log`."""
        highest = max(len(base.out_ends) - 1, -1)
        if log.length:
            highest = max(highest, int(log["source"].max()), int(log["target"].max()))
        self.highest = highest
        self._in_log: tuple[Bool, Bool] | None = None

    @classmethod
    def empty(cls) -> Links:
        none = np.empty(0, np.int64)
        base = sort_links(none, none, np.empty(0, np.uint8), np.empty(0, np.float32))
        return cls.adopt(base)

    @classmethod
    def adopt(cls, base: LinkLists) -> Links:
        return cls(base, None, Table.empty(_LOG), None)

    @property
    def nbytes(self) -> int:
        masks = sum(mask.nbytes for mask in (self.base_gone, self.log_gone) if mask is not None)
        return self.base.nbytes + self.log.nbytes + masks

    # -- growth ------------------------------------------------------------------------------

    def changed(
        self,
        removed: Sequence[tuple[int, int]],
        source: I64,
        target: I64,
        kind: U8,
        strength: F32,
    ) -> Links:
        """Without the pairs `removed`, then with the given links, each of which replaces the one
        of the same pair. Of a pair given twice the last counts."""
        source, target, kind, strength = _last_of_pairs(source, target, kind, strength)
        gone_sources = [pair[0] for pair in removed]
        gone_targets = [pair[1] for pair in removed]
        known = (source <= self.highest) & (target <= self.highest)
        gone_sources += source[known].tolist()
        gone_targets += target[known].tolist()
        links = self._without(gone_sources, gone_targets) if gone_sources else self
        log = links.log
        if len(source):
            log = log.append(
                {"source": source, "target": target, "type": kind, "strength": strength},
                len(source),
            )
        links = Links(links.base, links.base_gone, log, links.log_gone)
        return links.merged_if_large()

    def _without(self, sources: list[int], targets: list[int]) -> Links:
        in_base, in_log = self._find(sources, targets)
        base_gone, log_gone = self.base_gone, self.log_gone
        if len(in_base):
            base_gone = (
                np.zeros(len(self.base), np.bool_) if base_gone is None else base_gone.copy()
            )
            base_gone[in_base] = True
        if len(in_log):
            fresh = np.zeros(self.log.length, np.bool_)
            if log_gone is not None:
                fresh[: len(log_gone)] = log_gone
            log_gone = fresh
            log_gone[in_log] = True
        return Links(self.base, base_gone, self.log, log_gone)

    def _find(self, sources: list[int], targets: list[int]) -> tuple[list[int], list[int]]:
        """Indices in base and log of the links of these pairs, gone ones included."""
        base, log = self.base, self.log
        if len(sources) > _FEW:
            wanted = _pair_keys(np.array(sources, np.int64), np.array(targets, np.int64))
            base_keys = _pair_keys(base.source.astype(np.int64), base.target.astype(np.int64))
            log_keys = _pair_keys(log["source"], log["target"])
            return (
                np.flatnonzero(np.isin(base_keys, wanted)).tolist(),
                np.flatnonzero(np.isin(log_keys, wanted)).tolist(),
            )
        in_base: list[int] = []
        in_log: list[int] = []
        for source, target in zip(sources, targets, strict=True):
            if 0 <= source < len(base.out_ends):
                start = int(base.out_ends[source - 1]) if source else 0
                end = int(base.out_ends[source])
                place = start + int(base.target[start:end].searchsorted(target))
                if place < end and base.target[place] == target:
                    in_base.append(place)
            if log.length:
                hits = (log["source"] == source) & (log["target"] == target)
                in_log += np.flatnonzero(hits).tolist()
        return in_base, in_log

    def merged_if_large(self) -> Links:
        delta = self.log.length
        if self.base_gone is not None:
            delta += int(np.count_nonzero(self.base_gone))
        if delta < max(DELTA_MIN, len(self.base) // DELTA_SHARE):
            return self
        return Links.adopt(sort_links(*self.arrays()))

    def arrays(self, rows: I32 | None = None) -> tuple[I64, I64, U8, F32]:
        """Every link: source, target, type, strength. With `rows` (number → row) only the visible
        ones."""
        base, log = self.base, self.log
        kept_base = slice(None) if self.base_gone is None else ~self.base_gone
        kept_log = ~self._log_gone()
        source = np.concatenate([base.source[kept_base].astype(np.int64), log["source"][kept_log]])
        target = np.concatenate([base.target[kept_base].astype(np.int64), log["target"][kept_log]])
        kind = np.concatenate([base.type[kept_base], log["type"][kept_log]])
        strength = np.concatenate([base.strength[kept_base], log["strength"][kept_log]])
        if rows is None:
            return source, target, kind, strength
        visible = (rows_of(rows, source) >= 0) & (rows_of(rows, target) >= 0)
        return source[visible], target[visible], kind[visible], strength[visible]

    def _log_gone(self) -> Bool:
        gone = np.zeros(self.log.length, np.bool_)
        if self.log_gone is not None:
            gone[: len(self.log_gone)] = self.log_gone
        return gone

    # -- look-up -----------------------------------------------------------------------------

    def edges(self, numbers: I64, *, outward: bool = True, inward: bool = True) -> Edges:
        """Links from (`outward`) and to (`inward`) distinct `numbers`; `target` holds numbers.

        Ends are not checked for being present. Order: by direction, base before log.
        """
        parts = []
        if outward:
            parts += [self._base_edges(numbers, True), self._log_edges(numbers, True)]
        if inward:
            parts += [self._base_edges(numbers, False), self._log_edges(numbers, False)]
        return join_edges(parts)

    def lone_neighbours(self, numbers: I64, kind: int) -> tuple[I64, I64, Bool]:
        """(before, after, known): the numbers that links of one type lead from and to, 0 for
        none, of those of distinct `numbers` that have at most one such link each way, which is
        told by `known`. Of the others only `edges` knows. Ends are not checked for being present.
        """
        outward, inward = self.base.lone(kind)
        after, known_after = self._lone_ends(numbers, outward, self.base.target)
        before, known_before = self._lone_ends(numbers, inward, self.base.source)
        known = known_after & known_before
        if self.log.length:
            leaving, entering = self._numbers_in_log()
            inside = np.where(numbers < len(leaving), numbers, 0)  # there is no number 0
            known &= ~(leaving[inside] | entering[inside])
        return before, after, known

    def _lone_ends(self, numbers: I64, links: I32, ends: I32) -> tuple[I64, Bool]:
        if not len(links):
            return np.zeros(len(numbers), np.int64), np.ones(len(numbers), np.bool_)
        places = links[np.where(numbers < len(links), numbers, 0)]
        found = np.where(places >= 0, ends[places], 0).astype(np.int64)
        if self.base_gone is not None:
            found[self.base_gone[places] & (places >= 0)] = 0
        return found, places != _SEVERAL

    def _numbers_in_log(self) -> tuple[Bool, Bool]:
        """Masks by number: those that a link of the log leaves, and those that one enters."""
        if self._in_log is None:
            leaving = np.zeros(self.highest + 1, np.bool_)
            entering = np.zeros(self.highest + 1, np.bool_)
            leaving[self.log["source"]] = True
            entering[self.log["target"]] = True
            self._in_log = leaving, entering
        return self._in_log

    def _base_edges(self, numbers: I64, outward: bool) -> Edges:
        base = self.base
        if not len(base):
            return no_edges()
        origins, places = expand(*_slices(base.out_ends if outward else base.in_ends, numbers))
        if not outward:
            places = base.in_order[places].astype(np.int64)
        if self.base_gone is not None and len(places):
            kept = ~self.base_gone[places]
            origins, places = origins[kept], places[kept]
        others = base.target if outward else base.source
        return Edges(
            origins,
            others[places].astype(np.int64),
            base.type[places],
            base.strength[places],
            np.full(len(places), outward),
        )

    def _log_edges(self, numbers: I64, outward: bool) -> Edges:
        log = self.log
        if not log.length or not len(numbers):
            return no_edges()
        near, far = ("source", "target") if outward else ("target", "source")
        places = np.full(self.highest + 2, -1, np.int32)
        known = numbers <= self.highest
        places[numbers[known]] = np.flatnonzero(known)
        origins = places[log[near]]
        found = origins >= 0
        if self.log_gone is not None:
            found[: len(self.log_gone)] &= ~self.log_gone
        hits = np.flatnonzero(found)
        return Edges(
            origins[hits].astype(np.int64),
            log[far][hits],
            log["type"][hits],
            log["strength"][hits],
            np.full(len(hits), outward),
        )


def _pair_keys(source: I64, target: I64) -> U64:
    return source.astype(np.uint64) << np.uint64(32) | target.astype(np.uint64)


def _last_of_pairs(source: I64, target: I64, kind: U8, strength: F32) -> tuple[I64, I64, U8, F32]:
    if len(source) < 2:
        return source, target, kind, strength
    keys = _pair_keys(source, target)
    _, last = np.unique(keys[::-1], return_index=True)
    if len(last) == len(keys):
        return source, target, kind, strength
    kept = np.sort(len(keys) - 1 - last)
    return source[kept], target[kept], kind[kept], strength[kept]

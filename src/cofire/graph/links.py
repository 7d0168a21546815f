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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofire.dynamics.arrays import F32, I32, I64, U8, U64, Bool
from cofire.dynamics.edges import Edges, expand, join_edges
from cofire.graph.table import Layout, Table, rows_of

DELTA_SHARE = 10
DELTA_MIN = 1024
_NONE: I64 = np.empty(0, np.int64)
_FEW = 64  # links of one batch that are looked up one by one
_SEVERAL = -2

_LOG: Layout = {
    "source": (np.int64, ()),
    "target": (np.int64, ()),
    "type": (np.uint8, ()),
    "strength": (np.float32, ()),
    "when": (np.int32, ()),
}


@dataclass(frozen=True, slots=True)
class Learned:
    """Learned links met from some nodes: `origin` is the position of the node among those asked
    for, `other` the number at the other end, `strength` in [0, 1] as of the minute `when`."""

    origin: I64
    other: I64
    strength: F32
    when: I32


@dataclass(frozen=True, slots=True)
class LinkLists:
    """Links sorted by (source, target); `out_ends[n]` ends those of source n, `in_order` lists
    link indices by (target, source), `in_ends[n]` ends those of target n. `when` is the minute
    (since 1970) in which a learned link had this strength, 0 for links that do not decay."""

    source: I32
    target: I32
    type: U8
    strength: F32
    when: I32
    out_ends: I32
    in_order: I32
    in_ends: I32
    _lone: dict[int, tuple[I32, I32]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column by name, as a `Table` gives it."""
        column: NDArray[Any] = getattr(self, name)
        return column

    @property
    def nbytes(self) -> int:
        arrays = (self.source, self.target, self.type, self.strength, self.when)
        return sum(a.nbytes for a in (*arrays, self.out_ends, self.in_order, self.in_ends))

    def lone(self, kind: int) -> tuple[I32, I32]:
        """By number: the other end of the link of one type to it, and of that from it; 0 for none,
        -2 for several. Made when first asked for."""
        made = self._lone.get(kind)
        if made is None:
            links = np.flatnonzero(self.type == kind)
            source, target = self.source[links], self.target[links]
            size = max(len(self.out_ends), 1)
            made = _only(target, source, size), _only(source, target, size)
            self._lone[kind] = made
        return made


def _only(ends: I32, others: I32, size: int) -> I32:
    """By number: which of `others` it is linked with as one of `ends`."""
    found = np.zeros(size, np.int32)
    found[ends] = others
    if len(ends):
        found[np.bincount(ends, minlength=size) > 1] = _SEVERAL
    return found


def sort_links(
    source: I64, target: I64, kind: U8, strength: F32, when: I32 | None = None
) -> LinkLists:
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
        np.zeros(len(order), np.int32) if when is None else when[order],
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

    __slots__ = ("_changed", "base", "base_gone", "highest", "log", "log_gone")

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
        self._changed: Bool | None = None

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
        *,
        when: I32 | None = None,
    ) -> Links:
        """Without the pairs `removed`, then with the given links, each of which replaces the one
        of the same pair. Of a pair given twice the last counts."""
        if when is None:
            when = np.zeros(len(source), np.int32)
        last = _last_of_pairs(source, target)
        if last is not None:
            source, target, kind, strength = source[last], target[last], kind[last], strength[last]
            when = when[last]
        gone_sources = [pair[0] for pair in removed]
        gone_targets = [pair[1] for pair in removed]
        known = (source <= self.highest) & (target <= self.highest)
        gone_sources += source[known].tolist()
        gone_targets += target[known].tolist()
        links = self._without(gone_sources, gone_targets) if gone_sources else self
        log = links.log
        if len(source):
            log = log.append(
                {
                    "source": source, "target": target, "type": kind, "strength": strength,
                    "when": when,
                },
                len(source),
            )  # fmt: skip
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

    def arrays(self, rows: I32 | None = None) -> tuple[I64, I64, U8, F32, I32]:
        """Every link: source, target, type, strength, when. With `rows` (number → row) only the
        visible ones."""
        base, log = self.base, self.log
        kept_base = slice(None) if self.base_gone is None else ~self.base_gone
        kept_log = ~self._log_gone()
        source = np.concatenate([base.source[kept_base].astype(np.int64), log["source"][kept_log]])
        target = np.concatenate([base.target[kept_base].astype(np.int64), log["target"][kept_log]])
        kind = np.concatenate([base.type[kept_base], log["type"][kept_log]])
        strength = np.concatenate([base.strength[kept_base], log["strength"][kept_log]])
        when = np.concatenate([base.when[kept_base], log["when"][kept_log]])
        if rows is None:
            return source, target, kind, strength, when
        visible = (rows_of(rows, source) >= 0) & (rows_of(rows, target) >= 0)
        return source[visible], target[visible], kind[visible], strength[visible], when[visible]

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

    def has(self, kind: int) -> bool:
        """Whether any link is of one type, links that have ended included."""
        return bool((self.base.type == kind).any() or (self.log["type"] == kind).any())

    def learned(self, numbers: I64, kind: int, *, inward: bool) -> Learned:
        """Links of one type from distinct `numbers`, and with `inward` those to them. Ends are not
        checked for being present."""
        found = [self._base_places(numbers, True), self._log_places(numbers, True)]
        ends = ["target", "target"]
        if inward:
            found += [self._base_places(numbers, False), self._log_places(numbers, False)]
            ends += ["source", "source"]
        parts = []
        for index, ((origins, places), end) in enumerate(zip(found, ends, strict=True)):
            held = self.log if index % 2 else self.base
            kept = held["type"][places] == kind
            chosen = places[kept]
            parts.append(
                (
                    origins[kept],
                    held[end][chosen].astype(np.int64),
                    held["strength"][chosen],
                    held["when"][chosen],
                )
            )
        return Learned(*map(np.concatenate, zip(*parts, strict=True)))

    def lone_neighbours(self, numbers: I32 | I64, kind: int) -> tuple[I32, I32, Bool]:
        """(before, after, known): the numbers that links of one type lead from and to, 0 for
        none, of those of distinct `numbers` that have at most one such link each way and none that
        changed since the last merge, which is told by `known`. Of the others only `edges` knows.
        Ends are not checked for being present.
        """
        linked_from, linked_to = self.base.lone(kind)
        inside = _within(numbers, len(linked_to))
        before, after = linked_from[inside], linked_to[inside]
        known = np.minimum(before, after) >= 0
        if self.log.length or self.base_gone is not None:
            changed = self._numbers_changed()
            known &= ~changed[_within(numbers, len(changed))]
        if not known.all():
            before[~known] = 0
            after[~known] = 0
        return before, after, known

    def _numbers_changed(self) -> Bool:
        """Mask by number: ends of the log's links and of those of `base` that are gone."""
        if self._changed is None:
            changed = np.zeros(max(self.highest + 1, 1), np.bool_)
            changed[self.log["source"]] = True
            changed[self.log["target"]] = True
            if self.base_gone is not None:
                changed[self.base.source[self.base_gone]] = True
                changed[self.base.target[self.base_gone]] = True
            self._changed = changed
        return self._changed

    def _base_places(self, numbers: I64, outward: bool) -> tuple[I64, I64]:
        """(position among `numbers`, index in `base`) of the links from or to them."""
        base = self.base
        if not len(base):
            return _NONE, _NONE
        origins, places = expand(*_slices(base.out_ends if outward else base.in_ends, numbers))
        if not outward:
            places = base.in_order[places].astype(np.int64)
        if self.base_gone is not None and len(places):
            kept = ~self.base_gone[places]
            origins, places = origins[kept], places[kept]
        return origins, places

    def _log_places(self, numbers: I64, outward: bool) -> tuple[I64, I64]:
        """(position among `numbers`, index in `log`) of the links from or to them."""
        log = self.log
        if not log.length or not len(numbers):
            return _NONE, _NONE
        places = np.full(self.highest + 2, -1, np.int32)
        known = numbers <= self.highest
        places[numbers[known]] = np.flatnonzero(known)
        origins = places[log["source" if outward else "target"]]
        found = origins >= 0
        if self.log_gone is not None:
            found[: len(self.log_gone)] &= ~self.log_gone
        hits = np.flatnonzero(found)
        return origins[hits].astype(np.int64), hits

    def _base_edges(self, numbers: I64, outward: bool) -> Edges:
        base = self.base
        origins, places = self._base_places(numbers, outward)
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
        origins, hits = self._log_places(numbers, outward)
        return Edges(
            origins,
            log["target" if outward else "source"][hits],
            log["type"][hits],
            log["strength"][hits],
            np.full(len(hits), outward),
        )


def _within(numbers: I32 | I64, size: int) -> I32 | I64:
    """`numbers`, those outside of a table of `size` replaced by 0, which is nobody's."""
    if len(numbers) and int(numbers.max()) >= size:
        return np.where(numbers < size, numbers, 0)
    return numbers


def _pair_keys(source: I64, target: I64) -> U64:
    return source.astype(np.uint64) << np.uint64(32) | target.astype(np.uint64)


def _last_of_pairs(source: I64, target: I64) -> I64 | None:
    """Which links to keep so that each pair is there once, the last it came with; None: all."""
    if len(source) < 2:
        return None
    keys = _pair_keys(source, target)
    _, last = np.unique(keys[::-1], return_index=True)
    if len(last) == len(keys):
        return None
    kept: I64 = np.sort(len(keys) - 1 - last)
    return kept

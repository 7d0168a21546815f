"""Postings: from a hashed key (term, concept, facet) to the rows that carry it.

Three parts, each immutable or append-only, so that snapshots share them:

- `base` and `recent`: compressed sparse rows sorted by key (`Lists`);
- `tail`: the raw entries of the newest rows, at most `TAIL`, searched by comparison.

A full tail is sorted into `recent`; when `recent` passes a tenth of `base`, the two are merged. An
entry costs O(1) amortised, a look-up a few microseconds. Rows only ever grow, so a list is in
ascending order of rows by itself. A removed row stays in the lists until `compacted`; callers pass
the mask of live rows, and document frequencies count only those, so they are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import I32, I64, U8, U64, Bool, Indices, Rows, distinct
from cofire.dynamics.edges import expand
from cofire.graph.table import Layout, Table

TAIL = 4096
"""Entries compared one by one on every look-up (about 2 µs a key)."""
DELTA_SHARE = 10
"""`recent` is merged into `base` when it passes 1 / DELTA_SHARE of it."""
DELTA_MIN = 32_768
"""… but not while it is smaller than this."""

_ENTRIES: Layout = {"key": (np.uint64, ()), "row": (np.int32, ()), "count": (np.uint8, ())}
_FORWARD: Layout = {"key": (np.uint64, ()), "count": (np.uint8, ())}
_OFFSETS: Layout = {"end": (np.int64, ())}


@dataclass(frozen=True, slots=True)
class Entries:
    """Occurrences in ascending order of rows: `keys` (n,), `rows` (n,), `counts` (n,) ≥ 1."""

    keys: U64
    rows: I32
    counts: U8

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Lists:
    """Compressed sparse rows: key `keys[i]` has entries `offsets[i]` to `offsets[i + 1]`."""

    keys: U64
    offsets: I64
    rows: I32
    counts: U8

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.offsets.nbytes + self.rows.nbytes + self.counts.nbytes

    def spans(self, keys: U64) -> tuple[I64, I64]:
        """Start and end of each key's entries; equal where the key is unknown."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        places = self.keys.searchsorted(keys)
        np.minimum(places, len(self.keys) - 1, out=places)
        starts = self.offsets[places]
        ends = np.where(self.keys[places] == keys, self.offsets[places + 1], starts)
        return starts, ends


def no_lists() -> Lists:
    return Lists(
        np.empty(0, np.uint64), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint8)
    )


def sort_entries(entries: Entries) -> Lists:
    """Entries → lists by key; rows keep their order within a key."""
    if not len(entries):
        return no_lists()
    order = np.argsort(entries.keys, kind="stable")
    keys = entries.keys[order]
    first = np.empty(len(keys), np.bool_)
    first[0] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    offsets = np.append(starts, len(keys)).astype(np.int64)
    return Lists(keys[starts], offsets, entries.rows[order], entries.counts[order])


def merge_lists(older: Lists, newer: Lists) -> Lists:
    """One from two, where every row of `newer` is above every row of `older`. O(n), no sorting."""
    if not len(newer):
        return older
    if not len(older):
        return newer
    keys, old_places, new_places = _merge_keys(older.keys, newer.keys)
    lengths = np.zeros(len(keys), np.int64)
    old_lengths, new_lengths = np.diff(older.offsets), np.diff(newer.offsets)
    lengths[old_places] += old_lengths
    lengths[new_places] += new_lengths
    offsets = np.zeros(len(keys) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    rows = np.empty(int(offsets[-1]), np.int32)
    counts = np.empty(len(rows), np.uint8)
    behind = np.zeros(len(keys), np.int64)
    behind[old_places] = old_lengths
    for part, places, part_lengths, extra in (
        (older, old_places, old_lengths, None),
        (newer, new_places, new_lengths, behind),
    ):
        shift = offsets[places] - part.offsets[:-1]
        if extra is not None:
            shift += extra[places]
        target = np.arange(len(part), dtype=np.int64)
        target += np.repeat(shift, part_lengths)
        rows[target] = part.rows
        counts[target] = part.counts
    return Lists(keys, offsets, rows, counts)


def _merge_keys(older: U64, newer: U64) -> tuple[U64, I64, I64]:
    """Union of two ascending arrays of distinct keys, and where in it each key of either lies."""
    at = older.searchsorted(newer)
    fresh = older[np.minimum(at, len(older) - 1)] != newer
    inserted = at[fresh] + np.arange(np.count_nonzero(fresh))
    old = np.ones(len(older) + len(inserted), np.bool_)
    old[inserted] = False
    keys = np.empty(len(old), np.uint64)
    keys[old] = older
    keys[inserted] = newer[fresh]
    return keys, np.flatnonzero(old), at + np.cumsum(fresh) - fresh


def renumber_lists(lists: Lists, new_rows: I32) -> Lists:
    """Lists over other rows: row r becomes `new_rows[r]`, or goes where that is -1. `new_rows`
    rises, so order within a key holds."""
    rows = new_rows[lists.rows]
    kept = rows >= 0
    owners = np.repeat(np.arange(len(lists.keys)), np.diff(lists.offsets))
    lengths = np.bincount(owners[kept], minlength=len(lists.keys))
    alive = lengths > 0
    offsets = np.zeros(int(alive.sum()) + 1, np.int64)
    np.cumsum(lengths[alive], out=offsets[1:])
    return Lists(lists.keys[alive], offsets, rows[kept], lists.counts[kept])


class Postings:
    """A snapshot of postings; `append` gives the next. With `forward`, `keys_of` works too."""

    __slots__ = ("_ends", "_forward", "base", "recent", "tail")

    def __init__(
        self,
        base: Lists,
        recent: Lists,
        tail: Table,
        forward: Table | None,
        ends: Table | None,
    ) -> None:
        self.base = base
        self.recent = recent
        self.tail = tail
        self._forward = forward
        self._ends = ends

    @classmethod
    def empty(cls, *, forward: bool = False) -> Postings:
        return cls(
            no_lists(),
            no_lists(),
            Table.empty(_ENTRIES),
            Table.empty(_FORWARD) if forward else None,
            Table.empty(_OFFSETS) if forward else None,
        )

    @classmethod
    def adopt(cls, lists: Lists, forward: Table | None, ends: Table | None) -> Postings:
        """From arrays that `merged` and `forward_arrays` gave (a sidecar's)."""
        return cls(lists, no_lists(), Table.empty(_ENTRIES), forward, ends)

    @property
    def nbytes(self) -> int:
        extra = sum(t.nbytes for t in (self._forward, self._ends) if t is not None)
        return self.base.nbytes + self.recent.nbytes + self.tail.nbytes + extra

    def __len__(self) -> int:
        """Entries, those of removed rows included until compaction."""
        return len(self.base) + len(self.recent) + self.tail.length

    # -- growth ------------------------------------------------------------------------------

    def append(self, entries: Entries, row_lengths: I64) -> Postings:
        """With the entries of new rows, which are above all earlier rows.

        `row_lengths` counts the entries of each new row (zeros included), in order of rows.
        """
        forward, ends = self._forward, self._ends
        if forward is not None and ends is not None:
            start = forward.length
            stops = start + np.cumsum(row_lengths)
            forward = forward.append({"key": entries.keys, "count": entries.counts}, len(entries))
            ends = ends.append({"end": stops}, len(stops))
        if self.tail.length + len(entries) <= TAIL:
            tail = self.tail
            if len(entries):
                tail = tail.append(
                    {"key": entries.keys, "row": entries.rows, "count": entries.counts},
                    len(entries),
                )
            return Postings(self.base, self.recent, tail, forward, ends)
        recent = merge_lists(self.recent, self._sorted_tail())
        recent = merge_lists(recent, sort_entries(entries))
        base = self.base
        if len(recent) >= max(DELTA_MIN, len(base) // DELTA_SHARE):
            base, recent = merge_lists(base, recent), no_lists()
        return Postings(base, recent, Table.empty(_ENTRIES), forward, ends)

    def _sorted_tail(self) -> Lists:
        tail = self.tail
        return sort_entries(Entries(tail["key"], tail["row"], tail["count"]))

    def merged(self) -> Lists:
        """All entries as one."""
        return merge_lists(merge_lists(self.base, self.recent), self._sorted_tail())

    def forward_arrays(self) -> tuple[U64, U8, I64] | None:
        """Keys and counts in order of rows, and each row's end among them."""
        if self._forward is None or self._ends is None:
            return None
        return self._forward["key"], self._forward["count"], self._ends["end"]

    def compacted(self, new_rows: I32) -> Postings:
        """Over other rows; see `renumber_lists`."""
        lists = renumber_lists(self.merged(), new_rows)
        arrays = self.forward_arrays()
        if arrays is None:
            return Postings.adopt(lists, None, None)
        keys, counts, stops = arrays
        lengths = np.diff(stops, prepend=0)
        live = new_rows >= 0
        kept = np.repeat(live, lengths)
        ends = np.cumsum(lengths[live])
        return Postings.adopt(
            lists,
            Table.full({"key": keys[kept], "count": counts[kept]}, int(kept.sum())),
            Table.full({"end": ends}, len(ends)),
        )

    # -- look-up -----------------------------------------------------------------------------

    def lookup(self, keys: U64, live: Bool | None = None) -> list[tuple[I32, U8]]:
        """For each key the rows that carry it, ascending, and how often (counts saturate at 255).

        `live` (all rows, or None if all are live) leaves out removed rows. The arrays may be views
        of the postings: do not write to them.
        """
        base_starts, base_ends = self.base.spans(keys)
        base_spans = list(zip(base_starts.tolist(), base_ends.tolist(), strict=True))
        recent_spans: Sequence[tuple[int, int]] = ()
        if len(self.recent):
            starts, ends = self.recent.spans(keys)
            recent_spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        tail_keys = self.tail["key"] if self.tail.length else None
        found = []
        for index in range(len(keys)):
            start, end = base_spans[index]
            parts = [(self.base.rows[start:end], self.base.counts[start:end])]
            if recent_spans:
                start, end = recent_spans[index]
                if end > start:
                    parts.append((self.recent.rows[start:end], self.recent.counts[start:end]))
            if tail_keys is not None:
                hits = np.flatnonzero(tail_keys == keys[index])
                if len(hits):
                    parts.append((self.tail["row"][hits], self.tail["count"][hits]))
            found.append(_joined(parts, live))
        return found

    def rows(self, key: int, live: Bool | None = None) -> I32:
        """Rows that carry `key`."""
        return self.lookup(np.array([key], np.uint64), live)[0][0]

    def contains(self, keys: U64, live: Bool | None = None) -> Bool:
        """Whether any (live) row carries each of distinct `keys`."""
        dead = _dead(live)
        entries, parts = self._occurrences(keys, dead if dead else -1)
        known: Bool = entries > dead
        if live is not None:
            for origins, rows in parts:
                known[origins[live[rows]]] = True
        return known

    def rows_sharing(self, keys: U64, most: int, live: Bool | None = None) -> Rows:
        """(Live) rows, ascending, that carry one of distinct `keys` which at least two and at most
        `most` (live) rows carry. Longer lists are not read."""
        _, parts = self._occurrences(keys, most + _dead(live))
        if not parts:
            return np.empty(0, np.intp)
        origins, rows = parts[0]
        if len(parts) > 1:
            origins = np.concatenate([part[0] for part in parts])
            rows = np.concatenate([part[1] for part in parts])
        if live is not None:
            alive = live[rows]
            origins, rows = origins[alive], rows[alive]
        fan = np.bincount(origins, minlength=len(keys))
        kept = fan[origins]
        return distinct(rows[(kept > 1) & (kept <= most)]).astype(np.intp)

    def _occurrences(self, keys: U64, most: int) -> tuple[I64, list[tuple[I64, I32]]]:
        """Entries of each of distinct `keys`, those of removed rows included; then (position
        within `keys`, row) of every entry, part by part, but none of keys with more than `most`."""
        spans = [(lists, *lists.spans(keys)) for lists in (self.base, self.recent) if len(lists)]
        entries = np.zeros(len(keys), np.int64)
        for _, starts, ends in spans:
            entries += ends - starts
        in_tail, tail_rows = self._tail_hits(keys)
        if len(in_tail):
            entries += np.bincount(in_tail, minlength=len(keys))
        short = entries <= most
        if most < 0 or not short.any():
            return entries, []
        parts = []
        for lists, starts, ends in spans:
            origins, places = expand(starts, np.where(short, ends, starts))
            parts.append((origins, lists.rows[places]))
        if len(in_tail):
            kept = short[in_tail]
            parts.append((in_tail[kept], tail_rows[kept]))
        return entries, parts

    def _tail_hits(self, keys: U64) -> tuple[I64, I32]:
        """(position within `keys`, row) of the tail's entries."""
        if not self.tail.length or not len(keys):
            return np.empty(0, np.int64), np.empty(0, np.int32)
        order = np.argsort(keys)
        tail = self.tail["key"]
        places = np.minimum(keys.searchsorted(tail, sorter=order), len(keys) - 1)
        places = order[places]
        hits = np.flatnonzero(keys[places] == tail)
        return places[hits].astype(np.int64), self.tail["row"][hits]

    def any_of(self, keys: Iterable[int], size: int) -> Bool:
        """Mask over `size` rows: those that carry one of `keys` (removed rows included)."""
        mask = np.zeros(size, np.bool_)
        for rows, _ in self.lookup(np.array(list(keys), np.uint64)):
            mask[rows] = True
        return mask

    def keys_of(self, rows: Indices) -> tuple[I64, U64, U8]:
        """(position within `rows`, key, count) of every key of `rows`, in that order.

        Raises:
            TypeError: these postings keep no forward index.
        """
        arrays = self.forward_arrays()
        if arrays is None:
            raise TypeError("these postings were made without forward=True")
        keys, counts, stops = arrays
        before = rows - 1
        starts = stops[before]
        starts[before < 0] = 0
        ends = stops[rows]
        origins, places = expand(starts, ends)
        return origins, keys[places], counts[places]


def _dead(live: Bool | None) -> int:
    return 0 if live is None else len(live) - int(np.count_nonzero(live))


def _joined(parts: list[tuple[I32, U8]], live: Bool | None) -> tuple[I32, U8]:
    rows, counts = parts[0]
    if len(parts) > 1:
        rows = np.concatenate([part[0] for part in parts])
        counts = np.concatenate([part[1] for part in parts])
    if live is not None and len(rows):
        alive = live[rows]
        if not alive.all():
            rows, counts = rows[alive], counts[alive]
    return rows, counts

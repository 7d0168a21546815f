"""From the store's rows to arrays: the columns of a batch, its postings and its vectors.

Rows are plain tuples in this order (the store's `GraphRow`): number, uid, revision, parent, kind,
speaker, session, time, event_start, event_end, expires, importance, pinned, signals, length,
terms, concepts, facets, vector, valid_from, valid_to, recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cofire.dynamics.arrays import F16, I64, Bool
from cofire.dynamics.ranking import split_uids
from cofire.errors import StoreCorruptError
from cofire.graph.postings import Entries
from cofire.graph.table import Layout
from cofire.graph.vectors import usable_rows

NO_TIME = np.iinfo(np.int64).min
"""`event_start`, `event_end` of a row that tells of no event."""
NEVER = np.iinfo(np.int64).max
"""`expires` of a row that does not expire, `valid_to` of one that holds without end."""
ALWAYS = np.iinfo(np.int64).min
"""`valid_from` of a row that holds without beginning."""
NOBODY = -1
"""`speaker`, `session` of a row that has none."""

COLUMNS: Layout = {
    "number": (np.int32, ()),
    "parent": (np.int32, ()),
    "uid_high": (np.uint64, ()),
    "uid_low": (np.uint64, ()),
    "kind": (np.uint8, ()),
    "speaker": (np.int32, ()),
    "session": (np.int32, ()),
    "time": (np.int64, ()),
    "event_start": (np.int64, ()),
    "event_end": (np.int64, ()),
    "expires": (np.int64, ()),
    "valid_from": (np.int64, ()),
    "valid_to": (np.int64, ()),
    "recorded": (np.int64, ()),
    "importance": (np.uint8, ()),
    "pinned": (np.bool_, ()),
    "signals": (np.uint32, ()),
    "length": (np.int32, ()),
    "has_vector": (np.bool_, ()),
    "live": (np.bool_, ()),
}
"""Columns of the active graph besides `vector` and `scan`. Times are microseconds since 1970 UTC;
`speaker` and `session` are codes of an `Interned`."""

_PAIR = 9  # bytes of a packed (hash, count)


class Changes(Protocol):
    """What the store gives for "everything since revision r" (see `store.records.Changes`)."""

    @property
    def revision(self) -> int: ...
    @property
    def rebuild(self) -> bool: ...
    @property
    def rows(self) -> Sequence[Any]: ...
    @property
    def links(self) -> Sequence[Any]: ...
    @property
    def removed_items(self) -> Sequence[int]: ...
    @property
    def removed_links(self) -> Sequence[tuple[int, int]]: ...


class Interned:
    """Hashes ↔ small codes in order of first sight; only ever grows, so snapshots share it."""

    __slots__ = ("_codes", "_hashes", "_lock")

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._hashes = list(hashes)
        self._codes = {value: code for code, value in enumerate(self._hashes)}
        self._lock = threading.Lock()

    def codes(self, hashes: Sequence[int]) -> list[int]:
        """Codes of `hashes`, new ones given where needed; `NOBODY` for 0."""
        known = self._codes
        fresh = {value for value in set(hashes) if value and value not in known}
        if fresh:
            with self._lock:
                for value in hashes:
                    if value in fresh and value not in known:
                        self._hashes.append(value)
                        known[value] = len(self._hashes) - 1
        return [known[value] if value else NOBODY for value in hashes]

    def code(self, value: int) -> int:
        """The code of a hash, `NOBODY` if it was never seen."""
        return self._codes.get(value, NOBODY)

    def __len__(self) -> int:
        return len(self._hashes)

    def hash(self, code: int) -> int:
        """The inverse; 0 for `NOBODY`."""
        return self._hashes[code] if code >= 0 else 0

    def hashes(self) -> list[int]:
        return list(self._hashes)

    def compacted(self, codes: NDArray[np.int32]) -> tuple[Interned, NDArray[np.int32]]:
        """Only what `codes` use, and `codes` in its terms: no trace is left of other hashes."""
        used = np.unique(codes[codes >= 0])
        fresh = Interned(self._hashes[code] for code in used.tolist())
        new_codes = np.full(len(self._hashes) + 1, NOBODY, np.int32)  # [-1] stays NOBODY
        new_codes[used] = np.arange(len(used), dtype=np.int32)
        return fresh, new_codes[codes]

    @property
    def nbytes(self) -> int:
        return 180 * len(self._hashes)  # two ints, a dict entry, a list entry


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows as arrays: table columns (with `vector`), and the postings of each kind."""

    count: int
    columns: dict[str, NDArray[Any]]
    terms: tuple[Entries, I64]
    concepts: tuple[Entries, I64]
    facets: tuple[Entries, I64]


def read_batch(
    rows: Sequence[Any], first_row: int, dimension: int, speakers: Interned, sessions: Interned
) -> Batch:
    """`rows` as arrays, to lie from row `first_row` on.

    A vector of another length, zero or not finite counts as none: it cannot be ranked.

    Raises:
        StoreCorruptError: a packed column is not of whole entries.
    """
    (
        number, uid, _, parent, kind, speaker, session, time, event_start, event_end, expires,
        importance, pinned, signals, length, terms, concepts, facets, vector,
        valid_from, valid_to, recorded,
    ) = zip(*rows, strict=True)  # fmt: skip
    count = len(number)
    numbers = np.array(number, np.int32)
    high, low = split_uids(list(uid))
    vectors, has_vector = read_vectors(vector, dimension)
    columns: dict[str, NDArray[Any]] = {
        "number": numbers,
        "parent": np.array(parent, np.int32),
        "uid_high": high,
        "uid_low": low,
        "kind": np.array(kind, np.uint8),
        "speaker": np.array(speakers.codes(speaker), np.int32),
        "session": np.array(sessions.codes(session), np.int32),
        "time": np.array(time, np.int64),
        "event_start": _with_default(event_start, NO_TIME),
        "event_end": _with_default(event_end, NO_TIME),
        "expires": _with_default(expires, NEVER),
        "valid_from": _with_default(valid_from, ALWAYS),
        "valid_to": _with_default(valid_to, NEVER),
        "recorded": np.array(recorded, np.int64),
        "importance": np.array(importance, np.uint8),
        "pinned": np.array(pinned, np.bool_),
        "signals": np.array(signals, np.uint32),
        "length": np.array(length, np.int32),
        "has_vector": has_vector,
        "live": np.ones(count, np.bool_),
        "vector": vectors,
    }
    return Batch(
        count,
        columns,
        read_pairs(terms, first_row, number, "terms"),
        read_pairs(concepts, first_row, number, "concepts"),
        read_facets(facets, first_row, number),
    )


def read_vectors(blobs: Sequence[bytes | None], dimension: int) -> tuple[F16, Bool]:
    """float16 little-endian blobs → (n, dimension), and which are usable; others become zero."""
    size = 2 * dimension
    none = bytes(size)
    joined = b"".join([b if b is not None and len(b) == size else none for b in blobs])
    vectors = np.frombuffer(joined, "<f2").astype(np.float16, copy=False).reshape(-1, dimension)
    usable = usable_rows(vectors)
    if not usable.all():
        vectors = vectors.copy()
        vectors[~usable] = 0
    return vectors, usable


def read_pairs(
    blobs: Sequence[bytes | None], first_row: int, numbers: Sequence[int], what: str
) -> tuple[Entries, I64]:
    """n × uint64 hash, then n × uint8 count, per row → entries, and how many each row has."""
    sizes = [len(blob) if blob else 0 for blob in blobs]
    lengths = np.array(sizes, np.int64)
    _check_whole(lengths, _PAIR, numbers, what)
    lengths //= _PAIR
    heads, tails = [], []
    for blob in blobs:
        if blob:
            cut = len(blob) // _PAIR * 8
            heads.append(blob[:cut])
            tails.append(blob[cut:])
    keys = np.frombuffer(b"".join(heads), "<u8").astype(np.uint64, copy=False)
    counts = np.frombuffer(b"".join(tails), np.uint8)
    return Entries(keys, _row_of_each(lengths, first_row), counts), lengths


def read_facets(
    blobs: Sequence[bytes | None], first_row: int, numbers: Sequence[int]
) -> tuple[Entries, I64]:
    """n × uint64 hash per row → entries (count 1), and how many each row has."""
    lengths = np.array([len(blob) if blob else 0 for blob in blobs], np.int64)
    _check_whole(lengths, 8, numbers, "facets")
    lengths //= 8
    keys = np.frombuffer(b"".join([b for b in blobs if b]), "<u8").astype(np.uint64, copy=False)
    counts = np.ones(len(keys), np.uint8)
    return Entries(keys, _row_of_each(lengths, first_row), counts), lengths


def _row_of_each(lengths: I64, first_row: int) -> NDArray[np.int32]:
    rows = np.arange(first_row, first_row + len(lengths), dtype=np.int32)
    return np.repeat(rows, lengths)


def _check_whole(sizes: I64, unit: int, numbers: Sequence[int], what: str) -> None:
    remainders = sizes % unit
    if remainders.any():
        broken = np.flatnonzero(remainders)
        raise StoreCorruptError(
            f"item {numbers[int(broken[0])]} has a malformed {what} column "
            f"({len(broken)} such items); run `cofire doctor` to mend it"
        )


def _with_default(values: Sequence[int | None], default: int) -> I64:
    return np.array([default if value is None else value for value in values], np.int64)


def join_entries(parts: Sequence[tuple[Entries, I64]]) -> tuple[Entries, I64]:
    """Entries of consecutive batches as one."""
    if len(parts) == 1:
        return parts[0]
    entries = [part[0] for part in parts]
    return (
        Entries(
            np.concatenate([e.keys for e in entries]),
            np.concatenate([e.rows for e in entries]),
            np.concatenate([e.counts for e in entries]),
        ),
        np.concatenate([part[1] for part in parts]),
    )

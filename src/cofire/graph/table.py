"""Append-only columns that snapshots share: the ground of copy-on-write in the active graph.

A `Table` is a snapshot: columns of `length` rows. `append` returns a longer snapshot which shares
the memory of the old one; the old one never sees the new rows, because it reads only its own
`length`. Rows once written are never changed in place. Only the newest snapshot of a line can be
extended in place; extending an older one copies first (it "forks"), so a snapshot is valid for
ever, whatever other threads do.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_CLAIM = threading.Lock()  # held for two integer operations, never while copying

Layout = Mapping[str, tuple[DTypeLike, tuple[int, ...]]]
"""Name → dtype and shape of one row."""

MIN_CAPACITY = 64


class _Storage:
    """The memory of a line of snapshots; rows from `used` on are free."""

    __slots__ = ("arrays", "capacity", "used")

    def __init__(self, arrays: dict[str, NDArray[Any]], capacity: int, used: int) -> None:
        self.arrays = arrays
        self.capacity = capacity
        self.used = used

    def claim(self, start: int, count: int) -> bool:
        """Take rows [start, start + count) for the caller, if they are the next free ones."""
        with _CLAIM:
            if self.used != start or start + count > self.capacity:
                return False
            self.used = start + count
            return True

    def retire(self, start: int) -> bool:
        """Give up extending; whether the caller, at `start`, was the newest snapshot."""
        with _CLAIM:
            newest = self.used == start
            if newest:
                self.used = self.capacity + 1
            return newest


class Table:
    """A snapshot of equal-length columns; see the module's text for the rule."""

    __slots__ = ("_storage", "_views", "length")

    def __init__(self, storage: _Storage, length: int) -> None:
        self._storage = storage
        self._views: dict[str, NDArray[Any]] = {}
        self.length = length

    @classmethod
    def empty(cls, layout: Layout, capacity: int = MIN_CAPACITY) -> Table:
        arrays = {
            name: np.empty((capacity, *shape), dtype) for name, (dtype, shape) in layout.items()
        }
        return cls(_Storage(arrays, capacity, 0), 0)

    @classmethod
    def full(cls, arrays: Mapping[str, NDArray[Any]], length: int) -> Table:
        """Adopt `arrays` (of one capacity ≥ `length`) of which the first `length` rows are set."""
        capacity = min((len(array) for array in arrays.values()), default=length)
        return cls(_Storage(dict(arrays), capacity, length), length)

    def __getitem__(self, name: str) -> NDArray[Any]:
        view = self._views.get(name)
        if view is None:
            view = self._storage.arrays[name][: self.length]
            view.flags.writeable = False
            self._views[name] = view
        return view

    def __len__(self) -> int:
        return self.length

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._storage.arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in use (free capacity is untouched virtual memory)."""
        return sum(self[name].nbytes for name in self._storage.arrays)

    def append(self, batch: Mapping[str, NDArray[Any] | Sequence[Any]], count: int) -> Table:
        """A snapshot with `count` more rows; `batch` has every column."""
        start, end = self.length, self.length + count
        storage = self._storage
        if not storage.claim(start, count):
            storage = self._grown(end)
            storage.used = end
        for name, array in storage.arrays.items():
            array[start:end] = batch[name]
        return Table(storage, end)

    def _grown(self, needed: int) -> _Storage:
        capacity = max(MIN_CAPACITY, needed + needed // 2)
        arrays: dict[str, NDArray[Any]] = {}
        for name, old in self._storage.arrays.items():
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[: self.length] = old[: self.length]
            arrays[name] = new
        return _Storage(arrays, capacity, self.length)

    def replaced(self, columns: Mapping[str, NDArray[Any] | None]) -> Table:
        """A snapshot with whole columns set anew (of at least `length` rows), or dropped (None).

        The other columns stay shared; the old line can then no longer be extended in place.
        """
        newest = self._storage.retire(self.length)
        base = self._storage if newest else self._grown(self.length)
        capacity = base.capacity
        arrays = dict(base.arrays)
        for name, values in columns.items():
            if values is None:
                arrays.pop(name, None)
                continue
            array = np.empty((capacity, *values.shape[1:]), values.dtype)
            array[: self.length] = values[: self.length]
            arrays[name] = array
        return Table(_Storage(arrays, capacity, self.length), self.length)


def rows_of(row_by_number: NDArray[np.int32], numbers: NDArray[Any]) -> NDArray[np.int32]:
    """Rows of `numbers` (≥ 0); -1 where there is none."""
    size = len(row_by_number)
    if not size:
        return np.full(len(numbers), -1, np.int32)
    if len(numbers) and int(numbers.max()) >= size:
        known = numbers < size
        return np.where(known, row_by_number[np.where(known, numbers, 0)], np.int32(-1))
    found: NDArray[np.int32] = row_by_number[numbers]
    return found


class NumberMap:
    """number → row, as a dense array; -1 where there is none. Snapshots share it as tables do:
    higher numbers are written behind the end, changes of known numbers copy."""

    __slots__ = ("_table",)

    def __init__(self, table: Table | None = None) -> None:
        self._table = Table.empty({"row": (np.int32, ())}) if table is None else table

    @property
    def array(self) -> NDArray[np.int32]:
        return self._table["row"]

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    def get(self, number: int) -> int:
        array = self.array
        return int(array[number]) if 0 <= number < len(array) else -1

    def rows(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Rows of `numbers` (-1 where there is none)."""
        return rows_of(self.array, numbers)

    def with_rows(self, numbers: NDArray[np.int64], rows: NDArray[np.int32]) -> NumberMap:
        """A map with `numbers` (≥ 0, distinct) at `rows` (-1: removed)."""
        if not len(numbers):
            return self
        size = len(self.array)
        table = self._table
        if int(numbers.min()) < size:
            array = self.array.copy()
            known = numbers < size
            array[numbers[known]] = rows[known]
            table = table.replaced({"row": array})
            numbers, rows = numbers[~known], rows[~known]
            if not len(numbers):
                return NumberMap(table)
        count = int(numbers.max()) + 1 - size
        tail = np.full(count, -1, np.int32)
        tail[numbers - size] = rows
        return NumberMap(table.append({"row": tail}, count))

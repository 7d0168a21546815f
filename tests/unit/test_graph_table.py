"""Append-only columns shared by snapshots."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from cofire.graph.table import NumberMap, Table

LAYOUT = {"a": (np.int32, ()), "b": (np.float16, (2,))}


def grown(table: Table, *values: int) -> Table:
    count = len(values)
    return table.append({"a": list(values), "b": np.full((count, 2), values[0])}, count)


def test_snapshots_keep_their_own_length() -> None:
    first = grown(Table.empty(LAYOUT, 2), 1)
    second = grown(first, 2, 3)
    third = grown(second, 4)
    assert [t["a"].tolist() for t in (first, second, third)] == [[1], [1, 2, 3], [1, 2, 3, 4]]
    assert third["b"].shape == (4, 2)
    assert third.nbytes == 4 * (4 + 4)


def test_appending_in_place_copies_nothing() -> None:
    first = grown(Table.empty(LAYOUT, 8), 1)
    second = grown(first, 2)
    assert np.shares_memory(first["a"], second["a"])


def test_the_second_to_extend_a_snapshot_copies() -> None:
    first = grown(Table.empty(LAYOUT, 8), 1)
    one, other = grown(first, 2), grown(first, 3)
    assert one["a"].tolist() == [1, 2]
    assert other["a"].tolist() == [1, 3]
    assert not np.shares_memory(one["a"], other["a"])


def test_replacing_a_column_shares_the_others_and_ends_the_old_line() -> None:
    first = grown(Table.empty(LAYOUT, 8), 1, 2)
    changed = first.replaced({"a": np.array([7, 8], np.int32)})
    assert np.shares_memory(first["b"], changed["b"])
    after, aside = grown(changed, 9), grown(first, 3)
    assert after["a"].tolist() == [7, 8, 9]
    assert aside["a"].tolist() == [1, 2, 3]
    assert first["a"].tolist() == [1, 2]
    assert first.replaced({"b": None}).names == ("a",)


def test_views_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        grown(Table.empty(LAYOUT), 1)["a"][0] = 2


def test_threads_that_extend_one_snapshot_never_mix() -> None:
    base = grown(Table.empty(LAYOUT, 4096), 0)
    results: dict[int, Table] = {}

    def work(mark: int) -> None:
        table = base
        for _ in range(200):
            table = grown(table, mark, mark)
        results[mark] = table

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for mark, table in results.items():
        assert table["a"].tolist() == [0] + [mark] * 400


def numbers(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def rows(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(values, np.int32)


def test_number_maps_keep_their_past() -> None:
    first = NumberMap().with_rows(numbers(3, 1), rows(10, 11))
    second = first.with_rows(numbers(3, 6), rows(-1, 12))
    assert first.rows(numbers(0, 1, 2, 3, 6)).tolist() == [-1, 11, -1, 10, -1]
    assert second.rows(numbers(1, 3, 5, 6, 99)).tolist() == [11, -1, -1, 12, -1]
    assert (second.get(6), second.get(7), second.get(-1)) == (12, -1, -1)
    assert second.with_rows(numbers(), rows()) is second

"""The digest of a copy: of rows in any order, and of nothing else than just these rows."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cofire.store.copied_rows import Tally, canonical

VALUES = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(), st.binary())
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=8)


def tally(rows: list[Any]) -> Tally:
    return Tally().counted([canonical(row) for row in rows])


def exact(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """What tells values apart that Python calls equal, such as 1 and 1.0."""
    return tuple(
        (type(value), struct.pack(">d", value) if isinstance(value, float) else value)
        for value in row
    )


@given(ROWS, st.randoms(use_true_random=False), st.integers(0, 8))
def test_order_and_portions_do_not_matter(rows: list[Any], random: Any, cut: int) -> None:
    shuffled = random.sample(rows, len(rows))
    assert tally(shuffled) == tally(rows)
    assert tally(rows[:cut]) + tally(rows[cut:]) == tally(rows)
    assert Tally.read(len(rows), tally(rows).digest) == tally(rows)


@given(st.lists(VALUES, max_size=3), st.lists(VALUES, max_size=3))
def test_other_values_are_written_otherwise(one: list[Any], other: list[Any]) -> None:
    assert (canonical(one) == canonical(other)) == (exact(tuple(one)) == exact(tuple(other)))


@given(ROWS, st.integers(0, 7), st.tuples(VALUES, VALUES))
def test_a_changed_row_is_seen(rows: list[Any], at: int, new: tuple[Any, Any]) -> None:
    if at < len(rows) and exact(rows[at]) != exact(new):
        assert tally([*rows[:at], new, *rows[at + 1 :]]).digest != tally(rows).digest

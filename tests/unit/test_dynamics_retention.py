"""The rules of forgetting on values that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cofire.dynamics import retention
from cofire.dynamics.arrays import I64, Bool
from cofire.dynamics.plasticity import DAY_US


def numbers(*values: int) -> I64:
    return np.array(values, np.int64)


def flags(*values: bool) -> Bool:
    return np.array(values, np.bool_)


def test_a_pinned_or_important_memory_is_kept() -> None:
    pinned, importance = flags(True, False, False), numbers(1, 8, 7)
    assert retention.kept(pinned, importance).tolist() == [True, True, False]
    assert retention.kept(pinned, importance, least=11).tolist() == [True, False, False]


def test_importance_falls_by_one_for_each_thirty_days_without_access() -> None:
    last = numbers(0, 10 * DAY_US, 40 * DAY_US)
    due = retention.steps_due(last, 0, 65 * DAY_US, 30.0)
    assert due.tolist() == [2, 1, 0]
    lower = retention.lowered(
        numbers(5, 5, 5), due, flags(False, False, False), np.zeros(3), protect_strength=0.5
    )
    assert lower.tolist() == [3, 4, 5]


def test_importance_never_falls_below_one() -> None:
    lower = retention.lowered(
        numbers(2), numbers(9), flags(False), np.zeros(1), protect_strength=0.5
    )
    assert lower.tolist() == [1]


def test_what_is_strongly_linked_keeps_its_importance() -> None:
    lower = retention.lowered(
        numbers(5, 5), numbers(1, 1), flags(False, False), np.array([0.5, 0.49]),
        protect_strength=0.5,
    )  # fmt: skip
    assert lower.tolist() == [5, 4]


def test_only_the_old_unused_and_unimportant_are_archived() -> None:
    days = numbers(91, 90, 91, 91, 91) * DAY_US
    found = retention.archivable(
        numbers(1, 1, 2, 1, 1), numbers(0, 0, 0, 1, 0), days,
        flags(False, False, False, False, True), archive_days=90.0,
    )  # fmt: skip
    assert found.tolist() == [True, False, False, False, False]


def test_adaptive_forgetting_wants_all_three() -> None:
    long, short = 91 * DAY_US, 89 * DAY_US
    found = retention.forgettable(
        np.array([0.4, 0.5, 0.4, 0.4, 0.4]),
        numbers(long, long, short, long, long),
        numbers(long, long, long, short, long),
        flags(False, False, False, False, True),
        idle_strength=0.5, idle_days=90.0,
    )  # fmt: skip
    assert found.tolist() == [True, False, False, False, False]


def test_weak_links_go_after_sixty_idle_days() -> None:
    found = retention.prunable(
        np.array([0.09, 0.1, 0.09]), numbers(61, 61, 60) * DAY_US, below=0.1, idle_days=60.0
    )
    assert found.tolist() == [True, False, False]


def test_the_weakest_links_beyond_k_go() -> None:
    gone = retention.beyond(
        numbers(9, 9, 9, 8), np.array([0.5, 0.2, 0.5, 0.1]), numbers(3, 1, 2, 1), most=2
    )
    assert gone.tolist() == [False, True, False, False]
    gone = retention.beyond(numbers(9, 9), np.array([0.5, 0.5]), numbers(3, 2), most=1)
    assert gone.tolist() == [True, False]  # equal: the lower source stays


def test_the_graph_shrinks_by_what_is_needed_and_dormant_ones_go_first() -> None:
    score = np.array([0.1, 0.2, 0.3, 0.0])
    order = retention.surplus(
        score, flags(False, False, True, False), numbers(1, 2, 3, 4), numbers(1, 1, 1, 1),
        flags(False, False, False, True), over=2,
    )  # fmt: skip
    assert order.tolist() == [2, 0]
    enough = retention.surplus(
        score, flags(*[False] * 4), numbers(*[1] * 4), numbers(*[1] * 4), flags(*[False] * 4),
        over=0,
    )  # fmt: skip
    assert enough.tolist() == []


def test_a_memory_of_many_segments_frees_as_many_rows() -> None:
    order = retention.surplus(
        np.array([0.1, 0.2]), flags(True, True), numbers(1, 1), numbers(20, 1),
        flags(False, False), over=5,
    )  # fmt: skip
    assert order.tolist() == [0]


def test_constants_out_of_range_are_refused() -> None:
    one = numbers(1)
    with pytest.raises(ValueError, match="step_days"):
        retention.steps_due(one, 0, 1, 0.0)
    with pytest.raises(ValueError, match="idle_days"):
        retention.prunable(np.ones(1), one, below=0.1, idle_days=float("nan"))
    with pytest.raises(ValueError, match="most"):
        retention.beyond(one, np.ones(1), one, most=0)
    with pytest.raises(ValueError, match="shares"):
        retention.RetentionShares(importance=0.9)

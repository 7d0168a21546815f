"""Order that does not depend on rows."""

from __future__ import annotations

import numpy as np

from cofire.dynamics.ranking import best, best_positions, round_scores, split_uids, top_k


def test_scores_round_to_a_millionth_without_negative_zero() -> None:
    rounded = round_scores(np.array([0.12345649, -1e-9, 2.0000005]))
    assert rounded.tolist() == [0.123456, 0.0, 2.0]
    assert not np.signbit(rounded[1])


def test_ids_order_as_their_bytes() -> None:
    uids = [bytes([0] * 15 + [2]), bytes([1] + [0] * 15), bytes([255] * 16)]
    high, low = split_uids(uids)
    assert np.lexsort((low, high)).tolist() == [0, 1, 2]
    assert low[0] == 2


def test_equal_scores_go_by_id() -> None:
    high = np.array([5, 5, 1], np.uint64)
    low = np.array([9, 3, 7], np.uint64)
    assert top_k(np.array([1.0, 1.0, 1.0]), high, low, 2).tolist() == [2, 1]


def test_nearly_equal_scores_count_as_equal() -> None:
    high, low = np.zeros(2, np.uint64), np.array([2, 1], np.uint64)
    rows, scores = best(np.array([0.5000001, 0.5]), high, low, 1)
    assert rows.tolist() == [1]
    assert scores.tolist() == [0.5]


def test_minus_infinity_is_never_chosen() -> None:
    scores = np.array([-np.inf, 1.0, -np.inf])
    ids = np.arange(3, dtype=np.uint64)
    assert top_k(scores, ids, ids, 3).tolist() == [1]
    assert best(np.full(3, -np.inf), ids, ids, 3)[0].tolist() == []


def test_nothing_asked_or_there() -> None:
    none = np.empty(0, np.uint64)
    assert best_positions(np.array([1.0]), 0).tolist() == []
    assert top_k(np.empty(0), none, none, 5).tolist() == []


def test_subset_gives_rows() -> None:
    ids = np.arange(10, dtype=np.uint64)
    rows = np.array([7, 2, 4])
    assert top_k(np.array([0.1, 0.9, 0.5]), ids, ids, 2, rows).tolist() == [2, 4]

"""Retrieval metrics by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.evaluation.metrics import at_k, mean, percentile


def test_at_k() -> None:
    found = at_k(["c", "a", "x", "b"], ["a", "b"], 3)
    assert (found.share, found.any, found.all) == (0.5, True, False)
    assert at_k(["c", "a", "x", "b"], ["a", "b"], 4).all
    nothing = at_k(["c"], ["a"], 10)
    assert (nothing.share, nothing.any, nothing.all) == (0.0, False, False)


def test_evidence_told_twice_counts_once() -> None:
    assert at_k(["a"], ["a", "a"], 1).all


def test_without_evidence_there_is_no_recall() -> None:
    with pytest.raises(ValueError, match="without evidence"):
        at_k(["a"], [], 1)


@given(st.lists(st.integers(0, 9), unique=True), st.sets(st.integers(0, 9), min_size=1))
def test_more_places_never_find_less(ranked: list[int], evidence: set[int]) -> None:
    shares = [at_k(ranked, list(evidence), k).share for k in range(11)]
    assert shares == sorted(shares)
    assert shares[10] == len(evidence.intersection(ranked)) / len(evidence)


def test_mean_and_percentile() -> None:
    assert mean([]) == 0.0
    assert mean([1, 2, 6]) == 3.0
    assert percentile([], 0.5) == 0.0
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert percentile([4.0, 1.0], 1.0) == 4.0
    assert percentile([4.0], 0.95) == 4.0

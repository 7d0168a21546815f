"""BM25, cosine on float16, normalisations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cofire.dynamics.scoring import (
    Bm25,
    bm25_reference,
    bm25_term,
    cosine,
    divide_by_maximum,
    dot_products,
    inverse_document_frequency,
    length_norms,
    minmax,
    saturate,
    standardise,
    unit,
    unit_cosine,
    widen,
)


def test_widen_is_exact_for_every_finite_float16() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    assert np.array_equal(widen(finite), finite.astype(np.float32))
    assert np.array_equal(np.signbit(widen(finite)), np.signbit(finite))


def test_idf_is_positive_and_falls_with_frequency() -> None:
    values = [inverse_document_frequency(10, n) for n in range(11)]
    assert values == sorted(values, reverse=True)
    assert values[10] > 0
    assert values[1] == pytest.approx(math.log(1 + 9.5 / 1.5))


def test_bm25_by_hand() -> None:
    constants = Bm25(k1=1.2, b=0.75)
    norms = length_norms(np.array([2.0, 4.0], np.float32), 3.0, constants)
    gains = bm25_term(np.array([1, 2], np.uint8), norms, 0.5, constants)
    assert gains[0] == pytest.approx(0.5 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 3)))
    assert gains[1] == pytest.approx(0.5 * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 3)))


def test_the_reference_agrees_by_hand() -> None:
    documents = [{"a": 1}, {"a": 2, "b": 2}]
    scores = bm25_reference(documents, [1, 4], ["b", "c"], Bm25())
    idf = math.log(1 + 1.5 / 1.5)
    assert scores == [0.0, pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 2.5)))]


def test_no_documents_leave_length_out() -> None:
    assert length_norms(np.array([3.0], np.float32), 0.0, Bm25(k1=2.0)).tolist() == [2.0]


@pytest.mark.parametrize("bad", [{"k1": -1.0}, {"k1": math.nan}, {"b": 1.5}, {"b": -0.1}])
def test_constants_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="BM25"):
        Bm25(**bad)


def test_cosine_divides_by_both_lengths() -> None:
    stored = np.array([[3, 4], [0, 0], [-6, -8]], np.float16)
    assert cosine(stored, np.array([0.6, 0.8])) == pytest.approx([1.0, 0.0, -1.0])
    assert cosine(stored, np.zeros(2)).tolist() == [0.0, 0.0, 0.0]


def test_dot_products_do_not_depend_on_the_place() -> None:
    rng = np.random.default_rng(1)
    stored = rng.standard_normal((5000, 33)).astype(np.float16)
    vector = rng.standard_normal(33)
    whole = np.round(dot_products(stored, vector), 9)
    apart = [round(float(dot_products(stored[i : i + 1], vector)[0]), 9) for i in (0, 2047, 4999)]
    assert whole[[0, 2047, 4999]].tolist() == apart


@pytest.mark.parametrize("bad", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 0.0], [1e200, 1e200]])
def test_a_vector_that_points_nowhere_has_no_unit(bad: list[float]) -> None:
    assert unit(np.array(bad)) is None


def test_normalisations() -> None:
    scores = np.array([1.0, 3.0, 2.0])
    assert divide_by_maximum(scores) == pytest.approx([1 / 3, 1.0, 2 / 3])
    assert minmax(scores).tolist() == [0.0, 1.0, 0.5]
    assert standardise(scores).sum() == pytest.approx(0.0)
    assert saturate(scores, 1.0) == pytest.approx([0.5, 0.75, 2 / 3])
    assert unit_cosine(np.array([-1.0, 0.0, 1.0])).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("normalise", [divide_by_maximum, minmax, standardise])
def test_normalisations_of_nothing_and_of_equals(normalise: object) -> None:
    assert callable(normalise)
    assert normalise(np.empty(0)).tolist() == []
    assert normalise(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def test_saturation_needs_a_positive_half() -> None:
    with pytest.raises(ValueError, match="positive"):
        saturate(np.ones(1), 0.0)

"""Fitting weights: the loss's derivatives, and data whose best weights are known."""

from __future__ import annotations

import numpy as np
import pytest

from cofire.evaluation.fitting import Example, _loss, fit_weights


def examples(count: int = 40, candidates: int = 30, terms: int = 4, seed: int = 0) -> list[Example]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        matrix = rng.standard_normal((candidates, terms))
        evidence = rng.choice(candidates, rng.integers(1, 4), replace=False).astype(np.int64)
        made.append(Example(matrix, evidence))
    return made


def test_gradient_and_curvature_are_those_of_the_loss() -> None:
    data = examples()
    weights = np.array([0.3, -1.0, 0.5, 2.0])
    _, gradient, curvature = _loss(data, weights, 0.1)
    step = 1e-5
    for index in range(len(weights)):
        shift = np.eye(len(weights))[index] * step
        above, below = (_loss(data, weights + sign * shift, 0.1) for sign in (1, -1))
        assert (above[0] - below[0]) / (2 * step) == pytest.approx(gradient[index], abs=1e-7)
        np.testing.assert_allclose((above[1] - below[1]) / (2 * step), curvature[index], atol=1e-6)


def test_a_fit_is_the_minimum() -> None:
    data = examples()
    weights = fit_weights(data)
    scale = np.concatenate([one.terms for one in data]).std(axis=0)
    scaled = [Example(one.terms / scale, one.evidence) for one in data]
    at_best, gradient, _ = _loss(scaled, weights * scale, 0.03)
    assert np.abs(gradient).max() < 1e-3
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = weights * scale + 0.05 * rng.standard_normal(4)
        assert _loss(scaled, other, 0.03)[0] > at_best - 1e-6


def test_the_direction_that_made_the_data_is_found() -> None:
    """Evidence is drawn by the softmax of a known score: the fit gets its weights back."""
    rng = np.random.default_rng(2)
    true = np.array([2.0, -1.0, 0.0])
    data = []
    for _ in range(1_500):
        terms = rng.standard_normal((20, 3))
        noisy = terms @ true + rng.gumbel(size=20)
        data.append(Example(terms, np.array([int(noisy.argmax())])))
    weights = fit_weights(data, penalty=1e-4)
    np.testing.assert_allclose(weights / np.linalg.norm(weights), true / np.sqrt(5), atol=0.08)
    assert abs(weights[2]) < 0.15


def test_a_term_that_never_differs_gets_no_weight() -> None:
    data = [Example(np.column_stack([one.terms, np.ones(30)]), one.evidence) for one in examples()]
    assert fit_weights(data)[-1] == 0.0


def test_the_scale_of_a_term_does_not_change_what_it_adds() -> None:
    data = examples()
    wider = [Example(one.terms * [1, 10, 1, 1], one.evidence) for one in data]
    np.testing.assert_allclose(fit_weights(data), fit_weights(wider) * [1, 10, 1, 1], rtol=1e-4)


def test_examples_without_evidence_are_left_out() -> None:
    data = examples()
    empty = Example(np.ones((3, 4)), np.empty(0, np.int64))
    np.testing.assert_array_equal(fit_weights([*data, empty]), fit_weights(data))
    with pytest.raises(ValueError, match="nothing to fit"):
        fit_weights([empty])

"""Measures of the evaluation: bootstrap, area under ROC, calibration, risk, logistic fits."""

from __future__ import annotations

import numpy as np
import pytest

from cofire.evaluation.discrimination import (
    area_under_roc,
    calibration,
    calibration_error,
    risk_coverage,
)
from cofire.evaluation.fitting import fit_logistic
from cofire.evaluation.intervals import paired_intervals


def test_an_interval_holds_its_mean_and_is_the_same_for_the_same_seed() -> None:
    rng = np.random.default_rng(0)
    differences = rng.normal(0.5, 1.0, (400, 2))
    groups = np.arange(400)
    one = paired_intervals(differences, groups)
    assert one == paired_intervals(differences, groups)
    assert one != paired_intervals(differences, groups, seed=1)
    for column, interval in enumerate(one):
        assert interval.mean == pytest.approx(differences[:, column].mean())
        assert interval.low < interval.mean < interval.high
        assert interval.high - interval.low == pytest.approx(2 * 1.96 / 20, rel=0.15)


def test_what_is_repeated_is_no_more_certain() -> None:
    differences = np.random.default_rng(1).normal(0.0, 1.0, (50, 1))
    once = paired_intervals(differences, np.arange(50))[0]
    ten_times = paired_intervals(np.tile(differences, (10, 1)), np.tile(np.arange(50), 10))[0]
    assert ten_times.mean == pytest.approx(once.mean)
    assert ten_times.low == pytest.approx(once.low)
    assert ten_times.high == pytest.approx(once.high)


def test_intervals_of_nothing_and_of_what_does_not_fit() -> None:
    assert [one.mean for one in paired_intervals(np.zeros((0, 3)), np.zeros(0, np.int64))] == [
        0.0
    ] * 3
    with pytest.raises(ValueError, match="groups"):
        paired_intervals(np.zeros((2, 1)), np.zeros(3, np.int64))


@pytest.mark.parametrize(
    ("positive", "negative", "area"),
    [
        ([0.9, 0.8], [0.1, 0.2], 1.0),
        ([0.1], [0.9], 0.0),
        ([0.5, 0.5], [0.5], 0.5),
        ([0.9, 0.2], [0.5], 0.5),
        ([], [0.5], 0.5),
    ],
)
def test_area_under_roc(positive: list[float], negative: list[float], area: float) -> None:
    assert area_under_roc(np.array(positive), np.array(negative)) == pytest.approx(area)


def test_area_under_roc_counts_pairs() -> None:
    rng = np.random.default_rng(2)
    positive, negative = rng.integers(0, 6, 40) / 6.0, rng.integers(0, 5, 30) / 6.0
    pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    assert area_under_roc(positive, negative) == pytest.approx(np.mean(pairs))


def test_calibration_is_perfect_where_confidence_is_frequency() -> None:
    confidence = np.repeat([0.25, 0.75], 100)
    right = np.concatenate([np.arange(100) < 25, np.arange(100) < 75])
    assert calibration_error(calibration(confidence, right, np.ones(200))) == pytest.approx(0.0)
    overconfident = calibration(np.ones(200), right, np.ones(200))
    assert len(overconfident) == 1
    assert calibration_error(overconfident) == pytest.approx(0.5)


def test_weights_change_what_is_frequent() -> None:
    bins = calibration(
        np.full(4, 0.5), np.array([True, False, False, False]), np.array([3.0, 1, 1, 1])
    )
    assert bins[0].frequency == pytest.approx(0.5)
    assert bins[0].share == pytest.approx(1.0)


def test_risk_rises_with_coverage_where_confidence_is_informed() -> None:
    confidence = np.array([0.9, 0.8, 0.7, 0.6])
    right = np.array([True, True, False, False])
    points = risk_coverage(confidence, right, np.ones(4), np.array([0.25, 0.5, 0.75, 1.0]))
    assert [point.risk for point in points] == pytest.approx([0.0, 0.0, 1 / 3, 0.5])
    equal = risk_coverage(np.full(4, 0.5), right, np.ones(4), np.array([0.25, 1.0]))
    assert [point.risk for point in equal] == [0.5, 0.5], "equals are answered together"
    assert risk_coverage(np.zeros(0), np.zeros(0, bool), np.zeros(0), np.array([1.0])) == []


def test_a_logistic_fit_finds_the_weights_that_made_the_data() -> None:
    rng = np.random.default_rng(3)
    features = rng.standard_normal((20_000, 2))
    chance = 1.0 / (1.0 + np.exp(-(features @ [1.5, -0.7] + 0.4)))
    right = (rng.random(20_000) < chance).astype(np.float64)
    weights, bias = fit_logistic(features, right, np.ones(20_000))
    np.testing.assert_allclose([*weights, bias], [1.5, -0.7, 0.4], atol=0.06)


def test_weighing_a_row_twice_is_having_it_twice() -> None:
    rng = np.random.default_rng(4)
    features, right = rng.standard_normal((60, 2)), np.arange(60) % 3 == 0
    weight = np.where(right, 2.0, 1.0)
    weighted = fit_logistic(features, right.astype(np.float64), weight)
    again = np.concatenate([features, features[right]])
    doubled = fit_logistic(
        again, np.concatenate([right, right[right]]).astype(np.float64), np.ones(80)
    )
    np.testing.assert_allclose(weighted[0], doubled[0], atol=1e-6)
    assert weighted[1] == pytest.approx(doubled[1], abs=1e-6)


def test_what_can_be_told_apart_perfectly_still_has_a_fit() -> None:
    features = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    weights, bias = fit_logistic(features, np.array([0.0, 0, 1, 1]), np.ones(4))
    assert 0.5 < weights[0] < 10.0
    assert bias == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(ValueError, match="with an answer"):
        fit_logistic(features, np.ones(4), np.ones(4))

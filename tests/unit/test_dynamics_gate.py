"""Gates: confidence in a recall, and when to say that nothing is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cofire.dynamics.activation import SynapseRule, fire
from cofire.dynamics.gate import Gate, logistic, synapse_abstains, synapse_confidence

GATE = Gate(weights={"coverage": 2.0, "margin": -1.0}, bias=0.5, threshold=0.6)


def test_logistic_is_the_sigmoid_of_the_weighted_sum() -> None:
    features = np.array([[1.0, 2.0], [0.0, 0.0]])
    expected = [1 / (1 + math.exp(-(2.0 - 2.0 + 0.5))), 1 / (1 + math.exp(-0.5))]
    assert logistic(features, np.array([2.0, -1.0]), 0.5) == pytest.approx(expected)


def test_logistic_does_not_overflow() -> None:
    extremes = logistic(np.array([[1e300], [-1e300]]), np.array([1.0]), 0.0)
    assert extremes.tolist() == [1.0, 0.0]


def test_a_gate_weighs_features_by_name() -> None:
    one = GATE.confidence({"coverage": 0.5, "margin": 0.25})
    assert one == pytest.approx(1 / (1 + math.exp(-(1.0 - 0.25 + 0.5))))
    assert GATE.confidence({"margin": 0.25, "coverage": 0.5}) == one
    more = GATE.confidence({"coverage": 0.6, "margin": 0.25})
    assert more > one > GATE.confidence({"coverage": 0.5, "margin": 0.5})


def test_a_gate_abstains_below_its_threshold() -> None:
    assert GATE.abstains(0.59)
    assert not GATE.abstains(0.6)
    assert not Gate(weights={}, threshold=0.0).abstains(0.0)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"coverage": 1.0}, "margin"),
        ({"coverage": 1.0, "margin": 0.0, "speaker": 1.0}, "speaker"),
        ({"coverage": math.nan, "margin": 0.0}, "finite"),
        ({"coverage": math.inf, "margin": 0.0}, "finite"),
    ],
)
def test_bad_features_are_refused(features: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GATE.confidence(features)


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="shape"):
        logistic(np.ones((2, 3)), np.ones(2), 0.0)
    with pytest.raises(ValueError, match="shape"):
        logistic(np.ones((2, 2)), np.ones((2, 1)), 0.0)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"weights": {"margin": math.nan}}, "margin"),
        ({"weights": {}, "bias": math.inf}, "bias"),
        ({"weights": {}, "threshold": 1.5}, "threshold"),
    ],
)
def test_bad_constants_are_refused(bad: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Gate(**bad)


def test_synapse_refuses_if_the_top_node_stays_below_0_12() -> None:
    assert synapse_abstains(np.array([0.05, 0.119]))
    assert not synapse_abstains(np.array([0.05, 0.12]))
    assert synapse_abstains(np.array([]))
    assert not synapse_abstains(np.array([0.05]), threshold=0.05)
    assert synapse_confidence(np.array([0.3, 1.7])) == 1.0
    assert synapse_confidence(np.array([])) == 0.0


def test_synapses_gate_asks_for_a_potential_of_a_tenth() -> None:
    rule = SynapseRule()
    for potential, refused in ((0.0, True), (0.1, True), (0.11, False)):
        rate = fire(np.array([potential]), rule.steepness, rule.firing)
        assert synapse_abstains(rate) is refused

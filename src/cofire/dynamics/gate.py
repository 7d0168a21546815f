"""Whether to answer at all: confidence in what was recalled, and the threshold below which a
memory says that it does not know.

Features and weights are named, so that a weight can never meet the wrong feature. What the
features are is `retrieval`'s business, what they weigh is fitted in `evaluation`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from cofire.dynamics.arrays import F64, Floats

SYNAPSE_THRESHOLD = 0.12
"""Synapse's τ_gate (section 3.4), the elbow of its appendix C.2: 2.1 % false refusals there."""


def logistic(features: Floats, weights: Floats, bias: float) -> F64:
    """1 / (1 + exp(-(x·w + b))) in [0, 1], without overflow.

    `features` (…, f), `weights` (f,): gives (…). Rises with a feature of positive weight.

    Raises:
        ValueError: shapes differ, or a feature is not finite.
    """
    wide = np.asarray(features, np.float64)
    if weights.ndim != 1 or wide.shape[-1:] != weights.shape:
        raise ValueError(f"features of shape {wide.shape} have weights of shape {weights.shape}")
    if not np.isfinite(wide).all():
        raise ValueError("features must be finite numbers")
    # Feature by feature, so that a row's confidence does not depend on the rows beside it.
    logits = (wide * np.asarray(weights, np.float64)).sum(axis=-1) + bias
    confidence: F64 = 0.5 * (1.0 + np.tanh(0.5 * logits))
    return confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A fitted gate: what a unit of each named feature adds to the log-odds that the answer is
    there, `bias` the log-odds where all are 0, and the confidence in [0, 1] below which to
    abstain (0: never).

    Raises:
        ValueError: a constant is not finite, or the threshold is outside [0, 1].
    """

    weights: Mapping[str, float]
    bias: float = 0.0
    threshold: float = 0.5

    def __post_init__(self) -> None:
        for name, weight in (*self.weights.items(), ("bias", self.bias)):
            if not math.isfinite(weight):
                raise ValueError(f"the weight of {name} must be a finite number, got {weight}")
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"threshold must be in [0, 1], got {self.threshold}")
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))

    def confidence(self, features: Mapping[str, float]) -> float:
        """`logistic` of the features of one recall, in [0, 1].

        Raises:
            ValueError: a feature is missing, has no weight, or is not finite.
        """
        if features.keys() != self.weights.keys():
            odd = ", ".join(sorted(features.keys() ^ self.weights.keys()))
            raise ValueError(f"features and weights must have the same names; in one only: {odd}")
        # In the order of the weights: another order of the same features changes no bit.
        values = np.array([features[name] for name in self.weights], np.float64)
        weights = np.array([*self.weights.values()], np.float64)
        return float(logistic(values, weights, self.bias))

    def abstains(self, confidence: float) -> bool:
        """Whether to answer "not mentioned": the confidence is below the threshold."""
        return confidence < self.threshold


def synapse_confidence(activation: Floats) -> float:
    """Synapse's C_ret (arXiv 2601.02744, section 3.4): the activation of the top node, at most 1;
    0 if there is none."""
    return min(1.0, max(0.0, float(activation.max()))) if len(activation) else 0.0


def synapse_abstains(activation: Floats, threshold: float = SYNAPSE_THRESHOLD) -> bool:
    """Synapse's gate: C_ret < τ_gate → "not mentioned".

    It judges activation *after firing*. A node that fires has at least σ(-γθ) (0.076 at
    `SynapseRule`'s γ and θ), so τ = 0.12 asks for a potential of 0.1 there, and would never
    refuse at θ = 0: the paper, which gives neither, calibrates τ alone.
    """
    return synapse_confidence(activation) < threshold

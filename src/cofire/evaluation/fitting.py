"""Fitting the weights of a profile: which terms tell evidence from the rest.

A score is a weighted sum of terms, so its weights can be fitted as a regularised listwise softmax:
for every evidence turn e of a question, against the candidates that are no evidence,

    loss = -log( exp(s_e) / (exp(s_e) + Σ_j exp(s_j) / m) ) + λ/2 · |w·σ|²

averaged over questions (each question's evidence sharing its vote). Dividing by m = 5 asks that
evidence be among the first few rather than the very first. The loss is convex; Newton's method
with backtracking finds its only minimum, so a fit depends on nothing but the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F64, I64

MARGIN = 5.0
"""m: how many places evidence may share."""
PENALTY = 0.03
"""λ on weights in units of their term's standard deviation."""
STEPS = 40
TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True)
class Example:
    """A question's candidates: `terms` (c, t), and the positions of its evidence among them."""

    terms: F64
    evidence: I64


def fit_weights(examples: Sequence[Example], penalty: float = PENALTY) -> F64:
    """The weights (t,) that minimise the loss over `examples` with evidence.

    Raises ValueError if there are none.
    """
    usable = [example for example in examples if len(example.evidence)]
    if not usable:
        raise ValueError("there is nothing to fit: no example has evidence among its candidates")
    stacked = np.concatenate([example.terms for example in usable])
    deviation = stacked.std(axis=0)
    scale = np.where(deviation > 1e-9, deviation, np.inf)  # a constant term gets weight 0
    scaled = [Example(example.terms / scale, example.evidence) for example in usable]
    weights = np.zeros(stacked.shape[1])
    loss, gradient, curvature = _loss(scaled, weights, penalty)
    for _ in range(STEPS):
        step = np.linalg.solve(curvature, gradient)
        decrease = float(gradient @ step)
        if decrease < TOLERANCE:
            break
        size = 1.0
        while size > 1e-4:
            attempt = weights - size * step
            new_loss, new_gradient, new_curvature = _loss(scaled, attempt, penalty)
            if new_loss <= loss - 1e-4 * size * decrease:
                break
            size /= 2.0
        else:
            break
        weights, loss, gradient, curvature = attempt, new_loss, new_gradient, new_curvature
    return weights / scale


def _loss(examples: Sequence[Example], weights: F64, penalty: float) -> tuple[float, F64, F64]:
    """Loss, gradient (t,) and Hessian (t, t) at `weights`."""
    count = len(examples)
    loss = 0.0
    gradient = np.zeros(len(weights))
    curvature = np.zeros((len(weights), len(weights)))
    for example in examples:
        terms, evidence = example.terms, example.evidence
        scores = terms @ weights
        scores -= scores.max()
        odds = np.exp(scores)
        others = odds / MARGIN
        others[evidence] = 0.0
        rest = float(others.sum())
        share = 1.0 / len(evidence)
        for e in evidence:
            total = float(odds[e]) + rest
            loss += share * (np.log(total) - scores[e])
            chance = others / total
            chance[e] = odds[e] / total
            mean = chance @ terms
            gradient += share * (mean - terms[e])
            weighted = terms * chance[:, None]
            curvature += share * (terms.T @ weighted - np.outer(mean, mean))
    loss = loss / count + penalty / 2.0 * float(weights @ weights)
    gradient = gradient / count + penalty * weights
    curvature = curvature / count + penalty * np.eye(len(weights))
    return loss, gradient, curvature

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


def fit_logistic(features: F64, right: F64, weight: F64, ridge: float = 1.0) -> tuple[F64, float]:
    """The weights (f,) and the bias that minimise the logistic loss of `features` (n, f) against
    `right` (n,) in {0, 1}, each row counting `weight` (n,) > 0:

        loss = Σ_i v_i · log(1 + exp(-y_i (x_i·w + b))) + ridge/2 · |w|²        y = ±1

    By Newton's method with backtracking (iteratively reweighted least squares); the bias is not
    penalised. Raises ValueError where there is nothing to tell apart.
    """
    if not ((right > 0.5).any() and (right < 0.5).any()):
        raise ValueError("a gate needs questions with an answer and questions without")
    design = np.column_stack([features, np.ones(len(features))])
    penalty = np.full(design.shape[1], ridge)
    penalty[-1] = 0.0
    solution = np.zeros(design.shape[1])

    def loss(point: F64) -> float:
        logits = design @ point
        value = weight @ (np.logaddexp(0.0, logits) - right * logits)
        return float(value + penalty @ point**2 / 2.0)

    here = loss(solution)
    for _ in range(STEPS):
        chance = 0.5 * (1.0 + np.tanh(0.5 * (design @ solution)))
        gradient = design.T @ (weight * (chance - right)) + penalty * solution
        curvature = (design.T * (weight * chance * (1.0 - chance))) @ design + np.diag(penalty)
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(solution)), gradient)
        decrease = float(gradient @ step)
        if decrease < TOLERANCE:
            break
        size = 1.0
        while size > 1e-4 and loss(solution - size * step) > here - 1e-4 * size * decrease:
            size /= 2.0
        solution = solution - size * step
        here = loss(solution)
    return solution[:-1], float(solution[-1])

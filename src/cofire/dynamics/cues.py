"""How well past questions match a new one, and what they pass on: pure functions.

A question that got a useful answer is kept as a cue. What a cue may move must depend on how well
it matches *this* question: most questions about a person resemble most others a little, and a
cue that is merely the least unlike must move nothing. So similarities are judged against each
other (a z-score), and cues compete with each other and with the possibility that none applies (a
softmax with a null).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F64, I64


@dataclass(frozen=True, slots=True, kw_only=True)
class CueRule:
    """Constants of `cue_match`.

    steepness β > 0 and threshold z₀ of the softmax: a cue z₀ standard deviations above the mean
    of all is as likely to apply as none is. usual, spread and pseudo ≥ 0: mean and standard
    deviation of the cosines of unrelated questions about one person, counted as so many cues, so
    that the first few are judged too (measured on LoCoMo's questions with MiniLM). least: a match
    below this passes nothing on.

    Raises:
        ValueError: a constant is out of its range.
    """

    steepness: float = 3.0
    threshold: float = 2.0
    usual: float = 0.2
    spread: float = 0.15
    pseudo: float = 5.0
    least: float = 0.01

    def __post_init__(self) -> None:
        if not (self.steepness > 0.0 and self.spread > 0.0):
            raise ValueError("steepness and spread must be > 0")
        if not (math.isfinite(self.threshold) and self.pseudo >= 0.0 and 0.0 <= self.least < 1.0):
            raise ValueError("threshold must be finite, pseudo ≥ 0 and least in [0, 1)")


def cue_match(similarity: F64, rule: CueRule) -> F64:
    """How likely each cue is to ask for the same as this question, (m,) in [0, 1), sum < 1:

        z_c = (s_c - μ) / σ          μ, σ of all cues' cosines and of `pseudo` usual ones
        p_c = e^{β (z_c - z₀)} / (1 + Σ_d e^{β (z_d - z₀)})

    `similarity` (m,) are cosines of the cues to the question. Ours; no paper has it.
    """
    count = len(similarity)
    if not count:
        return np.empty(0, np.float64)
    weight = count + rule.pseudo
    mean = (float(similarity.sum()) + rule.pseudo * rule.usual) / weight
    deviations = float(((similarity - mean) ** 2).sum())
    usual = rule.pseudo * (rule.spread**2 + (rule.usual - mean) ** 2)
    deviation = math.sqrt((deviations + usual) / weight) or rule.spread
    exponents = rule.steepness * ((similarity - mean) / deviation - rule.threshold)
    top = max(float(exponents.max()), 0.0)
    odds = np.exp(exponents - top)
    match: F64 = odds / (math.exp(-top) + float(odds.sum()))
    return match


def strongest(targets: I64, amounts: F64) -> tuple[I64, F64, I64]:
    """The strongest of what arrives at each target, not the sum: many weak ways never add up to
    a strong one. Gives (distinct targets ascending, amount, index of the arrival); of equal
    amounts the first."""
    if not len(targets):
        none = np.empty(0, np.int64)
        return none, np.empty(0, np.float64), none
    order = np.lexsort((np.arange(len(targets)), -amounts, targets))
    found = targets[order]
    first = np.ones(len(found), np.bool_)
    first[1:] = found[1:] != found[:-1]
    chosen = order[first]
    return targets[chosen], amounts[chosen], chosen.astype(np.int64)

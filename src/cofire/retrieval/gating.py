"""The gate: how sure a recall is that the memory holds an answer at all.

The best score alone cannot tell: a question about the wrong person finds the right topic. What can
is *who* speaks of it. Take the term for the speaker out of the scores, and see how much of the
probability lies with the person asked about: where it lies with somebody else, the question asks
Caroline for what Melanie did.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cofire.dynamics.arrays import F64, Bool
from cofire.retrieval.candidates import Candidates
from cofire.retrieval.profiles import Profile
from cofire.retrieval.ranking import Ranked

SCORE_UNIT = 10.0
GAP_UNIT = 5.0
"""Scores and gaps are divided by these, so that features are of the size of 1."""


def confidence(ranked: Ranked, profile: Profile) -> float | None:
    """How likely it is that the memory answers the question, in [0, 1], or what the profile's
    ranking says of that; None if the profile has no gate, 0 if nothing was found."""
    if profile.gate is None:
        return None
    if not len(ranked):
        return 0.0
    if ranked.confidence is not None:
        return ranked.confidence
    features = gate_features(ranked, profile)
    return profile.gate.confidence({name: features[name] for name in profile.gate.weights})


def gate_features(ranked: Ranked, profile: Profile) -> Mapping[str, float]:
    """What the gate goes by:

    score           best score without what it owes to its speaker, / 10: a question that names
                    nobody is not doubted for that
    unmet           share of the question's terms, weighed by idf, that no candidate holds
    speaker_share   share of exp(score without the speaker's term) that is with turns of the
                    person asked about, minus ½; 0 if nobody is named
    speaker_gap     best such score of the person asked about, less that of anybody else, within
                    ±5, / 5; 0 if nobody is named or only one side has candidates
    """
    asked_about = np.concatenate([_asked_about(found) for found in ranked.candidates])
    scores = _unaddressed(ranked, profile)
    share, gap = _with_whom(scores, asked_about)
    return {
        "score": float(scores.max()) / SCORE_UNIT,
        "unmet": _unmet(ranked.candidates),
        "speaker_share": share,
        "speaker_gap": gap / GAP_UNIT,
    }


def _asked_about(found: Candidates) -> Bool:
    """Which candidates the person asked about has spoken."""
    spoken = np.zeros(len(found.rows), np.bool_)
    for term in ("speaker", "speaker_first"):
        column = found.columns.get(term)
        if column is not None:
            spoken |= column > 0.0
    return spoken


def _unaddressed(ranked: Ranked, profile: Profile) -> F64:
    """The scores without what they owe to their speaker."""
    owed = []
    for found in ranked.candidates:
        part = np.zeros(len(found.rows), np.float64)
        for term in ("speaker", "speaker_first"):
            column = found.columns.get(term)
            if column is not None:
                part += profile.weights.get(term, 0.0) * column
        owed.append(part)
    scores: F64 = ranked.score - np.concatenate(owed)
    return scores


def _with_whom(scores: F64, asked_about: Bool) -> tuple[float, float]:
    if asked_about.all() or not asked_about.any():
        return 0.0, 0.0
    odds = np.exp(scores - scores.max())
    share = float(odds[asked_about].sum() / odds.sum()) - 0.5
    gap = float(scores[asked_about].max() - scores[~asked_about].max())
    return share, min(max(gap, -GAP_UNIT), GAP_UNIT)


def _unmet(candidates: tuple[Candidates, ...]) -> float:
    """All spaces are asked the same terms, in the same order."""
    known = [found for found in candidates if len(found.idfs)]
    if not known:
        return 0.0
    idfs = np.max([found.idfs for found in known], axis=0)
    met = np.any([found.matches.any(axis=1) for found in known], axis=0)
    total = float(idfs.sum())
    return float(idfs[~met].sum()) / total if total > 0.0 else 0.0

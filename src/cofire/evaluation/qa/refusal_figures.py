"""Refusals on both sides: of what has no answer, and (falsely) of what has one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from cofire.dynamics.arrays import F64
from cofire.evaluation.discrimination import area_under_roc
from cofire.evaluation.qa.outcomes import Outcome

STEPS = 51
"""Thresholds of the curve, evenly spread over [0, 1]."""


def answered(outcome: Outcome) -> bool:
    """Whether there is an answer or a refusal; a run may also have failed only at judging it."""
    return not outcome.failed or outcome.abstained or bool(outcome.text)


def refusal_figures(asked: Sequence[Outcome], threshold: float | None) -> dict[str, Any]:
    """How often one arm refused, and how often its gate would at every other threshold, as JSON.

    "unanswerable" and "answerable": either kind (null where there are none), "n" outcomes of so
    many "questions", with the share that was "refused" and the shares by reason ("reasons"). Where
    no answer came, none is counted.
    "curve": for each threshold the share of either kind whose confidence is below it, so that the
    gate alone would refuse; "auc": the chance that an answerable question is more confident than
    an unanswerable one, ties counting half. Both are null where either kind has no confidences.
    "threshold" is the one in use, "at_threshold" its point of the curve (null: no gate).
    """
    usable = [one for one in asked if answered(one)]
    kinds = {
        kind: [one for one in usable if one.unanswerable is unanswerable]
        for kind, unanswerable in (("unanswerable", True), ("answerable", False))
    }
    confidences = {kind: _confidences(members) for kind, members in kinds.items()}
    drawn = all(len(values) for values in confidences.values())
    return {
        **{kind: _refused(members) for kind, members in kinds.items()},
        "threshold": threshold,
        "at_threshold": _point(confidences, threshold) if drawn and threshold is not None else None,
        "auc": (
            area_under_roc(confidences["answerable"], confidences["unanswerable"])
            if drawn
            else None
        ),
        "curve": (
            [_point(confidences, at) for at in np.linspace(0.0, 1.0, STEPS).round(6).tolist()]
            if drawn
            else None
        ),
    }


def _confidences(members: Sequence[Outcome]) -> F64:
    found = [one.confidence for one in members if one.confidence is not None]
    return np.array(found, np.float64)


def _refused(members: Sequence[Outcome]) -> dict[str, Any] | None:
    if not members:
        return None
    reasons = Counter(one.reason or "unknown" for one in members if one.abstained)
    return {
        "n": len(members),
        "questions": len({one.task for one in members}),
        "refused": reasons.total() / len(members),
        "reasons": {name: count / len(members) for name, count in sorted(reasons.items())},
    }


def _point(confidences: dict[str, F64], threshold: float) -> dict[str, float]:
    """What the gate refuses at a threshold: `Gate.abstains`, confidence < threshold."""
    return {
        "threshold": threshold,
        "unanswerable": float((confidences["unanswerable"] < threshold).mean()),
        "answerable": float((confidences["answerable"] < threshold).mean()),
    }

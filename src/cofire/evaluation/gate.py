"""Does a memory know what it does not know? The gate, measured.

Questions that the conversation answers (categories 1–4) stand against those of category 5, which
ask for what it does not hold (mostly: the right topic, the wrong person), and against a sample of
other conversations' questions. What counts is "left out": the gate's weights are fitted to the
other conversations, with the questions without an answer, in equal parts of both kinds, weighing as
much as those with one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cofire.dynamics.arrays import F64, Bool
from cofire.dynamics.gate import logistic
from cofire.evaluation.benches import SCORED, Bench
from cofire.evaluation.discrimination import (
    Bin,
    Point,
    area_under_roc,
    calibration,
    calibration_error,
    risk_coverage,
)
from cofire.evaluation.fitting import fit_logistic
from cofire.retrieval.gating import gate_features
from cofire.retrieval.profiles import Profile
from cofire.types import Filters, Progress

OTHERS = 120
"""Questions of other conversations asked of each."""
SEED = 0
FALSE_REFUSALS = 0.025
"""Share of answerable questions that a threshold may refuse; Synapse's bound."""
COVERAGES = np.linspace(0.1, 1.0, 10)
ANSWERABLE, UNANSWERABLE, FOREIGN = 0, 1, 2
"""Kinds of questions: categories 1–4, category 5, other conversations'."""
ABOUT_SPEAKERS = "speaker"
"""Features whose names begin so go by who spoke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What a threshold refuses, as shares in [0, 1]."""

    threshold: float
    answerable: float
    category_5: float
    other: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """One gate measured: area under ROC against either kind of question without an answer,
    calibration where half of what is asked has one, risk by coverage likewise, and what is refused
    at the profile's threshold and at `FALSE_REFUSALS`."""

    auc_category_5: float
    auc_other: float
    calibration_error: float
    bins: tuple[Bin, ...]
    risk_coverage: tuple[Point, ...]
    at_default: Refused
    at_bound: Refused


@dataclass(slots=True, kw_only=True)
class Gating:
    """Everything measured of a profile's gate, and what a release should ship (`weights`, `bias`,
    `threshold`: fitted on all conversations)."""

    answerable: int
    category_5: int
    other: int
    gates: dict[str, Gated] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    bias: float = 0.0
    threshold: float = 0.0


@dataclass(frozen=True, slots=True)
class _Questions:
    """(n,) arrays: the conversation asked, the kind, the shipped confidence; features (n, f)."""

    conversation: F64
    kind: F64
    confidence: F64
    features: F64

    def weight(self) -> F64:
        """Answerable ones weigh 1 each; those without an answer as much in all, in equal parts."""
        weight = np.ones(len(self.kind))
        present = [kind for kind in (UNANSWERABLE, FOREIGN) if (self.kind == kind).any()]
        for kind in present:
            mass = float((self.kind == ANSWERABLE).sum()) / len(present)
            weight[self.kind == kind] = mass / float((self.kind == kind).sum())
        return weight

    @property
    def right(self) -> Bool:
        answerable: Bool = self.kind == ANSWERABLE
        return answerable


def evaluate_gate(
    benches: Sequence[Bench], profile: Profile, told: Progress | None = None
) -> Gating | None:
    """Measure a profile's gate; None if it has none, or if nothing without an answer is asked."""
    if profile.gate is None:
        return None
    names = tuple(profile.gate.weights)
    asked = _ask(benches, profile, names, told)
    if asked.right.all() or not asked.right.any():
        return None
    gating = Gating(
        answerable=int((asked.kind == ANSWERABLE).sum()),
        category_5=int((asked.kind == UNANSWERABLE).sum()),
        other=int((asked.kind == FOREIGN).sum()),
    )
    threshold = profile.gate.threshold
    gating.gates["as shipped"] = _gated(asked, asked.confidence, threshold)
    if names:
        _fit(gating, asked, names, threshold)
    return gating


def _fit(gating: Gating, asked: _Questions, names: Sequence[str], threshold: float) -> None:
    every = list(range(len(names)))
    silent = [at for at in every if not names[at].startswith(ABOUT_SPEAKERS)]
    for label, columns in (("left out", every), ("left out, who spoke unknown", silent)):
        confidence = _left_out(asked, columns)
        if columns and confidence is not None:
            gating.gates[label] = _gated(asked, confidence, threshold)
    weight = asked.weight()
    weights, bias = fit_logistic(asked.features, asked.right.astype(np.float64), weight)
    gating.weights = {name: float(value) for name, value in zip(names, weights, strict=True)}
    gating.bias = bias
    fitted = logistic(asked.features, weights, bias)
    gating.threshold = float(np.quantile(fitted[asked.right], FALSE_REFUSALS))


def _left_out(asked: _Questions, columns: Sequence[int]) -> F64 | None:
    """Each question's confidence by the gate fitted to the other conversations; None where they
    have nothing to fit to."""
    weight = asked.weight()
    right = asked.right.astype(np.float64)
    features = asked.features[:, columns]
    confidence = np.zeros(len(weight))
    for one in np.unique(asked.conversation):
        here = asked.conversation == one
        kept = right[~here]
        if not (kept.any() and (1.0 - kept).any()):
            return None
        weights, bias = fit_logistic(features[~here], kept, weight[~here])
        confidence[here] = logistic(features[here], weights, bias)
    return confidence


def _gated(asked: _Questions, confidence: F64, threshold: float) -> Gated:
    weight, right = asked.weight(), asked.right
    of = [confidence[asked.kind == kind] for kind in (ANSWERABLE, UNANSWERABLE, FOREIGN)]
    bins = calibration(confidence, right, weight)
    bound = float(np.quantile(of[ANSWERABLE], FALSE_REFUSALS))
    return Gated(
        auc_category_5=area_under_roc(of[ANSWERABLE], of[UNANSWERABLE]),
        auc_other=area_under_roc(of[ANSWERABLE], of[FOREIGN]),
        calibration_error=calibration_error(bins),
        bins=tuple(bins),
        risk_coverage=tuple(risk_coverage(confidence, right, weight, COVERAGES)),
        at_default=_refused(of, threshold),
        at_bound=_refused(of, bound),
    )


def _refused(of: Sequence[F64], threshold: float) -> Refused:
    shares = [float((one < threshold).mean()) if len(one) else 0.0 for one in of]
    return Refused(threshold=threshold, answerable=shares[0], category_5=shares[1], other=shares[2])


def _ask(
    benches: Sequence[Bench], profile: Profile, names: Sequence[str], told: Progress | None
) -> _Questions:
    rows: list[tuple[int, int, float]] = []
    features = []
    for index, bench in enumerate(benches):
        for kind, question in _questions(benches, index):
            recall = bench.memory.recall(question, profile=profile, now=bench.now)
            rows.append((index, kind, recall.confidence or 0.0))
            features.append(_features(bench, question, profile, names))
        if told is not None:
            told(index + 1, len(benches))
    table = np.array(rows, np.float64).reshape(-1, 3)
    matrix = np.array(features, np.float64).reshape(len(rows), len(names))
    return _Questions(table[:, 0], table[:, 1], table[:, 2], matrix)


def _features(
    bench: Bench, question: str, profile: Profile, names: Sequence[str]
) -> tuple[float, ...]:
    if not names:
        return ()
    ranked, _, _, _ = bench.workings.recaller.rank(
        bench.workings.spaces.all(), question, profile=profile, now=bench.now, filters=Filters()
    )
    if not len(ranked):
        return (0.0,) * len(names)
    found = gate_features(ranked, profile)
    return tuple(found[name] for name in names)


def _questions(benches: Sequence[Bench], index: int) -> Iterator[tuple[int, str]]:
    """What one conversation is asked, with its kind. The sample of the others' is the same for
    the same file."""
    bench = benches[index]
    for question in bench.questions:
        yield ANSWERABLE, question.question
    for question in bench.conversation.questions:
        if question.adversarial:
            yield UNANSWERABLE, question.question
    foreign = [
        question.question
        for other, others in enumerate(benches)
        if other != index
        for question in others.questions
        if question.category in SCORED
    ]
    generator = random.Random(SEED + index)  # noqa: S311  a sample, not a secret
    for text in generator.sample(foreign, min(OTHERS, len(foreign))):
        yield FOREIGN, text

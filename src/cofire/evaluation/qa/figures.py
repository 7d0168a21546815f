"""From what became of each question to the figures of a result.

`figures_of` gives plain JSON. Shares and scores are in [0, 1], unrounded; `percent` rounds them for
readers. A measure is null where nothing was measured, else

    {"n": 40, "questions": 20, "mean": 0.55, "low": 0.41, "high": 0.68, "sd": 0.01,
     "seeds": {"0": 0.54, "1": 0.56}}

n outcomes of so many questions; their mean with its 95 % bootstrap interval, in which a question
is drawn with the outcomes of all its seeds, since these depend on each other; the mean of each
seed, and the standard deviation of these (n - 1; null with one seed). The page
docs/explanation/statistics-of-answers.md has all the members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from cofire.dynamics.arrays import F64
from cofire.evaluation.intervals import LEVEL, ROUNDS, resampled_means
from cofire.evaluation.metrics import mean, percentile
from cofire.evaluation.qa.agreement import fleiss_kappa, majority
from cofire.evaluation.qa.outcomes import Outcome
from cofire.evaluation.qa.refusal_figures import answered, refusal_figures

LARGE = 200
"""From so many questions on a percentage has one decimal: of fewer, one question is more than half
a per cent, and a decimal would promise what is not there."""


class Described(Protocol):
    """What figures have to know of a data set; a `DataSet` is one."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def counts(self) -> Mapping[str, int]: ...
    @property
    def scored_apart(self) -> frozenset[str]: ...


Measure = Callable[[Outcome], float | None]


def _judged(outcome: Outcome) -> float | None:
    verdict = majority(outcome.judged)
    return None if verdict is None else float(verdict)


def _refused(outcome: Outcome, unanswerable: bool) -> float | None:
    if outcome.unanswerable is not unanswerable or not answered(outcome):
        return None
    return float(outcome.abstained)


def _found(outcome: Outcome) -> float | None:
    return outcome.evidence_found / outcome.evidence if outcome.evidence else None


def _whole(outcome: Outcome) -> float | None:
    return float(outcome.evidence_found >= outcome.evidence) if outcome.evidence else None


MEASURES: Mapping[str, Measure] = {
    "f1": lambda outcome: outcome.f1,
    "bleu1": lambda outcome: outcome.bleu1,
    "judge": _judged,
    "right": lambda outcome: None if outcome.right is None else float(outcome.right),
    "refused": lambda outcome: _refused(outcome, unanswerable=True),
    "falsely_refused": lambda outcome: _refused(outcome, unanswerable=False),
    "evidence_share": _found,
    "evidence_whole": _whole,
}
"""Name → the value of an outcome in [0, 1], None: it is not measured there.

"judge": what most runs of the judge say; "right": the choice, or the oracle's; "refused" and
"falsely_refused": abstentions among the questions without and with an answer; "evidence_share" and
"evidence_whole": how much of the evidence the context has, and whether all of it.
"""

AVERAGED = ("f1", "bleu1", "judge", "right", "evidence_share", "evidence_whole")
"""Measures with averages over groups."""


def figures_of(
    outcomes: Iterable[Outcome],
    data: Described,
    *,
    thresholds: Mapping[str, float] | None = None,
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Every figure of a result, as JSON.

    `thresholds` are those of the arms' gates by the arm's name. Per arm: "groups", each as
    `_block`; "all": the plain mean over what was asked of the groups that count; "apart": those
    that do not (LoCoMo's adversarial); "abstention": those of "all" that have no answer, which
    LongMemEval's evaluation reports once more by themselves; "weighted" and "macro": see
    `_averaged`, with the published counts and with every group weighing the same (LongMemEval's
    task-averaged accuracy); "refusals": see `refusal_figures.refusal_figures`. Of an arm of which
    every question failed nothing but the evidence is measured.
    """
    arms: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        arms.setdefault(outcome.arm, []).append(outcome)
    gates = thresholds or {}
    return {
        "benchmark": data.name,
        "key": data.key,
        "counts": dict(data.counts),
        "scored_apart": sorted(data.scored_apart),
        "level": LEVEL,
        "rounds": rounds,
        "arms": {name: _arm(asked, data, gates.get(name), rounds) for name, asked in arms.items()},
    }


def _arm(
    asked: Sequence[Outcome], data: Described, threshold: float | None, rounds: int
) -> dict[str, Any]:
    if not any(map(answered, asked)):
        # Nobody said anything: scores of 0 would pass for those of a bad answerer.
        asked = [replace(one, f1=None, bleu1=None, right=None, judged=()) for one in asked]
    names = dict.fromkeys((*data.counts, *sorted({one.group for one in asked})))
    groups = {name: [one for one in asked if one.group == name] for name in names}
    groups = {name: members for name, members in groups.items() if members}
    counted = [one for one in asked if one.group not in data.scored_apart]
    apart = [one for one in asked if one.group in data.scored_apart]
    abstention = [one for one in counted if one.unanswerable]
    counting = [name for name in (data.counts or groups) if name not in data.scored_apart]
    published = {name: count for name in counting if (count := data.counts.get(name, 0)) > 0}
    return {
        "seeds": sorted({one.seed for one in asked}),
        "groups": {name: _block(members, rounds) for name, members in groups.items()},
        "all": _block(counted, rounds) if counted else None,
        "apart": _block(apart, rounds) if apart else None,
        "abstention": _block(abstention, rounds) if abstention else None,
        "weighted": _averaged(groups, published, rounds),
        "macro": _averaged(groups, dict.fromkeys(counting, 1), rounds),
        "refusals": refusal_figures(asked, threshold),
    }


def _block(asked: Sequence[Outcome], rounds: int) -> dict[str, Any]:
    """The measures of some outcomes, what they took, and what went wrong."""
    reasons = Counter(one.reason or "unknown" for one in asked if one.abstained)
    return {
        "outcomes": len(asked),
        "questions": len({one.task for one in asked}),
        "measures": {name: _measured(asked, measure, rounds) for name, measure in MEASURES.items()},
        "abstained": dict(sorted(reasons.items())),
        "judge": _judge(asked),
        "tokens": {
            "context": _spread([one.context_tokens for one in asked]),
            "input": _spread([one.input_tokens for one in asked]),
            "output": _spread([one.output_tokens for one in asked]),
        },
        "seconds": _spread([one.seconds for one in asked]),
        "recall_ms": _spread([one.recall_ms for one in asked]),
        "cost": sum(one.cost for one in asked),
        "malformed": sum(bool(one.malformed) for one in asked),
        "failed": sum(bool(one.failed) for one in asked),
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "mean": mean(values),
        "median": percentile(values, 0.5),
        "p95": percentile(values, 0.95),
    }


def _judge(asked: Sequence[Outcome]) -> dict[str, Any] | None:
    """How the judge's runs went: replies, those that were unusable, outcomes that have no usable
    one, tokens sent and received, and among those judged more than once and usably each time the
    share on which all runs agree and Fleiss' kappa.

    Answers that are wrong without asking a judge (there is none, or it is empty) are no replies:
    on them all runs would agree."""
    judged = [one for one in asked if one.judged]
    if not judged:
        return None
    runs = max(len(one.judged) for one in judged)
    rows = [one.judged for one in judged if one.text.strip() and not one.failed]
    whole = [row for row in rows if runs > 1 and len(row) == runs and None not in row]
    return {
        "runs": runs,
        "replies": sum(map(len, rows)),
        "unusable": sum(row.count(None) for row in rows),
        "unjudged": sum(majority(one.judged) is None for one in judged),
        "agreement": mean([float(len(set(row)) == 1) for row in whole]) if whole else None,
        "kappa": fleiss_kappa(whole),
        "input_tokens": sum(one.judge_input_tokens for one in judged),
        "output_tokens": sum(one.judge_output_tokens for one in judged),
    }


class _Values:
    """The values of a measure over some outcomes, with the task and seed of each."""

    def __init__(self, asked: Sequence[Outcome], measure: Measure) -> None:
        found = [(one, value) for one in asked if (value := measure(one)) is not None]
        self.values: F64 = np.array([value for _, value in found], np.float64)
        numbers = {task: at for at, task in enumerate(sorted({one.task for one, _ in found}))}
        self.tasks = np.array([numbers[one.task] for one, _ in found], np.int64)
        self.seeds = np.array([one.seed for one, _ in found], np.int64)

    def __len__(self) -> int:
        return len(self.values)

    def by_seed(self) -> dict[int, float]:
        """The mean of each seed."""
        return {
            int(seed): float(self.values[self.seeds == seed].mean())
            for seed in np.unique(self.seeds)
        }

    def means(self, rounds: int, place: int = 0) -> F64:
        """The mean in each resample of the tasks (rounds,); `place` sets groups apart that are as
        large as each other."""
        drawn = resampled_means(self.values[:, None], self.tasks, seed=(0, place), rounds=rounds)
        means: F64 = drawn[:, 0]
        return means


def _measured(asked: Sequence[Outcome], measure: Measure, rounds: int) -> dict[str, Any] | None:
    found = _Values(asked, measure)
    if not len(found):
        return None
    return {
        "n": len(found),
        "questions": len(np.unique(found.tasks)),
        **_interval(float(found.values.mean()), found.means(rounds)),
        **_over_seeds(found.by_seed()),
    }


def _interval(middle: float, means: F64) -> dict[str, float]:
    tail = 100.0 * (1.0 - LEVEL) / 2.0
    low, high = np.percentile(means, [tail, 100.0 - tail])
    # Of very few and very skewed values even the percentiles may lie on one side of the mean.
    return {"mean": middle, "low": min(float(low), middle), "high": max(float(high), middle)}


def _over_seeds(means: Mapping[int, float]) -> dict[str, Any]:
    values = list(means.values())
    return {
        "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None,
        "seeds": {str(seed): value for seed, value in means.items()},
    }


def _averaged(
    groups: Mapping[str, Sequence[Outcome]], weights: Mapping[str, int], rounds: int
) -> dict[str, Any] | None:
    """The means of the groups, each with its weight (such as how many questions the published data
    set has of it), however many of them were asked. "missing" are the groups of which nothing was
    asked: with any, this is no figure for the whole data set. The interval comes of resampling
    within each group. None where there is no weight."""
    present = {name: weight for name, weight in weights.items() if name in groups}
    if not present:
        return None
    return {
        "weights": present,
        "missing": sorted(weights.keys() - present.keys()),
        "measures": {
            name: _weighted_measure(
                {
                    group: (_Values(groups[group], MEASURES[name]), present[group])
                    for group in present
                },
                rounds,
            )
            for name in AVERAGED
        },
    }


def _weighted_measure(
    parts: Mapping[str, tuple[_Values, int]], rounds: int
) -> dict[str, Any] | None:
    """One measure; None where a group has no value, since the rest would be another average."""
    if any(not len(values) for values, _ in parts.values()):
        return None
    total = sum(weight for _, weight in parts.values())
    middle = sum(float(values.values.mean()) * weight for values, weight in parts.values()) / total
    drawn = np.zeros(rounds)
    for place, (values, weight) in enumerate(parts.values(), 1):
        drawn += values.means(rounds, place) * (weight / total)
    by_seed = [(values.by_seed(), weight) for values, weight in parts.values()]
    shared = set.intersection(*(set(means) for means, _ in by_seed))
    seeds = {
        seed: sum(means[seed] * weight for means, weight in by_seed) / total
        for seed in sorted(shared)
    }
    return {
        "n": sum(len(values) for values, _ in parts.values()),
        "questions": sum(len(np.unique(values.tasks)) for values, _ in parts.values()),
        **_interval(middle, drawn),
        **_over_seeds(seeds),
    }


def percent(share: float, questions: int) -> str:
    """A share in [0, 1] of so many questions as a percentage that promises no more than it knows:
    whole below `LARGE` questions, else with one decimal. Only all is "100" and only none is "0":
    "<1", ">99.9"."""
    decimals = 1 if questions >= LARGE else 0
    text = f"{100.0 * share:.{decimals}f}"
    smallest = 10.0**-decimals
    if share > 0.0 and float(text) == 0.0:
        return f"<{smallest:.{decimals}f}"
    if share < 1.0 and float(text) == 100.0:
        return f">{100.0 - smallest:.{decimals}f}"
    return text

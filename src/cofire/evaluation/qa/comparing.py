"""Results set against each other, question by question.

A side is one arm of one result. Two sides are compared over the questions that both were asked
under the same seed; nothing else can tell a better way to answer from easier questions. Results of
different data sets or keys are refused; those of different models are compared with a warning,
because then the model may be what makes the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cofire.dynamics.arrays import F64
from cofire.errors import FormatError, InputError, NotFoundError
from cofire.evaluation.intervals import LEVEL, ROUNDS, paired_intervals
from cofire.evaluation.qa.charts import Bound, bound_of
from cofire.evaluation.qa.figures import MEASURES, Measure
from cofire.evaluation.qa.outcomes import Outcome, latest, outcome_of
from cofire.evaluation.qa.significance import holm, mcnemar, sign_flips

COMPARED = ("judge", "right", "f1", "bleu1", "refused", "falsely_refused")
"""Measures (`figures.MEASURES`) that are compared."""
REFUSALS = frozenset({"refused", "falsely_refused"})
"""Those that count questions of groups that are scored apart, too."""
EITHER_OR = frozenset({"judge", "right", "refused", "falsely_refused"})
"""Those that are true or false of an answer: McNemar's test; the others: sign flips."""
WARNED = {
    "model": "answers come from different models, and those may be the whole difference",
    "judge": "answers were judged by different models",
    "cofire": "answers come from different versions of Cofire",
}
"""What should be the same on both sides → what it means that it is not."""
ASKED = (
    "prompts", "judge_prompts", "judge_runs", "temperature", "max_tokens", "window", "embedder",
    "endpoint", "code", "learn", "slept",
)  # fmt: skip
"""Settings that should be, too; those that differ are named in one warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A result file: `name` is what it is called by, `outcomes` are of all its arms, `asked` the
    settings (`ASKED`) that it tells, as texts; `apart` are groups that are in no average."""

    name: str
    benchmark: str
    key: str
    model: str
    judge: str
    cofire: str
    asked: Mapping[str, str] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()
    outcomes: tuple[Outcome, ...] = field(repr=False)

    def arms(self) -> dict[str, tuple[Outcome, ...]]:
        """The outcomes of each arm, in the order of the file."""
        found: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.arm, []).append(outcome)
        return {name: tuple(asked) for name, asked in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One arm of a result."""

    result: Result
    arm: str
    outcomes: tuple[Outcome, ...] = field(repr=False)


def read_result(path: Path) -> Result:
    """The result that `cofire evaluate … --answer --json FILE` wrote.

    Raises:
        NotFoundError: there is no such file.
        FormatError: it is no such result.
    """
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise NotFoundError(f"there is no file {path}") from exc
    except (OSError, ValueError, RecursionError) as exc:
        raise FormatError(f"{path} is no JSON: {exc}") from exc
    try:
        return result_from(given, path.name)
    except (LookupError, TypeError, AttributeError, ValueError) as exc:
        raise FormatError(
            f"{path} is no result of questions answered; `cofire evaluate locomo PATH --answer "
            "MODEL --json FILE` writes one"
        ) from exc


def result_from(given: Mapping[str, Any], name: str) -> Result:
    """The result in the JSON of one. Raises LookupError, TypeError, AttributeError or ValueError
    for what is none."""
    settings = given.get("settings") or {}
    return Result(
        name=name,
        benchmark=str(given["benchmark"]),
        key=str(given["key"]),
        model=_told(given.get("model")),
        judge=_told(given.get("judge")),
        cofire=_told(given.get("cofire")),
        asked={name: _told(settings[name]) for name in ASKED if name in settings},
        apart=frozenset(given.get("scored_apart") or ()),
        outcomes=latest(outcome_of(line) for line in given["outcomes"]),
    )


def _told(value: Any) -> str:
    """A name, or what stands for it, as a text that can be compared."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def sides_of(results: Sequence[Result], baseline: str | None = None) -> list[tuple[Side, Side]]:
    """What is compared with what, the baseline first.

    Arms meet at the same bound: "cofire @500" and "dense @500". What has none (the full context)
    meets the baseline's largest. Of one result: its arm `baseline` (default: the way of recalling
    of its first arm, at each of its bounds) with the other arms. Of several: each arm of the first
    with the arm of that name in each other; where two results have one arm each, those, whatever
    their names. With `baseline`, the name of an arm or of one without its bound: that of the first
    with the others' arms. Where no two arms have the same bound, all of them meet.

    Raises InputError where there is nothing to compare.
    """
    if not results:
        raise InputError("name at least one result to compare")
    arms = [
        {name: Side(result=one, arm=name, outcomes=asked) for name, asked in one.arms().items()}
        for one in results
    ]
    first = arms[0]
    bases = _bases(results[0], first, baseline)
    if len(results) == 1:
        pairs = _at_equal_bounds(bases, first.values())
    elif baseline is not None:
        pairs = [pair for others in arms[1:] for pair in _at_equal_bounds(bases, others.values())]
    else:
        pairs = [pair for others in arms[1:] for pair in _matched(first, others)]
    if not pairs:
        raise InputError(
            "there is nothing to compare: give one result with several arms, or several results "
            "with arms of the same name, or name the arm to start from with --baseline"
        )
    return pairs


def _bases(result: Result, arms: Mapping[str, Side], baseline: str | None) -> list[Side]:
    """The arm of that name; else those called so but for their bound."""
    if baseline is not None and baseline in arms:
        return [arms[baseline]]
    wanted = bound_of(next(iter(arms), "")).base if baseline is None else baseline
    found = [side for name, side in arms.items() if bound_of(name).base == wanted]
    if baseline is not None and not found:
        raise InputError(f"{result.name} has no arm {baseline!r}; it has {', '.join(arms)}")
    return found


def _at_equal_bounds(bases: Sequence[Side], sides: Iterable[Side]) -> list[tuple[Side, Side]]:
    """The others, each with the base of its bound, in the order of the bases."""
    others = [side for side in sides if not any(side is base for base in bases)]
    met = [(base, side) for base in bases for side in others if _partner(bases, side) is base]
    if met or not bases:
        return met
    rest = others or list(bases[1:])
    return [(bases[0], side) for side in rest]


def _partner(bases: Sequence[Side], side: Side) -> Side | None:
    """The base that an arm meets; None if there is none of its bound."""
    bound = _limit(side)
    if bound in map(_limit, bases):
        return next(base for base in bases if _limit(base) == bound)
    if bound == (0, 0):
        return max(bases, key=_limit)
    return next((base for base in bases if _limit(base) == (0, 0)), None)


def _limit(side: Side) -> tuple[int, int]:
    """Tokens and memories that bound an arm's context, 0: not."""
    bound: Bound = bound_of(side.arm)
    return bound.tokens or 0, bound.k or 0


def _matched(first: dict[str, Side], others: dict[str, Side]) -> list[tuple[Side, Side]]:
    if len(first) == len(others) == 1:
        return list(zip(first.values(), others.values(), strict=True))
    return [(side, others[name]) for name, side in first.items() if name in others]


def compare(
    pairs: Sequence[tuple[Side, Side]], *, seed: int = 0, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Every comparison as JSON: "comparisons" (see `_compared`), "level" of the intervals, and
    "holm", over how many comparisons each p was adjusted by its measure. Those in which nothing
    differs do not count: no test could have found anything there.

    Raises InputError where two sides were not asked the same, or with different gold answers.
    """
    found = [_compared(base, other, seed, rounds) for base, other in pairs]
    tests: dict[str, int] = {}
    for name in COMPARED:
        measures = [one["measures"][name] for one in found]
        for one in measures:
            if one is not None:
                one["p_holm"] = 1.0
        tested = [one for one in measures if one is not None and not one["identical"]]
        tests[name] = len(tested)
        for measure, adjusted in zip(tested, holm([one["p"] for one in tested]), strict=True):
            measure["p_holm"] = adjusted
    return {"level": LEVEL, "seed": seed, "rounds": rounds, "holm": tests, "comparisons": found}


def _compared(base: Side, other: Side, seed: int, rounds: int) -> dict[str, Any]:
    """Two sides: "a" and "b" say which, "warnings" what else is not the same, "pairs" over how many
    (question, seed) pairs they meet, "only_a" and "only_b" how many of either have no partner;
    "measures" (b minus a) as `measured_pairs`, of all but the groups that are scored apart, which
    are in refusals alone; "groups" the same for each group; "identical": nothing differs."""
    _refuse_unlike(base.result, other.result)
    asked = {(one.task, one.seed): one for one in base.outcomes}
    answered = {(one.task, one.seed): one for one in other.outcomes}
    both = sorted(asked.keys() & answered.keys())
    pairs = [(asked[key], answered[key]) for key in both]
    _refuse_other_gold(base, other, pairs)
    groups = sorted({one.group for one, _ in pairs})
    measures = _measures(pairs, seed, rounds, base.result.apart)
    return {
        "a": _identity(base),
        "b": _identity(other),
        "warnings": _warnings(base.result, other.result),
        "pairs": len(pairs),
        "questions": len({one.task for one, _ in pairs}),
        "only_a": len(asked) - len(pairs),
        "only_b": len(answered) - len(pairs),
        "identical": all(one["identical"] for one in measures.values() if one is not None),
        "measures": measures,
        "groups": {
            name: _measures([pair for pair in pairs if pair[0].group == name], seed, rounds)
            for name in groups
        },
    }


def _identity(side: Side) -> dict[str, str]:
    return {"result": side.result.name, "arm": side.arm, "model": side.result.model}


def _refuse_unlike(one: Result, other: Result) -> None:
    for what, a, b in (
        ("data set", one.benchmark, other.benchmark),
        ("answer key", one.key, other.key),
    ):
        if a != b:
            raise InputError(
                f"{one.name} and {other.name} cannot be compared: the {what} of one is {a!r}, "
                f"of the other {b!r}"
            )


def _refuse_other_gold(base: Side, other: Side, pairs: Sequence[tuple[Outcome, Outcome]]) -> None:
    unlike = [
        one.task
        for one, two in pairs
        if (one.question, one.gold, one.unanswerable) != (two.question, two.gold, two.unanswerable)
    ]
    if unlike:
        raise InputError(
            f"{base.result.name} and {other.result.name} cannot be compared: {len(unlike)} of "
            f"their questions differ in words or gold answer, the first is {unlike[0]}"
        )


def _warnings(one: Result, other: Result) -> list[str]:
    warnings = [
        f"{meaning}: {getattr(one, name)} and {getattr(other, name)}"
        for name, meaning in WARNED.items()
        if getattr(one, name) != getattr(other, name)
    ]
    unlike = [
        name.replace("_", " ")
        for name in ASKED
        if name in one.asked and name in other.asked and one.asked[name] != other.asked[name]
    ]
    if unlike:
        warnings.append(f"questions were asked under other settings: {', '.join(unlike)}")
    return warnings


Pairs = Sequence[tuple[Outcome, Outcome]]


def _measures(
    pairs: Pairs, seed: int, rounds: int, apart: frozenset[str] = frozenset()
) -> dict[str, Any]:
    counted = [pair for pair in pairs if pair[0].group not in apart]
    return {
        name: measured_pairs(pairs if name in REFUSALS else counted, name, seed, rounds)
        for name in COMPARED
    }


def measured_pairs(
    pairs: Pairs, name: str, seed: int = 0, rounds: int = ROUNDS
) -> dict[str, Any] | None:
    """One measure: "n" pairs with a value on both sides, "unmeasured" those without, "a" and "b"
    the means, "difference" b - a with its interval, "p" of the test named by "test"; for McNemar's
    also "gained" and "lost", questions that only b or only a has right. "identical": no pair
    differs. None where n is 0.

    Seeds of a question are not independent, so that a question counts once in every test: with the
    sum of its differences for the sign flips, with the side on which it is right more often for
    McNemar's.
    """
    measure: Measure = MEASURES[name]
    found = [(one.task, measure(one), measure(two)) for one, two in pairs]
    usable = [(task, a, b) for task, a, b in found if a is not None and b is not None]
    if not usable:
        return None
    numbers = {task: at for at, task in enumerate(sorted({task for task, _, _ in usable}))}
    places = np.array([numbers[task] for task, _, _ in usable], np.int64)
    first: F64 = np.array([a for _, a, _ in usable], np.float64)
    second: F64 = np.array([b for _, _, b in usable], np.float64)
    interval = paired_intervals((second - first)[:, None], places, seed=seed, rounds=rounds)[0]
    per_task = np.zeros(len(numbers))
    np.add.at(per_task, places, second - first)
    return {
        "n": len(usable),
        "questions": len(numbers),
        "unmeasured": len(found) - len(usable),
        "identical": not (second - first).any(),
        "a": float(first.mean()),
        "b": float(second.mean()),
        "difference": {"mean": interval.mean, "low": interval.low, "high": interval.high},
        **_tested(per_task, name in EITHER_OR, seed),
    }


def _tested(per_task: F64, either_or: bool, seed: int) -> dict[str, Any]:
    if not either_or:
        return {"test": "sign flips", "p": sign_flips(per_task, seed=seed)}
    gained, lost = int((per_task > 0.0).sum()), int((per_task < 0.0).sum())
    return {"test": "McNemar", "gained": gained, "lost": lost, "p": mcnemar(gained, lost)}

"""What a report draws, as plain numbers: whoever may import matplotlib draws it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from cofire.evaluation.qa.published import METRICS

MEASURES: Mapping[str, str] = {
    **METRICS,
    "right": "right",
    "refused": "refused, of what has no answer",
    "falsely_refused": "refused, of what has one",
    "evidence_share": "evidence in the context",
    "evidence_whole": "all evidence in the context",
}
"""Measure of `figures_of` → what a report calls it."""
FULL = "full context"
"""The arm whose context is everything (`arms.FULL`, which is too much to import here)."""
_BOUND = re.compile(r"^(?P<base>.*?) (?:@(?P<tokens>\d+)|k=(?P<k>\d+))$")


class Bound(NamedTuple):
    """An arm's name taken apart: "cofire @1000" has 1,000 tokens, "cofire k=10" ten memories."""

    base: str
    tokens: int | None
    k: int | None


class Spot(NamedTuple):
    """A mean with its interval, in percent, at so many tokens or memories."""

    at: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture. `lines` of a chart of refusals are of (answerable refused, unanswerable refused)
    as `at` and `mean`; `marks` are their points in use. Of ablations every line is one spot: the
    difference to `against`, in points, with its paired interval."""

    name: Literal["tokens", "k", "refusals", "ablations"]
    title: str
    measure: str
    lines: Mapping[str, tuple[Spot, ...]]
    marks: Mapping[str, Spot]
    against: str = ""


def bound_of(name: str) -> Bound:
    """The base and the bound of an arm, from its name."""
    found = _BOUND.match(name)
    if not found:
        return Bound(name, None, None)
    tokens, k = found["tokens"], found["k"]
    return Bound(found["base"], int(tokens) if tokens else None, int(k) if k else None)


def by_oracle(result: Mapping[str, Any]) -> bool:
    """Whether an oracle answered, whose words say nothing: only how often it was right counts."""
    return str(result.get("model")).startswith("oracle")


def key_of(result: Mapping[str, Any]) -> str:
    """Whose the right answers are: questions of one's own have no published key."""
    return "own" if result.get("benchmark") == "choices" else str(result.get("key", ""))


def unscored_note(result: Mapping[str, Any]) -> str:
    """Of how many questions nobody can say whether an oracle is right, since they name no evidence;
    nothing where there are none."""
    if not by_oracle(result):
        return ""
    lacking = max(
        (
            block["outcomes"] - (right["n"] if (right := block["measures"].get("right")) else 0)
            for arm in result["arms"].values()
            if (block := arm.get("all"))
        ),
        default=0,
    )
    if not lacking:
        return ""
    told = "1 question names" if lacking == 1 else f"{lacking:,} questions name"
    return f"{told} no evidence: the oracle is not scored there."


def main_measure(result: Mapping[str, Any]) -> str:
    """What a result is about: what is simply right or wrong where that is known of every question
    (choices) or an oracle answered, else the judge's word on LongMemEval, else F1, else what there
    is."""
    blocks = [arm["all"] for arm in result["arms"].values() if arm.get("all")]
    known = [
        (right["n"], block["outcomes"])
        for block in blocks
        if (right := block["measures"].get("right"))
    ]
    if known and (by_oracle(result) or known == [(one["outcomes"],) * 2 for one in blocks]):
        return "right"
    order = ["judge", "f1"] if result.get("benchmark") == "longmemeval" else ["f1", "judge"]
    for name in (*order, "bleu1", "right", "evidence_whole"):
        if any(block["measures"].get(name) for block in blocks):
            return name
    return "f1"


def measured(arm: Mapping[str, Any], measure: str) -> Mapping[str, Any] | None:
    """The arm's value over everything that counts: weighted by the published counts where no group
    is missing, else as asked. None where it is not measured."""
    weighted = arm.get("weighted")
    if weighted and not weighted["missing"] and weighted["measures"].get(measure):
        found: Mapping[str, Any] = weighted["measures"][measure]
        return found
    block = arm.get("all")
    return block["measures"].get(measure) if block else None


def spot_of(arm: Mapping[str, Any], measure: str, at: float = 0.0) -> Spot | None:
    """The arm's value in percent."""
    found = measured(arm, measure)
    if found is None:
        return None
    return Spot(at, *(100.0 * found[name] for name in ("mean", "low", "high")))


def charts_of(result: Mapping[str, Any]) -> tuple[Chart, ...]:
    """The pictures that this result has figures for."""
    measure = main_measure(result)
    arms: Mapping[str, Any] = result["arms"]
    made = (
        _tokens(arms, measure),
        _ks(arms, measure),
        _ablations(result),
        _refusals(arms),
    )
    return tuple(chart for chart in made if chart is not None)


def _tokens(arms: Mapping[str, Any], measure: str) -> Chart | None:
    lines: dict[str, list[Spot]] = {}
    for name, arm in arms.items():
        bound = bound_of(name)
        if bound.k is not None or " without " in bound.base or not arm.get("all"):
            continue
        spot = spot_of(arm, measure, arm["all"]["tokens"]["context"]["mean"])
        if spot is not None:
            lines.setdefault(bound.base, []).append(spot)
    if sum(map(len, lines.values())) < 2:
        return None
    return _chart("tokens", "by tokens of context", measure, lines)


def _ks(arms: Mapping[str, Any], measure: str) -> Chart | None:
    lines: dict[str, list[Spot]] = {}
    for name, arm in arms.items():
        bound = bound_of(name)
        spot = spot_of(arm, measure, float(bound.k or 0))
        if bound.k is not None and " without " not in bound.base and spot is not None:
            lines.setdefault(bound.base, []).append(spot)
    lines = {name: spots for name, spots in lines.items() if len(spots) > 1}
    return _chart("k", "by the number of memories", measure, lines) if lines else None


def ablated(arms: Mapping[str, Any]) -> Mapping[str, str]:
    """The first way of recalling that is also measured without something, at the middle one of its
    bounds, then what it is compared with, at the same: what to call each → its name. Empty without
    ablations."""
    found = _ablated(arms)
    same = [one for one in found if next(iter(one)) == next(iter(found[0]))]
    same.sort(key=lambda one: _size(next(iter(one.values()))))
    return same[len(same) // 2] if same else {}


def _size(name: str) -> tuple[int, int]:
    bound = bound_of(name)
    return bound.k or 0, bound.tokens or 0


def _ablated(arms: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """The same at every bound there is."""
    every: list[Mapping[str, str]] = []
    for name in arms:
        base, *bound = bound_of(name)
        others = {
            part.removeprefix(f"{base} "): other
            for other in arms
            for part, *also in (bound_of(other),)
            if also == bound and part.startswith(f"{base} without ")
        }
        if others and " without " not in base:
            beside = {
                part: other
                for other in arms
                for part, *also in (bound_of(other),)
                if (part == "vectors only" and also == bound) or part == "full context"
            }
            every.append({base: name, **others, **beside})
    return every


def size_of(name: str) -> str:
    """The bound of an arm in words, as in "at 1,000 tokens"; nothing where there is none."""
    _, tokens, k = bound_of(name)
    if tokens is not None:
        return f"at {tokens:,} tokens"
    return "" if k is None else f"at k = {k}"


def _ablations(result: Mapping[str, Any]) -> Chart | None:
    """Of differences; results of before these were kept have none."""
    found = result.get("ablations")
    if not found:
        return None
    arms, measure = found["arms"], found["measure"]
    lines = {
        label: [Spot(0.0, *(100.0 * one["difference"][part] for part in ("mean", "low", "high")))]
        for label, name in ablated(result["arms"]).items()
        if (one := arms.get(name)) is not None
    }
    if not lines:
        return None
    title = " ".join(f"without each mechanism {size_of(found['of'])}".split())
    chart = _chart("ablations", title, measure, lines)
    whole = f"{bound_of(found['of']).base} {size_of(found['of'])}"
    return replace(chart, against=whole.strip())


def _refusals(arms: Mapping[str, Any]) -> Chart | None:
    """The gate does not depend on the budget, so one line per base."""
    lines: dict[str, list[Spot]] = {}
    marks: dict[str, Spot] = {}
    for name, arm in arms.items():
        base, figures = bound_of(name).base, arm.get("refusals") or {}
        if not figures.get("curve") or base in lines or " without " in base:
            continue
        lines[base] = [_refusal(point) for point in figures["curve"]]
        if figures.get("at_threshold"):
            marks[base] = _refusal(figures["at_threshold"])
    if not lines:
        return None
    return _chart("refusals", "what the gate refuses", "refused", lines, marks)


def _refusal(point: Mapping[str, float]) -> Spot:
    right = 100.0 * point["unanswerable"]
    return Spot(100.0 * point["answerable"], right, right, right)


def _chart(
    name: Literal["tokens", "k", "refusals", "ablations"],
    title: str,
    measure: str,
    lines: Mapping[str, Sequence[Spot]],
    marks: Mapping[str, Spot] | None = None,
) -> Chart:
    shown = title if name == "refusals" else f"{MEASURES[measure]} {title}"
    return Chart(
        name=name,
        title=shown[:1].upper() + shown[1:],
        measure=MEASURES[measure],
        lines={label: tuple(spots) for label, spots in lines.items()},
        marks=marks or {},
    )

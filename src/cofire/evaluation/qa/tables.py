"""A result as tables for a terminal: at most a hundred columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from cofire.evaluation.qa.charts import key_of, main_measure, measured, unscored_note
from cofire.evaluation.qa.figures import percent
from cofire.evaluation.qa.labels import NOTE, SHORTENED, fitted, labelled

WIDTH = 100
TITLES = {
    "judge": "Right, as the judge says, in %",
    "f1": "F1, in %",
    "bleu1": "BLEU-1, in %",
    "right": "Right, in %",
    "evidence_whole": "All of the evidence in the context, in %",
}
"""Measures with a table of their own, in its order."""
_SHORT = {
    "single-session-user": "ss-user",
    "single-session-assistant": "ss-assist",
    "single-session-preference": "ss-pref",
    "temporal-reasoning": "temporal",
    "knowledge-update": "update",
    "multi-session": "multi-s",
    "open-domain": "open-dom",
    "single-hop": "single-h",
}
_COLUMN = 10
_LONGEST = 31
"""Characters of an arm's name at most."""


def render_result(result: Mapping[str, Any]) -> str:
    """The tables of a result (`figures_of`, with "model", "judge", "settings")."""
    if not result["arms"]:
        return "Nothing was answered.\n"
    labels = labelled(result["arms"])
    arms = {label: result["arms"][name] for name, label in labels.items()}
    main = main_measure(result)
    names = [main, *(name for name in TITLES if name != main)]
    found = [name for name in names if any(measured(arm, name) for arm in arms.values())]
    lines = [*_heading(result), ""]
    for name in found:
        lines += [*_scores(arms, name, result), ""]
    for section in (_abstentions(arms, main), _refusals(arms)):
        lines += [*section, ""] if section else []
    lines += _costs(arms)
    if any(label.startswith(SHORTENED) for label in arms):
        lines += ["", NOTE]
    return "\n".join(lines) + "\n"


def _heading(result: Mapping[str, Any]) -> list[str]:
    asked = max((arm["all"] or arm["apart"] or {"questions": 0})["questions"] for arm in
                result["arms"].values())  # fmt: skip
    judge = f", judged by {result['judge']}" if result.get("judge") else ""
    counted = "1 question that counts" if asked == 1 else f"{asked:,} questions that count"
    told = (
        f"{result['benchmark']}, {key_of(result)} key: {counted}, answered by "
        f"{result.get('model', 'nobody')}{judge}."
    )
    notes = [unscored_note(result)]
    names = {name for arm in result["arms"].values()
             for name in (arm["weighted"] or {"missing": ()})["missing"]}  # fmt: skip
    if names:
        notes.append(f"Nothing was asked of {', '.join(sorted(names))}: nothing is weighted.")
    return [told, *(line for note in notes for line in wrap(note, WIDTH))]


def _label(arms: Mapping[str, Any]) -> int:
    return min(_LONGEST, max(len(name) for name in arms))


def _scores(arms: Mapping[str, Any], measure: str, result: Mapping[str, Any]) -> list[str]:
    width = _label(arms)
    apart = set(result.get("scored_apart") or ())
    groups = [
        group
        for group in dict.fromkeys(group for arm in arms.values() for group in arm["groups"])
        if any(_of(arm, group, measure) for arm in arms.values())
    ]
    room = (WIDTH - width - 26) // _COLUMN
    counted = sorted(groups, key=lambda group: group in apart)
    shown = counted[:room] if len(counted) > 1 else []  # one alone is what the average is of
    totals = {name: measured(arm, measure) for name, arm in arms.items()}
    # Of a run that was stopped, some arms may lack a group: then all are averaged as asked.
    weighted = all(
        (arm["weighted"] or {"missing": [0]})["missing"] == []
        and arm["weighted"]["measures"].get(measure) is totals[name]
        for name, arm in arms.items()
        if totals[name]
    )
    if not weighted:
        totals = {name: _as_asked(arm, measure) for name, arm in arms.items()}
    average = "weighted" if weighted else "together" if "all" in shown else "all"
    head = (
        f"{'':{width}}" + "".join(f"{_SHORT.get(name, name)[:9]:>{_COLUMN}}" for name in shown)
        + f"{average:>10}{'95 %':>15}"
    )  # fmt: skip
    lines = [f"{TITLES[measure]}:", "", head, "-" * len(head)]
    for name, arm in arms.items():
        cells = "".join(f"{_cell(_of(arm, group, measure)):>{_COLUMN}}" for group in shown)
        total = totals[name]
        line = f"{fitted(name, width)}{cells}{_cell(total):>10}{_interval(total):>15}"
        lines.append(line.rstrip())
    asked = {
        group: max((one["questions"] for arm in arms.values() if (one := _of(arm, group, measure))),
                   default=0)
        for group in counted
    }  # fmt: skip
    whole = sum(n for group, n in asked.items() if group not in apart)
    numbers = "".join(f"{asked[group]:>{_COLUMN},}" for group in shown)
    lines.append(f"{'N':{width}}{numbers}{whole:>10,}")
    return lines


def _of(arm: Mapping[str, Any], group: str, measure: str) -> Mapping[str, Any] | None:
    block = arm["groups"].get(group)
    found: Mapping[str, Any] | None = block["measures"].get(measure) if block else None
    return found


def _as_asked(arm: Mapping[str, Any], measure: str) -> Mapping[str, Any] | None:
    block = arm["all"]
    found: Mapping[str, Any] | None = block["measures"].get(measure) if block else None
    return found


def _cell(found: Mapping[str, Any] | None) -> str:
    if not found:
        return "-"
    return percent(found["mean"], found.get("questions", found["n"]))


def _interval(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    asked = found.get("questions", found["n"])
    return " to ".join(percent(found[end], asked) for end in ("low", "high"))


def _abstentions(arms: Mapping[str, Any], measure: str) -> list[str]:
    """Questions without an answer that count under their group, once more by themselves, and the
    mean of the groups: what LongMemEval's evaluation tells besides its types."""
    found = {
        name: arm
        for name, arm in arms.items()
        if (arm.get("abstention") or {"measures": {}})["measures"].get(measure)
    }
    if not found:
        return []
    width = _label(found)
    head = f"{'':{width}}{'N':>7}{'right':>9}{'95 %':>15}{'mean of groups':>17}{'95 %':>15}"
    lines = ["Questions without an answer, which count in their groups, too, in %:", "", head,
             "-" * len(head)]  # fmt: skip
    for name, arm in found.items():
        apart = arm["abstention"]["measures"][measure]
        macro = (arm.get("macro") or {"measures": {}})["measures"].get(measure)
        lines.append(
            f"{fitted(name, width)}{apart['questions']:>7,}{_cell(apart):>9}{_interval(apart):>15}"
            f"{_cell(macro):>17}{_interval(macro):>15}"
        )
    return lines


def _refusals(arms: Mapping[str, Any]) -> list[str]:
    """Refused where there is no answer, and falsely where there is one, side by side."""
    both = {
        name: arm["refusals"] for name, arm in arms.items() if arm["refusals"].get("unanswerable")
    }
    if not both:
        return []
    width = _label(arms)
    head = (
        f"{'':{width}}{'refused':>10}{'of':>7}{'by gate':>9}{'falsely':>10}{'of':>7}{'by gate':>9}"
        f"{'gate at':>9}{'AUC':>7}"
    )
    lines = ["Refusals, in %: of questions without an answer, and falsely of those with one:", "",
             head, "-" * len(head)]  # fmt: skip
    for name, found in both.items():
        without, having = found["unanswerable"], found["answerable"]
        gate = found["threshold"]
        auc = found["auc"]
        lines.append(
            f"{fitted(name, width)}{_refused(without)}{_refused(having)}"
            f"{'-' if gate is None else f'{gate:.2f}':>9}{'-' if auc is None else f'{auc:.2f}':>7}"
        )
    return lines


def _refused(kind: Mapping[str, Any] | None) -> str:
    if not kind:
        return f"{'-':>10}{0:>7}{'-':>9}"
    gate = kind["reasons"].get("gate", 0.0)
    asked = kind.get("questions", kind["n"])
    return f"{percent(kind['refused'], asked):>10}{kind['n']:>7,}{percent(gate, asked):>9}"


def _costs(arms: Mapping[str, Any]) -> list[str]:
    width = _label(arms)
    head = (
        f"{'':{width}}{'context':>9}{'sent':>8}{'got':>6}{'recall ms':>11}{'model s':>9}"
        f"{'cost':>9}{'malformed':>10}{'failed':>7}"
    )
    lines = ["What a question took (tokens and times: means), and what went wrong:", "",
             head, "-" * len(head)]  # fmt: skip
    for name, arm in arms.items():
        blocks: Sequence[Mapping[str, Any]] = [
            one for one in (arm["all"], arm["apart"]) if one is not None
        ]
        block = blocks[0]
        tokens = block["tokens"]
        wrong = [sum(one[what] for one in blocks) for what in ("malformed", "failed")]
        lines.append(
            f"{fitted(name, width)}{tokens['context']['mean']:>9,.0f}"
            f"{tokens['input']['mean']:>8,.0f}{tokens['output']['mean']:>6,.0f}"
            f"{block['recall_ms']['mean']:>11.1f}{block['seconds']['mean']:>9.2f}"
            f"{sum(one['cost'] for one in blocks):>9.4f}{wrong[0]:>10}{wrong[1]:>7}"
        )
    return lines

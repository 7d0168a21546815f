"""Comparisons as tables for a terminal: a line for every two sides, a table for every measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from cofire.evaluation.qa.comparing import COMPARED
from cofire.evaluation.qa.figures import LARGE, percent
from cofire.evaluation.qa.labels import NOTE, SHORTENED, fitted, labelled

WIDTH = 100
LABEL = 33
TITLES: Mapping[str, str] = {
    "judge": "Right, as the judge says",
    "right": "Right",
    "f1": "F1",
    "bleu1": "BLEU-1",
    "refused": "Refused, of questions without an answer",
    "falsely_refused": "Refused falsely, of questions with one",
}
Comparison = Mapping[str, Any]


def render_comparison(figures: Mapping[str, Any], *, groups: bool = False) -> str:
    """Plain-text tables of what `comparing.compare` gives, 100 columns at most; with `groups` the
    groups of questions under each line."""
    found: Sequence[Comparison] = figures["comparisons"]
    lines = [f"WARNING: {text}." for text in _told(found, "warnings")]
    lines += [*_partners(found), ""]
    for name in COMPARED:
        measured = [one for one in found if one["measures"][name] is not None]
        if measured:
            lines += [*_measure(name, measured, figures["holm"][name], groups=groups), ""]
    notes = [
        "Values in %, b - a with its 95 % interval; N: questions. p: exact McNemar for right or "
        "wrong, sign flips for scores. Holm: p corrected for the number of comparisons of that "
        "measure, in which identical ones do not count: no test could find anything there.",
    ]
    if groups:
        notes.append(
            "The p of groups are not corrected: they show where a difference lies, not that there "
            "is one."
        )
    if any(SHORTENED in line for line in lines):
        notes.append(NOTE)
    return "\n".join([*lines, *wrap(" ".join(notes), WIDTH)]) + "\n"


def _told(found: Iterable[Comparison], member: str) -> list[str]:
    return list(dict.fromkeys(text for one in found for text in one[member]))


def _partners(found: Sequence[Comparison]) -> list[str]:
    """How many pairs there are, once where it is the same for all."""
    told: dict[tuple[int, ...], list[Comparison]] = {}
    for one in found:
        key = tuple(one[name] for name in ("pairs", "questions", "only_a", "only_b"))
        told.setdefault(key, []).append(one)
    lines = []
    for (pairs, questions, only_a, only_b), some in told.items():
        who = "" if len(told) == 1 else f"{', '.join(_names(some))}: "
        lines += wrap(
            f"{who}{_many(pairs, 'pair')} of {_many(questions, 'question')}; without a partner: "
            f"{only_a:,} of a, {only_b:,} of b.",
            WIDTH,
        )
    return lines


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _names(found: Iterable[Comparison]) -> list[str]:
    return [_name(one["b"], one["a"]) for one in found]


def _name(side: Mapping[str, str], other: Mapping[str, str] | None = None) -> str:
    """The arm, with its file where that is another one than the other side's."""
    same = other is not None and side["result"] == other["result"]
    return side["arm"] if same else f"{side['arm']} of {side['result']}"


def _measure(name: str, found: Sequence[Comparison], tests: int, *, groups: bool) -> list[str]:
    title = f"{TITLES[name]} (Holm over {tests:,}):"
    if all(one["measures"][name]["identical"] for one in found):
        return [f"{TITLES[name]}: identical in every comparison ({len(found):,})."]
    lines = [title]
    blocks: dict[tuple[str, str], list[Comparison]] = {}
    for one in found:
        blocks.setdefault((one["a"]["result"], one["a"]["arm"]), []).append(one)
    for some in blocks.values():
        lines += ["", *_block(name, some, groups=groups)]
    return lines


def _block(name: str, found: Sequence[Comparison], *, groups: bool) -> list[str]:
    """What is compared with one side."""
    base = found[0]["a"]
    alone = all(one["b"]["result"] == base["result"] for one in found)
    labels = labelled([base["arm"], *(one["b"]["arm"] for one in found)]) if alone else {}
    places = {arm: place for place, arm in enumerate(labels)}
    head = (
        f"{'':{LABEL}}{'N':>6}{'a':>7}{'b':>7}{'b - a':>8}{'':18}{'p':>9}{'Holm':>9}"
    )  # fmt: skip
    model = "" if alone else f" ({base['model']})"
    lines = [f"a: {base['arm'] if alone else _name(base)}{model}", head, "-" * len(head)]
    same: list[str] = []
    for one in sorted(found, key=lambda one: places.get(one["b"]["arm"], 0)):
        measure = one["measures"][name]
        label = labels.get(one["b"]["arm"]) or _name(one["b"], one["a"])
        if measure["identical"]:
            same.append(_name(one["b"], one["a"]))
            continue
        lines.append(_row(label, measure))
        if groups and len(one["groups"]) > 1:
            lines += [
                _row(f"      {group}", some[name])
                for group, some in one["groups"].items()
                if some[name] is not None
            ]
    if same:
        lines += wrap(f"identical: {', '.join(same)}", WIDTH, subsequent_indent="  ")
    return lines


def _row(label: str, one: Mapping[str, Any]) -> str:
    a, b = (percent(one[side], one["questions"]) for side in ("a", "b"))
    decimals = 1 if one["questions"] >= LARGE else 0
    low, middle, high = (
        f"{100.0 * one['difference'][part]:+.{decimals}f}" for part in ("low", "mean", "high")
    )
    adjusted = _p(one["p_holm"]) if "p_holm" in one else ""
    return (
        f"{fitted(label, LABEL)}{one['questions']:6,}{a:>7}{b:>7}{middle:>8}  "
        f"{f'[{low}, {high}]':16}{_p(one['p']):>9}{adjusted:>9}"
    ).rstrip()


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"

"""What papers publish, beside what was measured here.

Figures are compared only where the benchmark, the answering model, the answer key, the measure and
(if a model judges) the judge are the same, and the questions are all that the papers asked.
Everything else stands apart, with the reason. The figures are in `data/published.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

METRICS: Mapping[str, str] = {"f1": "F1", "bleu1": "BLEU-1", "judge": "judged right"}
"""Measure → what a table calls it; all in percent."""
TENTH = 0.051
"""Two figures this close, in points, are the same one, printed with one place and with two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one method reaches, by one measure, in percent.

    `values` is by group of questions, with those that a source does not name left out. `average`
    is the source's own, None where it gives none. `tokens` are those of a question's context.
    `ran_by` says whose run it is and `conditions` what else is known of it. `asked` is the number
    of questions per group; None: all of the published data set. `ablation`: a system without one
    of its parts, or the run of the whole one that these are compared with.
    """

    source: str
    method: str
    benchmark: str
    model: str
    key: str
    metric: str
    judge: str | None = None
    values: Mapping[str, float]
    average: float | None = None
    tokens: float | None = None
    ran_by: str = ""
    conditions: str = ""
    ours: bool = False
    ablation: bool = False
    asked: Mapping[str, int] | None = None

    @property
    def weighted(self) -> float | None:
        """The average over all questions, by the right counts; None if a group is missing."""
        return weighted_average(self.values, counts_of(self.benchmark))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Figures that may be ranked: one benchmark, model, key, measure and judge. Best first; those
    whose average cannot be worked out come last, in the order they were given."""

    benchmark: str
    model: str
    key: str
    metric: str
    judge: str | None
    ablation: bool
    rows: tuple[Measured, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Figures of ours that no published ones may be ranked with, and why."""

    figures: Measured
    reason: str


@cache
def published_data() -> Mapping[str, Any]:
    """The file as it is: "counts", "papers", "gates", "efficiency", "rows"."""
    text = files("cofire.evaluation.qa").joinpath("data/published.json").read_text("utf-8")
    data: Mapping[str, Any] = json.loads(text)
    return data


@cache
def published_figures() -> tuple[Measured, ...]:
    """Every published row, in the papers' order."""
    data = published_data()
    return tuple(_published(row, data["key"]) for row in data["rows"])


def _published(row: Mapping[str, Any], key: str) -> Measured:
    return Measured(
        source=f"{_paper(row['paper'])['name']}, table {row['table']}",
        method=row["method"],
        benchmark=row["benchmark"],
        model=row["model"],
        key=key,
        metric=row["metric"],
        judge=row["judge"],
        values=row["values"],
        average=row["average"],
        tokens=row["tokens"],
        ran_by=row["ran_by"],
        conditions=row["conditions"],
        ablation=row["table"] in _paper(row["paper"])["ablations"],
    )


def _paper(id: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(one for one in published_data()["papers"] if one["id"] == id)
    return found


def counts_of(benchmark: str) -> Mapping[str, int]:
    """Questions per group of a whole benchmark, those in no average left out; empty if unknown."""
    counts: Mapping[str, int] = published_data()["counts"].get(benchmark, {})
    return counts


def weighted_average(values: Mapping[str, float], counts: Mapping[str, int]) -> float | None:
    """Σ N·S / Σ N (Synapse, eq. 6). None without counts, or where a group has no value."""
    if not counts or any(group not in values for group in counts):
        return None
    return sum(counts[group] * values[group] for group in counts) / sum(counts.values())


def same_model(one: str, other: str) -> bool:
    """Whether two names are of the same model: "openai:gpt-4o-mini" and "GPT-4o-mini" are; a dated
    snapshot is another one, since no paper says which it had."""
    return _bare(one) == _bare(other)


def _bare(model: str) -> str:
    provider, _, name = model.rpartition(":")
    return (name if provider in {"openai", ""} else model).strip().lower()


def grouped(
    published: Iterable[Measured], ours: Iterable[Measured] = ()
) -> tuple[tuple[Group, ...], tuple[Apart, ...]]:
    """The tables that may be shown: groups of published figures, in the papers' order, with ours
    where they belong, and those of ours that belong nowhere."""
    groups: dict[tuple[object, ...], list[Measured]] = {}
    for row in published:
        groups.setdefault(_group_key(row), []).append(row)
    apart = []
    for one in ours:
        reason = why_apart(one, [row for rows in groups.values() for row in rows])
        if reason:
            apart.append(Apart(figures=one, reason=reason))
        else:
            groups[_group_key(one)].append(one)
    return (
        tuple(_ranked(rows) for rows in groups.values()),
        tuple(apart),
    )


def _group_key(row: Measured) -> tuple[object, ...]:
    judge = row.judge and _bare(row.judge)
    return row.benchmark, _bare(row.model), row.key, row.metric, judge, row.ablation


def _ranked(rows: Sequence[Measured]) -> Group:
    first = rows[0]
    known = [(row.weighted, at) for at, row in enumerate(rows) if row.weighted is not None]
    order = [at for _, at in sorted(known, key=lambda one: (-one[0], one[1]))]
    order += [at for at, row in enumerate(rows) if row.weighted is None]
    return Group(
        benchmark=first.benchmark,
        model=first.model,
        key=first.key,
        metric=first.metric,
        judge=first.judge,
        ablation=first.ablation,
        rows=tuple(rows[at] for at in order),
    )


def why_apart(ours: Measured, published: Sequence[Measured]) -> str:
    """Why no published figures may be ranked with ours; empty where some may."""
    near = [
        row for row in published if (row.benchmark, row.metric) == (ours.benchmark, ours.metric)
    ]
    if not near:
        return "no paper here publishes this measure on this benchmark"
    near = [row for row in near if same_model(row.model, ours.model)]
    if not near:
        return f"no paper here answers with {ours.model}"
    if not any(row.key == ours.key for row in near):
        return f"scored by the {ours.key} key, the papers' by the {near[0].key} one"
    if not any(_group_key(row) == _group_key(ours) for row in near):
        return f"judged by {ours.judge or 'nobody'}, the papers' by {near[0].judge or 'nobody'}"
    counts = counts_of(ours.benchmark)
    if ours.asked is not None and any(ours.asked.get(name, 0) < n for name, n in counts.items()):
        asked = sum(ours.asked.get(name, 0) for name in counts)
        return f"{asked:,} of the {sum(counts.values()):,} questions that the papers ask"
    return ""


def repeated(row: Measured, among: Iterable[Measured]) -> Measured | None:
    """The row of an earlier source with the same figures: same method, model and measure, and every
    value the same to a tenth. Two papers that print one run do not confirm each other."""
    for other in among:
        if other is row:
            return None
        if _same_figures(other, row):
            return other
    return None


def _same_figures(one: Measured, other: Measured) -> bool:
    if one.source == other.source or _bare(one.model) != _bare(other.model) or not one.values:
        return False
    if any(
        getattr(one, name) != getattr(other, name) for name in ("method", "metric", "benchmark")
    ):
        return False
    return all(
        name in other.values and abs(other.values[name] - value) < TENTH
        for name, value in one.values.items()
    )

"""The papers' figures, and ours beside them, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cofire.evaluation.qa.markdown import NONE, escaped, plain, table
from cofire.evaluation.qa.published import (
    METRICS,
    Apart,
    Group,
    Measured,
    counts_of,
    grouped,
    published_data,
    published_figures,
    repeated,
)

BENCHMARKS = {"locomo": "LoCoMo", "longmemeval-s": "LongMemEval-S"}
ADVERSARIAL = "adversarial"
"""LoCoMo's category 5, which is in no average."""


def published_tables(*, benchmark: str, metrics: Sequence[str], ablations: bool) -> list[str]:
    """Lines: a table for each group of published figures, under its title."""
    rows = [
        row
        for row in published_figures()
        if row.benchmark == benchmark and row.metric in metrics and row.ablation is ablations
    ]
    lines: list[str] = []
    for group in grouped(rows)[0]:
        lines += [f"**{group_title(group)}**", "", *group_table(group), ""]
    return lines[:-1]


def group_title(group: Group) -> str:
    """What all rows of a group share."""
    judge = f", judged by {escaped(group.judge)}" if group.judge else ""
    name = BENCHMARKS.get(group.benchmark, group.benchmark)
    return (
        f"{escaped(name)}, {METRICS[group.metric]}, %{', ablations' if group.ablation else ''}: "
        f"{escaped(group.model)}{judge}, {group.key} key"
    )


def group_table(group: Group) -> list[str]:
    """The group's rows: per group of questions, the source's average, the recomputed one."""
    names = _columns(group.rows, group.benchmark)
    head = ["method", "source", *names, "average as published", "average", "tokens"]
    return table(head, [_cells(row, names) for row in group.rows], left=2)


def apart_table(apart: Sequence[Apart]) -> list[str]:
    """Ours with what keeps each from the papers' tables; not sorted, since it ranks nothing."""
    lines: list[str] = []
    benchmarks = list(dict.fromkeys(one.figures.benchmark for one in apart))
    for benchmark in benchmarks:
        some = [one for one in apart if one.figures.benchmark == benchmark]
        names = _columns([one.figures for one in some], benchmark)
        head = ["ours", "model", "measure", *names, "average", "why apart"]
        cells = [
            [
                escaped(one.figures.method),
                escaped(one.figures.model),
                METRICS[one.figures.metric],
                *(plain(one.figures.values.get(name)) for name in names),
                plain(_own_average(one.figures)),
                escaped(one.reason),
            ]
            for one in some
        ]
        lines += [*([""] if lines else []), *table(head, cells, left=3)]
    return lines


def _own_average(row: Measured) -> float | None:
    return row.average if row.average is not None else row.weighted


def _columns(rows: Sequence[Measured], benchmark: str) -> list[str]:
    """Groups of questions in the benchmark's order, category 5 last; others as they come."""
    named = dict.fromkeys(name for row in rows for name in row.values)
    known = [name for name in counts_of(benchmark) if name in named]
    others = [name for name in named if name not in known and name != ADVERSARIAL]
    return [*known, *others, *([ADVERSARIAL] if ADVERSARIAL in named else [])]


def _cells(row: Measured, names: Sequence[str]) -> list[str]:
    same = None if row.ours else repeated(row, published_figures())
    source = "measured here" if row.ours else escaped(row.source)
    if same is not None:
        source += f" (same figures as {escaped(same.source)})"
    method = f"**{escaped(row.method)}**" if row.ours else escaped(row.method)
    return [
        method,
        source,
        *(plain(row.values.get(name)) for name in names),
        NONE if row.ours else plain(row.average),
        plain(row.weighted),
        plain(row.tokens, 0),
    ]


def counts_note(benchmark: str) -> str:
    """By which counts averages were worked out."""
    counts = ", ".join(f"{name} {count}" for name, count in counts_of(benchmark).items())
    return f"Averages are weighted by the questions of each group: {counts}."


def paper_notes() -> list[str]:
    """Lines: what is odd in each paper's figures."""
    return [
        f"- {paper['name']}: {escaped(note)}"
        for paper in published_data()["papers"]
        for note in paper["notes"]
    ]


def run_notes(rows: Iterable[Measured] | None = None) -> list[list[str]]:
    """Cells: whose runs they are and under what conditions, by source and method."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in published_figures() if rows is None else rows:
        key = (row.source, row.ran_by, row.conditions)
        methods = found.setdefault(key, [])
        if row.method not in methods:
            methods.append(row.method)
    return [
        [
            escaped(source),
            escaped(", ".join(methods)),
            escaped(ran_by or NONE),
            escaped(more or NONE),
        ]
        for (source, ran_by, more), methods in found.items()
    ]

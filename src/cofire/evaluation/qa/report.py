"""A result as a report in Markdown: what was measured, under what conditions, how to do it again.

`result` is what `cofire evaluate … --answer --json FILE` writes: the members of `figures_of`, and
"model", "judge", "cofire" (versions), "settings", "command", "comparisons", "outcomes", each of
which may be missing. Only the figures are read, never the outcomes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cofire.evaluation.qa.charts import (
    FULL,
    MEASURES,
    Chart,
    bound_of,
    by_oracle,
    charts_of,
    key_of,
    main_measure,
    measured,
    unscored_note,
)
from cofire.evaluation.qa.markdown import NONE, escaped, plain, table
from cofire.evaluation.qa.published import (
    METRICS,
    Measured,
    grouped,
    published_figures,
    same_model,
)
from cofire.evaluation.qa.published_tables import (
    BENCHMARKS,
    apart_table,
    counts_note,
    group_table,
    group_title,
)
from cofire.evaluation.qa.report_tables import (
    SAYS,
    SCORES,
    Result,
    ablations,
    abstentions,
    comparisons,
    costs,
    interval,
    judging,
    refusals,
    refused_share,
    scores,
    totals,
)

NAMES = {**BENCHMARKS, "longmemeval": "LongMemEval", "choices": "multiple-choice questions"}
TOLD = frozenset({"model", "judge", "cofire", "command"})
"""Settings that have a place of their own."""
WITH_MODEL = frozenset({"temperature", "max_tokens", "prompts", "endpoint"})
WITH_JUDGE = frozenset({"judge_runs", "judge_prompts"})
"""Those that say nothing of a run without a model, or without a judge."""
WORDS = frozenset({"f1", "bleu1", "judge"})
"""What depends on the words of an answer; an oracle has none of its own."""
NO_CHARTS = (
    "Charts are left out: they need matplotlib, which `pip install 'cofire[plot]'` adds. "
    "The tables have all of their figures."
)


def render_report(result: Result, pictures: Mapping[str, Sequence[str]] | None = None) -> str:
    """The report. `pictures`: the files of each chart (its name → files beside the report, the one
    to show first); None: charts could not be drawn."""
    charts: dict[str, Chart] = {chart.name: chart for chart in charts_of(result)}

    def shown(name: str) -> list[str]:
        chart = charts.get(name)
        return [] if chart is None or not pictures else _picture(chart, pictures.get(name, ()))

    sections: list[tuple[str, list[str]]] = [
        ("", [f"# {_title(result)}", "", *_summary(result)]),
        ("Conditions", _conditions(result)),
        ("Results", _results(result, shown)),
        ("Refusals", [*refusals(result), *shown("refusals")]),
        ("What it took", costs(result)),
        ("The judge", judging(result)),
        ("What each mechanism gives", [*ablations(result), *shown("ablations")]),
        ("Comparisons", comparisons(result)),
        ("Beside what papers publish", _published(result)),
        ("How to measure this again", _again(result)),
    ]
    lines: list[str] = []
    for name, body in sections:
        if body:
            lines += [*([f"## {name}", ""] if name else []), *body, ""]
    if charts and pictures is None:
        lines += [NO_CHARTS, ""]
    return "\n".join(lines).rstrip() + "\n"


def _title(result: Result) -> str:
    return f"{escaped(NAMES.get(str(result['benchmark']), result['benchmark']))}, answered"


def _settings(result: Result) -> Mapping[str, Any]:
    found: Mapping[str, Any] = result.get("settings") or {}
    return found


def _named(result: Result, member: str) -> str:
    """Who answers or judges: its name, of a value with more in it that which is called so."""
    value = result.get(member)
    return str(value.get("name") or value) if isinstance(value, Mapping) else str(value or "")


def _summary(result: Result) -> list[str]:
    """The first way of recalling, at each of its budgets, by what the result is about; and what it
    refused."""
    arms = result["arms"]
    if not arms:
        return ["Nothing was asked."]
    base, first = bound_of(next(iter(arms))).base, next(iter(arms.values()))
    measure = main_measure(result)
    reached = [
        f"{interval(measured(arm, measure))}{_at(name)}"
        for name, arm in arms.items()
        if bound_of(name).base == base
    ]
    parts = [
        f"{escaped(base)}: {MEASURES[measure]}, %, {'; '.join(reached)}. Answered by "
        f"{escaped(_named(result, 'model') or 'an unnamed model')}{_asked(first)}."
    ]
    both = first.get("refusals") or {}
    refused, falsely = both.get("unanswerable"), both.get("answerable")
    if refused and falsely:
        parts.append(
            f"{escaped(next(iter(arms)))} refused {refused_share(refused)} % of questions that "
            f"have no answer (asked {refused['n']:,} times), and {refused_share(falsely)} % of "
            f"those that have one ({falsely['n']:,} times)."
        )
    wrong = sum(totals(one)[kind] for one in arms.values() for kind in ("malformed", "failed"))
    if wrong:
        told = "reply was" if wrong == 1 else "replies were"
        parts.append(f"{wrong:,} {told} unusable or failed; see below.")
    unscored = unscored_note(result)
    if unscored:
        parts.append(unscored)
    if _settings(result).get("complete") is False:
        parts.append("**The run is not complete:** questions are left to be asked.")
    return [" ".join(parts)]


def _at(name: str) -> str:
    _, tokens, k = bound_of(name)
    if tokens is not None:
        return f" with {tokens:,} tokens"
    return "" if k is None else f" with k = {k}"


def _asked(arm: Result) -> str:
    block = arm.get("all")
    if not block:
        return ""
    seeds = len(arm.get("seeds", ()))
    more = f" under {seeds} seeds" if seeds > 1 else ""
    return f", {block['questions']:,} question{'' if block['questions'] == 1 else 's'}{more}"


def _picture(chart: Chart, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = [f"[{escaped(name)}]({name})" for name in names[1:]]
    return ["", f"![{escaped(chart.title)}]({names[0]})", *(["", ", ".join(more)] if more else [])]


def _conditions(result: Result) -> list[str]:
    rows = [
        ("data set", NAMES.get(str(result["benchmark"]), str(result["benchmark"]))),
        ("answer key", key_of(result)),
        ("answered by", _named(result, "model") or NONE),
        ("judged by", _named(result, "judge") or "nobody"),
        ("Cofire", result.get("cofire") or NONE),
        *_flat(_told(result)),
    ]
    lines = table(["", ""], [[escaped(name), escaped(value)] for name, value in rows], left=2)
    return [*lines, "", *_counts(result)]


def _told(result: Result) -> Mapping[str, Any]:
    """The settings that had a bearing on this run: without a model nothing was put to one."""
    settings = _settings(result)
    hidden = set(TOLD)
    if settings.get("answer", "model") != "model":
        hidden |= WITH_MODEL
        if not any(bound_of(name).base == FULL for name in result["arms"]):
            hidden.add("window")
    if not result.get("judge"):
        hidden |= WITH_JUDGE
    return {name: value for name, value in settings.items() if name not in hidden}


def _flat(settings: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Settings as rows; those in groups are named after their group."""
    rows: list[tuple[str, str]] = []
    for name, value in settings.items():
        label = f"{before}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            rows += _flat(value, f"{label}: ")
        elif isinstance(value, list | tuple):
            rows.append((label, ", ".join(map(str, value)) or NONE))
        else:
            rows.append((label, _shown(value)))
    return rows


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NONE if value is None or value == "" else str(value)


def _counts(result: Result) -> list[str]:
    """Questions asked per group, by how many the published data set has."""
    published = result.get("counts") or {}
    asked: dict[str, int] = {}
    for arm in result["arms"].values():
        for name, block in arm["groups"].items():
            asked[name] = max(asked.get(name, 0), block["questions"])
    rows = [
        [
            escaped(name) + (" (apart)" if name in result.get("scored_apart", ()) else ""),
            plain(count, 0),
            plain(published.get(name), 0),
        ]
        for name, count in asked.items()
    ]
    return table(["group", "questions asked", "of the published"], rows)


def _results(result: Result, shown: Callable[[str], list[str]]) -> list[str]:
    """A table per measure that was taken, arms in the order in which they were asked for."""
    lines = [
        "In percent, with 95 % intervals (bootstrap over questions). Groups that are scored apart "
        "are in neither average."
    ]
    main = main_measure(result)
    told = [name for name in SCORES if not (by_oracle(result) and name in WORDS)]
    for measure in sorted(told, key=lambda name: name != main):
        some = scores(result, measure)
        if some:
            lines += ["", f"### {MEASURES[measure][:1].upper()}{MEASURES[measure][1:]}", ""]
            lines += [SAYS[measure], "", *some]
        if measure == main:
            apart = abstentions(result, measure)
            lines += ["", *apart] if apart else []
            lines += [*shown("tokens"), *shown("k")]
    return lines if len(lines) > 1 else []


def measured_here(result: Result) -> Iterable[Measured]:
    """Our figures in the shape of the papers', for each arm and measure that papers publish."""
    benchmark = str(result["benchmark"])
    if result.get("variant"):
        benchmark = f"{benchmark}-{result['variant']}"
    for name, arm in result["arms"].items():
        for metric in METRICS:
            values = {
                group: 100.0 * block["measures"][metric]["mean"]
                for group, block in arm["groups"].items()
                if block["measures"].get(metric)
            }
            if values and arm.get("all"):
                found = measured(arm, metric)
                yield Measured(
                    source="measured here",
                    method=f"Cofire: {name}",
                    benchmark=benchmark,
                    model=_named(result, "model") or "an unnamed model",
                    key=str(result.get("key")),
                    metric=metric,
                    judge=_named(result, "judge") or None if metric == "judge" else None,
                    values=values,
                    average=None if found is None else 100.0 * found["mean"],
                    tokens=arm["all"]["tokens"]["context"]["mean"],
                    ours=True,
                    ablation=" without " in name,
                    asked={group: block["questions"] for group, block in arm["groups"].items()},
                )


def _published(result: Result) -> list[str]:
    """Ours that stand apart first, with the reason; then the papers' tables: of our model by every
    measure we have, of other models by the main one."""
    ours = [row for row in measured_here(result) if not row.ablation]
    if by_oracle(result) and ours:
        return ["An oracle answered, and no paper reports one: nothing published compares with it."]
    if not ours:
        return []
    metrics = list(dict.fromkeys(row.metric for row in ours))
    near = [
        row
        for row in published_figures()
        if row.benchmark == ours[0].benchmark and row.metric in metrics and not row.ablation
    ]
    if not near:
        return [
            "No paper whose figures ship with Cofire reports these measures on these questions."
        ]
    main = "f1" if "f1" in metrics and ours[0].benchmark == "locomo" else metrics[-1]
    groups, apart = grouped(near, ours)
    shown = [one for one in groups if one.metric == main or same_model(one.model, ours[0].model)]
    return [
        "A table ranks one benchmark, answering model, answer key and measure. Ours is in one only "
        "where all of these are the same, and the same questions were asked; elsewhere it stands "
        "apart. Cofire's documentation (docs/explanation/papers-tables.md) tells whose runs these "
        f"are, what is odd in them, and has the rest. {counts_note(ours[0].benchmark)}",
        *(
            ["", "**Ours, in no ranking with the papers'**", "", *apart_table(apart)]
            if apart
            else []
        ),
        *[
            line
            for group in shown
            for line in ("", f"**{group_title(group)}**", "", *group_table(group))
        ],
    ]


def _again(result: Result) -> list[str]:
    command = result.get("command") or _settings(result).get("command")
    if not command:
        return []
    line = command if isinstance(command, str) else shlex.join(map(str, command))
    fence = "```"
    while fence in line:
        fence += "`"
    return [f"{fence}sh", " ".join(line.split()), fence]

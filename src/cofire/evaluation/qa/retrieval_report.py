"""The retrieval of LongMemEval as tables to read and as JSON to keep."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cofire import __version__
from cofire.evaluation.metrics import percentile
from cofire.evaluation.qa.retrieval import LEVELS, PUBLISHED_LEVELS, Retrieval, Row
from cofire.evaluation.report import loader_figures

_KINDS = ("any", "all", "ndcg")


def render_retrieval(result: Retrieval) -> str:
    """Plain-text tables, 100 columns at most."""
    lines = [
        f"LongMemEval, retrieval: {result.questions} "
        f"{'question' if result.questions == 1 else 'questions'}, "
        f"{result.turns:,} turns remembered. No language model.",
        _left_out(result),
        _loader(result),
        "",
        "any@k, all@k: questions, %, with any or all of their evidence among the first k; NDCG@k x",
        "100. Levels: user turns and user sessions rank only what the user said, as the",
        "benchmark's own retrieval evaluation does; turns and sessions rank both sides. The whole",
        "ranking counts: a profile's cutoff is off.",
        "",
        *_overview(result),
    ]
    for level in LEVELS:
        lines += ["", f"{result.profiles[0]}, {level}: by type", ""]
        lines += _details(result.rows(result.profiles[0], level), result.ks)
    processes = f" in {result.jobs} processes" if result.jobs > 1 else ""
    each = result.seconds / max(1, _scored(result))
    lines += ["", f"{result.seconds:,.0f} s{processes}, {each:.1f} s a question that was scored."]
    return "\n".join(lines) + "\n"


def retrieval_figures(result: Retrieval) -> dict[str, Any]:
    """Everything, down to the places of each question's evidence."""
    return {
        "benchmark": "longmemeval",
        "measure": "retrieval",
        "source": result.source.rpartition("/")[2],
        "questions": result.questions,
        "left_out": dict(result.left_out),
        "turns": result.turns,
        "ks": list(result.ks),
        "slept": result.slept,
        "jobs": result.jobs,
        "seconds": result.seconds,
        "cofire": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "loader": loader_figures(result.report),
        "profiles": {
            profile: {
                "levels": {
                    level: {
                        group: asdict(row) for group, row in result.rows(profile, level).items()
                    }
                    for level in LEVELS
                },
                "milliseconds": percentile(_milliseconds(result, profile), 0.5),
                "questions": [
                    {"task": one.task, "group": one.group, "ranks": list(one.ranks)}
                    for one in result.retrieved
                    if one.profile == profile
                ],
            }
            for profile in result.profiles
        },
    }


def _left_out(result: Retrieval) -> str:
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(result.left_out.items()))
    return f"Left out: {told or 'none'}."


def _loader(result: Retrieval) -> str:
    report = result.report
    return (
        f"The loader repaired {report.repaired} entries, skipped {report.skipped}, dropped "
        f"{report.dropped} and noted {report.noted}; --json lists each."
    )


def _scored(result: Retrieval) -> int:
    return len({one.task for one in result.retrieved})


def _milliseconds(result: Retrieval, profile: str) -> list[float]:
    return [one.milliseconds for one in result.retrieved if one.profile == profile]


def _overview(result: Retrieval) -> list[str]:
    """A row per profile: the levels of the published figures, then the milliseconds."""
    shown = [k for k in result.ks if k in {5, 10}] or list(result.ks[:2])
    places = [result.ks.index(k) for k in shown]
    width = max(len(name) for name in result.profiles)
    names = [f"{kind}@{k}" for kind in ("all", "ndcg") for k in shown]
    block = "".join(f"{name:>9}" for name in names)
    above = f"{'':{width}}" + "".join(f"  {level:^{len(block)}}" for level in PUBLISHED_LEVELS)
    head = f"{'':{width}}" + f"  {block}" * len(PUBLISHED_LEVELS) + f"{'ms':>7}"
    lines = [above.rstrip(), head, "-" * len(head)]
    for profile in result.profiles:
        line = f"{profile:{width}}"
        for level in PUBLISHED_LEVELS:
            row = result.rows(profile, level).get("all")
            values = [
                getattr(row, kind)[place] if row else None
                for kind in ("all", "ndcg")
                for place in places
            ]
            line += "  " + "".join(_cell(value, 9) for value in values)
        lines.append(line + f"{percentile(_milliseconds(result, profile), 0.5):7.1f}")
    return lines


def _details(rows: dict[str, Row], ks: Sequence[int]) -> list[str]:
    """A row per type: any, all and NDCG at each k."""
    if not rows:
        return ["no question has evidence at this level"]
    width = max(len(group) for group in rows)
    block = "".join(f"{f'@{k}':>5}" for k in ks)
    above = f"{'':{width}}{'':>5}" + "".join(
        f"  {kind.upper() if kind == 'ndcg' else kind:^{len(block)}}" for kind in _KINDS
    )
    head = f"{'':{width}}{'N':>5}" + f"  {block}" * len(_KINDS)
    lines = [above.rstrip(), head, "-" * len(head)]
    for group, row in rows.items():
        line = f"{group:{width}}{row.questions:5}"
        for kind in _KINDS:
            line += "  " + "".join(_short(value) for value in getattr(row, kind))
        lines.append(line)
    return lines


def _cell(value: float | None, width: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:{width}.1f}"


def _short(value: float) -> str:
    """In five characters, one of them a gap: "100" without a decimal."""
    return f"{value:5.1f}" if value < 99.95 else f"{value:5.0f}"

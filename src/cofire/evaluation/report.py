"""A result as tables to read and as JSON to keep."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cofire import __version__
from cofire.evaluation.gate_report import render_gate
from cofire.evaluation.locomo import Asked, Result, subsets, summarise
from cofire.evaluation.metrics import mean, percentile
from cofire.interchange import Action, ImportReport


def render(result: Result) -> str:
    """Plain-text tables, 100 columns at most."""
    key = "corrected key" if result.corrected else "published key"
    lines = [
        f"LoCoMo, {key}: {result.questions} questions of categories 1-4 with evidence "
        f"({result.left_out}",
        "others left out). No language model.",
        _dropped(result),
        "",
        "Evidence recall@k, %: mean share of a question's evidence turns among the first k; all@k,",
        "%: questions whose evidence is there whole; tokens and milliseconds at the largest k",
        "(median, the question's vector at hand / not).",
        "",
    ]
    lines += _overview(result)
    for profile in _detailed(result):
        lines += ["", f"{profile}: by category and by how far the evidence is", ""]
        lines += _details(result.asked[profile], result.ks)
    for profile, gating in result.gating.items():
        lines += ["", *render_gate(profile, gating)]
    if result.folds:
        lines += [
            "",
            "Left out: weights and constants were chosen without the conversation that is",
        ]
        lines += ["scored. The other rows use those that ship, which were fitted to all of them."]
    return "\n".join(lines) + "\n"


def _dropped(result: Result) -> str:
    report = result.report
    return (
        f"The loader repaired {report.repaired} entries, skipped {report.skipped}, dropped "
        f"{report.dropped} and noted {report.noted}; --json lists each."
    )


def _overview(result: Result) -> list[str]:
    ks = result.ks
    width = max(len(name) for name in result.asked)
    head = f"{'':{width}}  " + "".join(f"{f'@{k}':>7}" for k in ks)
    at = 10 if 10 in ks else ks[0]
    head += f"{f'all@{at}':>8}{f'mh@{ks[-1]}':>7}{'tokens':>8}{'ms':>14}"
    lines = [head, "-" * len(head)]
    for name, asked in result.asked.items():
        row = summarise(asked, ks)
        multi = summarise([one for one in asked if one.category == 1], ks)
        tokens = mean([one.tokens[-1] for one in asked])
        quick = percentile([one.milliseconds for one in asked], 0.5)
        slow = percentile([one.milliseconds_embedding for one in asked], 0.5)
        lines.append(
            f"{name:{width}}  "
            + "".join(f"{value:7.1f}" for value in row.recall)
            + f"{row.all[ks.index(at)]:8.1f}{multi.recall[-1]:7.1f}{tokens:8.0f}"
            + f"{f'{quick:.1f} / {slow:.1f}':>14}"
        )
    return lines


def _detailed(result: Result) -> list[str]:
    """The profiles worth a table of their own: the default, its cross-validation, baselines."""
    return [name for name in result.asked if " without " not in name]


def _details(asked: Sequence[Asked], ks: Sequence[int]) -> list[str]:
    head = f"{'':18}{'N':>5}" + "".join(f"{f'{name}@{k}':>8}" for name in ("R", "all") for k in ks)
    lines = [head, "-" * len(head)]
    for name, some in subsets(asked).items():
        row = summarise(some, ks)
        lines.append(
            f"{name:18}{row.questions:5}"
            + "".join(f"{value:8.1f}" for value in (*row.recall, *row.all))
        )
    row = summarise(asked, ks)
    lines.append(
        f"{'sessions':18}{row.questions:5}"
        + "".join(f"{value:8.1f}" for value in (*row.session_recall, *row.session_all))
    )
    return lines


def loader_figures(report: ImportReport) -> dict[str, Any]:
    """What was read of a file, and what was wrong with it: counts, and reasons by what was done."""
    return {
        "read": report.read,
        "repaired": report.repaired,
        "skipped": report.skipped,
        "dropped": report.dropped,
        "noted": report.noted,
        "problems": {
            action.value: reasons for action in Action if (reasons := report.reasons(action))
        },
    }


def to_json(result: Result) -> dict[str, Any]:
    """Everything, down to each question's ranked turns."""
    return {
        "benchmark": "locomo",
        "source": result.source.rpartition("/")[2],
        "corrected_key": result.corrected,
        "questions": result.questions,
        "left_out": result.left_out,
        "ks": list(result.ks),
        "cofire": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "loader": loader_figures(result.report),
        "profiles": {name: _profile(asked, result.ks) for name, asked in result.asked.items()},
        "gating": {name: asdict(gating) for name, gating in result.gating.items()},
        "folds": [
            {
                "left_out": fold.left_out,
                "bm25": asdict(fold.profile.bm25),
                "window": {str(step): share for step, share in fold.profile.window.items()},
                "weights": dict(fold.profile.weights),
            }
            for fold in result.folds
        ],
    }


def _profile(asked: Sequence[Asked], ks: Sequence[int]) -> dict[str, Any]:
    return {
        "subsets": {name: asdict(summarise(some, ks)) for name, some in subsets(asked).items()},
        "tokens": [mean([one.tokens[place] for one in asked]) for place in range(len(ks))],
        "milliseconds": {
            "median": percentile([one.milliseconds for one in asked], 0.5),
            "p95": percentile([one.milliseconds for one in asked], 0.95),
        },
        "milliseconds_with_embedding": {
            "median": percentile([one.milliseconds_embedding for one in asked], 0.5),
            "p95": percentile([one.milliseconds_embedding for one in asked], 0.95),
        },
        "questions": [
            {
                "sample": one.sample,
                "position": one.position,
                "category": one.category,
                "closeness": round(one.closeness, 4),
                "evidence_ranks": [
                    one.ranked.index(id) + 1 if id in one.ranked else None for id in one.evidence
                ],
                "tokens": list(one.tokens),
            }
            for one in asked
        ],
    }

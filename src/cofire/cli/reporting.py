"""A result of an evaluation as a folder: the report, and its charts where they can be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofire.errors import FormatError, MissingExtraError

if TYPE_CHECKING:
    from cofire.evaluation.qa.charts import Chart, Spot
    from cofire.plotting.answers import Point

REPORT = "report.md"


def write_report(result: Mapping[str, Any], folder: Path) -> Path:
    """Write report.md into the folder, which is made if need be, and beside it every chart as SVG
    and PNG. Each file appears whole or not at all, the report last; what an earlier run left there
    under the same names is replaced. Without matplotlib there is the report alone, which says so.

    Returns where the report is. Raises FormatError (`result` is no result of questions answered),
    OSError.
    """
    from cofire.evaluation.qa.charts import charts_of
    from cofire.evaluation.qa.report import render_report

    arms = result.get("arms")
    if (
        "benchmark" not in result
        or not isinstance(arms, Mapping)
        or not all(map(_is_arm, arms.values()))
    ):
        raise FormatError(
            "this is no result of questions answered; `cofire evaluate locomo PATH --answer MODEL "
            "--json FILE` writes one"
        )
    folder.mkdir(parents=True, exist_ok=True)
    text = render_report(result, _drawn(charts_of(result), folder))
    place = folder / REPORT
    partial = folder / f".{REPORT}.partial"
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)
    return place


def _is_arm(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("groups"), Mapping)


def _drawn(charts: tuple[Chart, ...], folder: Path) -> dict[str, tuple[str, ...]] | None:
    """The files of each chart; None without matplotlib."""
    pictures: dict[str, tuple[str, ...]] = {}
    try:
        for chart in charts:
            names = (f"{chart.name}.svg", f"{chart.name}.png")
            for name in names:
                _draw(chart, folder / name)
            pictures[chart.name] = names
    except MissingExtraError:
        return None
    return pictures


def _draw(chart: Chart, place: Path) -> None:
    from cofire.plotting.answers import (
        Refusals,
        plot_ablations,
        plot_k,
        plot_refusals,
        plot_tokens,
    )

    lines = {name: [_point(spot) for spot in spots] for name, spots in chart.lines.items()}
    if chart.name == "tokens":
        plot_tokens(lines, place, measure=chart.measure)
    elif chart.name == "k":
        plot_k(lines, place, measure=chart.measure)
    elif chart.name == "ablations":
        changes = {name: points[0] for name, points in lines.items()}
        plot_ablations(changes, place, measure=chart.measure, against=chart.against)
    else:
        curves = {
            name: Refusals(
                false=tuple(point.at for point in points),
                right=tuple(point.mean for point in points),
                default=(mark.at, mark.mean) if (mark := chart.marks.get(name)) else None,
            )
            for name, points in lines.items()
        }
        plot_refusals(curves, place)


def _point(spot: Spot) -> Point:
    from cofire.plotting.answers import Point

    return Point(at=spot.at, mean=spot.mean, low=spot.low, high=spot.high)

"""What learning adds: by the share of questions learned from, and by the way of learning."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofire.errors import FormatError, NotFoundError
from cofire.plotting.canvas import BLUE, GREEN, GRID, INK, ORANGE, PALE, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN: Mapping[str, tuple[str, str, str]] = {
    "all": (INK, "o", "all questions"),
    "multi evidence": (BLUE, "s", "several pieces of evidence"),
    "evidence shared with training": (GREEN, "D", "evidence shared with training"),
    "no evidence shared": (ORANGE, "^", "no evidence shared"),
}
"""Subset → colour, marker, label."""
AT = 10


def plot_learning(figures: Mapping[str, Any], path: str | Path) -> Path:
    """Draw what `cofire evaluate locomo --learning` measured. Raises FormatError if `figures`
    are something else, InputError, MissingExtraError, OSError."""
    try:
        place = list(figures["ks"]).index(AT)
        arms = {
            name: arm
            for name, arm in figures["arms"].items()
            if name != "frozen" and arm["base"] == "frozen"
        }
        curve = [point for point in figures["curve"] if point["subsets"]]
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise FormatError(
            "this is no result of `cofire evaluate locomo --learning --json FILE`"
        ) from exc

    def paint(figure_of_size: Callable[..., Figure]) -> Figure:
        figure = figure_of_size(11.0, 1.6 + 0.55 * max(len(arms), 6))
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
        _curve(left, curve, place)
        _arms(right, arms, place)
        handles, labels = right.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        return figure

    return draw(path, paint)


def read_figures(path: str | Path) -> Mapping[str, Any]:
    """A file of `--json`. Raises NotFoundError, FormatError."""
    source = Path(path).expanduser()
    try:
        figures = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise NotFoundError(f"there is no file {source}") from exc
    except ValueError as exc:
        raise FormatError(f"{source} is no JSON: {exc}") from exc
    if not isinstance(figures, dict):
        raise FormatError(f"{source} is no result of an evaluation")
    return figures


def _curve(axes: Axes, curve: Sequence[Mapping[str, Any]], place: int) -> None:
    axes.axhline(0.0, color=PALE, linewidth=1.0)
    for name, (colour, marker, _) in SHOWN.items():
        points = [
            (100.0 * point["share"], point["subsets"][name]["difference"][place])
            for point in curve
            if name in point["subsets"]
        ]
        if not points:
            continue
        shares = [share for share, _ in points]
        axes.plot(shares, [one["mean"] for _, one in points], color=colour, marker=marker)
        if name in {"all", "multi evidence"}:
            lows, highs = ([one[end] for _, one in points] for end in ("low", "high"))
            axes.fill_between(shares, lows, highs, color=colour, alpha=0.12, linewidth=0.0)
    axes.set_title("By the share of questions learned from (bands: 95 %)")
    axes.set_xlabel("questions learned from, %")
    axes.set_ylabel(f"evidence recall@{AT}: points above\na memory that learned nothing")
    axes.set_xlim(-2.0, 92.0)
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)


def _arms(axes: Axes, arms: Mapping[str, Any], place: int) -> None:
    axes.axvline(0.0, color=PALE, linewidth=1.0)
    step = 0.8 / len(SHOWN)
    for row, (name, (colour, marker, label)) in enumerate(SHOWN.items()):
        found = [
            (at, arm["subsets"][name]["difference"][place])
            for at, arm in enumerate(arms.values())
            if name in arm["subsets"]
        ]
        if not found:
            continue
        heights = [at + (row - (len(SHOWN) - 1) / 2.0) * step for at, _ in found]
        means = [one["mean"] for _, one in found]
        errors = [
            [one["mean"] - one["low"] for _, one in found],
            [one["high"] - one["mean"] for _, one in found],
        ]
        axes.errorbar(
            means, heights, xerr=errors, fmt=marker, color=colour, markersize=4.5,
            linewidth=1.2, label=label,
        )  # fmt: skip
    axes.set_yticks(range(len(arms)), list(arms))
    axes.set_ylim(len(arms) - 0.4, -0.6)
    for at in range(1, len(arms)):
        axes.axhline(at - 0.5, color=GRID, linewidth=0.8)
    axes.set_title("By way of learning, from half of the questions (bars: 95 %)")
    axes.set_xlabel(f"evidence recall@{AT}: points added")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)

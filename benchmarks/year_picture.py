"""The picture of `benchmarks.year`: how large the active graph is, what is still found, what a
night does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofire.plotting.canvas import BLUE, GREEN, GRID, INK, ORANGE, PALE, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SORTS: Mapping[str, tuple[str, str]] = {
    "asked": (BLUE, "asked for now and then"),
    "important": (GREEN, "important, never asked for"),
    "silent": (ORANGE, "neither"),
}
WIDTHS = {"asked": 5.0}
"""Below the others, which may lie on it."""
STYLES = ("-", "--", ":")
"""One a line for each arm."""


def plot_year(results: Mapping[str, Any], path: str | Path) -> Path:
    """Draw what `benchmarks.year` measured. Raises InputError, MissingExtraError, OSError."""

    def paint(figure_of_size: Callable[..., Figure]) -> Figure:
        figure = figure_of_size(11.0, 4.2)
        axes = figure.subplots(1, 3)
        arms = results["arms"]
        _sizes(axes[0], arms, results["most"])
        _found(axes[1], arms)
        _work(axes[2], arms)
        for one in axes:
            one.set_xlabel("day")
            one.grid(axis="y", color=GRID)
            one.set_axisbelow(True)
            one.set_ylim(bottom=0.0)
        return figure

    return draw(path, paint)


def _sizes(axes: Axes, arms: Mapping[str, Any], most: int) -> None:
    axes.axhline(most, color=PALE, linewidth=1.0)
    first = next(iter(arms.values()))
    axes.plot(_days(first["stored"]), first["stored"], color=PALE, label="stored")
    for style, (name, arm) in zip(STYLES, arms.items(), strict=False):
        axes.plot(_days(arm["active"]), arm["active"], color=INK, linestyle=style,
                  label=f"active, {name}")  # fmt: skip
    axes.set_title("Memories (line: the most kept active)")
    axes.legend(frameon=False, loc="upper left")


def _found(axes: Axes, arms: Mapping[str, Any]) -> None:
    for style, arm in zip(STYLES, arms.values(), strict=False):
        for sort, (colour, _) in SORTS.items():
            axes.plot(arm["weeks"], [100.0 * one for one in arm["found"][sort]], color=colour,
                      linestyle=style, linewidth=WIDTHS.get(sort))  # fmt: skip
    for sort, (colour, label) in SORTS.items():
        axes.plot([], [], color=colour, label=label, linewidth=WIDTHS.get(sort))
    axes.set_title("Told in the first month, in the top 10, %")
    axes.set_ylim(0.0, 104.0)
    axes.legend(frameon=False, loc="lower left")


def _work(axes: Axes, arms: Mapping[str, Any]) -> None:
    for style, (name, arm) in zip(STYLES, arms.items(), strict=False):
        counts = [float(sum(night.values())) for night in arm["operations"]]
        axes.plot(_days(counts), _smooth(counts), color=INK, linestyle=style, label=name)
    axes.set_title("Changes a night (mean of a week)")
    axes.legend(frameon=False, loc="lower right")


def _days(values: Sequence[Any]) -> range:
    return range(1, len(values) + 1)


def _smooth(values: Sequence[float], width: int = 7) -> list[float]:
    means = []
    for end in range(1, len(values) + 1):
        last = values[max(0, end - width) : end]
        means.append(sum(last) / len(last))
    return means

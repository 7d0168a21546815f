"""How well questions are answered: by the tokens spent, by k, without each mechanism, and what a
gate refuses. All of it drawn from plain numbers, in percent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cofire.errors import InputError
from cofire.plotting.canvas import (
    BLUE,
    GREEN,
    GRID,
    INK,
    ORANGE,
    PALE,
    PINK,
    RED,
    SKY,
    draw,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = (
    (BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "D", "-."), (PINK, "^", ":"),
    (RED, "v", "-"), (SKY, "P", "--"), (INK, "X", "-."), (PALE, "*", ":"),
)  # fmt: skip
"""Colour, marker and dashes of each line in turn: two lines differ in all three."""
LINES = len(STYLES)
WIDE = 12.0
"""An axis of tokens whose ends differ by more than this factor is logarithmic."""
NAME = 34
"""Characters of a name that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A mean with its interval, in percent, at `at` tokens or memories (bars: at nothing)."""

    mean: float
    low: float
    high: float
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """What a gate refuses, in percent, as its threshold rises: `false` of the questions that have
    an answer, `right` of those that have none, both as long as the other. `default` is such a pair
    at the shipped threshold, None if there is none."""

    false: tuple[float, ...]
    right: tuple[float, ...]
    default: tuple[float, float] | None = None


def plot_tokens(lines: Mapping[str, Sequence[Point]], path: str | Path, *, measure: str) -> Path:
    """`measure` against tokens of context per question, as in HeLa-Mem's figure 1: best is the
    upper left. A line per way of recalling over its budgets, bars for 95 % intervals.

    Raises InputError (nothing to draw, no picture's name), MissingExtraError, OSError.
    """
    return _plot_lines(lines, path, measure, "tokens of context per question", logarithmic=True)


def plot_k(lines: Mapping[str, Sequence[Point]], path: str | Path, *, measure: str) -> Path:
    """`measure` against k, the number of memories in the context. Raises as `plot_tokens`."""
    return _plot_lines(lines, path, measure, "k: memories in the context", logarithmic=False)


def _plot_lines(
    lines: Mapping[str, Sequence[Point]],
    path: str | Path,
    measure: str,
    across: str,
    *,
    logarithmic: bool,
) -> Path:
    shown = [(name, sorted(some, key=lambda point: point.at)) for name, some in lines.items()]
    shown = [(name, some) for name, some in shown if some][:LINES]
    if not shown:
        raise InputError("there is nothing to draw")
    places = [point.at for _, some in shown for point in some]

    def paint(figure_of_size: Callable[..., Figure]) -> Figure:
        figure = figure_of_size(7.0, 4.6)
        axes = figure.subplots()
        for (name, points), (colour, marker, dashes) in zip(shown, STYLES, strict=False):
            _line(axes, name, points, (colour, marker, dashes))
        if logarithmic and min(places) > 0 and max(places) > WIDE * min(places):
            _logarithmic(axes, places)
        else:
            axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel(across)
        axes.set_ylabel(f"{_capital(measure)}, %")
        axes.set_title(f"{_capital(measure)} by {across.partition(':')[0]} (bars: 95 %)")
        axes.grid(color=GRID)
        axes.set_axisbelow(True)
        figure.legend(loc="outside lower center", ncols=2 if len(shown) > 1 else 1, frameon=False)
        return figure

    return draw(path, paint)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _line(axes: Axes, name: str, points: Sequence[Point], style: tuple[str, str, str]) -> None:
    colour, marker, dashes = style
    means = [point.mean for point in points]
    below = [max(0.0, point.mean - point.low) for point in points]
    above = [max(0.0, point.high - point.mean) for point in points]
    axes.errorbar(
        [point.at for point in points], means, yerr=[below, above], color=colour, marker=marker,
        linestyle=dashes if len(points) > 1 else "none", markersize=6.0, linewidth=1.6,
        elinewidth=1.1, capsize=3.0, label=shortened(name, NAME),
    )  # fmt: skip


def _logarithmic(axes: Axes, places: Sequence[float]) -> None:
    """A logarithmic axis whose ticks read as 500, 1,000, 2,000, 5,000."""
    axes.set_xscale("log")
    axes.set_xlim(0.85 * min(places), 1.18 * max(places))
    steps = [step * 10**power for power in range(8) for step in (1, 2, 5)]
    ticks = [step for step in steps if 0.85 * min(places) <= step <= 1.18 * max(places)]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)


def plot_refusals(curves: Mapping[str, Refusals], path: str | Path) -> Path:
    """Questions without an answer that are refused, against questions with one that are refused by
    mistake; a line per arm, its shipped threshold marked. Raises as `plot_tokens`."""
    shown = [(name, curve) for name, curve in curves.items() if curve.false][:LINES]
    if not shown:
        raise InputError("there is nothing to draw")

    def paint(figure_of_size: Callable[..., Figure]) -> Figure:
        figure = figure_of_size(6.4, 5.0)
        axes = figure.subplots()
        axes.plot((0.0, 100.0), (0.0, 100.0), color=PALE, linewidth=1.0, linestyle=(0, (2, 3)))
        axes.text(70.0, 64.0, "no better than chance", color=PALE, va="top")
        for (name, curve), (colour, marker, dashes) in zip(shown, STYLES, strict=False):
            axes.plot(
                curve.false, curve.right, color=colour, linestyle=dashes, linewidth=1.6,
                label=shortened(name, NAME),
            )  # fmt: skip
            if curve.default is not None:
                axes.plot(
                    *curve.default, color=colour, marker=marker, markersize=9.0, linestyle="none",
                    markeredgecolor="white", zorder=5,
                )  # fmt: skip
        axes.set_xlim(-2.0, 102.0)
        axes.set_ylim(-2.0, 102.0)
        axes.set_xlabel("answerable questions refused, %")
        axes.set_ylabel("unanswerable questions refused, %")
        axes.set_title("What the gate refuses as its threshold rises (marks: the default)")
        axes.grid(color=GRID)
        axes.set_axisbelow(True)
        figure.legend(loc="outside lower center", ncols=2 if len(shown) > 1 else 1, frameon=False)
        return figure

    return draw(path, paint)


def plot_ablations(
    changes: Mapping[str, Point], path: str | Path, *, measure: str, against: str
) -> Path:
    """By how many points `measure` is other than that of `against`, without each mechanism
    and beside it: paired differences with their 95 % intervals. Left of the line it is less.
    Raises as `plot_tokens`."""
    if not changes:
        raise InputError("there is nothing to draw")
    points = list(changes.values())

    def paint(figure_of_size: Callable[..., Figure]) -> Figure:
        figure = figure_of_size(7.4, 1.7 + 0.42 * len(points))
        axes = figure.subplots()
        heights = range(len(points))
        for height, point in zip(heights, points, strict=True):
            sure = point.low > 0.0 or point.high < 0.0
            axes.errorbar(
                point.mean, height, xerr=[[point.mean - point.low], [point.high - point.mean]],
                color=BLUE if sure else PALE, ecolor=INK, marker="o" if sure else "D",
                markersize=7.0, elinewidth=1.1, capsize=3.0,
            )  # fmt: skip
        low = min(0.0, *(point.low for point in points))
        high = max(0.0, *(point.high for point in points))
        span = (high - low) or 1.0
        for height, point in zip(heights, points, strict=True):
            axes.text(
                high + 0.13 * span, height, f"{point.mean:+.1f}", va="center", ha="right"
            )  # fmt: skip
        axes.axvline(0.0, color=INK, linewidth=1.0, linestyle=(0, (2, 3)), zorder=0.5)
        axes.set_yticks(heights, [shortened(name, NAME) for name in changes])
        axes.set_ylim(len(points) - 0.4, -0.6)
        axes.set_xlim(low - 0.05 * span, high + 0.15 * span)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(
            f"{_capital(measure)}: points more or less (bars: 95 %, paired; grey: may be chance)"
        )
        axes.set_title(f"What each mechanism gives {shortened(against, NAME)}")
        axes.grid(axis="x", color=GRID)
        axes.set_axisbelow(True)
        return figure

    return draw(path, paint)

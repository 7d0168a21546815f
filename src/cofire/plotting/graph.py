"""The graph of what was learned, with its hubs and its isolated memories (HeLa-Mem's figure 4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cofire.dynamics.arrays import F64
from cofire.plotting.canvas import BLUE, INK, ORANGE, PALE, draw, shortened
from cofire.plotting.layout import spring_layout
from cofire.plotting.learned import LearnedGraph
from cofire.plotting.strengths import nothing_learned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 150
"""Linked memories drawn, the most linked first."""
NAMED = 8
"""Hubs whose words are told."""
LABEL = 72
DOTS_A_ROW = 75
MOST_DOTS = 4 * DOTS_A_ROW
"""Isolated memories drawn; the title tells how many there are."""


def plot_graph(graph: LearnedGraph, path: str | Path, most: int = MOST) -> Path:
    """Draw memories and learned links. Raises InputError if nothing was learned,
    MissingExtraError, OSError."""
    if not graph.items:
        raise nothing_learned()
    shown = graph.first(most)
    hubs = min(graph.hubs, len(shown.items))
    named = min(hubs, NAMED)

    def paint(figure_of_size: Callable[..., Figure]) -> Figure:
        dots = min(graph.isolated, MOST_DOTS)
        rows = -(-dots // DOTS_A_ROW)
        low = 0.5 + 0.22 * max(rows, 1)
        words = 0.35 + 0.24 * named
        figure = figure_of_size(10.0, 7.5 + low + words)
        top, middle, bottom = figure.subplots(3, 1, height_ratios=(7.5, words, low))
        _links(top, shown, hubs, named)
        top.set_title(_title(graph, shown))
        _words(middle, shown, named)
        _isolated(bottom, dots, graph.isolated)
        return figure

    return draw(path, paint)


def _title(graph: LearnedGraph, shown: LearnedGraph) -> str:
    links = int(np.count_nonzero(np.triu(graph.strength)))
    every = len(graph.items)
    drawn = len(shown.items)
    some = f" (the {drawn} most linked are drawn)" if drawn < every else ""
    return f"{links:,} learned links between {every:,} memories{some}"


def _links(axes: Axes, shown: LearnedGraph, hubs: int, named: int) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    place = spring_layout(shown.strength)
    one, other = np.nonzero(np.triu(shown.strength))
    strength = shown.strength[one, other]
    axes.add_collection(
        LineCollection(
            list(np.stack([place[one], place[other]], axis=1)),
            linewidths=0.5 + 3.5 * strength,
            colors=PALE,
            alpha=0.55,
            zorder=1,
        )
    )
    sizes = _sizes(shown.totals)
    across, up = place[:, 0], place[:, 1]
    axes.scatter(
        across[hubs:], up[hubs:], s=sizes[hubs:],
        color=BLUE, edgecolors="white", linewidths=0.6, zorder=2,
    )  # fmt: skip
    axes.scatter(
        across[:hubs], up[:hubs], s=sizes[:hubs],
        color=ORANGE, edgecolors=INK, linewidths=0.8, zorder=3,
    )  # fmt: skip
    for at in range(named):
        axes.annotate(
            str(at + 1), place[at], ha="center", va="center", fontsize=8, weight="bold", zorder=4
        )
    axes.set_xlim(-1.08, 1.08)
    axes.set_ylim(-1.08, 1.08)
    axes.set_axis_off()
    handles = [
        Line2D([], [], color=ORANGE, markeredgecolor=INK, marker="o", linestyle="", label="hub"),
        Line2D([], [], color=BLUE, marker="o", linestyle="", label="linked memory"),
        Line2D([], [], color=PALE, linewidth=0.5 + 3.5 * 0.2, label="strength 0.2"),
        Line2D([], [], color=PALE, linewidth=0.5 + 3.5 * 0.8, label="strength 0.8"),
    ]
    axes.legend(handles=handles, loc="upper right", framealpha=0.9, edgecolor="white")


def _sizes(totals: F64) -> F64:
    """Areas in points², by total strength."""
    sizes: F64 = 40.0 + 260.0 * totals / max(float(totals.max()), 1e-9)
    return sizes


def _words(axes: Axes, shown: LearnedGraph, named: int) -> None:
    axes.set_axis_off()
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(named, -0.9)
    axes.text(0.0, -0.4, "Hubs, by total strength of their links", va="center", weight="bold")
    for at, item in enumerate(shown.items[:named]):
        who = f"{item.speaker}: " if item.speaker else ""
        axes.text(0.02, at + 0.5, f"{at + 1}", va="center", ha="right", weight="bold", fontsize=9)
        axes.text(0.035, at + 0.5, f"{shown.totals[at]:.2f}", va="center", fontsize=9)
        axes.text(
            0.09, at + 0.5, shortened(who + item.content, LABEL + 28), va="center", fontsize=9
        )


def _isolated(axes: Axes, dots: int, isolated: int) -> None:
    axes.set_axis_off()
    at = np.arange(dots)
    axes.scatter(
        at % DOTS_A_ROW, -(at // DOTS_A_ROW), s=22, facecolors="none", edgecolors=PALE,
        linewidths=0.8, linestyle="dotted",
    )  # fmt: skip
    axes.set_xlim(-0.8, DOTS_A_ROW - 0.2)
    axes.set_ylim(0.4 - max(-(-dots // DOTS_A_ROW), 1), 1.6)
    more = f", {dots} of them drawn" if dots < isolated else ""
    axes.text(
        -0.5, 1.1, f"Isolated: {isolated:,} memories without a learned link{more}",
        va="center", weight="bold",
    )  # fmt: skip

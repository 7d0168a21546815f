"""The heat map of learned strengths (HeLa-Mem's figure 6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cofire.errors import InputError
from cofire.plotting.canvas import GRID, PALE, RED, draw, shortened
from cofire.plotting.learned import LearnedGraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 20
"""Memories shown, as in the paper."""
LABEL = 58
"""Characters of a label."""


def nothing_learned() -> InputError:
    """Why there is nothing to draw."""
    return InputError(
        "nothing has been learned here yet: no two memories were used together; "
        "`Memory.feedback` says which were"
    )


def plot_strengths(graph: LearnedGraph, path: str | Path, most: int = MOST) -> Path:
    """Draw the strengths between the `most` memories with the most learned links. Raises
    InputError if nothing was learned, MissingExtraError, OSError."""
    if not graph.items:
        raise nothing_learned()
    shown = graph.first(most)
    count = len(shown.items)

    def paint(figure_of_size: Callable[..., Figure]) -> Figure:
        side = 0.3 * count
        figure = figure_of_size(side + 7.0, max(side + 1.6, 3.0))
        axes = figure.subplots()
        values = np.ma.masked_less_equal(shown.strength, 0.0)
        image = axes.imshow(values, cmap="cividis_r", vmin=0.0, vmax=1.0)
        bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
        bar.set_label("strength of the link")
        numbers = [str(at + 1) for at in range(count)]
        labels = []
        for at, item in enumerate(shown.items):
            who = f"{item.speaker}: " if item.speaker else ""
            labels.append(f"{shortened(who + item.content, LABEL)}  {at + 1}")
        axes.set_xticks(range(count), numbers)
        axes.set_yticks(range(count), labels)
        axes.set_xticks(np.arange(count + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(count + 1) - 0.5, minor=True)
        axes.grid(which="minor", color=GRID, linewidth=0.6)
        axes.tick_params(which="both", length=0)
        axes.spines[:].set_color(PALE)
        hubs = min(graph.hubs, count)
        for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
            for tick in ticks[:hubs]:
                tick.set_color(RED)
                tick.set_fontweight("bold")
        axes.set_title(
            f"Learned strengths of the {count} most linked of {len(graph.items)} memories; "
            "hubs in bold"
            if len(graph.items) > count
            else f"Learned strengths of {count} memories; hubs in bold",
            x=1.0,
            ha="right",
        )
        axes.set_xlabel("memory, by its number on the left")
        return figure

    return draw(path, paint)

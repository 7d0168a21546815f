"""The trace of one recall: what each memory's score is made of, and who passed activation to it
(HeLa-Mem's figure 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cofire.errors import InputError, NotFoundError
from cofire.memory import Memory
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
    YELLOW,
    draw,
    shortened,
)
from cofire.types import Path as Way
from cofire.types import Recall

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GROUPS: Mapping[str, tuple[str, frozenset[str]]] = {
    "meaning": (BLUE, frozenset({"similarity", "embedded"})),
    "words": (SKY, frozenset({"bm25", "coverage", "spread_coverage", "keywords"})),
    "turns around": (
        GREEN,
        frozenset(
            {"similarity_before", "similarity_before_2", "similarity_after", "similarity_after_2"}
        ),
    ),
    "its conversation": (YELLOW, frozenset({"session_bm25", "session_similarity"})),
    "who and when": (
        PINK,
        frozenset({"speaker", "speaker_first", "in_range", "near_range", "time_for_when",
                   "name_for_who", "age"}),
    ),
    "links": (
        ORANGE,
        frozenset({"concepts", "gist", "kin", "passed_on", "activation", "linked"}),
    ),
    "standing": (INK, frozenset({"importance", "recency", "pagerank"})),
    "learned from use": (RED, frozenset({"cue", "association"})),
    "how it is said": (
        PALE,
        frozenset({"question_only", "asks", "tells_time", "first_person"}),
    ),
}  # fmt: skip
"""Which terms of a score are drawn as one part of a bar, and in which colour."""
OTHER = "other"
Dashes = Literal["-", "--", "-.", ":"]
WAYS: Mapping[str, tuple[str, Dashes, str]] = {
    "temporal": (GREEN, "-", "turn around"),
    "concept": (ORANGE, "-.", "names the same things"),
    "cue": (RED, "-", "past question"),
    "coactivation": (RED, "--", "used together"),
}
"""Type of a way → colour, dashes, label."""
WAYS_EACH = 2
"""Strongest ways drawn to each memory."""
LEAST_SHARE = 0.02
"""A way that gave less than this share of the best score is not drawn."""
LABEL = 62
GIVER = 52


@dataclass(frozen=True, slots=True)
class Giver:
    """What passed activation on: `text`, and the rows of the memories it went to."""

    id: str
    text: str
    ways: tuple[tuple[int, Way], ...]


def plot_trace(recall: Recall, memory: Memory, path: str | Path) -> Path:
    """Draw a recall made with `explain=True`. Raises InputError if it found nothing or has no
    trace, MissingExtraError, OSError."""
    if recall.trace is None or not recall.items:
        raise InputError("there is nothing to draw: the recall found nothing, or has no trace")
    parts = bar_parts(recall)
    givers = find_givers(recall, memory)

    def paint(figure_of_size: Callable[..., Figure]) -> Figure:
        rows = max(len(recall), len(givers))
        figure = figure_of_size(16.0, 2.4 + 0.42 * rows)
        left, right = figure.subplots(1, 2, width_ratios=(0.85, 1.0))
        _ways(left, givers, recall)
        _bars(right, parts, recall)
        figure.suptitle(f"“{shortened(recall.query, 100)}”", x=0.01, ha="left", weight="bold")
        return figure

    return draw(path, paint)


def bar_parts(recall: Recall) -> dict[str, list[float]]:
    """By group of terms, what each memory's score has of it; groups without any are left out."""
    if recall.trace is None:
        raise InputError("this recall was made without explain=True")
    group_of = {term: name for name, (_, terms) in GROUPS.items() for term in terms}
    parts = {name: [0.0] * len(recall) for name in (*GROUPS, OTHER)}
    for at, item in enumerate(recall.trace.items):
        for term in item.terms:
            parts[group_of.get(term.name, OTHER)][at] += term.contribution
    return {name: values for name, values in parts.items() if any(values)}


def find_givers(recall: Recall, memory: Memory) -> list[Giver]:
    """Who gave the most to each memory, in the order of what they gave to."""
    if recall.trace is None:
        return []
    floor = LEAST_SHARE * max((abs(item.score) for item in recall.trace.items), default=0.0)
    ways: dict[str, list[tuple[int, Way]]] = {}
    for at, item in enumerate(recall.trace.items):
        others = [way for way in item.paths if way.via[0] != item.id and way.activation > floor]
        for way in others[:WAYS_EACH]:
            ways.setdefault(way.via[0], []).append((at, way))
    found = []
    for id, given in ways.items():
        with suppress(NotFoundError):  # forgotten meanwhile
            source = memory.get(id)
            who = f"{source.speaker}: " if source.speaker else ""
            text = f"{'? ' if given[0][1].type == 'cue' else who}{source.content}"
            found.append(Giver(id, shortened(text, GIVER), tuple(given)))
    return sorted(found, key=lambda one: (sum(at for at, _ in one.ways) / len(one.ways), one.id))


def _bars(axes: Axes, parts: Mapping[str, Sequence[float]], recall: Recall) -> None:
    count = len(recall)
    above, below = [0.0] * count, [0.0] * count
    for name, values in parts.items():
        colour = GROUPS[name][0] if name in GROUPS else GRID
        starts = [above[at] if values[at] >= 0.0 else below[at] for at in range(count)]
        axes.barh(
            range(count), values, left=starts, color=colour, edgecolor="white", linewidth=0.5,
            height=0.62, label=name,
        )  # fmt: skip
        for at, value in enumerate(values):
            side = above if value >= 0.0 else below
            side[at] += value
    widest = max(*above, 1e-9)
    for at, hit in enumerate(recall):
        axes.text(above[at] + 0.015 * widest, at, f"{hit.score:.2f}", va="center", fontsize=9)
    axes.axvline(0.0, color=PALE, linewidth=0.8)
    axes.set_xlim(min(below) * 1.05, widest * 1.12)
    axes.set_yticks(range(count), [_line(recall, at) for at in range(count)], fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xlabel("score, as the sum of its terms")
    axes.spines["left"].set_visible(False)
    axes.set_title("What each score is made of")
    axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower right", ncols=5,
                       frameon=False, fontsize=9)  # fmt: skip


def _line(recall: Recall, at: int) -> str:
    hit = recall[at]
    who = f"{hit.item.speaker}: " if hit.item.speaker else ""
    return f"{shortened(who + hit.content, LABEL)}  {at + 1}"


def _ways(axes: Axes, givers: Sequence[Giver], recall: Recall) -> None:
    """Givers on the left, the memories' rows on the right, a line for each way."""
    from matplotlib.lines import Line2D

    count = len(recall)
    axes.set_axis_off()
    axes.set_title("What passed activation on (width: how much)")
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(count - 0.4, -0.6)
    if not givers:
        axes.text(0.5, (count - 1) / 2.0, "no activation was passed on", ha="center", color=PALE)
        return
    step = count / len(givers)
    strongest = max(way.activation for giver in givers for _, way in giver.ways)
    kinds: list[tuple[str, Dashes, str]] = []
    for place, giver in enumerate(givers):
        height = (place + 0.5) * step - 0.5
        axes.text(0.66, height, giver.text, ha="right", va="center", fontsize=8.5, color=INK)
        for at, way in giver.ways:
            colour, dashes, label = WAYS.get(way.type, (PALE, ":", way.type))
            width = 0.6 + 2.6 * way.activation / strongest
            axes.plot([0.675, 0.97], [height, at], color=colour, linestyle=dashes, linewidth=width,
                      solid_capstyle="round")  # fmt: skip
            axes.text(0.98, at, str(at + 1), va="center", fontsize=9, weight="bold")
            if (colour, dashes, label) not in kinds:
                kinds.append((colour, dashes, label))
    handles = [Line2D([], [], color=c, linestyle=d, label=text) for c, d, text in kinds]
    axes.figure.legend(handles=handles, loc="outside lower left", ncols=2, frameon=False,
                       fontsize=9)  # fmt: skip

"""Figures without a window: one style, colours that everybody can tell apart, PNG or SVG.

matplotlib is imported here only, when a figure is made; its global state is not touched.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofire.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")
DPI = 160
INK = "#222222"
PALE = "#8a8a8a"
GRID = "#dddddd"
BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PINK, SKY, YELLOW = "#cc79a7", "#56b4e9", "#f0e442"
"""Okabe and Ito's palette, which people with any kind of colour vision can tell apart."""
FALLBACKS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "Arial Unicode MS")
"""Fonts for scripts that matplotlib's own lacks, where they are installed."""
STYLE: dict[str, Any] = {
    "font.size": 10.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": PALE,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.parse_math": False,  # a memory may have a $ in it
    "svg.hashsalt": "cofire",  # the same picture is the same file
}


def target(path: str | Path) -> Path:
    """Where a picture goes. Raises InputError unless it is a PNG or SVG file."""
    place = Path(path).expanduser()
    if place.suffix.lower() not in FORMATS:
        raise InputError(f"a picture is a .png or .svg file; {place.name!r} is neither")
    return place


def draw(path: str | Path, paint: Callable[[Callable[..., Figure]], Figure]) -> Path:
    """Makes a picture: `paint` is given a function that makes an empty figure, and returns it
    painted. A file appears whole or not at all.

    Raises InputError, MissingExtraError (matplotlib is not installed), OSError.
    """
    place = target(path)
    with _styled() as figure_of_size:
        figure = paint(figure_of_size)
        partial = place.with_name(f".{place.name}.partial")
        kind = place.suffix.lower().removeprefix(".")
        try:
            figure.savefig(
                partial, format=kind, dpi=DPI, bbox_inches="tight", facecolor="white",
                metadata={"Date": None} if kind == "svg" else None,
            )  # fmt: skip
            partial.replace(place)
        finally:
            partial.unlink(missing_ok=True)
    return place


@contextmanager
def _styled() -> Iterator[Callable[..., Figure]]:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
        from matplotlib.font_manager import fontManager
    except ImportError as exc:
        raise MissingExtraError(
            "drawing needs matplotlib, which is not installed; `pip install 'cofire[plot]'` adds it"
        ) from exc
    installed = {font.name for font in fontManager.ttflist}
    fonts = ["DejaVu Sans", *(name for name in FALLBACKS if name in installed)]
    style: Any = {**STYLE, "font.family": fonts}
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # shown as an empty box

        def figure_of_size(width: float, height: float) -> Figure:
            return Figure(figsize=(width, height), layout="constrained")

        yield figure_of_size


def shortened(text: str, most: int) -> str:
    """The text on one line of at most so many characters, without what is not printable."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"

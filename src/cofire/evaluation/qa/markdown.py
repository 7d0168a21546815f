"""Markdown of a report: tables whose cells cannot break them, numbers as a reader wants them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

NONE = "–"
"""A cell without a figure."""
_MARKS = re.compile(r"([\\`*_\[\]<>|#~$&!])")
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+"
)


def escaped(text: object) -> str:
    """Any text as itself on one line: names and models' replies cannot make tables, links or marks.

    Of marks inside a word only those are escaped that mean something there, so that `hela_mem`
    stays readable.
    """
    line = _UNPRINTABLE.sub(" ", str(text))
    line = " ".join(line.encode("utf-8", "replace").decode("utf-8").split())
    return _MARKS.sub(_escape, line)


def _escape(match: re.Match[str]) -> str:
    text, at = match.string, match.start()
    inside = 0 < at < len(text) - 1 and text[at - 1].isalnum() and text[at + 1].isalnum()
    return match.group() if match.group() == "_" and inside else "\\" + match.group()


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Lines of a table whose cells are Markdown already; the first `left` columns are aligned left,
    the others right. Nothing for no rows."""
    if not rows:
        return []
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return [_row(cells) for cells in (head, rule, *rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def plain(value: Any, places: int = 1) -> str:
    """A number with thousands marked."""
    return NONE if value is None else f"{value:,.{places}f}"

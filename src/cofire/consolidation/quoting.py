"""Where quoted words stand in a text, and whether they are whole sentences of it.

A model may give other white space, other quotation marks and another Unicode form of the same
letters back; nothing else is forgiven. What is found is told in characters of the text itself.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

_MARKS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    }
)
_END = re.compile(
    r"[.!?\u2026]+[\"'\u201d\u2019\u00bb)\]]*(?=\s|$)|[\u3002\uff01\uff1f\u0964\u061f]+[\u300d\u300f\u201d]*|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|sr|jr|vs|etc|approx|no|fig|e\.g|i\.e|z\.b|bzw|ca|bd)|\b[a-z])\.$",
    re.IGNORECASE,
)
_TRIM = " \t\r\n\u00a0\u3000"
_TERMINAL = ".!?\u2026\u3002\uff01\uff1f\u0964\u061f\"'\u201d\u2019\u00bb)]\u300d\u300f"


class Folded(NamedTuple):
    """A text in one spelling; its character i comes from `starts[i]` to `ends[i]` of the text."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def folded(text: str) -> Folded:
    """`text` in NFC, with plain quotation marks and single spaces; none at either end."""
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    while at < len(text):
        end = at + 1
        if text[at].isspace():
            while end < len(text) and text[end].isspace():
                end += 1
            letters = " "
        else:
            while end < len(text) and _joins(text[end]):
                end += 1
            letters = unicodedata.normalize("NFC", text[at:end]).translate(_MARKS)
        out.append(letters)
        starts += [at] * len(letters)
        ends += [end] * len(letters)
        at = end
    joined = "".join(out)
    first = len(joined) - len(joined.lstrip(" "))
    last = len(joined.rstrip(" "))
    return Folded(joined[first:last], tuple(starts[first:last]), tuple(ends[first:last]))


def _joins(letter: str) -> bool:
    """Whether a character composes with the one before: marks, and the later parts of Hangul."""
    return unicodedata.combining(letter) != 0 or "\u1160" <= letter <= "\u11ff"


def sentences(text: str) -> list[tuple[int, int]]:
    """The sentences of `text` as (start, end), in order, white space around them left out.

    A stop does not end one after an abbreviation or an initial, nor do dots or a quoted question
    before a small letter ("I would ... if I could"), except a single stop, as people type it.
    """
    found: list[tuple[int, int]] = []
    begin = 0
    for match in _END.finditer(text):
        if not _ends(text, match):
            continue
        _append(found, text, begin, match.end())
        begin = match.end()
    _append(found, text, begin, len(text))
    return found


def _ends(text: str, match: re.Match[str]) -> bool:
    mark = match.group()
    if mark.isspace() or (not mark[0].isascii() and mark[0] != "\u2026"):
        return True
    rest = text[match.end() :].lstrip()
    if not rest:
        return True
    before = text[max(0, match.start() - 12) : match.start() + 1]
    if mark == "." and _ABBREVIATION.search(before):
        return False
    return mark == "." or not rest[0].islower()


def _append(found: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip(_TRIM))
    end -= len(piece) - len(piece.rstrip(_TRIM))
    if end > start:
        found.append((start, end))


def locate(quote: str, text: str) -> tuple[int, int] | None:
    """The characters of `text` that `quote` gives: whole sentences of it, or None.

    A stop left out at the end is forgiven; the span has it all the same. Of several places the
    first is taken. Never raises.
    """
    wanted = folded(quote).text
    if not wanted:
        return None
    source = folded(text)
    bounds = sentences(text)
    starts = {start for start, _ in bounds}
    ends = {end for _, end in bounds}
    at = source.text.find(wanted)
    while at >= 0:
        start = source.starts[at]
        end = _with_stop(text, source.ends[at + len(wanted) - 1], ends)
        if start in starts and end in ends:
            return start, end
        at = source.text.find(wanted, at + 1)
    return None


def _with_stop(text: str, end: int, ends: set[int]) -> int:
    """`end`, moved over the stop and closing marks that end the sentence there."""
    moved = end
    while moved not in ends and moved < len(text) and text[moved] in _TERMINAL:
        moved += 1
    return moved if moved in ends else end


def spelled(text: str) -> str:
    """`text` for telling whether two records are the same words: folded, without case and final
    stops."""
    return folded(text).text.casefold().strip(_TERMINAL + " ")

"""Cutting a text into chunks: words, identifiers, runs of unspaced script, Hangul, emoji.

A chunk of letters may hold connectors (POL-358, foo_bar, C:\\temp\\x, don't, 20.04); what terms
it gives is told in `expansion`.
"""

from __future__ import annotations

import enum
import re
from functools import cache

from cofire.encoding.characters import (
    EMOJI,
    FLAG,
    HANGUL,
    IGNORABLE,
    MARKS,
    SKIN,
    UNSPACED,
    VOICING,
)


class Sort(enum.IntEnum):
    """What a chunk is, and so how it becomes terms."""

    WORD = 0
    RUN = 1
    HANGUL = 2
    EMOJI = 3


_SORTS = {sort.name: int(sort) for sort in Sort}

Part = tuple[int, str, int]
"""(sort, text, start): a chunk of a text and the character where it begins."""

_CONNECTOR = r"(?:[-_.'@/\\&]|:[\\/]{0,2}|__+|(?<=[0-9]),(?=[0-9]))"
_SUFFIX = r"(?:%|\+\+|#(?!\w))?"
# "[#@]?[A-Za-z0-9]+…", written so that it begins with one class: `re` skips spaces much faster.
_ASCII_CHUNK = re.compile(
    r"[#@A-Za-z0-9](?:(?<![#@])|(?=[A-Za-z0-9]))[A-Za-z0-9]*+"
    rf"(?:{_CONNECTOR}[A-Za-z0-9]+)*+{_SUFFIX}",
    re.ASCII,
)


@cache
def _chunk() -> re.Pattern[str]:
    letter = rf"[^\W_{UNSPACED}{HANGUL}]"
    word = rf"{letter}++(?:[{MARKS}{IGNORABLE}]{letter}*+)*+"
    pictograph = f"[{EMOJI}](?:\ufe0f|[{SKIN}]|\u20e3)*+[\U000e0020-\U000e007f]*+"
    return re.compile(
        rf"(?P<EMOJI>[{FLAG}]{{1,2}}|{pictograph}(?:\u200d{pictograph})*+)"
        rf"|(?P<RUN>[{UNSPACED}][{UNSPACED}{MARKS}{VOICING}{IGNORABLE}]*+)"
        rf"|(?P<HANGUL>[{HANGUL}][{HANGUL}{IGNORABLE}]*+)"
        rf"|(?P<WORD>[#@]?{word}(?:{_CONNECTOR}{word})*+{_SUFFIX})"
    )


def chunks(text: str) -> list[Part]:
    """The chunks of a text (`text.aligned` first, so that full-width letters count as ASCII)."""
    if text.isascii():
        return [(0, match[0], match.start()) for match in _ASCII_CHUNK.finditer(text)]
    return [
        (_SORTS[match.lastgroup or "WORD"], match.group(), match.start())
        for match in _chunk().finditer(text)
    ]

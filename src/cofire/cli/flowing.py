"""Text that comes in pieces, wrapped while it comes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from cofire.cli.output import columns, visible, width

_WIDE = "\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60"
"""Scripts that are written without spaces: a line may break behind any of their characters."""
_PART = re.compile(rf"\n|[^\S\n]+|[{_WIDE}]|[^\s{_WIDE}]+")
_UNFINISHED = re.compile(rf"[^\s{_WIDE}]+\Z|\r\Z")


class Flow:
    """Writes pieces on a terminal as they come, and breaks lines between words. The last word of a
    piece waits until it is certain that it has ended."""

    def __init__(self) -> None:
        self._room = width() or 80
        self._column = 0
        self._gap = ""
        self._held = ""

    def feed(self, piece: str) -> None:
        """Show what is complete of it."""
        text = self._held + piece
        unfinished = _UNFINISHED.search(text)
        end = len(text) if unfinished is None else unfinished.start()
        if len(text) - end > self._room:  # a word that no line holds
            end = len(text)
        self._held = text[end:]
        self._write(text[:end])

    def end(self) -> None:
        """Show what was waiting, and end the line."""
        held, self._held = self._held, ""
        self._write(held)
        if self._column:
            sys.stdout.write("\n")
        self._column, self._gap = 0, ""
        sys.stdout.flush()

    def _write(self, text: str) -> None:
        for part in _PART.findall(text.replace("\r\n", "\n")):
            if part == "\n":
                sys.stdout.write("\n")
                self._column, self._gap = 0, ""
            elif part.isspace():
                self._gap = " " if self._column else ""
            else:
                self._word(visible(part))
        sys.stdout.flush()

    def _word(self, word: str) -> None:
        size = columns(word)
        if self._column and self._column + len(self._gap) + size > self._room:
            sys.stdout.write("\n")
            self._column, self._gap = 0, ""
        sys.stdout.write(self._gap + word)
        self._column += len(self._gap) + size
        self._gap = ""


def show_pieces(pieces: Iterable[str]) -> str:
    """Show a text as it comes; gives the whole of it. What ends it ends the line first."""
    flow = Flow()
    shown = []
    try:
        for piece in pieces:
            shown.append(piece)
            flow.feed(piece)
    finally:
        flow.end()
    return "".join(shown)


def taken_otherwise(shown: str, text: str) -> bool:
    """Whether what a model wrote was taken for another text than a reader saw: it thought aloud,
    say, or wrote JSON, or said in its own words that there is no answer."""
    return shown.split() != text.split()

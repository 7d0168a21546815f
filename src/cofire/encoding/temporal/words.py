"""Words of a text with their places, and what its verbs say about past and future."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

# A number keeps its inner punctuation, so that "20.04", "10:30" and "555-1234" are one word and
# can be told from days and years; a comma only where three digits follow ("1,200", not "1,2023").
_WORD = re.compile(
    r"[0-9]+(?:(?:[.:/-]|,(?=[0-9]{3}(?![0-9])))[0-9]+)*(?:(?:st|nd|rd|th|s|am|pm)(?![^\W\d_]))?"
    r"|[^\W\d_]+"
)
_GAP = frozenset(" \t\n\r,-–—'")
_SENTENCE_END = re.compile(r"[.!?;:\n…。！？]")
_FOLDED = re.compile("[À-ɏ‘’ʼ！-～\u0300-\u036f\u00a0\u202f\u3000ёйЁЙ]")
_COMBINING = re.compile("[\u0300-\u036f]")


def _folds() -> dict[int, str]:
    """One character for one: accents off, full-width forms narrow, one kind of apostrophe."""
    table = {ord(mark): "'" for mark in "‘’ʼ"}
    table |= {0xA0: " ", 0x202F: " ", 0x3000: " "}
    table |= {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    for code in (*range(0xC0, 0x250), *map(ord, "ёйЁЙ")):
        base = unicodedata.normalize("NFD", chr(code))[0].lower()
        if base != chr(code):
            table[code] = base
    return table


_FOLDS = _folds()


class Folded(NamedTuple):
    """A text made comparable: lower case, no accents, narrow forms.

    `text[i]` stands for character `places[i]` of the original; `places` is None where that is i.
    """

    text: str
    places: list[int] | None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the original that `text[start:end]` stands for."""
        if self.places is None:
            return start, end
        last = self.places[end] if end < len(self.places) else self.places[-1] + 1
        return self.places[start], last


def fold(text: str) -> Folded:
    """Fold a text; combining marks are dropped, all else stays one character for one."""
    if text.isascii():
        return Folded(text.lower(), None)
    places = None
    if _FOLDED.search(text):
        if _COMBINING.search(text):
            places = [i for i, char in enumerate(text) if not "\u0300" <= char <= "\u036f"]
            places.append(len(text))
            text = _COMBINING.sub("", text)
        text = text.translate(_FOLDS)
    lower = text.lower()
    if len(lower) != len(text):  # "İ" has two characters in lower case
        lower = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    return Folded(lower, places)


class Words:
    """The words of a folded text. `words[i]` is characters `starts[i]` to `ends[i]`.

    `depth` counts the rules at work inside one another.
    """

    __slots__ = ("depth", "ends", "raw", "size", "starts", "text", "words")

    def __init__(self, folded: str, raw: str | None = None) -> None:
        """`raw`: the text before folding, where it has the same length; tells capitals."""
        self.text = folded
        self.raw = raw if raw is not None and len(raw) == len(folded) else folded
        self.depth = 0
        matches = list(_WORD.finditer(folded))
        self.words: list[str] = [match[0] for match in matches]
        self.starts: list[int] = [match.start() for match in matches]
        self.ends: list[int] = [match.end() for match in matches]
        self.size = len(matches)

    def get(self, index: int) -> str:
        """Word `index`, or "" outside the text."""
        return self.words[index] if 0 <= index < self.size else ""

    def joined(self, index: int) -> bool:
        """Whether words `index` and `index` + 1 stand in one phrase, with no full stop between."""
        if not 0 <= index < self.size - 1:
            return False
        start, end = self.ends[index], self.starts[index + 1]
        return end - start <= 4 and _GAP.issuperset(self.text[start:end])

    def next(self, index: int) -> str:
        """The word after `index` if it stands in the same phrase, else ""."""
        return self.words[index + 1] if self.joined(index) else ""

    def before(self, index: int) -> str:
        """The word before `index` if it stands in the same phrase, else ""."""
        return self.words[index - 1] if index > 0 and self.joined(index - 1) else ""

    def capital(self, index: int) -> bool:
        return self.raw[self.starts[index]].isupper()

    def free(self, index: int) -> bool:
        """Whether a number stands alone: no price, path, tag, version or part of a name."""
        start, end = self.starts[index], self.ends[index]
        before = self.text[start - 1] if start else " "
        if before == "-" and self.before(index) in {"early", "mid", "late"}:
            before = " "
        after = self.text[end] if end < len(self.text) else " "
        return not (before.isalnum() or before in "$€£¥#@_/\\.&=+%-") and after not in "/_%@#$€£\\="

    def labels(self, index: int) -> bool:
        """Whether a colon makes word `index` the label of an entry ("Monday: swim")."""
        return self.text.startswith((":", "："), self.ends[index])

    def sentence_breaks(self, index: int) -> bool:
        """Whether a sentence ends between words `index` and `index` + 1."""
        start, end = self.ends[index], self.starts[index + 1]
        return end - start > 1 and _SENTENCE_END.search(self.text, start, end) is not None

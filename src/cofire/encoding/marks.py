"""What single words and digits tell about their text, as bit flags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from cofire.encoding.characters import MARKS
from cofire.encoding.signal_words import FIRST_PERSON, NUMBER_WORDS, POLITE_WORDS, TIME_WORDS
from cofire.encoding.text import fold

NUMBER, TIME, PERSON = 2, 4, 16
"""A number in words, a word that says when, the first person: the bits they have in
`signals.Signal`."""
POLITE = 1 << 30
"""There is a polite word, whatever else there is."""
FIGURES = 1 << 29
"""There is a digit."""
DATING = 1 << 28
"""There is a word without which ASCII texts name no time that could be resolved."""

_WORD = re.compile(rf"(?:[^\W\d_][{MARKS}]*+)++")
_ASCII_WORD = re.compile("[a-z]+")
_DIGIT = re.compile(r"\d")


def words_of(text: str) -> list[str]:
    """Folded words without what an apostrophe adds."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return [cached_fold(word) for word in written_words(text)]


def written_words(text: str) -> list[str]:
    """The same as they are written."""
    return _WORD.findall(text)


cached_fold = lru_cache(maxsize=1 << 14)(fold)


def figures(text: str) -> int:
    return FIGURES if _DIGIT.search(text) else 0


def word_marks(words: Iterable[str]) -> int:
    """The flags that single words decide."""
    seen = set(words)
    marks = 0
    for mark, telling in (
        (NUMBER, NUMBER_WORDS),
        (TIME, TIME_WORDS),
        (PERSON, FIRST_PERSON),
        (POLITE, POLITE_WORDS),
    ):
        if not seen.isdisjoint(telling):
            marks |= mark
    return marks

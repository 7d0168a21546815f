"""What sort of text it is, as bit flags that ranking can use: is it only a question, only
politeness, does it name somebody, a number, a time."""

from __future__ import annotations

import enum
import re

from cofire.encoding.analysis import Analysis, analyse
from cofire.encoding.concepts import MAX_CHARS, Concept, concepts
from cofire.encoding.marks import (
    FIGURES,
    NUMBER,
    PERSON,
    POLITE,
    TIME,
    figures,
    word_marks,
    words_of,
    written_words,
)
from cofire.encoding.signal_words import POLITE_WORDS
from cofire.encoding.stopwords import stop_words
from cofire.encoding.text import aligned, fold


class Signal(enum.IntFlag):
    """Bits of `NewItem.signals`; values are stored and never change their meaning."""

    QUESTION = 1
    """Every sentence asks; there is nothing told."""
    HAS_NUMBER = 2
    HAS_TIME = 4
    """A word, date or clock time that says when."""
    HAS_NAME = 8
    FIRST_PERSON = 16
    """The speaker tells of themselves (I, my, we; ich, je, yo, я, 我 …)."""
    PLEASANTRY = 32
    """Nothing but greeting, thanks, praise or farewell."""
    LONG = 64
    """60 words or more."""
    ASKS = 128
    """Some sentence asks, whether or not another tells."""


LONG_WORDS = 60

_SENTENCES = re.compile(r"[^.!?…。！？؟।\n]+[.!?…。！？؟।\n]*")
_ASKING = re.compile("[?？؟]")
# Matched where digits begin: searching a text for seven patterns takes far longer.
_DIGITS = re.compile("[0-9]+")
_CLOCK = re.compile(
    r"\b(?:[0-2]?[0-9][:h.][0-5][0-9]|[0-9]{1,2} ?[ap]\.?m|(?:19|20)[0-9]{2}"
    r"|[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2,4})\b"
    "|[0-9]+[年月日点時월일]"
)
_TIME_RUNS = re.compile(
    "[昨今明前去]天|[去今明前]年|[上下这這]周|星期|月|昨日|今日|明日|先週|来週|今週|เมื่อวาน|วันนี้|พรุ่งนี้"
)
_FIRST_RUNS = re.compile("[我俺僕私]")
_POLITE_RUNS = re.compile(
    "(?:谢谢|你好|您好|再见|ありがとう(?:ございます)?|こんにちは|さようなら|ขอบคุณ|สวัสดี|[您你的了吗啊です！。、，!\\s])+"
)
_MAX_PLEASANTRY = 15  # words


def signals(
    text: str,
    *,
    analysis: Analysis | None = None,
    found: tuple[Concept, ...] | None = None,
) -> Signal:
    """The flags of `text`; `analysis` and `found` (its concepts) save making them again."""
    return Signal(signal_bits(text, analysis, found))


def signal_bits(
    text: str, analysis: Analysis | None = None, found: tuple[Concept, ...] | None = None
) -> int:
    """`signals` as a plain number."""
    text = aligned(text[:MAX_CHARS])
    if analysis is None:
        analysis = analyse(text)
    if found is None:
        found = concepts(text, analysis.language)
    ascii_only = text.isascii()
    if ascii_only and len(text) < MAX_CHARS:  # so it is the text that was analysed
        marks, words = analysis.marks, analysis.words
    else:
        listed = words_of(text)
        marks, words = word_marks(listed) | figures(text), len(listed)
    flags = _asking(text) if _asks(text) else 0
    flags |= marks & _TOLD_BY_WORDS
    if marks & FIGURES:
        flags |= _HAS_NUMBER
        if _has_clock(text):
            flags |= _HAS_TIME
    if not ascii_only:
        flags |= _HAS_TIME if _TIME_RUNS.search(text) else 0
        flags |= _FIRST_PERSON if _FIRST_RUNS.search(text) else 0
    for concept in found:
        if concept.sort == "name":
            flags |= _HAS_NAME
            break
    if (
        words <= _MAX_PLEASANTRY
        and (marks & POLITE or not ascii_only)
        and _only_polite(text, words_of(text), analysis.language)
    ):
        flags |= _PLEASANTRY
    if analysis.length >= LONG_WORDS or words >= LONG_WORDS:
        flags |= _LONG
    return flags


# Plain numbers while flags are gathered: each operation on an `IntFlag` takes a microsecond.
_QUESTION, _HAS_NUMBER, _HAS_TIME, _HAS_NAME, _FIRST_PERSON, _PLEASANTRY, _LONG, _ASKS = map(
    int, Signal
)
_TOLD_BY_WORDS = NUMBER | TIME | PERSON


def _asks(text: str) -> bool:
    if text.isascii():
        return "?" in text
    return _ASKING.search(text) is not None


def _has_clock(text: str) -> bool:
    """Whether digits of the text are a clock time, a date or a year."""
    return any(_CLOCK.match(text, digits.start()) for digits in _DIGITS.finditer(text))


def _asking(text: str) -> int:
    """The flags of a text with a question mark, by whether some sentence tells something."""
    for sentence in _SENTENCES.findall(text):
        if not _asks(sentence):
            words = words_of(sentence)
            if words and not _only_polite(sentence, words, None):
                return _ASKS
    return _ASKS | _QUESTION


def _only_polite(text: str, words: list[str], language: str | None) -> bool:
    """Polite words, names after them (Bye Joanna!) and function words, with at least one of the
    first and no question."""
    if not words or len(words) > _MAX_PLEASANTRY or _asks(text):
        return False
    if not text.isascii() and _POLITE_RUNS.fullmatch(text.strip()):
        return True  # with words in it, so not of spaces and exclamation marks alone
    if POLITE_WORDS.isdisjoint(words):
        return False
    function = stop_words(language or "en")
    rest = [word for word in words if word not in POLITE_WORDS and word not in function]
    if not rest:
        return True
    names = {fold(word) for word in written_words(text)[1:] if word[0].isupper()}
    return names.issuperset(rest)

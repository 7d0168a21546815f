"""What sort of text it is, as bit flags that ranking can use: is it only a question, only
politeness, does it name somebody, a number, a time."""

from __future__ import annotations

import enum
import re
from functools import lru_cache

from cofire.encoding.analysis import Analysis, analyse
from cofire.encoding.characters import MARKS
from cofire.encoding.keywords import MAX_CHARS, Concept, concepts
from cofire.encoding.signal_words import FIRST_PERSON, NUMBER_WORDS, POLITE_WORDS, TIME_WORDS
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
_CLOCK = re.compile(
    r"\b[0-2]?[0-9][:h.][0-5][0-9]\b|\b[0-9]{1,2} ?[ap]\.?m\b|\b(?:19|20)[0-9]{2}\b"
    "|[0-9][年月日点時]"
    r"|\b[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2,4}\b|[0-9]{1,2}월|[0-9]{1,2}일"
)
_TIME_RUNS = re.compile(
    "[昨今明前去]天|[去今明前]年|[上下这這]周|星期|月|昨日|今日|明日|先週|来週|今週|เมื่อวาน|วันนี้|พรุ่งนี้"
)
_FIRST_RUNS = re.compile("[我俺僕私]")
_POLITE_RUNS = re.compile(
    "(?:谢谢|你好|您好|再见|ありがとう(?:ございます)?|こんにちは|さようなら|ขอบคุณ|สวัสดี|[您你的了吗啊です！。、，!\\s])+"
)
_WORD = re.compile(rf"(?:[^\W\d_][{MARKS}]*+)++")
_ASCII_WORD = re.compile("[a-z]+")
_DIGIT = re.compile(r"\d")
_MAX_PLEASANTRY = 15  # words


def signals(
    text: str,
    *,
    analysis: Analysis | None = None,
    found: tuple[Concept, ...] | None = None,
) -> Signal:
    """The flags of `text`; `analysis` and `found` (its concepts) save making them again."""
    text = aligned(text[:MAX_CHARS])
    if analysis is None:
        analysis = analyse(text)
    if found is None:
        found = concepts(text, analysis.language)
    words = _words(text)
    seen = set(words)
    digits = _DIGIT.search(text) is not None
    flags = _asking(text) if _ASKING.search(text) else Signal(0)
    if digits or not seen.isdisjoint(NUMBER_WORDS):
        flags |= Signal.HAS_NUMBER
    if not seen.isdisjoint(TIME_WORDS) or (digits and _CLOCK.search(text)):
        flags |= Signal.HAS_TIME
    if not seen.isdisjoint(FIRST_PERSON):
        flags |= Signal.FIRST_PERSON
    if not text.isascii():
        flags |= Signal.HAS_TIME if _TIME_RUNS.search(text) else Signal(0)
        flags |= Signal.FIRST_PERSON if _FIRST_RUNS.search(text) else Signal(0)
    if any(concept.sort == "name" for concept in found):
        flags |= Signal.HAS_NAME
    if _only_polite(text, words, analysis.language):
        flags |= Signal.PLEASANTRY
    if analysis.length >= LONG_WORDS or len(words) >= LONG_WORDS:
        flags |= Signal.LONG
    return flags


def _words(text: str) -> list[str]:
    """Folded words without what an apostrophe adds."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return [cached_fold(word) for word in _WORD.findall(text)]


cached_fold = lru_cache(maxsize=1 << 14)(fold)


def _asking(text: str) -> Signal:
    telling = False
    for match in _SENTENCES.finditer(text):
        sentence = match.group()
        words = _words(sentence)
        if words and not _ASKING.search(sentence) and not _only_polite(sentence, words, None):
            telling = True
    return Signal.ASKS if telling else Signal.ASKS | Signal.QUESTION


def _only_polite(text: str, words: list[str], language: str | None) -> bool:
    """Polite words, names after them (Bye Joanna!) and function words, with at least one of the
    first and no question."""
    if not words or len(words) > _MAX_PLEASANTRY or _ASKING.search(text):
        return False
    if _POLITE_RUNS.fullmatch(text.strip()):
        return True
    if POLITE_WORDS.isdisjoint(words):
        return False
    function = stop_words(language or "en")
    rest = [word for word in words if word not in POLITE_WORDS and word not in function]
    if not rest:
        return True
    names = {fold(word) for word in _WORD.findall(text)[1:] if word[0].isupper()}
    return names.issuperset(rest)

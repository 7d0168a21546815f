"""Numbers in a text, whether written in digits or in words, and what each of them counts."""

from __future__ import annotations

import re
from typing import NamedTuple

from cofire.encoding.text import aligned, fold

_UNITS = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: 10 * number
    for number, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
        2,
    )
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_ORDINALS = {
    word: number
    for number, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
            "thirteenth",
            "fourteenth",
            "fifteenth",
            "sixteenth",
            "seventeenth",
            "eighteenth",
            "nineteenth",
            "twentieth",
        ],
        1,
    )
} | {"thirtieth": 30, "fortieth": 40, "fiftieth": 50, "hundredth": 100}
_TIMES = {"twice": 2, "thrice": 3, "dozen": 12}
# Other languages: small numbers in words. Articles (un, ein, um) are left out: they count nothing.
_FOREIGN: dict[str, int] = {
    word: number
    for line in (
        "zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
        "deux trois quatre cinq six sept huit neuf dix onze douze",
        "dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "due tre quattro cinque sei sette otto nove dieci undici dodici",
        "dois tres quatro cinco seis sete oito nove dez onze doze",
        "twee drie vier vijf zes zeven acht negen tien elf twaalf",
        "dwa trzy cztery piec szesc siedem osiem dziewiec dziesiec",
        "два три четыре пять шесть семь восемь девять десять",
    )
    for number, word in enumerate(line.split(), 2)
} | {"duas": 2, "dwie": 2, "две": 2}
_AMBIGUOUS = frozenset({"sei", "six", "elf"})
_WORD = re.compile(r"\d[\d.,:]*\d(?:st|nd|rd|th|%)?|\d(?:st|nd|rd|th|%)?|[^\W\d_]+")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th|%)$")
_GROUPED = re.compile(r"\d{1,3}(?:[,.]\d{3})+")


class Quantity(NamedTuple):
    """A number at characters `start` to `end`; `value` is one spelling of it ("1200", "3.5",
    "7:30"), `words` are the next three words, folded: what it counts is among them."""

    value: str
    start: int
    end: int
    words: tuple[str, ...]


def quantities(text: str, language: str | None = None) -> list[Quantity]:
    """The numbers of `text`, in order. "two", "2" and "second" have one value; "one" and articles
    count as no number. Number words of other languages are read only where `language` is given
    and not English."""
    prepared = aligned(text)
    matches = list(_WORD.finditer(prepared))
    words = [fold(match.group()) for match in matches]
    found: list[Quantity] = []
    at = 0
    while at < len(words):
        value, size = _number(words, at, language)
        if value is not None:
            last = at + size
            following = tuple(words[last : last + 3])
            found.append(Quantity(value, matches[at].start(), matches[last - 1].end(), following))
        at += max(size, 1)
    return found


def _number(words: list[str], at: int, language: str | None) -> tuple[str | None, int]:  # noqa: PLR0911 - one return per form
    """The value of the number that begins with word `at`, and how many words it has."""
    word = words[at]
    if word[0].isdigit():
        value = _digits(word)
        if at + 1 < len(words) and words[at + 1] in _SCALES and value.isdigit():
            return str(int(value) * _SCALES[words[at + 1]]), 2
        return value, 1
    if language not in (None, "en"):
        number = _FOREIGN.get(word)
        if number is not None and (word not in _AMBIGUOUS or language in ("es", "de", "fr", "nl")):
            return str(number), 1
        return None, 1
    if word in _TIMES:
        return str(_TIMES[word]), 1
    if word in _ORDINALS:
        return str(_ORDINALS[word]), 1
    return _spelled(words, at)


def _digits(word: str) -> str:
    ordinal = _ORDINAL.match(word)
    bare = ordinal.group(1) if ordinal else word.rstrip("%")
    if _GROUPED.fullmatch(bare):
        return re.sub(r"[,.]", "", bare)
    return bare.lstrip("0") or "0" if bare.isdigit() else bare.replace(",", ".")


def _spelled(words: list[str], at: int) -> tuple[str | None, int]:
    """Number words in a row: "twenty five", "two hundred and ten"."""
    total = current = 0
    place = at
    while place < len(words):
        word = words[place]
        if word in _UNITS and (place == at or words[place - 1] in _TENS or _scaled(words, place)):
            current += _UNITS[word]
        elif word in _TENS and (place == at or _scaled(words, place)):
            current += _TENS[word]
        elif word in _ORDINALS and place > at and words[place - 1] in _TENS:
            current += _ORDINALS[word]
        elif word in _SCALES and place > at:
            current = max(current, 1) * _SCALES[word]
            if _SCALES[word] > 100:
                total, current = total + current, 0
        elif word != "and" or not _goes_on(words, at, place):
            break
        place += 1
    if place == at:
        return None, 1
    value = total + current
    lone = place == at + 1 and words[at] == "one"
    return (None if lone else str(value)), place - at


def _scaled(words: list[str], place: int) -> bool:
    return words[place - 1] in _SCALES or (
        words[place - 1] == "and" and words[place - 2] in _SCALES
    )


def _goes_on(words: list[str], at: int, place: int) -> bool:
    """Whether "and" stands inside a number: "two hundred and ten"."""
    after = words[place + 1] if place + 1 < len(words) else ""
    return place > at and words[place - 1] in _SCALES and (after in _UNITS or after in _TENS)

"""Time expressions of seven European languages, from one grammar over tables of words.

Covered are the common ones: today and its neighbours, last, this and next unit, a number of units
ago or ahead, dates with names of months, months and years after a preposition. A month alone is
the nearest one, or in a question the last one; a weekday alone is read in questions only, since
these rules do not look at verbs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from cofire.encoding.temporal import english
from cofire.encoding.temporal.european_tables import LANGUAGES, Language
from cofire.encoding.temporal.spans import (
    DAY,
    Clock,
    Located,
    Span,
    Tense,
    date_span,
    day_of,
    daypart,
    month_span,
    named_date,
    named_month,
    unit_span,
    units_between,
    weekday_after,
    weekday_before,
    year_span,
)

_ENGLISH = frozenset(
    "the and is was i you my it of to in for with that we have are on at this be".split()
)
_SHARED = english.TRIGGERS | {"end", "an"}
"""Words of time that are English words, too."""
_DAY_BEFORE = re.compile(r"[0-9](?:\.| de| di)? $")
_SHORT = 4
"""A text of so few words needs no other evidence for its language ("hier")."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    resolve: Callable[[re.Match[str], Language, Clock], Span | None]


def _leads(language: Language) -> set[str]:
    """Single words that lead a year, other than English ones and letters."""
    words = {*language.since.split("|"), *language.within.split("|")}
    return {word for word in words if len(word) > 1 and word.isalpha() and word != "in"}


@cache
def _doubtful(code: str) -> frozenset[str]:
    """A language's words of time that by themselves are no evidence for it."""
    table = LANGUAGES[code]
    return frozenset(_SHARED | table.doubtful | _leads(table))


def _triggers() -> Mapping[str, tuple[str, ...]]:
    """Languages by the single words that a time expression of theirs contains."""
    table: dict[str, list[str]] = {}
    for code, language in LANGUAGES.items():
        phrases = (*language.days, *language.nights, *language.units)
        names = {re.split(r"[ '-]", phrase)[-1] for phrase in phrases}
        names |= language.months.keys()
        names |= {name.split("-")[0] for name in language.weekdays}
        names |= _leads(language)
        for name in names:
            table.setdefault(name, []).append(code)
    return {word: tuple(codes) for word, codes in table.items() if codes}


_BY_WORD = _triggers()
TRIGGERS = frozenset(_BY_WORD)
"""A text with none of these words names no time in these languages."""


def likely_languages(words: set[str], language: str | None, *, read: bool) -> list[str]:
    """Which languages' rules may read a text of these words, best evidence first.

    `language`: the text's language, if known. `read`: English rules have found a time already,
    so that words shared with English need evidence even in a short text.
    """
    if language is not None and language in LANGUAGES:
        return [language]
    evidence = {code: len(words & table.common) for code, table in LANGUAGES.items()}
    most = max(len(words & _ENGLISH), *evidence.values())
    short = len(words) <= _SHORT and not read
    hits: dict[str, int] = {}
    for word in words & TRIGGERS:
        for code in _BY_WORD[word]:
            if word not in _doubtful(code) or short or 0 < evidence[code] == most:
                hits[code] = hits.get(code, 0) + 1
    return sorted(hits, key=lambda code: (-evidence[code], -hits[code]))


def expressions(text: str, clock: Clock, codes: Iterable[str], limit: int) -> Iterator[Located]:
    """At most `limit` expressions of each language; they may overlap one another."""
    for code in codes:
        for rule in _rules(code):
            for count, match in enumerate(rule.pattern.finditer(text)):
                if count >= limit:
                    break
                span = _resolved(rule, match, LANGUAGES[code], clock)
                if span is not None and span.start < span.end:
                    yield match.start(), match.end(), span


def _resolved(rule: _Rule, match: re.Match[str], language: Language, clock: Clock) -> Span | None:
    try:
        return rule.resolve(match, language, clock)
    except (OverflowError, ValueError):
        return None  # no such day, or outside the years 1 to 9999


def _any(names: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


@cache
def _rules(code: str) -> tuple[_Rule, ...]:
    """The patterns of one language, longest expressions first."""
    table = LANGUAGES[code]
    months, weekdays = _any(table.months), _any(table.weekdays)
    noun = f"(?P<noun>{_any((*table.units, *table.weekdays, *table.months))})"
    amount = (
        rf"(?P<n>[0-9]{{1,3}}|{table.couple}|{table.few}|{_any(table.numbers)}|) ?"
        rf"(?P<unit>{_any(table.units)})"
    )
    of = rf"(?:(?: |,|\. ?| (?:{table.of}) ?)+)"
    year = "(?P<year>(?:19|20)[0-9]{2})"
    since = rf"(?:(?P<since>{table.since}) (?:el |le |la |dem |den )?)?"
    day = r"(?P<day>[0-3]?[0-9])(?:er|º|o)?"
    quantity = [
        _rule(form.replace("{n}", amount), _ago if sign < 0 else _ahead)
        for forms, sign in ((table.ago, -1), (table.ahead, 1))
        for form in forms
    ]
    return (
        _rule(f"(?P<name>{_any((*table.nights, *table.days))})", _fixed),
        *quantity,
        _rule(rf"{since}{day}{of}(?P<month>{months})(?:{of}{year})?", _date),
        _rule(rf"{since}(?P<month>{months}){of}{year}", _month),
        _rule(
            rf"(?:(?P<last>{table.last})|(?P<this>{table.this})|(?P<next>{table.next})) ?{noun}",
            _directed,
        ),
        _rule(
            rf"{noun} (?:(?P<last>{table.after_last})|(?P<next>{table.after_next}))"
            "(?P<this>(?!))?",
            _directed,
        ),
        _rule(rf"(?:(?P<since>{table.since})|{table.within}) (?P<month>{months})", _month),
        _rule(rf"(?:(?P<since>{table.since})|{table.within}) {year}(?!,?[0-9])", _year),
        _rule(rf"(?:{table.on}) (?P<weekday>{weekdays})", _weekday),
    )


def _rule(pattern: str, resolve: Callable[[re.Match[str], Language, Clock], Span | None]) -> _Rule:
    return _Rule(re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])"), resolve)


def _tense(clock: Clock) -> Tense | None:
    return "past" if clock.question else None


def _fixed(match: re.Match[str], table: Language, clock: Clock) -> Span | None:
    name = match["name"]
    if re.search(
        rf"\b(?:{table.not_after}) $", match.string[max(0, match.start() - 12) : match.start()]
    ):
        return None
    if name in table.nights:
        count, part = table.nights[name]
        return daypart(clock.today + DAY * count, part)
    return day_of(clock.today + DAY * table.days[name])


def _amount(match: re.Match[str], table: Language) -> tuple[int, int] | None:
    number = match["n"]
    if not number:
        return (1, 1) if table.bare else None
    if number.isdigit():
        return (int(number), int(number)) if int(number) else None
    if number in table.numbers:
        return table.numbers[number], table.numbers[number]
    if re.fullmatch(table.couple, number):
        return 1, 3
    return 2, 5


def _ago(match: re.Match[str], table: Language, clock: Clock) -> Span | None:
    amount = _amount(match, table)
    if amount is None:
        return None
    return units_between(table.units[match["unit"]], clock.now, -amount[0], -amount[1])


def _ahead(match: re.Match[str], table: Language, clock: Clock) -> Span | None:
    amount = _amount(match, table)
    if amount is None:
        return None
    return units_between(table.units[match["unit"]], clock.now, amount[0], amount[1])


def _directed(match: re.Match[str], table: Language, clock: Clock) -> Span | None:
    noun = match["noun"]
    count = -1 if match["last"] else 0 if match["this"] else 1
    unit = table.units.get(noun)
    if unit == "day":
        return None
    if unit is not None:
        return unit_span(unit, clock.now, count)
    if noun in table.weekdays:
        if count < 0:
            return weekday_before(clock.today, table.weekdays[noun])
        base = clock.today - DAY if count == 0 else clock.today
        return weekday_after(base, table.weekdays[noun])
    if count == 0:
        return named_month(table.months[noun], clock, None)
    span = named_month(table.months[noun], clock, "past" if count < 0 else "future")
    return unit_span("month", clock.now, 12 * count) if span.start <= clock.now < span.end else span


def _date(match: re.Match[str], table: Language, clock: Clock) -> Span | None:
    month, day = table.months[match["month"]], int(match["day"])
    if match["year"]:
        span: Span | None = date_span(int(match["year"]), month, day)
    else:
        span = named_date(month, day, clock, _tense(clock))
    return span and _open(match, span, clock)


def _month(match: re.Match[str], table: Language, clock: Clock) -> Span | None:
    if _DAY_BEFORE.search(match.string[max(0, match.start() - 8) : match.start()]):
        return None  # a date that cannot be, "32 de marzo de 2024"
    month = table.months[match["month"]]
    if "year" in match.re.groupindex:
        return _open(match, month_span(int(match["year"]), month), clock)
    tense: Tense | None = "past" if match["since"] else _tense(clock)
    return _open(match, named_month(month, clock, tense), clock)


def _year(match: re.Match[str], table: Language, clock: Clock) -> Span:
    del table
    return _open(match, year_span(int(match["year"])), clock)


def _weekday(match: re.Match[str], table: Language, clock: Clock) -> Span | None:
    if not clock.question:
        return None
    return weekday_before(clock.today, table.weekdays[match["weekday"]])


def _open(match: re.Match[str], span: Span, clock: Clock) -> Span:
    """Up to now, if the words say "since"."""
    if not match["since"] or span.start >= clock.now:
        return span
    return span._replace(end=clock.today + DAY if clock.question else clock.now)

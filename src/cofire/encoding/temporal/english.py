"""Time expressions of English: one pass over the words, rules chosen by the word at hand."""

from __future__ import annotations

from collections.abc import Mapping

from cofire.encoding.temporal.english_compounds import (
    STARTS,
    Rule,
    before_after,
    by,
    continued,
    from_to,
    since,
    until,
    week_with,
)
from cofire.encoding.temporal.english_dates import (
    atom,
    decade_word,
    from_month,
    from_weekday,
    numeric,
    quarter,
    season,
    the_day_of_month,
)
from cofire.encoding.temporal.english_relative import Found, ago, from_now, in_amount
from cofire.encoding.temporal.english_words import (
    ALL_MONTHS,
    ALL_WEEKDAYS,
    DECADE_WORDS,
    SEASONS,
    UNITS,
)
from cofire.encoding.temporal.spans import Clock
from cofire.encoding.temporal.words import Words

TRIGGERS = frozenset(
    {"yesterday", "today", "tonight", "tomorrow", "ago", "back", "q"}
    | {"night", "morning", "evening", "afternoon"}
    | (UNITS.keys() - {"hour", "hr", "day", "mon", "mo"})
    | ALL_MONTHS.keys()
    | ALL_WEEKDAYS.keys()
    | SEASONS.keys()
    | DECADE_WORDS.keys()
    | {str(year) for year in range(1500, 2100)}
    | {f"{year}s" for year in (*range(1500, 2100, 10), *range(30, 100, 10))}
    | {f"{day}{tail}" for day in range(1, 32) for tail in ("st", "nd", "rd", "th")}
)
"""A text with none of these words names no time in English."""

_LEADS = frozenset({"on", "in", "since", "until", "till", "by", "before", "after", "from"})


def expressions(words: Words, clock: Clock, limit: int) -> list[Found]:
    """At most `limit` time expressions, in order and apart from one another."""
    found: list[Found] = []
    read = 0  # words
    for index, word in enumerate(words.words):
        if index < read or not (word in _RULES or word[0].isdigit()):
            continue
        hit = _at(words, index, clock)
        if hit is None:
            continue
        while found and found[-1].last >= hit.first:
            found.pop()
        found.append(hit)
        if len(found) >= limit:
            break
        read = max(index, hit.last) + 1
    return found


def _at(words: Words, index: int, clock: Clock) -> Found | None:
    word = words.words[index]
    rules = _NUMERIC if word[0].isdigit() else _RULES.get(word)
    if rules is None:
        return None
    for rule in rules:
        try:
            hit = rule(words, index, clock)
        except (OverflowError, ValueError):
            # No such day, or one outside the years 1 to 9999: these words name no time.
            continue
        if hit is not None and hit.span.start < hit.span.end:
            return continued(words, hit, clock) if rule in _DATES else hit
    return None


def _month(words: Words, index: int, clock: Clock) -> Found | None:
    return from_month(words, index, clock, led=False)


def _number(words: Words, index: int, clock: Clock) -> Found | None:
    if not words.free(index):
        return None
    return numeric(words, index, clock, led=words.before(index) in _LEADS)


def _year(words: Words, index: int, clock: Clock) -> Found | None:
    return atom(words, index, clock)


_DATES: frozenset[Rule] = frozenset({_month, _number})
_NUMERIC: tuple[Rule, ...] = (the_day_of_month, _number)
_RULES: Mapping[str, tuple[Rule, ...]] = (
    dict(STARTS)
    | dict.fromkeys(ALL_MONTHS, (_month,))
    | dict.fromkeys(ALL_WEEKDAYS, (from_weekday,))
    | dict.fromkeys(SEASONS, (season,))
    | dict.fromkeys(DECADE_WORDS, (decade_word,))
    | dict.fromkeys(("until", "till", "til"), (until,))
    | dict.fromkeys(("before", "after"), (before_after,))
    | dict.fromkeys(("week", "weekend"), (week_with,))
    | dict.fromkeys(("ago", "back"), (ago,))
    | {
        "since": (since,),
        "by": (by,),
        "between": (from_to,),
        "from": (from_to, from_now),
        "in": (in_amount,),
        "q": (quarter,),
        "year": (_year,),
    }
)

"""English expressions that lean on the speaker's own time: yesterday, last week, two years ago."""

from __future__ import annotations

from typing import NamedTuple

from cofire.encoding.temporal.english_words import (
    ALL_MONTHS,
    ALL_WEEKDAYS,
    DOUBTFUL_MONTHS,
    NUMBERS,
    PERIODS,
    SEASONS,
    UNITS,
    VAGUE,
    WEEKDAYS,
    tense_at,
)
from cofire.encoding.temporal.spans import (
    DAY,
    DAYPARTS,
    Clock,
    Span,
    Tense,
    Unit,
    day_of,
    daypart,
    moved,
    named_month,
    named_season,
    season_span,
    unit_span,
    units_between,
    weekday_after,
    weekday_before,
)
from cofire.encoding.temporal.words import Words


class Found(NamedTuple):
    """An expression: words `first` to `last`, both included, and the time they mean."""

    first: int
    last: int
    span: Span


class Amount(NamedTuple):
    """A number of units, exact or vague, that begins at word `first`."""

    first: int
    unit: Unit
    least: int
    most: int


_DEICTIC_DAYS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_NOT_A_DAY = frozenset({"world", "society", "age", "market", "economy", "technology", "youth"})
"""What "today's" goes with when it means nowadays."""


def tense_of(words: Words, index: int, clock: Clock, default: Tense | None = None) -> Tense | None:
    """What undated names at `index` point at; a question means the past unless it says else."""
    if clock.tense is not None:
        return clock.tense
    tense = tense_at(words, index, question=clock.question)
    if tense is None:
        return "past" if clock.question else default
    return tense


def with_daypart(words: Words, found: Found) -> Found:
    """Narrow a day to the "morning" or "night" that follows it."""
    part = words.next(found.last)
    if part in DAYPARTS and found.span.unit == "day":
        return Found(found.first, found.last + 1, daypart(found.span.start, part))
    return found


def deictic_day(words: Words, index: int, clock: Clock) -> Found | None:
    """yesterday, today, tonight, tomorrow, with "the day before" or "the day after" them."""
    word = words.words[index]
    count = _DEICTIC_DAYS[word]
    if word == "tonight":
        return Found(index, index, daypart(clock.today, "night"))
    if word == "today" and words.next(index) == "s" and words.get(index + 2) in _NOT_A_DAY:
        return None
    if word == "tomorrow" and words.before(index) in {"no", "better", "brighter"}:
        return None
    if words.before(index) == "to" and words.before(index - 1) == "up":  # "up to today"
        return None
    first = index
    if word != "today" and words.before(index) in {"before", "after"}:
        if words.before(index - 1) != "day":
            first = index
        else:
            count += -1 if words.words[index - 1] == "before" else 1
            first = index - 2
            if words.before(first) == "the":
                first -= 1
    return with_daypart(words, Found(first, index, day_of(clock.today + DAY * count)))


def directed(words: Words, index: int, clock: Clock) -> Found | None:
    """last, past, this, next and coming, before a unit, weekday, month, season or part of day."""
    word = words.words[index]
    count = {"last": -1, "past": -1, "previous": -1, "this": 0}.get(word, 1)
    place = index + 1
    if not words.joined(index):
        return None
    if word == "this" and words.get(place) in {"past", "last", "coming", "upcoming", "next"}:
        count = -1 if words.words[place] in {"past", "last"} else 1
        if not words.joined(place):
            return None
        place += 1
    name = words.get(place)
    found = _rolling(words, index, place, count)
    if found is not None:
        return Found(index, found[0], _rolled(clock, *found[1:]))
    if word == "past" and name in ALL_MONTHS and place == index + 1:
        return None
    span = _directed_name(words, place, clock, count)
    if span is None:
        return None
    return _with_weekday(words, Found(index, place, span))


def _rolling(words: Words, index: int, place: int, count: int) -> tuple[int, Unit, int, int] | None:
    """ "the past week", "last three months": up to today rather than the calendar's own unit."""
    name = words.get(place)
    known = name in UNITS or name in NUMBERS or name in VAGUE or _is_count(name)
    if not known or (count == 0 and name not in VAGUE):
        return None
    if name in UNITS:
        rolls = words.before(index) == "the" and words.next(place) != "of"
        rolls = rolls or (words.words[index] == "past" and place == index + 1)
        if not rolls or UNITS[name] == "weekend" or words.words[index] in {"next", "this"}:
            return None
        return place, UNITS[name], count, 1
    size = VAGUE[name][1] if name in VAGUE else NUMBERS.get(name) or int(name)
    if name == "couple" and words.next(place) == "of":
        place += 1
    unit = words.next(place)
    if unit not in UNITS or not unit.endswith("s"):
        return None
    return place + 1, UNITS[unit], count, 2 if name == "couple" else size


def _rolled(clock: Clock, unit: Unit, count: int, size: int) -> Span:
    edge = moved(clock.today, unit, count * size)
    if count < 0:
        return Span(edge, clock.today + DAY, unit)
    return Span(clock.now, edge + DAY, unit)


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 3


def _directed_name(words: Words, place: int, clock: Clock, count: int) -> Span | None:  # noqa: PLR0911 - one return per form
    name = words.get(place)
    if name in ALL_WEEKDAYS and (name in WEEKDAYS or _short_weekday(words, place)):
        return _directed_weekday(words, place, clock, count)
    if name in PERIODS:
        return unit_span(UNITS[name], clock.now, count)
    if name in ALL_MONTHS:
        if name in DOUBTFUL_MONTHS and not words.capital(place) and count == 0:
            return None
        return _directed_month(ALL_MONTHS[name], clock, count)
    if name in SEASONS:
        return _directed_season(SEASONS[name], clock, count)
    if name in DAYPARTS:
        if count == 0:
            return daypart(clock.today, name)
        if count < 0 and name in {"night", "evening"}:
            return daypart(clock.today - DAY, name)
    return None


def _short_weekday(words: Words, place: int) -> bool:
    """ "Sat" and "Sun" are days only with a capital, or a plain context."""
    word = words.words[place]
    return word not in {"sat", "sun", "mon", "wed"} or words.capital(place)


def _directed_weekday(words: Words, place: int, clock: Clock, count: int) -> Span:
    weekday = ALL_WEEKDAYS[words.words[place]]
    if count < 0:
        return weekday_before(clock.today, weekday)
    if count > 0:
        return weekday_after(clock.today, weekday)
    if tense_of(words, place, clock) == "past":
        return weekday_before(clock.today + DAY, weekday)
    return weekday_after(clock.today - DAY, weekday)


def _directed_month(month: int, clock: Clock, count: int) -> Span:
    if count == 0:
        return named_month(month, clock, None)
    span = named_month(month, clock, "past" if count < 0 else "future")
    if span.start <= clock.today < span.end:
        span = unit_span("month", clock.now, 12 * count)
    return span


def _directed_season(season: str, clock: Clock, count: int) -> Span:
    if count == 0:
        return named_season(season, clock, None)
    year = clock.today.year
    found = [season_span(year + shift, season) for shift in range(-2, 3)]
    if count < 0:
        return [span for span in found if span.end <= clock.today][-1]._replace(absolute=False)
    return next(span for span in found if span.start > clock.today)._replace(absolute=False)


def _with_weekday(words: Words, found: Found) -> Found:
    """ "next week on Tuesday", "Friday last week", "last Friday night"."""
    span = found.span
    if span.unit == "day":
        return with_daypart(words, found)
    if span.unit != "week" or (span.end - span.start).days != 7:
        return found
    place = found.last + (2 if words.next(found.last) == "on" else 1)
    if words.joined(place - 1) and words.get(place) in WEEKDAYS:
        day = day_of(span.start + DAY * WEEKDAYS[words.words[place]])
        return with_daypart(words, Found(found.first, place, day))
    place = found.first - (2 if words.before(found.first) == "of" else 1)
    if words.joined(place) and words.get(place) in WEEKDAYS:
        return Found(place, found.last, day_of(span.start + DAY * WEEKDAYS[words.words[place]]))
    return found


def before_last(words: Words, index: int, clock: Clock) -> Found | None:
    """ "the week before last", "the week after next"; `index` is at "before" or "after"."""
    unit = words.before(index)
    word = words.next(index)
    if unit not in PERIODS or (words.words[index], word) not in {
        ("before", "last"),
        ("after", "next"),
    }:
        return None
    if words.next(index + 1) in UNITS:  # "the week before last week" is read by its last words
        return None
    first = index - (2 if words.before(index - 1) == "the" else 1)
    return Found(first, index + 1, unit_span(UNITS[unit], clock.now, -2 if word == "last" else 2))


def amount_ending(words: Words, index: int) -> Amount | None:  # noqa: PLR0911 - one return per form
    """The amount whose unit is word `index`: "two weeks", "a couple of days", "half a year"."""
    if words.get(index) == "half" and words.before(index) == "a":  # "a year and a half"
        inner = amount_ending(words, index - 3) if words.before(index - 1) == "and" else None
        if inner is None or inner.unit != "year":
            return None
        months = inner.least * 12 + 6
        return Amount(inner.first, "month", months, months)
    unit = UNITS.get(words.get(index))
    if unit is None:
        return None
    first = index - 1
    word = words.before(index)
    if word == "of" and words.before(first) == "couple":
        first, word = first - 1, "couple"
    if word in VAGUE:
        if words.before(first) in {"a", "the", "last", "past"}:
            first -= 1
        return Amount(first, unit, *VAGUE[word])
    if word in {"a", "an"} and words.before(first) == "half":
        return Amount(first - 1, "month", 6, 6) if unit == "year" else None
    number = NUMBERS.get(word)
    if number is None and _is_count(word):
        number = int(word)
    if number is None or number == 0:
        return None
    if word in NUMBERS and words.before(first) in {"twenty", "thirty", "forty", "fifty"}:
        number, first = number + NUMBERS[words.words[first - 1]], first - 1
    if words.before(first) == "or" and words.before(first - 1) in NUMBERS:  # "two or three"
        least = NUMBERS[words.words[first - 2]]
        return Amount(first - 2, unit, min(least, number), max(least, number))
    return Amount(first, unit, number, number)


def ago(words: Words, index: int, clock: Clock) -> Found | None:
    """ "two weeks ago" at the grain of its unit; `index` is at "ago" or "back"."""
    amount = amount_ending(words, index - 1) if words.joined(index - 1) else None
    if amount is None:
        return None
    span = units_between(amount.unit, clock.now, -amount.least, -amount.most)
    return Found(amount.first, index, span)


def in_amount(words: Words, index: int, clock: Clock) -> Found | None:
    """ "in two weeks"; not where the verb tells how long something took. `index` is at "in"."""
    for place in range(index + 2, min(index + 6, words.size)):
        if not words.joined(place - 1):
            return None
        if words.words[place] not in UNITS:
            continue
        amount = amount_ending(words, place)
        start = index + (2 if words.words[index + 1] in {"about", "around"} else 1)
        if amount is None or amount.first != start:
            return None
        last = place + 1 if words.next(place) == "time" else place  # "in two weeks' time"
        if words.next(last) in {"of", "from", "ago", "flat", "before", "after"}:
            return None
        if tense_at(words, index, question=clock.question) == "past":
            return None
        span = units_between(amount.unit, clock.now, amount.least, amount.most)
        return Found(index, last, span)
    return None


def from_now(words: Words, index: int, clock: Clock) -> Found | None:
    """ "two weeks from now", "a week from Friday"; `index` is at "from"."""
    amount = amount_ending(words, index - 1) if words.joined(index - 1) else None
    word = words.next(index)
    if amount is None:
        return None
    base = clock.now
    if word in {"today", "tomorrow"}:
        base = clock.today + DAY * _DEICTIC_DAYS[word]
    elif word in WEEKDAYS:
        base = weekday_after(clock.today, WEEKDAYS[word]).start
    elif word != "now":
        return None
    if word != "now" and amount.unit == "week":
        span = day_of(base + DAY * 7 * amount.most)
    else:
        span = units_between(amount.unit, base, amount.least, amount.most)
    return Found(amount.first, index + 1, span)


def earlier(words: Words, index: int, clock: Clock) -> Found | None:
    """ "earlier this week", "later this year"; `index` is at "earlier" or "later"."""
    if words.next(index) != "this" or words.next(index + 1) not in PERIODS:
        return None
    span = unit_span(UNITS[words.words[index + 2]], clock.now, 0)
    if words.words[index] == "later":
        span = span._replace(start=clock.now)
    else:
        span = span._replace(end=min(span.end, clock.today + DAY))
    return Found(index, index + 2, span) if span.start < span.end else None

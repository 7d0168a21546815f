"""Relative dates as days of the calendar, so that no model has to count: "yesterday [7 May]".

What a text means by "yesterday" was settled when it was remembered (`Item.event_times`). Here the
words are followed by it, in brackets, where they do not say it themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta

from cofire.types import MONTHS, EventTime

WIDEST_DAYS = 366 * 12
"""What lies within a wider range than so many days is not told: a decade is as good as its name."""

_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20|21)\d\d(?!\d)")
_DAY = timedelta(days=1)


def with_dates(
    text: str, times: Iterable[EventTime], said: date, *, offset: int | None = None, start: int = 0
) -> str:
    """A text with the days that its time expressions mean, in brackets behind them.

    `said` is the day it was said, in its speaker's calendar, `offset` (minutes east of UTC) that
    of the calendar, and `start` the character of the whole text at which `text` begins. What means
    the day it was said, or names its year itself, stays as it is. A year is given where it is not
    that of `said`.
    """
    parts: list[str] = []
    done = 0
    for time in sorted(times, key=lambda time: time.span):
        first, last = time.span[0] - start, time.span[1] - start
        if first < done or last > len(text) or text[first:last] != time.text:
            continue
        told = meant(time, said, offset)
        if told:
            parts += [text[done:last], f" [{told}]"]
            done = last
    return "".join([*parts, text[done:]])


def meant(time: EventTime, said: date, offset: int | None = None) -> str:
    """The day or days that words mean, as in "7 May" or "May 2021"; empty where they need none."""
    if _YEAR.search(time.text):
        return ""
    first, last = _days(time.start, time.end, offset)
    if first == last == said or last < first or (last - first).days > WIDEST_DAYS:
        return ""
    told = _named(first, last, said)
    return "" if _says(time.text, told) else told


def _says(words: str, told: str) -> bool:
    """Whether words name a day or a month themselves, as in "the 13th of June"."""
    numbers = set(_NUMBER.findall(words))
    said = words.casefold()
    parts = (part for part in told.split() if part != "to")
    return all(part in numbers if part.isdigit() else part.casefold() in said for part in parts)


def _days(start: datetime, end: datetime, offset: int | None) -> tuple[date, date]:
    """The first and the last day of a half-open range, in the calendar of the offset."""
    last = end - timedelta(microseconds=1) if end > start else start
    return local_day(start, offset), local_day(last, offset)


def local_day(time: datetime, offset: int | None) -> date:
    """The day in a calendar so many minutes east of UTC; at the ends of the calendar UTC's."""
    try:
        return (time + timedelta(minutes=offset or 0)).date()
    except OverflowError:
        return time.date()


def _named(first: date, last: date, said: date) -> str:
    if first == last:
        return day_named(first, said)
    following = last + _DAY if last < date.max else last
    whole_months = first.day == 1 and following.day == 1
    if whole_months and first.month == 1 and following.month == 1:
        years = (first.year, last.year)
        return f"{years[0]}" if years[0] == years[1] else f"{years[0]} to {years[1]}"
    if whole_months and (first.year, first.month) == (last.year, last.month):
        return _month_named(first, said)
    if whole_months:
        return f"{_month_named(first, said)} to {_month_named(last, said)}"
    return f"{_short(first, last)} to {day_named(last, said)}"


def day_named(day: date, said: date | None = None) -> str:
    """ "7 May", with the year where it is not that of `said`."""
    name = f"{day.day} {MONTHS[day.month - 1]}"
    return name if said is not None and day.year == said.year else f"{name} {day.year}"


def _month_named(month: date, said: date) -> str:
    name = MONTHS[month.month - 1]
    return name if month.year == said.year else f"{name} {month.year}"


def _short(first: date, last: date) -> str:
    """The first day of a range, with no more of it than differs from the last."""
    if first.year != last.year:
        return day_named(first)
    return f"{first.day}" if first.month == last.month else day_named(first, first)


WEEKDAYS: Sequence[str] = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip
"""Names of weekdays, English on every host."""


def today_named(now: datetime) -> str:
    """ "Monday, 8 May 2023": the day a question is asked, for a prompt."""
    return f"{WEEKDAYS[now.weekday()]}, {day_named(now.date())}"

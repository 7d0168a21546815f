"""Calendar arithmetic on a speaker's wall clock.

Every `datetime` here is a wall-clock reading labelled UTC, so that arithmetic is exact and the
host's zone cannot leak in; `cofire.encoding.expressions` turns it into true UTC at the end. Weeks
run Monday to Sunday. Seasons are the northern meteorological ones, a winter being named after its
December. Functions raise OverflowError or ValueError where a date leaves the years 1 to 9999.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

Unit = Literal[
    "hour", "day", "week", "fortnight", "weekend", "month", "quarter", "season", "year", "decade"
]
Tense = Literal["past", "future"]

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
MONTHS_PER: dict[str, int] = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
DAYS_PER: dict[str, int] = {"day": 1, "week": 7, "fortnight": 14, "weekend": 7}
SEASON_START: dict[str, int] = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
DAYPARTS: dict[str, tuple[int, int]] = {
    "morning": (0, 12),
    "afternoon": (12, 18),
    "evening": (18, 24),
    "night": (18, 30),
}
"""Hours of a day; a night runs into the next morning."""

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)


class Span(NamedTuple):
    """A half-open stretch of wall-clock time.

    `unit` is its grain; `absolute` says that the words fix it without a clock ("8 May 2023"), so
    that it may serve as anchor for its neighbours.
    """

    start: datetime
    end: datetime
    unit: Unit
    absolute: bool = False


Located = tuple[int, int, Span]
"""An expression: its characters from and to in the text, and the time they mean."""


class Clock(NamedTuple):
    """Where a speaker stands in time.

    `now` is the wall clock and `today` its midnight. `question`: the text asks rather than tells,
    so undated names mean the past. `tense` overrules what the sentence's verbs say. `day_first`:
    04/05/2023 is 4 May (otherwise it is not read at all).
    """

    now: datetime
    today: datetime
    question: bool = False
    tense: Tense | None = None
    day_first: bool = False

    def at(self, moment: datetime, tense: Tense | None = None) -> Clock:
        """The clock of somebody standing at `moment`."""
        return self._replace(now=moment, today=midnight(moment), tense=tense)


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def day_of(date: datetime, *, absolute: bool = False) -> Span:
    return Span(date, date + DAY, "day", absolute)


def date_span(year: int, month: int, day: int) -> Span:
    return day_of(datetime(year, month, day, tzinfo=UTC), absolute=True)


def week_of(date: datetime) -> Span:
    monday = date - DAY * date.weekday()
    return Span(monday, monday + WEEK, "week")


def weekend_of(date: datetime) -> Span:
    """Saturday and Sunday of the week that holds `date`."""
    monday = date - DAY * date.weekday()
    return Span(monday + DAY * 5, monday + WEEK, "weekend")


def months_from(year: int, month: int, count: int, unit: Unit, *, absolute: bool = False) -> Span:
    """`count` months from the first of `month` in `year`; `month` may lie outside 1 to 12."""
    return Span(_first(year, month), _first(year, month + count), unit, absolute)


def month_span(year: int, month: int) -> Span:
    return months_from(year, month, 1, "month", absolute=True)


def quarter_span(year: int, quarter: int) -> Span:
    return months_from(year, quarter * 3 - 2, 3, "quarter", absolute=True)


def season_span(year: int, season: str) -> Span:
    return months_from(year, SEASON_START[season], 3, "season", absolute=True)


def year_span(year: int) -> Span:
    return months_from(year, 1, 12, "year", absolute=True)


def decade_span(year: int) -> Span:
    return months_from(year - year % 10, 1, 120, "decade", absolute=True)


def daypart(date: datetime, part: str) -> Span:
    first, last = DAYPARTS[part]
    return Span(date + timedelta(hours=first), date + timedelta(hours=last), "day")


def unit_span(unit: Unit, moment: datetime, count: int) -> Span:
    """The calendar unit that lies `count` units after (before, if negative) that of `moment`."""
    today = midnight(moment)
    if unit == "hour":
        start = moment.replace(minute=0, second=0, microsecond=0) + timedelta(hours=count)
        return Span(start, start + timedelta(hours=1), "hour")
    if unit == "day":
        return day_of(today + DAY * count)
    if unit == "weekend":
        return weekend_of(today + WEEK * count)
    if unit in ("week", "fortnight"):
        return week_of(today + DAY * DAYS_PER[unit] * count)
    if unit == "decade":
        return decade_span(today.year + 10 * count)._replace(absolute=False)
    size = MONTHS_PER[unit]
    first = (today.month - 1) // size * size + 1
    return months_from(today.year, first + size * count, size, unit)


def units_between(unit: Unit, moment: datetime, nearest: int, farthest: int) -> Span:
    """From the calendar unit `nearest` units away to the one `farthest` away, both included."""
    low, high = min(nearest, farthest), max(nearest, farthest)
    if unit == "decade":  # "a decade ago" is ten years ago give or take one, not the 2010s
        years = units_between("year", moment, low * 10 - 1, high * 10 + 1)
        return years._replace(unit="decade")
    return Span(unit_span(unit, moment, low).start, unit_span(unit, moment, high).end, unit)


def moved(moment: datetime, unit: Unit, count: int) -> datetime:
    """`moment` shifted by `count` units; the day is cut to the length of the month it meets."""
    if unit == "hour":
        return moment + timedelta(hours=count)
    if unit in DAYS_PER:
        return moment + DAY * DAYS_PER[unit] * count
    first = _first(moment.year, moment.month + MONTHS_PER[unit] * count)
    length = (_first(first.year, first.month + 1) - first).days
    return moment.replace(year=first.year, month=first.month, day=min(moment.day, length))


def weekday_before(date: datetime, weekday: int) -> Span:
    """The last such weekday strictly before `date`."""
    return day_of(date - DAY * ((date.weekday() - weekday - 1) % 7 + 1))


def weekday_after(date: datetime, weekday: int) -> Span:
    """The first such weekday strictly after `date`."""
    return day_of(date + DAY * ((weekday - date.weekday() - 1) % 7 + 1))


def nearest_to(moment: datetime, spans: list[Span]) -> Span:
    return min(spans, key=lambda span: abs(span.start + (span.end - span.start) / 2 - moment))


def named_month(month: int, clock: Clock, tense: Tense | None) -> Span:
    """The month of that name the tense points at, this month included; else the nearest."""
    today = clock.today
    if tense == "past":
        return _relative(month_span(today.year - (month > today.month), month))
    if tense == "future":
        return _relative(month_span(today.year + (month < today.month), month))
    years = (today.year - 1, today.year, today.year + 1)
    return _relative(nearest_to(clock.now, [month_span(year, month) for year in years]))


def named_date(month: int, day: int, clock: Clock, tense: Tense | None) -> Span | None:
    """That day of the year the tense points at, today included; None if no year has it."""
    today = clock.today
    reach = 8 if (month, day) == (2, 29) else 1  # years without a leap day on either side
    found = [
        span
        for year in range(max(1, today.year - reach), min(9998, today.year + reach) + 1)
        if (span := _date_or_none(year, month, day)) is not None
    ]
    return _pick(found, clock, tense)


def named_day(day: int, clock: Clock, tense: Tense | None) -> Span | None:
    """That day of the month the tense points at, today included."""
    found = []
    for count in range(-2, 3):
        first = _first(clock.today.year, clock.today.month + count)
        span = _date_or_none(first.year, first.month, day)
        if span is not None:
            found.append(span)
    return _pick(found, clock, tense)


def named_season(season: str, clock: Clock, tense: Tense | None) -> Span:
    """The season the tense points at, the current one included; else the nearest."""
    years = (clock.today.year - 1, clock.today.year, clock.today.year + 1)
    found = [season_span(year, season) for year in years]
    picked = _pick(found, clock, tense)
    return picked if picked is not None else _relative(found[1])


def _pick(spans: list[Span], clock: Clock, tense: Tense | None) -> Span | None:
    if tense == "past":
        spans = [span for span in spans if span.start <= clock.today][-1:]
    elif tense == "future":
        spans = [span for span in spans if span.end > clock.today][:1]
    return _relative(nearest_to(clock.now, spans)) if spans else None


def _relative(span: Span) -> Span:
    return span._replace(absolute=False)


def _date_or_none(year: int, month: int, day: int) -> Span | None:
    try:
        return date_span(year, month, day)
    except ValueError:
        return None


def _first(year: int, month: int) -> datetime:
    """The first of a month, `month` counted on past 12 or back past 1."""
    years, index = divmod(month - 1, 12)
    return datetime(year + years, index + 1, 1, tzinfo=UTC)

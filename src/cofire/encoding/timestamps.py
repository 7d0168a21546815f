"""Points in time as callers and exports write them, read the same way on every host.

Numbers are epoch times whose unit follows from their size. The bands meet where each unit starts
at 1973-03-03 and ends at 5138-11-16, so no number has two readings:

    100,000,000 to 99,999,999,999   seconds
    then three more digits each     milliseconds, microseconds, nanoseconds

Smaller and negative numbers are refused. -1 and 0 are how programs write "unknown", and a number
such as 2023 is a year: read as seconds, all of them would silently become 1970. Earlier moments
can be given as ISO 8601 text or a `datetime`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from numbers import Integral, Real

from cofire.errors import InputError
from cofire.types import TimeLike, from_micros

_MAX_TEXT = 100
_SMALLEST = 100_000_000
_MICROS_PER_UNIT = (
    (10**11, Decimal(1_000_000)),
    (10**14, Decimal(1_000)),
    (10**17, Decimal(1)),
    (10**20, Decimal("0.001")),
)

_ACCEPTED = (
    "give ISO 8601 text such as 2024-01-01T09:30:00Z, epoch seconds or milliseconds, a datetime "
    "or a date"
)

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_COMPACT_DATE = re.compile(r"(?:1[0-9]|20)[0-9]{6}")
_ZONE_WORD = re.compile(r"\s*(?:z|utc|gmt)$", re.IGNORECASE)
_SPACED_OFFSET = re.compile(r"(?<=[0-9])\s+(?=[+-][0-9]{2}:?[0-9]{2}$)")
_CLOCK = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
    r"(?:\s*(?P<half>[ap])\.?m\.?)?"
)
_MONTH_WORDS = ("jan", "feb", "mar", "apr", "may", "jun",
                "jul", "aug", "sep", "oct", "nov", "dec")  # fmt: skip
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[0-9]{4})"
_WRITTEN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # 2023/05/30 (Tue) 09:00, 2024-3-1 9:05
        rf"{_YEAR}[-/.](?P<month>[0-9]{{1,2}})[-/.]{_DAY}"
        rf"(?:\s*\([^\W\d_]{{1,9}}\))?(?:[\sT]+{_CLOCK})?",
        # LoCoMo: 1:56 pm on 8 May, 2023
        rf"{_CLOCK}\s+on\s+{_DAY}\s+{_MONTH},?\s+{_YEAR}",
        # 8 May 2023, 13:56
        rf"{_DAY}\s+{_MONTH},?\s+{_YEAR}(?:(?:,|\s+at)?\s+{_CLOCK})?",
        # May 8, 2023 at 1:56 PM
        rf"{_MONTH}\s+{_DAY},?\s+{_YEAR}(?:(?:,|\s+at)?\s+{_CLOCK})?",
    )
)
_RFC_2822 = re.compile(
    r"(?:[a-z]{3},\s*)?[0-9]{1,2}\s+[a-z]{3}\s+[0-9]{4}\s+[0-9]{2}:[0-9]{2}(?::[0-9]{2})?"
    r"\s+(?:[+-][0-9]{4}|gmt|utc?|z|[ecmp][sd]t)(?:\s+\([a-z ]*\))?",
    re.IGNORECASE,
)


def parse_time(value: TimeLike) -> tuple[datetime, int | None]:
    """Read a point in time.

    Accepts an aware `datetime`, a naive one (read as UTC, never as the host's zone), a `date` or
    ISO 8601 text (a date alone is its midnight in UTC), epoch seconds, milliseconds, microseconds
    or nanoseconds as number or text (exact to the microsecond, so Slack's "1704067200.000100"
    keeps its tail), RFC 2822, "2023/05/30 (Tue) 09:00" and "1:56 pm on 8 May, 2023".

    Returns:
        The moment in UTC, and the offset in minutes east of UTC if the value named one.

    Raises:
        InputError: the value is no possible time; nothing is guessed.
    """
    if isinstance(value, datetime):
        return _from_datetime(value, value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC), None
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        return _from_number(value), None
    raise InputError(f"{_shown(value)} is not a time: {_ACCEPTED}")


def format_time(moment: datetime) -> str:
    """The one way Cofire writes a time: ISO 8601 in UTC with "Z"; microseconds only if not zero.

    A naive `datetime` is read as UTC.
    """
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.replace(tzinfo=None).isoformat() + "Z"


def _from_datetime(moment: datetime, value: object) -> tuple[datetime, int | None]:
    offset = moment.utcoffset()
    if offset is None:
        return moment.replace(tzinfo=UTC, fold=0), None
    try:
        return moment.astimezone(UTC), round(offset / timedelta(minutes=1))
    except OverflowError as exc:
        raise InputError(f"the time {_shown(value)} is outside the years 1 to 9999 in UTC") from exc


def _from_number(value: Real) -> datetime:
    if isinstance(value, Integral):
        whole = int(value)
        # Bounded before it becomes text: Python refuses to print integers of 5,000 digits.
        if abs(whole) >= 10**20:
            raise InputError("the time has over 20 digits: give epoch seconds or milliseconds")
        return _from_decimal(Decimal(whole))
    # repr is the shortest text of the float: 1704067200.0001 keeps its 100 microseconds.
    return _from_decimal(Decimal(repr(float(value))))


def _from_decimal(number: Decimal) -> datetime:
    if not number.is_finite():
        raise InputError(f"{number} is not a time: {_ACCEPTED}")
    if number < _SMALLEST:
        raise InputError(
            f"the number {number} is too small to be a time (epoch times start at {_SMALLEST}, "
            "which is 1973): for earlier moments give ISO 8601 text such as 1969-07-20T20:17:00Z"
        )
    for limit, factor in _MICROS_PER_UNIT:
        if number < limit:
            micros = (number * factor).quantize(Decimal(1), rounding=ROUND_HALF_EVEN)
            return from_micros(int(micros))
    raise InputError(f"the number {number} is too large to be a time: {_ACCEPTED}")


def _from_text(text: str) -> tuple[datetime, int | None]:
    trimmed = text.strip()
    if not trimmed:
        raise InputError(f"the time is empty: {_ACCEPTED}")
    if len(trimmed) > _MAX_TEXT:
        raise InputError(f"{_shown(text)} is too long to be a time: {_ACCEPTED}")
    # Exports put U+202F and U+00A0 between clock and am/pm; \s covers both but fromisoformat not.
    trimmed = re.sub(r"\s+", " ", trimmed)
    if _NUMBER.fullmatch(trimmed) and not _COMPACT_DATE.fullmatch(trimmed):
        return _from_decimal(Decimal(trimmed)), None
    try:
        moment = _read_text(trimmed)
    except (ValueError, OverflowError) as exc:
        raise InputError(f"{_shown(text)} is not a possible time: {_ACCEPTED}") from exc
    if moment is None:
        raise InputError(f"{_shown(text)} is not a time: {_ACCEPTED}")
    return _from_datetime(moment, text)


def _read_text(text: str) -> datetime | None:
    """Try the written forms in turn; None if none fits, ValueError if the date cannot exist."""
    if _RFC_2822.fullmatch(text):
        from email.utils import parsedate_to_datetime  # imports sockets: not at start-up

        return parsedate_to_datetime(text)
    for pattern in _WRITTEN:
        match = pattern.fullmatch(text)
        if match is not None:
            return _from_fields(match)
    named_utc = _ZONE_WORD.sub("", text)
    if named_utc != text:
        moment = datetime.fromisoformat(named_utc)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else None
    return datetime.fromisoformat(_SPACED_OFFSET.sub("", text))


def _from_fields(match: re.Match[str]) -> datetime:
    """A naive datetime from the named groups; ValueError if there is no such day or hour."""
    month = match["month"]
    hour = int(match["hour"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("a 12-hour clock has the hours 1 to 12")
        hour = hour % 12 + (12 if match["half"].lower() == "p" else 0)
    return datetime(  # noqa: DTZ001 - naive on purpose: read as UTC by the caller
        int(match["year"]),
        int(month) if month.isdigit() else _MONTH_WORDS.index(month[:3].lower()) + 1,
        int(match["day"]),
        hour,
        int(match["minute"] or 0),
        int(match["second"] or 0),
    )


def _shown(value: object) -> str:
    """The value as an error may quote it: short, whatever it is."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

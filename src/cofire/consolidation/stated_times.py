"""Dates that a model states: a year, a month, a day or a minute, as the hull of what they name."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

EARLIEST_YEAR = 1000
YEARS_AHEAD = 100
"""What lies further ahead of the turns is taken for an error, as is what lies before the year
1000: models write 9999 or 0001 for what they do not know."""

_DATE = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::\d\d(?:\.\d+)?)?"
    r"\s?(?P<zone>Z|[+-]\d\d:?\d\d)?)?)?)?",
    re.ASCII,
)


def stated_span(
    text: str, offset: int, latest: datetime | None
) -> tuple[datetime, datetime] | None:
    """start ≤ time < end (UTC) of "2024", "2024-05", "2024-05-31" or "2024-05-31T18:30", by a clock
    `offset` minutes east of UTC unless the text names its own; None for anything else, for days
    that do not exist, and for years far from those of the turns, the last of which is of `latest`.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute = (
        None if match[part] is None else int(match[part])
        for part in ("year", "month", "day", "hour", "minute")
    )
    most = (latest.year if latest is not None else 9900) + YEARS_AHEAD
    if year is None or not EARLIEST_YEAR <= year <= min(most, 9998):
        return None
    try:
        zone = _zone(match["zone"], offset)
        start = datetime(year, month or 1, day or 1, hour or 0, minute or 0, tzinfo=zone)
        if month is None:
            end = start.replace(year=year + 1)
        elif day is None:
            end = (start + timedelta(days=31)).replace(day=1)
        else:
            end = start + (timedelta(days=1) if hour is None else timedelta(minutes=1))
    except ValueError:
        return None
    return start.astimezone(UTC), end.astimezone(UTC)


def _zone(text: str | None, offset: int) -> timezone:
    """Raises ValueError where it is a day or more from UTC."""
    if text is None:
        return timezone(timedelta(minutes=offset))
    if text == "Z":
        return UTC
    sign = -1 if text[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(text[1:3]), minutes=int(text[-2:])))

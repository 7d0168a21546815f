"""Whether the times a record gives are those that its quotes give."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from cofire.consolidation.drafts import Turn
from cofire.encoding.expressions import event_times
from cofire.encoding.names import TIME_NAMES
from cofire.encoding.text import fold

SLACK = timedelta(hours=14)
"""A day read by another zone's clock begins at most so much earlier or later; the day before or
after is another day all the same."""
_DURATION = re.compile(
    r"\b(?:for|in)\s+(?:the\s+(?:last|past)\s+)?((?:[a-z]+|\d+)\s+(?:days?|weeks?|months?|years?))\b"
    r"|\b(?:had|been)\b.{0,60}?\b((?:[a-z]+|\d+)\s+(?:weeks?|months?|years?))\b",
    re.IGNORECASE,
)
_MENTIONS = re.compile(r"\b(?:as of|said|told|mentioned|according|by|since)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")


class Time(NamedTuple):
    """A half-open range of time in UTC; `since`: from its start until the turn was said."""

    start: datetime
    end: datetime
    since: bool


def times_in(text: str, turn: Turn) -> list[Time]:
    """The times that words of a turn stand for, "for three years" included."""
    found = _resolved(text, turn)
    for match in _DURATION.finditer(text):
        ago = f"{match.group(1) or match.group(2)} ago"
        found += [time._replace(since=False) for time in _resolved(ago, turn)]
    return found


def _resolved(text: str, turn: Turn) -> list[Time]:
    return [
        Time(event.start, event.end, event.end == turn.time)
        for event in event_times(text, turn.time, turn.offset, turn.language)
    ]


def day_of(turn: Turn) -> Time:
    """The day on which a turn was said, by the speaker's clock."""
    shift = timedelta(minutes=turn.offset or 0)
    try:
        wall = turn.time + shift
        start = wall.replace(hour=0, minute=0, second=0, microsecond=0) - shift
        return Time(start, start + timedelta(days=1), False)
    except OverflowError:
        return Time(turn.time, turn.time, False)


def agree(record: Time, quoted: Time) -> bool:
    """Whether a record's time is no other and no more exact than the quoted one: it contains it
    (± `SLACK`), or meets it and is at least half as long. Times that began at one moment and go
    on are compared by that moment."""
    if record.since and quoted.since:
        return abs(record.start - quoted.start) <= SLACK
    if record.since:
        return _padded(quoted.start, quoted.end, record.start)
    if quoted.since:
        return _padded(record.start, record.end, quoted.start)
    if _minus(record.start) <= quoted.start and quoted.end <= _plus(record.end):
        return True
    meets = record.start < quoted.end and quoted.start < record.end
    return meets and 2 * (record.end - record.start) >= quoted.end - quoted.start


def _padded(start: datetime, end: datetime, moment: datetime) -> bool:
    return _minus(start) <= moment <= _plus(end)


def _minus(moment: datetime) -> datetime:
    return moment - SLACK if moment > datetime.min.replace(tzinfo=moment.tzinfo) + SLACK else moment


def _plus(moment: datetime) -> datetime:
    return moment + SLACK if moment < datetime.max.replace(tzinfo=moment.tzinfo) - SLACK else moment


def dated(content: str, cited: Sequence[tuple[Turn, str]]) -> bool:
    """Whether every time that a record's words name agrees with the quotes.

    `cited` are the turns with the words quoted from each. Where those name no time, the rest of
    the turn may, and the day on which it was said.
    """
    anchors = [turn for turn, _ in cited]
    known = _known(cited)
    readings: dict[tuple[int, int], list[Time]] = {}
    for turn in anchors:
        for event in event_times(content, turn.time, turn.offset, turn.language):
            time = Time(event.start, event.end, event.end == turn.time)
            readings.setdefault(event.span, []).append(time)
    said = [day_of(turn) for turn in anchors]
    quoted = " ".join(fold(text) for _, text in cited)
    for (first, last), times in readings.items():
        if fold(content[first:last]) in quoted:
            continue  # the very words, leaning on the same moment
        lead = content[max(0, first - 12) : first]
        allowed = known + said if _MENTIONS.search(lead) else known
        if not any(agree(time, other) for time in times for other in allowed):
            return False
    return _weekdays(content, cited, set(readings), known)


def _weekdays(
    content: str, cited: Sequence[tuple[Turn, str]], spans: set[tuple[int, int]], known: list[Time]
) -> bool:
    """Whether days and months named outside of a date ("on Thursdays") stand in a cited turn."""
    there = {
        fold(word).removesuffix("s") for turn, _ in cited for word in _WORD.findall(turn.content)
    }
    meant = {time.start.strftime("%A").lower() for time in known}
    for match in _WORD.finditer(content):
        word = fold(match.group()).removesuffix("s")
        if word not in TIME_NAMES or len(word) < 4 or not match.group()[0].isupper():
            continue
        inside = any(first <= match.start() < last for first, last in spans)
        if not inside and word not in there and word not in meant:
            return False
    return True


def hull_agrees(hull: tuple[datetime, datetime], cited: Sequence[tuple[Turn, str]]) -> bool:
    """Whether the time at which a thing is said to have happened agrees with the quotes."""
    start, end = hull
    if end < start:
        return False
    known = _known(cited)
    widest = Time(min(time.start for time in known), max(time.end for time in known), False)
    return any(agree(Time(start, end, False), time) for time in [*known, widest])


def start_agrees(start: datetime, cited: Sequence[tuple[Turn, str]]) -> bool:
    """Whether the moment from which a thing is said to hold agrees with the quotes."""
    return any(_minus(time.start) <= start < time.end for time in _known(cited))


def _known(cited: Sequence[tuple[Turn, str]]) -> list[Time]:
    """What the quotes name; where they name none, what their turns name elsewhere, and the days on
    which those were said."""
    named = [time for turn, text in cited for time in times_in(text, turn)]
    if named:
        return named
    return [
        time
        for turn, _ in cited
        for time in (
            *times_in(turn.content, turn),
            *(Time(start, end, end == turn.time) for start, end in turn.event_times),
            day_of(turn),
        )
    ]

"""Relative dates as days, so that no model counts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from cofire.answering.dates import day_named, meant, today_named, with_dates
from cofire.encoding.expressions import event_times
from cofire.types import EventTime

SAID = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I went there yesterday.", "I went there yesterday [7 May]."),
        ("We met last Friday", "We met last Friday [5 May]"),
        ("It was last year.", "It was last year [2022]."),
        ("She moved in last month", "She moved in last month [April]"),
        ("That was two years ago", "That was two years ago [2021]"),
        ("I saw him today.", "I saw him today."),
        ("It began on 3 March 2021.", "It began on 3 March 2021."),
        ("We met on the 3rd of March.", "We met on the 3rd of March."),
        ("It was warm in February.", "It was warm in February."),
        ("Nothing of the kind.", "Nothing of the kind."),
        ("", ""),
    ],
)
def test_words_are_followed_by_what_they_mean(text: str, told: str) -> None:
    assert with_dates(text, event_times(text, SAID), SAID.date()) == told


def test_a_range_of_days_names_no_more_than_differs() -> None:
    def range_of(start: datetime, end: datetime) -> str:
        time = EventTime(text="then", start=start, end=end, span=(0, 4))
        return meant(time, SAID.date())

    day = datetime(2023, 5, 1, tzinfo=UTC)
    assert range_of(day, day + timedelta(days=7)) == "1 to 7 May"
    assert range_of(day - timedelta(days=2), day + timedelta(days=2)) == "29 April to 2 May"
    newyear = datetime(2022, 12, 30, tzinfo=UTC)
    assert range_of(newyear, newyear + timedelta(days=5)) == "30 December 2022 to 3 January"
    assert range_of(datetime(2022, 3, 1, tzinfo=UTC), datetime(2022, 6, 1, tzinfo=UTC)) == (
        "March 2022 to May 2022"
    )
    assert range_of(datetime(2020, 1, 1, tzinfo=UTC), datetime(2022, 1, 1, tzinfo=UTC)) == (
        "2020 to 2021"
    )
    assert range_of(datetime(1900, 1, 1, tzinfo=UTC), SAID) == ""  # wider says less than the words


def test_days_are_those_of_the_speakers_calendar() -> None:
    late = datetime(2023, 5, 8, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    text = "He called yesterday"
    times = event_times(text, late)
    assert with_dates(text, times, late.date(), offset=-300) == "He called yesterday [7 May]"


def test_a_part_of_a_text_has_its_own_characters() -> None:
    text = "It rained. We went out yesterday."
    part = text[11:]
    times = event_times(text, SAID)
    assert with_dates(part, times, SAID.date(), start=11) == "We went out yesterday [7 May]."
    assert with_dates(text[:10], times, SAID.date()) == "It rained."  # the expression is elsewhere


def test_times_at_the_ends_of_the_calendar_and_of_a_text_that_was_edited() -> None:
    first = datetime.min.replace(tzinfo=UTC)
    time = EventTime(text="then", start=first, end=first, span=(0, 4))
    assert meant(time, date(1, 1, 1), -600) == ""
    assert with_dates("now", [time], date(1, 1, 1)) == "now"


def test_names_of_days() -> None:
    assert day_named(date(2023, 5, 8)) == "8 May 2023"
    assert day_named(date(2023, 5, 8), date(2023, 1, 1)) == "8 May"
    assert today_named(SAID) == "Monday, 8 May 2023"

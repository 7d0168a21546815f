"""English time expressions in messages, against a table worked out by hand.

The anchor is Wednesday 2024-03-13 09:00 UTC unless a row says otherwise. A time is a day
("2024-03-08"), or "from/to" with the end excluded.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cofire.encoding.expressions import MOST_EVENTS, asks_when, event_times, query_range

ANCHOR = datetime(2024, 3, 13, 9, tzinfo=UTC)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def bounds(text: str) -> tuple[datetime, datetime]:
    start, slash, end = text.partition("/")
    return moment(start), moment(end) if slash else moment(start) + timedelta(days=1)


def found(text: str, anchor: datetime = ANCHOR) -> list[tuple[str, datetime, datetime]]:
    events = event_times(text, anchor)
    for event in events:
        assert text[slice(*event.span)] == event.text
    return [(event.text, event.start, event.end) for event in events]


ONE = [
    # days beside the anchor
    ("I went there yesterday.", "yesterday", "2024-03-12"),
    ("YESTERDAY was fun", "YESTERDAY", "2024-03-12"),
    ("yesterday's meeting ran late", "yesterday", "2024-03-12"),
    ("I got it today!", "today", "2024-03-13"),
    ("See you tomorrow", "tomorrow", "2024-03-14"),
    ("I bought it the day before yesterday", "the day before yesterday", "2024-03-11"),
    ("We fly the day after tomorrow", "the day after tomorrow", "2024-03-15"),
    ("I saw her yesterday morning", "yesterday morning", "2024-03-12/2024-03-12T12:00"),
    ("we leave tomorrow night", "tomorrow night", "2024-03-14T18:00/2024-03-15T06:00"),
    ("Last night was amazing", "Last night", "2024-03-12T18:00/2024-03-13T06:00"),
    ("tonight we dance", "tonight", "2024-03-13T18:00/2024-03-14T06:00"),
    ("I ran this morning", "this morning", "2024-03-13/2024-03-13T12:00"),
    ("this afternoon I rest", "this afternoon", "2024-03-13T12:00/2024-03-13T18:00"),
    # weekdays
    ("I adopted a parrot last Friday.", "last Friday", "2024-03-08"),
    ("Last Fri I took my kids out", "Last Fri", "2024-03-08"),
    ("I joined a group last Tues.", "last Tues", "2024-03-12"),
    ("last Wednesday I rested", "last Wednesday", "2024-03-06"),
    ("last Sun we sailed", "last Sun", "2024-03-10"),
    ("last Sunday we sailed", "last Sunday", "2024-03-10"),
    ("We are planning to play next Saturday", "next Saturday", "2024-03-16"),
    ("next Wednesday works", "next Wednesday", "2024-03-20"),
    ("this Friday I dance", "this Friday", "2024-03-15"),
    ("this past Friday we danced", "this past Friday", "2024-03-08"),
    ("this coming Monday", "this coming Monday", "2024-03-18"),
    ("On Friday, I got great news", "Friday", "2024-03-08"),
    ("I hosted a class for them on Friday", "Friday", "2024-03-08"),
    ("We meet on Friday", "Friday", "2024-03-15"),
    ("The dentist will see me on Monday", "Monday", "2024-03-18"),
    ("See you Friday!", "Friday", "2024-03-15"),
    ("On Wednesday we went out", "Wednesday", "2024-03-06"),
    ("We danced last Friday night", "last Friday night", "2024-03-08T18:00/2024-03-09T06:00"),
    ("I'll call next week on Tuesday", "next week on Tuesday", "2024-03-19"),
    ("I'll call Friday next week", "Friday next week", "2024-03-22"),
    ("the show is Tuesday morning next week", "Tuesday morning next week",
     "2024-03-19/2024-03-19T12:00"),
    ("a week from Friday I travel", "a week from Friday", "2024-03-22"),
    # weeks and weekends
    ("It happened last week", "last week", "2024-03-04/2024-03-11"),
    ("I applied this week", "this week", "2024-03-11/2024-03-18"),
    ("I travel next week", "next week", "2024-03-18/2024-03-25"),
    ("the week before last I moved", "the week before last", "2024-02-26/2024-03-04"),
    ("the week after next I move", "the week after next", "2024-03-25/2024-04-01"),
    ("we hiked last weekend", "last weekend", "2024-03-09/2024-03-11"),
    ("this past weekend was insane", "this past weekend", "2024-03-09/2024-03-11"),
    ("I rest this weekend", "this weekend", "2024-03-16/2024-03-18"),
    ("next weekend we sail", "next weekend", "2024-03-23/2024-03-25"),
    ("we went camping two weekends ago", "two weekends ago", "2024-03-02/2024-03-04"),
    ("What did you do? We hiked over the weekend", "the weekend", "2024-03-09/2024-03-11"),
    ("Will you hike over the weekend?", "the weekend", "2024-03-16/2024-03-18"),
    # months, quarters, years, decades
    ("I got hurt last month", "last month", "2024-02-01/2024-03-01"),
    ("I lost my job this month", "this month", "2024-03-01/2024-04-01"),
    ("the show is next month", "next month", "2024-04-01/2024-05-01"),
    ("last quarter was weak", "last quarter", "2023-10-01/2024-01-01"),
    ("we won last year", "last year", "2023-01-01/2024-01-01"),
    ("this year I paint", "this year", "2024-01-01/2025-01-01"),
    ("next year's goal", "next year", "2025-01-01/2026-01-01"),
    ("earlier this month I fell", "earlier this month", "2024-03-01/2024-03-14"),
    ("later this year I move", "later this year", "2024-03-13T09:00/2025-01-01"),
    ("She sang last summer in Bogota", "last summer", "2023-06-01/2023-09-01"),
    ("we met last fall", "last fall", "2023-09-01/2023-12-01"),
    ("last winter was cold", "last winter", "2023-12-01/2024-03-01"),
    ("next spring I plant", "next spring", "2025-03-01/2025-06-01"),
    ("a family outing this summer?", "this summer", "2024-06-01/2024-09-01"),
    ("Any plans for the summer?", "summer", "2024-06-01/2024-09-01"),
    ("We met in the summer", "summer", "2023-06-01/2023-09-01"),
    ("the summer of 2022 was hot", "summer of 2022", "2022-06-01/2022-09-01"),
    ("We moved in winter 2021", "winter 2021", "2021-12-01/2022-03-01"),
    ("Last August I told you", "Last August", "2023-08-01/2023-09-01"),
    ("Last March I moved", "Last March", "2023-03-01/2023-04-01"),
    ("next July we marry", "next July", "2024-07-01/2024-08-01"),
    ("June last year was wet", "June last year", "2023-06-01/2023-07-01"),
    ("The festival will be in July", "July", "2024-07-01/2024-08-01"),
    ("The festival was in July", "July", "2023-07-01/2023-08-01"),
    ("The festival was in March", "March", "2024-03-01/2024-04-01"),
    ("fun in July", "July", "2024-07-01/2024-08-01"),
    ("cold in December", "December", "2023-12-01/2024-01-01"),
    ("It was back in April when I fell", "April", "2023-04-01/2023-05-01"),
    ("We will marry in May", "May", "2024-05-01/2024-06-01"),
    ("she gave it to me in 2010  in Paris", "2010", "2010-01-01/2011-01-01"),
    ("women voted in 1893", "1893", "1893-01-01/1894-01-01"),
    ("a book from the 1980s", "1980s", "1980-01-01/1990-01-01"),
    ("born in the 90s", "90s", "1990-01-01/2000-01-01"),
    ("born in the nineties", "nineties", "1990-01-01/2000-01-01"),
    ("in the early 2000s", "early 2000s", "2000-01-01/2004-01-01"),
    ("a book from the 1800s", "1800s", "1800-01-01/1900-01-01"),
    # amounts
    ("I met her two days ago", "two days ago", "2024-03-11"),
    ("I met her 2 days ago", "2 days ago", "2024-03-11"),
    ("I met her two weeks ago", "two weeks ago", "2024-02-26/2024-03-04"),
    ("I met her a fortnight ago", "a fortnight ago", "2024-02-26/2024-03-04"),
    ("three months ago I quit", "three months ago", "2023-12-01/2024-01-01"),
    ("ten years ago", "ten years ago", "2014-01-01/2015-01-01"),
    ("twenty five years ago", "twenty five years ago", "1999-01-01/2000-01-01"),
    ("about a year ago", "a year ago", "2023-01-01/2024-01-01"),
    ("half a year ago", "half a year ago", "2023-09-01/2023-10-01"),
    ("a year and a half ago", "a year and a half ago", "2022-09-01/2022-10-01"),
    ("two or three weeks ago", "two or three weeks ago", "2024-02-19/2024-03-04"),
    ("a couple of days ago", "a couple of days ago", "2024-03-10/2024-03-13"),
    ("couple weeks ago", "couple weeks ago", "2024-02-19/2024-03-11"),
    ("a few days ago", "a few days ago", "2024-03-08/2024-03-12"),
    ("a few weeks ago", "a few weeks ago", "2024-02-05/2024-03-04"),
    ("a few years back", "a few years back", "2019-01-01/2023-01-01"),
    ("several months ago", "several months ago", "2023-08-01/2024-01-01"),
    ("a decade ago", "a decade ago", "2013-01-01/2016-01-01"),
    ("an hour ago", "an hour ago", "2024-03-13T08:00/2024-03-13T09:00"),
    ("The fair is in two weeks.", "in two weeks", "2024-03-25/2024-04-01"),
    ("We leave in 3 days", "in 3 days", "2024-03-16"),
    ("in two weeks' time we fly", "in two weeks' time", "2024-03-25/2024-04-01"),
    ("three days from now", "three days from now", "2024-03-16"),
    ("a week from today", "a week from today", "2024-03-20"),
    ("I read a lot over the past week", "past week", "2024-03-06/2024-03-14"),
    ("played in the past two weeks", "past two weeks", "2024-02-28/2024-03-14"),
    ("the last 3 days were hard", "last 3 days", "2024-03-10/2024-03-14"),
    ("much happened in the last month", "last month", "2024-02-13/2024-03-14"),
    ("meals for the next 7 days", "next 7 days", "2024-03-13T09:00/2024-03-21"),
    # dates
    ("the race on 8 May, 2023", "8 May, 2023", "2023-05-08"),
    ("the race on the 8th of May 2023", "8th of May 2023", "2023-05-08"),
    ("May 8, 2023 was sunny", "May 8, 2023", "2023-05-08"),
    ("Jan. 5, 2021", "Jan. 5, 2021", "2021-01-05"),
    ("5 Jan 2021", "5 Jan 2021", "2021-01-05"),
    ("24June, 2022.", "24June, 2022", "2022-06-24"),
    ("on December 1,2023 we", "December 1,2023", "2023-12-01"),
    ("Friday, 8 May 2023", "Friday, 8 May 2023", "2023-05-08"),
    ("released 2023-11-17", "2023-11-17", "2023-11-17"),
    ("released 2023/11/17", "2023/11/17", "2023-11-17"),
    ("released 17.11.2023", "17.11.2023", "2023-11-17"),
    ("released 11/17/2023", "11/17/2023", "2023-11-17"),
    ("at 2023-05-30T09:00:00Z", "2023-05-30", "2023-05-30"),
    ("on May 8th we will marry", "May 8th", "2024-05-08"),
    ("on May 8th we married", "May 8th", "2023-05-08"),
    ("I bought it on February 10th", "February 10th", "2024-02-10"),
    ("I met them on the 15th after my trip", "the 15th", "2024-02-15"),
    ("We meet on the 15th", "the 15th", "2024-03-15"),
    ("in March 2023 we wed", "March 2023", "2023-03-01/2023-04-01"),
    ("in may 2023", "may 2023", "2023-05-01/2023-06-01"),
    ("Sept 2022", "Sept 2022", "2022-09-01/2022-10-01"),
    ("Q3 2023 results", "Q3 2023", "2023-07-01/2023-10-01"),
    ("29 February 2024", "29 February 2024", "2024-02-29"),
    # made of others
    ("painting since 2016", "since 2016", "2016-01-01/2024-03-13T09:00"),
    ("sick since Monday", "since Monday", "2024-03-11/2024-03-13T09:00"),
    ("open since last year", "since last year", "2023-01-01/2024-03-13T09:00"),
    ("My lease runs until 31 December 2024", "until 31 December 2024",
     "2024-03-13T09:00/2025-01-01"),
    ("I am away until Friday", "until Friday", "2024-03-13T09:00/2024-03-16"),
    ("we stayed until 2 May 2023", "until 2 May 2023", "2023-05-02"),
    ("due by Friday", "Friday", "2024-03-15"),
    ("finish before next Friday", "before next Friday", "2024-03-13T09:00/2024-03-15"),
    ("from August 11 to August 15, 2023", "from August 11 to August 15, 2023",
     "2023-08-11/2023-08-16"),
    ("between 5 and 8 May 2023", "between 5 and 8 May 2023", "2023-05-05/2023-05-09"),
    ("June 5 - July 10, 2023", "June 5 - July 10, 2023", "2023-06-05/2023-07-11"),
    ("We leave in about two weeks", "in about two weeks", "2024-03-25/2024-04-01"),
    ("8 May to 12 May 2023", "8 May to 12 May 2023", "2023-05-08/2023-05-13"),
    ("August 11-15, 2023", "August 11-15, 2023", "2023-08-11/2023-08-16"),
    ("between 2019 and 2021", "between 2019 and 2021", "2019-01-01/2022-01-01"),
    ("from 2019-2021 I taught", "2019-2021", "2019-01-01/2022-01-01"),
    ("open from Thursday to Friday", "from Thursday to Friday", "2024-03-14/2024-03-16"),
    ("the week before 9 June 2023", "the week before 9 June 2023", "2023-06-02/2023-06-09"),
    ("The Friday before 15 July 2023", "The Friday before 15 July 2023", "2023-07-14"),
    ("the Monday after 15 July 2023", "the Monday after 15 July 2023", "2023-07-17"),
    ("The weekend before 17 July 2023", "The weekend before 17 July 2023",
     "2023-07-15/2023-07-17"),
    ("two weekends before 17 July 2023", "two weekends before 17 July 2023",
     "2023-07-08/2023-07-10"),
    ("the day after 31 December 2023", "the day after 31 December 2023", "2024-01-01"),
    ("two weeks before August 11, 2023", "two weeks before August 11, 2023",
     "2023-07-24/2023-07-31"),
    ("The week of 23 August 2023", "week of 23 August 2023", "2023-08-21/2023-08-28"),
    ("the weekend of 24 June, 2022", "weekend of 24 June, 2022", "2022-06-25/2022-06-27"),
    ("first week of April, 2023", "first week of April, 2023", "2023-04-01/2023-04-08"),
    ("last week of August 2023", "last week of August 2023", "2023-08-25/2023-09-01"),
    ("first weekend of August 2023", "first weekend of August 2023", "2023-08-05/2023-08-07"),
    ("last weekend of August 2023", "last weekend of August 2023", "2023-08-26/2023-08-28"),
    ("the first half of September 2022", "the first half of September 2022",
     "2022-09-01/2022-09-16"),
    ("second half of 2022", "second half of 2022", "2022-07-02/2023-01-01"),
    ("in the beginning of January 2023", "beginning of January 2023", "2023-01-01/2023-01-11"),
    ("early August, 2023", "early August, 2023", "2023-08-01/2023-08-11"),
    ("a fix by mid-July", "mid-July", "2024-07-11/2024-07-22"),
    ("wrap up by the end of April", "the end of April", "2024-04-21/2024-05-01"),
    ("done at the end of the month", "end of the month", "2024-03-22/2024-04-01"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "when"), ONE)
def test_one_expression(text: str, words: str, when: str) -> None:
    assert found(text) == [(words, *bounds(when))]


@pytest.mark.parametrize(
    "text",
    [
        "may I march forward for a second?", "it may be", "May I ask a question?",
        "she may have been right", "the may report", "this may be nice", "I may 5 times",
        "the sun sat on the mat", "She sat down", "march in step", "Mar is short",
        "I've known them for three years", "10 years", "we played for 2 weeks",
        "it took two weeks", "I finished it in two weeks", "we had been there in 3 days",
        "a four day week", "last sun shone", "every Friday", "each Monday", "on Sundays",
        "Fridays are fun",
        "my Saturday morning sessions", "Saturday mornings", "Black Friday deals",
        "Monday: swim",
        "I work Monday through Friday", "Today's world is loud",
        "like there's no tomorrow", "yesterdays",
        "Ubuntu 20.04", "v2023.1", "call 555-2023", "it costs $2024", "in 2000 meters",
        "a chunk size of 2000 tokens", "after 2000 people left", "#2023", "/2023/05/30/x",
        "at 10", "at 10:30", "3pm", "noon", "midnight", "1,200 people", "room 2023",
        "on the 2nd floor", "on the 5th day", "31 February 2020", "2020-13-45", "0000-00-00",
        "04/05/2023", "30 Feb", "in the 20s", "in her nineties", "spring water", "the fall",
        "next time", "last one", "this one", "next to me", "last but not least", "the other day",
        "in 5 minutes", "a second ago", "a long time ago", "not so long ago", "since we spoke",
        "before the accident", "between you and me", "from here to there", "by the way",
        "until then", "two days later", "the end of the day", "week by week", "april", "june",
        "I met June", "April said so", "user@2023.com", "", " ", "\x00", "ago", "in", "since",
        "99999999999", "12345678901234567890", "second", "wed", "mon", "q", "year", "the the",
    ],
)  # fmt: skip
def test_no_expression(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "anchor", "when"),
    [
        # year ends and weeks over them
        ("yesterday", "2024-01-01T00:00", "2023-12-31"),
        ("tomorrow", "2023-12-31T23:59", "2024-01-01"),
        ("last week", "2024-01-03T12:00", "2023-12-25/2024-01-01"),
        ("this week", "2025-01-01T12:00", "2024-12-30/2025-01-06"),
        ("next week", "2023-12-28T12:00", "2024-01-01/2024-01-08"),
        ("last month", "2024-01-15T12:00", "2023-12-01/2024-01-01"),
        ("next month", "2023-12-15T12:00", "2024-01-01/2024-02-01"),
        ("last quarter", "2024-02-15T12:00", "2023-10-01/2024-01-01"),
        ("two months ago", "2024-01-31T12:00", "2023-11-01/2023-12-01"),
        ("last Friday", "2024-01-02T12:00", "2023-12-29"),
        ("we met in December", "2024-01-02T12:00", "2023-12-01/2024-01-01"),
        ("we will meet in January", "2023-12-30T12:00", "2024-01-01/2024-02-01"),
        ("last winter", "2024-01-10T12:00", "2022-12-01/2023-03-01"),
        ("this winter", "2024-01-10T12:00", "2023-12-01/2024-03-01"),
        ("last summer", "2023-08-11T12:00", "2022-06-01/2022-09-01"),
        ("last summer", "2023-12-26T12:00", "2023-06-01/2023-09-01"),
        # leap days
        ("yesterday", "2024-03-01T12:00", "2024-02-29"),
        ("yesterday", "2023-03-01T12:00", "2023-02-28"),
        ("a year ago", "2024-02-29T12:00", "2023-01-01/2024-01-01"),
        ("last month", "2024-03-31T12:00", "2024-02-01/2024-03-01"),
        ("the past month", "2024-03-31T12:00", "2024-02-29/2024-04-01"),
        ("we met on February 29th", "2026-06-01T12:00", "2024-02-29"),
        ("we will meet on February 29th", "2026-06-01T12:00", "2028-02-29"),
        # weekends from within
        ("last weekend", "2024-03-10T18:00", "2024-03-02/2024-03-04"),
        ("last weekend", "2024-03-11T08:00", "2024-03-09/2024-03-11"),
        ("this weekend", "2024-03-10T18:00", "2024-03-09/2024-03-11"),
        ("two weekends ago", "2023-07-17T14:31", "2023-07-08/2023-07-10"),
        ("last Friday", "2023-07-15T13:51", "2023-07-14"),
        # the first and the last years there are
        ("tomorrow", "0001-01-01T12:00", "0001-01-02"),
        ("yesterday", "9999-12-31T12:00", "9999-12-30"),
    ],
)
def test_edges_of_the_calendar(text: str, anchor: str, when: str) -> None:
    events = found(text, moment(anchor))
    assert [event[1:] for event in events] == [bounds(when)]


@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("yesterday", "0001-01-01T12:00"),
        ("ten years ago", "0005-01-01T12:00"),
        ("tomorrow", "9999-12-31T12:00"),
        ("in 500 years", "9900-01-01T12:00"),
        ("next week", "9999-12-30T12:00"),
    ],
)
def test_beyond_the_calendar_there_is_no_time(text: str, anchor: str) -> None:
    assert found(text, moment(anchor)) == []


@pytest.mark.parametrize(
    ("minutes", "anchor", "when"),
    [
        (0, "2024-03-13T23:30", "2024-03-12/2024-03-13"),
        (780, "2024-03-13T23:30", "2024-03-12T11:00/2024-03-13T11:00"),
        (780, "2024-03-13T10:30", "2024-03-11T11:00/2024-03-12T11:00"),
        (-480, "2024-03-13T03:00", "2024-03-11T08:00/2024-03-12T08:00"),
        (345, "2024-03-13T18:30", "2024-03-12T18:15/2024-03-13T18:15"),
        (-210, "2024-01-01T02:00", "2023-12-30T03:30/2023-12-31T03:30"),
    ],
)
def test_days_are_those_of_the_speaker(minutes: int, anchor: str, when: str) -> None:
    (event,) = event_times("yesterday", moment(anchor), offset=minutes)
    assert (event.start, event.end) == bounds(when)
    zone = timezone(timedelta(minutes=minutes))
    assert event_times("yesterday", moment(anchor).astimezone(zone)) == (event,)


def test_weekdays_are_those_of_the_speaker() -> None:
    """Saturday evening in UTC is Sunday in Auckland, where last Saturday was yesterday."""
    (event,) = event_times("last Saturday", moment("2024-03-16T20:00"), offset=780)
    assert (event.start, event.end) == bounds("2024-03-15T11:00/2024-03-16T11:00")


def test_a_day_of_clock_change_has_24_hours_at_the_messages_offset() -> None:
    """2024-03-31 had 23 hours in Berlin, but a message carries an offset, not a zone."""
    (event,) = event_times("yesterday", moment("2024-04-01T08:00"), offset=120)
    assert (event.start, event.end) == bounds("2024-03-30T22:00/2024-03-31T22:00")


def test_an_explicit_offset_beats_the_anchors() -> None:
    anchor = datetime(2024, 3, 13, 1, tzinfo=timezone(timedelta(hours=2)))
    (event,) = event_times("today", anchor, offset=0)
    assert (event.start, event.end) == bounds("2024-03-12")


def test_a_naive_anchor_is_utc() -> None:
    naive = ANCHOR.replace(tzinfo=None)
    assert event_times("today", naive) == event_times("today", ANCHOR)


def test_several_expressions_come_in_the_order_of_the_text() -> None:
    text = "Yesterday I biked, last week I hiked, and in two weeks the fair opens."
    assert [words for words, *_ in found(text)] == ["Yesterday", "last week", "in two weeks"]


def test_curly_quotes_accents_and_wide_forms_keep_their_places() -> None:
    assert [event[0] for event in found("Last night’s show — café — ｙｅｓｔｅｒｄａｙ")] == [
        "Last night",
        "ｙｅｓｔｅｒｄａｙ",
    ]
    assert [event[0] for event in found("cafe\u0301 yesterday, İ today")] == ["yesterday", "today"]


@pytest.mark.parametrize(
    "unit",
    ["since the ", "the ", "monday the ", "end of ", "first week of ", "early ", "last of last ",
     "between 1 ", "from from ", "may ", "a week and a half ", "week before ", "day before ",
     "1", "1 ", "20-", "in 2010 and ", " ", "上周一百", "三个", "三天前", "в ", "vor zwei ",
     "il y a ", "e\u0301", "İ", "today is monday, ", "in two ", "8 may to "],
)  # fmt: skip
def test_no_text_takes_long(unit: str) -> None:
    """Linear in the text: 100 kB of the worst repetitions stay far below this bound."""
    text = unit * (100_000 // len(unit)) + " yesterday вчера heute 昨天"
    started = time.process_time()
    assert len(event_times(text, ANCHOR)) <= MOST_EVENTS
    query_range(text, ANCHOR)
    asks_when(text)
    assert time.process_time() - started < 10


def test_a_text_yields_a_bounded_number() -> None:
    assert len(event_times("yesterday and " * 1000, ANCHOR)) == MOST_EVENTS

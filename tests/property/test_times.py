"""What holds for every text and every moment: no error, sound ranges, faithful places."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.encoding.expressions import MOST_EVENTS, asks_when, event_times, query_range
from cofire.encoding.timestamps import format_time, parse_time
from cofire.errors import InputError
from cofire.types import from_micros, to_micros

WORDS = (
    "yesterday today tonight tomorrow the day before after last this next past coming week weeks "
    "weekend month months year years ago in on since until by between from to and of May march "
    "July Jan. june Friday sun Sat Mon summer fall Q3 2023 1999 20.04 8 31 32 8th 15th 90s 1980s "
    "early mid late end beginning first second half a an couple few two ten quarter decade hour "
    "2024-02-30 2024-02-29 11-15 2019-2021 morning night , . ? : - \n 昨天 上周五 三天前 "
    "2024年 3月 8日 个月 半 前 后 去年 先週 金曜日 어제 지난 주 3일 전 gestern letzte Woche vor 3 "
    "Tagen hier il y a jours semana pasada hace días ieri fa ontem há gisteren geleden вчера "
    "неделю назад İ é e\u0301 ｙ ’s"
).split(" ")

texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=10).map("".join),
)
offsets = st.one_of(st.none(), st.integers(-840, 840))
moments = st.datetimes(timezones=st.just(UTC))
ordinary = st.datetimes(
    datetime(1950, 1, 1),  # noqa: DTZ001 - bounds of the strategy, which adds the zone
    datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
languages = st.sampled_from([None, "en", "de", "fr", "es", "zh", "xx", ""])


@settings(max_examples=400, deadline=None)
@given(text=texts, anchor=moments, offset=offsets, language=languages)
def test_event_times_are_sound_for_any_text(
    text: str, anchor: datetime, offset: int | None, language: str | None
) -> None:
    events = event_times(text, anchor, offset, language)
    assert len(events) <= MOST_EVENTS
    end = 0
    for event in events:
        assert event.start < event.end
        assert event.start.tzinfo is UTC
        assert event.end.tzinfo is UTC
        first, last = event.span
        assert end <= first < last <= len(text)
        assert text[first:last] == event.text
        end = last


@settings(max_examples=300, deadline=None)
@given(question=texts, now=moments, offset=offsets, language=languages)
def test_a_question_has_a_sound_range_or_none(
    question: str, now: datetime, offset: int | None, language: str | None
) -> None:
    found = query_range(question, now, language, offset=offset)
    assert found is None or found[0] < found[1]
    assert asks_when(question) in {True, False}


@given(text=texts, anchor=ordinary)
def test_the_same_words_at_the_same_time_mean_the_same(text: str, anchor: datetime) -> None:
    assert event_times(text, anchor) == event_times(text, anchor)
    zone = timezone(timedelta(hours=5, minutes=45))
    assert event_times(text, anchor.astimezone(zone)) == event_times(text, anchor, 345)


@pytest.mark.parametrize(
    "words",
    ["yesterday", "the day after tomorrow", "last night", "last Friday", "next week",
     "two weekends ago", "in two weeks", "I went on Monday", "昨天", "上周五", "vor 3 Tagen"],
)  # fmt: skip
@given(anchor=ordinary, weeks=st.integers(-500, 500), offset=st.integers(-840, 840))
def test_ranges_move_with_the_anchor(words: str, anchor: datetime, weeks: int, offset: int) -> None:
    shift = timedelta(weeks=weeks)
    (here,) = event_times(words, anchor, offset)
    (there,) = event_times(words, anchor + shift, offset)
    assert (there.start, there.end) == (here.start + shift, here.end + shift)


@given(anchor=ordinary, offset=st.integers(-840, 840))
def test_today_holds_the_moment_and_neighbours_touch_it(anchor: datetime, offset: int) -> None:
    days = [event_times(word, anchor, offset)[0] for word in ("yesterday", "today", "tomorrow")]
    assert days[1].start <= anchor < days[1].end
    assert days[0].end == days[1].start
    assert days[1].end == days[2].start
    weeks = [event_times(f"{word} week", anchor, offset)[0] for word in ("last", "this", "next")]
    assert weeks[1].start <= anchor < weeks[1].end
    assert weeks[0].end == weeks[1].start
    assert weeks[1].end == weeks[2].start
    assert (weeks[1].start + timedelta(minutes=offset)).weekday() == 0


@given(date=st.dates(min_value=datetime(1900, 1, 1, tzinfo=UTC).date()), anchor=ordinary)
def test_an_absolute_date_means_itself_in_every_form(date: datetime, anchor: datetime) -> None:
    if date.year > 2099:
        date = date.replace(year=2000 + date.year % 100, day=min(date.day, 28))
    for form in (
        date.isoformat(),
        date.strftime("%d %B, ") + str(date.year),
        date.strftime("%B %d, ") + str(date.year),
        f"{date.year}年{date.month}月{date.day}日",
        f"{date.day}.{date.month}.{date.year}",
    ):
        (event,) = event_times(f"It was {form} then", anchor)
        assert (event.start.date(), event.end - event.start) == (date, timedelta(days=1))


@given(moment=moments, minutes=st.integers(-840, 840))
def test_times_survive_their_text(moment: datetime, minutes: int) -> None:
    assert parse_time(format_time(moment)) == (moment, 0)
    try:
        local = moment.astimezone(timezone(timedelta(minutes=minutes)))
    except OverflowError:
        return
    assert parse_time(local.isoformat()) == (moment, minutes)
    assert parse_time(local) == (moment, minutes)


@given(micros=st.integers(100_000_000_000_000, 99_999_999_999_999_999))
def test_every_unit_of_epoch_time_is_told_by_its_size(micros: int) -> None:
    moment = from_micros(micros)
    seconds, rest = divmod(micros, 1_000_000)
    assert parse_time(micros)[0] == parse_time(micros * 1000)[0] == moment
    assert parse_time(f"{seconds}.{rest:06d}")[0] == moment
    assert to_micros(parse_time(micros // 1000)[0]) == micros // 1000 * 1000
    assert to_micros(parse_time(seconds)[0]) == seconds * 1_000_000


@settings(max_examples=300)
@given(
    value=st.one_of(
        st.text(max_size=40),
        st.integers(),
        st.floats(),
        st.text("0123456789-:/. TZ+apm", max_size=25),
    )
)
def test_any_value_is_a_time_or_a_clear_refusal(value: str | int | float) -> None:
    try:
        moment, offset = parse_time(value)
    except InputError as refusal:
        assert str(refusal)
    else:
        assert moment.tzinfo is UTC
        assert offset is None or -1440 < offset < 1440

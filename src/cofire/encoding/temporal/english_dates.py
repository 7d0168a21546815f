"""English dates, named or numbered: 8 May 2023, May 8th, in July, on Friday, summer 2022."""

from __future__ import annotations

import re

from cofire.encoding.temporal.english_relative import Found, directed, tense_of, with_daypart
from cofire.encoding.temporal.english_words import (
    ALL_MONTHS,
    ALL_WEEKDAYS,
    DATE_PREPOSITIONS,
    DECADE_WORDS,
    DOUBTFUL_MONTHS,
    FOLLOWS_A_DATE,
    MEASURES,
    MONTHS,
    SEASONS,
    WEEKDAYS,
)
from cofire.encoding.temporal.spans import (
    DAY,
    DAYPARTS,
    Clock,
    date_span,
    day_of,
    decade_span,
    month_span,
    months_from,
    named_date,
    named_day,
    named_month,
    named_season,
    quarter_span,
    season_span,
    weekday_after,
    weekday_before,
    year_span,
)
from cofire.encoding.temporal.words import Words

_ISO_DATE = re.compile(r"((?:1[5-9]|2[01])[0-9]{2})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_ISO_MONTH = re.compile(r"((?:19|20)[0-9]{2})[-/]([01][0-9])")
_LOCAL_DATE = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2((?:19|20)[0-9]{2})")
_YEAR_RANGE = re.compile(r"((?:19|20)[0-9]{2})-((?:19|20)[0-9]{2})")
_YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}")
_DAY = re.compile(r"([0-3]?[0-9])(st|nd|rd|th)?")
_DAY_RANGE = re.compile(r"([0-3]?[0-9])-([0-3]?[0-9])")
_DECADE = re.compile(r"((?:1[5-9]|20)?[0-9])0s")
_PLURAL_PARTS = frozenset({"mornings", "afternoons", "evenings", "nights"})
_NO_WEEKDAY = frozenset(
    "black good ash easter palm super cyber every each bloody my your his her our their".split()
)
"""Before a weekday: a feast, or a habit rather than a day."""
_YEAR_WORDS = DATE_PREPOSITIONS - {"on", "for", "to", "of", "and"} | {"year", "circa", "back"}


def atom(words: Words, index: int, clock: Clock, *, led: bool = False) -> Found | None:  # noqa: PLR0911 - one return per form
    """The date that starts at word `index`. `led`: a preposition of time stands before it."""
    word = words.get(index)
    if not word:
        return None
    if word == "the":
        if words.next(index) in {"", "the"}:
            return None
        found = _day_of_month(words, index + 1, clock) or _the_season(words, index + 1, clock)
        found = found or atom(words, index + 1, clock, led=led)
        return found and found._replace(first=index)
    if word[0].isdigit():
        return numeric(words, index, clock, led=led) if words.free(index) else None
    if word in ALL_MONTHS and (found := from_month(words, index, clock, led=led)):
        return found
    if word in ALL_WEEKDAYS:
        return from_weekday(words, index, clock, led=led)
    if word in SEASONS:
        return _season_with_year(words, index)
    if word == "year" and _YEAR.fullmatch(words.next(index)):
        return Found(index, index + 1, year_span(int(words.words[index + 1])))
    return None


def numeric(words: Words, index: int, clock: Clock, *, led: bool) -> Found | None:  # noqa: PLR0911 - one return per form
    """A date that begins with a number."""
    word = words.words[index]
    if len(word) <= 2 and words.next(index) not in ALL_MONTHS and words.next(index) != "of":
        return None
    if match := _ISO_DATE.fullmatch(word):
        return _dated(index, index, int(match[1]), int(match[3]), int(match[4]))
    if match := _LOCAL_DATE.fullmatch(word):
        first, second = int(match[1]), int(match[3])
        if match[2] == "." or clock.day_first or first > 12 or first == second:
            return _dated(index, index, int(match[4]), second, first)
        return _dated(index, index, int(match[4]), first, second) if second > 12 else None
    if led and (match := _ISO_MONTH.fullmatch(word)) and 1 <= int(match[2]) <= 12:
        return Found(index, index, month_span(int(match[1]), int(match[2])))
    if words.joined(index):
        place = index + (2 if words.words[index + 1] == "of" else 1)
        if (match := _DAY.fullmatch(word)) and words.get(place) in ALL_MONTHS:
            sure = led or match[2] is not None or place > index + 1
            return _day_then_month(words, index, place, clock, days=(int(match[1]),), sure=sure)
        if (match := _DAY_RANGE.fullmatch(word)) and words.get(place) in ALL_MONTHS:
            days = (int(match[1]), int(match[2]))
            return _day_then_month(words, index, place, clock, days=days, sure=True)
    if led and (found := year_range(words, index)) is not None:
        return found
    if _YEAR.fullmatch(word):
        return _bare_year(words, index, led=led)
    return _decade(words, index)


def from_month(words: Words, index: int, clock: Clock, *, led: bool) -> Found | None:  # noqa: PLR0911 - one return per form
    """A date that begins with the name of a month."""
    word = words.words[index]
    if _after_impossible_day(words, index):
        return None
    month = ALL_MONTHS[word]
    following = words.next(index) or _after_full_stop(words, index)
    if match := _DAY_RANGE.fullmatch(following):
        days: tuple[int, ...] = (int(match[1]), int(match[2]))
        return _month_then_day(words, index, clock, month, days)
    if (match := _DAY.fullmatch(following)) and words.free(index + 1):
        sure = match[2] is not None or _YEAR.fullmatch(words.next(index + 1)) is not None
        if sure or _counts_nothing(words, index, led=led):
            return _month_then_day(words, index, clock, month, (int(match[1]),))
    if following == "the" and (match := _DAY.fullmatch(words.next(index + 1))) and match[2]:
        found = _month_then_day(words, index + 1, clock, month, (int(match[1]),))
        return found and found._replace(first=index)
    place = index + 2 if following in {"of", "in"} else index + 1
    if words.joined(place - 1) and _YEAR.fullmatch(words.get(place)) and words.free(place):
        year = int(words.words[place])
        return None if _measured(words, place) else Found(index, place, month_span(year, month))
    if words.joined(place - 1) and (year_found := directed_year(words, place, clock)) is not None:
        span = month_span(year_found.span.start.year, month)
        return Found(index, year_found.last, span)
    if word not in MONTHS or not _is_month(words, index, led=led):
        return None
    return Found(index, index, named_month(month, clock, tense_of(words, index, clock)))


def _after_impossible_day(words: Words, index: int) -> bool:
    """ "31 February 2020": a date that cannot be, and so not February 2020 either."""
    if not _DAY.fullmatch(words.before(index)) or not words.next(index)[:1].isdigit():
        return False
    return words.text[words.ends[index - 1] : words.starts[index]].isspace()


def directed_year(words: Words, index: int, clock: Clock) -> Found | None:
    """ "last year", "this year", "next year" after a month or a season."""
    if words.get(index) in {"last", "this", "next"} and words.next(index) == "year":
        return directed(words, index, clock)
    return None


def _is_month(words: Words, index: int, *, led: bool) -> bool:
    """Whether a month's name alone is one: after a preposition of time, and not "I may"."""
    if not led and words.before(index) not in {"in", "during", "early", "late", "mid"}:
        return False
    if words.words[index] not in DOUBTFUL_MONTHS or words.capital(index):
        return True
    return words.before(index) in {"in", "since", "until", "during", "early", "late", "mid",
                                   "between"}  # fmt: skip


def _counts_nothing(words: Words, index: int, *, led: bool) -> bool:
    """Whether the plain number after a month is its day: "on May 8", not "in May 8 people"."""
    if words.before(index) == "in" or _measured(words, index + 1):
        return False
    if words.words[index] not in DOUBTFUL_MONTHS:
        return True
    return words.capital(index) or words.before(index) == "on"


def _after_full_stop(words: Words, index: int) -> str:
    """The word after an abbreviated month with a full stop: "Jan. 5"."""
    if words.words[index] in MONTHS or index + 1 >= words.size:
        return ""
    gap = words.text[words.ends[index] : words.starts[index + 1]]
    return words.words[index + 1] if gap.strip(" ") == "." else ""


def _year_after(words: Words, index: int) -> int | None:
    """The index of a year that follows word `index`, as in "8 May, 2023" or "8 May of 2023"."""
    place = index + 2 if words.next(index) in {"of", "in"} else index + 1
    follows = words.joined(place - 1) and _YEAR.fullmatch(words.get(place)) is not None
    return place if follows and not _measured(words, place) else None


def _day_then_month(
    words: Words, index: int, place: int, clock: Clock, *, days: tuple[int, ...], sure: bool
) -> Found | None:
    if not words.joined(place - 1):
        return None
    doubtful = words.words[place] in DOUBTFUL_MONTHS and not sure and not words.capital(place)
    if doubtful and _year_after(words, place) is None:
        return None
    return _with_year(words, index, place, clock, ALL_MONTHS[words.words[place]], days=days)


def _month_then_day(
    words: Words, index: int, clock: Clock, month: int, days: tuple[int, ...]
) -> Found | None:
    return _with_year(words, index, index + 1, clock, month, days=days)


def _with_year(
    words: Words, first: int, last: int, clock: Clock, month: int, *, days: tuple[int, ...]
) -> Found | None:
    year = _year_after(words, last)
    if year is not None:
        number = int(words.words[year])
        start, end = date_span(number, month, days[0]), date_span(number, month, days[-1])
        last = year
    else:
        tense = tense_of(words, first, clock)
        spans = [named_date(month, day, clock, tense) for day in days]
        if spans[0] is None or spans[-1] is None:
            return None
        start, end = spans[0], spans[-1]
        if following := directed_year(words, last + 1, clock) if words.joined(last) else None:
            number, last = following.span.start.year, following.last
            start, end = date_span(number, month, days[0]), date_span(number, month, days[-1])
    if start.start > end.start:
        return None
    found = Found(first, last, start._replace(end=end.end))
    return with_daypart(words, found) if len(days) == 1 else found


def _dated(first: int, last: int, year: int, month: int, day: int) -> Found:
    return Found(first, last, date_span(year, month, day))


def _measured(words: Words, index: int) -> bool:
    """Whether a number counts something."""
    following = words.next(index)
    return following in MEASURES or (
        len(following) > 3
        and following.endswith("s")
        and not following.endswith(("ss", "us"))
        and following not in {"this", "was", "does", "has", "always", "perhaps"}
    )


def _bare_year(words: Words, index: int, *, led: bool) -> Found | None:
    year = int(words.words[index])
    if not led and words.before(index) not in _YEAR_WORDS:
        return None
    if _measured(words, index) or not 1500 <= year <= 2099:
        return None
    if year < 1900 and words.before(index) not in {"in", "since", "year", "circa"}:
        return None
    return Found(index, index, year_span(year))


def _decade(words: Words, index: int) -> Found | None:
    word = words.words[index]
    match = _DECADE.fullmatch(word)
    if match is None or not words.before(index):
        return None
    number = int(match[1]) * 10
    if number < 100:
        if number < 30 or words.before(index) not in {"the", "early", "mid", "late"}:
            return None
        number += 1900
    return _part_of_decade(words, index, number)


def _part_of_decade(words: Words, index: int, year: int) -> Found:
    part = {"early": (0, 4), "mid": (4, 3), "late": (7, 3)}.get(words.before(index))
    if part is None:
        if year % 100 == 0 and year < 2000:  # "the 1800s" are a century, "the 2000s" a decade
            return Found(index, index, months_from(year, 1, 1200, "decade", absolute=True))
        return Found(index, index, decade_span(year))
    span = months_from(year + part[0], 1, part[1] * 12, "decade", absolute=True)
    return Found(index - 1, index, span)


def decade_word(words: Words, index: int, clock: Clock) -> Found | None:
    """ "the nineties"; not "in her nineties"."""
    del clock
    if words.before(index) not in {"the", "early", "mid", "late"}:
        return None
    return _part_of_decade(words, index, DECADE_WORDS[words.words[index]])


def from_weekday(  # noqa: PLR0911, PLR0912 - one branch and return per form
    words: Words, index: int, clock: Clock, *, led: bool = False
) -> Found | None:
    """A weekday, alone (the tense decides which) or before its date ("Friday, 8 May 2023")."""
    word = words.words[index]
    before = words.before(index)
    if word not in WEEKDAYS and not ((led or before == "on") and words.capital(index)):
        return None
    if before in _NO_WEEKDAY or words.next(index) in _PLURAL_PARTS or words.labels(index):
        return None
    if _spans_weekdays(words, index) and not led:
        return None
    if before in {"is", "s"} and words.before(index - 1) == "today":  # "today is Monday"
        return None
    if words.joined(index):
        following = index + (2 if words.next(index) == "the" else 1)
        dated = None
        if words.get(following) not in ALL_WEEKDAYS:
            dated = atom(words, following, clock, led=True)
        if dated is not None and dated.span.unit == "day" and words.words[following][0].isdigit():
            return dated._replace(first=index)
        if dated is not None and dated.span.unit == "day" and words.words[following] in ALL_MONTHS:
            return dated._replace(first=index)
        if words.words[following - 1] == "the":
            dated = _day_of_month(words, following, clock)
            if dated is not None:
                return dated._replace(first=index)
    weekday = ALL_WEEKDAYS[word]
    place = index + 1 if words.next(index) in DAYPARTS else index
    if words.next(place) in {"last", "this", "next"} and words.next(place + 1) == "week":
        week = directed(words, place + 1, clock)
        if week is not None and place == index:
            return week
        if week is not None:
            day = day_of(week.span.start + DAY * weekday)
            return with_daypart(words, Found(index, index, day))._replace(last=week.last)
    tense = tense_of(words, index, clock, "future")
    pick = weekday_before if tense == "past" else weekday_after
    return with_daypart(words, Found(index, index, pick(clock.today, weekday)))


def _spans_weekdays(words: Words, index: int) -> bool:
    """ "Monday to Friday", a habit; "from Monday to Friday" has been read before."""
    links = {"to", "through", "thru"}
    after = words.next(index) in links and words.next(index + 1) in ALL_WEEKDAYS
    return after or (words.before(index) in links and words.before(index - 1) in ALL_WEEKDAYS)


def _day_of_month(words: Words, index: int, clock: Clock) -> Found | None:
    """ "the 15th" after a preposition; not "the 2nd floor" or "the 5th day"."""
    match = _DAY.fullmatch(words.get(index))
    if match is None or match[2] is None or not 1 <= int(match[1]) <= 31:
        return None
    following = words.next(index)
    if following and following not in FOLLOWS_A_DATE:
        return None
    if following == "of":
        return None
    span = named_day(int(match[1]), clock, tense_of(words, index, clock))
    return None if span is None else with_daypart(words, Found(index, index, span))


def the_day_of_month(words: Words, index: int, clock: Clock) -> Found | None:
    """ "on the 15th"; `index` is at the number."""
    if words.before(index) != "the" or words.before(index - 1) not in {"on", "by", "from"}:
        return None
    found = _day_of_month(words, index, clock)
    return found and found._replace(first=index - 1)


def _season_with_year(words: Words, index: int) -> Found | None:
    place = index + 2 if words.next(index) in {"of", "in"} else index + 1
    if not words.joined(place - 1) or not _YEAR.fullmatch(words.get(place)):
        return None
    span = season_span(int(words.words[place]), SEASONS[words.words[index]])
    return Found(index, place, span)


def season(words: Words, index: int, clock: Clock) -> Found | None:
    """ "summer 2022", "the summer of 2022", "in the summer", "summer last year"."""
    found = _season_with_year(words, index)
    if found is not None:
        return found
    if words.joined(index) and (year := directed_year(words, index + 1, clock)) is not None:
        span = season_span(year.span.start.year, SEASONS[words.words[index]])
        return Found(index, year.last, span)
    if words.before(index) == "the" and words.before(index - 1) in {"in", "during", "over", "for"}:
        return _the_season(words, index, clock)
    return None


def _the_season(words: Words, index: int, clock: Clock) -> Found | None:
    name = SEASONS.get(words.get(index))
    if name is None or words.next(index) in {"of", "break", "camp"}:
        return None
    span = named_season(name, clock, tense_of(words, index, clock))
    return Found(index, index, span)


def quarter(words: Words, index: int, clock: Clock) -> Found | None:
    """ "Q3 2023", written as one word by the splitter only where the letter stands apart."""
    del clock
    number = words.get(index + 1)
    if number not in {"1", "2", "3", "4"} or words.ends[index] != words.starts[index + 1]:
        return None
    if not words.joined(index + 1) or not _YEAR.fullmatch(words.get(index + 2)):
        return None
    return Found(index, index + 2, quarter_span(int(words.words[index + 2]), int(number)))


def year_range(words: Words, index: int) -> Found | None:
    """ "2019-2021" after a preposition of time."""
    match = _YEAR_RANGE.fullmatch(words.words[index])
    if match is None or not int(match[1]) < int(match[2]) <= int(match[1]) + 100:
        return None
    first, last = year_span(int(match[1])), year_span(int(match[2]))
    return Found(index, index, first._replace(end=last.end))

"""English expressions made of others: since X, from X to Y, the Friday before X, early X."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from cofire.encoding.temporal.english_dates import atom
from cofire.encoding.temporal.english_relative import (
    Found,
    ago,
    amount_ending,
    before_last,
    deictic_day,
    directed,
    earlier,
    tense_of,
)
from cofire.encoding.temporal.english_words import (
    ALL_WEEKDAYS,
    ORDINALS,
    PERIODS,
    UNITS,
)
from cofire.encoding.temporal.spans import (
    DAY,
    EARLIEST,
    LATEST,
    WEEK,
    Clock,
    Span,
    Tense,
    Unit,
    day_of,
    midnight,
    unit_span,
    week_of,
    weekday_after,
    weekday_before,
    weekend_of,
)
from cofire.encoding.temporal.words import Words

Rule = Callable[[Words, int, Clock], Found | None]

_THIRDS = {
    "early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2,
}  # fmt: skip
_DEEPEST = 2
"""How many parts of parts are read ("the end of the first week of last month")."""
_DAY_NUMBER = re.compile(r"[0-3]?[0-9](?:st|nd|rd|th)?")
_TO = frozenset({"to", "until", "till", "til", "through", "thru"})


def any_atom(words: Words, index: int, clock: Clock, *, led: bool = False) -> Found | None:
    """A date or a relative expression that starts at word `index`."""
    found = atom(words, index, clock, led=led)
    if found is not None or index >= words.size:
        return found
    start = index + 1 if words.words[index] == "the" and words.joined(index) else index
    found = _relative(words, start, clock)
    if found is None and led:
        found = _amount_ago(words, start, clock)
    return found and found._replace(first=index)


def _relative(words: Words, index: int, clock: Clock) -> Found | None:
    """What one of `STARTS` reads at word `index`; nested no deeper than language goes."""
    rules = STARTS.get(words.words[index], ())
    if not rules or words.depth >= _DEEPEST:
        return None
    words.depth += 1
    try:
        for rule in rules:
            found = rule(words, index, clock)
            if found is not None and found.first >= index:
                return found
    finally:
        words.depth -= 1
    return None


def _amount_ago(words: Words, index: int, clock: Clock) -> Found | None:
    for place in range(index + 1, min(index + 7, words.size)):
        if not words.joined(place - 1):
            return None
        if words.words[place] == "ago":
            found = ago(words, place, clock)
            return found if found is not None and found.first == index else None
    return None


def _led(words: Words, index: int, clock: Clock, tense: Tense | None = None) -> Found | None:
    """What the preposition at `index` governs."""
    if not words.joined(index):
        return None
    return any_atom(words, index + 1, clock._replace(tense=tense or clock.tense), led=True)


def since(words: Words, index: int, clock: Clock) -> Found | None:
    """From the start of what follows to now (in a question: to the end of today)."""
    if words.next(index) in {"today", "tonight", "tomorrow"}:  # "since today is our first day"
        return None
    found = _led(words, index, clock, "past")
    if found is None:
        return None
    span = found.span
    if clock.question:
        span = span._replace(end=max(clock.today + DAY, span.end))
    elif span.start < clock.now:
        span = span._replace(end=clock.now)
    return Found(index, found.last, span)


def until(words: Words, index: int, clock: Clock) -> Found | None:
    """From now to the end of what follows; what is already over stands for itself."""
    found = _led(words, index, clock, tense_of(words, index, clock, "future"))
    if found is None:
        return None
    span = found.span
    if clock.question:
        span = span._replace(start=EARLIEST)
    elif span.end > clock.now:
        span = span._replace(start=clock.now)
    return Found(index, found.last, span)


def by(words: Words, index: int, clock: Clock) -> Found | None:
    """A deadline: what follows, itself; in a question everything up to its end."""
    found = _led(words, index, clock, tense_of(words, index, clock, "future"))
    if found is None:
        return None
    if clock.question:
        return Found(index, found.last, found.span._replace(start=EARLIEST))
    return Found(index + 1, found.last, found.span)


def before_after(words: Words, index: int, clock: Clock) -> Found | None:  # noqa: PLR0911 - one return per form
    """ "before 2022", "after May", and with words ahead "the Friday before 9 June"."""
    found = before_last(words, index, clock)
    if found is not None:
        return found
    found = _led(words, index, clock)
    if found is None:
        return None
    beside = _beside(words, index, found)
    if beside is not None:
        return beside
    span, backwards = found.span, words.words[index] == "before"
    if not clock.question:
        if backwards and clock.now < span.start:
            return Found(index, found.last, span._replace(start=clock.now, end=span.start))
        return Found(index + 1, found.last, span)
    if backwards:
        return Found(index, found.last, span._replace(start=EARLIEST, end=span.start))
    end = clock.today + DAY if span.end <= clock.today else LATEST
    return Found(index, found.last, span._replace(start=span.end, end=end))


def _beside(words: Words, index: int, found: Found) -> Found | None:
    """ "the week before X", "two weekends before X", "the Friday before X", "a day after X"."""
    if not words.joined(index - 1):
        return None
    base, sign = found.span, -1 if words.words[index] == "before" else 1
    edge = base.start if sign < 0 else base.end - DAY
    first, name = index - 1, words.words[index - 1]
    amount = amount_ending(words, first)
    if name in ALL_WEEKDAYS:
        span = (weekday_before if sign < 0 else weekday_after)(edge, ALL_WEEKDAYS[name])
    elif amount is not None:
        first = amount.first
        span = unit_span(amount.unit, edge, sign * amount.most)
    elif name in PERIODS or name == "day":
        span = _adjacent(base, edge, UNITS[name], sign)
    else:
        return None
    if words.before(first) in {"the", "last", "next"}:
        first -= 1
    return Found(first, found.last, span._replace(absolute=base.absolute))


def _adjacent(base: Span, edge: object, unit: Unit, sign: int) -> Span:
    del edge
    first = base.start if sign < 0 else base.end - DAY
    if unit == "day":
        return day_of(midnight(first) + DAY * sign)
    if unit == "week" and base.unit == "day":  # seven days, whatever weekday they start at
        start = base.start - WEEK if sign < 0 else base.end
        return Span(start, start + WEEK, "week")
    if unit == "weekend" and sign > 0:
        return weekend_of(weekday_after(first, 5).start)
    return unit_span(unit, first, sign)


def from_to(words: Words, index: int, clock: Clock) -> Found | None:
    """ "from X to Y", "between X and Y": X takes its year from Y."""
    links = {"and"} if words.words[index] == "between" else _TO
    for place in range(index + 2, min(index + 8, words.size - 1)):
        if words.sentence_breaks(place - 1):
            return None
        if words.words[place] not in links:
            continue
        last = any_atom(words, place + 1, clock, led=True)
        return None if last is None else _joined(words, index, place, clock, last)
    return None


def _joined(words: Words, index: int, place: int, clock: Clock, last: Found) -> Found | None:
    """From what stands between words `index` and `place` to the end of `last`."""
    end = last.span
    number = words.words[index + 1]
    if place == index + 2 and end.unit == "day" and _DAY_NUMBER.fullmatch(number):
        start = day_of(end.start.replace(day=int(number.rstrip("stndrh"))))
    else:
        earlier_clock = clock.at(end.start, "past") if end.unit != "hour" else clock
        first = any_atom(words, index + 1, earlier_clock, led=True)
        if first is None or first.last != place - 1:
            return None
        start = first.span
        if not start.absolute and words.words[index + 1] in STARTS:  # "between last week and …"
            own = any_atom(words, index + 1, clock, led=True)
            start = own.span if own is not None else start
    if not start.start < end.end:
        return None
    span = Span(start.start, end.end, end.unit, end.absolute)
    return Found(index, last.last, span)


def continued(words: Words, found: Found, clock: Clock) -> Found:
    """ "8 May to 12 May 2023", "June 5 - July 10, 2023": goes on where both ends are dates."""
    link = found.last + 1
    if not words.joined(found.last) or found.span.unit not in {"day", "month", "year"}:
        return found
    if words.text[words.ends[found.last] : words.starts[link]].strip(" ") in {"-", "–"}:
        link -= 1
    elif words.words[link] not in _TO:
        return found
    last = atom(words, link + 1, clock, led=True) if words.joined(link) else None
    if last is None or not last.span.absolute:
        return found
    start = atom(words, found.first, clock.at(last.span.start, "past"), led=True)
    if start is None or start.last != found.last or start.span.start >= last.span.start:
        return found
    return Found(found.first, last.last, last.span._replace(start=start.span.start))


def part_of(words: Words, index: int, clock: Clock) -> Found | None:
    """ "first week of April 2023", "early August", "the end of last year"."""
    word = words.words[index]
    if word in _THIRDS:
        return _third(words, index, clock)
    piece = words.next(index)
    if piece not in {"week", "weekend", "half", "day", "quarter"}:
        return None
    if words.next(index + 1) not in {"of", "in"}:
        return None
    whole = _whole(words, index + 3, clock)
    if whole is None or whole.span.unit == "day":
        return None
    span = _piece(whole.span, piece, ORDINALS[word])
    if span is None:
        return None
    first = index - 1 if words.before(index) == "the" else index
    return Found(first, whole.last, span)


def _whole(words: Words, index: int, clock: Clock) -> Found | None:
    """The thing a part is taken of: a date, or "the month"."""
    if not words.joined(index - 1):
        return None
    if words.get(index) in {"the", "this"} and words.next(index) in PERIODS:
        unit = UNITS[words.words[index + 1]]
        return Found(index, index + 1, unit_span(unit, clock.now, 0))
    return any_atom(words, index, clock, led=True)


def _third(words: Words, index: int, clock: Clock) -> Found | None:
    word = words.words[index]
    place = index + 2 if words.next(index) in {"of", "in"} else index + 1
    if place == index + 1 and word not in {"early", "mid", "late"}:
        return None
    whole = _whole(words, place, clock)
    if whole is None or whole.first <= index:
        return whole
    span = whole.span
    days = (span.end - span.start).days
    if days < 5 or span.start in (EARLIEST, clock.now):
        return None
    cut = [span.start, span.start + DAY * (days // 3), span.end - DAY * (days // 3), span.end]
    third = _THIRDS[word]
    part = Span(cut[third], cut[third + 1], span.unit, span.absolute)
    return Found(index, whole.last, part)


def _piece(whole: Span, piece: str, number: int) -> Span | None:
    """The `number`-th week, weekend, half, quarter or day of `whole`; -1 is the last."""
    start, end = whole.start, whole.end
    if piece in {"half", "quarter"}:
        count = 2 if piece == "half" else 4
        size = (end - start) / count
        place = number - 1 if number > 0 else count - 1
        if place >= count:
            return None
        first = midnight(start + size * place)
        last = end if place == count - 1 else midnight(start + size * (place + 1))
        return Span(first, last, whole.unit, whole.absolute)
    size = DAY if piece == "day" else WEEK
    if piece == "weekend":
        first = start + DAY * ((5 - start.weekday()) % 7)
        last_saturday = end - DAY - DAY * ((end - DAY - DAY * 5).weekday() % 7)
        saturday = first + WEEK * (number - 1) if number > 0 else last_saturday
        span = Span(saturday, saturday + DAY * 2, "weekend", whole.absolute)
    else:
        first = start + size * (number - 1) if number > 0 else end - size
        span = Span(first, first + size, "day" if piece == "day" else "week", whole.absolute)
    return span if start <= span.start < end else None


def week_with(words: Words, index: int, clock: Clock) -> Found | None:
    """ "the week of 23 August", "the weekend of 24 June", "over the weekend"."""
    word = words.words[index]
    if words.next(index) == "of":
        found = any_atom(words, index + 2, clock, led=True)
        if found is None or found.span.unit != "day":
            return None
        week = (week_of if word == "week" else weekend_of)(found.span.start)
        span = week._replace(absolute=found.span.absolute)
        return Found(index, found.last, span)
    if word != "weekend" or words.before(index) != "the":
        return None
    if words.before(index - 1) not in {"over", "on", "at", "for", "during"}:
        return None
    tense = tense_of(words, index, clock)
    if tense is None:
        return None
    weeks = -1 if tense == "past" else 0
    return Found(index - 1, index, unit_span("weekend", clock.now, weeks))


STARTS: Mapping[str, tuple[Rule, ...]] = (
    dict.fromkeys(("yesterday", "today", "tonight", "tomorrow"), (deictic_day,))
    | dict.fromkeys(("past", "this", "next", "coming", "upcoming"), (directed,))
    | dict.fromkeys((*ORDINALS, *_THIRDS), (part_of,))
    | {"last": (part_of, directed), "earlier": (earlier,), "later": (earlier,)}
)
"""Relative expressions by the word they start with; `english` adds those found from behind."""

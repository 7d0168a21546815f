"""Time expressions in messages and questions, resolved against a given moment.

A message's words lean on when it was said: "last Friday" on Wednesday 2024-03-13 is 2024-03-08.
`event_times` turns them into half-open UTC ranges at the grain of the words: a day, a week from
Monday to Sunday, a weekend, a month, a season, a year. `query_range` does the same for the time a
question asks about, and `asks_when` tells questions whose answer is a time. Nothing here reads
the host's clock or zone, and no text raises.

Days are those of the speaker's calendar at the fixed offset of the anchor: a message carries an
offset, not a zone, so a range that reaches across a change to summer time may be an hour off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from cofire.encoding.temporal import east_asian, english, european
from cofire.encoding.temporal.spans import EARLIEST, LATEST, Clock, Located, Span, midnight
from cofire.encoding.temporal.words import Folded, Words, fold
from cofire.types import EventTime

Range = tuple[datetime, datetime]
"""Half-open, in UTC. The first or last `datetime` there is stands for no bound on that side."""

MOST_EVENTS = 64
"""The most expressions that one text yields."""

_WORD = re.compile(r"\w+")
_SCRIPTS = re.compile("[\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
"""Cyrillic and East Asian letters, other than Latin the only ones that rules know."""
_TRIGGERS = english.TRIGGERS | european.TRIGGERS
_DAY_FIRST = frozenset({"de", "es", "fr", "it", "pt", "nl", "ru"})
_WIDEST_QUESTION = timedelta(days=400)
"""A question's several times are taken together up to this width (days)."""

_ASKS_WHEN = (
    # English: "when" before a verb, where a question may start; or after "remember" and the like
    r"(?:^|[.?!,;:]\s*|\b(?:so|and|but|since|until|by|from)\s+)when(?:'s|'re|'d|'ll|"
    r"\s+(?:exactly\s+)?(?:did|do|does|is|was|were|are|will|has|have|had|can|could|would|should|"
    r"am))\b"
    r"|\b(?:exactly|remember|know|tell\s+me|remind\s+me|recall|wonder|forgot|forget)\s+when\b"
    r"|\bhow\s+(?:long|many\s+(?:days|weeks|months|years))\s+ago\b|\bhow\s+recently\b"
    r"|\b(?:what|which)\s+(?:exact\s+|calendar\s+)?(?:dates?|days?|weeks?|weekend|months?|years?"
    r"|seasons?|decade)\b(?!\s+of\s+work)|\bwhat\s+time\b(?!\s+(?:management|zones?|series))"
    # German, French, Spanish, Italian, Portuguese, Dutch, Russian, in folded letters
    r"|(?:^|[.?!,;:]\s*)(?:seit |ab |bis )?(?:wann|wanneer|cuando|¿cuando|когда|quando|quand)\b"
    r"|¿(?:desde |hasta )?cuando\b|\bdepuis quand\b|\bsinds wanneer\b|\bс каких пор\b"
    r"|\b(?:welche[nmrs]?|an welchem|in welchem) (?:tag|datum|monat|jahr|woche)\b"
    r"|\bwie lange ist (?:es|das) her\b|\bvor wie vielen\b"
    r"|\bquel(?:le)? (?:jour|date|mois|annee|semaine)\b|\bil y a combien de temps\b"
    r"|\b(?:que|cual) (?:dia|fecha|mes|ano)\b|\bhace cuanto\b|\bcuanto tiempo hace\b"
    r"|\b(?:che|quale) (?:giorno|data|mese|anno)\b|\bin che (?:giorno|mese|anno)\b"
    r"|\bquanto tempo fa\b|\b(?:que|qual) data\b|\bha quanto tempo\b"
    r"|\bwelke (?:dag|datum|maand|week)\b|\bwelk jaar\b|\bhoe lang geleden\b"
    r"|\bкакого числа\b|\bв как(?:ом|ои) (?:году|месяце|день)\b|\bкак давно\b"
    # Chinese, Japanese, Korean
    r"|什么时候|什麼時候|甚么时候|啥时候|何时|何時|几号|幾號|哪一?[天年月]|哪个月|几月|多久(?:以前|之前|前)"
    r"|いつ|何[日月年]|何曜日|どのくらい前|언제|며칠|몇 ?[월년]|얼마나 전"
)
_OTHER_QUESTION = re.compile(r"\b(?:what|who|whom|whose|where|how|why)\b|,")


def event_times(
    text: str, anchor: datetime, offset: int | None = None, language: str | None = None
) -> tuple[EventTime, ...]:
    """When the things told of in a text happened or will happen.

    Args:
        text: any text; it is neither changed nor required to be clean.
        anchor: when it was said. A naive `datetime` is read as UTC.
        offset: the speaker's minutes east of UTC; by default those of `anchor`.
        language: ISO 639-1 code of the text, if known; English is always read.

    Returns:
        At most `MOST_EVENTS` half-open ranges in UTC in the order of the text, none overlapping
        another in the text. "until X" starts at the anchor, "since X" ends there. A time that
        would leave the years 1 to 9999 is left out.
    """
    source = _Source.of(text)
    if source is None:
        return ()
    clock, shift = _clock(anchor, offset, language, question=False)
    return tuple(
        EventTime(text=text[first:last], start=bounds[0], end=bounds[1], span=(first, last))
        for first, last, span in source.expressions(clock, language)
        if (bounds := _utc(span, shift)) is not None
    )


def may_name_a_time(text: str) -> bool:
    """Whether an ASCII text, or a part of one that cuts no word, has a word that time expressions
    need: if no part has, `event_times` finds nothing."""
    return not _TRIGGERS.isdisjoint(_WORD.findall(text.lower()))


def query_range(
    question: str, now: datetime, language: str | None = None, *, offset: int | None = None
) -> Range | None:
    """The time that a question asks about, as a half-open range in UTC; None if it names none.

    A name without a year means the last one that has begun ("in May", "on Friday"). "before X"
    has no lower bound and is written with the first `datetime` there is, "since X" reaches to the
    end of today. Several times are taken together; beside a date, relative words lean on it
    ("last week, as mentioned on 6 November 2023"). Arguments as for `event_times`.
    """
    source = _Source.of(question)
    if source is None:
        return None
    clock, shift = _clock(now, offset, language, question=True)
    spans = [span for _, _, span in source.expressions(clock, language)]
    fixed = [span for span in spans if span.absolute]
    if fixed and len(fixed) < len(spans):
        beside = clock.at(max(fixed[0].start, EARLIEST + timedelta(days=1)))
        spans = [span for _, _, span in source.expressions(beside, language)]
        whole = _hull(spans)
        spans = spans if whole.end - whole.start <= _WIDEST_QUESTION else fixed
    return _utc(_hull(spans), shift) if spans else None


def asks_when(question: str) -> bool:
    """Whether the answer is a time: "When did …?", "how long ago", "what date", 什么时候."""
    text = fold(question[:2000]).text.strip()
    if _asks_when_pattern().search(text):
        return True
    # "When Jon has lost his job?": asked without turning the verb around
    rest = text.removeprefix("when ")
    return rest != text and text.endswith("?") and not _OTHER_QUESTION.search(rest)


@cache
def _asks_when_pattern() -> re.Pattern[str]:
    return re.compile(_ASKS_WHEN)


def _clock(
    moment: datetime, offset: int | None, language: str | None, *, question: bool
) -> tuple[Clock, timedelta]:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    shift = aware.utcoffset() or timedelta()
    if offset is not None:
        shift = timedelta(minutes=offset)
    try:
        wall = aware.astimezone(UTC) + shift
    except OverflowError:  # within a day of the first or last datetime
        wall, shift = aware.replace(tzinfo=UTC), timedelta()
    return Clock(wall, midnight(wall), question, None, language in _DAY_FIRST), shift


@dataclass(frozen=True, slots=True)
class _Source:
    """A text whose words hint at a time: `names` are its words, `east_asian` its script."""

    raw: str
    folded: Folded
    names: list[str]
    alphabetic: bool
    east_asian: bool

    @staticmethod
    def of(text: str) -> _Source | None:
        """None if no word of the text can be part of a time expression: the usual, fast case."""
        folded = fold(text)
        plain, script = folded.text, False
        if not plain.isascii():
            if _SCRIPTS.search(plain):
                script = east_asian.TRIGGER.search(plain) is not None
            else:  # splitting is twice as fast without the dashes and emoji
                plain = plain.encode("ascii", "replace").decode("ascii")
        names = _WORD.findall(plain)
        alphabetic = not _TRIGGERS.isdisjoint(names)
        return _Source(text, folded, names, alphabetic, script) if alphabetic or script else None

    def expressions(self, clock: Clock, language: str | None) -> list[Located]:
        """Time expressions with their characters in the text, in order, none overlapping."""
        text = self.folded.text
        found = self._alphabetic(clock, language) if self.alphabetic else []
        if self.east_asian:
            found = _apart(found + list(east_asian.expressions(text, clock, MOST_EVENTS)))
        return [
            (*self.folded.original(first, last), span) for first, last, span in found[:MOST_EVENTS]
        ]

    def _alphabetic(self, clock: Clock, language: str | None) -> list[Located]:
        names, text = set(self.names), self.folded.text
        found: list[Located] = []
        if not english.TRIGGERS.isdisjoint(names):
            words = Words(text, self.raw)
            found = [
                (words.starts[hit.first], words.ends[hit.last], hit.span)
                for hit in english.expressions(words, clock, MOST_EVENTS)
            ]
        if european.TRIGGERS.isdisjoint(names):
            return found
        codes = european.likely_languages(names, language, read=bool(found))
        if not codes:
            return found
        return _apart(found + list(european.expressions(text, clock, codes, MOST_EVENTS)))


def _apart(found: list[Located]) -> list[Located]:
    """Without those that overlap a longer one; of equals the first stays."""
    kept: list[Located] = []
    taken: set[int] = set()
    for first, last, span in sorted(found, key=lambda hit: hit[0] - hit[1]):
        if taken.isdisjoint(range(first, last)):
            taken.update(range(first, last))
            kept.append((first, last, span))
    return sorted(kept, key=lambda hit: hit[0])


def _hull(spans: list[Span]) -> Span:
    return Span(min(span.start for span in spans), max(span.end for span in spans), "day")


def _utc(span: Span, shift: timedelta) -> Range | None:
    try:
        start = span.start if span.start == EARLIEST else span.start - shift
        end = span.end if span.end == LATEST else span.end - shift
    except OverflowError:
        return None
    return start, end

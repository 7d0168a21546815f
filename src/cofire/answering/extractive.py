"""An answer without a model: the sentence of what was recalled that fits the question best.

It is somebody's own words, with its source, and says nothing that was not said. What counts is how
well the memory fits (its score, on the scale of log-odds), how many of the question's words the
sentence has, weighed by how few of the sentences have them, and that a question for a time is met
by one that tells it. A sentence that asks is no answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cofire.answering.asking import opens_as_question
from cofire.answering.dates import day_named, local_day, with_dates
from cofire.consolidation.quoting import sentences
from cofire.encoding.analysis import analyse
from cofire.encoding.expressions import asks_when
from cofire.types import Recalled

MEMORIES = 8
"""Memories, best first, whose sentences are looked at."""
PER_MEMORY = 12
"""Sentences of one memory, at most."""
WORDS_WEIGHT = 3.0
"""What it counts that a sentence has all words of the question, in units of a memory's score."""
TIME_WEIGHT = 1.5
"""What it counts that a sentence tells a time, where one is asked for."""
QUOTED_WORDS = 30
"""Words up to which a sentence is quoted with those around it."""
SHORTEST = 3
"""Words from which a sentence counts as whole; of shorter ones ("Yeah!") little is learned."""

_ASKING = ("?", "\uff1f", "\u061f")
_CLOSING = "\"'\u201d\u2019)\u00bb]* "


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """The sentence at characters `start` to `end` of what a recalled memory says; `text` has its
    relative dates resolved."""

    hit: Recalled
    start: int
    end: int
    text: str

    @property
    def quoted(self) -> str:
        """ "Ada, 8 May 2023: “…”": the sentence with its source."""
        item = self.hit.item
        day = day_named(local_day(item.time, item.offset))
        who = item.speaker or item.role
        return (
            f"{who}, {day}: \u201c{self.text}\u201d" if who else f"{day}: \u201c{self.text}\u201d"
        )


@dataclass(frozen=True, slots=True)
class _Sentence:
    hit: Recalled
    start: int
    end: int
    terms: frozenset[str]
    asks: bool
    times: int


def extract(question: str, hits: Sequence[Recalled]) -> Extract | None:
    """The sentence that fits best; None where nothing was recalled. `hits` in any order."""
    best = sorted(hits, key=lambda hit: -hit.score)[:MEMORIES]
    found = [sentence for hit in best for sentence in _sentences(hit)]
    if not found:
        return None
    # A question that was asked before fits itself best of all.
    asked = frozenset(analyse(question).terms)
    found = [one for one in found if not (one.asks or _repeats(one, asked))] or found
    weights = _weights(asked, found)
    timed = asks_when(question)
    top = best[0].score

    def fit(sentence: _Sentence) -> float:
        met = sum(weights[term] for term in asked & sentence.terms)
        return (
            (sentence.hit.score - top)
            + WORDS_WEIGHT * met
            + TIME_WEIGHT * (timed and sentence.times > 0)
            - (len(sentence.terms) < SHORTEST)
        )

    chosen = max(found, key=fit)  # of equals the first: of the better memory, earlier in it
    start, end = _with_neighbours(chosen)
    text = _dated(chosen.hit, start, end)
    return Extract(hit=chosen.hit, start=start, end=end, text=text)


def _with_neighbours(chosen: _Sentence) -> tuple[int, int]:
    """A sentence with those around it that tell something and leave it short, the one before it
    first: what "it" is mostly stands there."""
    text = chosen.hit.content
    bounds = sentences(text)
    at = next(place for place, bound in enumerate(bounds) if bound[0] == chosen.start)
    first = last = at
    for _ in bounds:
        for other in (first - 1, last + 1):
            if not 0 <= other < len(bounds) or _asks(text[slice(*bounds[other])]):
                continue
            start, end = bounds[min(first, other)][0], bounds[max(last, other)][1]
            if len(text[start:end].split()) <= QUOTED_WORDS:
                first, last = min(first, other), max(last, other)
                break
        else:
            break
    return bounds[first][0], bounds[last][1]


def _repeats(sentence: _Sentence, asked: frozenset[str]) -> bool:
    """Whether it is the question once more, written without a question mark."""
    words = sentence.hit.content[sentence.start : sentence.end]
    return sentence.terms <= asked and opens_as_question(words)


def _asks(sentence: str) -> bool:
    return sentence.rstrip(_CLOSING).endswith(_ASKING)


def _sentences(hit: Recalled) -> list[_Sentence]:
    text = hit.content
    start_of = hit.segment.start if hit.segment is not None else 0
    found = []
    for start, end in sentences(text)[:PER_MEMORY]:
        words = text[start:end]
        times = sum(
            start_of + start <= time.span[0] and time.span[1] <= start_of + end
            for time in hit.item.event_times
        )
        asks = _asks(words)
        terms = frozenset(analyse(words).terms)
        found.append(_Sentence(hit, start, end, terms, asks, times))
    return found


def _weights(asked: frozenset[str], found: Sequence[_Sentence]) -> dict[str, float]:
    """Shares of the question's words by how few sentences have them; their sum is 1."""
    held = Counter(term for sentence in found for term in asked & sentence.terms)
    raw = {term: math.log1p(len(found) / (1 + held[term])) for term in asked}
    total = sum(raw.values()) or 1.0
    return {term: weight / total for term, weight in raw.items()}


def _dated(hit: Recalled, start: int, end: int) -> str:
    item = hit.item
    day = local_day(item.time, item.offset)
    words = hit.content[start:end].strip()
    whole = start + (hit.segment.start if hit.segment is not None else 0)
    return with_dates(words, item.event_times, day, offset=item.offset, start=whole)

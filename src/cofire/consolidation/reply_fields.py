"""Fields of a language model's answer: what has the type, the length and the range that is due."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cofire.consolidation.drafts import Quote, Turn
from cofire.consolidation.quoting import locate
from cofire.consolidation.stated_times import stated_span

MOST_RECORDS = 200
"""Records of an answer, and labels of turns in a list, at most."""
MOST_PARTS = 20
"""Quotes, causes or aliases of a record at most."""

CONTENT, NAME, SLOT, VALUE, QUOTE = 500, 100, 60, 200, 2_000
"""Characters at most."""

_LARGEST = 1e15
"""Larger numbers are no values of anything that people talk about, and slow to write out."""
_UNUSABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_NOTHING = frozenset({"", "null", "none", "n/a", "unknown"})
_WORDS = ("text", "quote", "sentence")
_LABEL = ("turn", "label")


class DroppedError(Exception):
    """A record or a part of one is not to be believed; its text is the word it is counted by."""


def text_of(value: Any, longest: int) -> str | None:
    """A text in one line, None where there is none. A number is one, an object with one text is
    that text. Raises DroppedError where it is too long or no valid text."""
    if isinstance(value, dict):
        texts = [part for part in value.values() if isinstance(part, str)]
        value = texts[0] if len(texts) == 1 else None
    if type(value) in {int, float} and -_LARGEST < value < _LARGEST:  # neither NaN nor True
        value = str(value)
    if not isinstance(value, str):
        return None
    text = " ".join(_valid(value, longest).split())
    return None if text.casefold() in _NOTHING else text


def _valid(text: str, longest: int) -> str:
    if len(text) > longest:
        raise DroppedError("long")
    if _UNUSABLE.search(text):
        raise DroppedError("characters")
    return text


def bare(label: str) -> str:
    """A label as it is compared: "[T3]:" is t3."""
    return label.strip(" \t\r\n[](){}:.\"'").casefold()


class Reading:
    """One answer being read: the turns that were offered to it, and what had to be dropped."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.dropped: Counter[str] = Counter()
        self.turns = {turn.label: turn for turn in turns}
        self._labels = {turn.label.casefold(): turn.label for turn in turns}
        self._latest = max((turn.time for turn in turns), default=None)

    def needed(self, value: Any, longest: int, reason: str) -> str:
        """A text without which the record goes."""
        text = text_of(value, longest)
        if text is None:
            raise DroppedError(reason)
        return text

    def optional(self, value: Any, longest: int) -> str | None:
        """A text without which the record can do."""
        try:
            return text_of(value, longest)
        except DroppedError as exc:
            self.dropped[str(exc)] += 1
            return None

    def listed(self, value: Any, most: int = MOST_PARTS) -> list[Any]:
        """At most so many entries of a list. An object alone is a list of one; a text is no list,
        not even of its letters."""
        if value is None:
            return []
        if isinstance(value, dict):
            return [value]
        if not isinstance(value, list):
            self.dropped["list"] += 1
            return []
        self.dropped["excess"] += max(0, len(value) - most)
        return value[:most]

    def texts(self, value: Any, longest: int, most: int = MOST_PARTS) -> list[str]:
        """The texts in a list."""
        found = [self.optional(part, longest) for part in self.listed(value, most)]
        return [text for text in found if text is not None]

    def label(self, text: str) -> str | None:
        """The offered label that is meant."""
        return self._labels.get(bare(text))

    def labels(self, value: Any) -> tuple[str, ...]:
        """Those labels of a list that were offered, each once. Raises DroppedError where there are
        none: nothing bears the record out."""
        found = [self.label(text) for text in self.texts(value, NAME, MOST_RECORDS)]
        self.dropped["label"] += found.count(None)
        offered = tuple(dict.fromkeys(label for label in found if label is not None))
        if not offered:
            raise DroppedError("evidence")
        return offered

    def quotes(self, value: Any) -> tuple[Quote, ...]:
        """The quotes in a list. Raises DroppedError where there are none."""
        found: dict[Quote, None] = {}
        for part in self.listed(value):
            try:
                found[self._quote(part)] = None
            except DroppedError as exc:
                self.dropped[str(exc)] += 1
        if not found:
            raise DroppedError("evidence")
        return tuple(found)

    def _quote(self, part: Any) -> Quote:
        """A quote; of words without a label, the only turn in which they stand is meant."""
        words, named = part, None
        if isinstance(part, dict):
            words = next((part[key] for key in _WORDS if key in part), None)
            named = next((part[key] for key in _LABEL if key in part), None)
        if not isinstance(words, str) or not words.strip():
            raise DroppedError("quote")
        text = _valid(words, QUOTE).strip()
        if named is None:
            places = [turn.label for turn in self.turns.values() if locate(text, turn.content)]
            label = places[0] if len(places) == 1 else None
        else:
            label = self.label(named) if isinstance(named, str) else None
        if label is None:
            raise DroppedError("label")
        return Quote(label=label, text=text)

    def span(self, value: Any, offset: int) -> tuple[datetime, datetime] | None:
        """The hull of a date by a clock `offset` minutes east of UTC."""
        text = self.optional(value, NAME)
        if text is None:
            return None
        span = stated_span(text, offset, self._latest)
        self.dropped["time"] += span is None
        return span

    def hull(self, first: Any, last: Any, offset: int) -> tuple[datetime, datetime] | None:
        """The hull from a first to a last date, either of which may be missing."""
        begin, end = self.span(first, offset), self.span(last, offset)
        if begin is None or end is None:
            return begin or end
        if end[1] <= begin[0]:
            self.dropped["time"] += 1
            return None
        return begin[0], end[1]

"""A model's reply → the text of an answer, what it cites, and what was wrong with it.

Nothing a model writes raises. A citation of a line that was not offered stays as it is written and
counts for nothing; what it thinks aloud, its code fences and its labels are taken off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cofire.answering.refusing import refuses
from cofire.answers import Entry
from cofire.models.generator import Finish

_MARK = re.compile(
    r"[\[\u3010]\s*#?(\d{1,4}(?:\s*[-\u2013]\s*#?\d{1,4})?"
    r"(?:\s*[,;]\s*#?\d{1,4}(?:\s*[-\u2013]\s*#?\d{1,4})?)*)\s*[\]\u3011]"
)
_BEGUN = re.compile(r"[\[\u3010][\s#\d,;\u2013-]{0,80}\Z")
"""The beginning of what may become a citation, at the end of a piece."""
_RANGE = re.compile(r"(\d{1,4})(?:\s*[-\u2013]\s*#?(\d{1,4}))?")
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.S | re.I)
_LABEL = re.compile(
    r"\A\s*(?:\*\*)?(?:short |final |the )?(?:answer|letter)(?:\*\*)?\s*:(?:\*\*)?\s*", re.I
)
_CODE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.S)
# From where blanks begin, and once: a text of line breaks takes no longer than another.
_BEFORE = re.compile(r"(?<!\s)\s++([.,;:!?\u3002\uff0c])")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Before the choices of a question that has some."""
LONGEST = 20_000
"""Characters of a reply that are read at all."""
_WIDEST = 20
"""Lines that a range such as [3-7] may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model's reply says. `marked` has [1], [2] behind what rests on the first, the second
    of `labels`, which are lines of the context; `text` is without. `malformed` says what was wrong
    with it: "empty", "cut" (it ran out of tokens), "thinking" (nothing but thoughts), "json"
    (JSON where a text was due), "long"; "" if nothing was. `unmentioned`: it says that the lines
    do not hold the answer. `declined`: the model or a filter refused."""

    text: str
    marked: str
    labels: tuple[int, ...] = ()
    malformed: str = ""
    unmentioned: bool = False
    declined: bool = False


class Citations:
    """Renumbers citations while a text comes in: the line cited first becomes [1]."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._known = frozenset(entry.label for entry in entries)
        self._held = ""
        self.labels: list[int] = []

    def feed(self, piece: str) -> str:
        """What can be shown of the text so far and was not before."""
        text = self._held + piece
        begun = _BEGUN.search(text)
        self._held = text[begun.start() :] if begun else ""
        return self._renumbered(text[: begun.start()] if begun else text)

    def end(self) -> str:
        """What was held back as the beginning of a citation."""
        held, self._held = self._held, ""
        return held

    def _renumbered(self, text: str) -> str:
        return _MARK.sub(self._place, text)

    def _place(self, match: re.Match[str]) -> str:
        labels = [label for label in _named(match[1]) if label in self._known]
        if not labels:
            return match[0]
        for label in labels:
            if label not in self.labels:
                self.labels.append(label)
        places = sorted({self.labels.index(label) + 1 for label in labels})
        return f"[{', '.join(map(str, places))}]"


def _named(text: str) -> list[int]:
    """The labels in "3", "3, 7" and "3-5"."""
    found: list[int] = []
    for match in _RANGE.finditer(text):
        first, last = int(match[1]), int(match[2] or match[1])
        found += range(first, min(last, first + _WIDEST) + 1)
    return found


def read_reply(text: str, entries: Sequence[Entry], finish: Finish) -> Reply:
    """What a reply says of the lines it was given."""
    if finish in {"refusal", "filter"}:
        return Reply(text=_plain(text), marked=_plain(text), malformed=finish, declined=True)
    wrong = "cut" if finish == "length" else ""
    whole = _LONE_SURROGATE.sub("\ufffd", text)
    if len(whole) > LONGEST:
        whole, wrong = whole[:LONGEST], "long"
    thought = _THINKING.sub("", whole)
    if whole.strip() and not thought.strip():
        return Reply(text="", marked="", malformed="thinking")
    bare = _bare(thought)
    inner = _of_json(bare)
    if inner is not None:
        bare, wrong = inner, wrong or "json"
    if not bare:
        return Reply(text="", marked="", malformed=wrong or "empty")
    citations = Citations(entries)
    marked = citations.feed(bare) + citations.end()
    labels = tuple(citations.labels)
    plain = without_marks(marked, len(labels))
    if not plain:
        return Reply(text="", marked="", malformed=wrong or "empty")
    return Reply(
        text=plain,
        marked=marked,
        labels=labels,
        malformed=wrong,
        unmentioned=refuses(plain),
    )


def without_marks(marked: str, count: int) -> str:
    """A marked text without the marks of its `count` citations."""

    def gone(match: re.Match[str]) -> str:
        return "" if all(1 <= place <= count for place in _named(match[1])) else match[0]

    text = _MARK.sub(gone, marked)
    if text == marked:
        return text.strip()
    lines = (re.sub(r"[ \t]{2,}", " ", line).rstrip() for line in text.splitlines())
    return _BEFORE.sub(r"\1", "\n".join(lines)).strip()


def choice_of(text: str, count: int) -> int | None:
    """Which of `count` choices (A, B, …) a reply names, as an index; None where it names none, or
    several."""
    letters = LETTERS[:count]
    first = re.match(rf"[\s(\[\"'*]*([{letters}])(?:[).\]:\"'*,\n]|\s*\Z)", text)
    if first is not None:
        return letters.index(first[1])
    named = re.findall(
        rf"(?i:\b(?:answer|option|choice|letter))\s*+(?:(?:is|:)\s*+)?\(?([{letters}])\b", text
    )
    # "A kite" is no choice: an article or a pronoun is followed by a word.
    article = r"(?!(?<=[AI]) (?!or\b|and\b)[a-z])"
    alone = named or re.findall(rf"(?<![\w'])([{letters}])(?![\w']){article}", text)
    found = set(alone)
    return letters.index(found.pop()) if len(found) == 1 else None


def _bare(text: str) -> str:
    """A reply without what models put around it."""
    bare = text.strip()
    fenced = _CODE.match(bare)
    if fenced is not None:
        bare = fenced[1].strip()
    bare = _LABEL.sub("", bare)
    for mark in ('"', "\u201c", "'"):
        end = "\u201d" if mark == "\u201c" else mark
        inside = bare[1:-1]
        if len(bare) > 1 and bare[0] == mark and bare[-1] == end and mark not in inside:
            return inside.strip()
    return bare


def _of_json(text: str) -> str | None:
    """The one text in a JSON object, where a model wrote one; None: it is none."""
    if not text.startswith("{") or not text.endswith("}"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    named = [value.get(name) for name in ("answer", "text", "response", "content")]
    texts = [one for one in (*named, *value.values()) if isinstance(one, str)]
    return _plain(texts[0]) if texts else ""


def _plain(text: str) -> str:
    return _LONE_SURROGATE.sub("\ufffd", text[:LONGEST]).strip()

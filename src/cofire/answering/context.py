"""The context of an answer: what was said, in order of time under its days; before it, what
consolidation made of it and what is known of people; all within a budget of tokens.

A line is "3) Ada: text", and its number is what a model cites. A day stands once, over what was
said on it: against a date before each line that saves some 45 of 1,000 wordpieces. What was said is
taken best first, and a line that does not fit is passed over for the next that does. A record that
only repeats what stands there anyway is left out. Everything stands between `fences`' marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from cofire.answering.dates import day_named, local_day, with_dates
from cofire.answers import Context, Entry, Section
from cofire.fences import LONGEST_NUMBER, fenced_line, fences, marks, rendered
from cofire.retrieval.room import Room, cost_of
from cofire.types import Kind, Recall, Recalled, SemanticRecord

RECORDS_SHARE = 0.2
"""Part of a budget that records may take; what they leave is what was said's."""

EXTRACTIVE = "extractive"
"""Maker of records that are sentences of memories, word for word."""

HEADINGS: dict[Section, str] = {
    "known": "Known:",
    "user": "Of whom this is about:",
    "said": "What was said:",
}
"""What stands before each part, if there is more than what was said."""

_ABOUT_PEOPLE = frozenset({Kind.TRAIT, Kind.PERSONA})
_IMITATED = re.compile(r"(\n[^\S\n]*+\d{1,4})[)\uff09]")
_LABEL = "99) "
"""As many wordpieces as a label has."""

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that may be taken: the entry it would be (label 0), the day it stands under (None:
    the line says its own), and its wordpieces without that of the day."""

    entry: Entry
    day: date | None
    cost: int


def compose(
    recall: Recall, *, budget: int | None, count: Count, of_people: Sequence[Recalled] = ()
) -> Context:
    """The context that a recall makes, of at most `budget` wordpieces (None: everything).

    `of_people` are traits and persona that belong into it whatever the question; they share the
    records' part. `count` counts wordpieces of a text. The same recall gives the same context.
    """
    said = [_said(hit, count) for hit in sorted(recall, key=lambda hit: -hit.score)]
    known = [_recorded(record, count) for record in recall.semantic]
    there = {record.id for record in recall.semantic}
    known += [_of_person(hit, count) for hit in of_people if hit.id not in there]
    draft = _Draft(_room(budget, count), count)
    if budget is None:
        draft.take(said)
        draft.take(_new(recall.semantic, known, draft.ids))
    else:
        reserve = min(int(RECORDS_SHARE * budget), _whole_cost(known, count))
        draft.take(said, keeping=reserve)
        draft.take(_new(recall.semantic, known, draft.ids), most=reserve)
        draft.take(said)
    return draft.context(left_out=len(said) + len(known) - len(draft.taken))


def whole(entries: Iterable[Recalled], *, count: Count) -> Context:
    """A context of all that is given, in order of time: nothing chosen, nothing left out."""
    draft = _Draft(Room(None, 0), count)
    draft.take([_said(hit, count) for hit in entries])
    return draft.context(left_out=0)


def _room(budget: int | None, count: Count) -> Room:
    """What lines may take: the budget without the marks around them."""
    if budget is None:
        return Room(None, 0)
    around = sum(map(count, marks(LONGEST_NUMBER)))
    return Room(max(0, budget - around), sum(map(count, fences(LONGEST_NUMBER))))


class _Draft:
    """The lines taken so far."""

    def __init__(self, room: Room, count: Count) -> None:
        self._room = room
        self._count = count
        self._days: set[date] = set()
        self._sections: set[Section] = set()
        self.taken: dict[str, _Line] = {}

    @property
    def ids(self) -> frozenset[str]:
        """Of what was taken."""
        return frozenset(self.taken)

    def take(self, lines: Iterable[_Line], *, keeping: int = 0, most: int | None = None) -> None:
        """Takes those that fit, in their order, and leaves `keeping` wordpieces; `most` is what
        these may take together."""
        left = self._room.left
        if left is not None:
            self._room.left = left - keeping if most is None else min(left, most)
        before = self._room.left
        for line in lines:
            if self._room.full:
                break
            if line.entry.id not in self.taken and self._fits(line):
                self.taken[line.entry.id] = line
        if left is not None and before is not None and self._room.left is not None:
            self._room.left = left - (before - self._room.left)

    def _fits(self, line: _Line) -> bool:
        # Numbers of three and four digits have a wordpiece or two more.
        cost = line.cost + (len(self.taken) >= 99) + 2 * (len(self.taken) >= 999)
        section = line.entry.section
        if line.day is not None and line.day not in self._days:
            cost += self._count(_day_line(line.day))
        if not line.entry.untrusted and section not in self._sections and section != "said":
            cost += self._count(HEADINGS[section])
            if not self._sections & {"known", "user"}:  # then what was said needs its own
                cost += self._count(HEADINGS["said"])
        if not self._room.take(cost, untrusted=line.entry.untrusted):
            return False
        if not line.entry.untrusted:
            self._sections.add(section)
            if line.day is not None:
                self._days.add(line.day)
        return True

    def context(self, *, left_out: int) -> Context:
        """What was taken, in order and with labels."""
        order = sorted(self.taken.values(), key=_place)
        lines: tuple[list[str], list[str]] = ([], [])
        entries: list[Entry] = []
        day: date | None = None
        section: Section | None = None
        parts = {line.entry.section for line in order if not line.entry.untrusted}
        for line in order:
            entry = replace(line.entry, label=len(entries) + 1)
            entries.append(entry)
            if not entry.untrusted:
                if entry.section != section and parts != {"said"}:
                    lines[0].append(HEADINGS[entry.section])
                section = entry.section
                if line.day is not None and line.day != day:
                    lines[0].append(_day_line(line.day))
                day = line.day
            lines[entry.untrusted].append(_told(entry))
        text = rendered(*lines)
        return Context(
            text=text, entries=tuple(entries), tokens=self._count(text), left_out=left_out
        )


_ORDER: dict[Section, int] = {"known": 0, "user": 1, "said": 2}


def _place(line: _Line) -> tuple[bool, int, date, float, str]:
    """Trusted before untrusted, by section, then by time; of one moment in the order in which they
    were remembered, which ids follow."""
    entry = line.entry
    day = line.day or date.min
    return entry.untrusted, _ORDER[entry.section], day, entry.time.timestamp(), entry.id


def _said(hit: Recalled, count: Count) -> _Line:
    item = hit.item
    day = local_day(item.time, item.offset)
    start = hit.segment.start if hit.segment is not None else 0
    text = with_dates(hit.content, item.event_times, day, offset=item.offset, start=start)
    who = item.speaker or item.role
    line = f"{who}: {text}" if who else text
    if hit.untrusted:
        line = f"{day_named(day)} {line}"
    entry = Entry(
        label=0, id=hit.id, text=line, quote=hit.content, section="said",
        time=item.time, speaker=who, untrusted=hit.untrusted,
    )  # fmt: skip
    return _Line(entry, None if hit.untrusted else day, _cost(line, count))


def _recorded(record: SemanticRecord, count: Count) -> _Line:
    line = record.line
    if record.valid_to is not None:
        line += f" (until {day_named(record.valid_to.date())})"
    entry = Entry(
        label=0, id=record.id, text=line, quote=record.content,
        section="user" if record.kind in _ABOUT_PEOPLE else "known",
        time=record.item.time, speaker=record.item.speaker,
        evidence=tuple(quoted.id for quoted in record.evidence), untrusted=record.untrusted,
    )  # fmt: skip
    return _Line(entry, None, _cost(line, count))


def _of_person(hit: Recalled, count: Count) -> _Line:
    entry = Entry(
        label=0, id=hit.id, text=hit.line, quote=hit.content, section="user",
        time=hit.item.time, speaker=hit.item.speaker, untrusted=hit.untrusted,
    )  # fmt: skip
    return _Line(entry, None, _cost(hit.line, count))


def _cost(line: str, count: Count) -> int:
    return cost_of(count(_LABEL + line), line)


def _whole_cost(known: Sequence[_Line], count: Count) -> int:
    headings = sum(map(count, HEADINGS.values())) if known else 0
    return headings + sum(line.cost for line in known)


def _new(
    records: Sequence[SemanticRecord], lines: Sequence[_Line], there: frozenset[str]
) -> list[_Line]:
    """The lines of records that say something beside what is there: one in the words of a memory
    that stands there itself does not."""
    repeated = {
        record.id
        for record in records
        if record.maker == EXTRACTIVE
        and record.evidence
        and there.issuperset(quoted.id for quoted in record.evidence)
    }
    return [line for line in lines if line.entry.id not in repeated]


def _told(entry: Entry) -> str:
    """An entry's line. Whoever said it, a model's control tokens in it are none, as many servers
    obey them wherever they stand; and no other line of it looks as if it had a label."""
    line = fenced_line(f"{entry.label}) {entry.text}", untrusted=True)
    return _IMITATED.sub(r"\1.", line)


def _day_line(day: date) -> str:
    return f"{day_named(day)}:"

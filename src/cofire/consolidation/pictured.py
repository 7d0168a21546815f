"""A record in the picture that a night has of what is known, and the points that its evidence is
on the line of its slot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from cofire.consolidation.drafts import Draft, Span, Turn
from cofire.consolidation.reconciling import same_value
from cofire.consolidation.slots import Slot, slot_named
from cofire.consolidation.statements import since
from cofire.consolidation.timelines import Point
from cofire.dynamics.arrays import F32
from cofire.store.records import DerivedRow, NewItem, SourceRow

EXTRACTIVE = "extractive"
"""Maker of what was read by rules."""


@dataclass(slots=True)
class Record:
    """A record in the picture. `number` > 0 is stored; below 0 it is to be filed, as entry
    -1 - number. `said`: from when each piece of evidence says so; `spans` of it.
    `untrusted`: it rests on what is."""

    number: int
    draft: Draft
    item: NewItem | None
    valid_from: datetime
    valid_to: datetime | None
    vector: F32 | None
    said: list[tuple[datetime, tuple[Span, ...]]] = field(default_factory=list)
    turns: dict[int, Turn] = field(default_factory=dict)
    recorded: datetime | None = None
    changed: bool = False
    grown: bool = False
    because: int = 0
    untrusted: bool = False

    @property
    def slot(self) -> Slot | None:
        """The slot of one value at a time that it fills, if it fills one."""
        name = self.draft.slot
        slot = name and slot_named(name, self.draft.value, single=self.draft.single)
        return slot if slot and slot.single and slot.value else None

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple(span for _, spans in self.said for span in spans)


def time_of(row: DerivedRow, source: SourceRow, turn: Turn, start: datetime) -> datetime:
    """From when a piece of evidence says that a record holds: by the rules that read it, or, of
    what a model read, when it was said, though not before the record's `start`."""
    if row.maker == EXTRACTIVE and source.version == turn.version:
        return since(turn.content[source.start : source.end], turn)
    return max(start, turn.time)


def points(line: dict[int, Record]) -> Iterable[Point]:
    """The evidence of the records of a line; one without any counts from when it holds."""
    for number, record in line.items():
        for time, spans in record.said or [(record.valid_from, ())]:
            said = max(
                (
                    (record.turns[span.number].time, span.number)
                    for span in spans
                    if span.number in record.turns
                ),
                default=(time, 0),
            )
            yield Point(time, said, number, spans)


def equal_values(one: Record, other: Record) -> bool:
    """Whether two records of one slot have one value."""
    if one is other:
        return True
    if one.slot is None or other.slot is None:
        return False
    return same_value(one.slot, other.slot, cosine(one.vector, other.vector))


def cosine(one: F32 | None, other: F32 | None) -> float | None:
    """The cosine of two vectors of unit length; None where one is not at hand."""
    if one is None or other is None or len(one) != len(other):
        return None
    return float(one @ other)

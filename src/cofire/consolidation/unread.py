"""What a step has not read yet: what is new, was edited, or is to be read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cofire.consolidation.night import DAY_US, MINUTE_US, Night
from cofire.store.records import StepRow

NEVER = 1 << 62
_ALL = 1 << 31
IN_FLIGHT_US = MINUTE_US
"""An edit bears the time at which it was asked for, and may be written after a night has begun."""


class Edited(NamedTuple):
    """Numbers of memories whose text was changed, and the moment (µs) before which all that was
    changed has been read once these have been."""

    numbers: tuple[int, ...]
    seen: int


def edited(night: Night, row: StepRow, kinds: Sequence[str], size: int) -> Iterator[Edited]:
    """What was edited since the last run, of what had been read before, `size` at a time in the
    order in which it was edited: whatever stops the step, the next run goes on there."""
    numbers = night.store.told_since(night.space, kinds, after=NEVER, since=row.time, limit=_ALL)
    old = [number for number in numbers if number <= row.seq]
    found = sorted(
        ((one.updated, one.number) for one in night.store.fetch(night.space, old)) if old else ()
    )
    for start in range(0, len(found), size):
        rest = found[start + size : start + size + 1]
        seen = rest[0][0] if rest else night.now - IN_FLIGHT_US
        yield Edited(tuple(sorted(number for _, number in found[start : start + size])), seen)


def new(night: Night, row: StepRow, kinds: Sequence[str], size: int) -> list[int]:
    """The next `size` memories that have not been read at all."""
    return night.store.told_since(night.space, kinds, after=row.seq, since=NEVER, limit=size)


def batches(
    night: Night, row: StepRow, kinds: Sequence[str], size: int
) -> Iterator[tuple[StepRow, Sequence[int]]]:
    """Everything a step has not read yet, `size` memories at a time: what was edited, then what is
    new; each with the step's row once they have been read (`Work.seen` is its time)."""
    for part in list(edited(night, row, kinds, size)):
        row = row._replace(time=part.seen)
        yield row, part.numbers
    row = row._replace(time=night.now - IN_FLIGHT_US)
    while numbers := new(night, row, kinds, size):
        row = row._replace(seq=numbers[-1])
        yield row, numbers


def too_few(night: Night, numbers: Sequence[int], least: int) -> bool:
    """Whether these are too few to tell what they are about, and the first of them has not yet
    waited for company for a day."""
    if len(numbers) >= least:
        return False
    rows = night.store.fetch(night.space, numbers[:1])
    return not rows or night.now - rows[0].recorded <= DAY_US


def again(night: Night, step: str) -> list[StepRow]:
    """Notes of what the step is to read again (`store.ledger.unread`), by number."""
    notes = night.store.steps(night.space)
    return sorted(
        (note for name, note in notes.items() if name.startswith(f"{step}/")),
        key=lambda note: note.revision,
    )

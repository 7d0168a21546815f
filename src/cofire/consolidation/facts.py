"""The step that reads facts by rules alone: few patterns that abstain in doubt, words verbatim."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from cofire.consolidation.drafts import Turn
from cofire.consolidation.filing import plan_drafts
from cofire.consolidation.night import Night, Work
from cofire.consolidation.statements import drafts_of
from cofire.consolidation.turns import MOST_CHARACTERS, read_turns
from cofire.consolidation.unread import IN_FLIGHT_US, again, edited, new
from cofire.store.planning import Applied
from cofire.store.records import StepRow
from cofire.types import Kind

BATCH = 200
"""Turns whose facts are filed in one transaction."""
_SAID = (Kind.EPISODE.value,)


def facts(night: Night, row: StepRow) -> Generator[Work, Applied, None]:
    """Files what people say of themselves in what is new, was edited since the last run, or lost
    the record that said it."""
    for part in list(edited(night, row, _SAID, BATCH)):
        row = row._replace(time=part.seen)
        yield _read(night, row, part.numbers)
    row = row._replace(time=night.now - IN_FLIGHT_US)
    notes = again(night, "facts")
    for start in range(0, len(notes), BATCH):
        some = notes[start : start + BATCH]
        work = _read(night, row, [note.revision for note in some])
        yield replace(work, plan=replace(work.plan, dropped=tuple(note.name for note in some)))
    while numbers := new(night, row, _SAID, BATCH):
        row = row._replace(seq=numbers[-1])
        yield _read(night, row, numbers)


def _nameless(night: Night, turn: Turn) -> bool:
    """Whether nobody can say who spoke: in a project several people are "user"."""
    return turn.speaker is None and night.space.ref.project is not None


def _read(night: Night, row: StepRow, numbers: Sequence[int]) -> Work:
    turns = [
        turn
        for turn in read_turns(night.store, night.space, numbers)
        if len(turn.content) <= MOST_CHARACTERS and not _nameless(night, turn)
    ]
    drafts = [draft for turn in turns for draft in drafts_of(turn)]
    plan, counts = plan_drafts(night, turns, drafts)
    counts["turns read"] += len(turns)
    return Work(plan=plan, row=row, counts=counts, last=False, seen=row.time)

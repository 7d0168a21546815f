"""The step that finds out who and what is spoken of: concepts, as nodes of the graph.

A concept is a name and its spellings, with links to the turns that mention it. Rules read every
turn; where there is a language model it is asked about the same turns and adds topics, other names
and how concepts belong together. What it says counts only where the words stand in the turns that
it cites.

What a concept is called is a function of its names and of the turns that it rests on
(`concepts.mentioned`), so it is told anew whenever those change: a name goes with the last turn
that used it. Concepts are internal: they have neither terms nor vector, and no recall returns them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace

from cofire.consolidation.abstracting import BATCH, readable
from cofire.consolidation.asking import Asked, ask
from cofire.consolidation.concept_picture import Picture
from cofire.consolidation.distilling import troubles
from cofire.consolidation.drafts import Turn
from cofire.consolidation.night import Night, Work
from cofire.consolidation.prompts import load
from cofire.consolidation.turns import read_turns, trusted
from cofire.consolidation.unread import IN_FLIGHT_US, again, edited, new, too_few
from cofire.store.planning import Applied
from cofire.store.records import StepRow
from cofire.types import Kind

TRIES = 3
"""How often a plan is made whose turns are edited or deleted before it is carried out."""
_STEP = "concepts"
_ASKED = "concepts asked"
_SAID = (Kind.EPISODE.value,)

Working = Generator[Work, Applied, None]


def concepts(night: Night, row: StepRow) -> Working:
    """Reads turns that are new or were edited since the last run: by rules, then with a model,
    which may be there in some nights only and has a cursor of its own."""
    last_asked = _last_asked(night)
    for part in list(edited(night, row, _SAID, BATCH)):
        row = row._replace(time=part.seen)
        asked = [number for number in part.numbers if number <= last_asked]
        notes = tuple(StepRow(f"{_STEP}/{one}", 0, one, one, night.now) for one in asked)
        yield from _read(night, row, part.numbers, notes=notes)
    row = row._replace(time=night.now - IN_FLIGHT_US)
    for note in again(night, _STEP):
        dropped = (note.name,) if night.generator is None else ()
        yield from _read(night, row, _noted(night, row, note), dropped=dropped)
    while numbers := new(night, row, _SAID, BATCH):
        if too_few(night, numbers, night.rule.turns_per_window):
            break  # more may come
        row = row._replace(seq=numbers[-1])
        yield from _read(night, row, numbers)
    if night.generator is not None:
        yield from _with_model(night, row)


def _last_asked(night: Night) -> int:
    """The last turn that a model was asked about."""
    return night.store.steps(night.space).get(_ASKED, StepRow(_ASKED)).seq


def _noted(night: Night, row: StepRow, note: StepRow) -> list[int]:
    """The turns that a note picture."""
    size = max(night.rule.turns_per_request, 1)
    numbers = new(night, row._replace(seq=note.revision - 1), _SAID, size)
    return [number for number in numbers if number <= note.seq]


def _read(
    night: Night,
    row: StepRow,
    numbers: Sequence[int],
    *,
    notes: tuple[StepRow, ...] = (),
    dropped: tuple[str, ...] = (),
) -> Working:
    """Reads turns by rules. What was edited or deleted before the plan was carried out takes no
    part: then the rest is planned anew."""
    for _ in range(TRIES):
        turns = readable(read_turns(night.store, night.space, numbers))
        picture = Picture(night)
        picture.forget(turns)
        picture.found_by_rules(trusted(turns))
        plan = replace(picture.plan(), notes=notes, dropped=dropped)
        applied = yield Work(
            plan=plan, row=row, counts={"turns read": len(turns)}, last=False, seen=row.time
        )
        if None not in applied.filed:
            return


def _with_model(night: Night, row: StepRow) -> Working:
    """Asks about what is to be asked again, then about what was not asked about yet."""
    size = night.rule.turns_per_request
    for note in again(night, _STEP):
        numbers = _noted(night, row, note)
        if (yield from _ask(night, row, numbers, note)):
            return
    last = _last_asked(night)
    while True:
        numbers = [
            number
            for number in new(night, row._replace(seq=last), _SAID, size)
            if number <= row.seq
        ]
        if not numbers:
            return
        last = numbers[-1]
        cursor = StepRow(_ASKED, seq=last, time=night.now)
        if (yield from _ask(night, row, numbers, cursor=cursor)):
            return


def _ask(
    night: Night,
    row: StepRow,
    numbers: Sequence[int],
    note: StepRow | None = None,
    cursor: StepRow | None = None,
) -> Generator[Work, Applied, bool]:
    """One request's worth of turns; whether to stop afterwards. `note`: of an earlier try.
    `cursor`: how far the asking has come then."""
    turns = trusted(readable(read_turns(night.store, night.space, numbers)))
    asked = Asked()
    if turns and night.generator is not None:
        asked = ask(night.generator, load("concepts"), turns, night.budget)
    counts = troubles(asked)
    left = [turn.number for turn in turns if turn.label in asked.unanswered]
    tried = (0 if note is None else note.period) + (asked.stopped is None)
    notes = () if cursor is None else (cursor,)
    if left and tried < night.rule.tries:
        notes = (*notes, StepRow(f"{_STEP}/{left[0]}", tried, left[0], left[-1], night.now))
    dropped = () if note is None else (note.name,)
    for _ in range(TRIES):
        told = _unchanged(night, turns)
        picture = Picture(night)
        checked = picture.found_by_model(told, asked.concepts, asked.relations)
        plan = replace(picture.plan(), notes=notes, dropped=dropped)
        applied = yield Work(
            plan=plan, row=row, counts={**counts, **checked}, last=False, seen=row.time
        )
        counts = Counter()
        if None not in applied.filed:
            break
    if asked.error is not None:
        raise asked.error
    return asked.stopped is not None


def _unchanged(night: Night, turns: Sequence[Turn]) -> list[Turn]:
    """The turns that are still as they were when the model was asked."""
    now = {
        row.number: row.version
        for row in night.store.fetch(night.space, [turn.number for turn in turns])
    }
    return [turn for turn in turns if now.get(turn.number) == turn.version]

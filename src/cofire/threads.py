"""Working memory: advancing and closing goals and threads, and capturing them at a session's end.

Opening one is remembering a goal or a thread. See `lifecycle` for where their state is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from cofire import lifecycle, remembering, views
from cofire.consolidation.working import listed
from cofire.encoding.text import fold
from cofire.errors import InputError
from cofire.lifecycle import CHECKPOINT, OPEN, WORKING
from cofire.store.planning import Plan
from cofire.store.records import ItemRow, SpaceInfo
from cofire.types import (
    Checkpoint,
    Kind,
    LinkType,
    Message,
    Receipt,
    Thread,
    ThreadChange,
    ThreadState,
    from_micros,
    to_micros,
)
from cofire.visible import missing
from cofire.workings import Workings

IMPORTANCE = 6
"""Of the summary of a session: worth a little more than a turn of it."""
ENDED_WITH = 0.5
"""Strength of the links from a summary to what was open then: too weak to bring each other along
at the next session's start, which asks by itself what is open."""


def threads(
    workings: Workings, states: Collection[ThreadState], kinds: Collection[Kind], now: datetime
) -> tuple[Thread, ...]:
    """See `Memory.threads`."""
    moment = to_micros(now)
    found = [
        _thread(one.space, one.item, moment)
        for one in listed(workings.store, workings.spaces.all(), kinds)
        if lifecycle.state_of(one.item, moment) in states
    ]
    return tuple(sorted(found, key=lambda one: (one.touched, one.item.number), reverse=True))


def _thread(space: SpaceInfo, row: ItemRow, now: int) -> Thread:
    """A stored goal or thread as the public value."""
    log = lifecycle.log_of(row)
    history = [
        ThreadChange(state=change.state, time=from_micros(change.time), note=change.note)
        for change in log
    ]
    state = lifecycle.state_of(row, now)
    if state is not log[-1].state and row.valid_to is not None:  # consolidation saw its end
        history.append(ThreadChange(state=state, time=from_micros(row.valid_to)))
    item = views.item(space, row)
    return Thread(
        id=item.id,
        kind=item.kind,
        content=lifecycle.statement_of(row),
        state=state,
        opened=from_micros(log[0].time),
        touched=from_micros(lifecycle.touched(row)),
        note=next((change.note for change in reversed(log) if change.note is not None), None),
        history=tuple(history),
        item=item,
    )


def change(
    workings: Workings, id: str, state: ThreadState, note: str | None, now: datetime
) -> Thread:
    """Brings a goal or thread into a state, with a note. Raises NotFoundError, InputError."""
    said = None if note is None else workings.encoder.clean(note)
    remembering.update(workings, id, partial(_changes, id, state, to_micros(now), said), now)
    space, number = workings.spaces.locate(id)
    row = workings.store.get(space, number)
    if row is None:
        raise missing(id)
    return _thread(space, row, to_micros(now))


def _changes(
    id: str, state: ThreadState, time: int, note: str | None, row: ItemRow
) -> dict[str, Any]:
    if row.kind not in WORKING:
        raise InputError(f"memory {id} is a {row.kind}; only goals and threads have a lifecycle")
    return lifecycle.changed(row, state, time, note)


def checkpoint(
    workings: Workings,
    summary: str | None,
    *,
    goals: Sequence[str],
    threads: Sequence[str],
    session: str | None,
    project: str | None,
    now: datetime,
) -> Checkpoint:
    """See `Memory.checkpoint`."""
    space = workings.spaces.target(project)
    moment = to_micros(now)
    known = {
        (one.item.kind, fold(lifecycle.statement_of(one.item))): one.item
        for one in listed(workings.store, [space], WORKING)
        if lifecycle.state_of(one.item, moment) is not ThreadState.CLOSED
        and not one.item.untrusted  # what comes from outside must not stand for what is said here
    }
    wanted = [
        (kind, text)
        for kind, texts in ((Kind.GOAL, goals), (Kind.THREAD, threads))
        for text in dict.fromkeys(map(workings.encoder.clean, texts))
    ]
    for kind, text in wanted:
        row = known.get((kind.value, fold(text)))
        if row is not None:
            _keep_open(workings, row, now)
    new = [one for one in wanted if (one[0].value, fold(one[1])) not in known]
    waiting = len(_open_in(workings, space, moment)) + len(new)
    receipt = _store(
        workings, project, summary or _counted(session, waiting), new, session=session, now=now
    )
    space, number = workings.spaces.locate(receipt.ids[0])
    rows = _open_in(workings, space, moment)
    links = tuple((number, row.number, LinkType.ANNOTATES.value, ENDED_WITH) for row in rows)
    if links:
        workings.store.apply(space, Plan(joins=links), now=moment)
    row = workings.store.get(space, number)
    if row is None:
        raise missing(receipt.ids[0])
    still = [_thread(space, one, moment) for one in rows]
    still.sort(key=lambda one: (one.touched, one.item.number), reverse=True)
    return Checkpoint(
        id=receipt.ids[0],
        time=from_micros(row.time),
        session=row.session,
        summary=row.content,
        open=tuple(still),
        warnings=receipt.warnings,
    )


def _open_in(workings: Workings, space: SpaceInfo, now: int) -> list[ItemRow]:
    """The goals and threads of a space that are open."""
    return [
        one.item
        for one in listed(workings.store, [space], WORKING)
        if lifecycle.state_of(one.item, now) in OPEN
    ]


def _keep_open(workings: Workings, row: ItemRow, now: datetime) -> None:
    """A goal that was named again: it is not stale, nor merely inferred, any more."""
    kept = ThreadState.ADVANCED
    state = kept if lifecycle.state_of(row, to_micros(now)) is kept else ThreadState.OPENED
    change(workings, views.public_id(row.uid), state, None, now)


def _counted(session: str | None, count: int) -> str:
    """What is kept of a session of which nobody said more. It repeats no text that may have to be
    deleted one day."""
    name = "The session" if session is None else f"The session {session}"
    what = "nothing" if not count else f"{count} goal or thread" if count == 1 else (
        f"{count} goals and threads"
    )  # fmt: skip
    return f"{name} ended with {what} open."


def _store(
    workings: Workings,
    project: str | None,
    summary: str,
    new: Sequence[tuple[Kind, str]],
    *,
    session: str | None,
    now: datetime,
) -> Receipt:
    """The summary and the goals and threads that it opens, as one transaction."""
    ending = Message(
        content=summary,
        time=now,
        session=session,
        importance=IMPORTANCE,
        metadata={CHECKPOINT: True},
    )
    opened = [Message(content=text, kind=kind, time=now) for kind, text in new]
    messages = [ending, *opened]
    return remembering.store_batch(workings, project, messages, now, range(len(messages)))

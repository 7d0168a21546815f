"""The lifecycle of goals and threads, which are working memory: opened → advanced → closed | stale.

Where one stands is kept in two reserved names of its metadata, so that it is stored, exported,
encrypted and deleted with the memory itself:

    working_state   the state, one of `ThreadState`; without it the thread is as it was opened
    working_log     what happened, oldest first: {"state", "time" (µs), "note" (or null)}

The content is what was opened and, on lines of its own below, the latest note, so that recall finds
both; each noted change is a version of the text. An *inferred* one that consolidation saw the end
of has an end of validity, and is closed by that alone: it opens again if what ended it is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cofire.store.records import ItemRow
from cofire.types import Kind, Message, ThreadState, to_micros

WORKING = (Kind.GOAL, Kind.THREAD)
"""Kinds of working memory."""
STATE = "working_state"
LOG = "working_log"
CHECKPOINT = "working_checkpoint"
"""Name of the metadata that mark the summary of a session's end, with the value True."""
OPEN = (ThreadState.OPENED, ThreadState.ADVANCED, ThreadState.INFERRED)
"""States of what still waits for something to be done."""
RESERVED = "working_"
"""Names of metadata that begin so are Cofire's own: nobody else gives or takes them."""
_FIRST, _LAST = (
    to_micros(datetime.min.replace(tzinfo=UTC)),
    to_micros(datetime.max.replace(tzinfo=UTC)),
)
MOST_CHANGES = 100
"""Changes kept of one thread: how it began, and the last ones."""


class Change(NamedTuple):
    """A change of state at `time` (µs)."""

    state: ThreadState
    time: int
    note: str | None = None


def reserved(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What of some metadata is Cofire's own."""
    return {name: value for name, value in metadata.items() if name.startswith(RESERVED)}


def unreserved(message: Message) -> Message:
    """A message of a file from elsewhere, without what is Cofire's own."""
    kept = {
        name: value for name, value in message.metadata.items() if not name.startswith(RESERVED)
    }
    return message if len(kept) == len(message.metadata) else replace(message, metadata=kept)


def log_of(row: ItemRow) -> tuple[Change, ...]:
    """What happened to a thread, oldest first: never empty. What is no log is passed over."""
    told = row.metadata.get(LOG)
    found = [_change(one) for one in told] if isinstance(told, list) else []
    changes = tuple(change for change in found if change is not None)
    return changes or (Change(_state(row.metadata.get(STATE)) or ThreadState.OPENED, row.time),)


def _change(told: Any) -> Change | None:
    if not isinstance(told, Mapping):
        return None
    state, time, note = _state(told.get("state")), told.get("time"), told.get("note")
    if state is None or type(time) is not int or not _FIRST <= time <= _LAST:
        return None
    return Change(state, time, note if isinstance(note, str) else None)


def _state(told: Any) -> ThreadState | None:
    return ThreadState(told) if isinstance(told, str) and told in _STATES else None


_STATES = frozenset(state.value for state in ThreadState)


def state_of(row: ItemRow, now: int) -> ThreadState:
    """The state of a thread at `now` (µs)."""
    if row.valid_to is not None and row.valid_to <= now:
        return ThreadState.CLOSED
    return _state(row.metadata.get(STATE)) or ThreadState.OPENED


def touched(row: ItemRow) -> int:
    """When anybody last did something about a thread (µs)."""
    return max(row.time, row.valid_to or row.time, *(change.time for change in log_of(row)))


def statement_of(row: ItemRow) -> str:
    """What was opened: the content without the latest note."""
    note = _latest_note(log_of(row))
    ending = "" if note is None else f"\n{note}"
    return row.content.removesuffix(ending) if ending else row.content


def _latest_note(log: Sequence[Change]) -> str | None:
    return next((change.note for change in reversed(log) if change.note is not None), None)


def changed(row: ItemRow, state: ThreadState, time: int, note: str | None) -> dict[str, Any]:
    """The fields of a thread after a change: its content, and all its metadata."""
    log = [*log_of(row), Change(state, time, note)]
    if len(log) > 2 and log[-2].state == state and log[-2].note is None and note is None:
        del log[-2]  # said again, nothing more
    if len(log) > MOST_CHANGES:
        del log[1 : len(log) - MOST_CHANGES + 1]
    latest = _latest_note(log)
    statement = statement_of(row)
    return {
        "content": statement if latest is None else f"{statement}\n{latest}",
        "metadata": marked(row.metadata, log),
    }


def marked(metadata: Mapping[str, Any], log: Sequence[Change]) -> dict[str, Any]:
    """Metadata that say where a thread stands: as the last change of `log` left it."""
    return {
        **metadata,
        STATE: log[-1].state.value,
        LOG: [
            {"state": change.state.value, "time": change.time, "note": change.note}
            for change in log
        ],
    }

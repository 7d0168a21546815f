"""Taking memories out of the learning log, so that the past reads as if they had never been."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, replace

from sqlalchemy import bindparam, select

from cofire.dynamics.plasticity import Rule
from cofire.store.events import (
    LEARNING,
    add_events,
    events_about,
    remove_events,
    rewrite_event,
)
from cofire.store.folding import Pair, moves_of, taken_link
from cofire.store.records import EventRecord
from cofire.store.schema import items
from cofire.store.session import Query, Session
from cofire.store.strengths import CUE_KIND
from cofire.store.writing import Turn

CUES_AMONG = Query(
    lambda flavour: select(items.c.number).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.number.in_(flavour.members("numbers")),
        items.c.kind == CUE_KIND,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What follows from a redaction.

    touched: whether the log changed. cues: that no memory is left of; to be deleted too. pairs:
    whose strengths must be settled anew once the rows are gone, and those that went with one end,
    for the sake of the other. rewritten: events that may bear no evidence any more.
    """

    touched: bool = False
    cues: tuple[int, ...] = ()
    pairs: frozenset[Pair] = frozenset()
    rewritten: frozenset[int] = frozenset()


def redact(session: Session, turn: Turn, rule: Rule, numbers: Collection[int]) -> Redaction:
    """Takes memories (or cues) out of every event.

    An event that speaks of nobody any more goes, and so do those that took away a link of theirs.
    A cue exists from the first event in which something answered it: what came before loses it,
    and a cue of which no such event is left is to be deleted. Leaves an event "redact" with a time
    and nothing else.
    """
    here = {"tenant": turn.tenant, "space": turn.space}
    gone = frozenset(numbers)
    former = events_about(session, here, gone)
    if not former:
        return Redaction()
    cues = {event.cue for event in former.values() if event.cue is not None} - gone
    former.update(events_about(session, here, cues))
    left = {seq: _without(event, gone) for seq, event in former.items()}
    lost = _leave_out_unanswered(rule, left, cues)
    living = {row[0] for row in session.all(CUES_AMONG, numbers=session.pack(sorted(lost)), **here)}
    changed = {seq: event for seq, event in sorted(left.items()) if event != former[seq]}
    add_events(session, turn, [_notice(max(event.time for event in changed.values()))])
    pairs: set[Pair] = set()
    rewritten: set[int] = set()
    silent: list[EventRecord] = []
    for seq, event in changed.items():
        pairs.update(pair for pair, _, _ in moves_of(rule, former[seq]))
        pairs.update(_taken(former[seq]))
        if _speaks(rule, event):
            rewrite_event(session, turn, event)
            rewritten.add(seq)
        else:
            silent.append(former[seq])
    remove_events(session, turn, silent)
    apart = gone | lost
    return Redaction(
        touched=True,
        cues=tuple(sorted(living)),
        # A link that goes leaves a place at its other end, which an evicted one may have had.
        pairs=frozenset(pair for pair in pairs if not apart.issuperset(pair)),
        rewritten=frozenset(rewritten),
    )


def _taken(event: EventRecord) -> Iterable[Pair]:
    pair = taken_link(event)
    return () if event.type in LEARNING or pair is None else (pair,)


def _without(event: EventRecord, gone: Set[int]) -> EventRecord:
    """The event without what is gone; without any items if it took away a link of theirs."""
    pair = None if event.type in LEARNING else taken_link(event)
    cue = None if event.cue in gone else event.cue
    if pair is not None and not gone.isdisjoint(pair):
        return replace(event, items=(), via=(), cue=None)
    return replace(
        event,
        items=tuple(item for item in event.items if item[0] not in gone),
        via=tuple(part for part in event.via if gone.isdisjoint(part)),
        cue=cue,
    )


def _leave_out_unanswered(
    rule: Rule, left: dict[int, EventRecord], cues: Collection[int]
) -> frozenset[int]:
    """Takes each cue out of the events before the first in which a memory answered it; returns
    those that nothing answers any more."""
    unanswered = set(cues)
    for seq in sorted(left):
        event = left[seq]
        if event.cue not in unanswered:
            continue
        if any(cue and credit > 0.0 for _, cue, credit in moves_of(rule, event)):
            unanswered.discard(event.cue)
        else:
            left[seq] = _without(event, {event.cue})
    return frozenset(unanswered)


def _speaks(rule: Rule, event: EventRecord) -> bool:
    """Whether an event still says anything of a link or a cue."""
    if event.type in LEARNING:
        return bool(moves_of(rule, event))
    return bool(event.items) or (event.type == "evict" and event.cue is not None)


def _notice(time: int) -> EventRecord:
    return EventRecord(
        recall=None, type="redact", items=(), outcome=None, signal=None, principal=None, time=time
    )

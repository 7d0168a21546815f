"""The learning log as rows: appending, finding, rewriting. Nothing here knows what they mean."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Select, bindparam, delete, func, insert, or_, select, union, update

from cofire.store.records import EventRecord, canonical_json
from cofire.store.rows import signed, unsigned
from cofire.store.schema import event_items, events
from cofire.store.session import Query, Row, Session
from cofire.store.writing import Turn

LEARNING = frozenset({"feedback", "strengthen"})
"""Types of events that bear evidence; "prune" takes a link away, the others only report."""

COLUMNS = (
    events.c.seq,
    events.c.recall,
    events.c.type,
    events.c.credits,
    events.c.outcome,
    events.c.signal,
    events.c.principal,
    events.c.time,
    events.c.question,
    events.c.cue,
    events.c.trusted,
)


def _here() -> Select[Row]:
    return select(*COLUMNS).where(
        events.c.tenant == bindparam("tenant"), events.c.space == bindparam("space")
    )


LAST_EVENT = Query(
    lambda _: select(func.coalesce(func.max(events.c.seq), 0)).where(
        events.c.tenant == bindparam("tenant"), events.c.space == bindparam("space")
    )
)
COUNT_EVIDENCE = Query(
    lambda _: select(func.count()).where(
        events.c.tenant == bindparam("tenant"),
        events.c.space == bindparam("space"),
        or_(events.c.type == "feedback", events.c.type == "strengthen"),
    )
)
ADD_EVENT = Query(lambda _: insert(events))
EVENT_COLUMNS = tuple(column.name for column in events.columns)
ADD_EVENT_ITEM = Query(lambda _: insert(event_items))
EVENT_ITEM_COLUMNS = tuple(column.name for column in event_items.columns)
ALL_EVENTS = Query(lambda _: _here().order_by(events.c.seq))
# Without reports that one link was evicted: a fold finds those out by itself.
ALL_TO_FOLD = Query(
    lambda _: (
        _here()
        .where(or_(events.c.type != "evict", events.c.credits == "[]"))
        .order_by(events.c.seq)
    )
)
# And those reports alone, in short.
ALL_EVICTED = Query(
    lambda _: (
        select(events.c.seq, events.c.credits, events.c.time, events.c.cue)
        .where(
            events.c.tenant == bindparam("tenant"),
            events.c.space == bindparam("space"),
            events.c.type == "evict",
            events.c.credits != "[]",
        )
        .order_by(events.c.seq)
    )
)
EVENT_PAGE = Query(
    lambda _: (
        _here()
        .where(events.c.seq > bindparam("after"))
        .order_by(events.c.seq)
        .limit(bindparam("row_limit"))
    )
)
ASKED_BY = Query(
    lambda _: _here().where(
        events.c.question == bindparam("question"), events.c.principal == bindparam("principal")
    )
)
ASKED_BY_NOBODY = Query(
    lambda _: _here().where(
        events.c.question == bindparam("question"), events.c.principal.is_(None)
    )
)
ABOUT_SEQS = Query(
    lambda flavour: union(
        select(event_items.c.seq).where(
            event_items.c.tenant == bindparam("tenant"),
            event_items.c.space == bindparam("space"),
            event_items.c.number.in_(flavour.members("numbers")),
        ),
        select(events.c.seq).where(
            events.c.tenant == bindparam("tenant"),
            events.c.space == bindparam("space"),
            events.c.cue.in_(flavour.members("numbers")),
        ),
    ).limit(bindparam("row_limit"))
)
EVERY = 2**62
"""More events than there can be."""
BY_SEQ = Query(
    lambda flavour: _here().where(events.c.seq.in_(flavour.members("seqs"))).order_by(events.c.seq)
)
ENDS_OF_CUES = Query(
    lambda flavour: _here().where(
        events.c.cue.in_(flavour.members("numbers")),
        events.c.type == "evict",
        events.c.credits == "[]",
    )
)
# Groups of events among which something may have been counted before.
REPEATED = Query(
    lambda _: (
        select(events.c.question, events.c.principal, events.c.signal)
        .where(
            events.c.tenant == bindparam("tenant"),
            events.c.space == bindparam("space"),
            events.c.question.is_not(None),
        )
        .group_by(events.c.question, events.c.principal, events.c.signal)
        .having(func.count() > 1)
    )
)
REWRITE = Query(
    lambda _: (
        update(events)
        .where(
            events.c.tenant == bindparam("in_tenant"),
            events.c.space == bindparam("in_space"),
            events.c.seq == bindparam("at_seq"),
        )
        .values(credits=bindparam("new_credits"), cue=bindparam("new_cue"))
    )
)
REMOVE_EVENT = Query(
    lambda _: delete(events).where(
        events.c.tenant == bindparam("tenant"),
        events.c.space == bindparam("space"),
        events.c.seq == bindparam("seq"),
    )
)
REMOVE_EVENT_ITEM = Query(
    lambda _: delete(event_items).where(
        event_items.c.tenant == bindparam("tenant"),
        event_items.c.space == bindparam("space"),
        event_items.c.number == bindparam("number"),
        event_items.c.seq == bindparam("seq"),
    )
)


def event_from_row(row: Row) -> EventRecord:
    """An event from a row of `COLUMNS`."""
    return _event(row, json.loads(row[3]))


def events_from_rows(rows: Sequence[Row]) -> list[EventRecord]:
    """Events from rows of `COLUMNS`."""
    return list(map(_event, rows, read_together([row[3] for row in rows])))


def read_together(texts: Sequence[str]) -> list[list[Any]]:
    """The `credits` of many events; at one go, which takes half the time."""
    found: list[list[Any]] = json.loads(f"[{','.join(texts)}]")
    return found


def _event(row: Row, credits_: list[list[Any]]) -> EventRecord:
    seq, recall, type_, _, outcome, signal, principal, time, question, cue, trusted = row
    return EventRecord(
        seq=seq,
        recall=recall,
        type=type_,
        items=tuple([(part[0], float(part[1])) for part in credits_]),
        outcome=outcome,
        signal=signal,
        principal=principal,
        time=time,
        question=None if question is None else unsigned(question),
        cue=cue,
        trusted=trusted != 0,
        via=tuple([(part[0], part[2]) for part in credits_ if len(part) == 3]),
    )


def _credits_text(event: EventRecord) -> str:
    if not event.via:
        return canonical_json(event.items)
    via = dict(event.via)
    return canonical_json(
        [
            [number, credit, via[number]] if number in via else [number, credit]
            for number, credit in event.items
        ]
    )


def add_events(
    session: Session, turn: Turn, new: Sequence[EventRecord], numbers: Iterable[int] | None = None
) -> int:
    """Appends events, giving sequence numbers; returns the last one in use.

    They are found again by their items, or by those that are among `numbers` if that is given.
    """
    here = (turn.tenant, turn.space)
    last: int = session.all(LAST_EVENT, tenant=turn.tenant, space=turn.space)[0][0]
    rows: list[Row] = []
    mentioned: list[Row] = []
    known = None if numbers is None else frozenset(numbers)
    for seq, event in enumerate(new, last + 1):
        question = None if event.question is None else signed(event.question)
        rows.append(
            (
                *here,
                seq,
                event.recall,
                event.type,
                _credits_text(event),
                event.outcome,
                event.signal,
                event.principal,
                event.time,
                question,
                event.cue,
                int(event.trusted),
            )
        )
        mentioned += [
            (*here, number, seq)
            for number in {number for number, _ in event.items}
            if number != event.cue and (known is None or number in known)
        ]
    session.many(ADD_EVENT, rows, EVENT_COLUMNS)
    session.many(ADD_EVENT_ITEM, mentioned, EVENT_ITEM_COLUMNS)
    return last + len(rows)


def events_about(
    session: Session, here: dict[str, int], numbers: Iterable[int]
) -> dict[int, EventRecord]:
    """By sequence number, every event that names one of these memories or cues."""
    return events_by_seq(session, here, seqs_about(session, here, numbers))


def seqs_about(
    session: Session, here: dict[str, int], numbers: Iterable[int], most: int = EVERY
) -> list[int]:
    """The sequence numbers of events that name one of these memories or cues, `most` at most."""
    wanted = session.pack(sorted(numbers))
    return [row[0] for row in session.all(ABOUT_SEQS, numbers=wanted, row_limit=most, **here)]


def events_by_seq(
    session: Session, here: dict[str, int], seqs: Sequence[int]
) -> dict[int, EventRecord]:
    """Events by sequence number."""
    if not seqs:
        return {}
    rows = session.all(BY_SEQ, seqs=session.pack(seqs), **here)
    return {event.seq: event for event in events_from_rows(rows)}


def asked_before(
    session: Session, here: dict[str, int], question: int, principal: str | None
) -> list[EventRecord]:
    """The events of this question (a hash) by this principal, oldest first."""
    if principal is None:
        rows = session.all(ASKED_BY_NOBODY, question=signed(question), **here)
    else:
        rows = session.all(ASKED_BY, question=signed(question), principal=principal, **here)
    return sorted((event_from_row(row) for row in rows), key=lambda event: event.seq)


def ends_of_cues(session: Session, here: dict[str, int], cues: Iterable[int]) -> list[EventRecord]:
    """The events that took away these cues because there were too many."""
    rows = session.all(ENDS_OF_CUES, numbers=session.pack(sorted(cues)), **here)
    return [event_from_row(row) for row in rows]


def rewrite_event(session: Session, turn: Turn, event: EventRecord) -> None:
    """Writes an event's items, via and cue anew."""
    session.run(
        REWRITE,
        in_tenant=turn.tenant,
        in_space=turn.space,
        at_seq=event.seq,
        new_credits=_credits_text(event),
        new_cue=event.cue,
    )


def remove_events(session: Session, turn: Turn, gone: Iterable[EventRecord]) -> None:
    """Deletes events, which are found no more by what is left of their items."""
    here = (turn.tenant, turn.space)
    ended = list(gone)
    named = [(*here, number, event.seq) for event in ended for number, _ in event.items]
    session.many(REMOVE_EVENT_ITEM, named, EVENT_ITEM_COLUMNS)
    session.many(REMOVE_EVENT, [(*here, event.seq) for event in ended], ("tenant", "space", "seq"))

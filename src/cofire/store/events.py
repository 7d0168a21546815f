"""The learning log as rows: appending, finding, rewriting. Nothing here knows what they mean."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

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
    )
)
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
REMOVE_EVENT_ITEMS = Query(
    lambda flavour: delete(event_items).where(
        event_items.c.tenant == bindparam("tenant"),
        event_items.c.space == bindparam("space"),
        event_items.c.number.in_(flavour.members("numbers")),
        event_items.c.seq == bindparam("seq"),
    )
)


def event_from_row(row: Row) -> EventRecord:
    """An event from a row of `COLUMNS`."""
    seq, recall, type_, text, outcome, signal, principal, time, question, cue, trusted = row
    credits_ = json.loads(text)
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
    wanted = session.pack(sorted(numbers))
    seqs = [row[0] for row in session.all(ABOUT_SEQS, numbers=wanted, **here)]
    if not seqs:
        return {}
    rows = session.all(BY_SEQ, seqs=session.pack(seqs), **here)
    return {row[0]: event_from_row(row) for row in rows}


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


def remove_event(session: Session, turn: Turn, event: EventRecord) -> None:
    """Deletes an event, which is found no more by what is left of its items."""
    here = {"tenant": turn.tenant, "space": turn.space}
    numbers = session.pack(sorted(number for number, _ in event.items))
    session.run(REMOVE_EVENT_ITEMS, numbers=numbers, seq=event.seq, **here)
    session.run(REMOVE_EVENT, seq=event.seq, **here)

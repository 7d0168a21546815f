"""Cues: questions that something answered, kept as memories of a kind that is never returned."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select, text, update

from cofire.dynamics.plasticity import Rule
from cofire.store.events import add_events
from cofire.store.forgetting import remove_rows
from cofire.store.records import EventRecord, NewItem
from cofire.store.rows import (
    ATTRIBUTE_COLUMNS,
    ITEM_COLUMNS,
    TAG_COLUMNS,
    VECTOR_COLUMNS,
    as_parameters,
    attribute_rows,
    tag_rows,
    whole_row,
)
from cofire.store.schema import items
from cofire.store.session import Query, Session
from cofire.store.strengths import CUE_KIND
from cofire.store.writing import (
    ADD_ATTRIBUTE,
    ADD_ITEM,
    ADD_TAG,
    ADD_VECTOR,
    RETURN_NUMBERS,
    Turn,
    vector_row,
)

MOST_CUES_EVICTED = 100
"""Cues that one call takes away at most: a rule that keeps fewer is caught up with in steps."""


USE_CUE = Query(
    lambda _: (
        update(items)
        .where(
            items.c.tenant == bindparam("in_tenant"),
            items.c.space == bindparam("in_space"),
            items.c.number == bindparam("at_number"),
        )
        .values(updated=bindparam("used"))
    )
)
# The condition is written as the index's own, or SQLite would not use it.
CUES_USED_BEFORE = Query(
    lambda _: (
        select(items.c.number)
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            text(f"items.kind = {CUE_KIND}"),
            items.c.number != bindparam("but"),
        )
        .order_by(items.c.updated.desc(), items.c.number.desc())
        .limit(bindparam("row_limit"))
        .offset(bindparam("newer"))
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCue:
    """The question as a memory of kind "cue", or the number of the cue that it is much like."""

    item: NewItem
    merge_into: int | None = None


def keep_cue(session: Session, turn: Turn, item: NewItem, record: EventRecord, now: int) -> None:
    """Stores the new cue, or notes that the former one was used, or gives its number back."""
    if record.cue != turn.first:
        session.run(RETURN_NUMBERS, in_tenant=turn.tenant, in_space=turn.space, last=turn.first - 1)
        if record.cue is not None:
            session.run(
                USE_CUE,
                in_tenant=turn.tenant,
                in_space=turn.space,
                at_number=record.cue,
                used=now,
            )
        return
    number = turn.first
    row = as_parameters(whole_row(turn.tenant, turn.space, number, turn.revision, item))
    session.many(ADD_ITEM, [tuple({**row, "updated": now}.values())], ITEM_COLUMNS)
    if item.vector is not None:
        session.many(ADD_VECTOR, [vector_row(turn, number, item.vector)], VECTOR_COLUMNS)
    session.many(ADD_TAG, tag_rows(turn.tenant, turn.space, number, item), TAG_COLUMNS)
    attributes = attribute_rows(turn.tenant, turn.space, number, item)
    session.many(ADD_ATTRIBUTE, attributes, ATTRIBUTE_COLUMNS)


def evict_cues(session: Session, turn: Turn, rule: Rule, record: EventRecord) -> tuple[int, ...]:
    """Takes away the cues used longest ago, if there are too many; returns their numbers."""
    here = {"tenant": turn.tenant, "space": turn.space}
    rows = session.all(
        CUES_USED_BEFORE,
        but=record.cue,
        newer=rule.most_cues - 1,
        row_limit=MOST_CUES_EVICTED,
        **here,
    )
    if not rows:
        return ()
    gone = tuple(row[0] for row in rows)
    remove_rows(session, turn, gone)
    add_events(session, turn, [_end_of_cue(number, record) for number in gone])
    return gone


def _end_of_cue(cue: int, record: EventRecord) -> EventRecord:
    return EventRecord(
        recall=record.recall,
        type="evict",
        items=(),
        outcome=None,
        signal=None,
        principal=record.principal,
        time=record.time,
        cue=cue,
    )

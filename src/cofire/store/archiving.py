"""Archiving: out of the active graph and of recall, reversibly."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, select, update

from cofire.errors import InputError
from cofire.store.deriving import DERIVED_BY_NUMBER
from cofire.store.records import KIND_CODES, STATES, SpaceInfo
from cofire.store.schema import items, links, sources
from cofire.store.session import Query, Session, row_change
from cofire.store.writing import Turn, take_turn
from cofire.types import Kind

SET_ARCHIVED = Query(
    lambda flavour: (
        update(items)
        .where(
            items.c.tenant == bindparam("in_tenant"),
            items.c.space == bindparam("in_space"),
            items.c.number.in_(flavour.members("numbers")),
        )
        .values(archived=bindparam("new_archived"), revision=bindparam("new_revision"))
    )
)
SET_IMPORTANCE = row_change(items, "importance", "revision")
PARTS = Query(
    lambda flavour: select(items.c.number, items.c.parent, items.c.archived).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.number.in_(flavour.members("numbers"))
        | items.c.parent.in_(flavour.members("numbers")),
    )
)
GISTS_ON = Query(
    lambda flavour: (
        select(sources.c.number)
        .select_from(
            sources.join(
                items,
                (items.c.tenant == sources.c.tenant)
                & (items.c.space == sources.c.space)
                & (items.c.number == sources.c.number),
            )
        )
        .where(
            sources.c.tenant == bindparam("tenant"),
            sources.c.space == bindparam("space"),
            sources.c.source.in_(flavour.members("numbers")),
            items.c.kind == KIND_CODES[Kind.GIST.value],
        )
        .distinct()
    )
)
ARCHIVED_SOURCES = Query(
    lambda flavour: (
        select(sources.c.number, sources.c.source)
        .select_from(
            sources.join(
                items,
                (items.c.tenant == sources.c.tenant)
                & (items.c.space == sources.c.space)
                & (items.c.number == sources.c.source),
            )
        )
        .where(
            sources.c.tenant == bindparam("tenant"),
            sources.c.space == bindparam("space"),
            sources.c.number.in_(flavour.members("numbers")),
            items.c.archived.is_not(None),
        )
        .distinct()
    )
)
# What was in the graph only through its ends must come back with them.
TOUCH_LINKS = Query(
    lambda flavour: (
        update(links)
        .where(
            links.c.tenant == bindparam("in_tenant"),
            links.c.space == bindparam("in_space"),
            links.c.source.in_(flavour.members("numbers"))
            | links.c.target.in_(flavour.members("numbers")),
        )
        .values(revision=bindparam("new_revision"))
    )
)


def archive(session: Session, space: SpaceInfo, numbers: Sequence[int], *, now: int) -> list[int]:
    """Archives memories with their segments; returns those that were not archived before.
    Unknown numbers are passed over. Raises NotFoundError if the space is gone."""
    return _set(session, take_turn(session, space), numbers, now)


def restore(session: Session, space: SpaceInfo, numbers: Sequence[int]) -> list[int]:
    """Brings archived memories back as they were; returns those that were archived. Raises
    InputError for a derived one that is not trusted: verification decides about it."""
    return bring_back(session, take_turn(session, space), numbers)


def bring_back(session: Session, turn: Turn, numbers: Sequence[int]) -> list[int]:
    """`restore` within a write transaction that has begun."""
    here = {"tenant": turn.tenant, "space": turn.space}
    for row in session.all(DERIVED_BY_NUMBER, numbers=session.pack(list(numbers)), **here):
        if STATES[row[3]] != "current":
            raise InputError(
                f"memory {row[0]} is {STATES[row[3]]}: verification decides whether it is recalled"
            )
    return _set(session, turn, numbers, None)


def _set(session: Session, turn: Turn, numbers: Sequence[int], archived: int | None) -> list[int]:
    here = {"tenant": turn.tenant, "space": turn.space}
    wanted = {*numbers, *_gists(session, here, numbers, coming_back=archived is None)}
    found = session.all(PARTS, numbers=session.pack(sorted(wanted)), **here)
    changed = [row[0] for row in found if (row[2] is None) != (archived is None)]
    if not changed:
        return []
    packed = session.pack(changed)
    where = {"in_tenant": turn.tenant, "in_space": turn.space, "new_revision": turn.revision}
    session.run(SET_ARCHIVED, numbers=packed, new_archived=archived, **where)
    if archived is None:
        session.run(TOUCH_LINKS, numbers=packed, **where)
    wholes = {row[0] for row in found if row[1] == 0}
    return sorted(wholes.intersection(changed, numbers))


def _gists(
    session: Session, here: dict[str, int], numbers: Sequence[int], *, coming_back: bool
) -> set[int]:
    """The gists of these memories, which come and go with them: put away with the first of those
    that one rests on, back when all of them are."""
    rows = session.all(GISTS_ON, numbers=session.pack(list(numbers)), **here)
    found = {row[0] for row in rows}
    if not coming_back or not found:
        return found
    away = session.all(ARCHIVED_SOURCES, numbers=session.pack(sorted(found)), **here)
    return found - {number for number, source in away if source not in numbers}


def set_importance(session: Session, space: SpaceInfo, wanted: Sequence[tuple[int, int]]) -> int:
    """Gives memories another importance (1 to 10), segments too; returns the revision."""
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    importance = dict(wanted)
    found = session.all(PARTS, numbers=session.pack(sorted(importance)), **here)
    session.many(
        SET_IMPORTANCE,
        [
            (turn.revision, importance[row[1] or row[0]], turn.tenant, turn.space, row[0])
            for row in found
        ],
        ("new_revision", "new_importance", "in_tenant", "in_space", "at_number"),
    )
    return turn.revision

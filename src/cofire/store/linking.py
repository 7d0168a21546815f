"""Making and removing links by hand."""

from __future__ import annotations

import math

from sqlalchemy import bindparam, select

from cofire.errors import InputError, NotFoundError
from cofire.store.forgetting import REMOVE_LINK, bury
from cofire.store.records import LINK_CODES, SpaceInfo
from cofire.store.rows import LINK_COLUMNS
from cofire.store.schema import items, links
from cofire.store.session import Query, Session
from cofire.store.writing import ADD_LINK, take_turn

EXISTING = Query(
    lambda flavour: select(items.c.number).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.number.in_(flavour.members("numbers")),
    )
)
FIND_LINK = Query(
    lambda _: select(links.c.type).where(
        links.c.tenant == bindparam("tenant"),
        links.c.space == bindparam("space"),
        links.c.source == bindparam("source"),
        links.c.target == bindparam("target"),
    )
)


def link(
    session: Session,
    space: SpaceInfo,
    source: int,
    target: int,
    *,
    type: str,
    strength: float,
    now: int,
) -> int:
    """Links two items of the space; returns the revision.

    Raises InputError for a link from an item to itself, an unknown type, a strength outside
    [0, 1] or a pair that is already linked; NotFoundError if an end does not exist.
    """
    code = LINK_CODES.get(type)
    if code is None:
        raise InputError(f"unknown link type {type!r}; it is one of {', '.join(LINK_CODES)}")
    if not (math.isfinite(strength) and 0.0 <= strength <= 1.0):
        raise InputError(f"a link's strength lies in [0, 1], not {strength}")
    if source == target:
        raise InputError(f"{space.ref}: memory {source} cannot be linked to itself")
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    found = {
        row[0] for row in session.all(EXISTING, numbers=session.pack([source, target]), **here)
    }
    for end in (source, target):
        if end not in found:
            raise NotFoundError(f"{space.ref}: no memory with number {end}")
    if session.one(FIND_LINK, source=source, target=target, **here) is not None:
        raise InputError(
            f"{space.ref}: {source} is already linked to {target}; a link's type is fixed, its "
            "strength changes by feedback"
        )
    row = (*here.values(), source, target, code, float(strength), 0, None, now, turn.revision)
    session.many(ADD_LINK, [row], LINK_COLUMNS)
    return turn.revision


def unlink(session: Session, space: SpaceInfo, source: int, target: int) -> int:
    """Removes a link; returns the revision. Raises NotFoundError."""
    turn = take_turn(session, space)
    touched = session.run(
        REMOVE_LINK, tenant=turn.tenant, space=turn.space, source=source, target=target
    )
    if not touched:
        raise NotFoundError(f"{space.ref}: {source} is not linked to {target}")
    bury(session, turn, [(source, target)])
    return turn.revision

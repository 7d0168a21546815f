"""Making and removing links by hand."""

from __future__ import annotations

import math
from collections.abc import Collection

from sqlalchemy import bindparam, select

from cofire.errors import InputError, LinkExistsError, NotFoundError
from cofire.store.events import add_events
from cofire.store.folding import Pair
from cofire.store.records import LINK_CODES, EventRecord, SpaceInfo
from cofire.store.redaction import CUES_AMONG
from cofire.store.rows import LINK_COLUMNS
from cofire.store.rules import read_rule
from cofire.store.schema import items, links
from cofire.store.session import Query, Session
from cofire.store.settling import settle
from cofire.store.strengths import contested, make_room, places, remove_links
from cofire.store.writing import ADD_LINK, Turn, plain_link, take_turn

EXISTING = Query(
    lambda flavour: select(items.c.number).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.number.in_(flavour.members("numbers")),
    )
)

LEADING_ON = Query(
    lambda flavour: select(links.c.target).where(
        links.c.tenant == bindparam("tenant"),
        links.c.space == bindparam("space"),
        links.c.source.in_(flavour.members("numbers")),
        links.c.type == bindparam("code"),
    )
)
ORDERED = frozenset({LINK_CODES["supersedes"], LINK_CODES["evolves_to"]})
"""Types that order what they link: they never go in a circle."""


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

    A learned link of two memories that lies there makes way, to the place from `target` to
    `source`. Raises InputError for a link from an item to itself, an unknown type, a strength
    outside [0, 1] or a replacement that would go in a circle, LinkExistsError for a pair that is
    already linked, NotFoundError if an end does not exist.
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
    if code in ORDERED and _leads_to(session, here, code, target, source):
        raise InputError(
            f"{space.ref}: {target} already leads to {source} by {type} links; another from "
            f"{source} to it would go in a circle"
        )
    if not make_room(session, turn, [(source, target)]):
        raise LinkExistsError(
            f"{space.ref}: {source} is already linked to {target}; a link's type is fixed, its "
            "strength changes by feedback"
        )
    row = plain_link(turn, source, target, code, strength=float(strength), created=now)
    session.many(ADD_LINK, [row], LINK_COLUMNS)
    _settle(session, space, turn, _contested(session, turn, source, target))
    return turn.revision


def _leads_to(session: Session, here: dict[str, int], code: int, start: int, wanted: int) -> bool:
    """Whether links of one type lead from `start` to `wanted`, in however many steps."""
    seen: set[int] = set()
    front = {start}
    while front:
        if wanted in front:
            return True
        seen |= front
        rows = session.all(LEADING_ON, numbers=session.pack(sorted(front)), code=code, **here)
        front = {row[0] for row in rows} - seen
    return False


def unlink(session: Session, space: SpaceInfo, source: int, target: int, *, now: int = 0) -> int:
    """Removes a link; returns the revision. Raises NotFoundError.

    Removing a learned link is an event ("prune") at `now`, or at its last change if that is
    later. Where removing another makes room for what was learned of the pair, that takes it.
    """
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    found = places(session, here, (source, target))
    for pair, held in found.held.items():
        if (held.source, held.target) == (source, target):
            remove_links(session, turn, [(source, target)])
            time = max(now, held.state.last)
            add_events(session, turn, [_pruning(pair, time, cue=_is_cue(session, turn, pair[0]))])
            return turn.revision
    if (source, target) not in found.taken:
        raise NotFoundError(f"{space.ref}: {source} is not linked to {target}")
    remove_links(session, turn, [(source, target)])
    _settle(session, space, turn, _contested(session, turn, source, target))
    return turn.revision


def _settle(session: Session, space: SpaceInfo, turn: Turn, pairs: Collection[Pair]) -> None:
    if pairs:
        settle(session, turn, read_rule(session, space), pairs)


def _contested(session: Session, turn: Turn, source: int, target: int) -> set[Pair]:
    """The pair whose learned link has room or none because of this link, if there is one."""
    if _is_cue(session, turn, source):
        return {(source, target)}
    return contested(session, turn, [(source, target)])


def _is_cue(session: Session, turn: Turn, number: int) -> bool:
    here = {"tenant": turn.tenant, "space": turn.space}
    return bool(session.all(CUES_AMONG, numbers=session.pack([number]), **here))


def _pruning(pair: Pair, time: int, *, cue: bool) -> EventRecord:
    return EventRecord(
        recall=None,
        type="prune",
        items=((pair[0], 0.0), (pair[1], 0.0)),
        outcome=None,
        signal=None,
        principal=None,
        time=time,
        cue=pair[0] if cue else None,
    )

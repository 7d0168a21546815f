"""Learned links as rows: which there are, where there is room for one, writing what changed.

A learned link is a row of `links` of type coactivation between two memories (from the lower
number to the higher, or the other way round if that place is taken by a link of another type), or
of type association from a cue to a memory; its `last_coactivated` is set. A link of these types
made by hand has none, and learning leaves it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    union_all,
    update,
)

from cofire.dynamics.plasticity import DAY_US, LinkState
from cofire.store.folding import Pair
from cofire.store.records import LINK_CODES
from cofire.store.rows import LINK_COLUMNS, quota_of, quota_text
from cofire.store.schema import items, links, tombstones
from cofire.store.session import Query, Row, Session
from cofire.store.writing import ADD_LINK, Turn
from cofire.types import LinkType

COACTIVATION = LINK_CODES[LinkType.COACTIVATION.value]
ASSOCIATION = LINK_CODES[LinkType.ASSOCIATION.value]
CUE_KIND = 9
"""The stored code of `Kind.CUE`; the index of cues is made of it."""

REMOVE_LINK = Query(
    lambda _: delete(links).where(
        links.c.tenant == bindparam("tenant"),
        links.c.space == bindparam("space"),
        links.c.source == bindparam("source"),
        links.c.target == bindparam("target"),
    )
)
LINK_KEY = ("tenant", "space", "source", "target")
ADD_TOMBSTONE = Query(lambda _: insert(tombstones))
TOMBSTONE_COLUMNS = tuple(column.name for column in tombstones.columns)

_COLUMNS = (
    links.c.source,
    links.c.target,
    links.c.type,
    links.c.strength,
    links.c.coactivations,
    links.c.last_coactivated,
    links.c.tick,
    links.c.rejections,
    links.c.quota_day,
    links.c.quota,
    links.c.created,
)


def _learned() -> ColumnElement[bool]:
    return and_(
        links.c.last_coactivated.is_not(None),
        or_(links.c.type == COACTIVATION, links.c.type == ASSOCIATION),
    )


def _not_learned(table: FromClause) -> ColumnElement[bool]:
    return or_(
        table.c.last_coactivated.is_(None),
        and_(table.c.type != COACTIVATION, table.c.type != ASSOCIATION),
    )


def _here(*columns: ColumnElement[Any]) -> Select[Any]:
    return select(*columns).where(
        links.c.tenant == bindparam("tenant"), links.c.space == bindparam("space")
    )


# Every learned link of these items, and what else there is among them.
LINKS_AMONG = Query(
    lambda flavour: union_all(
        _here(*_COLUMNS).where(
            links.c.source.in_(flavour.members("numbers")),
            or_(_learned(), links.c.target.in_(flavour.members("numbers"))),
        ),
        _here(*_COLUMNS).where(links.c.target.in_(flavour.members("numbers")), _learned()),
    )
)
ALL_LEARNED = Query(lambda _: _here(*_COLUMNS).where(_learned()))
_back = links.alias("back")
# Pairs of memories that other links join both ways, and cues that other links lead from.
ALL_BLOCKED = Query(
    lambda _: union_all(
        _here(links.c.source, links.c.target)
        .select_from(
            links.join(
                _back,
                and_(
                    _back.c.tenant == links.c.tenant,
                    _back.c.space == links.c.space,
                    _back.c.source == links.c.target,
                    _back.c.target == links.c.source,
                ),
            )
        )
        .where(
            links.c.source < links.c.target,
            _not_learned(links),
            _not_learned(_back),
        ),
        _here(links.c.source, links.c.target)
        .select_from(
            items.join(
                links,
                and_(
                    items.c.tenant == links.c.tenant,
                    items.c.space == links.c.space,
                    items.c.number == links.c.source,
                ),
            )
        )
        .where(
            items.c.kind == CUE_KIND,
            _not_learned(links),
        ),
    )
)
_CHANGED = ("strength", "coactivations", "last_coactivated", "revision", "rejections", "tick")
CHANGE_LINK = Query(
    lambda _: (
        update(links)
        .where(
            links.c.tenant == bindparam("in_tenant"),
            links.c.space == bindparam("in_space"),
            links.c.source == bindparam("from_source"),
            links.c.target == bindparam("to_target"),
        )
        .values({name: bindparam(f"new_{name}") for name in (*_CHANGED, "quota_day", "quota")})
    )
)
_CHANGE_PARAMETERS = (
    *(f"new_{name}" for name in (*_CHANGED, "quota_day", "quota")),
    *("in_tenant", "in_space", "from_source", "to_target"),
)


class Held(NamedTuple):
    """A learned link as stored, and where it lies."""

    source: int
    target: int
    state: LinkState
    created: int
    type: int


class Places(NamedTuple):
    """The learned links of some items by pair, and the (source, target) that others hold."""

    held: dict[Pair, Held]
    taken: set[Pair]

    def free(self, pair: Pair, *, cue: bool) -> Pair | None:
        """Where a new learned link of the pair would lie; None if there is no room."""
        source, target = pair
        if pair not in self.taken:
            return pair
        return None if cue or (target, source) in self.taken else (target, source)


def learned_links(session: Session, here: dict[str, int]) -> dict[Pair, Held]:
    """Every learned link of a space."""
    return _places(session.all(ALL_LEARNED, **here)).held


def places(session: Session, here: dict[str, int], numbers: Iterable[int]) -> Places:
    """The learned links of these items, and the links of other kinds among them."""
    packed = session.pack(sorted(numbers))
    return _places(session.all(LINKS_AMONG, numbers=packed, **here))


def _places(rows: Iterable[Row]) -> Places:
    found = Places({}, set())
    for row in rows:
        source, target, kind, strength, coactivations, last, tick, rejections, day, quota, made = (
            row
        )
        if last is None or kind not in (COACTIVATION, ASSOCIATION):
            found.taken.add((source, target))
            continue
        moved = () if quota is None else quota_of(quota)
        day = last // DAY_US if day is None else day
        state = LinkState(strength, coactivations, last, tick, rejections, day, moved)
        backwards = kind == COACTIVATION and source > target
        pair = (target, source) if backwards else (source, target)
        found.held[pair] = Held(source, target, state, made, kind)
    return found


def blocked_pairs(session: Session, here: dict[str, int]) -> frozenset[Pair]:
    """The pairs of a space that cannot be learned: there is no room for a link."""
    return frozenset((row[0], row[1]) for row in session.all(ALL_BLOCKED, **here))


def write_strengths(
    session: Session,
    turn: Turn,
    wanted: Mapping[Pair, LinkState | None],
    found: Places,
    *,
    cues: Iterable[int],
    created: int | None = None,
) -> list[tuple[int, int, float]]:
    """Makes the stored links be as `wanted` (None: absent); those already so stay untouched.

    Returns (source, target, strength) of what was written. `created` is when new ones were (None:
    when they last changed). A pair without room for a link is passed over.
    """
    of_cues = frozenset(cues)
    added: list[Row] = []
    changed: list[Row] = []
    gone: list[Pair] = []
    written: list[tuple[int, int, float]] = []
    for pair, state in wanted.items():
        held = found.held.get(pair)
        if state is None:
            if held is not None:
                gone.append((held.source, held.target))
            continue
        if held is not None and held.state == state:
            continue
        place = (held.source, held.target) if held else found.free(pair, cue=pair[0] in of_cues)
        if place is None:
            continue
        written.append((*place, state.strength))
        if held is None:
            kind = ASSOCIATION if pair[0] in of_cues else COACTIVATION
            made = state.last if created is None else created
            added.append(learned_row(turn, Held(*place, state, made, kind)))
        else:
            changed.append(_changes(turn, place, state))
    remove_links(session, turn, gone)
    session.many(CHANGE_LINK, changed, _CHANGE_PARAMETERS)
    session.many(ADD_LINK, added, LINK_COLUMNS)
    return written


def learned_row(turn: Turn, held: Held) -> Row:
    """The `links` row of a learned link."""
    state = held.state
    return (
        turn.tenant,
        turn.space,
        held.source,
        held.target,
        held.type,
        state.strength,
        state.coactivations,
        state.last,
        held.created,
        turn.revision,
        state.rejections,
        state.tick,
        state.day,
        quota_text(state.moved),
    )


def _changes(turn: Turn, place: Pair, state: LinkState) -> Row:
    return (
        state.strength,
        state.coactivations,
        state.last,
        turn.revision,
        state.rejections,
        state.tick,
        state.day,
        quota_text(state.moved),
        turn.tenant,
        turn.space,
        *place,
    )


def remove_links(session: Session, turn: Turn, gone: Iterable[Pair]) -> None:
    """Deletes links, leaving tombstones."""
    ended = sorted(gone)
    session.many(REMOVE_LINK, [(turn.tenant, turn.space, *pair) for pair in ended], LINK_KEY)
    bury(session, turn, ended)


def bury(session: Session, turn: Turn, gone: Iterable[Pair]) -> None:
    """Leaves tombstones: (number, 0) for an item, (source, target) for a link."""
    rows = [(turn.tenant, turn.space, turn.revision, *pair) for pair in gone]
    session.many(ADD_TOMBSTONE, rows, TOMBSTONE_COLUMNS)


def contested(session: Session, turn: Turn, others: Iterable[Pair]) -> set[Pair]:
    """Of links (source, target) of other kinds, the pairs that the opposite link is of other kinds
    too: where one of the two comes or goes, what was learned of the pair loses or gets its room."""
    asked = set(others)
    if not asked:
        return set()
    here = {"tenant": turn.tenant, "space": turn.space}
    taken = places(session, here, {end for pair in asked for end in pair}).taken
    return {(min(pair), max(pair)) for pair in asked if pair[::-1] in taken}


def make_room(session: Session, turn: Turn, wanted: Iterable[Pair]) -> set[Pair]:
    """Of the wanted (source, target), those that no link holds, after learned links of memories
    that did made way: each to the place the other way round, if that is free."""
    asked = sorted(set(wanted))
    if not asked:
        return set()
    here = {"tenant": turn.tenant, "space": turn.space}
    found = places(session, here, {end for pair in asked for end in pair})
    holding = {(held.source, held.target): held for held in found.held.values()}
    room = set()
    for source, target in asked:
        held = holding.get((source, target))
        if held is None:
            if (source, target) not in found.taken:
                room.add((source, target))
            continue
        turned = (target, source)
        occupied = turned in found.taken or turned in holding or turned in room
        if held.type != COACTIVATION or occupied:
            continue
        remove_links(session, turn, [(source, target)])
        moved = held._replace(source=target, target=source)
        session.many(ADD_LINK, [learned_row(turn, moved)], LINK_COLUMNS)
        holding[turned] = moved
        room.add((source, target))
    return room

"""What forgetting looks at: uses, idle links, recent evidence, what is archived and its shapes.

Every function runs inside one read transaction and reads columns, not texts, so that a look at a
whole space stays cheap. What is decided is done through `planning.apply`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, and_, bindparam, or_, select

from cofire.dynamics.plasticity import LinkState, current
from cofire.store.deriving import read_derived
from cofire.store.events import COUNT_EVIDENCE, EVENT_PAGE, event_from_row, events_about
from cofire.store.folding import Pair
from cofire.store.records import (
    KIND_CODES,
    DerivedRow,
    EventRecord,
    SpaceInfo,
)
from cofire.store.rules import read_rule
from cofire.store.schema import accesses, derived, items, links
from cofire.store.schema import vectors as vector_rows
from cofire.store.session import Query, Session
from cofire.store.spaces import FIND_MODEL, read_space
from cofire.store.strengths import ASSOCIATION, COACTIVATION, places
from cofire.types import INTERNAL_KINDS, Kind

_INTERNAL = tuple(sorted(KIND_CODES[kind.value] for kind in INTERNAL_KINDS))
_SHAPE = KIND_CODES[Kind.SHAPE.value]


def _is_memory() -> ColumnElement[bool]:
    """Not something that Cofire makes for itself, such as a cue."""
    return and_(*(items.c.kind != code for code in _INTERNAL))


ACCESSES = Query(
    lambda _: select(accesses.c.number, accesses.c.access_count, accesses.c.last_accessed).where(
        accesses.c.tenant == bindparam("tenant"), accesses.c.space == bindparam("space")
    )
)
IDLE_LINKS = Query(
    lambda _: (
        select(
            links.c.source,
            links.c.target,
            links.c.strength,
            links.c.last_coactivated,
            links.c.tick,
        )
        .where(
            links.c.tenant == bindparam("tenant"),
            links.c.space == bindparam("space"),
            links.c.last_coactivated < bindparam("before"),
            or_(links.c.type == COACTIVATION, links.c.type == ASSOCIATION),
        )
        .order_by(links.c.source, links.c.target)
    )
)
# The last turns, to tell how long so many windows of the conversation took.
RECORDED_BEFORE = Query(
    lambda _: (
        select(items.c.recorded)
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.parent == 0,
            _is_memory(),
        )
        .order_by(items.c.number.desc())
        .limit(1)
        .offset(bindparam("position"))
    )
)
# What was said and is archived: what consolidation made of it goes and comes by other rules.
ARCHIVED_WHOLES = Query(
    lambda _: (
        select(items.c.number, items.c.session, items.c.time)
        .select_from(
            items.outerjoin(
                derived,
                (derived.c.tenant == items.c.tenant)
                & (derived.c.space == items.c.space)
                & (derived.c.number == items.c.number),
            )
        )
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.parent == 0,
            items.c.archived.is_not(None),
            _is_memory(),
            derived.c.number.is_(None),
        )
        .order_by(items.c.time, items.c.number)
    )
)
SHAPES = Query(
    lambda _: (
        select(derived.c.number)
        .select_from(
            derived.join(
                items,
                (items.c.tenant == derived.c.tenant)
                & (items.c.space == derived.c.space)
                & (items.c.number == derived.c.number),
            )
        )
        .where(
            derived.c.tenant == bindparam("tenant"),
            derived.c.space == bindparam("space"),
            items.c.kind == _SHAPE,
        )
        .order_by(derived.c.number)
    )
)
# The vectors of memories, or of the segments of those that were cut.
VECTORS_OF_WHOLES = Query(
    lambda flavour: (
        select(items.c.number, items.c.parent, vector_rows.c.vector)
        .select_from(
            items.join(
                vector_rows,
                (vector_rows.c.tenant == items.c.tenant)
                & (vector_rows.c.space == items.c.space)
                & (vector_rows.c.number == items.c.number)
                & (vector_rows.c.model == bindparam("model")),
            )
        )
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.number.in_(flavour.members("numbers"))
            | items.c.parent.in_(flavour.members("numbers")),
        )
        .order_by(items.c.number)
    )
)


def read_accesses(session: Session, space: SpaceInfo) -> list[tuple[int, int, int]]:
    """(number, how often, last at µs) of every memory that was ever accessed."""
    rows = session.all(ACCESSES, tenant=space.tenant_id, space=space.space_id)
    return [(row[0], row[1], row[2]) for row in rows]


def idle_links(
    session: Session, space: SpaceInfo, before: int, now: int
) -> list[tuple[int, int, float, int]]:
    """(source, target, strength now, last change) of every learned link that nothing moved since
    `before` (µs)."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    rule = read_rule(session, space)
    tick = session.all(COUNT_EVIDENCE, **here)[0][0] if rule.kind == "hela_mem" else 0
    return [
        (
            source,
            target,
            current(rule, LinkState(strength, 0, last, then, 0, 0, ()), now, tick),
            last,
        )
        for source, target, strength, last, then in session.all(IDLE_LINKS, before=before, **here)
    ]


def strengths_of(
    session: Session, space: SpaceInfo, numbers: Iterable[int], now: int
) -> dict[Pair, float]:
    """The strength now of every learned link of these memories, by pair."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    rule = read_rule(session, space)
    tick = session.all(COUNT_EVIDENCE, **here)[0][0] if rule.kind == "hela_mem" else 0
    held = places(session, here, numbers).held
    return {pair: current(rule, link.state, now, tick) for pair, link in held.items()}


def recorded_before(session: Session, space: SpaceInfo, position: int) -> int | None:
    """When the memory was stored that so many came after; None if there are not so many."""
    row = session.one(
        RECORDED_BEFORE, tenant=space.tenant_id, space=space.space_id, position=position
    )
    return None if row is None else row[0]


def events_after(session: Session, space: SpaceInfo, seq: int, limit: int) -> list[EventRecord]:
    """Entries of the learning log after a sequence number, in order."""
    rows = session.all(
        EVENT_PAGE, tenant=space.tenant_id, space=space.space_id, after=seq, row_limit=limit
    )
    return [event_from_row(row) for row in rows]


def events_naming(session: Session, space: SpaceInfo, numbers: Iterable[int]) -> list[EventRecord]:
    """Entries of the learning log that name one of these memories, in order."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    found = events_about(session, here, numbers)
    return [found[seq] for seq in sorted(found)]


def archived_wholes(session: Session, space: SpaceInfo) -> list[tuple[int, str | None, int]]:
    """(number, session, time) of every archived memory that was not derived, by time."""
    rows = session.all(ARCHIVED_WHOLES, tenant=space.tenant_id, space=space.space_id)
    return [(row[0], row[1], row[2]) for row in rows]


def read_shapes(session: Session, space: SpaceInfo) -> list[DerivedRow]:
    """Every forgotten shape, whatever its state."""
    rows = session.all(SHAPES, tenant=space.tenant_id, space=space.space_id)
    return read_derived(session, space, [row[0] for row in rows]) if rows else []


def vectors_of_wholes(
    session: Session, space: SpaceInfo, numbers: Sequence[int]
) -> dict[int, list[bytes]]:
    """The vectors (of the space's own model) of memories, or of their segments, by memory."""
    now = read_space(session, space)
    if now.model is None:
        return {}
    found = session.one(FIND_MODEL, tenant=space.tenant_id, name=now.model, dimension=now.dimension)
    vectors: dict[int, list[bytes]] = {}
    rows = session.all(
        VECTORS_OF_WHOLES,
        tenant=space.tenant_id,
        space=space.space_id,
        model=found[0] if found else None,
        numbers=session.pack(list(numbers)),
    )
    for number, parent, vector in rows:
        vectors.setdefault(parent or number, []).append(vector)
    return vectors

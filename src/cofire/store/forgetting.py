"""Hard deletion: everything an item left in any table, with tombstones that carry no content, and
sessions whose remaining turns stay a chain."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import (
    FromClause,
    Table,
    bindparam,
    delete,
    exists,
    func,
    literal,
    select,
    union_all,
    update,
)

from cofire.store.folding import Pair
from cofire.store.records import LINK_CODES, SpaceInfo
from cofire.store.redaction import redact
from cofire.store.rows import LINK_COLUMNS
from cofire.store.rules import read_rule_or_default
from cofire.store.schema import (
    NUMBERED_TABLES,
    interactions,
    items,
    links,
    recall_items,
    recalls,
    spaces,
    tombstones,
)
from cofire.store.session import Query, Row, Session, SqlFlavour
from cofire.store.settling import settle
from cofire.store.strengths import bury, contested, make_room, remove_links
from cofire.store.writing import (
    ADD_INTERACTION,
    ADD_LINK,
    INTERACTION_COLUMNS,
    Turn,
    take_turn,
    temporal_link,
)
from cofire.types import LinkType

KEPT_TOMBSTONES = 20_000
"""Tombstones per space before the older half goes; readers older than that rebuild."""


def _among(flavour: SqlFlavour, table: Table, column: str, name: str) -> FromClause:
    """The table's rows whose column is in the list bound as `name`, sought value by value.

    As a join, because SQLite would rather scan an index of the whole space for an IN.
    """
    wanted = flavour.members(name).subquery()
    return wanted.join(table, table.c[column] == wanted.c.value)


# The wanted numbers, or the wholes of wanted segments; then their segments.
WHOLES = Query(
    lambda flavour: (
        select(items.c.number, items.c.parent)
        .select_from(_among(flavour, items, "number", "numbers"))
        .where(items.c.tenant == bindparam("tenant"), items.c.space == bindparam("space"))
    )
)
SEGMENTS = Query(
    lambda flavour: (
        select(items.c.number)
        .select_from(_among(flavour, items, "parent", "parents"))
        .where(items.c.tenant == bindparam("tenant"), items.c.space == bindparam("space"))
    )
)
SESSIONS = Query(
    lambda flavour: (
        select(items.c.session_hash)
        .select_from(_among(flavour, items, "number", "numbers"))
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.session_hash != 0,
            items.c.parent == 0,
        )
        .distinct()
    )
)
TOUCHED_RECALLS = Query(
    lambda flavour: (
        select(recall_items.c.recall)
        .select_from(_among(flavour, recall_items, "number", "numbers"))
        .where(
            recall_items.c.tenant == bindparam("tenant"),
            recall_items.c.space == bindparam("space"),
        )
        .distinct()
    )
)
# A recall of which nothing is left goes too: its question asked for what is to be forgotten.
REMOVE_EMPTY_RECALL = Query(
    lambda _: delete(recalls).where(
        recalls.c.tenant == bindparam("tenant"),
        recalls.c.space == bindparam("space"),
        recalls.c.uid == bindparam("recall"),
        ~exists().where(
            recall_items.c.tenant == recalls.c.tenant,
            recall_items.c.space == recalls.c.space,
            recall_items.c.recall == recalls.c.uid,
        ),
    )
)
ENDED_LINKS = Query(
    lambda flavour: union_all(
        *(
            select(links.c.source, links.c.target).where(
                links.c.tenant == bindparam("tenant"),
                links.c.space == bindparam("space"),
                end.in_(flavour.members("numbers")),
            )
            for end in (links.c.source, links.c.target)
        )
    )
)
# The steps of chains that end in or start from what is to be forgotten.
CHAIN_STEPS = Query(
    lambda flavour: union_all(
        *(
            select(links.c.source, links.c.target, links.c.created).where(
                links.c.tenant == bindparam("tenant"),
                links.c.space == bindparam("space"),
                end.in_(flavour.members("numbers")),
                links.c.type == literal(LINK_CODES[LinkType.TEMPORAL.value]),
            )
            for end in (links.c.source, links.c.target)
        )
    )
)
SESSION_OF = Query(
    lambda flavour: (
        select(items.c.number, items.c.session_hash)
        .select_from(_among(flavour, items, "number", "numbers"))
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.session_hash != 0,
            items.c.parent == 0,
        )
    )
)
REMOVE_NUMBERED = tuple(
    Query(
        lambda flavour, table=table: delete(table).where(  # type: ignore[misc]
            table.c.tenant == bindparam("tenant"),
            table.c.space == bindparam("space"),
            table.c.number.in_(flavour.members("numbers")),
        )
    )
    for table in NUMBERED_TABLES
)
COUNT_TOMBSTONES = Query(
    lambda _: select(func.count()).where(
        tombstones.c.tenant == bindparam("tenant"), tombstones.c.space == bindparam("space")
    )
)
TOMBSTONE_AT = Query(
    lambda _: (
        select(tombstones.c.revision)
        .where(tombstones.c.tenant == bindparam("tenant"), tombstones.c.space == bindparam("space"))
        .order_by(tombstones.c.revision)
        .limit(1)
        .offset(bindparam("position"))
    )
)
PRUNE_TOMBSTONES = Query(
    lambda _: delete(tombstones).where(
        tombstones.c.tenant == bindparam("tenant"),
        tombstones.c.space == bindparam("space"),
        tombstones.c.revision <= bindparam("up_to"),
    )
)
RAISE_FLOOR = Query(
    lambda _: (
        update(spaces)
        .where(spaces.c.tenant == bindparam("in_tenant"), spaces.c.id == bindparam("in_space"))
        .values(floor=bindparam("lowest"))
    )
)
COUNT_SESSION = Query(
    lambda _: select(func.count(), func.min(items.c.time), func.max(items.c.time)).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.session_hash == bindparam("session_hash"),
        items.c.parent == literal(0),
    )
)
REMOVE_INTERACTION = Query(
    lambda _: delete(interactions).where(
        interactions.c.tenant == bindparam("tenant"),
        interactions.c.space == bindparam("space"),
        interactions.c.hash == bindparam("session_hash"),
    )
)


def forget(session: Session, space: SpaceInfo, numbers: Sequence[int]) -> int:
    """Deletes memories with their segments, vectors, tags, links, former texts and parts in
    recall records and in the learning log; returns how many memories there were. Unknown numbers
    are passed over; a segment's number stands for its whole. In a session the turns before and
    after what goes are linked anew, and what was learned from use together with what goes is
    learned anew without it. Raises NotFoundError if the space is gone.
    """
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    found = session.all(WHOLES, numbers=session.pack(numbers), **here)
    wholes = sorted({parent or number for number, parent in found})
    if not wholes:
        return 0
    segments = [row[0] for row in session.all(SEGMENTS, parents=session.pack(wholes), **here)]
    sessions = session.all(SESSIONS, numbers=session.pack(wholes), **here)
    mended = _mended_chains(session, turn, wholes)
    rule = read_rule_or_default(session, space)
    redaction = redact(session, turn, rule, wholes)
    remove_rows(session, turn, [*wholes, *segments, *redaction.cues])
    room = make_room(session, turn, mended)
    session.many(ADD_LINK, [mended[pair] for pair in sorted(room)], LINK_COLUMNS)
    pairs = redaction.pairs | contested(session, turn, room)
    if redaction.touched or pairs:
        settle(session, turn, rule, pairs, rewritten=redaction.rewritten)
    for (label,) in sessions:
        recount_interaction(session, turn, label)
    prune_tombstones(session, turn)
    return len(wholes)


def _mended_chains(session: Session, turn: Turn, wholes: Sequence[int]) -> dict[Pair, Row]:
    """The temporal links that close the gaps which forgetting leaves in sessions, as nodes are
    taken out of a linked list: from the turn before a gap to the turn after it, however many went
    between them. A link that is there already stays as it is, unless it is a learned one that has
    another place.

    A new link is as old as the one that led to the turn after the gap: that is when it came.
    """
    here = {"tenant": turn.tenant, "space": turn.space}
    steps = session.all(CHAIN_STEPS, numbers=session.pack(wholes), **here)
    created = _over_the_gaps(steps, frozenset(wholes))
    if not created:
        return {}
    ends = sorted({end for pair in created for end in pair})
    sessions: dict[int, int] = dict(session.all(SESSION_OF, numbers=session.pack(ends), **here))
    return {
        (source, target): temporal_link(turn, source, target, created[source, target])
        for source, target in created
        if sessions.get(source) is not None and sessions.get(source) == sessions.get(target)
    }


def _over_the_gaps(
    steps: Sequence[tuple[int, int, int]], gone: frozenset[int]
) -> dict[tuple[int, int], int]:
    """Of steps (source, target, created), the pairs of remaining nodes that a path through nodes
    that are `gone` joins, with when its last step was created (the oldest, of several)."""
    following: dict[int, dict[int, int]] = {}
    for source, target, created in steps:
        following.setdefault(source, {})[target] = created
    joined: dict[tuple[int, int], int] = {}
    for before in following.keys() - gone:
        ahead = [target for target in following[before] if target in gone]
        met = set(ahead)
        while ahead:
            for target, created in following.get(ahead.pop(), {}).items():
                if target not in gone:
                    if target != before:
                        pair = (before, target)
                        joined[pair] = min(created, joined.get(pair, created))
                elif target not in met:
                    met.add(target)
                    ahead.append(target)
    return joined


def remove_rows(session: Session, turn: Turn, numbers: Sequence[int]) -> None:
    """Deletes rows by number from every table, and their links; leaves tombstones."""
    if not numbers:
        return
    here = {"tenant": turn.tenant, "space": turn.space}
    packed = session.pack(numbers)
    recalled = session.all(TOUCHED_RECALLS, numbers=packed, **here)
    ended = {(row[0], row[1]) for row in session.all(ENDED_LINKS, numbers=packed, **here)}
    remove_links(session, turn, ended)
    for query in REMOVE_NUMBERED:
        session.run(query, numbers=packed, **here)
    for row in recalled:
        session.run(REMOVE_EMPTY_RECALL, recall=row[0], **here)
    bury(session, turn, [(number, 0) for number in numbers])


def recount_interaction(session: Session, turn: Turn, label: int) -> None:
    """Makes a session's row agree with its items; without items it goes."""
    here = {"tenant": turn.tenant, "space": turn.space}
    session.run(REMOVE_INTERACTION, session_hash=label, **here)
    count, first, last = session.all(COUNT_SESSION, session_hash=label, **here)[0]
    if count:
        row = (turn.tenant, turn.space, label, first, last, count)
        session.many(ADD_INTERACTION, [row], INTERACTION_COLUMNS)


def prune_tombstones(session: Session, turn: Turn) -> None:
    """Deletes the older half of the tombstones if there are too many."""
    here = {"tenant": turn.tenant, "space": turn.space}
    count = session.all(COUNT_TOMBSTONES, **here)[0][0]
    if count <= KEPT_TOMBSTONES:
        return
    row = session.one(TOMBSTONE_AT, position=count - KEPT_TOMBSTONES // 2, **here)
    if row is None:
        return
    # Whole revisions go, so that the floor says exactly which readers can still catch up.
    session.run(PRUNE_TOMBSTONES, up_to=row[0], **here)
    session.run(RAISE_FLOOR, in_tenant=turn.tenant, in_space=turn.space, lowest=row[0])

"""Hard deletion: everything an item left in any table, with tombstones that carry no content, and
sessions whose remaining turns stay a chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import (
    FromClause,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    select,
    union_all,
    update,
)

from cofire.store.dependants import forget_former_texts, left_without, unread_evidence
from cofire.store.deriving import (
    REMOVE_SOURCES_ON,
    make_stale,
    reopen,
    superseded_by,
)
from cofire.store.folding import Pair
from cofire.store.ledger import put_step
from cofire.store.records import LINK_CODES, Forgotten, SpaceInfo
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
from cofire.store.succession import around, bridge
from cofire.store.telling import Repeating, TermsOf, find_repeating, remove_questions
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
    return wanted.join(
        table,
        and_(
            table.c.tenant == bindparam("tenant"),
            table.c.space == bindparam("space"),
            table.c[column] == wanted.c.value,
        ),
    )


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
UIDS = Query(
    lambda flavour: (
        select(items.c.uid)
        .select_from(_among(flavour, items, "number", "numbers"))
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.parent == 0,
        )
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


def forget(
    session: Session,
    space: SpaceInfo,
    numbers: Sequence[int],
    *,
    now: int,
    thorough: bool = True,
    terms_of: TermsOf | None = None,
) -> Forgotten:
    """Deletes memories with their segments, vectors, tags, links, former texts and parts in
    recall records and in the learning log, and what was derived from them alone. Unknown numbers
    are passed over; a segment's number stands for its whole. In a session the turns before and
    after what goes are linked anew, and what was learned from use together with what goes is
    learned anew without it. What was derived from others too is out of recall until it is
    verified again, and what something that goes had ended holds again.

    `thorough`: what repeats what goes, goes too: derived memories (`dependants.left_without`) and,
    if `terms_of` can read them, cues and recorded questions with a word that nobody else said. Not
    where a derived memory only makes room for a better one. Raises NotFoundError if the space is
    gone.
    """
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    found = session.all(WHOLES, numbers=session.pack(numbers), **here)
    named = sorted({parent or number for number, parent in found})
    if not named:
        return Forgotten()
    lost, doubtful = left_without(session, here, named, thorough=thorough)
    wholes = sorted({*named, *lost})
    repeating = Repeating()
    if thorough and terms_of is not None:
        repeating = find_repeating(session, here, wholes, terms_of)
    remove_questions(session, here, repeating.recalls)
    told = set(repeating.cues).difference(wholes)
    wholes = sorted({*wholes, *told})
    segments = [row[0] for row in session.all(SEGMENTS, parents=session.pack(wholes), **here)]
    sessions = session.all(SESSIONS, numbers=session.pack(wholes), **here)
    mended = _mended_chains(session, turn, wholes)
    ended = superseded_by(session, turn, wholes)
    following = around(session, turn, wholes)
    again = unread_evidence(session, here, lost, wholes, now=now)
    rule = read_rule_or_default(session, space)
    redaction = redact(session, turn, rule, wholes)
    gone = [*wholes, *segments, *redaction.cues]
    uids = [row[0] for row in session.all(UIDS, numbers=session.pack(gone), **here)]
    links_gone, recalls_gone = remove_rows(session, turn, gone)
    room = make_room(session, turn, mended)
    session.many(ADD_LINK, [mended[pair] for pair in sorted(room)], LINK_COLUMNS)
    pairs = redaction.pairs | contested(session, turn, room)
    if redaction.touched or pairs:
        settle(session, turn, rule, pairs, rewritten=redaction.rewritten)
    make_stale(session, turn, doubtful, "support: a part of its evidence was deleted", now=now)
    if thorough:
        forget_former_texts(session, here, doubtful)
    bridge(session, turn, following, now=now)
    reopened = reopen(session, turn, ended, now=now) if ended else []
    for note in again:
        put_step(session, space, note)
    for (label,) in sessions:
        recount_interaction(session, turn, label)
    prune_tombstones(session, turn)
    return Forgotten(
        memories=len(named),
        uids=tuple(uids),
        numbers=tuple(sorted(gone)),
        derived=len(lost),
        cues=len(told) + len(redaction.cues),
        doubtful=tuple(sorted(doubtful)),
        reopened=tuple(reopened),
        links=links_gone,
        recalls=len(repeating.recalls) + recalls_gone,
    )


def forget_beside(
    session: Session,
    space: SpaceInfo,
    numbers: Sequence[int],
    other: SpaceInfo,
    *,
    now: int,
    terms_of: TermsOf,
) -> Forgotten:
    """Before memories of `space` are deleted: deletes the cues and recorded questions of another
    space, in which the same was asked, that have a word which in both only those memories said."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    there = {"tenant": other.tenant_id, "space": other.space_id}
    found = session.all(WHOLES, numbers=session.pack(numbers), **here)
    named = {parent or number for number, parent in found}
    repeating = find_repeating(session, here, named, terms_of, there=there)
    remove_questions(session, there, repeating.recalls)
    gone = forget(session, other, repeating.cues, now=now, thorough=False)
    return replace(
        gone,
        memories=0,
        cues=gone.memories + gone.cues,
        recalls=gone.recalls + len(repeating.recalls),
    )


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


def remove_rows(session: Session, turn: Turn, numbers: Sequence[int]) -> tuple[int, int]:
    """Deletes rows by number from every table, and their links; leaves tombstones. Returns how
    many links and recall records went."""
    if not numbers:
        return 0, 0
    here = {"tenant": turn.tenant, "space": turn.space}
    packed = session.pack(numbers)
    recalled = session.all(TOUCHED_RECALLS, numbers=packed, **here)
    ended = {(row[0], row[1]) for row in session.all(ENDED_LINKS, numbers=packed, **here)}
    remove_links(session, turn, ended)
    for query in (*REMOVE_NUMBERED, REMOVE_SOURCES_ON):
        session.run(query, numbers=packed, **here)
    recalls_gone = sum(session.run(REMOVE_EMPTY_RECALL, recall=row[0], **here) for row in recalled)
    bury(session, turn, [(number, 0) for number in numbers])
    return len(ended), recalls_gone


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

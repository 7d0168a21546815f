"""Appending memories and writing links. Every function runs inside one write transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import bindparam, case, func, insert, select, update

from cofire.errors import EmbeddingMismatchError, InputError, KeyConflictError
from cofire.store.records import (
    LINK_CODES,
    TEMPORAL_STRENGTH,
    Appended,
    NewItem,
    SpaceInfo,
)
from cofire.store.rows import (
    ATTRIBUTE_COLUMNS,
    ITEM_COLUMNS,
    LINK_COLUMNS,
    TAG_COLUMNS,
    VECTOR_COLUMNS,
    attribute_rows,
    label_hash,
    segment_row,
    tag_rows,
    whole_row,
)
from cofire.store.schema import (
    attributes,
    interactions,
    items,
    links,
    models,
    spaces,
    tags,
    vectors,
)
from cofire.store.sealing import entry_of
from cofire.store.session import Query, Row, Session
from cofire.store.spaces import missing_space
from cofire.types import LinkType

BUMP = Query(
    lambda _: (
        update(spaces)
        .where(spaces.c.tenant == bindparam("in_tenant"), spaces.c.id == bindparam("in_space"))
        .values(
            revision=spaces.c.revision + 1,
            last_number=spaces.c.last_number + bindparam("wanted"),
        )
        .returning(
            spaces.c.revision,
            spaces.c.last_number,
            spaces.c.model,
            spaces.c.settings,
            spaces.c.indexed,
        )
    )
)
RETURN_NUMBERS = Query(
    lambda _: (
        update(spaces)
        .where(spaces.c.tenant == bindparam("in_tenant"), spaces.c.id == bindparam("in_space"))
        .values(last_number=bindparam("last"))
    )
)
MODEL_NAME = Query(
    lambda _: select(models.c.name, models.c.dimension).where(
        models.c.tenant == bindparam("tenant"), models.c.id == bindparam("model")
    )
)
FIND_KEYS = Query(
    lambda flavour: select(items.c.key, items.c.number, items.c.uid, items.c.content).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.key_hash.in_(flavour.members("hashes")),
    )
)
LAST_OF_SESSION = Query(
    lambda _: select(func.max(items.c.number)).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.session_hash == bindparam("session_hash"),
        items.c.parent == 0,
        items.c.number < bindparam("below"),
    )
)
COUNT_INTERACTION = Query(
    lambda _: (
        update(interactions)
        .where(
            interactions.c.tenant == bindparam("in_tenant"),
            interactions.c.space == bindparam("in_space"),
            interactions.c.hash == bindparam("session_hash"),
        )
        .values(
            turns=interactions.c.turns + bindparam("more"),
            started=case(
                (interactions.c.started > bindparam("first"), bindparam("first")),
                else_=interactions.c.started,
            ),
            ended=case(
                (interactions.c.ended < bindparam("last"), bindparam("last")),
                else_=interactions.c.ended,
            ),
        )
    )
)
ADD_INTERACTION = Query(lambda _: insert(interactions))
ADD_ITEM = Query(lambda _: insert(items))
ADD_VECTOR = Query(lambda _: insert(vectors))
ADD_TAG = Query(lambda _: insert(tags))
ADD_ATTRIBUTE = Query(lambda _: insert(attributes))
ADD_LINK = Query(lambda _: insert(links))

_TEMPORAL = LINK_CODES[LinkType.TEMPORAL.value]
INTERACTION_COLUMNS = tuple(column.name for column in interactions.columns)


@dataclass(frozen=True, slots=True)
class Turn:
    """What a write transaction knows once it holds the space: nobody else writes to it now."""

    tenant: int
    space: int
    revision: int
    first: int  # the first number reserved
    model: int | None
    dimension: int | None
    indexed: int = 0  # 1: its vectors are (or are being) put into the database's index


def take_turn(session: Session, space: SpaceInfo, numbers: int = 0) -> Turn:
    """Raises the space's revision, which makes this transaction its only writer, and reserves
    `numbers` numbers. Raises NotFoundError if the space is gone."""
    row = session.one(BUMP, in_tenant=space.tenant_id, in_space=space.space_id, wanted=numbers)
    if row is None:
        raise missing_space(space)
    revision, last, model, settings, indexed = row
    # Another process may have restored a backup whose space of this number has another key.
    entry = entry_of(settings)
    session.vault.admit(space.tenant_id, space.space_id, entry, space.ref, strict=True)
    dimension = None
    if model is not None:
        name, dimension = session.all(MODEL_NAME, tenant=space.tenant_id, model=model)[0]
        if space.model is not None and (space.model, space.dimension) != (name, dimension):
            raise EmbeddingMismatchError(
                f"{space.ref}: the space was re-embedded with {name} ({dimension} dimensions) "
                "meanwhile; open the memory again with that model"
            )
    first = last - numbers + 1
    return Turn(space.tenant_id, space.space_id, revision, first, model, dimension, min(1, indexed))


@dataclass(slots=True)
class _Batch:
    """The rows that an append will insert."""

    link_sessions: bool
    items: list[Row] = field(default_factory=list)
    vectors: list[Row] = field(default_factory=list)
    tags: list[Row] = field(default_factory=list)
    attributes: list[Row] = field(default_factory=list)
    links: list[Row] = field(default_factory=list)
    # session hash → (first time, last time, items, number of the last)
    sessions: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)

    def insert(self, session: Session) -> None:
        session.many(ADD_ITEM, self.items, ITEM_COLUMNS)
        session.many(ADD_VECTOR, self.vectors, VECTOR_COLUMNS)
        session.many(ADD_TAG, self.tags, TAG_COLUMNS)
        session.many(ADD_ATTRIBUTE, self.attributes, ATTRIBUTE_COLUMNS)
        session.many(ADD_LINK, self.links, LINK_COLUMNS)


def append(
    session: Session, space: SpaceInfo, new: Sequence[NewItem], *, link_sessions: bool = True
) -> Appended:
    """Stores memories in the given order, with their segments, vectors, tags, attributes and
    temporal links.

    Each item of a session is linked from the item stored before it in that session (whatever
    their times), each segment of a long text from the one before. An item whose key is known is
    left out if its content is the same. Raises KeyConflictError if it is not, InputError for a
    vector of the wrong size, a uid already in the space or an unknown kind; then nothing is
    written.
    """
    wanted = sum(1 + len(item.segments) for item in new)
    turn = take_turn(session, space, wanted)
    known = _known_keys(session, turn, new)
    numbers: list[int] = []
    uids: list[bytes] = []
    created: list[bool] = []
    batch = _Batch(link_sessions=link_sessions)
    number = turn.first
    for item in new:
        former = known.get(item.key) if item.key is not None else None
        if former is not None:
            if former[2] != item.content:
                raise KeyConflictError(
                    f"{space.ref}: the key {item.key!r} was remembered with another text; use "
                    "another key, or update that memory"
                )
            numbers.append(former[0])
            uids.append(former[1])
            created.append(False)
            continue
        if item.key is not None:
            known[item.key] = (number, item.uid, item.content)
        numbers.append(number)
        uids.append(item.uid)
        created.append(True)
        _add(batch, session, turn, number, item)
        number += 1 + len(item.segments)
    if number != turn.first + wanted:
        session.run(RETURN_NUMBERS, in_tenant=turn.tenant, in_space=turn.space, last=number - 1)
    batch.insert(session)
    _count_interactions(session, turn, batch)
    return Appended(
        numbers=tuple(numbers),
        uids=tuple(uids),
        created=tuple(created),
        revision=turn.revision,
    )


def _known_keys(
    session: Session, turn: Turn, new: Sequence[NewItem]
) -> dict[str, tuple[int, bytes, str]]:
    hashes = [label_hash("key", item.key) for item in new if item.key is not None]
    if not hashes:
        return {}
    rows = session.all(FIND_KEYS, tenant=turn.tenant, space=turn.space, hashes=session.pack(hashes))
    return {key: (number, uid, content) for key, number, uid, content in rows}


def _add(batch: _Batch, session: Session, turn: Turn, number: int, item: NewItem) -> None:
    """Adds the rows of one memory to the batch."""
    whole = whole_row(turn.tenant, turn.space, number, turn.revision, item)
    batch.items.append(whole)
    if item.vector is not None:
        batch.vectors.append(vector_row(turn, number, item.vector))
    if item.tags:
        batch.tags += tag_rows(turn.tenant, turn.space, number, item)
    if item.metadata:
        batch.attributes += attribute_rows(turn.tenant, turn.space, number, item)
    for index, segment in enumerate(item.segments):
        own = number + 1 + index
        batch.items.append(segment_row(whole, own, index, item, segment))
        if segment.vector is not None:
            batch.vectors.append(vector_row(turn, own, segment.vector))
        if index:
            batch.links.append(temporal_link(turn, own - 1, own, item.recorded))
    if item.session is None:
        return
    label = label_hash("session", item.session)
    seen = batch.sessions.get(label)
    if seen is None:
        before = _last_of_session(session, turn, label)
        batch.sessions[label] = (item.time, item.time, 1, number)
    else:
        first, last, count, before = seen
        batch.sessions[label] = (
            min(first, item.time),
            max(last, item.time),
            count + 1,
            number,
        )
    if before and batch.link_sessions:
        batch.links.append(temporal_link(turn, before, number, item.recorded))


def vector_row(turn: Turn, number: int, vector: bytes) -> Row:
    """The row of a vector of the space's model. Raises InputError if it does not fit it."""
    if turn.model is None or turn.dimension is None:
        raise InputError("a vector needs the space's embedding model: call set_model first")
    if len(vector) != 2 * turn.dimension:
        raise InputError(
            f"a vector of {len(vector)} bytes does not fit the space's dimension of "
            f"{turn.dimension} (2 bytes each)"
        )
    return (turn.tenant, turn.space, number, turn.model, vector, turn.indexed)


def temporal_link(turn: Turn, source: int, target: int, created: int) -> Row:
    return plain_link(turn, source, target, _TEMPORAL, strength=TEMPORAL_STRENGTH, created=created)


def plain_link(
    turn: Turn, source: int, target: int, type_: int, *, strength: float, created: int
) -> Row:
    """The `links` row of a link of which nothing was learned."""
    own = (source, target, type_, strength, 0, None, created, turn.revision)
    return (turn.tenant, turn.space, *own, 0, 0, None, None)


def _last_of_session(session: Session, turn: Turn, label: int) -> int:
    rows = session.all(
        LAST_OF_SESSION,
        tenant=turn.tenant,
        space=turn.space,
        session_hash=label,
        below=turn.first,
    )
    return rows[0][0] or 0


def _count_interactions(session: Session, turn: Turn, batch: _Batch) -> None:
    for label, (first, last, count, _) in batch.sessions.items():
        touched = session.run(
            COUNT_INTERACTION,
            in_tenant=turn.tenant,
            in_space=turn.space,
            session_hash=label,
            more=count,
            first=first,
            last=last,
        )
        if not touched:
            row = (turn.tenant, turn.space, label, first, last, count)
            session.many(ADD_INTERACTION, [row], INTERACTION_COLUMNS)

"""Changing a memory's text or fields, keeping its former text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from cofire.errors import KeyConflictError, NotFoundError, StoreBusyError
from cofire.store.archiving import bring_back
from cofire.store.deriving import edited, expire_with_sources, make_stale, resting_on
from cofire.store.forgetting import recount_interaction, remove_rows
from cofire.store.reading import find_keys, get
from cofire.store.records import DERIVED_SIGNAL, ItemRow, NewItem, SpaceInfo
from cofire.store.rows import (
    ATTRIBUTE_COLUMNS,
    ITEM_COLUMNS,
    LINK_COLUMNS,
    TAG_COLUMNS,
    VECTOR_COLUMNS,
    VERSION_COLUMNS,
    as_parameters,
    attribute_rows,
    label_hash,
    segment_row,
    tag_rows,
    whole_row,
)
from cofire.store.schema import attributes, items, tags, vectors, versions
from cofire.store.session import Query, Row, Session, row_change
from cofire.store.writing import (
    ADD_ATTRIBUTE,
    ADD_ITEM,
    ADD_LINK,
    ADD_TAG,
    ADD_VECTOR,
    RETURN_NUMBERS,
    Turn,
    take_turn,
    temporal_link,
    vector_row,
)

# What an update leaves as it was: the identity, and what only the store decides.
_KEPT = {"tenant", "space", "number", "uid", "parent", "key", "key_hash", "recorded", "archived"}
_CHANGED = tuple(name for name in ITEM_COLUMNS if name not in _KEPT)

EDITED_SOURCE = "quote: a source was edited"
TRUST_CHANGED = "support: a source came to be trusted, or is no more"
CHANGE_ITEM = Query(
    lambda _: (
        update(items)
        .where(
            items.c.tenant == bindparam("in_tenant"),
            items.c.space == bindparam("in_space"),
            items.c.number == bindparam("at_number"),
        )
        .values({name: bindparam(f"new_{name}") for name in _CHANGED})
    )
)
CHANGE_KEY = row_change(items, "key", "key_hash")
SEGMENTS = Query(
    lambda _: (
        select(items.c.number, items.c.start, items.c.end)
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.parent == bindparam("parent"),
        )
        .order_by(items.c.segment)
    )
)
ADD_VERSION = Query(lambda _: insert(versions))
CLEAR_TABLES = tuple(
    Query(
        lambda flavour, table=table: delete(table).where(  # type: ignore[misc]
            table.c.tenant == bindparam("tenant"),
            table.c.space == bindparam("space"),
            table.c.number.in_(flavour.members("numbers")),
        )
    )
    for table in (vectors, tags, attributes)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """What `update` did: the space's revision and the item's version afterwards."""

    revision: int
    version: int


class ChangedMeanwhileError(StoreBusyError):
    """Another writer changed the memory after it was read: read it again, then update it."""


def update_item(
    session: Session,
    space: SpaceInfo,
    number: int,
    item: NewItem,
    *,
    now: int,
    seen: int | None = None,
    key: str | None = None,
) -> Updated:
    """Gives the memory the fields of `item`, and keeps its former text as a version.

    The uid, number, recorded time and use counts stay, and so does the key unless a new one is
    given as `key` (the item's own is not looked at); `version` rises only if the content, the title
    or whether it is trusted changes. Segments whose places are unchanged keep their numbers and
    links; otherwise they are replaced. An archived memory comes back. `seen` is the row's revision
    that `item` was made from: an update never undoes one that it does not know. Raises
    NotFoundError, InputError, KeyConflictError if another memory has the key,
    ChangedMeanwhileError.
    """
    turn = take_turn(session, space, len(item.segments))
    here = {"tenant": turn.tenant, "space": turn.space}
    former = get(session, space, number)
    if former is None or former.parent:
        raise NotFoundError(f"{space.ref}: no memory with number {number}")
    if seen is not None and former.revision != seen:
        raise ChangedMeanwhileError(f"{space.ref}: memory {number} was changed meanwhile")
    bring_back(session, turn, [number])  # what somebody works on is not put away
    if key is not None and key != former.key:
        _change_key(session, space, number, key)
    if edited(session, turn, number):  # its words are others' now; what is known of it stays
        item = replace(
            item,
            signals=item.signals | DERIVED_SIGNAL,
            confidence=former.confidence,
            valid_from=former.valid_from,
            valid_to=former.valid_to,
        )
    version = _keep_former(session, turn, former, item, now)
    whole = whole_row(turn.tenant, turn.space, number, turn.revision, item)
    segments = session.all(SEGMENTS, parent=number, **here)
    same_places = [(row[1], row[2]) for row in segments] == [
        (segment.start, segment.end) for segment in item.segments
    ]
    if same_places:
        numbers = [row[0] for row in segments]
        session.run(RETURN_NUMBERS, in_tenant=turn.tenant, in_space=turn.space, last=turn.first - 1)
    else:
        remove_rows(session, turn, [row[0] for row in segments])
        numbers = [turn.first + index for index in range(len(item.segments))]
    packed = session.pack([number, *numbers])
    for query in CLEAR_TABLES:
        session.run(query, numbers=packed, **here)
    _change(session, turn, whole, number, version=version, updated=now)
    if former.expires != item.expires:
        expire_with_sources(session, turn, resting_on(session, here, [number]))
    rows = [
        segment_row(whole, own, index, item, segment)
        for index, (own, segment) in enumerate(zip(numbers, item.segments, strict=True))
    ]
    if same_places:
        for row in rows:
            _change(session, turn, row, row[2], version=1, updated=now)
    else:
        session.many(ADD_ITEM, rows, ITEM_COLUMNS)
        chain = pairwise(numbers)
        session.many(ADD_LINK, [temporal_link(turn, a, b, now) for a, b in chain], LINK_COLUMNS)
    _attach(session, turn, number, numbers, item)
    _move_between_sessions(session, turn, former, item)
    return Updated(revision=turn.revision, version=version)


def _keep_former(session: Session, turn: Turn, former: ItemRow, item: NewItem, now: int) -> int:
    """Keeps a text that changes as a version, and takes what rests on it out of recall until it is
    verified anew; returns the version from now on. A trust that changes counts like a text: what
    was made of it, or is being made of it, was made of something else."""
    rewritten = (former.content, former.title) != (item.content, item.title)
    if not rewritten and former.untrusted == item.untrusted:
        return former.version
    here = {"tenant": turn.tenant, "space": turn.space}
    kept = (*here.values(), former.number, former.version, former.content, former.title, now)
    session.many(ADD_VERSION, [kept], VERSION_COLUMNS)
    resting = resting_on(session, here, [former.number])
    reason = EDITED_SOURCE if rewritten else TRUST_CHANGED
    make_stale(session, turn, resting, reason, now=now)
    return former.version + 1


def _change_key(session: Session, space: SpaceInfo, number: int, key: str) -> None:
    if find_keys(session, space, [key]):
        raise KeyConflictError(f"{space.ref}: another memory has the key {key!r}")
    session.run(
        CHANGE_KEY,
        in_tenant=space.tenant_id,
        in_space=space.space_id,
        at_number=number,
        new_key=key,
        new_key_hash=label_hash("key", key),
    )


def _change(session: Session, turn: Turn, row: Row, number: int, **decided: Any) -> None:
    values = {f"new_{name}": value for name, value in as_parameters(row).items()}
    values.update({f"new_{name}": value for name, value in decided.items()})
    session.run(
        CHANGE_ITEM,
        in_tenant=turn.tenant,
        in_space=turn.space,
        at_number=number,
        **values,
    )


def _attach(session: Session, turn: Turn, number: int, numbers: list[int], item: NewItem) -> None:
    """Inserts the vectors, tags and attributes of a memory and its segments."""
    pairs = [(number, item.vector)]
    pairs += zip(numbers, (segment.vector for segment in item.segments), strict=True)
    session.many(
        ADD_VECTOR,
        [vector_row(turn, own, vector) for own, vector in pairs if vector is not None],
        VECTOR_COLUMNS,
    )
    session.many(ADD_TAG, tag_rows(turn.tenant, turn.space, number, item), TAG_COLUMNS)
    session.many(
        ADD_ATTRIBUTE,
        attribute_rows(turn.tenant, turn.space, number, item),
        ATTRIBUTE_COLUMNS,
    )


def _move_between_sessions(session: Session, turn: Turn, former: ItemRow, item: NewItem) -> None:
    if (former.session, former.time) == (item.session, item.time):
        return
    for name in {former.session, item.session}:
        if name is not None:
            recount_interaction(session, turn, label_hash("session", name))

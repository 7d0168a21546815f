"""Reading memories. Every function runs inside one read transaction: a consistent snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

from sqlalchemy import and_, bindparam, case, exists, func, or_, select

from cofire.store.records import (
    KIND_CODES,
    KINDS,
    LINK_TYPES,
    ItemRow,
    LinkRow,
    SpaceCounts,
    SpaceInfo,
    VersionRow,
)
from cofire.store.rows import attribute_hashes, item_from_row, label_hash, quota_of
from cofire.store.schema import (
    accesses,
    attributes,
    derived,
    items,
    links,
    models,
    spaces,
    versions,
)
from cofire.store.sealed_queries import cut_text
from cofire.store.session import Query, Row, Session
from cofire.store.spaces import missing_space

_wholes = items.alias("wholes")
_one = items.alias("one")
_source = items.alias("source_item")
_target = items.alias("target_item")

# One row per wanted item or segment: what is its own from `one`, what describes it from its
# whole. The text of a segment is cut out of the whole.
ITEM_SELECTION = (
    _one.c.number,
    _one.c.uid,
    _one.c.parent,
    _wholes.c.uid.label("whole"),
    _one.c.segment,
    _wholes.c.segments,
    _one.c.start,
    _one.c.end,
    _one.c.kind,
    cut_text(_wholes, _one, "text"),
    _wholes.c.title,
    _wholes.c.speaker,
    _wholes.c.role,
    _wholes.c.session,
    _wholes.c.time,
    _wholes.c.offset,
    _wholes.c.recorded,
    _wholes.c.updated,
    _wholes.c.expires,
    _wholes.c.archived,
    _wholes.c.tags,
    _wholes.c.importance,
    _wholes.c.pinned,
    _wholes.c.metadata,
    _wholes.c.key,
    _wholes.c.language,
    _wholes.c.keywords,
    _one.c.tokens,
    _wholes.c.event_times,
    func.coalesce(accesses.c.access_count, 0).label("access_count"),
    accesses.c.last_accessed,
    _wholes.c.version,
    _one.c.pending,
    _wholes.c.confidence,
    _wholes.c.valid_from,
    _wholes.c.valid_to,
    _wholes.c.untrusted,
    _one.c.revision,
)
ITEM_SOURCE = _one.join(
    _wholes,
    and_(
        _wholes.c.tenant == _one.c.tenant,
        _wholes.c.space == _one.c.space,
        _wholes.c.number == case((_one.c.parent == 0, _one.c.number), else_=_one.c.parent),
    ),
).outerjoin(
    accesses,
    and_(
        accesses.c.tenant == _one.c.tenant,
        accesses.c.space == _one.c.space,
        accesses.c.number == _wholes.c.number,
    ),
)
ONE = _one
_HERE = (_one.c.tenant == bindparam("tenant"), _one.c.space == bindparam("space"))

REVISION = Query(
    lambda _: select(spaces.c.revision).where(
        spaces.c.tenant == bindparam("tenant"), spaces.c.id == bindparam("space")
    )
)
SPACE_STATE = Query(
    lambda _: select(spaces.c.revision, spaces.c.floor, spaces.c.model).where(
        spaces.c.tenant == bindparam("tenant"), spaces.c.id == bindparam("space")
    )
)
BY_NUMBERS = Query(
    lambda flavour: (
        select(*ITEM_SELECTION)
        .select_from(ITEM_SOURCE)
        .where(*_HERE, _one.c.number.in_(flavour.members("numbers")))
    )
)
BY_NUMBER = Query(
    lambda _: (
        select(*ITEM_SELECTION)
        .select_from(ITEM_SOURCE)
        .where(*_HERE, _one.c.number == bindparam("number"))
    )
)
BY_UID = Query(
    lambda _: (
        select(*ITEM_SELECTION)
        .select_from(ITEM_SOURCE)
        .where(*_HERE, _one.c.uid == bindparam("uid"))
    )
)
LOCATE = Query(
    lambda _: select(items.c.number).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.uid == bindparam("uid"),
    )
)
FIND_KEYS = Query(
    lambda flavour: select(items.c.number, items.c.key).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.key_hash.in_(flavour.members("hashes")),
    )
)
FIND_ATTRIBUTES = Query(
    lambda flavour: (
        select(attributes.c.number)
        .where(
            attributes.c.tenant == bindparam("tenant"),
            attributes.c.space == bindparam("space"),
            attributes.c.hash.in_(flavour.members("hashes")),
        )
        .order_by(attributes.c.number)
    )
)
# Memories that somebody told, by number: not archived, not derived, no cues.
TOLD_SINCE = Query(
    lambda flavour: (
        select(items.c.number)
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.parent == 0,
            items.c.archived.is_(None),
            items.c.kind.in_(flavour.members("kinds")),
            or_(
                items.c.number > bindparam("after"),
                and_(items.c.updated >= bindparam("since"), items.c.version > 1),
            ),
            ~exists().where(
                derived.c.tenant == items.c.tenant,
                derived.c.space == items.c.space,
                derived.c.number == items.c.number,
            ),
        )
        .order_by(items.c.number)
        .limit(bindparam("row_limit"))
    )
)
HISTORY = Query(
    lambda _: (
        select(
            versions.c.number,
            versions.c.version,
            versions.c.content,
            versions.c.title,
            versions.c.replaced,
        )
        .where(
            versions.c.tenant == bindparam("tenant"),
            versions.c.space == bindparam("space"),
            versions.c.number == bindparam("number"),
        )
        .order_by(versions.c.version)
    )
)
LINK_SELECT = (
    select(
        links.c.source,
        links.c.target,
        _source.c.uid.label("source_uid"),
        _target.c.uid.label("target_uid"),
        links.c.type,
        links.c.strength,
        links.c.coactivations,
        links.c.last_coactivated,
        links.c.created,
        links.c.revision,
        links.c.rejections,
        links.c.tick,
        links.c.quota_day,
        links.c.quota,
    )
    .select_from(
        links.join(
            _source,
            and_(
                _source.c.tenant == links.c.tenant,
                _source.c.space == links.c.space,
                _source.c.number == links.c.source,
            ),
        ).join(
            _target,
            and_(
                _target.c.tenant == links.c.tenant,
                _target.c.space == links.c.space,
                _target.c.number == links.c.target,
            ),
        )
    )
    .where(links.c.tenant == bindparam("tenant"), links.c.space == bindparam("space"))
    .order_by(links.c.source, links.c.target)
)
LINKS_FROM = Query(lambda _: LINK_SELECT.where(links.c.source == bindparam("number")))
LINKS_TO = Query(lambda _: LINK_SELECT.where(links.c.target == bindparam("number")))
COUNT_KINDS = Query(
    lambda _: (
        select(items.c.kind, func.count(), func.min(items.c.time), func.max(items.c.time))
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.parent == 0,
        )
        .group_by(items.c.kind)
        .order_by(items.c.kind)
    )
)
COUNT_ROWS = Query(
    lambda _: select(func.count(), func.coalesce(func.sum(items.c.pending), 0)).where(
        items.c.tenant == bindparam("tenant"), items.c.space == bindparam("space")
    )
)
COUNT_LINKS = Query(
    lambda _: (
        select(func.count())
        .select_from(links)
        .where(links.c.tenant == bindparam("tenant"), links.c.space == bindparam("space"))
    )
)
MODEL = Query(
    lambda _: select(models.c.name, models.c.dimension).where(
        models.c.tenant == bindparam("tenant"), models.c.id == bindparam("model")
    )
)


def fetch(session: Session, space: SpaceInfo, numbers: Sequence[int]) -> list[ItemRow]:
    """The rows of the numbers that exist, in the order given."""
    rows = session.all(
        BY_NUMBERS,
        tenant=space.tenant_id,
        space=space.space_id,
        numbers=list(numbers),
    )
    return in_order(rows, numbers)


def in_order(rows: Sequence[Row], numbers: Sequence[int]) -> list[ItemRow]:
    """Rows of `BY_NUMBERS` in the order of the numbers asked for."""
    found = {row[0]: row for row in rows}
    return [item_from_row(found[number]) for number in numbers if number in found]


def get(session: Session, space: SpaceInfo, item: int | bytes) -> ItemRow | None:
    """One item or segment by number or uid."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    if isinstance(item, bytes):
        row = session.one(BY_UID, uid=item, **here)
    else:
        row = session.one(BY_NUMBER, number=item, **here)
    return None if row is None else item_from_row(row)


def locate(
    session: Session, among: Sequence[SpaceInfo], uid: bytes
) -> tuple[SpaceInfo, int] | None:
    """In which of the spaces, and as which number, a uid is stored."""
    for space in among:
        row = session.one(LOCATE, tenant=space.tenant_id, space=space.space_id, uid=uid)
        if row is not None:
            return space, row[0]
    return None


def find_keys(session: Session, space: SpaceInfo, keys: Sequence[str]) -> dict[str, ItemRow]:
    """The items that have one of the callers' keys, by key."""
    rows = session.all(
        FIND_KEYS,
        tenant=space.tenant_id,
        space=space.space_id,
        hashes=session.pack([label_hash("key", key) for key in keys]),
    )
    wanted = set(keys)  # two keys may have one hash
    numbers = [number for number, key in rows if key in wanted]
    return {row.key: row for row in fetch(session, space, numbers) if row.key is not None}


def find_metadata(
    session: Session, space: SpaceInfo, name: str, values: Sequence[str]
) -> list[ItemRow]:
    """The items whose metadata have one of the texts under a name, by number."""
    hashes = [label for value in values for label in attribute_hashes({name: value})]
    rows = session.all(
        FIND_ATTRIBUTES,
        tenant=space.tenant_id,
        space=space.space_id,
        hashes=session.pack(hashes),
    )
    found = fetch(session, space, [row[0] for row in rows])
    wanted = set(values)  # two values may have one hash
    return [row for row in found if str(row.metadata.get(name)) in wanted]


def told_since(
    session: Session,
    space: SpaceInfo,
    kinds: Sequence[str],
    *,
    after: int,
    since: int,
    limit: int,
) -> list[int]:
    """Up to `limit` numbers, ascending, of memories of these kinds that somebody told: those above
    number `after`, and those whose text was changed at `since` (µs) or later. Neither what is
    archived nor what was derived."""
    rows = session.all(
        TOLD_SINCE,
        tenant=space.tenant_id,
        space=space.space_id,
        kinds=[KIND_CODES[kind] for kind in kinds],
        after=after,
        since=since,
        row_limit=limit,
    )
    return [row[0] for row in rows]


def history(session: Session, space: SpaceInfo, number: int) -> list[VersionRow]:
    """An item's former texts, oldest first."""
    rows = session.all(HISTORY, tenant=space.tenant_id, space=space.space_id, number=number)
    return list(starmap(VersionRow, rows))


def links_of(session: Session, space: SpaceInfo, number: int) -> list[LinkRow]:
    """The links from and to an item: those from it first, by number."""
    here = {"tenant": space.tenant_id, "space": space.space_id, "number": number}
    rows = session.all(LINKS_FROM, **here) + session.all(LINKS_TO, **here)
    return [link_row(row) for row in rows]


def link_row(row: Row) -> LinkRow:
    """A `LinkRow` from a row of `LINK_SELECT`."""
    link = LinkRow(*row)
    return link._replace(type=LINK_TYPES[int(link.type)].value, quota=quota_of(row[-1]))


def counts(session: Session, space: SpaceInfo) -> SpaceCounts:
    """How much there is of everything. Raises NotFoundError."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    state = session.one(SPACE_STATE, **here)
    if state is None:
        raise missing_space(space)
    revision, _, model_id = state
    kinds = session.all(COUNT_KINDS, **here)
    rows, pending = session.all(COUNT_ROWS, **here)[0]
    wholes = sum(row[1] for row in kinds)
    model = None if model_id is None else session.one(MODEL, tenant=space.tenant_id, model=model_id)
    return SpaceCounts(
        items=wholes,
        segments=rows - wholes,
        links=session.all(COUNT_LINKS, **here)[0][0],
        by_kind={KINDS[row[0]].value: row[1] for row in kinds},
        pending=pending,
        revision=revision,
        model=model[0] if model else None,
        dimension=model[1] if model else None,
        oldest=min((row[2] for row in kinds), default=None),
        newest=max((row[3] for row in kinds), default=None),
    )

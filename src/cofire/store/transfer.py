"""Everything of a space in order and in bounded memory, and putting it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from sqlalchemy import and_, bindparam, func, or_, select, update

from cofire.errors import InputError
from cofire.store.deriving import derived_page
from cofire.store.events import EVENT_PAGE, event_from_row
from cofire.store.linking import EXISTING
from cofire.store.reading import ITEM_SELECTION, ITEM_SOURCE, LINK_SELECT, ONE, link_row
from cofire.store.recording import recall_from_row, set_access
from cofire.store.records import (
    LINK_CODES,
    Amendment,
    DerivedFields,
    EventRecord,
    ItemRow,
    LinkRow,
    RecallRecord,
    SpaceInfo,
    VersionRow,
)
from cofire.store.rows import LINK_COLUMNS, VERSION_COLUMNS, item_from_row, quota_text
from cofire.store.schema import items, links, recalls, versions
from cofire.store.session import Backend, Query, Row, Session, of_space
from cofire.store.strengths import LINK_KEY, REMOVE_LINK
from cofire.store.updating import ADD_VERSION
from cofire.store.writing import ADD_LINK, take_turn

T = TypeVar("T")
PAGE = 500

LAST_NUMBER = Query(
    lambda _: select(func.coalesce(func.max(items.c.number), 0)).where(
        items.c.tenant == bindparam("tenant"), items.c.space == bindparam("space")
    )
)
ITEM_PAGE = Query(
    lambda _: (
        select(*ITEM_SELECTION)
        .select_from(ITEM_SOURCE)
        .where(
            ONE.c.tenant == bindparam("tenant"),
            ONE.c.space == bindparam("space"),
            ONE.c.number > bindparam("after"),
            ONE.c.number <= bindparam("last"),
            or_(ONE.c.parent == 0, bindparam("with_segments") == 1),
        )
        .order_by(ONE.c.number)
        .limit(bindparam("row_limit"))
    )
)
LINK_PAGE = Query(
    lambda _: LINK_SELECT.where(
        links.c.source >= bindparam("source"),
        or_(links.c.source > bindparam("source"), links.c.target > bindparam("target")),
        links.c.source <= bindparam("last"),
        links.c.target <= bindparam("last"),
    ).limit(bindparam("row_limit"))
)
VERSION_PAGE = Query(
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
            versions.c.number >= bindparam("number"),
            or_(versions.c.number > bindparam("number"), versions.c.version > bindparam("version")),
            versions.c.number <= bindparam("last"),
        )
        .order_by(versions.c.number, versions.c.version)
        .limit(bindparam("row_limit"))
    )
)
RECALL_PAGE = Query(
    lambda _: (
        select(
            recalls.c.uid, recalls.c.query, recalls.c.time, recalls.c.profile, recalls.c.principal
        )
        .where(
            recalls.c.tenant == bindparam("tenant"),
            recalls.c.space == bindparam("space"),
            recalls.c.uid > bindparam("after"),
        )
        .order_by(recalls.c.uid)
        .limit(bindparam("row_limit"))
    )
)
AMEND = Query(
    lambda _: (
        update(items)
        .where(
            and_(
                items.c.tenant == bindparam("in_tenant"),
                items.c.space == bindparam("in_space"),
                items.c.number == bindparam("at_number"),
            )
        )
        .values(updated=bindparam("new_updated"), version=bindparam("new_version"))
    )
)


def _pages(
    backend: Backend, space: SpaceInfo, read: Callable[[Session, T | None], list[T]]
) -> Iterator[T]:
    """Rows, a page to a transaction: a slow consumer must not hold a snapshot open."""

    def page_after(former: T | None) -> list[T]:
        return backend.read(of_space(space), lambda session: read(session, former))

    last: T | None = None
    while True:
        page = page_after(last)
        yield from page
        if len(page) < PAGE:
            return
        last = page[-1]


def last_number(backend: Backend, space: SpaceInfo) -> int:
    """The highest number in use: where an export that begins now will end."""
    rows = backend.glance(
        of_space(space), LAST_NUMBER, tenant=space.tenant_id, space=space.space_id
    )
    number: int = rows[0][0]
    return number


def iterate_items(
    backend: Backend, space: SpaceInfo, *, last: int, segments: bool
) -> Iterator[ItemRow]:
    def read(session: Session, former: ItemRow | None) -> list[ItemRow]:
        rows = session.all(
            ITEM_PAGE,
            tenant=space.tenant_id,
            space=space.space_id,
            after=former.number if former else 0,
            last=last,
            with_segments=int(segments),
            row_limit=PAGE,
        )
        return [item_from_row(row) for row in rows]

    return _pages(backend, space, read)


def iterate_links(backend: Backend, space: SpaceInfo, *, last: int) -> Iterator[LinkRow]:
    def read(session: Session, former: LinkRow | None) -> list[LinkRow]:
        rows = session.all(
            LINK_PAGE,
            tenant=space.tenant_id,
            space=space.space_id,
            source=former.source if former else 0,
            target=former.target if former else 0,
            last=last,
            row_limit=PAGE,
        )
        return [link_row(row) for row in rows]

    return _pages(backend, space, read)


def iterate_versions(backend: Backend, space: SpaceInfo, *, last: int) -> Iterator[VersionRow]:
    def read(session: Session, former: VersionRow | None) -> list[VersionRow]:
        rows = session.all(
            VERSION_PAGE,
            tenant=space.tenant_id,
            space=space.space_id,
            number=former.number if former else 0,
            version=former.version if former else 0,
            last=last,
            row_limit=PAGE,
        )
        return [VersionRow._make(row) for row in rows]

    return _pages(backend, space, read)


def iterate_recalls(backend: Backend, space: SpaceInfo) -> Iterator[RecallRecord]:
    def read(session: Session, former: RecallRecord | None) -> list[RecallRecord]:
        rows = session.all(
            RECALL_PAGE,
            tenant=space.tenant_id,
            space=space.space_id,
            after=former.uid if former else b"",
            row_limit=PAGE,
        )
        return [recall_from_row(session, space, row) for row in rows]

    return _pages(backend, space, read)


def iterate_events(backend: Backend, space: SpaceInfo) -> Iterator[EventRecord]:
    def read(session: Session, former: EventRecord | None) -> list[EventRecord]:
        rows = session.all(
            EVENT_PAGE,
            tenant=space.tenant_id,
            space=space.space_id,
            after=former.seq if former else 0,
            row_limit=PAGE,
        )
        return [event_from_row(row) for row in rows]

    return _pages(backend, space, read)


def iterate_derived(backend: Backend, space: SpaceInfo, *, last: int) -> Iterator[DerivedFields]:
    here = {"tenant": space.tenant_id, "space": space.space_id}

    def read(session: Session, former: DerivedFields | None) -> list[DerivedFields]:
        after = former.number if former else 0
        return derived_page(session, here, after=after, last=last, limit=PAGE)

    return _pages(backend, space, read)


def amend(session: Session, space: SpaceInfo, amendments: Sequence[Amendment]) -> None:
    """Gives imported items the fields that only use gives, and their former texts."""
    for amendment in amendments:
        touched = session.run(
            AMEND,
            in_tenant=space.tenant_id,
            in_space=space.space_id,
            at_number=amendment.number,
            new_updated=amendment.updated,
            new_version=amendment.version,
        )
        if not touched:
            raise InputError(f"{space.ref}: no memory with number {amendment.number} to amend")
    history: list[Row] = [
        (
            space.tenant_id,
            space.space_id,
            amendment.number,
            former.version,
            former.content,
            former.title,
            former.replaced,
        )
        for amendment in amendments
        for former in amendment.history
    ]
    session.many(ADD_VERSION, history, VERSION_COLUMNS)
    counted = [
        (amendment.number, amendment.access_count, amendment.last_accessed)
        for amendment in amendments
        if amendment.last_accessed is not None
    ]
    set_access(session, space, counted)


def put_links(session: Session, space: SpaceInfo, rows: Sequence[LinkRow]) -> int:
    """Writes links with everything they carry, in place of links of the same pairs; returns the
    revision. Their uids are not looked at. Raises InputError if an end does not exist."""
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    ends = sorted({row.source for row in rows} | {row.target for row in rows})
    found = {row[0] for row in session.all(EXISTING, numbers=session.pack(ends), **here)}
    missing = [end for end in ends if end not in found]
    if missing:
        raise InputError(f"{space.ref}: links name memories that do not exist: {missing[:5]}")
    session.many(
        REMOVE_LINK,
        [(turn.tenant, turn.space, row.source, row.target) for row in rows],
        LINK_KEY,
    )
    session.many(
        ADD_LINK,
        [
            (
                turn.tenant,
                turn.space,
                row.source,
                row.target,
                LINK_CODES[row.type],
                row.strength,
                row.coactivations,
                row.last_coactivated,
                row.created,
                turn.revision,
                row.rejections,
                row.tick,
                row.quota_day,
                quota_text(row.quota),
            )
            for row in rows
        ],
        LINK_COLUMNS,
    )
    return turn.revision

"""Listing memories page by page, with literal filters.

Speakers, sessions, tags and metadata are compared by their 64-bit hashes, as in the active graph:
equal only if they are equal character by character.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Table, and_, bindparam, exists, func, or_, select

from cofire.errors import InputError
from cofire.store.reading import ITEM_SELECTION, ITEM_SOURCE, ONE
from cofire.store.records import UNTRUSTED_SIGNAL, ItemRow, ListedRow, SpaceInfo
from cofire.store.rows import attribute_hashes, item_from_row, kind_code, label_hash, tag_hashes
from cofire.store.schema import attributes, derived, tags
from cofire.store.session import Query, Session, SqlFlavour
from cofire.types import Filters, to_micros

Cursor = tuple[int, bytes]
"""Where a page ended: the time and uid of its last item."""


def list_items(
    session: Session,
    among: Sequence[SpaceInfo],
    filters: Filters,
    *,
    after: Cursor | None = None,
    limit: int = 100,
    newest_first: bool = True,
    archived: bool = False,
    with_derived: bool = True,
) -> list[ListedRow]:
    """Up to `limit` whole items of the spaces by (time, uid), after the position `after`: those
    that are not `archived`, or only those; with what was derived, or without."""
    if limit < 1:
        raise InputError(f"a page needs a limit of at least 1, not {limit}")
    parameters = filter_parameters(session, filters)
    if after is not None:
        parameters["after_time"], parameters["after_uid"] = after
    shape = filter_shape(filters)
    query = _page(
        kinds=shape.kinds,
        speakers=shape.speakers,
        sessions=shape.sessions,
        tags_wanted=shape.tags,
        attributes_wanted=shape.attributes,
        since=shape.since,
        until=shape.until,
        trusted_only=shape.trusted_only,
        after=after is not None,
        newest_first=newest_first,
        archived=archived,
        with_derived=with_derived,
    )
    pages: list[list[ListedRow]] = []
    for space in among:
        rows = session.all(
            query,
            tenant=space.tenant_id,
            space=space.space_id,
            row_limit=limit,
            **parameters,
        )
        pages.append([ListedRow(space, item_from_row(row)) for row in rows])
    if len(pages) == 1:
        return pages[0]
    merged = heapq.merge(*pages, key=lambda row: _position(row.item), reverse=newest_first)
    return [row for row, _ in zip(merged, range(limit), strict=False)]


def _position(item: ItemRow) -> Cursor:
    return item.time, item.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterShape:
    """Which conditions filters make. Of tags and attributes 0, 1 or several are wanted, and 2
    stands for several."""

    kinds: bool
    speakers: bool
    sessions: bool
    tags: int
    attributes: int
    since: bool
    until: bool
    trusted_only: bool


def filter_shape(filters: Filters) -> FilterShape:
    """What `filter_conditions` are made by."""
    return FilterShape(
        kinds=bool(filters.kinds),
        speakers=bool(filters.speakers),
        sessions=bool(filters.sessions),
        tags=min(2, len(set(filters.tags))),
        attributes=min(2, len(filters.metadata)),
        since=filters.since is not None,
        until=filters.until is not None,
        trusted_only=filters.trusted_only,
    )


def filter_parameters(session: Session, filters: Filters) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if filters.kinds:
        parameters["kinds"] = session.pack([kind_code(str(kind)) for kind in filters.kinds])
    for name, values in (("speaker", filters.speakers), ("session", filters.sessions)):
        if values:
            parameters[f"{name}_hashes"] = session.pack(
                [label_hash(name, value) for value in values]
            )
    for name, hashes in (
        ("tag", set(tag_hashes(filters.tags))),
        ("attribute", set(attribute_hashes(filters.metadata))),
    ):
        if hashes:
            parameters[f"{name}_hashes"] = session.pack(sorted(hashes))
            parameters[f"{name}_count"] = len(hashes)
            parameters[f"{name}_first"] = min(hashes)
    if filters.since is not None:
        parameters["since"] = to_micros(filters.since)
    if filters.until is not None:
        parameters["until"] = to_micros(filters.until)
    return parameters


@cache
def _page(
    *,
    kinds: bool,
    speakers: bool,
    sessions: bool,
    tags_wanted: int,
    attributes_wanted: int,
    since: bool,
    until: bool,
    trusted_only: bool,
    after: bool,
    newest_first: bool,
    archived: bool,
    with_derived: bool,
) -> Query:
    """The query of a page with these conditions; one per combination, kept."""
    wanted = FilterShape(
        kinds=kinds,
        speakers=speakers,
        sessions=sessions,
        tags=tags_wanted,
        attributes=attributes_wanted,
        since=since,
        until=until,
        trusted_only=trusted_only,
    )

    def build(flavour: SqlFlavour) -> Any:
        conditions: list[Any] = [
            ONE.c.tenant == bindparam("tenant"),
            ONE.c.space == bindparam("space"),
            ONE.c.parent == 0,
            ONE.c.archived.is_not(None) if archived else ONE.c.archived.is_(None),
        ]
        if not with_derived:
            conditions.append(
                ~exists().where(
                    derived.c.tenant == ONE.c.tenant,
                    derived.c.space == ONE.c.space,
                    derived.c.number == ONE.c.number,
                )
            )
        conditions += filter_conditions(flavour, wanted)
        if after:
            conditions.append(_beyond(newest_first))
        order = (ONE.c.time, ONE.c.uid)
        if newest_first:
            order = (ONE.c.time.desc(), ONE.c.uid.desc())  # type: ignore[assignment]
        return (
            select(*ITEM_SELECTION)
            .select_from(ITEM_SOURCE)
            .where(*conditions)
            .order_by(*order)
            .limit(bindparam("row_limit"))
        )

    return Query(build)


def filter_conditions(
    flavour: SqlFlavour, wanted: FilterShape, number: Any = ONE.c.number
) -> list[Any]:
    """Filters as conditions on `ONE`; `number` is whose tags and attributes are meant."""
    conditions: list[Any] = []
    if wanted.kinds:
        conditions.append(ONE.c.kind.in_(flavour.members("kinds")))
    if wanted.trusted_only:  # the column itself is the whole's alone, the mark its segments', too
        conditions.append(ONE.c.signals.op("&")(UNTRUSTED_SIGNAL) == 0)
    if wanted.speakers:
        conditions.append(ONE.c.speaker_hash.in_(flavour.members("speaker_hashes")))
    if wanted.sessions:
        conditions.append(ONE.c.session_hash.in_(flavour.members("session_hashes")))
    for table, name, several in (
        (tags, "tag", wanted.tags),
        (attributes, "attribute", wanted.attributes),
    ):
        if several:
            conditions.append(_carries(table, name, number))
        if several > 1:
            conditions.append(_carries_all(flavour, table, name, number))
    if wanted.since:
        conditions.append(ONE.c.time >= bindparam("since"))
    if wanted.until:
        conditions.append(ONE.c.time < bindparam("until"))
    return conditions


def _carries(table: Table, name: str, number: Any) -> Any:
    """The first of the wanted: quick to look up, and most memories that lack any lack it."""
    return exists().where(
        table.c.tenant == ONE.c.tenant,
        table.c.space == ONE.c.space,
        table.c.hash == bindparam(f"{name}_first"),
        table.c.number == number,
    )


def _carries_all(flavour: SqlFlavour, table: Table, name: str, number: Any) -> Any:
    """One condition, however many are wanted: a database bounds how deep an expression may be."""
    carried = (
        select(func.count())
        .select_from(table)
        .where(
            table.c.tenant == ONE.c.tenant,
            table.c.space == ONE.c.space,
            table.c.number == number,
            table.c.hash.in_(flavour.members(f"{name}_hashes")),
        )
        .scalar_subquery()
    )
    return carried == bindparam(f"{name}_count")


def _beyond(newest_first: bool) -> Any:
    time: Any = bindparam("after_time")
    uid: Any = bindparam("after_uid")
    if newest_first:
        return and_(ONE.c.time <= time, or_(ONE.c.time < time, ONE.c.uid < uid))
    return and_(ONE.c.time >= time, or_(ONE.c.time > time, ONE.c.uid > uid))

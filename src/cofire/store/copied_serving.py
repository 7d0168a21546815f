"""API keys and the audit trail on their way between stores.

They are copied into a tenant that may have some of its own already: rows of the same key are
replaced, others stay. Requests that are to be done once, and how background consolidation stands,
are not copied: the first are over soon, the second is the business of a store's own workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Table, bindparam, delete, insert, select, tuple_

from cofire.store.audit import EARLIEST
from cofire.store.copied_rows import Tally, canonical
from cofire.store.schema import api_keys, audit
from cofire.store.session import Backend, Query, Row, Scope, Session

PAGE = 2_000
"""Rows at once."""


class OfTenant(NamedTuple):
    """A table with a row per something of a tenant, and the statements that copying needs."""

    table: Table
    key: tuple[str, ...]
    """What tells rows of one tenant apart."""
    least: Row
    """A key that comes before every other."""
    further: Query
    between: Query
    remove: Query
    add: Query


def _of_tenant(table: Table, least: Row) -> OfTenant:
    key = [column for column in table.primary_key if column.name != "tenant"]

    def bounds(prefix: str) -> Any:
        return tuple_(*(bindparam(f"{prefix}_{part.name}", type_=part.type) for part in key))

    own = table.c.tenant == bindparam("tenant")
    rows = select(*table.columns[1:]).where(own, tuple_(*key) > bounds("after")).order_by(*key)
    return OfTenant(
        table,
        tuple(column.name for column in key),
        least,
        Query(lambda _: rows.limit(bindparam("row_limit"))),
        Query(lambda _: rows.where(tuple_(*key) <= bounds("last"))),
        Query(lambda _: delete(table).where(own, *(part == bindparam(part.name) for part in key))),
        Query(lambda _: insert(table)),
    )


OF_TENANT = (_of_tenant(api_keys, (b"",)), _of_tenant(audit, (EARLIEST, b"")))


def copy_serving(
    source: Backend, target: Backend, tenant: int, there: int, renamed: Callable[[int], int]
) -> dict[str, tuple[Tally, Tally]]:
    """Copies a tenant's keys and audit trail to its number in the target, and reads them back.
    Returns, by table, the tallies of what is there and of what should be. `renamed` tells a
    space's new id."""

    def copy(copied: OfTenant) -> tuple[Tally, Tally]:
        moved = partial(_moved, copied, renamed=renamed)
        return _copy(copied, (source, tenant), (target, there), moved)

    return {copied.table.name: copy(copied) for copied in OF_TENANT}


def _copy(
    copied: OfTenant,
    of: tuple[Backend, int],
    into: tuple[Backend, int],
    moved: Callable[[Row], Row],
) -> tuple[Tally, Tally]:
    source, tenant = of
    target, there = into
    found, wanted = Tally(), Tally()
    after = copied.least
    while True:
        rows = source.glance(
            Scope(tenant=tenant),
            copied.further,
            tenant=tenant,
            row_limit=PAGE,
            **_bounds("after", copied, after),
        )
        if not rows:
            return found, wanted
        new = [moved(row) for row in rows]
        page = {
            **_bounds("after", copied, after),
            **_bounds("last", copied, _key(copied, rows[-1])),
        }
        target.write(Scope(tenant=there), partial(_put, there, copied, new, page))
        read = target.glance(Scope(tenant=there), copied.between, tenant=there, **page)
        same = set(map(canonical, read))
        # Told as in the source, so that the digest does not depend on where the copy is.
        told = list(map(canonical, rows))
        wanted = wanted.counted(told)
        found = found.counted(
            [one for one, row in zip(told, new, strict=True) if canonical(row) in same]
        )
        after = _key(copied, rows[-1])


def _put(
    there: int, copied: OfTenant, new: Sequence[Row], page: dict[str, Any], session: Session
) -> None:
    known = {
        _key(copied, row): canonical(row)
        for row in session.all(copied.between, tenant=there, **page)
    }
    changed = [row for row in new if known.get(_key(copied, row)) != canonical(row)]
    for row in changed:
        key = _key(copied, row)
        if key in known:
            session.run(copied.remove, tenant=there, **dict(zip(copied.key, key, strict=True)))
    columns = tuple(column.name for column in copied.table.columns)
    session.many(copied.add, [(there, *row) for row in changed], columns)


def _bounds(prefix: str, copied: OfTenant, key: Iterable[Any]) -> dict[str, Any]:
    return {f"{prefix}_{name}": value for name, value in zip(copied.key, key, strict=True)}


def _key(copied: OfTenant, row: Row) -> Row:
    names = [column.name for column in copied.table.columns[1:]]
    return tuple(row[names.index(name)] for name in copied.key)


def _moved(copied: OfTenant, row: Row, renamed: Callable[[int], int]) -> Row:
    names = [column.name for column in copied.table.columns[1:]]
    return tuple(
        renamed(value) if name == "space" and value is not None else value
        for name, value in zip(names, row, strict=True)
    )

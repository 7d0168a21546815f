"""Receipts of deletion on their way between stores: they name spaces by ids that may change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import bindparam, select, update

from cofire.store.copied_rows import Tally, canonical
from cofire.store.receipts import ADD_RECEIPT, ONE_RECEIPT, RECEIPT_COLUMNS
from cofire.store.records import canonical_json
from cofire.store.schema import receipts
from cofire.store.session import Backend, Query, Row, Scope, Session

PAGE = 200
"""Receipts at once: each lists the ids of what went."""

RECEIPTS_AFTER = Query(
    lambda _: (
        select(
            receipts.c.tenant, receipts.c.uid, receipts.c.time, receipts.c.scrubbed, receipts.c.body
        )
        .where(receipts.c.tenant == bindparam("tenant"), receipts.c.uid > bindparam("after"))
        .order_by(receipts.c.uid)
        .limit(bindparam("row_limit"))
    )
)
REPLACE_RECEIPT = Query(
    lambda _: (
        update(receipts)
        .where(receipts.c.tenant == bindparam("in_tenant"), receipts.c.uid == bindparam("at_uid"))
        .values(
            time=bindparam("new_time"),
            scrubbed=bindparam("new_scrubbed"),
            body=bindparam("new_body"),
        )
    )
)


def copy_receipts(
    source: Backend, target: Backend, tenant: int, there: int, renamed: Callable[[int], int]
) -> tuple[Tally, Tally]:
    """Copies the receipts of a tenant to its number in the target, and reads them back. Returns
    the tallies of what is there and of what should be. `renamed` tells a space's new id."""
    found, wanted = Tally(), Tally()
    after = b""
    while True:
        rows = source.glance(
            Scope(tenant=tenant), RECEIPTS_AFTER, tenant=tenant, after=after, row_limit=PAGE
        )
        if not rows:
            return found, wanted
        after = rows[-1][1]
        moved = [(there, *row[1:4], _renamed(row[4], renamed)) for row in rows]
        target.write(Scope(tenant=there), partial(_put, rows=moved))
        read = target.read(Scope(tenant=there), partial(_read, rows=moved))
        # Told as in the source, so that the digest does not depend on where the copy is.
        same = [one == other for one, other in zip(read, moved, strict=True)]
        wanted = wanted.counted([canonical(row[1:]) for row in rows])
        found = found.counted(
            [canonical(row[1:]) for row, good in zip(rows, same, strict=True) if good]
        )


def _renamed(body: str, renamed: Callable[[int], int]) -> str:
    parts: list[dict[str, Any]] = json.loads(body)
    for part in parts:
        if "space_id" in part:
            part["space_id"] = renamed(part["space_id"])
    return canonical_json(parts)


def _put(session: Session, rows: Sequence[Row]) -> None:
    new = []
    for row in rows:
        tenant, uid, time, scrubbed, body = row
        fields = {"new_time": time, "new_scrubbed": scrubbed, "new_body": body}
        if session.run(REPLACE_RECEIPT, in_tenant=tenant, at_uid=uid, **fields) == 0:
            new.append(row)
    session.many(ADD_RECEIPT, new, RECEIPT_COLUMNS)


def _read(session: Session, rows: Sequence[Row]) -> list[Row | None]:
    return [session.one(ONE_RECEIPT, tenant=row[0], uid=row[1]) for row in rows]

"""Receipts of deletion: ids, counts and a time, and no content; and whether they are true."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import bindparam, func, insert, or_, select, text, update

from cofire.store.reading import counts
from cofire.store.records import (
    Forgotten,
    ReceiptPart,
    ReceiptRow,
    SpaceInfo,
    canonical_json,
)
from cofire.store.schema import (
    NUMBERED_TABLES,
    SPACE_TABLES,
    derived,
    events,
    items,
    links,
    recalls,
    receipts,
    sources,
    spaces,
)
from cofire.store.session import Query, Row, Session
from cofire.types import Kind, SpaceRef

Work = Callable[[Session], Sequence[ReceiptPart]]
"""Deletes within a transaction, and says what."""

ADD_RECEIPT = Query(lambda _: insert(receipts))
RECEIPT_COLUMNS = tuple(column.name for column in receipts.columns)
_RECEIPT = (
    receipts.c.tenant,
    receipts.c.uid,
    receipts.c.time,
    receipts.c.scrubbed,
    receipts.c.body,
)
ONE_RECEIPT = Query(
    lambda _: select(*_RECEIPT).where(
        receipts.c.tenant == bindparam("tenant"), receipts.c.uid == bindparam("uid")
    )
)
ALL_RECEIPTS = Query(
    lambda _: (
        select(*_RECEIPT)
        .where(receipts.c.tenant == bindparam("tenant"))
        .order_by(receipts.c.uid.desc())
    )
)
# Said so that the index of these rows is used: a bound value would not do.
PENDING = Query(lambda _: select(*_RECEIPT).where(text("receipts.scrubbed = 0")))
MARK = Query(
    lambda _: (
        update(receipts)
        .where(receipts.c.tenant == bindparam("in_tenant"), receipts.c.uid == bindparam("at_uid"))
        .values(scrubbed=1)
    )
)
COUNT_DERIVED = Query(
    lambda _: select(func.count()).where(
        derived.c.tenant == bindparam("tenant"), derived.c.space == bindparam("space")
    )
)
_other = recalls.alias("other")
ASKED_ELSEWHERE = Query(
    lambda _: (
        select(_other.c.space, _other.c.uid)
        .select_from(
            recalls.join(
                spaces, (spaces.c.tenant == recalls.c.tenant) & (spaces.c.project != "")
            ).join(
                _other,
                (_other.c.tenant == recalls.c.tenant)
                & (_other.c.space == spaces.c.id)
                & (_other.c.uid == recalls.c.uid),
            )
        )
        .where(
            recalls.c.tenant == bindparam("tenant"),
            recalls.c.space == bindparam("space"),
            spaces.c.id != bindparam("space"),
        )
    )
)
# The spaces that `ASKED_ELSEWHERE` looks into.
PROJECTS = Query(
    lambda _: select(spaces.c.id).where(
        spaces.c.tenant == bindparam("tenant"), spaces.c.project != ""
    )
)
COUNT_RECALLS = Query(
    lambda _: select(func.count()).where(
        recalls.c.tenant == bindparam("tenant"), recalls.c.space == bindparam("space")
    )
)
UIDS_OF = Query(
    lambda flavour: select(items.c.uid).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.number.in_(flavour.members("numbers")),
    )
)
# An id may come back in another space of the tenant, by an import.
BY_UID = Query(
    lambda _: select(items.c.number).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space.in_(
            select(spaces.c.id).where(spaces.c.tenant == bindparam("tenant")).scalar_subquery()
        ),
        items.c.uid == bindparam("uid"),
    )
)
OF_SPACE = tuple(
    (
        table.name,
        Query(
            lambda _, table=table: (
                select(func.count())  # type: ignore[misc]
                .select_from(table)
                .where(table.c.tenant == bindparam("tenant"), table.c.space == bindparam("space"))
            )
        ),
    )
    for table in SPACE_TABLES
)


def _about(table: Any, *columns: str) -> tuple[str, Query]:
    """How many rows of a table name any of the numbers, in one of the columns."""
    query = Query(
        lambda flavour: (
            select(func.count())
            .select_from(table)
            .where(
                table.c.tenant == bindparam("tenant"),
                table.c.space == bindparam("space"),
                or_(*(table.c[column].in_(flavour.members("numbers")) for column in columns)),
            )
        )
    )
    return table.name, query


OF_NUMBERS = (
    *(_about(table, "number") for table in NUMBERED_TABLES if table is not sources),
    _about(sources, "number", "source"),
    _about(links, "source", "target"),
    _about(events, "cue"),
)


def part_of(session: Session, space: SpaceInfo, forgotten: Forgotten) -> ReceiptPart:
    """What a receipt says of a deletion from one space."""
    return ReceiptPart(
        ref=space.ref,
        space_id=space.space_id,
        uids=tuple(sorted(forgotten.uids)),
        numbers=forgotten.numbers,
        doubtful=_uids(session, space, forgotten.doubtful),
        reopened=_uids(session, space, forgotten.reopened),
        memories=forgotten.memories,
        derived=forgotten.derived,
        cues=forgotten.cues,
        links=forgotten.links,
        recalls=forgotten.recalls,
    )


def part_of_all(session: Session, space: SpaceInfo) -> ReceiptPart:
    """What a receipt will say of deleting a whole space."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    there = counts(session, space)
    made: int = session.all(COUNT_DERIVED, **here)[0][0]
    cues = there.by_kind.get(Kind.CUE.value, 0)
    return ReceiptPart(
        ref=space.ref,
        space_id=space.space_id,
        whole=True,
        memories=there.items - made - cues,
        derived=made,
        cues=cues,
        links=there.links,
        recalls=session.all(COUNT_RECALLS, **here)[0][0],
    )


def asked_elsewhere(session: Session, space: SpaceInfo) -> list[tuple[int, bytes]]:
    """The questions of a space that projects of its tenant have a record of, too: the project's
    space and the recall."""
    rows = session.all(ASKED_ELSEWHERE, tenant=space.tenant_id, space=space.space_id)
    return [(row[0], row[1]) for row in rows]


def _uids(session: Session, space: SpaceInfo, numbers: Sequence[int]) -> tuple[bytes, ...]:
    here = {"tenant": space.tenant_id, "space": space.space_id}
    rows = session.all(UIDS_OF, numbers=session.pack(list(numbers)), **here)
    return tuple(sorted(row[0] for row in rows))


def add_receipt(session: Session, receipt: ReceiptRow) -> None:
    """Keeps a receipt."""
    body = canonical_json([_to_json(part) for part in receipt.parts])
    row = (receipt.tenant_id, receipt.uid, receipt.time, int(receipt.scrubbed), body)
    session.many(ADD_RECEIPT, [row], RECEIPT_COLUMNS)


def read_receipt(session: Session, tenant: int, uid: bytes) -> ReceiptRow | None:
    """One receipt of a tenant."""
    row = session.one(ONE_RECEIPT, tenant=tenant, uid=uid)
    return None if row is None else _receipt(row)


def read_receipts(session: Session, tenant: int) -> list[ReceiptRow]:
    """A tenant's receipts, newest first."""
    return [_receipt(row) for row in session.all(ALL_RECEIPTS, tenant=tenant)]


def pending(session: Session) -> list[ReceiptRow]:
    """Every receipt of something of which traces may be left in the files."""
    return [_receipt(row) for row in session.all(PENDING)]


def mark_scrubbed(session: Session, done: Iterable[ReceiptRow]) -> None:
    """Notes that no trace is left."""
    for receipt in done:
        session.run(MARK, in_tenant=receipt.tenant_id, at_uid=receipt.uid)


def traces(session: Session, receipt: ReceiptRow) -> dict[str, int]:
    """In which tables there still (or again) is how much of what a receipt says is gone."""
    found: dict[str, int] = {}
    for part in receipt.parts:
        here = {"tenant": receipt.tenant_id, "space": part.space_id}
        if part.whole:
            for name, query in OF_SPACE:
                found[name] = found.get(name, 0) + session.all(query, **here)[0][0]
            continue
        packed = session.pack(list(part.numbers))
        for name, query in OF_NUMBERS:
            found[name] = found.get(name, 0) + session.all(query, numbers=packed, **here)[0][0]
        if not found["items"]:  # their numbers are gone, but an import brings ids back
            found["items"] = sum(
                len(session.all(BY_UID, tenant=receipt.tenant_id, uid=uid)) for uid in part.uids
            )
    return {name: count for name, count in found.items() if count}


def _receipt(row: Row) -> ReceiptRow:
    tenant, uid, time, scrubbed, body = row
    return ReceiptRow(
        tenant_id=tenant,
        uid=uid,
        time=time,
        scrubbed=scrubbed != 0,
        parts=tuple(_from_json(part) for part in json.loads(body)),
    )


_UIDS = ("uids", "doubtful", "reopened")


def _to_json(part: ReceiptPart) -> dict[str, Any]:
    values: dict[str, Any] = asdict(part)
    for name in _UIDS:
        values[name] = [uid.hex() for uid in values[name]]
    return {name: value for name, value in values.items() if value or name == "ref"}


def _from_json(values: Mapping[str, Any]) -> ReceiptPart:
    lists: dict[str, Any] = {
        name: tuple(map(bytes.fromhex, values.get(name, ()))) for name in _UIDS
    }
    lists["numbers"] = tuple(values.get("numbers", ()))
    return ReceiptPart(**{**values, "ref": SpaceRef(**values["ref"]), **lists})

"""The audit trail: who did what, when and with what outcome, and never what it was about."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, insert, select, tuple_

from cofire.errors import InputError
from cofire.store.schema import audit
from cofire.store.serving_records import (
    LONGEST_NAME,
    OUTCOMES,
    SURFACES,
    AuditCursor,
    AuditEntry,
)
from cofire.store.session import Query, Row, Session
from cofire.store.spaces import find_tenant, make_tenant

EARLIEST, LATEST = -(1 << 63), (1 << 63) - 1
AFTER_ALL: AuditCursor = (LATEST, b"\xff" * 17)
"""What every entry comes before."""

_FIELDS = tuple(column for column in audit.columns if column is not audit.c.tenant)

ADD_ENTRIES = Query(lambda _: insert(audit))
ENTRY_COLUMNS = tuple(column.name for column in audit.columns)
AT_TIMES = Query(
    lambda flavour: select(audit.c.time, audit.c.uid).where(
        audit.c.tenant == bindparam("tenant"), audit.c.time.in_(flavour.members("times"))
    )
)
PURGE_ENTRIES = Query(
    lambda _: delete(audit).where(
        audit.c.tenant == bindparam("tenant"), audit.c.time < bindparam("before")
    )
)


def _page(of_principal: bool, of_action: bool) -> Query:
    # The bounds are said of the time as well: by a pair alone SQLite starts at the right place,
    # but does not stop.
    conditions = [
        audit.c.tenant == bindparam("tenant"),
        audit.c.time >= bindparam("since"),
        audit.c.time <= bindparam("last"),
        tuple_(audit.c.time, audit.c.uid)
        < tuple_(bindparam("after_time"), bindparam("after_uid", type_=audit.c.uid.type)),
    ]
    if of_principal:
        conditions.append(audit.c.principal == bindparam("principal"))
    if of_action:
        conditions.append(audit.c.action == bindparam("action"))
    return Query(
        lambda _: (
            select(*_FIELDS)
            .where(*conditions)
            .order_by(audit.c.time.desc(), audit.c.uid.desc())
            .limit(bindparam("row_limit"))
        )
    )


PAGES = tuple(_page(one, other) for one in (False, True) for other in (False, True))
"""Entries, newest first: all, of an action, of a principal, of both."""


def write_audit(session: Session, tenant: str, entries: Sequence[AuditEntry]) -> int:
    """Keeps entries of a tenant, made if need be; returns how many are new."""
    number = make_tenant(session, tenant)
    times = sorted({entry.time for entry in entries})
    there = {(time, uid) for time, uid in session.all(AT_TIMES, tenant=number, times=times)}
    new = {(entry.time, entry.uid): entry for entry in entries}
    rows = [_row(number, entry) for place, entry in new.items() if place not in there]
    session.many(ADD_ENTRIES, rows, ENTRY_COLUMNS)
    return len(rows)


def list_audit(
    session: Session,
    tenant: str,
    *,
    since: int | None,
    until: int | None,
    principal: str | None,
    action: str | None,
    after: AuditCursor | None,
    limit: int,
) -> list[AuditEntry]:
    """A page of a tenant's entries with `since` ≤ time < `until`, newest first."""
    number = find_tenant(session, tenant)
    if number is None:
        return []
    time, uid = after or AFTER_ALL
    query = PAGES[2 * (principal is not None) + (action is not None)]
    asked = {"principal": principal, "action": action}
    rows = session.all(
        query,
        tenant=number,
        since=EARLIEST if since is None else since,
        last=min(time, LATEST if until is None else until - 1),
        after_time=time,
        after_uid=uid,
        row_limit=limit,
        **{name: value for name, value in asked.items() if value is not None},
    )
    return [_entry(tenant, row) for row in rows]


def purge_audit(session: Session, tenant: str, before: int) -> int:
    """Deletes a tenant's entries of before `before`; returns how many."""
    number = find_tenant(session, tenant)
    return 0 if number is None else session.run(PURGE_ENTRIES, tenant=number, before=before)


def require_sound(entry: AuditEntry) -> None:
    """Raises InputError for an entry that says something it must not."""
    if entry.surface not in SURFACES or entry.outcome not in OUTCOMES:
        raise InputError(
            f"the surface of an audit entry is one of {', '.join(SURFACES)}, and its outcome of "
            f"{', '.join(OUTCOMES)}; not {entry.surface!r} and {entry.outcome!r}"
        )
    if len(entry.uid) != 16 or not entry.action:
        raise InputError("an audit entry has a uid of 16 bytes and an action")
    for text in (entry.action, entry.principal, entry.code, entry.request):
        if text is not None and len(text) > LONGEST_NAME:
            raise InputError(
                f"a text of an audit entry has at most {LONGEST_NAME} characters, not {len(text)}"
            )


def _row(number: int, entry: AuditEntry) -> Row:
    return (
        number, entry.time, entry.uid, entry.principal, entry.key, entry.surface, entry.action,
        entry.space, entry.outcome, entry.code, entry.count, entry.request,
    )  # fmt: skip


def _entry(tenant: str, row: Row) -> AuditEntry:
    time, uid, principal, key, surface, action, space, outcome, code, count, request = row
    return AuditEntry(
        tenant=tenant,
        time=time,
        uid=uid,
        principal=principal,
        key=key,
        surface=surface,
        action=action,
        space=space,
        outcome=outcome,
        code=code,
        count=count,
        request=request,
    )

"""Requests that are to be done once, however often they are sent.

Whoever begins one gets a *fence*, a number that tells this beginning from every other: the answer
of one that was taken for dead, and wakes up after somebody else began anew, is not kept. The answer
is not written in the transaction of what was asked for, so a process that is killed between the two
leaves a request that is done again; `remember` has keys of its own against that.
"""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import bindparam, delete, insert, null, select, update

from cofire.errors import InputError
from cofire.store.schema import idempotency
from cofire.store.serving_records import Begun
from cofire.store.session import Query, Session
from cofire.store.spaces import find_tenant, make_tenant

RUNNING, DONE = 0, 1

_THAT = (
    idempotency.c.tenant == bindparam("in_tenant"),
    idempotency.c.hash == bindparam("at_hash"),
    idempotency.c.fence == bindparam("at_fence"),
)
_OWN = (*_THAT, idempotency.c.state == RUNNING)

READ_REQUEST = Query(
    lambda _: select(
        idempotency.c.digest,
        idempotency.c.state,
        idempotency.c.fence,
        idempotency.c.status,
        idempotency.c.response,
        idempotency.c.created,
        idempotency.c.expires,
    ).where(idempotency.c.tenant == bindparam("tenant"), idempotency.c.hash == bindparam("hash"))
)
ADD_REQUEST = Query(lambda _: insert(idempotency))
REQUEST_COLUMNS = tuple(column.name for column in idempotency.columns)
TAKE_REQUEST = Query(
    lambda _: (
        update(idempotency)
        .where(*_THAT)
        .values(
            digest=bindparam("new_digest"),
            state=RUNNING,
            fence=bindparam("new_fence"),
            status=null(),
            response=null(),
            created=bindparam("new_created"),
            expires=bindparam("new_expires"),
        )
    )
)
FINISH_REQUEST = Query(
    lambda _: (
        update(idempotency)
        .where(*_OWN)
        .values(state=DONE, status=bindparam("new_status"), response=bindparam("new_response"))
    )
)
ABANDON_REQUEST = Query(lambda _: delete(idempotency).where(*_OWN))
PURGE_REQUESTS = Query(
    lambda _: delete(idempotency).where(
        idempotency.c.tenant == bindparam("tenant"), idempotency.c.expires <= bindparam("moment")
    )
)


def begin_request(
    session: Session,
    tenant: str,
    hash: bytes,
    digest: bytes,
    *,
    now: int,
    expires: int,
    stale: int,
) -> Begun:
    """Begins a request, or says what became of it. Raises InputError."""
    if not 16 <= len(hash) <= 64 or not digest:
        raise InputError("a request has a hash of 16 to 64 bytes and a digest")
    if expires <= now or stale <= 0:
        raise InputError("a request expires after it begins, and is stale after more than 0 µs")
    number = make_tenant(session, tenant)
    row = session.one(READ_REQUEST, tenant=number, hash=hash)
    if row is None:
        own = _new_fence()
        new = (number, hash, digest, RUNNING, own, None, None, now, expires)
        session.many(ADD_REQUEST, [new], REQUEST_COLUMNS)
        return Begun("new", own)
    known, state, fence, status, response, created, kept_until = row
    live = now < kept_until
    if live and bytes(known) != digest:
        return Begun("mismatch")
    if live and state == DONE:
        return Begun("done", status=status, response=response)
    if live and now < created + stale:
        return Begun("running")
    own = _new_fence()
    taken = session.run(
        TAKE_REQUEST,
        in_tenant=number,
        at_hash=hash,
        at_fence=fence,
        new_digest=digest,
        new_fence=own,
        new_created=now,
        new_expires=expires,
    )
    return Begun("new", own) if taken else Begun("running")


def finish_request(
    session: Session, tenant: str, hash: bytes, fence: int, *, status: int, response: str
) -> bool:
    """Keeps the answer to a request, if it is still one's own."""
    own = _own(session, tenant, hash, fence)
    if own is None:
        return False
    return session.run(FINISH_REQUEST, new_status=status, new_response=response, **own) > 0


def abandon_request(session: Session, tenant: str, hash: bytes, fence: int) -> bool:
    """Forgets a request, if it is still one's own and running."""
    own = _own(session, tenant, hash, fence)
    return own is not None and session.run(ABANDON_REQUEST, **own) > 0


def purge_requests(session: Session, tenant: str, now: int) -> int:
    """Deletes a tenant's requests that have expired; returns how many."""
    number = find_tenant(session, tenant)
    return 0 if number is None else session.run(PURGE_REQUESTS, tenant=number, moment=now)


def _new_fence() -> int:
    # Not counted: one that was abandoned leaves no row to count on from.
    return int.from_bytes(os.urandom(8), "little") >> 1


def _own(session: Session, tenant: str, hash: bytes, fence: int) -> dict[str, Any] | None:
    number = find_tenant(session, tenant)
    if number is None:
        return None
    return {"in_tenant": number, "at_hash": hash, "at_fence": fence}

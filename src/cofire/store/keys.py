"""API keys: who may ask a server for what. Of a secret only the hash is kept."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import bindparam, insert, or_, select, update

from cofire.errors import InputError
from cofire.store.records import canonical_json, tenant_number
from cofire.store.schema import api_keys, tenants
from cofire.store.serving_records import LONGEST_NAME, SCOPES, KeyRecord, NewKey
from cofire.store.session import Query, Row, Session
from cofire.store.spaces import find_tenant, make_tenant

TOUCH_EVERY = 60_000_000
"""µs between two notes that a key is used."""

_FIELDS = tuple(column for column in api_keys.columns if column is not api_keys.c.tenant)
_ONE = (api_keys.c.tenant == bindparam("tenant"), api_keys.c.uid == bindparam("uid"))
_THAT = (api_keys.c.tenant == bindparam("in_tenant"), api_keys.c.uid == bindparam("at_uid"))

ADD_KEY = Query(lambda _: insert(api_keys))
KEY_COLUMNS = tuple(column.name for column in api_keys.columns)
FIND_KEY = Query(
    lambda _: (
        select(tenants.c.name.label("tenant_name"), *_FIELDS)
        .select_from(api_keys.join(tenants, tenants.c.id == api_keys.c.tenant))
        .where(*_ONE)
    )
)
LIST_KEYS = Query(
    lambda _: (
        select(*_FIELDS)
        .where(api_keys.c.tenant == bindparam("tenant"))
        .order_by(api_keys.c.created, api_keys.c.uid)
    )
)
REVOKE_KEY = Query(
    lambda _: (
        update(api_keys)
        .where(*_THAT, api_keys.c.revoked.is_(None))
        .values(revoked=bindparam("moment"))
    )
)
TOUCH_KEY = Query(
    lambda _: (
        update(api_keys)
        .where(
            *_THAT,
            or_(api_keys.c.last_used.is_(None), api_keys.c.last_used <= bindparam("before")),
        )
        .values(last_used=bindparam("moment"))
    )
)
ALL_TENANTS = Query(lambda _: select(tenants.c.id, tenants.c.name))


def put_key(session: Session, tenant: str, key: NewKey) -> KeyRecord:
    """Keeps a key; makes the tenant if need be. Raises InputError for a key that could not be
    used, or whose uid is there already."""
    _require_usable(key)
    number = make_tenant(session, tenant)
    if session.one(FIND_KEY, tenant=number, uid=key.uid) is not None:
        raise InputError(f"{tenant}: there is a key with this uid already")
    row = (
        number, key.uid, key.hash, key.name, key.principal, _json(key.identities),
        _json(key.users), _json(key.projects), canonical_json(list(key.scopes)), key.created,
        key.expires, None, None,
    )  # fmt: skip
    session.many(ADD_KEY, [row], KEY_COLUMNS)
    return _record(tenant, row[1:])


def key_record(row: Row) -> KeyRecord:
    """A row of `FIND_KEY`."""
    return _record(row[0], row[1:])


def stored_number(session: Session, number: int) -> int | None:
    """Which number a tenant has in this store that a token names by `tenant_number`: in a file
    from before schema 0004, tenants were counted. Looks at all tenants: for files only."""
    return next(
        (id for id, name in session.all(ALL_TENANTS) if tenant_number(name) == number), None
    )


def list_keys(session: Session, tenant: str) -> list[KeyRecord]:
    """A tenant's keys, oldest first."""
    number = find_tenant(session, tenant)
    rows = [] if number is None else session.all(LIST_KEYS, tenant=number)
    return [_record(tenant, row) for row in rows]


def revoke_key(session: Session, tenant: str, uid: bytes, now: int) -> bool:
    """Makes a key good for nothing from now on; False if there is none or it was before."""
    number = find_tenant(session, tenant)
    if number is None:
        return False
    return session.run(REVOKE_KEY, in_tenant=number, at_uid=uid, moment=now) > 0


def is_stale(key: KeyRecord, now: int) -> bool:
    """Whether its last use should be noted."""
    return key.last_used is None or key.last_used <= now - TOUCH_EVERY


def touch_key(session: Session, number: int, uid: bytes, now: int) -> bool:
    """Notes that a key is used, unless that was done within the last minute."""
    before = now - TOUCH_EVERY
    return session.run(TOUCH_KEY, in_tenant=number, at_uid=uid, before=before, moment=now) > 0


def _require_usable(key: NewKey) -> None:
    if len(key.hash) != 32 or len(key.uid) != 16:
        raise InputError("a key has the SHA-256 of a secret (32 bytes) and a uid of 16 bytes")
    if not key.scopes or not set(key.scopes) <= set(SCOPES):
        raise InputError(f"a key is good for some of {', '.join(SCOPES)}, not {key.scopes}")
    for what, text in (("name", key.name), ("principal", key.principal)):
        if not 0 < len(text) <= LONGEST_NAME:
            raise InputError(f"a key's {what} has 1 to {LONGEST_NAME} characters")
    for names in (key.identities, key.users, key.projects):
        if names is not None and not all(names):
            raise InputError("a key names identities, users and projects by names that are empty")
    if key.expires is not None and key.expires <= key.created:
        raise InputError("a key that has expired when it is made is good for nothing")


def _json(names: Sequence[str] | None) -> str | None:
    return None if names is None else canonical_json(list(dict.fromkeys(names)))


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(json.loads(text))


def _record(tenant: str, row: Row) -> KeyRecord:
    uid, hash, name, principal, identities, users, projects, scopes, *moments = row
    created, expires, revoked, last_used = moments
    return KeyRecord(
        tenant=tenant,
        tenant_number=tenant_number(tenant),
        uid=uid,
        hash=hash,
        name=name,
        principal=principal,
        identities=_names(identities),
        users=_names(users),
        projects=_names(projects),
        scopes=tuple(json.loads(scopes)),
        created=created,
        expires=expires,
        revoked=revoked,
        last_used=last_used,
    )

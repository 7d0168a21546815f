"""API keys: `cofire_<tenant and id>_<secret>`, made once, and kept as the SHA-256 of the secret.

The secret is 32 random bytes, so that a plain hash of it cannot be guessed from; a slow one would
only slow down whoever asks. The first part says where to look: 8 bytes of the tenant's number and
16 of the key's id, in base64url, as the secret is.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cofire.errors import InputError, NotFoundError
from cofire.ids import new_uuid7
from cofire.server.access import DEFAULT_IDENTITY, Caller, Scope
from cofire.store import Store
from cofire.store.records import tenant_number
from cofire.store.serving_records import LONGEST_NAME, KeyRecord, NewKey

PREFIX = "cofire_"
SECRET_BYTES = 32
MOST_NAMES = 1_000
"""Identities, users or projects of one key."""
DEFAULT_SCOPES: tuple[Scope, ...] = (Scope.READ, Scope.WRITE)
FOREIGN = "token:"
"""How the principals of an issuer's tokens begin (`tokens`); no key's name does."""

_TOKEN = re.compile(r"cofire_([A-Za-z0-9_-]{32})_([A-Za-z0-9_-]{43})")
_GREATEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """What a token says: the tenant's number, the key's id (16 bytes), and the SHA-256 of its
    secret, which itself is not kept."""

    tenant_number: int
    uid: bytes
    hash: bytes


def is_key(token: str) -> bool:
    """Whether a bearer token means to be a key of Cofire."""
    return token.startswith(PREFIX)


def read_token(token: str) -> Presented | None:
    """What a token says; None for one that Cofire never made."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return None
    place, secret = (base64.urlsafe_b64decode(f"{part}{'=' * (-len(part) % 4)}")
                     for part in match.groups())  # fmt: skip
    number = int.from_bytes(place[:8], "big")
    if number > _GREATEST or match.group(2) != _text(secret):
        return None
    return Presented(tenant_number=number, uid=place[8:], hash=hashlib.sha256(secret).digest())


def create_key(
    store: Store,
    tenant: str,
    name: str,
    *,
    identities: Iterable[str] | None = (DEFAULT_IDENTITY,),
    users: Iterable[str] | None = None,
    projects: Iterable[str] | None = (),
    scopes: Iterable[str] = DEFAULT_SCOPES,
    expires: datetime | None = None,
    now: datetime | None = None,
) -> tuple[KeyRecord, str]:
    """Make a key for a tenant; returns its record and its token, which is nowhere else.

    `name` is the principal of what is done with it: a key that replaces another has the same name.
    `identities`, `users`, `projects`: those it may name, None any, empty none (a key that is for no
    user in particular has `users=None`). `expires`: from when on it is good for nothing; None:
    never. Raises InputError, StoreError.
    """
    moment = now if now is not None else datetime.now(UTC)
    if expires is not None and expires <= moment:
        raise InputError("the key would have expired already; give it a time to come")
    uid, secret = new_uuid7().bytes, secrets.token_bytes(SECRET_BYTES)
    principal = _name(name)
    record = store.put_key(
        tenant,
        NewKey(
            hash=hashlib.sha256(secret).digest(),
            name=principal,
            principal=principal,
            identities=_some("identity", identities),
            users=_some("user", users),
            projects=_names("project", projects),
            scopes=_scopes(scopes),
            created=_micros(moment),
            expires=None if expires is None else _micros(expires),
            uid=uid,
        ),
    )
    place = tenant_number(tenant).to_bytes(8, "big") + uid
    return record, f"{PREFIX}{_text(place)}_{_text(secret)}"


def revoke_key(store: Store, tenant: str, id: str, *, now: datetime | None = None) -> bool:
    """Make a key good for nothing; False if it was before. Raises InputError, NotFoundError,
    StoreError."""
    uid = key_uid(id)
    if store.revoke_key(tenant, uid, _micros(now if now is not None else datetime.now(UTC))):
        return True
    if any(record.uid == uid for record in store.list_keys(tenant)):
        return False
    raise NotFoundError(f"tenant {tenant!r} has no key {id}; `cofire keys list` lists them")


def key_id(uid: bytes) -> str:
    """The id of a key as text."""
    return str(uuid.UUID(bytes=uid))


def key_uid(id: str) -> bytes:
    """The id of a key as bytes. Raises InputError; what was given is not repeated, since it may be
    the key itself."""
    try:
        return uuid.UUID(id).bytes
    except ValueError:
        raise InputError(
            "that is not the id of a key, such as 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001; "
            "`cofire keys list` has the ids"
        ) from None


def caller_of(record: KeyRecord) -> Caller:
    """Who asks with this key."""
    return Caller(
        name=record.principal,
        tenant=record.tenant,
        identities=record.identities,
        users=record.users,
        projects=record.projects,
        scopes=frozenset(Scope(scope) for scope in record.scopes),
        key=record.uid,
    )


def key_json(record: KeyRecord, now: datetime | None = None) -> dict[str, Any]:
    """A key as JSON has it; neither its secret nor the hash of it. `state` is good, expired or
    revoked; times are ISO 8601 in UTC."""
    moment = _micros(now if now is not None else datetime.now(UTC))
    return {
        "id": key_id(record.uid),
        "name": record.name,
        "tenant": record.tenant,
        "state": state_of(record, moment),
        "identities": _listed(record.identities),
        "users": _listed(record.users),
        "projects": _listed(record.projects),
        "scopes": list(record.scopes),
        "created": time_text(record.created),
        "expires": time_text(record.expires),
        "revoked": time_text(record.revoked),
        "last_used": time_text(record.last_used),
    }


def state_of(record: KeyRecord, now: int) -> str:
    """good, expired or revoked, at `now` (µs)."""
    if record.good(now):
        return "good"
    return "expired" if record.revoked is None else "revoked"


def time_text(micros: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601 in UTC, to the second."""
    if micros is None:
        return None
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)


def _micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _name(name: str) -> str:
    text = name.strip()
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise InputError(
            f"a key's name is 1 to {LONGEST_NAME} printable characters on one line: it says who "
            "gave feedback and who did what"
        )
    if text.startswith(FOREIGN):
        raise InputError(f"a key's name must not begin with {FOREIGN!r}: tokens of an issuer do")
    return text


def _some(what: str, names: Iterable[str] | None) -> tuple[str, ...] | None:
    found = _names(what, names)
    if found is not None and not found:
        raise InputError(f"a key for no {what} could be used for nothing; name one, or allow any")
    return found


def _names(what: str, names: Iterable[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise InputError(f"give the {what} names as a list")
    found = tuple(dict.fromkeys(names))
    if any(not name.strip() for name in found):
        raise InputError(f"the name of a {what} must not be empty")
    if len(found) > MOST_NAMES:
        raise InputError(f"a key takes {MOST_NAMES} {what} names at most; these are {len(found)}")
    return found


def _scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    named = tuple(scopes)
    unknown = [scope for scope in named if scope not in set(Scope)]
    if unknown:
        raise InputError(f"{unknown[0]!r} is no scope; there are {', '.join(Scope)}")
    if not named:
        raise InputError(f"a key without scopes could do nothing; there are {', '.join(Scope)}")
    return tuple(scope.value for scope in Scope if scope in named)

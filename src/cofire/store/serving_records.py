"""What servers and workers keep in a store, as plain values: keys, the audit trail, requests, jobs.

Times and durations are integer microseconds (times since 1970-01-01 UTC), uids 16 bytes (UUIDv7),
unless said otherwise. None of it holds content: no text of a memory, no question.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from cofire.ids import new_uuid7
from cofire.types import SpaceRef

SCOPES: tuple[str, ...] = ("read", "write", "forget", "admin")
"""What a key may be good for."""
SURFACES: tuple[str, ...] = ("rest", "mcp", "cli", "worker", "library")
"""Where something that is audited was asked for."""
OUTCOMES: tuple[str, ...] = ("ok", "denied", "error")
LONGEST_NAME = 200
"""Characters of names, principals, actions, codes and request ids."""
LONGEST_ERROR = 500
"""Characters of an error that a job keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """An API key ready to be stored. `hash`: SHA-256 of its secret, 32 bytes.

    `identities`, `users`, `projects`: those it may name, in order and each once; None any, empty
    none. `scopes`: some of `SCOPES`, at least one. `expires`: from when on it is no longer good;
    None: never.
    """

    hash: bytes
    name: str
    principal: str
    scopes: tuple[str, ...]
    created: int
    identities: tuple[str, ...] | None = None
    users: tuple[str, ...] | None = None
    projects: tuple[str, ...] | None = None
    expires: int | None = None
    uid: bytes = field(default_factory=lambda: new_uuid7().bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """An API key as stored; see `NewKey`. `tenant` is its tenant's name, `tenant_number` what a
    token says of it (`records.tenant_number` of the name: the same in every store). `last_used` is
    right to a minute."""

    tenant: str
    tenant_number: int
    uid: bytes
    hash: bytes
    name: str
    principal: str
    identities: tuple[str, ...] | None
    users: tuple[str, ...] | None
    projects: tuple[str, ...] | None
    scopes: tuple[str, ...]
    created: int
    expires: int | None
    revoked: int | None
    last_used: int | None

    def good(self, now: int) -> bool:
        """Whether it is neither revoked nor expired at `now`."""
        return self.revoked is None and (self.expires is None or now < self.expires)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Something that somebody did, or was refused. Never what it was about.

    `tenant`: its name. `surface` is one of `SURFACES`, `outcome` of `OUTCOMES`. `action`: a short
    word such as "remember" or "keys.create". `key`: the uid of the API key. `space`: the space's
    number, if it was about one. `code`: the error's class. `count`: how many memories. `request`:
    the request's id. Texts have at most `LONGEST_NAME` characters.
    """

    tenant: str
    time: int
    surface: str
    action: str
    outcome: str = "ok"
    principal: str | None = None
    key: bytes | None = None
    space: int | None = None
    code: str | None = None
    count: int | None = None
    request: str | None = None
    uid: bytes = field(default_factory=lambda: new_uuid7().bytes)


AuditCursor = tuple[int, bytes]
"""The time and the uid of the last entry of a page."""


class Begun(NamedTuple):
    """What became of a request that somebody wants done once.

    `state`: "new" (do it, then `finish_request` or `abandon_request` with `fence`), "running"
    (somebody is at it), "done" (`status` and `response` are the answer that was given), or
    "mismatch" (the same key was used for another request).
    """

    state: Literal["new", "running", "done", "mismatch"]
    fence: int = 0
    status: int | None = None
    response: str | None = None


class DueSpace(NamedTuple):
    """A space that background consolidation ought to see. `lag`: how long it has been due (µs,
    ≥ 0). `changed`: whether it changed since the last success. `attempts`: failures since then."""

    tenant_id: int
    space_id: int
    ref: SpaceRef
    lag: int
    changed: bool
    attempts: int


class JobRecord(NamedTuple):
    """How background consolidation of a space stands. `revision` was the space's when the last
    success began, at `ran` (None: never). `next_at`: not before then; `dead`: when it was given
    up; `error`: the last failure's class and message."""

    tenant_id: int
    space_id: int
    ref: SpaceRef
    revision: int
    ran: int | None
    attempts: int
    next_at: int | None
    dead: int | None
    error: str | None


class Queue(NamedTuple):
    """Background consolidation in numbers: spaces that are `due` now, that wait to be tried again
    after a failure (`waiting`), that were given up (`dead`), and in which somebody works
    (`running`); `oldest`: the greatest lag of those due (µs, 0 if there are none)."""

    due: int
    waiting: int
    dead: int
    running: int
    oldest: int

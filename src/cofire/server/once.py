"""Requests that are done once, however often they are sent: `Idempotency-Key`.

A caller who got no answer sends the same request with the same key again. The first one did the
work; what is kept of it for a day is its answer without content (ids and counts), by which the
others are answered, in whichever process of the server they arrive.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cofire.errors import InputError, KeyConflictError, StoreError
from cofire.server.access import Caller
from cofire.store import Store

KEPT = 24 * 3_600 * 1_000_000
"""Microseconds that an answer is kept."""
STALE = 120 * 1_000_000
"""Microseconds after which a request that was begun counts as abandoned: its process was killed.
What it wrote may be there: `message_key` sees to it that remembering again finds it."""
LONGEST_KEY = 255
PURGE_EVERY = 100
"""Requests between two deletions of what is older than it is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A request that is to be done once: its key, and a hash of all that it asks for."""

    key: str
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of it: `answer` for the caller; `again`: it had been done before."""

    answer: Any
    again: bool = False


def once(key: str, *asked: bytes) -> Once:
    """The request of this key that asks for `asked`. Raises InputError."""
    if not (key.isascii() and key.isprintable() and 0 < len(key.strip()) <= LONGEST_KEY):
        raise InputError(
            f"an Idempotency-Key is 1 to {LONGEST_KEY} printable ASCII characters, such as a UUID"
        )
    hashed = hashlib.sha256()
    # With the key, which is kept nowhere, so that nobody can try texts against what is kept.
    for part in (key.encode(), *asked):
        hashed.update(len(part).to_bytes(8, "big") + part)
    return Once(key=key, digest=hashed.digest())


class Requests:
    """What has been done of a store's requests. Safe to use from many threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._begun = itertools.count(1)

    def perform(
        self,
        caller: Caller,
        asked: Once,
        work: Callable[[], Any],
        *,
        keep: Callable[[Any], Any],
        again: Callable[[Any], Any],
    ) -> Done:
        """What `work` gives, done now, or, if it was done before, what `again` makes of what `keep`
        kept of it (what JSON knows, without content). What fails may be repeated. Raises
        KeyConflictError while it is being done, InputError where the key was used for something
        else, and whatever `work` does."""
        tenant, hash_ = caller.tenant, _hash(caller, asked.key)
        now = time.time_ns() // 1000
        if next(self._begun) % PURGE_EVERY == 0:
            self._store.purge_requests(tenant, now)
        begun = self._store.begin_request(
            tenant, hash_, asked.digest, now=now, expires=now + KEPT, stale=STALE
        )
        if begun.state == "running":
            raise KeyConflictError(
                "a request with this Idempotency-Key is being worked on; ask again in a second"
            )
        if begun.state == "mismatch":
            raise InputError(
                "this Idempotency-Key was used for another request; give each its own key"
            )
        if begun.state == "done":
            return Done(answer=again(json.loads(begun.response or "null")), again=True)
        try:
            answer = work()
        except BaseException:
            with suppress(StoreError):  # it is then abandoned after `STALE`
                self._store.abandon_request(tenant, hash_, begun.fence)
            raise
        kept = json.dumps(keep(answer), ensure_ascii=False)
        self._store.finish_request(tenant, hash_, begun.fence, status=200, response=kept)
        return Done(answer=answer)


def message_key(caller: Caller, key: str, place: int) -> str:
    """The key under which a message without one of its own is remembered by such a request, by its
    place in it: a server that is killed between storing it and noting the answer finds it stored
    when the request comes again."""
    return f"request:{_hash(caller, key).hex()}:{place}"


def _hash(caller: Caller, key: str) -> bytes:
    """Of whose key it is: two callers' are never the same."""
    who = json.dumps([caller.name, (caller.key or b"").hex(), key])
    return hashlib.sha256(who.encode()).digest()

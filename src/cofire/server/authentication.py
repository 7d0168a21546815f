"""Who asks: from the Authorization header to a `Caller`.

A key that was good counts for five seconds without asking the store again, so that one that is
revoked is good for nothing within five seconds, in every process. A key that is unknown takes the
same path as one that is known: one look-up, one comparison in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import anyio
import anyio.to_thread

from cofire.errors import CofireError, LimitedError, UnauthorizedError
from cofire.logs import get_logger
from cofire.server.access import Caller
from cofire.server.keys import caller_of, is_key, key_id, read_token, state_of
from cofire.server.limits import Limits
from cofire.store import Store
from cofire.store.serving_records import KeyRecord

FRESH = 5.0
"""Seconds for which an answer about a token is good, both ways."""
REMEMBERED = 10_000
"""Good tokens, and as many bad ones, whose answers are kept at most."""
THREADS = 2
"""Look-ups at once: few, so that a flood of forged keys leaves the store to those who have one."""
WAITING = 256
"""Look-ups that may wait for their turn; further ones are refused at once."""
TOUCHED = 60.0
"""Seconds after which the last use of a key is noted again."""
LONGEST = 16_384
"""Characters of an Authorization header: tokens with many claims are long, and not longer."""

_NO_RECORD = bytes(32)

_log = get_logger(__name__)


class Verifier(Protocol):
    """Who knows whom a token of an issuer speaks for (`tokens.TokenVerifier`)."""

    def caller(self, token: str) -> Caller:
        """May block. Raises UnauthorizedError."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a token was found to be, until `until` (the clock's seconds)."""

    until: float
    caller: Caller | None
    refusal: str = ""


class Authenticator:
    """Tells who asks. One for each process; safe in one event loop with many threads.

    `store` has the keys; `verifiers` know tokens of issuers. `local` is who asks without a header,
    where the server asks for none; None: such requests are refused. A header that is there counts
    in either case. `limits` counts failed attempts of an address. `refused` is told of a key whose
    secret is right, and that is revoked or expired.
    """

    def __init__(
        self,
        store: Store,
        *,
        verifiers: Sequence[Verifier] = (),
        local: Caller | None = None,
        limits: Limits | None = None,
        refused: Callable[[KeyRecord], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._store, self._verifiers, self._local = store, tuple(verifiers), local
        self._limits, self._refused = limits, refused
        self._clock, self._now = clock, now
        self._good: OrderedDict[bytes, _Answer] = OrderedDict()
        self._bad: OrderedDict[bytes, _Answer] = OrderedDict()
        self._touched: OrderedDict[bytes, float] = OrderedDict()
        self._lock = Lock()
        self._limiter: anyio.CapacityLimiter | None = None
        self._waiting = 0
        self._toucher: ThreadPoolExecutor | None = None

    @property
    def required(self) -> bool:
        """Whether a request without a key is refused."""
        return self._local is None

    async def caller(self, authorization: str | None, address: str = "") -> Caller:
        """Who asks with this header (None: none was sent), from this address. Raises
        UnauthorizedError, LimitedError (too many failed attempts of the address, or too many
        look-ups at once), StoreError."""
        if authorization is None or not authorization.strip():
            if self._local is not None:
                return self._local
            raise UnauthorizedError(
                "this server wants a key, sent as the header 'Authorization: Bearer KEY'; "
                "`cofire keys create` makes one"
            )
        token = _bearer(authorization)
        name = hashlib.sha256(token.encode()).digest()
        answer, was_good = self._known(name)
        if answer is None:
            # Whoever guesses behind the same proxy does not lock out those whose key was good.
            if self._limits is not None and not was_good:
                self._limits.require_few_failures(address)
            answer = await self._looked_up(token)
            self._keep(name, answer)
        if answer.caller is not None:
            return answer.caller
        if self._limits is not None:
            self._limits.require_few_failures(address)
            self._limits.failed(address)
        raise UnauthorizedError(answer.refusal)

    def close(self) -> None:
        """Finish noting when keys were used."""
        if self._toucher is not None:
            self._toucher.shutdown(wait=True)
            self._toucher = None

    def _known(self, name: bytes) -> tuple[_Answer | None, bool]:
        """The answer about a token while it is fresh; and whether it was good the last time."""
        now = self._clock()
        with self._lock:
            good = self._good.get(name)
            answer = good if good is not None else self._bad.get(name)
        fresh = answer is not None and now < answer.until
        return answer if fresh else None, good is not None

    def _keep(self, name: bytes, answer: _Answer) -> None:
        kept = self._bad if answer.caller is None else self._good
        other = self._good if answer.caller is None else self._bad
        with self._lock:
            other.pop(name, None)
            kept[name] = answer
            kept.move_to_end(name)
            while len(kept) > REMEMBERED:
                kept.popitem(last=False)

    async def _looked_up(self, token: str) -> _Answer:
        if self._waiting >= THREADS + WAITING:
            raise LimitedError(
                "too many keys are being looked up; try again in a second",
                retry_after=1.0,
                overloaded=True,
            )
        if self._limiter is None:  # it belongs to the running event loop
            self._limiter = anyio.CapacityLimiter(THREADS)
        find = self._of_key if is_key(token) else self._of_issuer
        self._waiting += 1
        try:
            return await anyio.to_thread.run_sync(find, token, limiter=self._limiter)
        finally:
            self._waiting -= 1

    def _of_key(self, token: str) -> _Answer:
        started = self._clock()
        presented = read_token(token)
        if presented is None:
            return _Answer(started + FRESH, None, "this is no key: it is cut short or mistyped")
        record = self._store.find_key(presented.tenant_number, presented.uid)
        kept = _NO_RECORD if record is None else record.hash
        same = hmac.compare_digest(kept, presented.hash)
        if record is None or not same:
            return _Answer(started + FRESH, None, "this key is not known here")
        now = self._now()
        if not record.good(now):
            state = state_of(record, now)
            _log.warning("a key that no longer counts was used", key=key_id(record.uid))
            if self._refused is not None:
                self._refused(record)
            return _Answer(started + FRESH, None, f"this key is {state}; ask for another one")
        self._note_use(presented.tenant_number, presented.uid)
        left = FRESH if record.expires is None else min(FRESH, (record.expires - now) / 1e6)
        return _Answer(started + left, caller_of(record))

    def _of_issuer(self, token: str) -> _Answer:
        started = self._clock()
        refusal = "this is neither a key of Cofire nor a token of an issuer that this server knows"
        for verifier in self._verifiers:
            try:
                return _Answer(started + FRESH, verifier.caller(token))
            except UnauthorizedError as error:
                refusal = str(error)
        return _Answer(started + FRESH, None, refusal)

    def _note_use(self, tenant_number: int, uid: bytes) -> None:
        """In the background: a write may have to wait for others, and nobody waits for this one."""
        now = self._clock()
        with self._lock:
            if now < self._touched.get(uid, -TOUCHED) + TOUCHED:
                return
            self._touched[uid] = now
            self._touched.move_to_end(uid)
            while len(self._touched) > REMEMBERED:
                self._touched.popitem(last=False)
            if self._toucher is None:
                self._toucher = ThreadPoolExecutor(1, "cofire-keys")
            self._toucher.submit(self._touch, tenant_number, uid)

    def _touch(self, tenant_number: int, uid: bytes) -> None:
        try:
            self._store.touch_key(tenant_number, uid, self._now())
        except CofireError as error:
            _log.warning("the use of a key was not noted", error=type(error).__name__)


def _bearer(authorization: str) -> str:
    """The token of an Authorization header. Raises UnauthorizedError, which does not repeat it."""
    scheme, _, token = authorization.strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or " " in token:
        raise UnauthorizedError("the Authorization header must be 'Bearer KEY'")
    if len(token) > LONGEST or not token.isascii():
        raise UnauthorizedError("this is neither a key nor a token: it is too long, or not ASCII")
    return token

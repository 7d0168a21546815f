"""How often a key may ask, and an address be refused: token buckets, in bounded memory.

One process counts for itself: a server of four workers lets a key ask four times as often.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address
from threading import Lock

from cofire.errors import LimitedError
from cofire.server.access import Caller

HELD = 10_000
"""Buckets kept; the one that was used longest ago goes first, and begins full when it is back."""


class Buckets:
    """Token buckets by name: each holds `burst` tokens at most and gains `rate` of them per second.

    Safe to use from many threads. `clock` gives seconds.
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        *,
        held: int = HELD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._burst, self._most, self._clock = rate, burst, held, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, name: str, amount: float = 1.0) -> float:
        """Take `amount` tokens; 0, or if there are not as many (and nothing is taken), the seconds
        until there are."""
        with self._lock:
            now = self._clock()
            tokens = self._tokens(name, now)
            if tokens >= amount:
                self._keep(name, tokens - amount, now)
                return 0.0
            self._keep(name, tokens, now)
        return self._until(amount - tokens)

    def wait(self, name: str, amount: float = 1.0) -> float:
        """As `take`, but takes nothing."""
        with self._lock:
            tokens = self._tokens(name, self._clock())
        return 0.0 if tokens >= amount else self._until(amount - tokens)

    def drain(self, name: str, amount: float = 1.0) -> None:
        """Take `amount` tokens, or what is left of them."""
        with self._lock:
            now = self._clock()
            self._keep(name, max(0.0, self._tokens(name, now) - amount), now)

    def __len__(self) -> int:
        return len(self._buckets)

    def _tokens(self, name: str, now: float) -> float:
        tokens, then = self._buckets.get(name, (self._burst, now))
        return min(self._burst, tokens + max(0.0, now - then) * self._rate)

    def _keep(self, name: str, tokens: float, now: float) -> None:
        self._buckets[name] = (tokens, now)
        self._buckets.move_to_end(name)
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)

    def _until(self, missing: float) -> float:
        return missing / self._rate if self._rate > 0 else math.inf


class Limits:
    """The limits of a server.

    `rate`, `burst`: requests per second of one key (or of one principal of an issuer), and how many
    at once after a pause; a rate of 0 sets no limit. `failures`: attempts per minute with a key
    that does not count, of one address; 0 sets no limit.
    """

    def __init__(
        self,
        *,
        rate: float,
        burst: int,
        failures: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asked = Buckets(rate, max(1, burst), clock=clock) if rate > 0 else None
        self._failed = Buckets(failures / 60.0, failures, clock=clock) if failures > 0 else None

    def admit(self, caller: Caller) -> None:
        """Counts a request of this caller. Raises LimitedError."""
        if self._asked is None:
            return
        name = caller.key.hex() if caller.key is not None else f"{caller.tenant}\0{caller.name}"
        wait = self._asked.take(name)
        if wait > 0:
            raise LimitedError(
                f"{caller.name!r} asks more often than this server allows one key; wait "
                f"{_seconds(wait)} and ask less often",
                retry_after=wait,
            )

    def require_few_failures(self, address: str) -> None:
        """Whether this address may try a key. Raises LimitedError."""
        if self._failed is None:
            return
        wait = self._failed.wait(_network(address))
        if wait > 0:
            raise LimitedError(
                "too many attempts from this address with keys that do not count; wait "
                f"{_seconds(wait)}",
                retry_after=wait,
            )

    def failed(self, address: str) -> None:
        """Counts an attempt of this address with a key that does not count."""
        if self._failed is not None:
            self._failed.drain(_network(address))


def _network(address: str) -> str:
    """What counts as one address: of IPv6 the 64 bits that one customer has, at least."""
    if ":" not in address:
        return address
    try:
        whole = int(IPv6Address(address.partition("%")[0]))
    except ValueError:
        return address
    return f"{whole >> 64:x}::/64"


def _seconds(wait: float) -> str:
    whole = math.ceil(wait)
    return "a second" if whole == 1 else f"{whole} seconds"

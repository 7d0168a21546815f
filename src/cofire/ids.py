"""UUIDv7, the ids of everything: made in order, kept by copies."""

from __future__ import annotations

import os
import threading
import time
import uuid


def new_uuid7(now_ms: int | None = None) -> uuid.UUID:
    """A UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 random bits.

    Made from the clock, each is greater than the one before in this process (method 2 of section
    6.2), so that memories of the same moment keep the order in which they were remembered.
    """
    random = int.from_bytes(os.urandom(10), "big") >> 6
    if now_ms is not None:
        return _uuid7(now_ms << 74 | random)
    with _uuid_lock:
        value = (time.time_ns() // 1_000_000) << 74 | random
        if value <= _last_uuid[0]:
            value = _last_uuid[0] + 1 + (random & 0xFFFFFFFF)
        _last_uuid[0] = value
    return _uuid7(value)


def _uuid7(value: int) -> uuid.UUID:
    """48 + 74 bits with the version and the variant put where they belong."""
    low = value & ((1 << 62) - 1)
    return uuid.UUID(
        int=value >> 74 << 80 | 0x7 << 76 | (value >> 62 & 0xFFF) << 64 | 1 << 63 | low
    )


_uuid_lock = threading.Lock()
_last_uuid = [0]


def _forget_last_uuid() -> None:
    """In a forked child: it must not go on from the same number as its parent."""
    global _uuid_lock  # noqa: PLW0603 - another thread of the parent may hold the old one
    _uuid_lock = threading.Lock()
    _last_uuid[0] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_last_uuid)

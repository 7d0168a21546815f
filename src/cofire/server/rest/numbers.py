"""64-bit numbers of the Atamaia contracts for what has none in the store."""

from __future__ import annotations

import hashlib
import json

from cofire.server.access import Place


def identity_number(place: Place) -> int:
    """Of an identity (and the user it serves): the same in every store and at all times, from 1 to
    2⁶³ - 1."""
    return _number("identity", place.tenant, place.identity, place.user)


def link_number(source: str, target: str) -> int:
    """Of the link from one memory to another."""
    return _number("link", source, target)


def _number(*parts: str | None) -> int:
    told = json.dumps(parts, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    digest = hashlib.blake2b(told, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1 or 1

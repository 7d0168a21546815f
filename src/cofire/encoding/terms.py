"""Terms as the store and the graph hold them: 64-bit hashes with counts, packed into blobs."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofire.errors import InputError

if TYPE_CHECKING:
    import json

MAX_COUNT = 255
"""Counts saturate here: one byte each."""

_ENTRY = 9  # bytes: 8 of hash, 1 of count


@lru_cache(maxsize=1 << 16)
def term_hash(term: str) -> int:
    """The term's identity in the store: BLAKE2b of its UTF-8, 8 bytes, little-endian, so a
    number in [0, 2⁶⁴). Two of a million terms collide with a probability of 3·10⁻⁸."""
    return int.from_bytes(blake2b(term.encode("utf-8"), digest_size=8).digest(), "little")


def pack_terms(terms: Iterable[str] | Mapping[str, int]) -> bytes:
    """Terms (repeated ones count) or a mapping term → count (≥ 1) as a blob: n × uint64
    little-endian hashes, ascending and unique, then n × uint8 counts, saturating at 255."""
    hashed: dict[int, int] = {}
    if isinstance(terms, Mapping):
        for term, count in terms.items():
            key = term_hash(term)
            hashed[key] = hashed.get(key, 0) + count
    else:
        found = list(map(term_hash, terms))
        keys = sorted(set(found))
        if len(keys) == len(found):  # short texts mostly repeat nothing
            return struct.pack(f"<{len(keys)}Q", *keys) + b"\x01" * len(keys)
        for key in found:
            hashed[key] = hashed.get(key, 0) + 1
    keys = sorted(hashed)
    counts = [hashed[key] for key in keys]
    if counts and max(counts) > MAX_COUNT:
        counts = [min(count, MAX_COUNT) for count in counts]
    return struct.pack(f"<{len(keys)}Q", *keys) + bytes(counts)


def unpack_terms(blob: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """The hashes (n,) ascending and counts (n,) of a blob; read-only views into it.

    Raises `InputError` where the length cannot be right.
    """
    count, rest = divmod(len(blob), _ENTRY)
    if rest:
        raise InputError(f"a terms blob of {len(blob)} bytes is damaged: {_ENTRY} bytes a term")
    hashes = np.frombuffer(blob, dtype="<u8", count=count)
    return hashes, np.frombuffer(blob, dtype=np.uint8, offset=8 * count, count=count)


def pack_facets(facets: Iterable[str]) -> bytes:
    """Facets (see `facet`) as n × uint64 little-endian hashes, ascending and unique."""
    hashes = sorted({term_hash(name) for name in facets})
    return struct.pack(f"<{len(hashes)}Q", *hashes)


def unpack_facets(blob: bytes) -> NDArray[np.uint64]:
    """The hashes (n,) of a facets blob, ascending. Raises `InputError` on a wrong length."""
    if len(blob) % 8:
        raise InputError(f"a facets blob of {len(blob)} bytes is damaged: 8 bytes a facet")
    return np.frombuffer(blob, dtype="<u8")


def facet(name: str, *values: str) -> str:
    """The text whose hash stands for a filterable value: "tag\\0urgent",
    "meta\\0key\\0canonical JSON"; values are literal, NUL cannot occur in them."""
    return "\0".join((name, *values))


def asked_about(name: int | None) -> int:
    """The hashed facet of a cue that says whom it asks about, by the hash of the name's own facet;
    None: nobody by name."""
    return term_hash(facet("asked", "" if name is None else str(name)))


def canonical_json(value: Any) -> str:
    """One spelling for equal metadata values: sorted keys, no spaces, 1 and 1.0 alike."""

    def plain(item: Any) -> Any:
        if isinstance(item, float) and item.is_integer():
            return int(item)
        if isinstance(item, Mapping):
            return {str(key): plain(part) for key, part in item.items()}
        if isinstance(item, list | tuple):
            return [plain(part) for part in item]
        return item

    return _json().encode(value if type(value) is str else plain(value))


@cache
def _json() -> json.JSONEncoder:
    import json  # not at start-up

    return json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))

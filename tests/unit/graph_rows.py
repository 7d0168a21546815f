"""Rows and changes as the store gives them, for tests of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Row = tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class Changes:
    revision: int = 1
    rebuild: bool = False
    rows: list[Row] = field(default_factory=list)
    links: list[tuple[int, int, int, float, int]] = field(default_factory=list)
    removed_items: list[int] = field(default_factory=list)
    removed_links: list[tuple[int, int]] = field(default_factory=list)


def pack(counts: Mapping[int, int]) -> bytes:
    keys = sorted(counts)
    return np.array(keys, "<u8").tobytes() + bytes(counts[key] for key in keys)


def vector(*values: float) -> bytes:
    """A unit vector as the store keeps it."""
    wide = np.array(values)
    stored = (wide / np.linalg.norm(wide)).astype("<f2")
    return bytes(stored.tobytes())


def row(
    number: int,
    *,
    terms: Mapping[int, int] | None = None,
    concepts: Mapping[int, int] | None = None,
    facets: tuple[int, ...] = (),
    vector: bytes | None = None,
    speaker: int = 0,
    session: int = 0,
    time: int | None = None,
    kind: int = 0,
    expires: int | None = None,
    event: tuple[int, int] | None = None,
    uid: bytes | None = None,
    valid: tuple[int | None, int | None] = (None, None),
    recorded: int = 0,
) -> Row:
    terms = terms or {}
    start, end = event or (None, None)
    return (
        number,
        uid or number.to_bytes(16, "big"),
        1,
        0,
        kind,
        speaker,
        session,
        number if time is None else time,
        start,
        end,
        expires,
        5,
        0,
        0,
        sum(terms.values()),
        pack(terms),
        pack(concepts or {}),
        np.array(sorted(facets), "<u8").tobytes(),
        vector,
        *valid,
        recorded,
    )

"""Between records and table rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from cofire.errors import InputError
from cofire.store.records import (
    KIND_CODES,
    KINDS,
    UNTRUSTED_SIGNAL,
    EventTimeRow,
    ItemRow,
    NewItem,
    NewSegment,
    canonical_json,
    comparable_json,
    facet_hash,
)
from cofire.store.schema import attributes, items, links, tags, vectors, versions
from cofire.store.session import Row

ITEM_COLUMNS = tuple(column.name for column in items.columns)
TAG_COLUMNS = tuple(column.name for column in tags.columns)
ATTRIBUTE_COLUMNS = tuple(column.name for column in attributes.columns)
LINK_COLUMNS = tuple(column.name for column in links.columns)
VECTOR_COLUMNS = tuple(column.name for column in vectors.columns)
VERSION_COLUMNS = tuple(column.name for column in versions.columns)

_KIND_VALUES = tuple(kind.value for kind in KINDS)
_WRAP = 1 << 64
_SIGN = 1 << 63


def signed(number: int) -> int:
    """An unsigned 64-bit hash as the signed integer that databases can hold."""
    return number - _WRAP if number >= _SIGN else number


def label_hash(facet: str, value: str | None) -> int:
    """The stored hash of a facet, 0 if there is none."""
    return 0 if value is None else signed(facet_hash(facet, value))


def kind_code(kind: str) -> int:
    """Raises InputError for an unknown kind."""
    code = KIND_CODES.get(kind)
    if code is None:
        raise InputError(f"unknown kind {kind!r}; it is one of {', '.join(KIND_CODES)}")
    return code


def unsigned(number: int) -> int:
    """The hash that a stored signed integer stands for."""
    return number + _WRAP if number < 0 else number


def quota_text(moved: tuple[tuple[str, float], ...]) -> str | None:
    """How far each principal moved a link on a day, as stored."""
    return canonical_json(moved) if moved else None


def quota_of(text: str | None) -> tuple[tuple[str, float], ...]:
    """The reverse of `quota_text`."""
    if text is None:
        return ()
    return tuple((str(principal), float(moved)) for principal, moved in json.loads(text))


def whole_row(tenant: int, space: int, number: int, revision: int, item: NewItem) -> Row:
    """The `items` row of a memory, in the order of the table's columns."""
    event_start, event_end = _hull(item.event_times)
    return (
        tenant,
        space,
        number,
        item.uid,
        revision,
        0,  # parent
        kind_code(item.kind),
        label_hash("speaker", item.speaker),
        label_hash("session", item.session),
        item.time,
        event_start,
        event_end,
        item.expires,
        item.importance,
        int(item.pinned),
        _signals(item.signals, item),
        item.length,
        item.terms,
        item.concepts,
        item.facets,
        int(item.pending),
        0,  # segment
        len(item.segments),
        0,  # start
        len(item.content),
        item.tokens,
        1,  # version
        item.offset,
        item.recorded,
        item.recorded,  # updated
        item.archived,
        item.confidence,
        item.valid_from,
        item.valid_to,
        int(item.untrusted),
        item.key,
        label_hash("key", item.key) if item.key is not None else None,
        item.language,
        item.role,
        item.speaker,
        item.session,
        item.title,
        canonical_json(item.tags) if item.tags else "[]",
        canonical_json(item.keywords) if item.keywords else "[]",
        canonical_json(item.event_times) if item.event_times else "[]",
        canonical_json(dict(item.metadata)) if item.metadata else "{}",
        item.content,
    )


def _signals(signals: int, item: NewItem) -> int:
    """With the mark of what is not trusted, if the memory is not."""
    return signals | UNTRUSTED_SIGNAL if item.untrusted else signals & ~UNTRUSTED_SIGNAL


def segment_row(whole: Row, number: int, index: int, item: NewItem, segment: NewSegment) -> Row:
    """The `items` row of a segment: its whole's graph columns, its own terms, no text."""
    event_start, event_end = _hull(
        tuple(
            found
            for found in item.event_times
            if found[3] >= segment.start and found[4] <= segment.end
        )
    )
    return (
        *whole[:2],
        number,
        segment.uid,
        whole[4],  # revision
        whole[2],  # parent
        *whole[6:10],  # kind, speaker, session, time
        event_start,
        event_end,
        *whole[12:15],  # expires, importance, pinned
        _signals(segment.signals, item),
        segment.length,
        segment.terms,
        segment.concepts,
        whole[19],  # facets
        int(segment.pending),
        index,
        0,  # segments
        segment.start,
        segment.end,
        segment.tokens,
        1,  # version
        item.offset,
        *whole[28:30],  # recorded, updated
        item.archived,
        *_EMPTY_TAIL,
    )


_EMPTY_TAIL: Row = (
    *(None, None, None),  # confidence, valid_from, valid_to
    0,  # untrusted
    *(None,) * 7,  # key, key_hash, language, role, speaker, session, title
    *("[]", "[]", "[]", "{}"),
    None,  # content
)


def tag_rows(tenant: int, space: int, number: int, item: NewItem) -> list[Row]:
    return [(tenant, space, label, number) for label in tag_hashes(item.tags)]


def tag_hashes(tags: Iterable[str]) -> list[int]:
    """The stored hashes of tags, each once."""
    return [label_hash("tag", tag) for tag in dict.fromkeys(tags)]


def attribute_hashes(metadata: Mapping[str, Any]) -> list[int]:
    """The stored hashes of metadata's top-level keys with their comparable JSON values."""
    return [
        label_hash("meta", f"{name}\0{comparable_json(value)}") for name, value in metadata.items()
    ]


def attribute_rows(tenant: int, space: int, number: int, item: NewItem) -> list[Row]:
    return [(tenant, space, label, number) for label in attribute_hashes(item.metadata)]


def item_from_row(row: Row) -> ItemRow:
    """An `ItemRow` from a row of `reading.ITEM_SELECTION`: codes to words, JSON to values."""
    values = (
        *row[:8],
        _KIND_VALUES[row[8]],
        *row[9:20],
        () if row[20] == "[]" else tuple(json.loads(row[20])),
        row[21],
        row[22] != 0,
        {} if row[23] == "{}" else json.loads(row[23]),
        *row[24:26],
        () if row[26] == "[]" else tuple(json.loads(row[26])),
        row[27],
        () if row[28] == "[]" else tuple(tuple(found) for found in json.loads(row[28])),
        *row[29:32],
        row[32] != 0,
        *row[33:36],
        row[36] != 0,
        row[37],
    )
    return ItemRow._make(values)


def _hull(event_times: tuple[EventTimeRow, ...]) -> tuple[int | None, int | None]:
    if not event_times:
        return None, None
    return min(found[1] for found in event_times), max(found[2] for found in event_times)


def as_parameters(row: Row) -> dict[str, Any]:
    """An `items` row by column name."""
    return dict(zip(ITEM_COLUMNS, row, strict=True))

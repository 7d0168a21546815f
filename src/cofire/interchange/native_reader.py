"""Reading Cofire's own format: one pass that finds everything that can be wrong with a file."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any, NamedTuple

import numpy as np

from cofire.encoding.timestamps import parse_time
from cofire.errors import FormatError, InputError
from cofire.interchange import native_records as records
from cofire.interchange.native_records import (
    Record,
    StoredItem,
    StoredSegment,
    StoredSpace,
    StoredStep,
)
from cofire.store.records import DerivedFields, EventRecord, LinkRow, RecallRecord, VersionRow

VERSION = 2
"""Of the format that is written."""
READABLE = (1, 2)
"""Version 1 knew nothing of consolidation."""


class _Part(NamedTuple):
    """What wholes and segments have in common."""

    number: int
    uid: bytes
    vector: bytes | None


class Reader:
    """One pass over an export."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name
        self._number = 0
        self._digest = hashlib.sha256()
        self._items = 0
        self._space: StoredSpace | None = None
        self._version = (0, 0)
        self._uids = bytearray()
        self._pairs = array("Q")
        self._derived = 0
        self._steps: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.created: datetime = _EPOCH

    def records(self) -> Iterator[Record]:
        self._header()
        for line in self._stream:
            self._number += 1
            value = self._object(line)
            if value.get("type") == "footer":
                self._nothing_twice()
                self._footer(value)
                return
            self._digest.update(line)
            try:
                record = records.record_from_json(value)
                self._check(record)
            except FormatError as exc:
                raise self._wrong(str(exc)) from exc
            self.counts[str(value["type"])] += 1
            yield record
        raise FormatError(f"{self._name} is cut off after line {self._number}: it has no footer")

    def _header(self) -> None:
        line = self._stream.readline()
        self._number = 1
        self._digest.update(line)
        value = self._object(line) if line.strip() else {}
        if value.get("type") != "header" or value.get("format") != "cofire":
            raise FormatError(f"{self._name} is no Cofire export: it does not begin with a header")
        if value.get("version") not in READABLE:
            raise FormatError(
                f"{self._name} has version {str(value.get('version'))[:20]} of the export format; "
                f"this Cofire reads versions up to {VERSION}. Use the version of Cofire that wrote "
                "it"
            )
        try:
            self.created, _ = parse_time(value.get("created", ""))
        except InputError as exc:
            raise self._wrong(str(exc)) from exc

    def _footer(self, value: Mapping[str, Any]) -> None:
        if self._stream.readline().strip():
            raise self._wrong("something follows the footer")
        if value.get("counts") != dict(self.counts):
            raise self._wrong(
                f"the footer counts {value.get('counts')}, but there are {dict(self.counts)}"
            )
        if value.get("sha256") != self._digest.hexdigest():
            raise self._wrong("the file was changed after it was written (its hash differs)")

    def _object(self, line: bytes) -> dict[str, Any]:
        if not line.endswith(b"\n"):
            raise FormatError(f"{self._name} is cut off in line {self._number}")
        try:
            value = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as exc:
            raise self._wrong("it is no JSON") from exc
        if not isinstance(value, dict):
            raise self._wrong("it is no object")
        return value

    def _check(self, record: Record) -> None:
        """Numbers count up from 1 and name items that came before; nothing is said twice."""
        if isinstance(record, StoredSpace):
            self._nothing_twice()
            self._items = 0
            self._version = (0, 0)
            self._derived = 0
            self._steps = set()
            self._space = record
            return
        if self._space is None:
            raise FormatError("a record comes before its space")
        named: list[int] = []
        match record:
            case StoredItem():
                self._item(record, self._space.dimension)
            case VersionRow():
                named = [record.number]
                if (record.number, record.version) <= self._version:
                    raise FormatError(f"version {record.version} of item {record.number} is late")
                self._version = (record.number, record.version)
            case DerivedFields():
                named = self._made(record)
            case StoredStep():
                named = self._cursor(record)
            case LinkRow():
                named = [record.source, record.target]
                if record.source == record.target:
                    raise FormatError(f"item {record.source} is linked to itself")
                self._pairs.append((record.source << 32 | record.target) % 2**64)
            case RecallRecord():
                named = _hits(record)
            case EventRecord():
                named = [number for number, _ in record.items]
        wrong = [number for number in named if not 1 <= number <= self._items]
        if wrong:
            raise FormatError(f"item {wrong[0]} is named but not there")

    def _made(self, row: DerivedFields) -> list[int]:
        """The numbers that a derived item names."""
        if row.number <= self._derived:
            raise FormatError(f"what item {row.number} was derived from is late")
        self._derived = row.number
        places = [(source.source, source.start) for source in row.sources]
        if len(set(places)) < len(places) or any(place[0] == row.number for place in places):
            raise FormatError(f"item {row.number} rests on itself, or twice on the same")
        if any(source.start > source.end for source in row.sources):
            raise FormatError(f"item {row.number} rests on what ends before it begins")
        return [row.number, *(place[0] for place in places)]

    def _cursor(self, step: StoredStep) -> list[int]:
        """The numbers that a step names."""
        if step.name in self._steps:
            raise FormatError(f"the step {step.name!r} is there twice")
        self._steps.add(step.name)
        return [number for number in (step.first, step.last) if number]

    def _item(self, item: StoredItem, dimension: int | None) -> None:
        whole = _Part(item.row.number, item.row.uid, item.vector)
        parts: tuple[_Part | StoredSegment, ...] = (whole, *item.segments)
        for part in parts:
            self._items += 1
            if part.number != self._items:
                raise FormatError(f"item {part.number} comes where {self._items} is due")
            self._uids += part.uid
            if part.vector is None:
                continue
            if len(part.vector) != 2 * (dimension or 0):
                raise FormatError(f"the vector of item {part.number} is not of its space's model")
            values = np.frombuffer(part.vector, "<f2")
            if not (np.isfinite(values).all() and values.any()):
                raise FormatError(f"the vector of item {part.number} is zero or not finite")

    def _nothing_twice(self) -> None:
        """At the end of a space: every uid and every pair of linked items is there once."""
        halves = np.frombuffer(self._uids, np.uint64).reshape(-1, 2)
        ordered = halves[np.lexsort(halves.T)]
        if (ordered[1:] == ordered[:-1]).all(axis=1).any():
            raise self._wrong("two items of the space above have the same uid")
        pairs = np.frombuffer(self._pairs, np.uint64)
        if len(np.unique(pairs)) < len(pairs):
            raise self._wrong("two links of the space above have the same ends")
        self._uids, self._pairs = bytearray(), array("Q")

    def _wrong(self, reason: str) -> FormatError:
        return FormatError(f"{self._name}, line {self._number}: {reason}")


def _hits(record: RecallRecord) -> list[int]:
    named = [hit.number for hit in record.hits]
    if len(set(named)) < len(named):
        raise FormatError("a recall names an item twice")
    return named


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

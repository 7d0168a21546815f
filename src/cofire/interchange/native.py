"""Cofire's own export: complete, versioned, one JSON object a line, in UTF-8.

    {"type":"header","format":"cofire","version":2,"created":"2026-01-01T00:00:00Z"}
    {"type":"space","tenant":"default","identity":"default","model":"…","dimension":384}
    {"type":"item","number":1,"uid":"…","kind":"episode","content":"…",…,"vector":"…"}
    {"type":"version",…}  {"type":"derived",…}  {"type":"link",…}
    {"type":"recall",…}  {"type":"event",…}  {"type":"step",…}
    {"type":"footer","counts":{"space":1,"item":1,…},"sha256":"…"}

A `space` line says where the records after it belong. Items come by number, each followed by its
former versions; then how derived items were made, links, recalls, events, and how far each step of
consolidation has come. Numbers are counted anew from 1 in each space of
the file (an item, then its segments), so that an import that is exported again has the same
lines. Fields with their default are left out. The footer's hash is over every byte before it;
without a footer the file was cut off.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cofire.consolidation.cursors import EVENT_STEPS
from cofire.encoding.timestamps import format_time
from cofire.interchange import native_records as records
from cofire.interchange.files import existing
from cofire.interchange.native_reader import VERSION, Reader
from cofire.interchange.native_records import (
    Record,
    StoredItem,
    StoredSegment,
    StoredSpace,
    StoredStep,
)
from cofire.store.records import (
    DerivedFields,
    EventRecord,
    ItemRow,
    LinkRow,
    RecallRecord,
    SpaceInfo,
    StepRow,
    VersionRow,
)
from cofire.types import Progress

if TYPE_CHECKING:
    from cofire.store import Store

PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a whole and undamaged export holds."""

    version: int
    created: datetime
    counts: Mapping[str, int]
    spaces: tuple[StoredSpace, ...]


class Writer:
    """Writes an export to a binary stream: `space`, then its records, at last `close`.

    Without `close` there is no footer, and no reader takes the file for complete. What refers to
    an item that was not written (it was forgotten meanwhile) is left out.
    """

    def __init__(self, stream: IO[bytes], *, created: datetime) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._counts: Counter[str] = Counter()
        self._numbers = _Numbers()
        header = {"type": "header", "format": "cofire", "version": VERSION}
        self._line({**header, "created": format_time(created)})

    def space(self, space: StoredSpace) -> None:
        """Begin a space; the records after it are its own."""
        self._numbers = _Numbers()
        self._record(records.space_to_json(space))

    def item(self, item: StoredItem) -> int:
        """Write an item and its segments; it must come before what refers to it. Returns its number
        in the file."""
        number = self._numbers.add(item.row.number)
        segments = tuple(
            replace(segment, number=self._numbers.add(segment.number)) for segment in item.segments
        )
        renumbered = replace(item, row=item.row._replace(number=number), segments=segments)
        self._record(records.item_to_json(renumbered))
        return number

    def version(self, row: VersionRow) -> None:
        """Write a former text of an item."""
        number = self._numbers.get(row.number)
        if number:
            self._record(records.version_to_json(row._replace(number=number)))

    def derived(self, row: DerivedFields) -> None:
        """Write how a derived item was made."""
        number = self._numbers.get(row.number)
        sources = tuple(
            source._replace(number=number, source=self._numbers.get(source.source))
            for source in row.sources
            if self._numbers.get(source.source)
        )
        if number:
            self._record(records.derived_to_json(row._replace(number=number, sources=sources)))

    def step(self, step: StoredStep) -> None:
        """Write how far a step had come, in the numbers of the file."""
        self._record(records.step_to_json(step))

    def link(self, row: LinkRow) -> None:
        """Write a link between two items or segments."""
        source, target = self._numbers.get(row.source), self._numbers.get(row.target)
        if source and target:
            self._record(records.link_to_json(row._replace(source=source, target=target)))

    def recall(self, record: RecallRecord) -> None:
        """Write a recall record."""
        hits = tuple(
            hit._replace(number=self._numbers.get(hit.number), via=self._numbers.get(hit.via))
            for hit in record.hits
            if self._numbers.get(hit.number)
        )
        self._record(records.recall_to_json(replace(record, hits=hits)))

    def event(self, record: EventRecord) -> None:
        """Write an entry of the learning log."""
        items = tuple(
            (self._numbers.get(number), credit)
            for number, credit in record.items
            if self._numbers.get(number)
        )
        via = tuple(
            (self._numbers.get(number), self._numbers.get(origin))
            for number, origin in record.via
            if self._numbers.get(number) and self._numbers.get(origin)
        )
        cue = None if record.cue is None else self._numbers.get(record.cue) or None
        self._record(records.event_to_json(replace(record, items=items, via=via, cue=cue)))

    def close(self) -> Mapping[str, int]:
        """Write the footer; returns how many records of each type there are."""
        digest = self._digest.hexdigest()
        self._line({"type": "footer", "counts": dict(self._counts), "sha256": digest})
        self._stream.flush()
        return dict(self._counts)

    def _record(self, value: Mapping[str, Any]) -> None:
        self._counts[str(value["type"])] += 1
        self._line(value)

    def _line(self, value: Mapping[str, Any]) -> None:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        line = text.encode("utf-8") + b"\n"
        self._digest.update(line)
        self._stream.write(line)


class _Numbers:
    """The store's numbers of a space → those of the file; eight bytes each."""

    def __init__(self) -> None:
        self._of = array("Q", [0])
        self._last = 0

    def add(self, number: int) -> int:
        self._last += 1
        if number >= len(self._of):
            self._of.extend([0] * (number + 1 - len(self._of)))
        self._of[number] = self._last
        return self._last

    def get(self, number: int) -> int:
        """0 if the item is not in the file."""
        return self._of[number] if 0 <= number < len(self._of) else 0


def export_space(
    store: Store, space: SpaceInfo, writer: Writer, progress: Progress | None = None
) -> None:
    """Write everything of a space, in memory bounded by its segments (not their texts) and ids.

    `progress` is called with the items written, of all.
    """
    last = store.last_number(space)
    counts = store.counts(space)
    segments = _segments(store, space, last) if counts.segments else {}
    writer.space(
        StoredSpace(
            ref=space.ref,
            model=counts.model,
            dimension=counts.dimension,
            settings=store.refreshed(space).settings,
        )
    )
    ledger = _Ledger(store.steps(space).values())
    versions = store.iterate_versions(space, last=last)
    version = next(versions, None)
    done = 0
    for page in _pages(store.iterate_items(space, last=last)):
        for item in _with_vectors(store, space, page, segments):
            ledger.item(item.row.number, writer.item(item))
            while version is not None and version.number <= item.row.number:
                writer.version(version)
                version = next(versions, None)
        done += len(page)
        if progress is not None:
            progress(done, counts.items)
    for row in store.iterate_derived(space, last=last):
        writer.derived(row)
    for link in store.iterate_links(space, last=last):
        writer.link(link)
    for recall in store.iterate_recalls(space):
        writer.recall(recall)
    for event in store.iterate_events(space):
        writer.event(event)
        ledger.event(event.seq)
    for step in ledger.steps():
        writer.step(step)


class _Ledger:
    """The rows of a space's ledger, on their way from the store's numbers to those of the file."""

    def __init__(self, rows: Iterable[StepRow]) -> None:
        self._rows = sorted(rows)
        self._first = dict.fromkeys((row.name for row in self._rows), 0)
        self._last = dict(self._first)
        self._events = dict(self._first)

    def item(self, number: int, written: int) -> None:
        """An item was written; they come by number."""
        for row in self._rows:
            if row.name in EVENT_STEPS:
                continue
            if number <= row.seq:
                self._last[row.name] = written
            if row.revision and number >= row.revision and not self._first[row.name]:
                self._first[row.name] = written

    def event(self, seq: int) -> None:
        """An event was written; they come by their numbers."""
        for row in self._rows:
            if row.name in EVENT_STEPS and seq <= row.seq:
                self._events[row.name] += 1

    def steps(self) -> Iterator[StoredStep]:
        for row in self._rows:
            yield StoredStep(
                name=row.name,
                time=row.time,
                period=row.period,
                first=self._first[row.name],
                last=self._last[row.name],
                events=self._events[row.name],
            )


def _segments(store: Store, space: SpaceInfo, last: int) -> dict[int, list[StoredSegment]]:
    """Segments by the number of their whole, in order, without vectors. An update gives a text
    new segments with late numbers, so they need not lie behind their whole."""
    found: defaultdict[int, list[StoredSegment]] = defaultdict(list)
    for row in store.iterate_items(space, last=last, segments=True):
        if row.parent:
            found[row.parent].append(
                StoredSegment(
                    number=row.number,
                    uid=row.uid,
                    start=row.start,
                    end=row.end,
                    tokens=row.tokens,
                    pending=row.pending,
                    vector=None,
                )
            )
    return {parent: sorted(parts, key=lambda part: part.start) for parent, parts in found.items()}


def _pages(rows: Iterator[ItemRow]) -> Iterator[list[ItemRow]]:
    while page := list(islice(rows, PAGE)):
        yield page


def _with_vectors(
    store: Store,
    space: SpaceInfo,
    page: Sequence[ItemRow],
    segments: Mapping[int, list[StoredSegment]],
) -> Iterator[StoredItem]:
    parts = {row.number: segments.get(row.number, []) for row in page}
    numbers = [*parts, *(part.number for own in parts.values() for part in own)]
    vectors = store.vectors(space, numbers)
    for row in page:
        yield StoredItem(
            row=row,
            vector=vectors.get(row.number),
            segments=tuple(
                replace(part, vector=vectors.get(part.number)) for part in parts[row.number]
            ),
        )


def verify(path: str | Path) -> Summary:
    """Read a whole export and check everything that can be wrong with it, changing nothing.

    Raises NotFoundError, or FormatError if it is cut off, changed, malformed, refers to what is
    not there, or was made by a later version.
    """
    source = existing(path)
    with source.open("rb") as file:
        reader = Reader(file, source.name)
        spaces = tuple(entry for entry in reader.records() if isinstance(entry, StoredSpace))
    return Summary(
        version=VERSION, created=reader.created, counts=dict(reader.counts), spaces=spaces
    )


def read(path: str | Path) -> Iterator[Record]:
    """The records of an export in their order. Numbers are those of the file, per space.

    The footer is checked at the end, when its records have been taken: call `verify` first
    where half an import would be harm. Raises as `verify` does.
    """
    source = existing(path)
    with source.open("rb") as file:
        yield from Reader(file, source.name).records()


def read_stream(stream: IO[bytes], name: str) -> Iterator[Record]:
    """The same of something that can be read only once, such as standard input."""
    yield from Reader(stream, name).records()

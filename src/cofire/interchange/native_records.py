"""The store's records as JSON objects and back, for Cofire's own format.

Pure functions: `…_to_json(record)` gives an object whose keys are always in the same order, with
fields left out that have their default; `record_from_json` gives the record back. Not in the
file, because they are the store's own: revisions, and uids of the ends of links (numbers name
them). Times are ISO 8601 in UTC, uids canonical UUIDs, vectors base64 of little-endian float16.

What is read is held to the same bounds as what is remembered, so that a file which passes can be
stored to its last record.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cofire.encoding.encoder import MAX_CONTENT, MAX_NAME, clean_metadata
from cofire.encoding.timestamps import format_time
from cofire.errors import FormatError, InputError
from cofire.interchange.json_fields import Fields
from cofire.store.events import LEARNING
from cofire.store.recording import check_evidence
from cofire.store.records import (
    KIND_CODES,
    LINK_CODES,
    STATE_CODES,
    DerivedFields,
    EventRecord,
    EventTimeRow,
    ItemRow,
    LinkRow,
    RecallHit,
    RecallRecord,
    SourceRow,
    VersionRow,
)
from cofire.types import INTERNAL_KINDS, SpaceRef, from_micros

Json = dict[str, Any]
MAX_STEP = 40
"""Characters of the name of a step."""
_DAY = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """A segment of a long text: characters `start` to `end` of its whole, with its own vector
    (little-endian float16 bytes) unless that is missing (`pending`) or not wanted."""

    number: int
    uid: bytes
    start: int
    end: int
    tokens: int
    pending: bool
    vector: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """A whole memory as stored, its vector, and its segments in order."""

    row: ItemRow
    vector: bytes | None = None
    segments: tuple[StoredSegment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSpace:
    """The space that the records after it belong to; the model that made its vectors."""

    ref: SpaceRef
    model: str | None
    dimension: int | None
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """How far a step of consolidation had come: the last `period` it was applied in (-1: none),
    at `time` (µs), and what it had seen, as numbers of items of the file (`first`, `last`; 0: none)
    or as a number of `events`."""

    name: str
    time: int
    period: int = -1
    first: int = 0
    last: int = 0
    events: int = 0


Record = (
    StoredSpace
    | StoredItem
    | VersionRow
    | DerivedFields
    | LinkRow
    | RecallRecord
    | EventRecord
    | StoredStep
)


def space_to_json(space: StoredSpace) -> Json:
    ref = space.ref
    return _compact(
        type="space",
        tenant=ref.tenant,
        identity=ref.identity,
        user=ref.user,
        project=ref.project,
        model=space.model,
        dimension=space.dimension,
        settings=_ordered(space.settings) or None,
    )


def item_to_json(item: StoredItem) -> Json:
    row = item.row
    return _compact(
        type="item",
        number=row.number,
        uid=_uid(row.uid),
        kind=row.kind,
        content=row.content,
        title=row.title,
        speaker=row.speaker,
        role=row.role,
        session=row.session,
        time=_iso(row.time),
        offset=row.offset,
        recorded=_iso(row.recorded),
        updated=_iso(row.updated),
        expires=_iso(row.expires),
        archived=_iso(row.archived),
        tags=list(row.tags) or None,
        importance=row.importance,
        pinned=row.pinned or None,
        metadata=_ordered(row.metadata) or None,
        key=row.key,
        language=row.language,
        keywords=list(row.keywords) or None,
        tokens=row.tokens,
        event_times=[
            {"text": text, "start": _iso(start), "end": _iso(end), "from": first, "to": last}
            for text, start, end, first, last in row.event_times
        ]
        or None,
        access_count=row.access_count or None,
        last_accessed=_iso(row.last_accessed),
        version=row.version,
        pending=row.pending or None,
        confidence=row.confidence,
        valid_from=_iso(row.valid_from),
        valid_to=_iso(row.valid_to),
        untrusted=row.untrusted or None,
        vector=_base64(item.vector),
        segments=[_segment_to_json(segment) for segment in item.segments] or None,
    )


def _segment_to_json(segment: StoredSegment) -> Json:
    return _compact(
        number=segment.number,
        uid=_uid(segment.uid),
        start=segment.start,
        end=segment.end,
        tokens=segment.tokens,
        pending=segment.pending or None,
        vector=_base64(segment.vector),
    )


def version_to_json(row: VersionRow) -> Json:
    return _compact(
        type="version",
        number=row.number,
        version=row.version,
        content=row.content,
        title=row.title,
        replaced=_iso(row.replaced),
    )


def derived_to_json(row: DerivedFields) -> Json:
    return _compact(
        type="derived",
        number=row.number,
        maker=row.maker,
        prompt=row.prompt,
        state=row.state,
        subject=row.subject or None,
        slot=row.slot,
        value=row.value,
        single=row.single or None,
        reasons=list(row.reasons) or None,
        closed=_iso(row.closed),
        sources=[
            _compact(
                number=source.source,
                version=source.version or None,
                start=source.start or None,
                end=source.end or None,
            )
            for source in row.sources
        ],
    )


def step_to_json(step: StoredStep) -> Json:
    return _compact(
        type="step",
        name=step.name,
        time=_iso(step.time),
        period=None if step.period < 0 else step.period,
        first=step.first or None,
        last=step.last or None,
        events=step.events or None,
    )


def link_to_json(row: LinkRow) -> Json:
    return _compact(
        type="link",
        source=row.source,
        target=row.target,
        link=row.type,
        strength=row.strength,
        coactivations=row.coactivations or None,
        last_coactivated=_iso(row.last_coactivated),
        created=_iso(row.created),
        rejections=row.rejections or None,
        tick=row.tick or None,
        quota_day=row.quota_day,
        quota=[[principal, moved] for principal, moved in row.quota] or None,
    )


def recall_to_json(record: RecallRecord) -> Json:
    return _compact(
        type="recall",
        uid=_uid(record.uid),
        query=record.query,
        time=_iso(record.time),
        profile=record.profile,
        principal=record.principal,
        hits=[
            _compact(
                number=hit.number,
                position=hit.position,
                score=hit.score,
                linked=hit.linked or None,
                via=hit.via or None,
            )
            for hit in record.hits
        ],
    )


def event_to_json(record: EventRecord) -> Json:
    return _compact(
        type="event",
        seq=record.seq,
        recall=_uid(record.recall) if record.recall is not None else None,
        event=record.type,
        items=[[number, credit] for number, credit in record.items],
        outcome=record.outcome,
        signal=record.signal,
        principal=record.principal,
        time=_iso(record.time),
        question=None if record.question is None else f"{record.question:016x}",
        cue=record.cue,
        trusted=record.trusted or None,
        via=[[number, origin] for number, origin in record.via] or None,
    )


def record_from_json(value: Mapping[str, Any]) -> Record:
    """The record of a JSON object. Raises FormatError saying which field is not as it must be."""
    fields = Fields(value)
    kind = fields.text("type")
    reader = _READERS.get(kind)
    if reader is None:
        raise FormatError(f"there is no record of type {kind[:40]!r}")
    record = reader(fields)
    fields.nothing_left()
    return record


def _space(fields: Fields) -> StoredSpace:
    return StoredSpace(
        ref=SpaceRef(
            tenant=fields.text("tenant"),
            identity=fields.maybe("identity", fields.text),
            user=fields.maybe("user", fields.text),
            project=fields.maybe("project", fields.text),
        ),
        model=fields.maybe("model", fields.text),
        dimension=fields.maybe("dimension", fields.natural),
        settings=fields.maybe("settings", fields.mapping) or {},
    )


def _item(fields: Fields) -> StoredItem:
    number, uid = fields.natural("number"), fields.uid("uid")
    kind, content = fields.choice("kind", KIND_CODES), fields.name("content", MAX_CONTENT)
    if not content.strip() and kind not in INTERNAL_KINDS:
        raise FormatError(f"item {number}: its content is empty")
    segments = tuple(_segment(part) for part in fields.maybe("segments", fields.parts) or ())
    row = ItemRow(
        number=number,
        uid=uid,
        parent=0,
        whole=uid,
        segment=0,
        segments=len(segments),
        start=0,
        end=len(content),
        kind=kind,
        content=content,
        title=_label(fields, "title"),
        speaker=_label(fields, "speaker"),
        role=_label(fields, "role"),
        session=_label(fields, "session"),
        time=fields.moment("time"),
        offset=fields.maybe("offset", lambda name: fields.within(name, 1 - _DAY, _DAY - 1)),
        recorded=fields.moment("recorded"),
        updated=fields.moment("updated"),
        expires=fields.maybe("expires", fields.moment),
        archived=fields.maybe("archived", fields.moment),
        tags=_tags(fields),
        importance=fields.within("importance", 1, 10),
        pinned=fields.flag("pinned"),
        metadata=_metadata(fields.maybe("metadata", fields.mapping) or {}),
        key=_label(fields, "key"),
        language=fields.maybe("language", fields.text),
        keywords=fields.maybe("keywords", fields.texts) or (),
        tokens=fields.natural("tokens"),
        event_times=tuple(
            _event_time(part, len(content))
            for part in fields.maybe("event_times", fields.parts) or ()
        ),
        access_count=fields.maybe("access_count", fields.natural) or 0,
        last_accessed=fields.maybe("last_accessed", fields.moment),
        version=fields.natural("version"),
        pending=fields.flag("pending"),
        confidence=fields.maybe("confidence", fields.share),
        valid_from=fields.maybe("valid_from", fields.moment),
        valid_to=fields.maybe("valid_to", fields.moment),
        untrusted=fields.flag("untrusted"),
        revision=0,
    )
    if any(not 0 <= part.start <= part.end <= len(content) for part in segments):
        raise FormatError(f"item {number}: a segment lies outside its text")
    return StoredItem(row=row, vector=fields.maybe("vector", fields.vector), segments=segments)


def _segment(fields: Fields) -> StoredSegment:
    segment = StoredSegment(
        number=fields.natural("number"),
        uid=fields.uid("uid"),
        start=fields.natural("start"),
        end=fields.natural("end"),
        tokens=fields.natural("tokens"),
        pending=fields.flag("pending"),
        vector=fields.maybe("vector", fields.vector),
    )
    fields.nothing_left()
    return segment


def _label(fields: Fields, name: str) -> str | None:
    return fields.maybe(name, lambda name: fields.name(name, MAX_NAME))


def _tags(fields: Fields) -> tuple[str, ...]:
    tags = fields.maybe("tags", fields.texts) or ()
    if any(not 1 <= len(tag) <= MAX_NAME for tag in tags):
        raise FormatError(f"'tags' must have 1 to {MAX_NAME:,} characters each")
    return tags


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        same = clean_metadata(metadata) == metadata
    except InputError as exc:
        raise FormatError(f"'metadata' cannot be kept: {exc}") from exc
    if not same:
        raise FormatError("'metadata' has a NUL or a lone surrogate, which no store can hold")
    return metadata


def _event_time(fields: Fields, length: int) -> EventTimeRow:
    row = (
        fields.text("text"),
        fields.moment("start"),
        fields.moment("end"),
        fields.natural("from"),
        fields.natural("to"),
    )
    if not row[3] <= row[4] <= length:
        raise FormatError(f"an event time lies outside its text: {row[3]} to {row[4]} of {length}")
    fields.nothing_left()
    return row


def _version(fields: Fields) -> VersionRow:
    return VersionRow(
        number=fields.natural("number"),
        version=fields.natural("version"),
        content=fields.name("content", MAX_CONTENT),
        title=_label(fields, "title"),
        replaced=fields.moment("replaced"),
    )


def _derived(fields: Fields) -> DerivedFields:
    number = fields.natural("number")
    return DerivedFields(
        number=number,
        maker=fields.name("maker", MAX_NAME),
        prompt=_label(fields, "prompt"),
        state=fields.choice("state", STATE_CODES),
        subject=fields.maybe("subject", fields.text) or "",
        slot=fields.maybe("slot", fields.text),
        value=fields.maybe("value", fields.text),
        single=fields.flag("single"),
        reasons=fields.maybe("reasons", fields.texts) or (),
        closed=fields.maybe("closed", fields.moment),
        sources=tuple(_source(number, part) for part in fields.parts("sources")),
    )


def _source(number: int, fields: Fields) -> SourceRow:
    source = SourceRow(
        number=number,
        source=fields.natural("number"),
        version=fields.maybe("version", fields.natural) or 0,
        start=fields.maybe("start", fields.natural) or 0,
        end=fields.maybe("end", fields.natural) or 0,
    )
    fields.nothing_left()
    return source


def _step(fields: Fields) -> StoredStep:
    period = fields.maybe("period", fields.natural)
    return StoredStep(
        name=fields.name("name", MAX_STEP),
        time=fields.moment("time"),
        period=-1 if period is None else period,
        first=fields.maybe("first", fields.natural) or 0,
        last=fields.maybe("last", fields.natural) or 0,
        events=fields.maybe("events", fields.natural) or 0,
    )


def _link(fields: Fields) -> LinkRow:
    return LinkRow(
        source=fields.natural("source"),
        target=fields.natural("target"),
        source_uid=b"",
        target_uid=b"",
        type=fields.choice("link", LINK_CODES),
        strength=fields.share("strength"),
        coactivations=fields.maybe("coactivations", fields.natural) or 0,
        last_coactivated=fields.maybe("last_coactivated", fields.moment),
        created=fields.moment("created"),
        revision=0,
        rejections=fields.maybe("rejections", fields.natural) or 0,
        tick=fields.maybe("tick", fields.integer) or 0,
        quota_day=fields.maybe("quota_day", fields.integer),
        quota=fields.maybe("quota", fields.quota) or (),
    )


def _recall(fields: Fields) -> RecallRecord:
    return RecallRecord(
        uid=fields.uid("uid"),
        query=fields.text("query"),
        time=fields.moment("time"),
        profile=fields.text("profile"),
        principal=fields.maybe("principal", fields.text),
        hits=tuple(_hit(part) for part in fields.parts("hits")),
    )


def _hit(fields: Fields) -> RecallHit:
    hit = RecallHit(
        number=fields.natural("number"),
        position=fields.natural("position"),
        score=fields.number("score"),
        linked=fields.flag("linked"),
        via=fields.maybe("via", fields.natural) or 0,
    )
    fields.nothing_left()
    return hit


def _event(fields: Fields) -> EventRecord:
    event = EventRecord(
        seq=fields.natural("seq"),
        recall=fields.maybe("recall", fields.uid),
        type=fields.text("event"),
        items=fields.credits("items"),
        outcome=fields.maybe("outcome", fields.number),
        signal=fields.maybe("signal", fields.text),
        principal=fields.maybe("principal", fields.text),
        time=fields.moment("time"),
        question=fields.maybe("question", fields.hash64),
        cue=fields.maybe("cue", fields.natural),
        trusted=fields.flag("trusted"),
        via=fields.maybe("via", fields.number_pairs) or (),
    )
    if event.type in LEARNING:
        try:
            check_evidence(event.items, event.outcome, event.signal)
        except InputError as exc:
            raise FormatError(str(exc)) from exc
    return event


_READERS: dict[str, Callable[[Fields], Record]] = {
    "space": _space,
    "item": _item,
    "version": _version,
    "derived": _derived,
    "step": _step,
    "link": _link,
    "recall": _recall,
    "event": _event,
}


def _compact(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _ordered(value: Any) -> Any:
    """Metadata with sorted keys at every level, so that equal values are equal text."""
    if isinstance(value, Mapping):
        return {str(key): _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_ordered(entry) for entry in value]
    return value


def _iso(micros: int | None) -> str | None:
    if micros is None:
        return None
    try:
        return format_time(from_micros(micros))
    except OverflowError as exc:
        raise InputError(f"the stored time {micros} µs is outside the years 1 to 9999") from exc


def _uid(raw: bytes) -> str:
    return str(uuid.UUID(bytes=raw))


def _base64(raw: bytes | None) -> str | None:
    return base64.b64encode(raw).decode("ascii") if raw is not None else None

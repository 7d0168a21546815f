"""One space of an export on its way back in: under its ids, with everything derived made anew."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from cofire import views
from cofire.consolidation.abstracting import bare
from cofire.consolidation.cursors import EVENT_STEPS
from cofire.encoding.analysis import analyse
from cofire.encoding.encoder import Encoder, indexed
from cofire.encoding.facets import facets_of
from cofire.encoding.reembedding import reembed_space
from cofire.encoding.terms import pack_facets, pack_terms
from cofire.errors import ConfigurationError, EmbeddingError, EmbeddingMismatchError
from cofire.interchange import ImportReport
from cofire.interchange.native_records import StoredItem, StoredSpace, StoredStep
from cofire.models import Embedder
from cofire.store import Store
from cofire.store.records import (
    Amendment,
    DerivedFields,
    EventRecord,
    LinkRow,
    NewItem,
    NewSegment,
    RecallRecord,
    SourceRow,
    SpaceInfo,
    StepRow,
    VersionRow,
)
from cofire.types import Kind, Message

_REDACTED = ("title", "speaker", "role", "session", "tags", "metadata")
"""What redaction may change in a memory besides its content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What makes what an export does not bring: the encoder, the model (None: vectors are off),
    and what counts wordpieces."""

    encoder: Encoder
    embedder: Embedder | None
    counter: Embedder


class Restoring:
    """One space on its way in: the file's numbers → the store's (0: not taken)."""

    def __init__(
        self,
        store: Store,
        space: SpaceInfo,
        stored: StoredSpace,
        making: Making,
        report: ImportReport,
    ) -> None:
        self._store = store
        self._space = space
        self._making = making
        self._report = report
        self._numbers = array("Q", [0])
        self._same_model = (stored.model, stored.dimension) == (space.model, space.dimension)
        self._incomplete = False
        self._fresh: set[int] = set()
        """Numbers of the store that this import made."""
        self._empty = store.last_number(space) == 0
        self._reworded: set[int] = set()
        """Numbers of the file whose text redaction changed, so that places in it mean nothing."""

        self._adopt_rule(stored)

    def _adopt_rule(self, stored: StoredSpace) -> None:
        """Restores by which rule the space learned, or its strengths would not be what its log
        says."""
        try:
            adopted = self._store.adopt_rule(self._space, stored.settings)
        except ConfigurationError as exc:
            self._report.note(str(exc))
        else:
            if not adopted:
                self._report.note(
                    f"{self._space.ref} learns by another rule than the file's, and goes on doing "
                    "so: run `cofire replay` to make what was imported agree with it"
                )

    def take(self, batch: Sequence[Any]) -> None:
        """Store a run of records of one type."""
        match batch[0]:
            case StoredItem() | VersionRow():
                self._items(batch)
            case DerivedFields():
                self._derived(batch)
            case LinkRow():
                self._links(batch)
            case RecallRecord():
                self._recalls(batch)
            case EventRecord():
                self._events(batch)
            case StoredStep():
                self._steps(batch)

    def finish(self) -> None:
        """Embed what came without a vector of this memory's model."""
        if not self._incomplete or self._making.embedder is None:
            return
        try:
            reembed_space(self._store, self._space, self._making.embedder)
        except EmbeddingMismatchError:
            raise
        except (EmbeddingError, ConfigurationError) as exc:
            self._report.note(
                "some memories were restored without vectors and can be found by their words only, "
                f"because embedding failed ({exc}); `cofire reembed` adds them later"
            )

    def _items(self, batch: Sequence[StoredItem | VersionRow]) -> None:
        items = [record for record in batch if isinstance(record, StoredItem)]
        history: dict[int, list[VersionRow]] = {}
        for record in batch:
            if isinstance(record, VersionRow):
                history.setdefault(record.number, []).append(record)
        self._report.read += len(items)
        fresh, made = self._made([item for item in items if not self._known(item)])
        appended = self._store.append(self._space, made, link_sessions=False)
        taken = []
        for item, number, created in zip(fresh, appended.numbers, appended.created, strict=True):
            if created:
                taken.append((item, number))
                self._fresh.add(number)
                self._report.imported += 1
            else:
                self._report.known += 1
        self._map_segments(taken)
        self._store.amend(
            self._space, [self._amendment(item, number, history) for item, number in taken]
        )

    def _known(self, item: StoredItem) -> bool:
        """Whether the store has it already; then the file's links to it still hold."""
        found = self._store.locate([self._space], item.row.uid)
        self._remember(item.row.number, found[1] if found else 0)
        for part in item.segments:
            self._remember(part.number, 0)
        if found:
            self._report.known += 1
        return found is not None

    def _remember(self, number: int, stored: int) -> None:
        if number >= len(self._numbers):
            self._numbers.extend([0] * (number + 1 - len(self._numbers)))
        self._numbers[number] = stored

    def _map_segments(self, taken: Sequence[tuple[StoredItem, int]]) -> None:
        for item, number in taken:
            self._remember(item.row.number, number)
            for part in item.segments:
                found = self._store.locate([self._space], part.uid)
                self._remember(part.number, found[1] if found else 0)
                self._fresh.add(self._number(part.number))

    def _made(self, items: Sequence[StoredItem]) -> tuple[list[StoredItem], list[NewItem]]:
        """The items that may be kept, and what is stored of them: what redaction leaves."""
        if not self._making.encoder.redacts:
            return list(items), [self._new(item) for item in items]
        kept: list[StoredItem] = []
        cleaned: list[Message] = []
        for item in items:
            message = self._making.encoder.cleaned(views.message(item.row))
            if message.content.strip():
                kept.append(item)
                cleaned.append(message)
            else:
                where = views.public_id(item.row.uid)
                self._report.reject(where, "nothing of it is left by the redaction")
        rewritten = iter(
            self._rewritten(
                [
                    message
                    for item, message in zip(kept, cleaned, strict=True)
                    if message.content != item.row.content
                ]
            )
        )
        made = []
        for item, message in zip(kept, cleaned, strict=True):
            if message.content == item.row.content:  # then segments and vectors are as they were
                row = item.row._replace(**{name: getattr(message, name) for name in _REDACTED})
                made.append(self._new(replace(item, row=row)))
            else:
                made.append(_standing_in(_under_its_ids(next(rewritten), item)))
                self._reworded.add(item.row.number)
        return kept, made

    def _rewritten(self, messages: Sequence[Message]) -> Sequence[NewItem]:
        """Everything derived from redacted texts, made anew. Their ids are not the right ones."""
        making = self._making
        encoded = making.encoder.derive(messages, now=datetime.now(UTC), counter=making.counter)
        for warning in encoded.warnings:
            self._report.note(warning)
        return encoded.items

    def _clean(self, text: str) -> str:
        encoder = self._making.encoder
        return encoder.clean(text) if encoder.redacts else text

    def _amendment(
        self, item: StoredItem, number: int, history: Mapping[int, list[VersionRow]]
    ) -> Amendment:
        row = item.row
        return Amendment(
            number=number,
            updated=row.updated,
            version=row.version,
            access_count=row.access_count,
            last_accessed=row.last_accessed,
            history=tuple(
                former._replace(
                    content=self._clean(former.content),
                    title=None if former.title is None else self._clean(former.title),
                )
                for former in history.get(row.number, ())
            ),
        )

    def _new(self, item: StoredItem) -> NewItem:
        """The stored item with everything derived made again, but for its vectors."""
        row = item.row
        whole = not item.segments
        vector = item.vector if self._same_model else None
        derived: dict[str, Any] = {}
        if whole:
            derived = indexed(row.content, row.title, analyse(row.content, row.language), vector)
        unnamed = row.kind != Kind.CONCEPT.value  # those have no vector
        self._incomplete |= (whole and vector is None and unnamed) or (
            not whole and not self._same_model
        )
        made = NewItem(
            uid=row.uid,
            content=row.content,
            time=row.time,
            recorded=row.recorded,
            kind=row.kind,
            title=row.title,
            speaker=row.speaker,
            role=row.role,
            session=row.session,
            offset=row.offset,
            expires=row.expires,
            tags=row.tags,
            importance=row.importance,
            pinned=row.pinned,
            metadata=row.metadata,
            key=row.key,
            language=row.language,
            keywords=row.keywords,
            tokens=row.tokens,
            event_times=row.event_times,
            archived=row.archived,
            confidence=row.confidence,
            valid_from=row.valid_from,
            valid_to=row.valid_to,
            untrusted=row.untrusted,
            facets=pack_facets(facets_of(views.message(row))),
            segments=tuple(self._segment(item, index) for index in range(len(item.segments))),
            **derived,
        )
        return _standing_in(made)

    def _segment(self, item: StoredItem, index: int) -> NewSegment:
        part = item.segments[index]
        text = item.row.content[part.start : part.end]
        vector = part.vector if self._same_model else None
        fields = indexed(text, item.row.title, analyse(text, item.row.language), vector)
        return NewSegment(
            uid=part.uid, start=part.start, end=part.end, tokens=part.tokens, **fields
        )

    def _derived(self, batch: Sequence[DerivedFields]) -> None:
        """How items that are there were made, and what they rest on."""
        rows = [
            row._replace(
                number=self._number(row.number),
                subject=self._clean(row.subject),
                slot=None if row.slot is None else self._clean(row.slot),
                value=None if row.value is None else self._clean(row.value),
                reasons=tuple(self._clean(reason) for reason in row.reasons),
                sources=self._sources(row),
            )
            for row in batch
            if self._number(row.number)
        ]
        self._store.put_derived(self._space, rows)

    def _sources(self, row: DerivedFields) -> tuple[SourceRow, ...]:
        """Without those that were not taken; a text that reads differently now as a whole."""
        sources: dict[tuple[int, int], SourceRow] = {}
        for source in row.sources:
            number = self._number(source.source)
            if number:
                moved = source._replace(number=self._number(row.number), source=number)
                if source.source in self._reworded:
                    moved = moved._replace(start=0, end=0)
                sources.setdefault((moved.source, moved.start), moved)
        return tuple(sources.values())

    def _steps(self, batch: Sequence[StoredStep]) -> None:
        """How far consolidation had come, where nothing was here before that it has not seen."""
        if not self._empty:
            return
        for step in batch:
            events = step.name in EVENT_STEPS
            row = StepRow(
                name=step.name,
                period=step.period,
                revision=self._number(step.first),
                seq=step.events if events else self._number(step.last),
                time=step.time,
            )
            self._store.put_step(self._space, row)

    def _links(self, batch: Sequence[LinkRow]) -> None:
        """Links of what this import made. Between memories that were here before, a link has had
        a life of its own since the export and stays as it is."""
        wanted = []
        for link in batch:
            source, target = self._number(link.source), self._number(link.target)
            if source and target and not self._fresh.isdisjoint((source, target)):
                wanted.append(link._replace(source=source, target=target))
        if wanted:
            self._store.put_links(self._space, wanted)

    def _recalls(self, batch: Sequence[RecallRecord]) -> None:
        records = [
            replace(
                record,
                query=self._clean(record.query),
                hits=tuple(
                    hit._replace(number=self._number(hit.number), via=self._number(hit.via))
                    for hit in record.hits
                    if self._number(hit.number)
                ),
            )
            for record in batch
        ]
        self._store.record_recalls([(self._space, one) for one in records], count_use=False)

    def _events(self, batch: Sequence[EventRecord]) -> None:
        if not self._fresh:  # imported before, and its log with it
            return
        events = [
            replace(
                event,
                items=tuple(
                    (self._number(number), credit)
                    for number, credit in event.items
                    if self._number(number)
                ),
                cue=None if event.cue is None else self._number(event.cue) or None,
                via=tuple(
                    (self._number(number), self._number(origin))
                    for number, origin in event.via
                    if self._number(number) and self._number(origin)
                ),
            )
            for event in batch
        ]
        self._store.append_events(self._space, events)

    def _number(self, number: int) -> int:
        return self._numbers[number] if number < len(self._numbers) else 0


def _standing_in(made: NewItem) -> NewItem:
    """Gists, words and concepts are found by no words of theirs; a word is known by its term."""
    kind = Kind(made.kind)
    if kind not in {Kind.GIST, Kind.WORD, Kind.CONCEPT}:
        return made
    known = b""
    if kind is Kind.WORD:
        known = pack_terms(analyse(made.content, made.language).terms[:1])
    bared = bare(made, kind, known)
    return replace(bared, vector=None, pending=False) if kind is Kind.CONCEPT else bared


def _under_its_ids(made: NewItem, item: StoredItem) -> NewItem:
    """What was made anew of a stored memory, as that memory."""
    row = item.row
    segments = made.segments
    if len(segments) == len(item.segments):  # most likely the same places, and their links hold
        segments = tuple(
            replace(part, uid=former.uid)
            for part, former in zip(segments, item.segments, strict=True)
        )
    return replace(
        made,
        uid=row.uid,
        recorded=row.recorded,
        segments=segments,
        archived=row.archived,
        confidence=row.confidence,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        untrusted=row.untrusted,
    )

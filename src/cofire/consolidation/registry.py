"""A picture of the records of some subjects, changed draft by draft; the plan is the difference.

Drafts say which record a piece of evidence belongs to. From when until when the values of a slot
hold follows from the evidence (`timelines`), once all of it is in the picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import combinations, pairwise

from cofire.consolidation.drafts import Draft, Span, Turn, Verdict
from cofire.consolidation.night import Night
from cofire.consolidation.pictured import (
    EXTRACTIVE,
    Record,
    cosine,
    equal_values,
    points,
    time_of,
)
from cofire.consolidation.reconciling import Known, Replaces, Same
from cofire.consolidation.slots import slot_filled, subject_key
from cofire.consolidation.timelines import timeline
from cofire.consolidation.turns import read_turns
from cofire.consolidation.verifying import confidence
from cofire.dynamics.arrays import F32
from cofire.graph.vectors import unpacked
from cofire.ids import new_uuid7
from cofire.store.planning import Plan, Restated, Validity
from cofire.store.records import DerivedRow, NewDerived, NewItem
from cofire.types import Kind, LinkType, Message, from_micros, to_micros

EVIDENCE = 0.8
"""Strength of a link from a record to what it rests on (Synapse's of abstraction links)."""


CAUSE = 0.5
"""Strength of a link from a cause to its effect: a new link's (Atamaia)."""

Join = tuple[int, int, str, float]
LineKey = tuple[str, str]
"""Whom records are about and which slot they fill."""


class Registry:
    """The records of some subjects as they are stored, and what drafts make of them."""

    def __init__(self, night: Night, subjects: Iterable[str]) -> None:
        self._night = night
        self._records: dict[int, Record] = {}
        rows = [
            row
            for row in night.store.derived_about(night.space, sorted(set(subjects)))
            if row.state == "current" and row.item.archived is None
        ]
        vectors = night.store.vectors(night.space, [row.item.number for row in rows])
        for row in rows:
            self._records[row.item.number] = self._stored(row, vectors.get(row.item.number))
        self._fresh = 0
        self._led: set[tuple[int, int]] = set()
        self._retired: list[int] = []
        self._merged: dict[int, int] = {}
        self._reversed: set[tuple[int, int]] = set()

    def known(self, subject: str, vector: F32 | None) -> list[Known]:
        """The records in the picture, with their cosine to a draft's vector."""
        return [
            Known(
                number=record.number,
                kind=record.draft.kind,
                subject=record.draft.subject,
                content=record.draft.content,
                valid_from=record.valid_from,
                slot=record.draft.slot,
                value=record.draft.value,
                single=record.draft.single,
                valid_to=record.valid_to,
                recorded=record.recorded,
                cosine=cosine(record.vector, vector),
                evidence=len(record.spans),
                times=tuple(sorted(time for time, _ in record.said)),
                untrusted=record.untrusted,
            )
            for record in self._records.values()
        ]

    def add(
        self, draft: Draft, verdict: Verdict, item: NewItem, cited: Sequence[Turn], said: datetime
    ) -> Record:
        """A new record."""
        self._fresh -= 1
        start = draft.valid_from or said
        slot = slot_filled(draft)
        if slot is not None:
            draft = replace(draft, slot=slot.name, value=slot.value, single=slot.single)
        record = Record(
            number=self._fresh,
            draft=draft,
            item=item,
            valid_from=start,
            valid_to=None,
            vector=None if item.vector is None else unpacked(item.vector),
            said=[(start, verdict.spans)],
            turns={turn.number: turn for turn in cited},
            untrusted=item.untrusted,
        )
        self._records[record.number] = record
        return record

    def same(
        self, decision: Same, draft: Draft, verdict: Verdict, cited: Sequence[Turn], said: datetime
    ) -> str:
        """More evidence of a record; "known" if it was evidence already."""
        record = self._records[decision.number]
        if set(verdict.spans) <= set(record.spans) and decision.since is None:
            return "known"
        start = draft.valid_from or said
        spans = set(verdict.spans)
        record.said = [one for one in record.said if not spans.issuperset(one[1])]
        record.said.append((start, verdict.spans))
        record.turns.update({turn.number: turn for turn in cited})
        record.grown = True
        if decision.since is not None:
            record.valid_from = decision.since
            record.changed = True
            for number in decision.ended:
                self._end(number, decision.since, record.number)
        elif record.slot is None and start < record.valid_from:
            record.valid_from = start
            record.changed = True
        return "again"

    def replace(self, decision: Replaces, record: Record) -> None:
        """A record just added is another value of a slot that has one at a time."""
        record.valid_to = decision.until
        for number in decision.numbers:
            former = self._records[number]
            if decision.resumes:
                self._resume(former, decision.since)
            self._end(number, decision.since, record.number)

    def _end(self, number: int, moment: datetime, by: int) -> None:
        record = self._records[number]
        record.valid_to = moment
        record.changed = True
        record.because = min(by, 0)

    def _resume(self, former: Record, since: datetime) -> None:
        """What was interrupted holds again from its next evidence on, as a record of its own."""
        later = [one for one in former.said if one[0] > since]
        former.said = [one for one in former.said if one[0] <= since]
        former.grown = True
        copy = self._copied(former)
        copy.said = later
        copy.valid_from = min(time for time, _ in later)

    def plan(self, failed: Sequence[NewDerived]) -> Plan:
        """What has to be done for the store to be as the picture is."""
        self.settle(
            key
            for key, line in self._lines().items()
            if any(record.number < 0 or record.changed or record.grown for record in line)
        )
        self._renumber()
        fresh = sorted(
            (record for record in self._records.values() if record.number < 0),
            key=lambda record: -record.number,
        )
        stored = [record for record in self._records.values() if record.number > 0]
        return Plan(
            derived=(*(self._filed(record) for record in fresh), *failed),
            restated=tuple(self._restated(record) for record in stored if record.grown),
            validity=tuple(
                Validity(
                    record.number, to_micros(record.valid_from), _micros(record.valid_to),
                    record.because,
                )
                for record in stored
                if record.changed
            ),
            joins=(*self._successions(), *self._causes()),
            retired=tuple(self._retired),
            pruned=tuple(sorted(self._reversed)),
        )  # fmt: skip

    def settle(self, keys: Iterable[LineKey] | None = None) -> None:
        """Makes the lines of slots (None: all) what their evidence says."""
        lines = self._lines()
        for key in lines if keys is None else list(keys):
            self._settle({record.number: record for record in lines[key]})

    def _settle(self, line: dict[int, Record]) -> None:
        before = sorted((one.valid_from, one.number) for one in line.values() if one.number > 0)
        stretches = timeline(points(line), lambda one, other: equal_values(line[one], line[other]))
        turns = {n: turn for record in line.values() for n, turn in record.turns.items()}
        kept: list[Record] = []
        for stretch in stretches:
            record = line[stretch.number]
            kept.append(self._copied(record) if stretch.copy else record)
            self._merged.update({p.number: kept[-1].number for p in stretch.points if p.number < 0})
        for number in line.keys() - {record.number for record in kept}:
            del self._records[number]
            if number > 0:
                self._retired.append(number)
                for record in kept:  # with it goes what it says about the others' validity
                    record.changed = True
        for record, stretch, later in zip(kept, stretches, [*kept[1:], None], strict=True):
            said = [(point.time, point.spans) for point in stretch.points]
            spans = {span for _, found in said for span in found}
            record.grown |= spans != set(record.spans)
            if (record.valid_from, record.valid_to) != (stretch.since, stretch.until):
                record.changed = True
            if record.changed:
                record.because = 0 if later is None else min(later.number, 0)
            record.valid_from, record.valid_to = stretch.since, stretch.until
            record.said = said
            record.turns = {n: turns[n] for n in {s.number for s in spans} if n in turns}
        stored = [record.number for record in kept if record.number > 0]
        order = [number for _, number in before if number in stored]
        if order != stored:  # what led from later to former leads the wrong way now
            self._reversed |= self._succeeding().intersection(combinations(stored, 2))

    def _succeeding(self) -> set[tuple[int, int]]:
        """The links from later to former records that are stored."""
        store, space = self._night.store, self._night.space
        return {
            (link.source, link.target)
            for number in self._records
            if number > 0
            for link in store.links(space, number)
            if link.type == LinkType.SUPERSEDES.value
        }

    def _copied(self, record: Record) -> Record:
        """What was interrupted and holds again, as a record of its own."""
        self._fresh -= 1
        item = record.item or self._remade(record)
        copy = replace(
            record, number=self._fresh, item=replace(item, uid=new_uuid7().bytes), recorded=None,
            changed=False, grown=False, because=0,
        )  # fmt: skip
        self._records[copy.number] = copy
        return copy

    def _renumber(self) -> None:
        """Numbers what is to be filed -1, -2, … without gaps, as references in a plan are."""
        fresh = sorted((n for n in self._records if n < 0), reverse=True)
        numbers = {number: -place for place, number in enumerate(fresh, 1)}
        records = [self._records[number] for number in self._records]
        for record in records:
            record.number = numbers.get(record.number, record.number)
            record.because = numbers.get(record.because, record.because)
        self._records = {record.number: record for record in records}

        def now(number: int) -> int:
            number = self._merged.get(number, number)
            return numbers.get(number, number)

        self._led = {(now(cause), now(effect)) for cause, effect in self._led}

    def _lines(self) -> dict[LineKey, list[Record]]:
        """The records of each subject and slot of one value."""
        lines: dict[LineKey, list[Record]] = {}
        for record in self._records.values():
            if record.slot is not None:
                key = (subject_key(record.draft.subject), record.slot.name)
                lines.setdefault(key, []).append(record)
        return lines

    def led_to(self, cause: int, effect: int) -> None:
        """Notes that one memory (a turn's number, or a record's in the picture) led to another."""
        self._led.add((cause, effect))

    def _causes(self) -> Iterable[Join]:
        return [
            (cause, effect, LinkType.CAUSES.value, CAUSE) for cause, effect in sorted(self._led)
        ]

    def _successions(self) -> Iterable[Join]:
        """Later to former of every slot of one value that anything changed in."""
        for line in self._lines().values():
            line.sort(key=lambda one: (one.valid_from, one.valid_to is None, one.number))
            for former, later in pairwise(line):
                touched = former.changed or later.changed or min(former.number, later.number) < 0
                if touched and former.valid_to is not None:
                    yield later.number, former.number, LinkType.SUPERSEDES.value, 1.0

    def _filed(self, record: Record) -> NewDerived:
        draft, item = record.draft, record.item
        if item is None:
            raise ValueError("a record that is stored is not filed again")
        event_times = item.event_times
        if draft.happened is not None:
            start, end = map(to_micros, draft.happened)
            event_times = (("", start, end, 0, 0),)
        return NewDerived(
            item=replace(
                item,
                valid_from=to_micros(record.valid_from),
                valid_to=_micros(record.valid_to),
                confidence=self._confidence(record),
                event_times=event_times,
            ),
            maker=draft.maker,
            prompt=draft.prompt,
            sources=_sources(record),
            subject=draft.subject,
            slot=draft.slot,
            value=draft.value,
            single=draft.single,
            closed=None if record.valid_to is None else self._night.now,
            links=_links(record),
        )

    def _restated(self, record: Record) -> Restated:
        return Restated(
            number=record.number,
            sources=_sources(record),
            confidence=self._confidence(record),
            links=_links(record),
        )

    def _confidence(self, record: Record) -> float:
        tools = record.draft.kind is Kind.PROCEDURE
        return confidence((record.turns[n] for n in _numbers(record)), tools=tools)

    def _stored(self, row: DerivedRow, vector: bytes | None) -> Record:
        item = row.item
        turns = read_turns(
            self._night.store, self._night.space, sorted({one.source for one in row.sources})
        )
        by_number = {turn.number: turn for turn in turns}
        start = from_micros(item.time if item.valid_from is None else item.valid_from)
        said: dict[datetime, list[Span]] = {}
        for source in row.sources:
            turn = by_number.get(source.source)
            if turn is not None:
                span = Span(
                    number=source.source, version=source.version,
                    start=source.start, end=source.end,
                )  # fmt: skip
                said.setdefault(time_of(row, source, turn, start), []).append(span)
        evidence = [(time, tuple(spans)) for time, spans in sorted(said.items())]
        if evidence and row.maker != EXTRACTIVE:
            evidence[0] = (start, evidence[0][1])
        return Record(
            number=item.number,
            draft=Draft(
                kind=Kind(item.kind),
                content=item.content,
                subject=row.subject,
                quotes=(),
                slot=row.slot,
                value=row.value,
                single=row.single,
                language=item.language,
                maker=row.maker,
                prompt=row.prompt,
            ),
            item=None,
            valid_from=start,
            valid_to=None if item.valid_to is None else from_micros(item.valid_to),
            vector=None if vector is None else unpacked(vector),
            said=evidence,
            turns=by_number,
            untrusted=item.untrusted,
            recorded=from_micros(item.recorded),
        )

    def _remade(self, record: Record) -> NewItem:
        """The item of a stored record, made anew."""
        row = self._night.store.get(self._night.space, record.number)
        own = record.draft.maker == "extractive" and row is not None
        message = Message(
            content=record.draft.content,
            kind=record.draft.kind,
            speaker=row.speaker if own and row is not None else None,
            time=record.valid_from,
            importance=6 if row is None else row.importance,
            untrusted=record.untrusted,
        )
        return self._night.make([message])[0]


def _numbers(record: Record) -> list[int]:
    return [n for n in dict.fromkeys(span.number for span in record.spans) if n in record.turns]


def _sources(record: Record) -> tuple[tuple[int, int, int, int], ...]:
    found = {(span.number, span.version, span.start, span.end) for span in record.spans}
    return tuple(sorted(found))


def _links(record: Record) -> tuple[tuple[int, str, float], ...]:
    return tuple((number, LinkType.EVIDENCE.value, EVIDENCE) for number in sorted(_numbers(record)))


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)

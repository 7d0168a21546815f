"""A language model's answer → drafts, with a count of everything in it that was not believed.

Nothing here trusts a field: each has a type, a length and a range, a label must have been offered
in the very call, and a record that is left without a quote is dropped. What the model says of its
own confidence is not read at all. No text raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cofire.consolidation.drafts import (
    DISTILLED,
    ConceptDraft,
    Draft,
    Quote,
    RelationDraft,
    Turn,
)
from cofire.consolidation.extracting import UnreadableError, extract
from cofire.consolidation.quoting import spelled
from cofire.consolidation.reply_fields import (
    CONTENT,
    MOST_RECORDS,
    NAME,
    SLOT,
    VALUE,
    DroppedError,
    Reading,
    bare,
)
from cofire.encoding.language import detect
from cofire.models.generator import Finish
from cofire.types import Kind

_KINDS = {str(kind): kind for kind in DISTILLED}
_DRAFT = re.compile(r"d([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What an answer holds. `failed` says why it cannot be used at all (None: it can): a word of
    `extracting`, "refusal" (the model or a filter declined), "shape" (JSON of another form) or
    "unusable" (nothing in it was usable). Then there are no drafts.

    `dropped` counts what was left out. Whole records: "record" (no object), "kind", "content",
    "subject", "name", "evidence" (no quote or turn is left), "relation", "repeated". Parts of
    them: "label" (a turn that was not offered), "quote", "time" (impossible or far off), "cause",
    "slot" (without value, or the reverse), "list" (a text where a list was due). Either: "excess"
    (beyond what is taken), "long", "characters" (no valid text).
    """

    drafts: tuple[Draft, ...] = ()
    concepts: tuple[ConceptDraft, ...] = ()
    relations: tuple[RelationDraft, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    failed: str | None = None


Parser = Callable[[str, Sequence[Turn], Finish, str, str], Parsed]
"""(text, turns offered, how the answer ended, model, prompt) → what it holds."""


def parse_records(
    text: str, turns: Sequence[Turn], finish: Finish, maker: str, prompt: str
) -> Parsed:
    """The records in an answer to the prompt "distil". Their causes are labels of `turns`, or "D1"
    for the first of the drafts returned, whatever was dropped before it."""
    try:
        entries = _entries(_value(text, finish), "records", "content")
    except UnreadableError as exc:
        return Parsed(failed=str(exc))
    reading = Reading(turns)
    drafts: list[Draft] = []
    given: list[list[str]] = []
    places: dict[int, int] = {}
    known: dict[tuple[Kind, str, str], int] = {}
    quoted: dict[tuple[Kind, str, str], set[Quote]] = {}
    for number, entry in enumerate(reading.listed(entries, MOST_RECORDS), start=1):
        try:
            draft = replace(_draft(reading, entry), maker=maker, prompt=prompt)
        except DroppedError as exc:
            reading.dropped[str(exc)] += 1
            continue
        key = (draft.kind, spelled(draft.subject), spelled(draft.content))
        if quoted.setdefault(key, set()).issuperset(draft.quotes):
            reading.dropped["repeated"] += 1
        else:  # new, or the same by other words
            quoted[key].update(draft.quotes)
            drafts.append(draft)
            given.append(reading.texts(entry.get("causes"), NAME))
            known.setdefault(key, len(drafts))
        places[number] = known[key]
    linked = tuple(
        replace(draft, causes=_causes(reading, causes, place, places))
        for place, (draft, causes) in enumerate(zip(drafts, given, strict=True), start=1)
    )
    return _parsed(reading, Parsed(drafts=linked))


def parse_concepts(
    text: str, turns: Sequence[Turn], finish: Finish, maker: str, prompt: str
) -> Parsed:
    """The concepts and relations in an answer to the prompt "concepts"."""
    try:
        value = _value(text, finish)
        entries = _entries(value, "concepts", "name")
    except UnreadableError as exc:
        return Parsed(failed=str(exc))
    reading = Reading(turns)
    concepts: dict[str, ConceptDraft] = {}
    for entry in reading.listed(entries, MOST_RECORDS):
        try:
            concept = replace(_concept(reading, entry), maker=maker, prompt=prompt)
        except DroppedError as exc:
            reading.dropped[str(exc)] += 1
            continue
        reading.dropped["repeated"] += spelled(concept.name) in concepts
        concepts.setdefault(spelled(concept.name), concept)
    names = {spelled(alias): c.name for c in concepts.values() for alias in c.aliases}
    names |= {key: concept.name for key, concept in concepts.items()}
    relations: dict[RelationDraft, None] = {}
    given = value.get("relations") if isinstance(value, dict) else None
    for entry in reading.listed(given, MOST_RECORDS):
        try:
            relations[replace(_relation(reading, entry, names), maker=maker, prompt=prompt)] = None
        except DroppedError:
            reading.dropped["relation"] += 1
    found = Parsed(concepts=tuple(concepts.values()), relations=tuple(relations))
    return _parsed(reading, found)


PARSERS: Mapping[str, Parser] = {"distil": parse_records, "concepts": parse_concepts}
"""Prompt's name → what reads its answers."""


def _value(text: str, finish: Finish) -> Any:
    if finish in {"refusal", "filter"}:
        raise UnreadableError("refusal")
    if finish == "length":
        raise UnreadableError("cut")
    return extract(text)


def _entries(value: Any, key: str, mark: str) -> list[Any]:
    """The entries of an answer: the list it is, the list under `key`, its only list, or itself
    where it has `mark` as one entry has."""
    if isinstance(value, list):
        return value
    if isinstance(value.get(key), list):
        return list(value[key])
    if mark in value:
        return [value]
    lists = [given for given in value.values() if isinstance(given, list)]
    if len(lists) != 1 or key in value:
        raise UnreadableError("shape")
    return list(lists[0])


def _parsed(reading: Reading, found: Parsed) -> Parsed:
    dropped = {name: count for name, count in sorted(reading.dropped.items()) if count}
    nothing = not (found.drafts or found.concepts) and bool(dropped)
    return replace(found, dropped=dropped, failed="unusable" if nothing else None)


def _object(entry: Any) -> Mapping[str, Any]:
    """A record; one that is only a sentence has nothing to bear it out."""
    if not isinstance(entry, dict):
        raise DroppedError("evidence" if isinstance(entry, str) else "record")
    return entry


def _draft(reading: Reading, entry: Any) -> Draft:
    """A record, without its causes."""
    record = _object(entry)
    named = record.get("kind")
    kind = _KINDS.get(named.strip().casefold()) if isinstance(named, str) else None
    if kind is None:
        raise DroppedError("kind")
    content = reading.needed(record.get("content"), CONTENT, "content")
    subject = reading.needed(record.get("subject"), NAME, "subject")
    quotes = reading.quotes(record.get("quotes"))
    slot = reading.optional(record.get("slot"), SLOT)
    value = reading.optional(record.get("value"), VALUE)
    if slot is None or value is None:
        reading.dropped["slot"] += slot is not value
        slot = value = None
    offset = reading.turns[quotes[0].label].offset or 0
    since = reading.span(record.get("valid_from"), offset)
    return Draft(
        kind=kind,
        content=content,
        subject=subject,
        quotes=quotes,
        slot=slot.casefold() if slot is not None else None,
        value=value,
        single=slot is not None and record.get("single") in (True, "true"),
        happened=reading.hull(record.get("happened_from"), record.get("happened_to"), offset),
        valid_from=since[0] if since is not None else None,
        language=detect(content),
    )


def _causes(
    reading: Reading, given: Sequence[str], place: int, places: Mapping[int, int]
) -> tuple[str, ...]:
    """Labels of turns and of drafts, a draft called by its place among those that are kept."""
    causes: dict[str, None] = {}
    for cause in given:
        label = reading.label(cause)
        number = _DRAFT.fullmatch(bare(cause))
        kept = places.get(int(number[1])) if number else None
        if label is None and kept is not None and kept != place:
            label = f"D{kept}"
        if label is None:
            reading.dropped["cause"] += 1
        else:
            causes[label] = None
    return tuple(causes)


def _concept(reading: Reading, entry: Any) -> ConceptDraft:
    record = _object(entry)
    name = reading.needed(record.get("name"), NAME, "name")
    labels = reading.labels(record.get("turns"))
    aliases = dict.fromkeys(reading.texts(record.get("aliases"), NAME))
    aliases.pop(name, None)
    return ConceptDraft(name=name, aliases=tuple(aliases), labels=labels)


def _relation(reading: Reading, entry: Any, names: Mapping[str, str]) -> RelationDraft:
    """A relation between two of the concepts, by whatever names of theirs."""
    record = _object(entry)
    ends = [reading.needed(record.get(end), NAME, "relation") for end in ("from", "to")]
    source, target = (names.get(spelled(end)) for end in ends)
    words = reading.needed(record.get("relation"), SLOT, "relation")
    labels = reading.labels(record.get("turns"))
    if source is None or target is None or source == target:
        raise DroppedError("relation")
    return RelationDraft(
        source=source, relation=words.casefold(), target=target, labels=labels, maker=""
    )

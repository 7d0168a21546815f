"""Message → what the store keeps: checked, sanitised, analysed, segmented and embedded.

Nothing here changes what was said. The content is stored as given (save what no store can hold,
see `text.sanitise`); everything derived from it (terms, concepts, event times, vectors) lies
beside it and can be made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from cofire.encoding.analysis import Analysis, analyse
from cofire.encoding.concepts import MAX_CHARS, Concept, concepts
from cofire.encoding.expressions import event_times
from cofire.encoding.facets import packed_facets
from cofire.encoding.keywords import keywords
from cofire.encoding.marks import DATING
from cofire.encoding.segments import split
from cofire.encoding.signals import signal_bits
from cofire.encoding.statements import statements
from cofire.encoding.terms import pack_terms
from cofire.encoding.text import sanitise, sanitise_value
from cofire.encoding.timestamps import parse_time
from cofire.errors import ConfigurationError, EmbeddingError, EmbeddingMismatchError, InputError
from cofire.ids import new_uuid7
from cofire.models import Embedder
from cofire.store.records import NewItem, NewSegment
from cofire.types import INTERNAL_KINDS, EventTime, Kind, Message, to_micros

MAX_CONTENT = 10_000_000
"""Characters of one text; a longer one is refused, not cut."""
MAX_NAME = 1_000
"""Characters of a title, tag, speaker, role, session or key."""
MAX_METADATA = 1_000_000
"""Characters of one memory's metadata, written as JSON."""
SEGMENT_TOKENS = 200
"""Wordpieces of a text that is still one piece; longer ones become linked segments."""
TOOLS = frozenset({"tool", "function", "tool_result", "tool_response", "ipython"})
"""Roles of what is not trusted unless it says so, as the chat formats have them."""
KEYWORDS = 8
"""Keywords kept per memory."""

Redact = Callable[[str], str]
"""Called on every text before it is stored, embedded or logged; returns what may be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Items ready for the store, and what could not be done fully."""

    items: tuple[NewItem, ...]
    warnings: tuple[str, ...]


class Piece(NamedTuple):
    """A part of a text that is embedded and indexed on its own: characters `start` to `end`."""

    text: str
    start: int
    end: int
    tokens: int


class Encoder:
    """Turns messages into items. Safe to use from several threads."""

    def __init__(self, embedder: Embedder | None, *, redact: Redact | None = None) -> None:
        """Without an `embedder` items are stored without vectors and found by their words."""
        self._embedder = embedder
        self._redact = redact

    def with_embedder(self, embedder: Embedder) -> Encoder:
        """The same encoder for another model."""
        return Encoder(embedder, redact=self._redact)

    @property
    def redacts(self) -> bool:
        """Whether there is a redaction hook."""
        return self._redact is not None

    def clean(self, text: str) -> str:
        """A text as it may be kept: redacted, then sanitised."""
        if self._redact is not None:
            text = self._redact(text)
        return sanitise(text)

    def encode(
        self,
        messages: Sequence[Message],
        *,
        now: datetime,
        counter: Embedder,
        places: Iterable[int] | None = None,
    ) -> Encoded:
        """Items for `messages`, in their order; all are embedded in one call.

        `now` is the time of messages that give none, and when all were recorded. `counter`
        counts wordpieces (the space's embedder, also where vectors are off). `places` are those
        of the messages among all that the caller gave (default: from 0).

        Raises InputError naming the message that cannot be used. An embedder that fails, or whose
        model or key is missing, does not lose the text: the items are marked pending and a warning
        says so. Only another model than the store's is refused (EmbeddingMismatchError).
        """
        numbered = enumerate(messages) if places is None else zip(places, messages, strict=False)
        checked = [self._checked(message, place) for place, message in numbered]
        return self.derive(checked, now=now, counter=counter)

    def derive(self, messages: Sequence[Message], *, now: datetime, counter: Embedder) -> Encoded:
        """As `encode`, for messages that are checked and cleaned already."""
        pieces = [_pieces(message.content, counter) for message in messages]
        vectors, warnings = self._vectors(
            [
                part.text if message.kind is Kind.GIST else statements(part.text)
                for message, parts in zip(messages, pieces, strict=True)
                for part in parts
            ]
        )
        recorded = to_micros(now)
        items = []
        at = 0
        for message, parts in zip(messages, pieces, strict=True):
            items.append(_item(message, parts, vectors[at : at + len(parts)], now, recorded))
            at += len(parts)
        return Encoded(items=tuple(items), warnings=warnings)

    def _vectors(self, texts: list[str]) -> tuple[list[bytes | None], tuple[str, ...]]:
        """float16 vectors of what the texts tell, None where there is none."""
        if self._embedder is None or not texts:
            return [None] * len(texts), ()
        try:
            embedded = self._embedder.embed_passages(texts)
        except EmbeddingMismatchError:
            raise
        except (EmbeddingError, ConfigurationError) as exc:
            return [None] * len(texts), (
                f"{len(texts)} texts were stored without vectors and can be found by their words "
                f"only, because embedding failed ({exc}); `cofire reembed` adds them later",
            )
        stored = embedded.vectors.astype("<f2")
        vectors = [
            row.tobytes() if good else None for row, good in zip(stored, embedded.ok, strict=True)
        ]
        bad = vectors.count(None)
        warning = (
            f"{bad} of {len(texts)} texts got no usable vector (zero, not finite, or no word the "
            "model knows) and can be found by their words only"
        )
        return vectors, (warning,) if bad else ()

    def _checked(self, message: Message, place: int) -> Message:
        try:
            return _validated(self.cleaned(message))
        except InputError as exc:
            raise InputError(f"message {place}: {exc}") from exc

    def cleaned(self, message: Message) -> Message:
        """A message as it may be kept: every text of it but the key and the names of metadata
        redacted, then sanitised. Raises InputError for what is no text."""
        _check_texts(message)
        if self._redact is None and _is_clean(message):
            return message
        name = self._optional
        return Message(  # quicker than `replace`, which looks at every field
            content=self.clean(message.content),
            title=name(message.title),
            kind=message.kind,
            speaker=name(message.speaker),
            role=name(message.role),
            time=message.time,
            session=name(message.session),
            tags=tuple(dict.fromkeys(map(self.clean, message.tags))),
            importance=message.importance,
            pinned=message.pinned,
            metadata=self._metadata(message.metadata),
            expires=message.expires,
            key=None if message.key is None else sanitise(message.key) or None,
            untrusted=message.untrusted,
        )

    def _optional(self, text: str | None) -> str | None:
        return None if text is None else self.clean(text) or None

    def _metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        cleaned = clean_metadata(metadata)
        if self._redact is not None:
            cleaned = {key: _redacted(value, self._redact) for key, value in cleaned.items()}
        return cleaned


def _redacted(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return sanitise(redact(value))
    if isinstance(value, dict):
        return {key: _redacted(part, redact) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(part, redact) for part in value]
    return value


def clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as it is stored and compared: JSON of up to `MAX_METADATA` characters with every
    text sanitised. Raises InputError."""
    if not isinstance(metadata, Mapping):
        raise InputError(f"metadata must be a mapping, not {type(metadata).__name__}")
    if not metadata:
        return {}
    flat = all(type(key) is str and type(value) is str for key, value in metadata.items())
    cleaned: dict[str, Any] = (
        {sanitise(key): sanitise(value) for key, value in metadata.items()}
        if flat
        else sanitise_value(dict(metadata))
    )
    if len(cleaned) != len(metadata):
        raise InputError("two metadata keys are the same without NUL and lone surrogates")
    if flat and sum(len(key) + len(value) + 6 for key, value in cleaned.items()) < _SURELY_SMALL:
        return cleaned  # texts alone can always be written as JSON
    if not _has_text_keys(cleaned):
        raise InputError("metadata keys must be texts")
    try:
        size = len(json.dumps(cleaned, allow_nan=False, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError) as exc:
        raise InputError(f"metadata cannot be written as JSON: {exc}") from exc
    if size > MAX_METADATA:
        raise InputError(
            f"the metadata have {size:,} characters as JSON; {MAX_METADATA:,} is the most. Keep "
            "what is large elsewhere, and its place in the metadata"
        )
    return cleaned


_SURELY_SMALL = MAX_METADATA // 6  # JSON writes a character as six at most


def _has_text_keys(value: Any) -> bool:
    """At every level: JSON would write 1, True and None as texts, which may then be equal."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _has_text_keys(part) for key, part in value.items())
    return not isinstance(value, list | tuple) or all(_has_text_keys(part) for part in value)


def _check_texts(message: Message) -> None:
    """Types first: everything after this may rely on them."""
    if not isinstance(message.content, str):
        raise InputError(f"content must be text, not {type(message.content).__name__}")
    tags = message.tags
    if isinstance(tags, str) or (tags and not all(isinstance(tag, str) for tag in tags)):
        raise InputError("tags must be a list of texts")
    if not isinstance(message.pinned, bool):
        raise InputError(f"pinned must be True or False, not {message.pinned!r}")
    if message.untrusted is not None and not isinstance(message.untrusted, bool):
        raise InputError(f"untrusted must be True or False, not {message.untrusted!r}")
    for place, value in enumerate(_NAMES_OF(message)):
        if value is not None and not isinstance(value, str):
            raise InputError(f"{_NAMES[place]} must be text, not {type(value).__name__}")


def _is_clean(message: Message) -> bool:
    """Whether a message, as most are, can be kept as it is: plain texts and nothing to copy."""
    if message.tags != () or message.metadata or type(message.metadata) is not dict:
        return False
    content = message.content
    if not content.isascii() or "\0" in content:
        return False
    return all(
        value is None or (value and value.isascii() and "\0" not in value)
        for value in _NAMES_OF(message)
    )


_NAMES = ("title", "speaker", "role", "session", "key")
_NAMES_OF = attrgetter(*_NAMES)


def _validated(message: Message) -> Message:
    if not message.content.strip():
        raise InputError("there is nothing to remember: the content is empty")
    if len(message.content) > MAX_CONTENT:
        raise InputError(
            f"the content has {len(message.content):,} characters; {MAX_CONTENT:,} is the most. "
            "Split it, or remember a summary and keep the text elsewhere"
        )
    for place, value in enumerate(_NAMES_OF(message)):
        if value is not None and len(value) > MAX_NAME:
            raise InputError(f"{_NAMES[place]} is longer than {MAX_NAME} characters")
    if message.tags and any(not tag or len(tag) > MAX_NAME for tag in message.tags):
        raise InputError(f"a tag must have 1 to {MAX_NAME} characters")
    if isinstance(message.importance, bool) or message.importance not in _IMPORTANCES:
        raise InputError(
            f"importance must be a whole number from 1 to 10, not {message.importance}"
        )
    kind = _kind(message.kind)
    return message if message.kind is kind else replace(message, kind=kind)


_IMPORTANCES = range(1, 11)


def _kind(kind: Kind | str) -> Kind:
    try:
        known = kind if isinstance(kind, Kind) else Kind(kind)
    except ValueError as exc:
        usable = ", ".join(sorted(set(Kind) - INTERNAL_KINDS))
        raise InputError(f"there is no kind {kind!r}; use one of {usable}") from exc
    if known in INTERNAL_KINDS:
        raise InputError(f"memories of kind {known.value!r} are made by Cofire itself")
    return known


def _pieces(content: str, counter: Embedder) -> list[Piece]:
    """The whole text, or its segments where it is longer than `SEGMENT_TOKENS`."""
    # A wordpiece is at least one character, so a short text need not be counted to be short.
    if len(content) <= SEGMENT_TOKENS:
        return [Piece(content, 0, len(content), counter.count_tokens(content))]
    offsets = counter.token_offsets(content)
    if len(offsets) <= SEGMENT_TOKENS:
        return [Piece(content, 0, len(content), len(offsets))]
    starts = [start for start, _ in offsets]
    return [
        Piece(content[start:end], start, end, _count_between(starts, start, end))
        for start, end in split(content, counter.token_offsets, limit=SEGMENT_TOKENS)
    ]


def _count_between(starts: list[int], start: int, end: int) -> int:
    from bisect import bisect_left

    return bisect_left(starts, end) - bisect_left(starts, start)


def _item(
    message: Message,
    parts: list[Piece],
    vectors: Sequence[bytes | None],
    now: datetime,
    recorded: int,
) -> NewItem:
    """One memory with everything derived from it; `recorded` is `now` in microseconds."""
    when, offset = (now, None) if message.time is None else parse_time(message.time)
    expires = None if message.expires is None else to_micros(parse_time(message.expires)[0])
    content = message.content
    base: dict[str, Any] = {}
    telling: tuple[str, ...] | None = None
    if len(parts) == 1:
        analysis = analyse(content)
        language = analysis.language
        found = concepts(content, language)
        base = indexed(content, message.title, analysis, vectors[0], found)
        if len(content) <= MAX_CHARS:  # of longer ones `keywords` reads only the beginning
            telling = keywords(content, KEYWORDS, analysis=analysis, found=found)
        dated = analysis.marks & DATING or not content.isascii()
    else:
        language = analyse(parts[0].text).language
        base["segments"] = tuple(
            _segment(part, message.title, language, vector)
            for part, vector in zip(parts, vectors, strict=True)
        )
        dated = True
    events = event_times(content, when, offset, language) if dated else ()
    return NewItem(
        uid=new_uuid7().bytes,
        content=content,
        kind=str(message.kind),
        title=message.title,
        speaker=message.speaker,
        role=message.role,
        session=message.session,
        time=to_micros(when),
        offset=offset,
        recorded=recorded,
        expires=expires,
        tags=message.tags,
        importance=message.importance,
        pinned=bool(message.pinned),
        metadata=message.metadata,
        key=message.key,
        language=language,
        keywords=keywords(content, KEYWORDS) if telling is None else telling,
        tokens=sum(part.tokens for part in parts),
        event_times=tuple([_event_row(event) for event in events]),
        facets=packed_facets(message),
        untrusted=is_untrusted(message),
        **base,
    )


def is_untrusted(message: Message) -> bool:
    """Whether a message comes from outside: as it says, or else if its role is a tool's."""
    if message.untrusted is not None:
        return message.untrusted
    return (message.role or "").strip().casefold() in TOOLS


def indexed(
    text: str,
    title: str | None,
    analysis: Analysis,
    vector: bytes | None,
    found: tuple[Concept, ...] | None = None,
) -> dict[str, Any]:
    """What lexical and associative recall need of one piece of text. `found` (its concepts) saves
    looking for them again."""
    if found is None:
        found = concepts(text, analysis.language)
    terms = analysis.terms
    length = analysis.length
    if title:
        heading = analyse(title, analysis.language)
        terms = (*terms, *heading.terms)
        length += heading.length
    return {
        "signals": signal_bits(text, analysis, found),
        "length": length,
        "terms": pack_terms(terms),
        "concepts": pack_terms([concept.key for concept in found]),
        "vector": vector,
        "pending": vector is None,
    }


def _segment(
    part: Piece, title: str | None, language: str | None, vector: bytes | None
) -> NewSegment:
    fields = indexed(part.text, title, analyse(part.text, language), vector)
    return NewSegment(
        uid=new_uuid7().bytes, start=part.start, end=part.end, tokens=part.tokens, **fields
    )


def _event_row(event: EventTime) -> tuple[str, int, int, int, int]:
    return (event.text, to_micros(event.start), to_micros(event.end), *event.span)

"""Every value by which a memory can be filtered."""

from __future__ import annotations

from functools import lru_cache

from cofire.encoding.terms import canonical_json, facet, pack_facets
from cofire.encoding.text import fold
from cofire.types import Message


def facets_of(message: Message) -> list[str]:
    """Every value by which a memory can be filtered, and the words of its speaker's name."""
    found = _common_facets(str(message.kind), message.speaker, message.session)
    tags = [facet("tag", tag) for tag in message.tags]
    meta = [facet("meta", key, canonical_json(value)) for key, value in message.metadata.items()]
    return [*found, *tags, *meta]


def packed_facets(message: Message) -> bytes:
    """`facets_of` as the store keeps them (`terms.pack_facets`)."""
    if message.tags or message.metadata:
        return pack_facets(facets_of(message))
    return _packed_common(str(message.kind), message.speaker, message.session)


@lru_cache(maxsize=1 << 10)
def _common_facets(kind: str, speaker: str | None, session: str | None) -> tuple[str, ...]:
    """The facets that all that one side says in a conversation shares."""
    found = [facet("kind", kind)]
    if speaker:
        found.append(facet("speaker", speaker))
        found += [facet("name", word) for word in fold(speaker).split()]
    if session:
        found.append(facet("session", session))
    return tuple(found)


@lru_cache(maxsize=1 << 10)
def _packed_common(kind: str, speaker: str | None, session: str | None) -> bytes:
    return pack_facets(_common_facets(kind, speaker, session))

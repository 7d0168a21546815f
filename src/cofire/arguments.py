"""What callers write → values: one or several, any form of time, texts or mappings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from cofire.encoding.encoder import clean_metadata
from cofire.encoding.text import sanitise
from cofire.encoding.timestamps import parse_time
from cofire.errors import InputError
from cofire.types import Filters, Kind, Message, TimeLike

MESSAGE_FIELDS = frozenset(field.name for field in fields(Message))
CHAT_FIELDS = frozenset(
    {"annotations", "audio", "function_call", "refusal", "tool_call_id", "tool_calls"}
)
"""Fields of chat messages that say nothing to remember; they are passed over."""


def make_filters(
    *,
    kinds: Sequence[Kind | str] | Kind | str = (),
    speakers: Sequence[str] | str = (),
    sessions: Sequence[str] | str = (),
    tags: Sequence[str] | str = (),
    metadata: Mapping[str, Any] | None = None,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
) -> Filters:
    """Filters from what callers write: one value or several, any form of time."""

    def several(name: str, value: Sequence[str] | str) -> tuple[str, ...]:
        if not isinstance(value, Iterable):
            raise InputError(f"{name} must be texts, not {type(value).__name__}")
        values = (value,) if isinstance(value, str) else tuple(value)
        if not all(isinstance(one, str) for one in values):
            raise InputError(f"{name} must be texts")
        return tuple(sanitise(one) for one in values)

    try:
        wanted = tuple(Kind(kind) for kind in several("kinds", kinds))
    except ValueError as exc:
        raise InputError(f"{exc}; use one of {', '.join(Kind)}") from exc
    return Filters(
        kinds=wanted,
        speakers=several("speakers", speakers),
        sessions=several("sessions", sessions),
        tags=several("tags", tags),
        metadata={} if metadata is None else clean_metadata(metadata),
        since=None if since is None else parse_time(since)[0],
        until=None if until is None else parse_time(until)[0],
    )


def clean_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes to a memory, as `Message` has its fields. Raises InputError."""
    unknown = set(changes) - (MESSAGE_FIELDS - {"key"})
    if unknown:
        raise InputError(f"a memory has no field {', '.join(sorted(unknown))} to change")
    if "time" in changes and changes["time"] is None:
        raise InputError("the time of a memory cannot be cleared; give another")
    cleaned = dict(changes)
    if "tags" in cleaned:
        cleaned["tags"] = () if cleaned["tags"] is None else as_tags(cleaned["tags"])
    if cleaned.get("metadata", ()) is None:
        cleaned["metadata"] = {}
    return cleaned


def as_tags(tags: Sequence[str] | str) -> tuple[str, ...]:
    """One tag or several."""
    if isinstance(tags, str):
        return (tags,)
    if not isinstance(tags, Iterable):
        raise InputError(f"tags must be a list of texts, not {type(tags).__name__}")
    return tuple(tags)


def as_messages(content: Any, given: Mapping[str, Any]) -> tuple[Iterator[Message], int | None]:
    """Messages of what a caller gave, lazily, and how many there are where that is known."""
    if isinstance(content, str | Message | Mapping):
        return iter([as_message(content, given)]), 1
    if not isinstance(content, Iterable):
        raise InputError(f"give a text, a message or many, not {type(content).__name__}")
    total = len(content) if isinstance(content, Sequence) else None
    return (as_message(one, given) for one in content), total


def as_message(one: Any, given: Mapping[str, Any]) -> Message:
    if isinstance(one, str):
        return Message(content=one, **given)
    if isinstance(one, Message):
        unset = {
            name: value for name, value in given.items() if getattr(one, name) == _DEFAULTS[name]
        }
        return replace(one, **unset) if unset else one
    if isinstance(one, Mapping):
        return Message(**{**given, **_own_fields(one)})
    raise InputError(f"a message is a text, a Message or a mapping, not {type(one).__name__}")


def _own_fields(one: Mapping[Any, Any]) -> dict[str, Any]:
    """What a mapping says of `Message`'s fields; a chat message's `name` is the speaker."""
    own = {name: value for name, value in one.items() if value is not None}
    name = own.pop("name", None)
    if name is not None:
        own.setdefault("speaker", name)
    unknown = sorted(str(field) for field in own.keys() - MESSAGE_FIELDS - CHAT_FIELDS)
    if unknown:
        raise InputError(
            f"a message has no field {', '.join(unknown)}; put what else is to be kept in "
            f"`metadata`. Its fields are {', '.join(sorted(MESSAGE_FIELDS))}"
        )
    own = {field: value for field, value in own.items() if field in MESSAGE_FIELDS}
    if "content" not in own:
        raise InputError(f"a message needs content; this one has {', '.join(map(str, one))}")
    if "tags" in own:
        own["tags"] = as_tags(own["tags"])
    return own


_DEFAULTS = {field.name: getattr(Message(content=""), field.name) for field in fields(Message)}


def as_name(what: str, value: str) -> str:
    """A name that says something. Raises InputError."""
    name = sanitise(value) if isinstance(value, str) else ""
    if not name.strip():
        raise InputError(f"{what} must be a text that is not empty")
    return name


def as_moment(now: TimeLike | None) -> datetime:
    """The clock where nothing is given. Raises InputError."""
    return datetime.now(UTC) if now is None else parse_time(now)[0]

"""What callers write → values: one or several, any form of time, texts or mappings."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from numbers import Real
from typing import Any

from cofire.dynamics.plasticity import RULES, Rule
from cofire.encoding.encoder import Redact, clean_metadata
from cofire.encoding.text import sanitise
from cofire.encoding.timestamps import parse_time
from cofire.errors import InputError
from cofire.lifecycle import RESERVED
from cofire.retrieval.profiles import Profile, profile_named
from cofire.types import (
    VISIBLE_KINDS,
    Filters,
    Kind,
    LinkType,
    Message,
    Selectors,
    TimeLike,
)

MESSAGE_FIELDS = frozenset(field.name for field in fields(Message))
CHAT_FIELDS = frozenset(
    {"annotations", "audio", "function_call", "refusal", "tool_call_id", "tool_calls"}
)
"""Fields of chat messages that say nothing to remember; they are passed over, and so is a message
that has no text beside them."""
TEXT_PARTS = frozenset({"text", "input_text", "output_text", None})
"""Types of the parts of a chat message's content that are text."""
NAMED = 5
"""Messages that a warning names at most."""


MAX_QUESTION = 100_000
"""Characters of a question: more than any model reads of it, and it is kept with the recall."""
MAX_PRINCIPAL = 200
"""Characters of the name of who gives feedback."""


def make_filters(
    *,
    kinds: Sequence[Kind | str] | Kind | str = (),
    speakers: Sequence[str] | str = (),
    sessions: Sequence[str] | str = (),
    tags: Sequence[str] | str = (),
    metadata: Mapping[str, Any] | None = None,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
    trusted_only: bool = False,
) -> Filters:
    """Filters from what callers write: one value or several, any form of time."""

    def several(name: str, value: Sequence[str] | str) -> tuple[str, ...]:
        return tuple(sanitise(one) for one in as_names(name, value))

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
        trusted_only=bool(trusted_only),
    )


SELECTORS = frozenset(Selectors.__annotations__)


def as_selectors(given: Mapping[str, Any]) -> Filters:
    """Filters of what is to be deleted. Raises InputError for a condition that is empty or None,
    which would widen the others."""
    unknown = sorted(given.keys() - SELECTORS)
    if unknown:
        raise InputError(
            f"nothing can be forgotten by {', '.join(unknown)}; use {', '.join(sorted(SELECTORS))}"
        )
    wanted = {name: _said(name, value) for name, value in given.items()}
    return make_filters(**{"kinds": VISIBLE_KINDS, **wanted})


def _said(name: str, value: Any) -> Any:
    """Raises InputError where a selector says nothing."""
    said = value
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        said = tuple(value)
    parts = said if isinstance(said, tuple) else (said,)
    empty = not parts or any(
        part is None
        or (isinstance(part, str) and not part.strip())
        or (isinstance(part, Mapping) and not part)
        for part in parts
    )
    if empty:
        raise InputError(
            f"{name} is {value!r}, which says nothing; leave it out, or name what is to be "
            "forgotten"
        )
    return said


def clean_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes to a memory, as `Message` has its fields. Raises InputError."""
    unknown = set(changes) - (MESSAGE_FIELDS - {"key"})
    if unknown:
        raise InputError(f"a memory has no field {', '.join(sorted(unknown))} to change")
    if "time" in changes and changes["time"] is None:
        raise InputError("the time of a memory cannot be cleared; give another")
    if "untrusted" in changes and changes["untrusted"] is None:
        raise InputError("untrusted must be True or False, not None")
    cleaned = dict(changes)
    if "tags" in cleaned:
        cleaned["tags"] = () if cleaned["tags"] is None else as_tags(cleaned["tags"])
    if cleaned.get("metadata", ()) is None:
        cleaned["metadata"] = {}
    if isinstance(cleaned.get("metadata"), Mapping):
        _refuse_reserved(cleaned["metadata"])
    if "importance" in cleaned:
        cleaned["importance"] = _whole(cleaned["importance"], cleaned["importance"])
    return cleaned


def as_names(name: str, value: Sequence[str] | str) -> tuple[str, ...]:
    """One text or several. Raises InputError."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{name} must be texts, not {type(value).__name__}")
    values = tuple(value)
    if not all(isinstance(one, str) for one in values):
        raise InputError(f"{name} must be texts")
    return values


def as_tags(tags: Sequence[str] | str) -> tuple[str, ...]:
    """One tag or several. Raises InputError."""
    if isinstance(tags, Mapping) or not isinstance(tags, Iterable):
        raise InputError(f"tags must be a list of texts, not {type(tags).__name__}")
    return (tags,) if isinstance(tags, str) else tuple(tags)


class Messages:
    """What a caller gave, read lazily as messages: each with its place among all.

    Chat messages that have no text but calls of tools and the like are passed over; `warnings`
    says which, once they are read. `total` is how many messages there are where that is known,
    `read` how many have been read.
    """

    def __init__(self, content: Any, given: Mapping[str, Any]) -> None:
        """`given` are fields for messages that do not set their own. Raises InputError."""
        self._alone = isinstance(content, str | Message | Mapping)
        if not self._alone and (isinstance(content, bytes) or not isinstance(content, Iterable)):
            raise InputError(f"give a text, a message or many, not {type(content).__name__}")
        self._content: Iterable[Any] = (content,) if self._alone else content
        self._given = given
        self._without_text: list[str] = []
        self._left_out: list[str] = []
        self.total = len(self._content) if isinstance(self._content, Sequence) else None
        self.read = 0

    def __iter__(self) -> Iterator[tuple[int, Message]]:
        for place, one in enumerate(self._content):
            self.read += 1
            try:
                message = self._message(place, one)
            except InputError as exc:
                if self._alone:
                    raise
                raise InputError(f"message {place}: {exc}") from exc
            if message is not None:
                yield place, message

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was given and is not remembered, of the messages read so far."""
        told = []
        if self._without_text:
            told.append(
                f"no text in {len(self._without_text):,} of {self.read:,} messages, passed over: "
                f"{_listed(self._without_text)}"
            )
        if self._left_out:
            told.append(
                f"only the text is remembered of {len(self._left_out):,} of {self.read:,} "
                f"messages: {_listed(self._left_out)}"
            )
        return tuple(told)

    def _message(self, place: int, one: Any) -> Message | None:
        """None for one that is passed over. Raises InputError."""
        if not isinstance(one, Mapping):
            return as_message(one, self._given)
        text, others = _text_of(one.get("content"))
        if not (isinstance(text, str) and text.strip()):
            said = sorted(field for field in CHAT_FIELDS if one.get(field) is not None)
            if said or (others and all(other.startswith("tool_") for other in others)):
                self._without_text.append(f"{place} ({', '.join(said or others)})")
                return None
            if others or (text is None and "content" in one):
                reason = f"parts of type {', '.join(others)} only" if others else "None"
                raise InputError(f"there is nothing to remember: the content is {reason}")
        elif others:
            self._left_out.append(f"{place} (not {', '.join(others)})")
        given = one if text is one.get("content") else {**one, "content": text}
        return as_message(given, self._given)


def _text_of(content: Any) -> tuple[Any, tuple[str, ...]]:
    """The text of a chat message's content, whose parts are put one below the other, and the
    types of its parts that are none. What is no list of parts is left as it is."""
    if not isinstance(content, list | tuple) or not content:
        return content, ()
    texts, others = [], []
    for part in content:
        fields_ = part if isinstance(part, Mapping) else {"text": part}
        kind, text = fields_.get("type"), fields_.get("text")
        if isinstance(text, str) and (kind is None or kind in TEXT_PARTS):
            texts.append(text)
        else:
            others.append(str(kind or type(part).__name__))
    return ("\n".join(texts) if texts else None), tuple(dict.fromkeys(others))


def _listed(named: Sequence[str]) -> str:
    more = f" and {len(named) - NAMED:,} more" if len(named) > NAMED else ""
    return ", ".join(named[:NAMED]) + more


def as_message(one: Any, given: Mapping[str, Any]) -> Message:
    """A message of a text, a `Message` or a mapping. Raises InputError."""
    if isinstance(one, str):
        message = Message(content=one, **given)
    elif isinstance(one, Message):
        unset = {
            name: value for name, value in given.items() if getattr(one, name) == _DEFAULTS[name]
        }
        message = replace(one, **unset) if unset else one
    elif isinstance(one, Mapping):
        message = Message(**{**given, **_own_fields(one)})
    else:
        raise InputError(f"a message is a text, a Message or a mapping, not {type(one).__name__}")
    _refuse_reserved(message.metadata)
    importance = message.importance
    if type(importance) is int:
        return message
    return replace(message, importance=_whole(importance, importance))


def _refuse_reserved(metadata: Any) -> None:
    names = [str(name) for name in metadata or () if str(name).startswith(RESERVED)]
    if names:
        raise InputError(
            f"metadata named {', '.join(sorted(names)[:3])} are Cofire's own: they hold the state "
            "of goals and threads (`advance`, `conclude`)"
        )


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


def _whole(value: Any, otherwise: Any = None) -> Any:
    """A whole number of any library as an int; anything else is `otherwise`."""
    if isinstance(value, bool):
        return otherwise
    try:
        return operator.index(value)
    except TypeError:
        return otherwise


def as_past(moment: TimeLike | None) -> datetime | None:
    """A moment to look back to, or none. Raises InputError."""
    return None if moment is None else parse_time(moment)[0]


def as_count(name: str, value: int, most: int | None = None, *, least: int = 1) -> int:
    """A whole number of at least `least` (and at most `most`). Raises InputError."""
    count: int | None = _whole(value)
    if count is not None and count >= least and (most is None or count <= most):
        return count
    bounds = f"of at least {least}" if most is None else f"from {least} to {most:,}"
    raise InputError(f"{name} must be a whole number {bounds}, not {value!r}")


def as_cost(value: float) -> float:
    """A finite amount of at least 0. Raises InputError."""
    try:
        cost = float(value)
    except (TypeError, ValueError):
        cost = math.nan
    if isinstance(value, bool) or not (math.isfinite(cost) and cost >= 0.0):
        raise InputError(f"most_cost must be a number of at least 0, not {value!r}")
    return cost


def as_profile(profile: str | Profile) -> Profile:
    """A profile, or the one of that name. Raises InputError."""
    if isinstance(profile, Profile):
        return profile
    if not isinstance(profile, str):
        raise InputError(
            f"profile must be a Profile or the name of one, not {type(profile).__name__}"
        )
    return profile_named(profile)


def as_rule(rule: str | Rule) -> Rule:
    """A learning rule, or the one of that name. Raises InputError."""
    if isinstance(rule, Rule):
        return rule
    known = RULES.get(rule) if isinstance(rule, str) else None
    if known is None:
        raise InputError(f"{rule!r} is no learning rule; there are {', '.join(RULES)}, or a Rule")
    return known


def as_hook(redact: Redact | None) -> Redact | None:
    """The redaction hook, held to giving texts. Raises InputError for what cannot be called."""
    if redact is None:
        return None
    if not callable(redact):
        raise InputError(
            f"redact must be a function from a text to what may be kept of it, not "
            f"{type(redact).__name__}"
        )

    def checked(text: str) -> str:
        kept = redact(text)
        if not isinstance(kept, str):
            name = getattr(redact, "__qualname__", type(redact).__name__)
            raise InputError(
                f"the redact hook {name} gave {type(kept).__name__} for a text of {len(text):,} "
                "characters; it must return the text that may be kept"
            )
        return kept

    return checked


def as_link_type(value: LinkType | str) -> LinkType:
    """Raises InputError."""
    try:
        return LinkType(value)
    except ValueError as exc:
        raise InputError(
            f"there is no link type {value!r}; use one of {', '.join(LinkType)}"
        ) from exc


def as_strength(value: float) -> float:
    """A number; whether it lies in [0, 1] is for the store to say. Raises InputError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"a link's strength is a number in [0, 1], not {value!r}")
    return float(value)


def as_temperature(value: float) -> float:
    """A number in [0, 2]. Raises InputError."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) <= 2.0:
        raise InputError(f"a temperature is a number in [0, 2], not {value!r}")
    return float(value)


def as_kinds(kinds: Sequence[Kind | str] | Kind | str) -> tuple[Kind, ...]:
    """One kind or several. Raises InputError."""
    return make_filters(kinds=kinds).kinds


def as_ids(ids: str | Sequence[str] | None) -> list[str]:
    """One id or several. Raises InputError where there is none."""
    if isinstance(ids, Mapping) or not isinstance(ids, Iterable | None):
        raise InputError(f"ids must be texts, not {type(ids).__name__}")
    wanted = [ids] if isinstance(ids, str) else list(ids or ())
    if not wanted:
        raise InputError("name the memories: one id or several")
    return wanted


def as_credits(used: Sequence[str] | str, rejected: Sequence[str] | str) -> dict[str, float]:
    """What each id earns: 1 for a use, -1 for a rejection. Raises InputError where nothing is
    named, or one id as both."""
    uses, rejections = as_names("used", used), as_names("rejected", rejected)
    both = set(uses) & set(rejections)
    if both:
        raise InputError(f"{sorted(both)[0]} cannot be both used and rejected")
    if not uses and not rejections:
        raise InputError("name what was used or rejected: ids that the recall returned")
    return dict.fromkeys(uses, 1.0) | dict.fromkeys(rejections, -1.0)


def as_outcome(outcome: float) -> float:
    """A number in [-1, 1]. Raises InputError."""
    if isinstance(outcome, bool) or not isinstance(outcome, Real):
        raise InputError(f"an outcome is a number in [-1, 1], not {outcome!r}")
    value = float(outcome)
    if not -1.0 <= value <= 1.0:
        raise InputError(f"an outcome is a number in [-1, 1], not {outcome!r}")
    return value


def as_principal(by: str | None) -> str | None:
    """Who gives feedback, if it is said. Raises InputError."""
    if by is None:
        return None
    name = as_name("by", by)
    if len(name) > MAX_PRINCIPAL:
        raise InputError(f"the name of a principal has at most {MAX_PRINCIPAL} characters")
    return name


def as_question(what: str, text: object) -> str:
    """Raises InputError."""
    if not isinstance(text, str):
        raise InputError(f"{what} must be text, not {type(text).__name__}")
    if len(text) > MAX_QUESTION:
        raise InputError(
            f"{what} has at most {MAX_QUESTION:,} characters, and this has {len(text):,}; ask with "
            "the part of it that matters"
        )
    return text

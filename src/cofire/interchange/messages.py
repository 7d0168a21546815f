"""JSONL of messages: one JSON object a line, from any program.

Fields, with the names other programs use for them:

    content   (text, message, body; OpenAI's list of parts is read as its texts)
    role, speaker (name, author, sender), title, kind, tags, importance, pinned, expires, metadata
    untrusted (true or false; else what has the role "tool" is)
    time      (timestamp, created_at, at, date, datetime, ts, create_time)
    session   (session_id, conversation_id, thread_id, conversation, thread)
    key       the caller's own key, kept as it is
    id        (message_id, uuid) made a key together with a hash of the message, because ids such
              as 1, 2, 3 repeat from file to file and edited messages keep theirs

Any other field goes into the metadata.

A message without a key gets one, so that importing again adds nothing. With a time, it is a hash
of the message alone (the same words from the same speaker at the same instant are the same
message), so a later, longer or reordered export adds only what is new. Without a time it also
holds the line number, because somebody may well say "ok" twice; such files can grow at the end.
Neither depends on the name of the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from cofire.encoding.timestamps import parse_time
from cofire.errors import InputError
from cofire.interchange.files import BOM, Constants, check_utf8, existing, not_utf8
from cofire.interchange.report import Action, Places, Problem
from cofire.types import INTERNAL_KINDS, Kind, Message

MAX_LINE = 64 * 1024 * 1024
"""Bytes of one line; a longer one is dropped without being held in memory."""

_CONTENT = ("content", "text", "message", "body")
_SPEAKER = ("speaker", "name", "author", "sender")
_TIME = ("time", "timestamp", "created_at", "at", "date", "datetime", "ts", "create_time")
_SESSION = ("session", "session_id", "conversation_id", "thread_id", "conversation", "thread")
_ID = ("id", "message_id", "uuid")
_KINDS = {kind.value for kind in Kind} - {kind.value for kind in INTERNAL_KINDS}
_WHITE = " \t\r\n"


def read(path: str | Path, places: Places | None = None) -> Iterator[Message | Problem]:
    """The messages of a file, in bounded memory; `places` is told the line of each.

    Raises NotFoundError, or FormatError with the byte offset if the file is not UTF-8 (before
    the first message, so that nothing is imported of it).
    """
    source = existing(path)
    check_utf8(source)
    with source.open("rb") as file:
        yield from read_stream(file, source.name, places)


def read_stream(
    stream: IO[bytes], name: str, places: Places | None = None
) -> Iterator[Message | Problem]:
    """The same of something that can be read only once, such as standard input; it is found not
    to be UTF-8 only when the reader comes to that line."""
    offset = 0
    constants = Constants()
    for number, raw in enumerate(_lines(stream), start=1):
        where = f"{name}, line {number}"
        if places is not None:
            places.now = where
        if raw is None:
            yield Problem(where=where, reason=f"it is longer than {MAX_LINE:,} bytes")
            continue
        line = raw.removeprefix(BOM) if number == 1 else raw
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as exc:
            if raw.endswith(b"\n") or exc.reason != "unexpected end of data":
                at = offset + len(raw) - len(line) + exc.start
                raise not_utf8(name, at, exc) from exc
            text = line.decode("utf-8", "replace")
        yield from _line(text, where, number, constants)
        offset += len(raw)


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Lines ended by LF only (U+2028 is text); None for one that is too long."""
    while line := stream.readline(MAX_LINE):
        if len(line) < MAX_LINE or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE)
        yield None


def _line(text: str, where: str, number: int, constants: Constants) -> Iterator[Message | Problem]:
    """What a line holds: nothing, a message, or several that were glued together."""
    at = _skip(text, 0)
    if at == len(text):
        return
    count = 0
    while at < len(text):
        try:
            value, end = constants.decode(text, at)
        except (ValueError, RecursionError) as exc:
            yield Problem(where=where, reason=f"it is no JSON: {_short(exc)}")
            break
        count += 1
        if constants.seen:
            reason = "NaN, Infinity or a number too large is read as null"
            yield Problem(where=where, reason=reason, action=Action.REPAIRED)
        yield from _record(value, where, f"{number}.{count}")
        at = _skip(text, end)
    if count > 1:
        reason = f"{count} objects on one line, each taken as a message"
        yield Problem(where=where, reason=reason, action=Action.REPAIRED)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITE:
        at += 1
    return at


def _short(exc: Exception) -> str:
    return str(exc).split(":", maxsplit=1)[0] if isinstance(exc, ValueError) else "nested too deep"


def _record(value: Any, where: str, position: str) -> Iterator[Message | Problem]:
    if not isinstance(value, dict):
        yield Problem(where=where, reason=f"it is no object but {type(value).__name__}")
        return
    fields = dict(value)
    content = _text(_take(fields, _CONTENT))
    if content is None:
        yield Problem(where=where, reason=f"it has no text in {', '.join(_CONTENT)}")
        return
    if not content.strip():
        yield Problem(where=where, reason="its text is empty", action=Action.SKIPPED)
        return
    reasons: list[str] = []
    message = _message(fields, content, position, reasons)
    for reason in reasons:
        yield Problem(where=where, reason=reason, action=Action.REPAIRED)
    yield message


def _message(fields: dict[str, Any], content: str, position: str, reasons: list[str]) -> Message:
    """A message of the fields, which are used up; why any could not be used is added."""
    role = _name(_take(fields, ("role",)))
    author = fields.get("author")
    if isinstance(author, dict):
        role = role or _name(author.get("role"))
        fields["author"] = author.get("name")
    speaker = _name(_take(fields, _SPEAKER))
    session = _name(_take(fields, _SESSION))
    time = _time(_take(fields, _TIME), "time", reasons)
    own_key = _name(_take(fields, ("key",)))
    given_id = _name(_take(fields, _ID))
    identity = given_id or (position if time is None else "")
    key = own_key or _key(identity, content, role, speaker, session, time)
    title, tags = _name(_take(fields, ("title",))), _tags(_take(fields, ("tags",)), reasons)
    kind = _kind(_take(fields, ("kind",)), reasons)
    importance = _importance(_take(fields, ("importance",)), reasons)
    pinned = _take(fields, ("pinned",)) is True
    untrusted = _untrusted(_take(fields, ("untrusted",)), reasons)
    expires = _time(_take(fields, ("expires",)), "expires", reasons)
    return Message(
        content=content,
        title=title,
        kind=kind,
        speaker=speaker,
        role=role,
        time=time,
        session=session,
        tags=tags,
        importance=importance,
        pinned=pinned,
        metadata=_metadata(fields, given_id),
        expires=expires,
        key=key,
        untrusted=untrusted,
    )


def _key(identity: str, *parts: object) -> str:
    """The same on every machine; every field but the content has a mark of its own if absent."""
    told = json.dumps([identity, *parts], ensure_ascii=True, separators=(",", ":"))
    return f"jsonl:{hashlib.sha256(told.encode('ascii')).hexdigest()[:32]}"


def _metadata(fields: Mapping[str, Any], given_id: str | None) -> dict[str, Any]:
    """The message's own metadata, its id, and the fields that have no place of their own."""
    own = fields.get("metadata")
    others = {name: value for name, value in fields.items() if name != "metadata"}
    if own is not None and not isinstance(own, dict):
        own = {"metadata": own}
    identity = {"id": given_id} if given_id is not None else {}
    return {**identity, **others, **(own or {})}


def _take(fields: dict[str, Any], names: Iterable[str]) -> Any:
    """The first of the fields that has a value, removed; the others stay."""
    for name in names:
        if name in fields:
            value = fields.pop(name)
            if value is not None:
                return value
    return None


def _text(value: Any) -> str | None:
    """A text, or the texts of a list of parts such as {"type": "text", "text": …}."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    parts = [part.get("text") if isinstance(part, dict) else part for part in value]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if texts else None


def _name(value: Any) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _time(value: Any, field: str, reasons: list[str]) -> str | int | float | None:
    """The time as written (so that its offset is kept), if it is one."""
    if value is None:
        return None
    try:
        parse_time(value)
    except InputError as exc:
        reasons.append(f"imported without its {field}: {exc}")
        return None
    return value if isinstance(value, str | int | float) else None


def _tags(value: Any, reasons: list[str]) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    tags = tuple(tag for tag in listed if isinstance(tag, str) and tag)
    if value is not None and len(tags) != len(listed or [value]):
        reasons.append("tags that are no text were left out")
    return tags


def _kind(value: Any, reasons: list[str]) -> Kind:
    if value is None:
        return Kind.EPISODE
    if isinstance(value, str) and value in _KINDS:
        return Kind(value)
    reasons.append(f"kind {str(value)[:40]!r} is none of {', '.join(sorted(_KINDS))}: episode")
    return Kind.EPISODE


def _untrusted(value: Any, reasons: list[str]) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    reasons.append("untrusted is neither true nor false: true")
    return True


def _importance(value: Any, reasons: list[str]) -> int:
    if value is None:
        return 5
    if type(value) is int and 1 <= value <= 10:
        return value
    reasons.append("importance is no whole number from 1 to 10: 5")
    return 5

"""Plain text and Markdown: one message per document, whose text is kept as it is.

A document's key is its path relative to the chosen folder, in one spelling whatever the
separator, Unicode form or case, so that a file system's habits make no second copy. Its metadata
hold `path` (as found, with "/") and `digest` (of the text), by which a moved file can be known.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from cofire.encoding.timestamps import parse_time
from cofire.errors import FormatError, InputError
from cofire.interchange.files import decoded, existing, files_under
from cofire.interchange.report import Action, Problem
from cofire.types import Message, TimeLike

MARKDOWN = frozenset({".md", ".markdown"})
SUFFIXES = MARKDOWN | {".txt", ".text"}
MAX_BYTES = 32 * 1024 * 1024
"""Larger files are dropped: nobody reads a text of that size as one memory."""

_FENCE = "---"
_FIELD = re.compile(r"(?P<name>[A-Za-z][\w -]*?)\s*:(?:\s+(?P<value>.*?))?\s*")
_HEADING = re.compile(r" {0,3}#\s+(?P<title>.*?)(?:\s+#+)?\s*")
_DATES = ("created", "date")


def read(path: str | Path) -> Iterator[Message | Problem]:
    """The documents of a folder (hidden ones left out), or the one document of a file.

    In a folder an unusable file is reported and the others are read. Raises NotFoundError, and
    FormatError if a single file is not UTF-8.
    """
    source = existing(path)
    if not source.is_dir():
        yield from _file(source, source.name)
        return
    base = source.resolve()
    for found in files_under(base, SUFFIXES):
        if isinstance(found, Problem):
            yield found
            continue
        where = found.relative_to(base).as_posix()
        try:
            yield from _file(found, where)
        except FormatError as exc:
            yield Problem(where=where, reason=str(exc))
        except OSError as exc:
            yield Problem(where=where, reason=f"it cannot be read: {exc.strerror}")


def read_stream(stream: IO[bytes], name: str) -> Iterator[Message | Problem]:
    """The text of something without a path, such as standard input; its key is its content."""
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        yield Problem(where=name, reason=f"it is larger than {MAX_BYTES:,} bytes")
        return
    text = decoded(data, name)
    if not text.strip():
        yield Problem(where=name, reason="it is empty", action=Action.SKIPPED)
        return
    yield Message(content=text, key=f"text:{_digest(text)}")


def document_key(path: str) -> str:
    """The key of a document by its path relative to the chosen folder."""
    return "document:" + unicodedata.normalize("NFC", path.replace("\\", "/")).casefold()


def _file(path: Path, where: str) -> Iterator[Message | Problem]:
    if path.stat().st_size > MAX_BYTES:
        yield Problem(where=where, reason=f"it is larger than {MAX_BYTES:,} bytes")
        return
    text = decoded(path.read_bytes(), str(path))
    fields, body = _front_matter(text) if path.suffix.lower() in MARKDOWN else ({}, text)
    if not body.strip():
        yield Problem(where=where, reason="it is empty", action=Action.SKIPPED)
        return
    title = fields.get("title")
    if title is None and path.suffix.lower() in MARKDOWN:
        title = _heading(body)
    time: TimeLike | None = None
    for name in _DATES:
        if time is None and name in fields:
            time, reason = _time(name, fields[name])
            if reason:
                yield Problem(where=where, reason=reason, action=Action.REPAIRED)
    yield Message(
        content=body,
        title=title or path.stem,
        time=time,
        tags=_tags(fields.get("tags", "")),
        metadata={"path": where, "digest": _digest(body)},
        key=document_key(where),
    )


def _time(name: str, value: str) -> tuple[TimeLike | None, str]:
    try:
        parse_time(value)
    except InputError as exc:
        return None, f"{name!r} in its front matter is ignored: {exc}"
    return value, ""


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """Simple `name: value` fields between two lines of "---", and the text behind them.

    Values may be quoted or a list, in brackets or on following "- " lines (joined by commas).
    Without the second fence, or with a line in between that is neither, there is no front
    matter: the text is all body, so that nothing of it can be lost.
    """
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != _FENCE:
        return {}, text
    end = next((n for n, line in enumerate(lines[1:], start=1) if line.rstrip() == _FENCE), None)
    if end is None:
        return {}, text
    fields: dict[str, str] = {}
    name = ""
    for line in lines[1:end]:
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if bare.startswith("- ") and name:
            fields[name] = ", ".join(filter(None, [fields[name], _unquoted(bare[2:])]))
        elif line[0].isspace():
            continue
        elif (match := _FIELD.fullmatch(bare)) is not None:
            name = match["name"].lower()
            fields[name] = _unquoted(match["value"] or "")
        else:
            return {}, text
    return {name: value for name, value in fields.items() if value}, "".join(lines[end + 1 :])


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    # A quote that is never closed breaks YAML, but not this reader.
    return value.removeprefix('"')


def _tags(value: str) -> tuple[str, ...]:
    listed = value.removeprefix("[").removesuffix("]").split(",")
    tags = (_unquoted(tag).removeprefix("#") for tag in listed)
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def _heading(body: str) -> str | None:
    """The first heading of level 1, unless code comes before it."""
    for line in body.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            return None
        match = _HEADING.fullmatch(line)
        if match is not None and match["title"]:
            return str(match["title"])
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

"""Plain text and Markdown: one message per document, whose text is kept as it is.

A document's key is its path relative to the chosen folder, in one spelling whatever the
separator, Unicode form or case, so that a file system's habits make no second copy. Its metadata
say where it was found and what it said: `path` (relative, with "/"), `file` (absolute) and
`digest` (of its text, title, tags and date), by which an edited or moved file can be known.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from cofire.encoding.text import sanitise
from cofire.encoding.timestamps import parse_time
from cofire.errors import FormatError, InputError, NotFoundError
from cofire.interchange.files import decoded, existing, files_under, inside
from cofire.interchange.report import Action, Problem
from cofire.types import Message, TimeLike

MARKDOWN = frozenset({".md", ".markdown"})
SUFFIXES = MARKDOWN | {".txt", ".text"}
MAX_BYTES = 32 * 1024 * 1024
"""Larger files are dropped: nobody reads a text of that size as one memory."""
MAX_KEY = 800
"""Characters of a path in a key; of a longer one the end is a hash."""
MAX_TITLE = 1_000

_FENCE = "---"
_FIELD = re.compile(r"(?P<name>[A-Za-z][\w -]*?)\s*:(?:\s+(?P<value>.*?))?\s*")
_HEADING = re.compile(r" {0,3}#\s+(?P<title>.*?)(?:\s+#+)?\s*")
_DATES = ("created", "date")


def chosen_folder(path: str | Path, root: str | Path | None = None) -> Path:
    """The folder, resolved, within which the documents of `path` have their identity: `root`, or
    the folder itself, or that of the one file.

    Raises NotFoundError, and InputError where `path` (links followed) lies outside `root`.
    """
    if root is None:
        source = existing(path)
        return source.resolve() if source.is_dir() else source.parent.resolve()
    folder = existing(root)
    if not folder.is_dir():
        raise InputError(f"the root {str(root)!r} is a file; name a folder")
    try:
        source = existing(path)
    except NotFoundError:  # what is outside is not even told to be missing
        inside(folder, Path(str(path).replace("\\", "/")).absolute())
        raise
    inside(folder, source.absolute())
    return folder.resolve()


def read(path: str | Path, root: str | Path | None = None) -> Iterator[Message | Problem]:
    """The documents of a folder (hidden ones left out), or the one document of a file.

    In a folder an unusable file is reported and the others are read. Raises NotFoundError,
    InputError for a path outside `root`, and FormatError if a single file is not UTF-8.
    """
    base = chosen_folder(path, root)
    source = existing(path)
    if not source.is_dir():
        named = source.parent.resolve() / source.name  # a link keeps its own name
        yield from _file(named if named.is_relative_to(base) else source.resolve(), base)
        return
    for found in files_under(source, SUFFIXES):
        if isinstance(found, Problem):
            yield found
            continue
        where = found.relative_to(base).as_posix()
        if found.exists() and not found.is_file():
            yield Problem(where=where, reason="it is no regular file")
            continue
        try:
            yield from _file(found, base)
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


def document_key(path: str, own: str = "") -> str:
    """The key of a document by its path relative to the chosen folder.

    `own` (its absolute path) makes it the key of that very file, for when the plain key is that
    of another one: in another folder, or beside it with a name that differs in case only.
    """
    spelled = unicodedata.normalize("NFC", sanitise(path).replace("\\", "/")).casefold()
    if len(spelled) > MAX_KEY:
        spelled = f"{spelled[:MAX_KEY]}#{_digest(spelled)}"
    return f"document:{spelled}" + (f"#{_digest(own)}" if own else "")


def same_path(one: str, other: str) -> bool:
    """Whether two paths are written alike, in whatever Unicode form and with either separator."""
    spelled = [unicodedata.normalize("NFC", path.replace("\\", "/")) for path in (one, other)]
    return spelled[0] == spelled[1]


def digest_of(content: str, *others: object) -> str:
    """A hash of what a document says of itself, not of where it lies: its text, and `others`."""
    return _digest(json.dumps([content, *others], ensure_ascii=True, separators=(",", ":")))


def _file(path: Path, base: Path) -> Iterator[Message | Problem]:
    where = path.relative_to(base).as_posix()
    if path.stat().st_size > MAX_BYTES:
        yield Problem(where=where, reason=f"it is larger than {MAX_BYTES:,} bytes")
        return
    text = decoded(path.read_bytes(), str(path))
    fields, body = _front_matter(text) if path.suffix.lower() in MARKDOWN else ({}, text)
    if not body.strip():
        yield Problem(where=where, reason="it is empty", action=Action.SKIPPED)
        return
    time: TimeLike | None = None
    for name in _DATES:
        if time is None and name in fields:
            time, reason = _time(name, fields[name])
            if reason:
                yield Problem(where=where, reason=reason, action=Action.REPAIRED)
    told = fields.get("title", "")[:MAX_TITLE]
    heading = _heading(body)[:MAX_TITLE] if path.suffix.lower() in MARKDOWN else ""
    tags = _tags(fields.get("tags", ""))
    yield Message(
        content=body,
        title=told or heading or path.stem,
        time=time,
        tags=tags,
        metadata={
            "path": where,
            "file": path.as_posix(),
            "digest": digest_of(body, told, tags, time),
        },
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


def _heading(body: str) -> str:
    """The first heading of level 1, unless code comes before it; "" without one."""
    for line in body.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            return ""
        match = _HEADING.fullmatch(line)
        if match is not None and match["title"]:
            return str(match["title"])
    return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

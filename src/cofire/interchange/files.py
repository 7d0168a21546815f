"""Reading files that may be anything: encodings, paths that lead outside, huge JSON arrays."""

from __future__ import annotations

import codecs
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cofire.errors import FormatError, InputError, NotFoundError
from cofire.interchange.report import Problem

BOM = codecs.BOM_UTF8
_CHUNK = 1 << 20
_WHITE = " \t\r\n"


def existing(path: str | Path) -> Path:
    """The path, if something is there; a Windows-style path of that place is understood.

    Raises NotFoundError.
    """
    found = Path(path)
    if not found.exists() and "\\" in str(path):
        found = Path(str(path).replace("\\", "/"))
    if not found.exists():
        raise NotFoundError(f"There is no file or folder {str(path)!r}")
    return found


def inside(root: Path, path: str | Path) -> Path:
    """`path` (relative to `root`, or absolute), resolved; it must lie in `root`, links followed.

    Raises InputError if it does not.
    """
    base = root.resolve()
    resolved = (base / path).resolve()
    if not resolved.is_relative_to(base):
        raise InputError(f"{str(path)!r} leads outside the chosen folder {base}")
    return resolved


def files_under(root: Path, suffixes: frozenset[str]) -> Iterator[Path | Problem]:
    """Files below a folder with one of the suffixes (lower case), in a stable order.

    Hidden files and folders (.git, .obsidian, .trash) are left out. A link that leads outside
    the folder is reported and not followed; nor is a link to a folder within it.
    """
    base = root.resolve()
    for folder, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if Path(folder, name).is_symlink()]
        wanted = [
            name
            for name in names
            if not name.startswith(".") and Path(name).suffix.lower() in suffixes
        ]
        for name in sorted(links) + sorted(wanted):
            path = Path(folder, name)
            if name in links and path.resolve().is_relative_to(base):
                continue  # its files are met where they are
            if path.resolve().is_relative_to(base):
                yield path
            else:
                where = path.relative_to(base).as_posix()
                yield Problem(where=where, reason="it is a link that leads outside the folder")


def check_utf8(path: Path) -> None:
    """Read the file once and refuse it unless it is UTF-8; a character cut at the very end of
    the file is left to the reader of its last line.

    Raises FormatError with the byte offset.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as exc:
                raise not_utf8(str(path), offset - pending + exc.start, exc) from exc
            offset += len(chunk)


def not_utf8(name: str, offset: int, exc: UnicodeDecodeError) -> FormatError:
    """The error for a file in another encoding; `offset` counts bytes from the file's start."""
    bad = exc.object[exc.start]
    hint = "; it looks like UTF-16" if bad in {0xFE, 0xFF} and offset == 0 else ""
    return FormatError(
        f"{name} is not UTF-8: byte {bad:#04x} at offset {offset}{hint}. "
        "Convert it first, for example with `iconv -f LATIN1 -t UTF-8`"
    )


def decoded(data: bytes, name: str) -> str:
    """UTF-8 bytes, with or without a byte order mark, as text. Raises FormatError."""
    try:
        return data.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as exc:
        skipped = len(BOM) if data.startswith(BOM) else 0
        raise not_utf8(name, skipped + exc.start, exc) from exc


class Constants:
    """Reads JSON objects while turning NaN and Infinity, which JSON has not, into null, and so a
    number that is too large to be any other.

    `seen` says whether the last `decode` met one.
    """

    def __init__(self) -> None:
        self.seen = False
        self._decoder = json.JSONDecoder(parse_constant=self._null, parse_float=self._number)

    def decode(self, text: str, start: int) -> tuple[Any, int]:
        """The value at `start` and where it ends. Raises ValueError or RecursionError."""
        self.seen = False
        return self._decoder.raw_decode(text, start)

    def _null(self, constant: str) -> None:
        self.seen = True

    def _number(self, text: str) -> float | None:
        value = float(text)
        if math.isfinite(value):
            return value
        self.seen = True
        return None


def json_entries(path: Path) -> Iterator[Any]:
    """The entries of a file that is one JSON array (or one object: itself), one at a time.

    Memory holds one entry, not the file. Raises FormatError where the file is not JSON.
    """
    check_utf8(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from _Entries(file, path.name).all()


class _Entries:
    """A window over a text file that grows until the next entry fits in it."""

    def __init__(self, file: IO[str], name: str) -> None:
        self._file = file
        self._name = name
        self._text = ""
        self._at = 0
        self._before = 0
        self._ended = False
        self._constants = Constants()

    def all(self) -> Iterator[Any]:
        first = self._peek()
        if first != "[":
            yield self._value()
            self._nothing_more()
            return
        self._at += 1
        if self._peek() == "]":
            self._at += 1
            self._nothing_more()
            return
        while True:
            yield self._value()
            mark = self._peek()
            self._at += 1
            if mark == "]":
                self._nothing_more()
                return
            if mark != ",":
                raise self._broken("expected ',' or ']'", self._at - 1)

    def _peek(self) -> str:
        """The next character that is not white space; "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _WHITE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._grow()

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._constants.decode(self._text, self._at)
            except json.JSONDecodeError as exc:
                if self._ended:
                    raise self._broken(exc.msg, exc.pos) from exc
            except (ValueError, RecursionError) as exc:
                raise self._broken(str(exc), self._at) from exc
            else:
                # A number or word that touches the end of the window may go on behind it.
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            self._grow()

    def _grow(self) -> None:
        kept = self._text[self._at :]
        more = self._file.read(max(_CHUNK, len(kept)))
        self._ended = not more
        self._before += self._at
        self._text = kept + more
        self._at = 0

    def _nothing_more(self) -> None:
        if self._peek():
            raise self._broken("something follows the end of the JSON", self._at)

    def _broken(self, reason: str, at: int) -> FormatError:
        where = f"character {self._before + at}"
        return FormatError(f"{self._name} is not valid JSON at {where}: {reason}")

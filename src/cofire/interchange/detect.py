"""Guessing what a file to import is, from its name and its first bytes."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import Any

from cofire.errors import FormatError
from cofire.interchange import documents
from cofire.interchange.files import BOM, existing, json_entries

_PEEK = 64 * 1024


class Format(enum.StrEnum):
    """What can be imported."""

    COFIRE = "cofire"
    """Cofire's own export, see `native`."""
    LOCOMO = "locomo"
    LONGMEMEVAL = "longmemeval"
    JSONL = "jsonl"
    """JSONL of messages, see `messages`."""
    TEXT = "text"
    """Plain text or Markdown: a document, or a folder of them."""


def detect(path: str | Path) -> Format:
    """The format of a file or folder.

    Raises NotFoundError, or FormatError if it is none of the formats.
    """
    source = existing(path)
    if source.is_dir() or source.suffix.lower() in documents.SUFFIXES:
        return Format.TEXT
    start = _start(source)
    named_lines = source.suffix.lower() in {".jsonl", ".ndjson"}
    lined = _lined(start)
    if lined is not None or named_lines:
        return lined or Format.JSONL
    if start.lstrip()[:1] in {b"[", b"{"}:
        return _of_entry(next(json_entries(source), None), source)
    if b"\0" in start:
        raise FormatError(f"{source} is no text; it cannot be imported")
    return Format.TEXT


def _of_entry(entry: Any, source: Path) -> Format:
    """The format of a JSON file by its first entry."""
    if isinstance(entry, dict) and "conversation" in entry:
        return Format.LOCOMO
    if isinstance(entry, dict) and "haystack_sessions" in entry:
        return Format.LONGMEMEVAL
    raise FormatError(
        f"{source} is JSON, but neither LoCoMo (`conversation`) nor LongMemEval "
        "(`haystack_sessions`); messages must be JSONL, one object a line"
    )


def detect_start(start: bytes) -> Format:
    """The format of a stream by its first bytes: our own export, JSONL, or text."""
    return _lined(start.removeprefix(BOM)) or Format.TEXT


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_PEEK).removeprefix(BOM)


def _lined(start: bytes) -> Format | None:
    """The format if the first line that is not blank is a JSON object by itself."""
    lines = start.lstrip().splitlines()
    if not lines or not lines[0].startswith(b"{"):
        return None
    try:
        value: Any = json.JSONDecoder().raw_decode(lines[0].decode("utf-8", "replace"))[0]
    except (ValueError, RecursionError):
        return None
    if "haystack_sessions" in value or {"conversation", "sample_id"} <= value.keys():
        return None
    return Format.COFIRE if value.get("format") == "cofire" else Format.JSONL

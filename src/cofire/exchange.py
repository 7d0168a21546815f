"""Between files and the store: whole exports, and messages of other formats."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from cofire.errors import (
    InputError,
)
from cofire.interchange import (
    Format,
    ImportReport,
    Problem,
    detect,
    documents,
    locomo,
    longmemeval,
    messages,
    native,
)
from cofire.interchange.detect import detect_start
from cofire.interchange.native_records import Record, StoredItem, StoredSpace
from cofire.interchange.report import Places
from cofire.restoring import Making, Restoring
from cofire.store import Store
from cofire.store.records import (
    SpaceInfo,
    VersionRow,
)
from cofire.types import Message, Progress, SpaceRef

__all__ = ["Making", "PlaceSpace", "export", "format_of", "import_own", "messages_of"]

BATCH = 1_000
"""Records of one kind stored in one transaction."""

START = 1 << 16
"""Bytes of a file by which its format is known."""

PlaceSpace = Callable[[SpaceRef, bool], SpaceInfo | None]
"""Where the records of a file's space go: its name, and whether it is the only one. None: they
are left out and reported."""

STREAM = "standard input"
"""What reports call something without a path."""


def export(
    store: Store,
    spaces: Sequence[SpaceInfo],
    target: str | Path | IO[bytes],
    progress: Progress | None,
) -> Mapping[str, int]:
    """Write spaces to a stream, or to a file that appears whole or not at all, in place of an
    older export. Raises InputError for a file of anything else."""
    if not isinstance(target, str | Path):
        return _write(store, spaces, target, progress)
    path = Path(target)
    _require_place(store, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(".tmp", ".cofire-export-", path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            counts = _write(store, spaces, stream, progress)
            os.fsync(stream.fileno())
        _require_place(store, path)  # writing may have taken long
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
    return counts


def _require_place(store: Store, path: Path) -> None:
    """Refuses a target that an export would harm: the store, or a file that is no export."""
    if store.owns(path):
        raise InputError(f"{path}: this belongs to the store itself; name another file")
    if not os.path.lexists(path):
        return
    if not path.is_file():
        raise InputError(f"{path}: this is not a regular file; name another for the export")
    with path.open("rb") as file:
        start = file.read(START)
    if start and detect_start(start) is not Format.COFIRE:
        raise InputError(
            f"{path}: this file is not an export and was left as it is; name another, or delete it"
        )


def _write(
    store: Store, spaces: Sequence[SpaceInfo], stream: IO[bytes], progress: Progress | None
) -> Mapping[str, int]:
    writer = native.Writer(stream, created=datetime.now(UTC))
    for space in spaces:
        native.export_space(store, space, writer, progress)
    return writer.close()


def format_of(source: str | Path | IO[bytes], given: Format | str | None) -> Format:
    """The format named or guessed. Raises InputError, NotFoundError, FormatError."""
    if given is not None:
        try:
            return Format(given)
        except ValueError as exc:
            raise InputError(
                f"there is no format {given!r}; use one of {', '.join(Format)}"
            ) from exc
    if isinstance(source, str | Path):
        return detect(source)
    peek = getattr(source, "peek", None)
    if peek is None:
        raise InputError("say which format a stream has that cannot be looked into")
    return detect_start(peek(START))


def messages_of(
    source: str | Path | IO[bytes], chosen: Format, root: str | Path | None = None
) -> tuple[ImportReport, Iterator[Message], Places]:
    """The messages of a file, folder or stream, the report they fill as they are taken, and where
    they came from. `root` is the folder that the paths of documents are relative to."""
    stream: Iterator[Message | Problem]
    places = Places()
    if isinstance(source, str | Path):
        report = ImportReport(source=str(source))
        match chosen:
            case Format.TEXT:
                stream = documents.read(source, root)
            case Format.LOCOMO:
                stream = locomo.read(source)
            case Format.LONGMEMEVAL:
                stream = longmemeval.read(source)
            case _:
                stream = messages.read(source, places)
    else:
        report = ImportReport(source=STREAM)
        if chosen is Format.JSONL:
            stream = messages.read_stream(source, report.source, places)
        elif chosen is Format.TEXT:
            stream = documents.read_stream(source, report.source)
        else:
            raise InputError(f"{chosen} is read from a file, not from a stream")
    return report, report.messages(stream, places), places


def import_own(
    store: Store,
    source: str | Path | IO[bytes],
    place: PlaceSpace,
    making: Making,
    progress: Progress | None,
) -> ImportReport:
    """Restore an export, ids and all. What is there already (by id or key) is left as it is.
    Where there is a redaction hook, it is called on every text of the file.

    A file is verified whole before its first record is stored. Raises FormatError, InputError.
    """
    if isinstance(source, str | Path):
        summary = native.verify(source)
        alone = len(summary.spaces) == 1
        report = ImportReport(source=str(source))
        records = native.read(source)
    else:
        # A stream cannot be read twice; its first space decides, and later ones need a match.
        alone = True
        report = ImportReport(source=STREAM)
        records = native.read_stream(source, report.source)
    restoring: Restoring | None = None
    for batch in _batches(records):
        first = batch[0]
        if isinstance(first, StoredSpace):
            _finish(restoring)
            space = place(first.ref, alone)
            restoring = None
            if space is None:
                report.add(Problem(where=str(first.ref), reason="this memory has no such space"))
            else:
                restoring = Restoring(store, space, first, making, report)
        elif restoring is not None:
            restoring.take(batch)
            if progress is not None:
                progress(report.imported + report.known, None)
        elif isinstance(first, StoredItem):
            report.read += len(batch)
            report.dropped += len(batch)
    _finish(restoring)
    return report


def _finish(restoring: Restoring | None) -> None:
    if restoring is not None:
        restoring.finish()


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    """Runs of records of one type, `BATCH` at most. Former texts come right after their item and
    are taken with it."""
    batch: list[Record] = []
    for record in records:
        same = batch and _group(batch[0]) is _group(record)
        full = len(batch) >= BATCH and not isinstance(record, VersionRow)
        if batch and (not same or full):
            yield batch
            batch = []
        batch.append(record)
    if batch:
        yield batch


def _group(record: Record) -> type:
    return StoredItem if isinstance(record, VersionRow) else type(record)

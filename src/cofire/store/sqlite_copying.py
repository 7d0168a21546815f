"""Copying a whole SQLite database: out of a store in use, and over one."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cofire.errors import StoreUnavailableError
from cofire.store.sqlite_connections import Connections
from cofire.store.sqlite_errors import BUSY, busy
from cofire.store.sqlite_places import require_backup_place, sidecars
from cofire.types import Progress

PAGES = 1_024
"""Pages copied between two reports."""


def copy_out(connections: Connections, target: Path, progress: Progress | None) -> None:
    """A consistent copy, made while others read and write; appears whole or not at all. An older
    backup is replaced. Raises InputError for a target that is anything else."""
    temporary: Path | None = None
    connection = connections.acquire()
    try:
        require_backup_place(connections.path, target)
        # Of an unguessable name, or somebody could have put a link to another file there.
        descriptor, name = tempfile.mkstemp(".partial", ".cofire-backup-", target.parent)
        os.close(descriptor)
        temporary = Path(name)
        _copy(connection, temporary, progress)
        require_backup_place(connections.path, target)  # copying may have taken long
        _replace(temporary, target)
    except sqlite3.Error as exc:
        raise connections.translate(exc, target) from exc
    except OSError as exc:
        raise StoreUnavailableError(f"{target}: the backup cannot be written: {exc}") from exc
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        connections.release(connection)


def copy_over(
    connections: Connections, origin: sqlite3.Connection, progress: Progress | None
) -> None:
    """Copies a database over a store, as one transaction.

    Through SQLite and not through the file system: a process that has the store open would go on
    writing to a file that was renamed away. Raises StoreBusyError.
    """
    deadline = time.monotonic() + connections.wait
    report = _reporter(progress)

    def step(status: int, remaining: int, total: int) -> None:
        if status in BUSY and time.monotonic() > deadline:
            raise busy(connections.path, connections.wait)
        if report is not None:
            report(status, remaining, total)

    with connections.alone() as connection:
        connection.execute("ROLLBACK")  # the copy takes the lock itself
        try:
            origin.backup(connection, pages=PAGES, progress=step, sleep=0.005)
        except sqlite3.Error as exc:
            raise connections.translate(exc) from exc


def _reporter(progress: Progress | None) -> Callable[[int, int, int], None] | None:
    if progress is None:
        return None
    return lambda _status, remaining, total: progress(total - remaining, total)


def _copy(origin: sqlite3.Connection, path: Path, progress: Progress | None) -> None:
    """Copies a database page by page into `path` and leaves it as one file without a log."""
    copy = sqlite3.connect(path, isolation_level=None)
    try:
        # Small steps would start again whenever somebody writes; a snapshot is stable anyway.
        origin.execute("BEGIN")
        origin.execute("SELECT count(*) FROM sqlite_master").fetchall()
        origin.backup(copy, pages=PAGES, progress=_reporter(progress))
        copy.execute("PRAGMA journal_mode=DELETE").fetchall()
    finally:
        copy.close()
        if origin.in_transaction:
            origin.execute("ROLLBACK")


def _replace(temporary: Path, target: Path) -> None:
    """Renames atomically, durably. Sidecars of what was there before do not belong to it."""
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    for stale in sidecars(target):
        stale.unlink(missing_ok=True)
    temporary.replace(target)
    with suppress(OSError):  # not every system can open a folder
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

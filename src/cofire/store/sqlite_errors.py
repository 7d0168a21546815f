"""SQLite's result codes as Cofire's errors."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from cofire.errors import (
    InputError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)

BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
CORRUPT = {
    sqlite3.SQLITE_NOTADB: "this file is not an SQLite database; name another file, or move this "
    "one away and restore a backup",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; run `cofire doctor`, or restore a backup",
    sqlite3.SQLITE_FORMAT: "the file is damaged; run `cofire doctor`, or restore a backup",
}
_INPUT = {
    sqlite3.SQLITE_TOOBIG: "a value is too long to be stored",
    sqlite3.SQLITE_MISMATCH: "a value cannot be stored",
    sqlite3.SQLITE_RANGE: "a value cannot be stored",
    sqlite3.SQLITE_CONSTRAINT: "something with this id is there already",
}
_UNAVAILABLE = {
    sqlite3.SQLITE_READONLY: "it is read-only; give this user write permission to the file and "
    "its folder, or choose another place with COFIRE_STORE or --store",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the folder exists and that this user "
    "may write to it",
    sqlite3.SQLITE_PERM: "access is denied; give this user write permission to it and its folder",
    sqlite3.SQLITE_AUTH: "access is denied; give this user write permission to it and its folder",
    sqlite3.SQLITE_FULL: "the disk is full; nothing of this write was kept: free some space and "
    "repeat it",
    sqlite3.SQLITE_IOERR: "the disk reports an error; check the disk, and put the store on a local "
    "one if this is a network share",
}
REFUSED = (sqlite3.Error, UnicodeEncodeError, OverflowError)
"""What a statement may raise: SQLite's errors, and Python's for values it cannot hand over."""


def primary(exc: sqlite3.Error) -> int:
    """SQLite's primary result code (the low byte of the extended one)."""
    code: int = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def translated(exc: Exception, where: Path, wait: float) -> StoreError | InputError:
    """Our error for one of SQLite's, or for a value that it cannot take."""
    code = primary(exc) if isinstance(exc, sqlite3.Error) else sqlite3.SQLITE_MISMATCH
    if code in BUSY:
        return busy(where, wait)
    if code in _UNAVAILABLE:
        return StoreUnavailableError(f"{where}: {_UNAVAILABLE[code]} ({exc})")
    if code in CORRUPT:
        return StoreCorruptError(f"{where}: {CORRUPT[code]} ({exc})")
    if code in _INPUT:
        return InputError(f"{where}: {_INPUT[code]} ({exc})")
    return StoreError(f"{where}: SQLite refused: {exc}")


def busy(where: Path, wait: float) -> StoreBusyError:
    """The error for a write that waited `wait` seconds in vain."""
    return StoreBusyError(
        f"{where}: another writer held the store for longer than the wait of {wait:g} s; try "
        "again, or raise the wait (COFIRE_WRITE_WAIT, in seconds)"
    )

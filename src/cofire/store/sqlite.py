"""SQLite, and everything that is only true of it.

Write-ahead logging, so that readers never wait; one writer at a time (a lock in this process,
BEGIN IMMEDIATE across processes); deleted content is overwritten; errors become ours; the store
survives a fork. Works on local disks only: WAL needs shared memory.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from sqlalchemy import Select, bindparam, column, func, select
from sqlalchemy import Text as TextType
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from cofire.errors import (
    InputError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)
from cofire.store.records import Finding
from cofire.store.session import Compiled, Query, Row, Session
from cofire.types import Progress

APPLICATION_ID = 0x436F4669  # "CoFi": tells our files from other SQLite databases
IDLE_CONNECTIONS = 8
REBUILT_AT_ONCE = 8_000_000  # bytes of a file that is rebuilt after each deletion (some 50 ms)
FORK_WAIT = 5.0  # seconds that a fork waits for a running write of another thread

CONNECTION_PRAGMAS = (
    "PRAGMA secure_delete=ON",  # what is forgotten is overwritten with zeros
    "PRAGMA temp_store=MEMORY",  # no content in temporary files
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
    "PRAGMA cache_size=-8000",  # KiB for each connection
    "PRAGMA wal_autocheckpoint=4000",  # pages: about 16 MB, so that bulk writes fold it seldom
    "PRAGMA journal_size_limit=67108864",
)

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_CORRUPT = {
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


class SQLiteFlavour:
    """How SQLite wants its SQL: lists travel as one JSON text, whatever their length."""

    def __init__(self) -> None:
        self.dialect = SQLiteDialect_pysqlite(paramstyle="qmark")

    def members(self, name: str, *, text: bool = False) -> Select[Any]:
        value = column("value", TextType()) if text else column("value")
        return select(func.json_each(bindparam(name)).table_valued(value).c.value)

    def pack(self, values: Sequence[int] | Sequence[str]) -> str:
        return json.dumps(list(values))


class SQLiteBackend:
    """Connections to one file. `url_options` are SQLite's own URI parameters (such as `vfs`)."""

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout: float = 30.0,
        durability: str = "full",
        url_options: dict[str, str] | None = None,
    ) -> None:
        self.path = path
        self.description = str(path)
        self.flavour = SQLiteFlavour()
        self._uri = f"file:{quote(str(path))}"
        if url_options:
            self._uri += "?" + urlencode(url_options)
        self._busy_timeout = busy_timeout
        self._synchronous = "FULL" if durability == "full" else "NORMAL"
        self._compiled: dict[Query, Compiled] = {}
        self._idle: deque[sqlite3.Connection] = deque()
        self._open: set[sqlite3.Connection] = set()
        self._opening = threading.Lock()  # also held across a fork, so that none opens meanwhile
        self._writing = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._closed = False
        self._lost_to_fork = False
        _BACKENDS.add(self)

    # Connections

    def connect(self) -> sqlite3.Connection:
        """A new connection with our settings, not yet in WAL mode; the caller closes it."""
        try:
            connection = sqlite3.connect(
                self._uri,
                uri=True,
                timeout=self._busy_timeout,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
        except sqlite3.Error as exc:
            raise self.translate(exc) from exc
        try:
            for pragma in (*CONNECTION_PRAGMAS, f"PRAGMA synchronous={self._synchronous}"):
                connection.execute(pragma).close()
        except sqlite3.Error as exc:
            connection.close()
            raise self.translate(exc) from exc
        return connection

    def prepare(self) -> None:
        """Switches the file to WAL, however many processes try to at the same moment."""
        connection = self.connect()
        try:
            # The switch takes locks without waiting for them: it may fail at once and be fine
            # a moment later.
            for attempt in _attempts(self._busy_timeout):
                try:
                    mode = connection.execute("PRAGMA journal_mode=WAL").fetchall()[0][0]
                    break
                except sqlite3.OperationalError as exc:
                    if _primary(exc) not in _BUSY or attempt is None:
                        raise
            if mode != "wal":
                raise StoreUnavailableError(
                    f"{self.path}: this disk does not support write-ahead logging (network and "
                    f"some container disks do not; SQLite stays in mode {mode!r}). Put the store "
                    "on a local disk, or use PostgreSQL to share one between machines."
                )
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
            connection.execute("ROLLBACK")
        except sqlite3.Error as exc:
            raise self.translate(exc) from exc
        finally:
            connection.close()

    def _acquire(self) -> sqlite3.Connection:
        self._require_usable()
        try:
            return self._idle.pop()
        except IndexError:
            with self._opening:
                self._require_usable()
                connection = self.connect()
                self._open.add(connection)
                return connection

    def _release(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        if self._closed or len(self._idle) >= IDLE_CONNECTIONS:
            self._discard(connection)
        else:
            self._idle.append(connection)
            if self._closed:  # closed between the test and the append
                self._close_idle()

    def _discard(self, connection: sqlite3.Connection) -> None:
        self._open.discard(connection)
        connection.close()

    def _close_idle(self) -> None:
        while True:
            try:
                self._discard(self._idle.pop())
            except IndexError:
                return

    def _require_usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path}: this store is closed; open it again")
        if self._lost_to_fork:
            raise StoreUnavailableError(
                f"{self.path}: another thread was using the store while this process was forked, "
                "so its connections cannot be used here. Open the store in the child process, or "
                "start processes with the 'spawn' method."
            )

    # Transactions

    @contextmanager
    def reading(self) -> Iterator[Session]:
        connection = self._acquire()
        try:
            cursor = connection.cursor()
            cursor.execute("BEGIN")
            yield Session(cursor, self.flavour, self._compiled)
        except (sqlite3.Error, UnicodeEncodeError, OverflowError) as exc:
            raise self.translate(exc) from exc
        finally:
            self._release(connection)

    def glance(self, query: Query, **parameters: Any) -> list[Row]:
        connection = self._acquire()
        try:
            return Session(connection.cursor(), self.flavour, self._compiled).all(
                query, **parameters
            )
        except (sqlite3.Error, UnicodeEncodeError, OverflowError) as exc:
            raise self.translate(exc) from exc
        finally:
            self._release(connection)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        with self._alone() as connection:
            try:
                cursor = connection.cursor()
                yield Session(cursor, self.flavour, self._compiled)
                cursor.execute("COMMIT")
            except (sqlite3.Error, UnicodeEncodeError, OverflowError) as exc:
                raise self.translate(exc) from exc
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        """The writer's connection, inside BEGIN IMMEDIATE."""
        self._require_usable()
        began = time.monotonic()
        if not self._writing.acquire(timeout=self._busy_timeout):
            raise self._busy()
        try:
            self._require_usable()
            if self._writer is None:
                self._writer = self._acquire()
                self._writer.execute("PRAGMA busy_timeout=0").close()
            waited = time.monotonic() - began
            self._begin(self._writer, max(0.0, self._busy_timeout - waited))
            yield self._writer
        finally:
            self._writing.release()

    def _begin(self, connection: sqlite3.Connection, wait: float) -> None:
        # SQLite's own waiting backs off to 100 ms between tries, which starves a writer among
        # busy ones for seconds; short irregular pauses are both fairer and quicker.
        for attempt in _attempts(wait):
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as exc:
                if _primary(exc) not in _BUSY or attempt is None:
                    raise self.translate(exc) from exc
            else:
                return

    # Upkeep

    def purge_residue(self) -> None:
        with self._alone() as connection, suppress(sqlite3.Error):
            connection.execute("ROLLBACK")  # a checkpoint happens outside of transactions
            # Pages that were split or merged keep copies of rows in their unused space, which
            # only rebuilding the file clears.
            if self.path.stat().st_size <= REBUILT_AT_ONCE:
                connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def scrub(self) -> None:
        """Rebuilds the file without any unused space, in memory as large as itself."""
        with self._alone() as connection:
            connection.execute("ROLLBACK")
            try:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.Error as exc:
                raise self.translate(exc) from exc

    def check(self) -> list[Finding]:
        connection = self._acquire()
        try:
            rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
        except sqlite3.DatabaseError as exc:
            if _primary(exc) not in _CORRUPT:
                raise self.translate(exc) from exc
            rows = [(str(exc),)]
        finally:
            self._release(connection)
        problems = tuple(str(row[0]) for row in rows if row[0] != "ok")
        if not problems:
            return []
        return [
            Finding(
                code="integrity",
                message=f"{self.path}: SQLite finds the file damaged; restore a backup",
                count=len(problems),
                examples=problems[:5],
            )
        ]

    def sidecar(self, space_id: int) -> Path | None:
        return Path(f"{self.path}-graph-{space_id}")

    def size(self) -> int:
        total = 0
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                total += Path(f"{self.path}{suffix}").stat().st_size
        return total

    def backup(self, target: Path, progress: Progress | None) -> None:
        """A consistent copy, made while others read and write; appears whole or not at all."""
        temporary = target.with_name(f".{target.name}.{os.getpid()}.partial")
        connection = self._acquire()
        try:
            descriptor = os.open(temporary, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
            os.close(descriptor)
            _copy(connection, temporary, progress)
            _replace(temporary, target)
        except sqlite3.Error as exc:
            raise self.translate(exc, target) from exc
        except OSError as exc:
            raise StoreUnavailableError(f"{target}: the backup cannot be written: {exc}") from exc
        finally:
            temporary.unlink(missing_ok=True)
            self._release(connection)

    def restore(self, source: Path, progress: Progress | None) -> None:
        """Replaces the content by a backup's; see `sqlite_files.restore`."""
        from cofire.store.sqlite_files import restore

        restore(self, source, progress)

    def overwrite(self, origin: sqlite3.Connection, progress: Progress | None) -> None:
        """Copies a database over this one, as one transaction.

        Through SQLite and not through the file system: a process that has the store open would
        go on writing to a file that was renamed away. Raises StoreBusyError.
        """
        deadline = time.monotonic() + self._busy_timeout
        report = _reporter(progress)

        def step(status: int, remaining: int, total: int) -> None:
            if status in _BUSY and time.monotonic() > deadline:
                raise self._busy()
            if report is not None:
                report(status, remaining, total)

        with self._alone() as connection:
            connection.execute("ROLLBACK")  # the copy takes the lock itself
            try:
                origin.backup(connection, pages=1024, progress=step, sleep=0.005)
            except sqlite3.Error as exc:
                raise self.translate(exc) from exc

    def close(self) -> None:
        self._closed = True
        with self._writing:
            if self._writer is not None and not self._lost_to_fork:
                self._discard(self._writer)
            self._writer = None
        if not self._lost_to_fork:
            self._close_idle()

    # Errors

    def translate(self, exc: Exception, path: Path | None = None) -> StoreError | InputError:
        """Our error for one of SQLite's, or for a value that it cannot take."""
        where = path or self.path
        code = _primary(exc) if isinstance(exc, sqlite3.Error) else sqlite3.SQLITE_MISMATCH
        if code in _BUSY:
            return self._busy()
        if code in _UNAVAILABLE:
            return StoreUnavailableError(f"{where}: {_UNAVAILABLE[code]} ({exc})")
        if code in _CORRUPT:
            return StoreCorruptError(f"{where}: {_CORRUPT[code]} ({exc})")
        if code in _INPUT:
            return InputError(f"{where}: {_INPUT[code]} ({exc})")
        return StoreError(f"{where}: SQLite refused: {exc}")

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(
            f"{self.path}: another writer held the store for longer than the wait of "
            f"{self._busy_timeout:g} s; try again, or raise the wait "
            "(COFIRE_WRITE_WAIT, in seconds)"
        )

    # Fork

    def _before_fork(self) -> None:
        """Closes every connection at rest, so that the child inherits none.

        SQLite's locks belong to the process that took them: a connection carried over a fork
        believes in locks it does not hold, and damages the file.
        """
        held = self._writing.acquire(timeout=FORK_WAIT)
        self._opening.acquire()
        if held and self._writer is not None:
            self._discard(self._writer)
            self._writer = None
        self._close_idle()
        self._fork_held = held

    def _after_fork(self, child: bool) -> None:
        if child and self._open:
            self._lost_to_fork = True
            # Kept alive for ever: closing another process's connection would release its locks.
            _INHERITED.extend(self._open)
            self._open = set()
            self._idle.clear()
        self._opening.release()
        if self._fork_held:
            self._writing.release()
        elif child:
            self._writing = threading.Lock()


_BACKENDS: weakref.WeakSet[SQLiteBackend] = weakref.WeakSet()
_INHERITED: list[sqlite3.Connection] = []
_FORKING: list[SQLiteBackend] = []


def _before_fork() -> None:
    _FORKING[:] = [backend for backend in _BACKENDS if not backend._closed]
    for backend in _FORKING:
        backend._before_fork()


def _after_fork_in_parent() -> None:
    for backend in _FORKING:
        backend._after_fork(child=False)
    _FORKING.clear()


def _after_fork_in_child() -> None:
    for backend in _FORKING:
        backend._after_fork(child=True)
    _FORKING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


def _attempts(wait: float) -> Iterator[int | None]:
    """Counts attempts, pausing before each but the first; the last one, when `wait` seconds are
    over, is None."""
    deadline = time.monotonic() + wait
    yield 0
    attempt = 1
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        pause = min(0.01, 0.0005 * attempt) * random.uniform(0.5, 1.5)  # noqa: S311 - not a secret
        time.sleep(min(pause, left))
        yield attempt
        attempt += 1
    yield None


def _primary(exc: sqlite3.Error) -> int:
    """SQLite's primary result code (the low byte of the extended one)."""
    code: int = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def _reporter(progress: Progress | None) -> Any:
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
        origin.backup(copy, pages=1024, progress=_reporter(progress))
        copy.execute("PRAGMA journal_mode=DELETE").fetchall()
    finally:
        copy.close()
        if origin.in_transaction:
            origin.execute("ROLLBACK")


def _replace(temporary: Path, target: Path) -> None:
    """Renames atomically, durably."""
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(target)
    with suppress(OSError):  # not every system can open a folder
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

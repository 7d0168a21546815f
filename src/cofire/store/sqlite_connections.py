"""Connections to one SQLite file: few, kept for the next use, one of them the writer's, and none
carried over a fork."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlencode

from cofire.errors import InputError, StoreError, StoreUnavailableError
from cofire.store.sqlite_errors import BUSY, busy, primary, translated

IDLE_CONNECTIONS = 8
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


class Connections:
    """The connections of this process to a file. `wait` is how many seconds a write waits for
    others, `url_options` are SQLite's own URI parameters (such as `vfs`)."""

    def __init__(
        self,
        path: Path,
        *,
        wait: float,
        durability: str,
        url_options: dict[str, str] | None = None,
    ) -> None:
        self.path = path
        self.wait = wait
        self._uri = f"file:{quote(str(path))}"
        if url_options:
            self._uri += "?" + urlencode(url_options)
        self._synchronous = "FULL" if durability == "full" else "NORMAL"
        self._idle: deque[sqlite3.Connection] = deque()
        self._open: set[sqlite3.Connection] = set()
        self._opening = threading.Lock()  # also held across a fork, so that none opens meanwhile
        self._writing = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._closed = False
        self._lost_to_fork = False
        _EVERY.add(self)

    def translate(self, exc: Exception, path: Path | None = None) -> StoreError | InputError:
        """Our error for one of SQLite's; `path` if another file than this one is meant."""
        return translated(exc, path or self.path, self.wait)

    def connect(self) -> sqlite3.Connection:
        """A new connection with our settings, not yet in WAL mode; the caller closes it."""
        try:
            connection = sqlite3.connect(
                self._uri,
                uri=True,
                timeout=self.wait,
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
            for attempt in attempts(self.wait):
                try:
                    mode = connection.execute("PRAGMA journal_mode=WAL").fetchall()[0][0]
                    break
                except sqlite3.OperationalError as exc:
                    if primary(exc) not in BUSY or attempt is None:
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

    def acquire(self) -> sqlite3.Connection:
        """A connection for one use, to be given back by `release`."""
        self._require_usable()
        try:
            return self._idle.pop()
        except IndexError:
            with self._opening:
                self._require_usable()
                connection = self.connect()
                self._open.add(connection)
                return connection

    def release(self, connection: sqlite3.Connection) -> None:
        """Take a connection back, whatever state it is in."""
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

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """The writer's connection, inside BEGIN IMMEDIATE."""
        self._require_usable()
        began = time.monotonic()
        if not self._writing.acquire(timeout=self.wait):
            raise busy(self.path, self.wait)
        try:
            self._require_usable()
            if self._writer is None:
                self._writer = self.acquire()
                self._writer.execute("PRAGMA busy_timeout=0").close()
            waited = time.monotonic() - began
            self._begin(self._writer, max(0.0, self.wait - waited))
            yield self._writer
        finally:
            self._writing.release()

    def _begin(self, connection: sqlite3.Connection, wait: float) -> None:
        # SQLite's own waiting backs off to 100 ms between tries, which starves a writer among
        # busy ones for seconds; short irregular pauses are both fairer and quicker.
        for attempt in attempts(wait):
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as exc:
                if primary(exc) not in BUSY or attempt is None:
                    raise self.translate(exc) from exc
            else:
                return

    def close(self) -> None:
        """Close the writer's and those at rest; the others when they are given back."""
        self._closed = True
        with self._writing:
            if self._writer is not None and not self._lost_to_fork:
                self._discard(self._writer)
            self._writer = None
        if not self._lost_to_fork:
            self._close_idle()

    # Fork

    def before_fork(self) -> None:
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

    def after_fork(self, child: bool) -> None:
        """Go on in the parent; in the child only if nothing was in use."""
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


_EVERY: weakref.WeakSet[Connections] = weakref.WeakSet()
_INHERITED: list[sqlite3.Connection] = []
_FORKING: list[Connections] = []


def _before_fork() -> None:
    _FORKING[:] = [connections for connections in _EVERY if not connections._closed]
    for connections in _FORKING:
        connections.before_fork()


def _after_fork_in_parent() -> None:
    for connections in _FORKING:
        connections.after_fork(child=False)
    _FORKING.clear()


def _after_fork_in_child() -> None:
    for connections in _FORKING:
        connections.after_fork(child=True)
    _FORKING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


def attempts(wait: float) -> Iterator[int | None]:
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

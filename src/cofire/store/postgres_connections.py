"""Connections to one PostgreSQL database: a pool for each process, and none carried over a fork.

The pool is made for this store, and has no threads of its own: whoever needs a connection makes it,
and so learns at once why there is none; nothing has to be stopped when the program ends or forks.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.types import TypeInfo

from cofire.errors import ConfigurationError, StoreBusyError, StoreError
from cofire.store.postgres_flavour import adapt_connection
from cofire.store.urls import describe

PREPARE_AFTER = 2
"""A statement that a connection runs more often than this is prepared on it."""
PREPARED = 400
"""How many: more than there are statements."""
POOLER = "pooler"
"""The URL's own parameter: `transaction` behind a pooler that gives each transaction another
session (pgbouncer), where nothing may be prepared and nothing set when connecting."""
IDLE = 60.0
"""Seconds after which a connection that nobody needed is closed, when another is given back."""
LIFETIME = 3600.0
"""Seconds after which a connection is not used again, so that a session's memory stays bounded."""
CONNECT = 10
"""Seconds that making a connection may take, if the URL does not say."""
DEFAULTS: dict[str, str | int | None] = {
    "fallback_application_name": "cofire",
    "keepalives_idle": 30,  # seconds: a peer that vanished without a word is noticed
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
"""What libpq is told unless the URL says otherwise."""

Connection = psycopg.Connection[Any]

# What psycopg warns of when a server goes away is in our errors; who wants its log still has it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Connections:
    """The connections of this process. `wait`: seconds that a caller waits for one; `most`: how
    many there may be."""

    def __init__(self, url: str, *, wait: float, most: int = 8) -> None:
        conninfo, self.pooled = parse_url(url)
        self._options = {**DEFAULTS, **psycopg.conninfo.conninfo_to_dict(conninfo)}
        self.description = describe(url)
        self.wait = wait
        self._most = most
        self._halfvec: int | None = None
        self._free: list[tuple[Connection, float]] = []  # and since when, the longest first
        self._used: set[Connection] = set()
        self._making = 0
        self._born: weakref.WeakKeyDictionary[Connection, float] = weakref.WeakKeyDictionary()
        self._changed = threading.Condition()
        self._closed = False
        _EVERY.add(self)
        weakref.finalize(self, _close_each, self._free)  # also when the program ends

    def connect(self, within: float | None = None) -> Connection:
        """A new connection, made `within` seconds; the caller closes it. Raises psycopg.Error,
        ConfigurationError."""
        seconds = min(self.wait if within is None else within, CONNECT)
        timeout: dict[str, str | int | None] = {
            "connect_timeout": max(2, round(seconds))
        }  # libpq knows no less
        conninfo = psycopg.conninfo.make_conninfo("", **{**timeout, **self._options})
        connection = psycopg.connect(conninfo, autocommit=True)
        try:
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: Connection) -> None:
        connection.prepare_threshold = None if self.pooled else PREPARE_AFTER
        connection.prepared_max = PREPARED
        if self._halfvec is None:
            found = TypeInfo.fetch(connection, "public.halfvec")
            if found is None:
                raise ConfigurationError(
                    f"{self.description}: this database has no pgvector; have an administrator run "
                    "CREATE EXTENSION vector in it"
                )
            self._halfvec = found.oid
        adapt_connection(connection, self._halfvec)

    @contextmanager
    def one(self, within: float | None = None) -> Iterator[Connection]:
        """A connection for one transaction, had `within` seconds; what was left open is rolled
        back. Raises psycopg.Error (none could be made), StoreBusyError (all are in use)."""
        connection = self._take(self.wait if within is None else within)
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _take(self, within: float) -> Connection:
        deadline = time.monotonic() + within
        with self._changed:
            while True:
                if self._closed:
                    raise StoreError(f"{self.description}: this store is closed; open it again")
                if self._free:
                    connection, _ = self._free.pop()
                    self._used.add(connection)
                    return connection
                if len(self._used) + self._making < self._most:
                    self._making += 1
                    break
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise self._exhausted()
        made: Connection | None = None
        try:
            made = self.connect(deadline - time.monotonic())
        finally:
            with self._changed:
                self._making -= 1
                if made is None:
                    self._changed.notify()
                else:
                    self._used.add(made)
                    self._born[made] = time.monotonic()
        return made

    def _exhausted(self) -> StoreBusyError:
        return StoreBusyError(
            f"{self.description}: the {self._most} connections of this process were all in use for "
            f"longer than the wait of {self.wait:g} s; raise COFIRE_POOL_SIZE, or the wait "
            "(COFIRE_WRITE_WAIT, in seconds)"
        )

    def _give_back(self, connection: Connection) -> None:
        fit = kept = False
        try:
            fit = _at_rest(connection)
        finally:
            now = time.monotonic()
            with self._changed:
                self._used.discard(connection)
                born = self._born.get(connection)  # none since `renew`: from before a restart
                kept = fit and not self._closed and born is not None and now - born < LIFETIME
                if kept:
                    self._free.append((connection, now))
                spare = [old for old, since in self._free if now - since > IDLE]
                del self._free[: len(spare)]
                self._changed.notify()
            for old in spare if kept else (*spare, connection):
                old.close()

    def renew(self) -> None:
        """Drops the connections that went with a server that was restarted, those in use when they
        are given back."""
        with self._changed:
            dropped = self._emptied()
            self._born.clear()
        for connection in dropped:
            connection.close()

    def close(self) -> None:
        """Closes every connection, those in use when they are given back; closing again does
        nothing."""
        with self._changed:
            self._closed = True
            dropped = self._emptied()
            self._changed.notify_all()
        for connection in dropped:
            connection.close()

    def _emptied(self) -> list[Connection]:
        dropped = [connection for connection, _ in self._free]
        self._free.clear()
        return dropped

    # Fork

    def after_fork_in_child(self) -> None:
        """The child makes connections of its own: those it inherits are the parent's."""
        self._changed = threading.Condition()
        inherited = self._emptied() + list(self._used)
        self._used = set()
        self._making = 0
        for connection in inherited:
            _disinherit(connection)


def _at_rest(connection: Connection) -> bool:
    """Rolls back what is open; whether the connection may be used again."""
    status = psycopg.pq.TransactionStatus
    if connection.info.transaction_status in {status.INTRANS, status.INERROR}:
        with suppress(psycopg.Error):
            connection.rollback()
    idle = connection.info.transaction_status == status.IDLE
    return idle and connection.pgconn.pipeline_status == psycopg.pq.PipelineStatus.OFF


def _close_each(free: list[tuple[Connection, float]]) -> None:
    for connection, _ in free:
        connection.close()
    free.clear()


def _disinherit(connection: Connection) -> None:
    """Closes a connection that is another process's too, which does not notice."""
    with suppress(psycopg.Error, OSError):
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, connection.fileno())  # closing would end the parent's session otherwise
        os.close(nowhere)
    connection.close()


_EVERY: weakref.WeakSet[Connections] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for connections in list(_EVERY):
        connections.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def parse_url(url: str) -> tuple[str, bool]:
    """libpq's connection string, and whether a pooler is in between. Raises ConfigurationError."""
    parts = urlsplit(url)
    options = [part for part in parts.query.split("&") if part]
    ours = [part for part in options if part.partition("=")[0] == POOLER]
    pooler = ours[-1].partition("=")[2] if ours else None
    if pooler not in {None, "transaction", "session"}:
        raise ConfigurationError(f'{describe(url)}: pooler is "transaction" or "session"')
    rest = "&".join(
        part for part in options if part not in ours
    )  # as it is: to libpq + is no space
    plain = urlunsplit(("postgresql", parts.netloc, parts.path, rest, ""))
    try:
        psycopg.conninfo.conninfo_to_dict(plain)
    except psycopg.ProgrammingError as exc:
        raise ConfigurationError(f"{describe(url)}: not a PostgreSQL URL") from exc
    return plain, pooler == "transaction"

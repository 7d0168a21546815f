"""Connections to one PostgreSQL database: a pool for each process, and none carried over a fork."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool, PoolTimeout

from cofire.errors import ConfigurationError, StoreError
from cofire.store.postgres_flavour import adapt_connection

PREPARE_AFTER = 2
"""A statement that a connection runs more often than this is prepared on it."""
PREPARED = 400
"""How many: more than there are statements."""
POOLER = "pooler"
"""The URL's own parameter: `transaction` behind a pooler that gives each transaction another
session (pgbouncer), where nothing may be prepared and nothing set when connecting."""


class Connections:
    """The connections of this process. `wait`: seconds that a caller waits for one; `most`: how
    many there may be."""

    def __init__(self, url: str, *, wait: float, most: int = 8) -> None:
        self._conninfo, self.pooled = parse_url(url)
        self.description = describe(url)
        self.wait = wait
        self._most = most
        self._halfvec: int | None = None
        self._pool: ConnectionPool[psycopg.Connection[Any]] | None = None
        self._lock = threading.Lock()
        self._closed = False
        _EVERY.add(self)

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection; the caller closes it. Raises psycopg.Error."""
        connection = psycopg.connect(
            self._conninfo, autocommit=True, connect_timeout=max(2, round(min(self.wait, 10)))
        )
        try:
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
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

    def _opened(self) -> ConnectionPool[psycopg.Connection[Any]]:
        pool = self._pool
        if pool is not None:
            return pool
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.description}: this store is closed; open it again")
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._conninfo,
                    min_size=1,
                    max_size=self._most,
                    timeout=max(0.1, self.wait),
                    max_idle=60.0,
                    max_lifetime=3600.0,
                    reconnect_timeout=5.0,
                    num_workers=1,
                    kwargs={"autocommit": True, "connect_timeout": 10},
                    configure=self._configure,
                    open=True,
                )
            return self._pool

    @contextmanager
    def one(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection for one transaction; what was left open is rolled back. Raises
        psycopg.Error."""
        pool = self._opened()
        connection = pool.getconn()
        try:
            yield connection
        finally:
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                with suppress(psycopg.Error):
                    connection.rollback()
            pool.putconn(connection)

    def refused(self, exc: Exception) -> bool:
        """Whether no connection was to be had at all."""
        return isinstance(exc, PoolTimeout)

    def renew(self) -> None:
        """Drops the connections that went with a server that was restarted."""
        pool = self._pool
        if pool is not None:
            with suppress(psycopg.Error):
                pool.check()

    def close(self) -> None:
        """Closes every connection; closing again does nothing."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(timeout=5.0)

    # Fork

    def after_fork_in_child(self) -> None:
        """The child makes connections of its own: those it inherits are the parent's."""
        self._lock = threading.Lock()
        if self._pool is not None:
            _INHERITED.append(self._pool)  # kept alive for ever: closing it would end them
            self._pool = None


_EVERY: weakref.WeakSet[Connections] = weakref.WeakSet()
_INHERITED: list[object] = []


def _after_fork_in_child() -> None:
    for connections in list(_EVERY):
        connections.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def parse_url(url: str) -> tuple[str, bool]:
    """libpq's connection string, and whether a pooler is in between. Raises ConfigurationError."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    pooler = options.pop(POOLER, None)
    if pooler not in {None, "transaction", "session"}:
        raise ConfigurationError(f'{describe(url)}: pooler is "transaction" or "session"')
    scheme = "postgresql"
    plain = urlunsplit((scheme, parts.netloc, parts.path, urlencode(options), ""))
    try:
        psycopg.conninfo.conninfo_to_dict(plain)
    except psycopg.ProgrammingError as exc:
        raise ConfigurationError(f"{describe(url)}: not a PostgreSQL URL") from exc
    return plain, pooler == "transaction"


def describe(url: str) -> str:
    """A URL as it may be shown: without its password and parameters."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    host = host or dict(parse_qsl(parts.query)).get("host", "")
    return f"postgresql://{user.partition(':')[0]}{at}{host}{parts.path}"

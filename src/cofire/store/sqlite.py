"""The SQLite back end, and with the modules named after it everything that is only true of SQLite.

Write-ahead logging, so that readers never wait; one writer at a time (a lock in this process,
BEGIN IMMEDIATE across processes); deleted content is overwritten; errors become ours; the store
survives a fork. Works on local disks only: WAL needs shared memory.

    sqlite_files        making, recognising, migrating and restoring a file
    sqlite              transactions on it
    sqlite_copying      copying a database out, and over one
    sqlite_copies       the copies that migrations leave beside a store
    sqlite_places       where a copy may be written
    sqlite_schema       whether a database is what the migrations make
    sqlite_erasing      clearing what deleting leaves
    sqlite_connections  connections, the one writer, forks
    sqlite_errors       result codes as errors
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    bindparam,
    column,
    func,
    literal_column,
    select,
)
from sqlalchemy import Text as TextType
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from cofire.errors import InputError, StoreError
from cofire.store.migrations import HEAD
from cofire.store.records import Finding
from cofire.store.sealing import Vault
from cofire.store.session import Compiled, Cursor, Query, Row, Scope, Session
from cofire.store.sqlite_connections import Connections
from cofire.store.sqlite_copies import drop_copies
from cofire.store.sqlite_copying import copy_out, copy_over
from cofire.store.sqlite_erasing import clear_after_deletion, scrub
from cofire.store.sqlite_errors import CORRUPT, REFUSED, primary
from cofire.store.sqlite_places import owns
from cofire.store.sqlite_schema import schema_differences
from cofire.types import Progress

T = TypeVar("T")


class SQLiteFlavour:
    """How SQLite wants its SQL: lists travel as one JSON text, whatever their length."""

    def __init__(self) -> None:
        self.dialect = SQLiteDialect_pysqlite(paramstyle="qmark")

    def members(self, name: str, *, text: bool = False) -> Select[Any]:
        value = column("value", TextType()) if text else column("value")
        return select(func.json_each(bindparam(name)).table_valued(value).c.value)

    def pack(self, values: Sequence[int] | Sequence[str]) -> str:
        return json.dumps(list(values))

    def unpack(self, packed: str) -> list[Any]:
        values: list[Any] = json.loads(packed)
        return values

    def vector(self, data: bytes) -> bytes:
        return data

    def widen(self, sealed: bytes) -> bytes:
        return sealed

    def narrow(self, vector: bytes) -> bytes:
        return vector

    def clock(self) -> ColumnElement[int]:
        # To the millisecond; unixepoch('subsec') would say it plainer, from SQLite 3.42 on.
        return literal_column(
            "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000", BigInteger()
        )


class SQLiteBackend:
    """One file. `url_options` are SQLite's own URI parameters (such as `vfs`)."""

    shared = False

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
        self.vault = Vault()
        self._compiled: dict[Query, Compiled] = {}
        self._sealed: dict[Query, Compiled] = {}
        self._connections = Connections(
            path, wait=busy_timeout, durability=durability, url_options=url_options
        )

    def prepare(self) -> None:
        """Switches the file to WAL; see `Connections.prepare`."""
        self._connections.prepare()

    def connect(self) -> sqlite3.Connection:
        """A new connection with our settings; the caller closes it."""
        return self._connections.connect()

    def translate(self, exc: Exception) -> StoreError | InputError:
        """Our error for one of SQLite's, or for a value that it cannot take."""
        return self._connections.translate(exc)

    def close(self) -> None:
        self._connections.close()

    # Transactions. A scope says nothing here: one file has one writer, whatever it writes.

    def _session(self, cursor: Cursor) -> Session:
        return Session(cursor, self.flavour, self._compiled, self._sealed, self.vault)

    def read(self, scope: Scope, work: Callable[[Session], T]) -> T:
        connection = self._connections.acquire()
        try:
            cursor = connection.cursor()
            cursor.execute("BEGIN")
            return work(self._session(cursor))
        except REFUSED as exc:
            raise self.translate(exc) from exc
        finally:
            self._connections.release(connection)

    def glance(self, scope: Scope, query: Query, **parameters: Any) -> list[Row]:
        connection = self._connections.acquire()
        try:
            return self._session(connection.cursor()).all(query, **parameters)
        except REFUSED as exc:
            raise self.translate(exc) from exc
        finally:
            self._connections.release(connection)

    def write(self, scope: Scope, work: Callable[[Session], T]) -> T:
        with self._connections.alone() as connection:
            try:
                cursor = connection.cursor()
                done = work(self._session(cursor))
                cursor.execute("COMMIT")
            except REFUSED as exc:
                raise self.translate(exc) from exc
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
        return done

    # Upkeep

    def purge_residue(self, *, thorough: bool = False, quietly: bool = False) -> bool:
        return clear_after_deletion(self._connections, thorough=thorough, quietly=quietly)

    def drop_copies(self, tenant: int, spaces: Mapping[int, Sequence[bytes] | None]) -> bool:
        return drop_copies(self.path, tenant, spaces)

    def scrub(self) -> None:
        scrub(self._connections)

    def check(self) -> list[Finding]:
        connection = self._connections.acquire()
        try:
            damage = _damage(connection)
            foreign = [] if damage else schema_differences(connection, HEAD)
        except sqlite3.Error as exc:
            raise self.translate(exc) from exc
        finally:
            self._connections.release(connection)
        found = {
            "integrity": ("SQLite finds the file damaged; restore a backup", damage),
            "schema": ("the tables are not those of a Cofire store; restore a backup", foreign),
        }
        return [
            Finding(
                code=code,
                message=f"{self.path}: {message}",
                count=len(problems),
                examples=tuple(problems[:5]),
            )
            for code, (message, problems) in found.items()
            if problems
        ]

    def owns(self, place: Path) -> bool:
        return owns(self.path, place)

    def sidecar(self, tenant: int, space: int) -> Path | None:
        return Path(f"{self.path}-graph-{tenant:x}-{space}")

    def size(self) -> int:
        total = 0
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                total += Path(f"{self.path}{suffix}").stat().st_size
        return total

    def backup(self, target: Path, progress: Progress | None) -> None:
        copy_out(self._connections, target, progress)

    def restore(self, source: Path, progress: Progress | None) -> None:
        """Replaces the content by a backup's; see `sqlite_files.restore`."""
        from cofire.store.sqlite_files import restore

        restore(self, source, progress)

    def overwrite(self, origin: sqlite3.Connection, progress: Progress | None) -> None:
        """Copies a database over this one; see `copy_over`."""
        copy_over(self._connections, origin, progress)


def _damage(connection: sqlite3.Connection) -> list[str]:
    """What SQLite itself finds wrong in its file."""
    try:
        rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
    except sqlite3.DatabaseError as exc:
        if primary(exc) not in CORRUPT:
            raise
        return [str(exc)]
    return [str(row[0]) for row in rows if row[0] != "ok"]

"""The PostgreSQL back end, and with the modules named after it everything only true of it.

Many processes and machines share one database; each transaction says which tenant it is about, and
row-level security shows it nothing else. A writer first locks the rows of its spaces, so that a
space has one writer at a time, as in SQLite; readers see a snapshot and never wait.

    postgres              transactions: their settings, retries, outcome
    postgres_connections  the pool, forks
    postgres_opening      is the role fit, is the schema current
    postgres_schema       making and upgrading the schema, what a role is granted
    postgres_flavour      SQL and values
    postgres_errors       errors
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from cofire.errors import ConfigurationError, StoreUnavailableError
from cofire.store.postgres_connections import Connections
from cofire.store.postgres_errors import REFUSED, busy, is_lost, is_transient, translated
from cofire.store.postgres_flavour import PostgresFlavour
from cofire.store.records import Finding, tenant_number
from cofire.store.sealing import Vault
from cofire.store.session import Compiled, Query, Row, Scope, Session
from cofire.types import Progress

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

T = TypeVar("T")

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
GLANCE = "BEGIN READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
SETTINGS = (
    "SELECT set_config('cofire.tenant', %s, true), "
    "set_config('search_path', 'cofire, public', true), "
    "set_config('statement_timeout', %s, true), "
    "set_config('lock_timeout', %s, true)"
)
LOCK = "SELECT id FROM spaces WHERE tenant = %s AND id = ANY(%s) ORDER BY id FOR UPDATE"
NUMBER = "SELECT pg_current_xact_id()::text"
OUTCOME = "SELECT pg_xact_status(%s::xid8)"


class PostgresBackend:
    """One database, as the role of the URL sees it."""

    shared = True

    def __init__(
        self,
        connections: Connections,
        *,
        busy_timeout: float = 30.0,
        statement_timeout: float = 300.0,
        durability: str = "full",
    ) -> None:
        self.description = connections.description
        self.flavour = PostgresFlavour()
        self.vault = Vault()
        self.wait = busy_timeout
        self._connections = connections
        self._statement_timeout = str(round(statement_timeout * 1000))
        self._lock_timeout = str(max(1, round(busy_timeout * 1000)))
        self._full = durability == "full"
        self._compiled: dict[Query, Compiled] = {}
        self._sealed: dict[Query, Compiled] = {}

    def close(self) -> None:
        self._connections.close()

    # Transactions

    def _session(self, cursor: Cursor[Any]) -> Session:
        return Session(cursor, self.flavour, self._compiled, self._sealed, self.vault)

    def _begin(self, connection: Connection[Any], begin: str, scope: Scope) -> Cursor[Any]:
        """Begins a transaction that says what it is about; nothing is sent before the first
        answer is wanted."""
        settings = (self._tenant(scope), self._statement_timeout, self._lock_timeout)
        connection.cursor().execute(begin)
        connection.cursor().execute(SETTINGS, settings)
        return connection.cursor(binary=True)

    def _tenant(self, scope: Scope) -> str:
        if isinstance(scope.tenant, str):
            return str(tenant_number(scope.tenant))
        return "" if scope.tenant is None else str(scope.tenant)

    def read(self, scope: Scope, work: Callable[[Session], T]) -> T:
        def attempt(connection: Connection[Any]) -> T:
            with connection.pipeline():
                cursor = self._begin(connection, READ, scope)
            result = work(self._session(cursor))
            cursor.execute("COMMIT")
            return result

        return self._retried(attempt)

    def glance(self, scope: Scope, query: Query, **parameters: Any) -> list[Row]:
        def attempt(connection: Connection[Any]) -> list[Row]:
            with connection.pipeline():
                cursor = self._begin(connection, GLANCE, scope)
                rows = self._session(cursor).all(query, **parameters)
                connection.cursor().execute("COMMIT")
            return rows

        return self._retried(attempt)

    def write(self, scope: Scope, work: Callable[[Session], T]) -> T:
        def attempt(connection: Connection[Any]) -> T:
            with connection.pipeline():
                cursor = self._begin(connection, WRITE, scope)
                run = connection.cursor
                if self._full:  # otherwise as the server is set, which is usually the same
                    run().execute("SELECT set_config('synchronous_commit', 'on', true)")
                if scope.spaces:
                    run().execute(LOCK, (int(self._tenant(scope)), list(scope.spaces)))
                number = run().execute(NUMBER).fetchall()[0][0]
            result = work(self._session(cursor))
            try:
                cursor.execute("COMMIT")
            except psycopg.Error as exc:
                if not is_lost(exc, broken=connection.broken) or not self._was_kept(number):
                    raise
            return result

        return self._retried(attempt)

    def _was_kept(self, number: str) -> bool:
        """Whether a transaction whose COMMIT got no answer took place. Raises
        StoreUnavailableError if that cannot be found out."""
        deadline = time.monotonic() + self.wait
        while time.monotonic() < deadline:
            try:
                with self._connections.one() as connection:
                    rows = connection.execute(OUTCOME, (number,)).fetchall()
            except psycopg.Error:
                _pause(0.1)
                continue
            if rows[0][0] in {"committed", "aborted"}:
                return bool(rows[0][0] == "committed")
            _pause(0.05)
        raise StoreUnavailableError(
            f"{self.description}: the server went away while it was asked to keep a write; whether "
            "it did is not known. Look before you repeat it"
        )

    def _retried(self, attempt: Callable[[Connection[Any]], T]) -> T:
        """Runs a transaction, and again while that may help and the wait is not over."""
        deadline = time.monotonic() + self.wait
        tries = 0
        while True:
            tries += 1
            lost = False
            try:
                with self._connections.one() as connection:
                    try:
                        return attempt(connection)
                    except BaseException as exc:
                        lost = is_lost(exc, broken=connection.closed)
                        raise
            except REFUSED as exc:
                again = lost or is_transient(exc) or self._connections.refused(exc)
                if not again:
                    raise translated(exc, self.description, self.wait) from exc
                if time.monotonic() >= deadline:
                    raise self._given_up(exc, lost=lost) from exc
            if lost:
                self._connections.renew()
            _pause(min(0.5, 0.002 * 2**tries))

    def _given_up(self, exc: Exception, *, lost: bool) -> Exception:
        if lost or not is_transient(exc):
            return translated(exc, self.description, self.wait)
        return busy(self.description, self.wait)

    # Upkeep

    def purge_residue(self, *, thorough: bool = False, quietly: bool = False) -> bool:
        """What is deleted stays in dead rows until VACUUM, in the log and in backups for as long
        as the operator keeps them: nothing that a client could clear."""
        return False

    def drop_copies(self, tenant: int, spaces: Mapping[int, Sequence[bytes] | None]) -> bool:
        return True  # this back end makes none

    def scrub(self) -> None:
        raise ConfigurationError(
            f"{self.description}: on PostgreSQL, what is left of deleted text is cleared by the "
            "database's administrator: VACUUM FULL, and the end of old WAL and backups"
        )

    def check(self) -> list[Finding]:
        from cofire.store.postgres_opening import problems

        with self._connections.one() as connection:
            found = problems(connection)
        if not found:
            return []
        message = f"{self.description}: the database is not as Cofire made it"
        return [
            Finding(code="schema", message=message, count=len(found), examples=tuple(found[:5]))
        ]

    def owns(self, place: Path) -> bool:
        return False

    def sidecar(self, tenant: int, space: int) -> Path | None:
        return None  # processes on PostgreSQL keep no files

    def size(self) -> int:
        return 0  # tenants share the tables: what one takes is not known

    def backup(self, target: Path, progress: Progress | None) -> None:
        raise ConfigurationError(
            f"{self.description}: back up PostgreSQL with its own tools (pg_dump, pg_basebackup), "
            "or copy a tenant with `cofire db copy`"
        )

    def restore(self, source: Path, progress: Progress | None) -> None:
        raise ConfigurationError(
            f"{self.description}: restore PostgreSQL with its own tools, or copy a tenant with "
            "`cofire db copy`"
        )


def _pause(seconds: float) -> None:
    time.sleep(seconds * random.uniform(0.5, 1.5))  # noqa: S311 - not a secret

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

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import psycopg
from psycopg.pq import PipelineStatus

from cofire.errors import (
    ConfigurationError,
    StoreError,
    StoreUnavailableError,
)
from cofire.store.postgres_connections import Connections
from cofire.store.postgres_errors import (
    REFUSED,
    busy,
    is_lost,
    is_transient,
    may_pass,
    translated,
)
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
# As a command: Citus hands on what SET LOCAL sets to the machines that hold the rows, and not what
# set_config does. A number, which needs no parameter.
OWN = "SET LOCAL cofire.tenant = '{}'"
SETTINGS = (
    "SELECT set_config('search_path', 'cofire, public, pg_temp', true), "
    "set_config('statement_timeout', %s, true), "
    "set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), "
    "set_config('idle_in_transaction_session_timeout', %s, true), "
    "set_config('lock_timeout', %s, true)"
)
LOCK = "SELECT id FROM spaces WHERE tenant = %s AND id = ANY(%s) ORDER BY id FOR UPDATE"
MARK = """
INSERT INTO counters (tenant, name, value) VALUES (%s, %s, %s)
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value
RETURNING (SELECT before.value FROM counters AS before
    WHERE before.tenant = counters.tenant AND before.name = counters.name)
"""
OUTCOME = """
INSERT INTO counters (tenant, name, value) VALUES (%s, %s, 0)
ON CONFLICT (tenant, name) DO UPDATE SET value = counters.value RETURNING value
"""
PLACES = 1000
"""How many rows of a tenant's counters are for marks, at most."""
LEAST_LOOK = 5.0
"""Seconds that finding out about a COMMIT without answer may take, however short the wait."""


class _Mark(NamedTuple):
    """What a write leaves in a row of `counters`, by which it is known whether it was kept. The
    number of a transaction would not do: after a crash it may be given to another one."""

    tenant: int
    name: str
    before: int | None
    value: int


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
        self._salt = os.urandom(8)
        self._full = durability == "full"
        self._compiled: dict[Query, Compiled] = {}
        self._sealed: dict[Query, Compiled] = {}

    def close(self) -> None:
        self._connections.close()

    # Transactions

    def _session(self, cursor: Cursor[Any]) -> Session:
        return Session(cursor, self.flavour, self._compiled, self._sealed, self.vault)

    def _begin(
        self, connection: Connection[Any], begin: str, tenant: str, deadline: float
    ) -> Cursor[Any]:
        """Begins a transaction that says what it is about; nothing is sent before the first
        answer is wanted."""
        lock_timeout = str(max(1, round((deadline - time.monotonic()) * 1000)))
        limit = self._statement_timeout
        connection.cursor().execute(begin)
        connection.cursor().execute(OWN.format(tenant).encode(), prepare=False)
        connection.cursor().execute(SETTINGS, (limit, limit, lock_timeout))
        return connection.cursor(binary=True)

    def read(self, scope: Scope, work: Callable[[Session], T]) -> T:
        def attempt(connection: Connection[Any], deadline: float) -> T:
            with connection.pipeline():
                cursor = self._begin(connection, READ, _tenant(scope), deadline)
            result = work(self._session(cursor))
            cursor.execute("COMMIT")
            return result

        return self._retried(attempt)

    def glance(self, scope: Scope, query: Query, **parameters: Any) -> list[Row]:
        def attempt(connection: Connection[Any], deadline: float) -> list[Row]:
            with connection.pipeline():
                cursor = self._begin(connection, GLANCE, _tenant(scope), deadline)
                rows = self._session(cursor).asked(query, **parameters)
                connection.cursor().execute("COMMIT")
            return rows()  # they came with the answer to COMMIT: one round trip for all

        return self._retried(attempt)

    def write(self, scope: Scope, work: Callable[[Session], T]) -> T:
        tenant = _tenant(scope)

        def attempt(connection: Connection[Any], deadline: float) -> T:
            with connection.pipeline():
                cursor = self._begin(connection, WRITE, tenant, deadline)
                run = connection.cursor
                if self._full:  # otherwise as the server is set, which is usually the same
                    run().execute("SELECT set_config('synchronous_commit', 'on', true)")
                if scope.spaces:
                    run().execute(LOCK, (int(tenant), list(scope.spaces)))
                marking = self._marking(connection, tenant) if tenant else None
            # Read only here: within, that would be a round trip of its own.
            mark = marking() if marking is not None else None
            result = work(self._session(cursor))
            try:
                cursor.execute("COMMIT")
            except psycopg.Error as exc:
                lost = is_lost(exc, broken=connection.closed)
                if not lost or not self._was_kept(mark, deadline, exc):
                    raise
            else:
                if cursor.statusmessage != "COMMIT":  # a statement failed, and `work` went on
                    raise StoreError(f"{self.description}: nothing was kept; a statement failed")
            return result

        return self._retried(attempt)

    def _marking(self, connection: Connection[Any], tenant: str) -> Callable[[], _Mark]:
        """Leaves a mark; what is returned says which, when the answer is there."""
        place = hash((self._salt, connection.info.backend_pid)) % PLACES
        name, value = f"write {place}", int.from_bytes(os.urandom(7), "little") + 1
        cursor = connection.cursor().execute(MARK, (int(tenant), name, value))
        return lambda: _Mark(
            tenant=int(tenant), name=name, before=cursor.fetchall()[0][0], value=value
        )

    def _was_kept(self, mark: _Mark | None, deadline: float, lost: Exception) -> bool:
        """Whether a transaction whose COMMIT got no answer took place. Raises
        StoreUnavailableError if that cannot be found out."""
        self._connections.renew()
        deadline = max(deadline, time.monotonic() + LEAST_LOOK)
        while mark is not None and time.monotonic() < deadline:
            try:
                # Not from the pool, where the one that is gone still has its place.
                with closing(self._connections.connect(deadline - time.monotonic())) as connection:
                    self._begin(connection, WRITE, str(mark.tenant), deadline)
                    # Waits for the transaction, if the server has not noticed yet that we are gone.
                    found = connection.execute(OUTCOME, mark[:2]).fetchall()[0][0]
            except psycopg.Error:
                _pause(0.05)
                continue
            if found == mark.value:
                return True
            if found == (mark.before or 0):
                return False
            break  # another writer has used this row since
        raise StoreUnavailableError(
            f"{self.description}: the server went away while it was asked to keep a write; whether "
            "it did is not known. Look before you repeat it"
        ) from lost

    def _retried(self, attempt: Callable[[Connection[Any], float], T]) -> T:
        """Runs a transaction, and again while that may help and the wait is not over."""
        deadline = time.monotonic() + self.wait
        tries = 0
        while True:
            tries += 1
            reached = lost = False
            try:
                with self._connections.one(deadline - time.monotonic()) as connection:
                    reached = True
                    try:
                        return attempt(connection, deadline)
                    except REFUSED as exc:
                        # Stuck in a pipeline: its session ended behind a pooler that is still there
                        # (a COMMIT of a write is never in one).
                        stuck = connection.pgconn.pipeline_status != PipelineStatus.OFF
                        lost = is_lost(exc, broken=connection.closed or stuck)
                        raise
            except REFUSED as exc:
                again = (lost or is_transient(exc)) if reached else may_pass(exc)
                if not again:
                    raise translated(exc, self.description, self.wait) from exc
                # A connection that died while it lay idle says nothing about the server.
                stale = lost and tries == 1
                if time.monotonic() >= deadline and not stale:
                    raise self._given_up(exc) from exc
            if lost:
                self._connections.renew()
            _pause(min(0.5, 0.002 * 2**tries))

    def _given_up(self, exc: Exception) -> Exception:
        if is_transient(exc):
            return busy(self.description, self.wait)
        return translated(exc, self.description, self.wait)

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

        found = self._retried(lambda connection, _: problems(connection))
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


def _tenant(scope: Scope) -> str:
    """A scope's tenant as the setting that row-level security compares; "" for none."""
    if isinstance(scope.tenant, str):
        return str(tenant_number(scope.tenant))
    return "" if scope.tenant is None else str(scope.tenant)


def _pause(seconds: float) -> None:
    time.sleep(seconds * random.uniform(0.5, 1.5))  # noqa: S311 - not a secret

"""New SQLite stores without the migrations, which take most of the time of making one.

Thousands of tests begin with an empty store, and each is the same: five revisions, one after the
other. The first of a test run is made by them; others repeat what is in it, statement by statement
and row by row. Tests of migrations ask for `migrated_new_stores`; processes that tests start know
nothing of this.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from cofire.store import sqlite_files
from cofire.store.sqlite import SQLiteBackend
from cofire.store.sqlite_places import APPLICATION_ID

_migrated = sqlite_files._migrate


@dataclass(frozen=True, slots=True, kw_only=True)
class _Empty:
    """What is in an empty store: its schema, and the rows that it has from the beginning."""

    schema: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[object, ...], ...]], ...]

    @classmethod
    def of(cls, connection: sqlite3.Connection) -> _Empty:
        found = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        own = [one for one in found if not one[1].startswith("sqlite_")]
        # Other tables are empty, unless another process has found the new store already.
        rows = {
            table: connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
            for table in ("alembic_version", "sqlite_stat1")
        }
        return cls(
            schema=tuple(sql for _, _, sql in own if sql is not None),
            rows=tuple((table, tuple(kept)) for table, kept in rows.items()),
        )

    def make(self, connection: sqlite3.Connection) -> None:
        for statement in self.schema:
            connection.execute(statement)
        connection.execute("ANALYZE")  # makes the table of statistics
        connection.execute("DELETE FROM sqlite_stat1")
        for table, rows in self.rows:
            places = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)  # noqa: S608
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


_empty: list[_Empty] = []


def _migrate(backend: SQLiteBackend, *, keep_copy: bool = True) -> None:
    with closing(backend.connect()) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            new = sqlite_files.schema_revision(connection, backend.path) is None
            if new and _empty:
                _empty[0].make(connection)
            connection.execute("COMMIT")
        except sqlite3.Error as exc:
            raise backend.translate(exc) from exc
        if new and _empty:
            return
        _migrated(backend, keep_copy=keep_copy)
        if new and not _empty:
            _empty.append(_Empty.of(connection))


@pytest.fixture(autouse=True, scope="session")
def quick_new_stores() -> Iterator[None]:
    """New stores are made quicker from here on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_files, "_migrate", _migrate)
        yield


@pytest.fixture(scope="module")
def migrated_new_stores() -> Iterator[None]:
    """New stores are made by the migrations, as everywhere but in tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_files, "_migrate", _migrated)
        yield

"""Opening an SQLite store: making the file, recognising it, bringing its schema up to date."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cofire.errors import FormatError, NotFoundError, SchemaVersionError, StoreUnavailableError
from cofire.store.migrations import HEAD, NEW_STORE, REVISIONS
from cofire.store.schema import SPACE_TABLES
from cofire.store.sqlite import SQLiteBackend
from cofire.store.sqlite_copies import copy_before
from cofire.store.sqlite_places import APPLICATION_ID
from cofire.store.sqlite_schema import schema_differences
from cofire.types import Progress

if TYPE_CHECKING:
    from sqlalchemy import Connection


def open_file(
    path: Path,
    *,
    create: bool,
    busy_timeout: float,
    durability: str,
    url_options: dict[str, str] | None = None,
) -> SQLiteBackend:
    """A back end on a file whose schema is current.

    Raises NotFoundError (missing and `create` is false), StoreUnavailableError, StoreBusyError,
    StoreCorruptError (not a database), SchemaVersionError (made by a newer Cofire), FormatError
    (somebody else's database).
    """
    path = path.expanduser().absolute()
    _prepare_file(path, create=create)
    backend = SQLiteBackend(
        path, busy_timeout=busy_timeout, durability=durability, url_options=url_options
    )
    try:
        # Asked before anything is written, so that a foreign database is left as it is.
        _recognise(backend)
        backend.prepare()
        if _recognise(backend) != HEAD:
            _migrate(backend)
    except BaseException:
        backend.close()
        raise
    return backend


def upgrade_file(
    path: Path, *, busy_timeout: float, url_options: dict[str, str] | None = None
) -> tuple[str | None, Path | None]:
    """Brings the schema of a file to the present revision, as opening does; returns the revision
    before (None: the file was empty) and the copy that was made first, if one was.

    Raises what `open_file` does.
    """
    path = path.expanduser().absolute()
    before = revision_of_file(path, url_options=url_options)
    backend = open_file(
        path, create=False, busy_timeout=busy_timeout, durability="full", url_options=url_options
    )
    backend.close()
    copy = copy_before(path, before) if before not in {None, HEAD} else None
    return before, copy if copy is not None and copy.exists() else None


def revision_of_file(path: Path, *, url_options: dict[str, str] | None = None) -> str | None:
    """The schema revision of a file as it is, or None if it is empty. Raises what `open_file`
    does."""
    path = path.expanduser().absolute()
    _prepare_file(path, create=False)
    backend = SQLiteBackend(path, url_options=url_options)
    try:
        return _recognise(backend)
    finally:
        backend.close()


def _prepare_file(path: Path, *, create: bool) -> None:
    if path.is_dir():
        raise StoreUnavailableError(f"{path}: this is a folder; name a file in it")
    try:
        if not path.exists():
            if not create:
                raise NotFoundError(f"{path}: no such store")
            path.parent.mkdir(parents=True, exist_ok=True)
            # Memories are private: SQLite gives its log files the mode of this one.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        elif not stat.S_ISREG(path.stat().st_mode):
            raise StoreUnavailableError(f"{path}: this is not a regular file; name another")
    except OSError as exc:
        raise StoreUnavailableError(
            f"{path}: the store cannot be made or reached here ({exc.strerror}); give this user "
            "write permission to the folder, or choose another place"
        ) from exc
    for place, what in ((path, "file"), (path.parent, "folder")):
        if not os.access(place, os.W_OK):
            raise StoreUnavailableError(
                f"{path}: the {what} is read-only; even to read it, SQLite must write to the file "
                f"and make its log beside it. Give this user write permission to {place}, or copy "
                "the store to a writable folder and open it there"
            )


def _recognise(backend: SQLiteBackend) -> str | None:
    """The schema revision, or None for an empty file."""
    connection = backend.connect()
    try:
        revision = schema_revision(connection, backend.path)
    except sqlite3.Error as exc:
        raise backend.translate(exc) from exc
    finally:
        connection.close()
    if revision is not None and revision not in REVISIONS:
        raise SchemaVersionError(
            f"{backend.path}: this store has schema {revision}, and this version of Cofire knows "
            f"them up to {HEAD}. Upgrade Cofire (`pip install --upgrade cofire`); the file was not "
            "touched"
        )
    return revision


def schema_revision(connection: sqlite3.Connection, path: Path) -> str | None:
    """The schema revision that a database says it has, or None if it is empty.

    Raises FormatError if it is somebody else's database.
    """
    tables = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    application = connection.execute("PRAGMA application_id").fetchall()[0][0]
    if not tables and application in {0, APPLICATION_ID}:
        return None
    if application == APPLICATION_ID and "alembic_version" in tables:
        rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        return str(rows[0][0]) if rows else None
    raise FormatError(f"{path}: this is a database of another program, not a Cofire store")


def _migrate(backend: SQLiteBackend, *, keep_copy: bool = True) -> None:
    """Upgrades the schema in one transaction; an older store is first copied beside itself. A new
    one gets what the migrations would make, without them: that takes 17 ms in place of 80, and
    Alembic is not loaded."""
    if _made_new(backend):
        return
    with _transaction(backend) as connection:
        # Another process may have done it while this one waited for the lock.
        raw: Any = connection.connection.driver_connection
        revision = schema_revision(raw, backend.path)
        if revision == HEAD:
            return
        if revision is not None and keep_copy:
            backend.backup(copy_before(backend.path, revision), None)
        _run_migrations(connection)


def _made_new(backend: SQLiteBackend) -> bool:
    """Makes the tables of an empty file; whether it was one."""
    with closing(backend.connect()) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            new = schema_revision(connection, backend.path) is None
            if new:
                _make_new(connection)
            connection.execute("COMMIT")
        except sqlite3.Error as exc:
            raise backend.translate(exc) from exc
    return new


def migrate_anew(path: Path) -> None:
    """Makes an empty store by the migrations alone: what `migrations.NEW_STORE` is made of."""
    with (
        closing(SQLiteBackend(path, busy_timeout=0.0)) as backend,
        _transaction(backend) as connection,
    ):
        _run_migrations(connection)


def _run_migrations(connection: Connection) -> None:
    from cofire.store import migrations

    migrations.upgrade(connection)
    raw: Any = connection.connection.driver_connection
    _fix_statistics(raw)
    raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _make_new(connection: sqlite3.Connection) -> None:
    new = json.loads(NEW_STORE.read_text(encoding="utf-8"))
    for statement in new["schema"]:
        connection.execute(statement)
    connection.execute("ANALYZE")  # makes the table of statistics
    connection.execute("DELETE FROM sqlite_stat1")
    for table, rows in new["rows"].items():
        places = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)  # noqa: S608
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


_ROWS_PER_VALUE = {
    "uid": 1,
    "key_hash": 1,
    "seq": 1,
    "number": 2,
    "time": 2,
    "version": 1,
    "revision": 10,
    "recall": 10,
    "source": 10,
    "target": 10,
    "session_hash": 20,
    "hash": 100,
    "parent": 20,
}


def _fix_statistics(connection: sqlite3.Connection) -> None:
    """Tells SQLite's planner once what the tables will look like.

    Without statistics it likes to scan an index of a whole space where looking up a few numbers
    is meant; with measured ones, plans would change with the data. These are rough and fixed.
    """
    connection.execute("ANALYZE")  # makes the table of statistics
    connection.execute("DELETE FROM sqlite_stat1")
    for table in SPACE_TABLES:
        for _, index, unique, origin, _ in connection.execute(
            "SELECT * FROM pragma_index_list(?)", (table.name,)
        ).fetchall():
            columns = [
                row[0]
                for row in connection.execute(
                    "SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,)
                )
            ]
            counts = [500_000, 100_000]  # rows of a tenant, of a space; a million in all
            for name in columns[2:]:
                counts.append(min(counts[-1], _ROWS_PER_VALUE.get(name, 10)))
            if unique:
                counts[-1] = 1
            clustered = origin == "pk" and not table.dialect_options["sqlite"]["with_rowid"]
            connection.execute(
                "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)",
                (
                    table.name,
                    table.name if clustered else index,
                    " ".join(str(count) for count in (1_000_000, *counts)),
                ),
            )


@contextmanager
def _transaction(backend: SQLiteBackend) -> Iterator[Connection]:
    """An SQLAlchemy connection inside BEGIN IMMEDIATE, for Alembic."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    engine = create_engine("sqlite://", creator=backend.connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as exc:
        if isinstance(exc.orig, sqlite3.Error):
            raise backend.translate(exc.orig) from exc
        raise
    finally:
        engine.dispose()


def restore(backend: SQLiteBackend, source: Path, progress: Progress | None) -> None:
    """Replaces a store's content by a backup's, as one transaction that other processes see.

    The backup is first copied, brought to the current schema and given higher revisions and
    counters than the store has: so every reader notices, and no id that was given out since the
    backup is given to something else. Raises NotFoundError, FormatError, SchemaVersionError.
    """
    _require_restorable(source)
    with tempfile.TemporaryDirectory(dir=backend.path.parent, prefix=".cofire-restore-") as folder:
        copy = SQLiteBackend(Path(folder) / "copy.db", durability="normal")
        try:
            _copy_into(copy, source)
            _require_schema(copy, source)
            _migrate(copy, keep_copy=False)
            prepared = copy.connect()
            try:
                live = backend.connect()
                try:
                    _outrun(prepared, live)
                finally:
                    live.close()
                backend.overwrite(prepared, progress)
            finally:
                prepared.close()
        except sqlite3.Error as exc:
            raise backend.translate(exc) from exc
        finally:
            copy.close()


def _copy_into(copy: SQLiteBackend, source: Path) -> None:
    origin = sqlite3.connect(f"file:{quote(str(source.absolute()))}?mode=ro", uri=True)
    try:
        target = copy.connect()
        try:
            origin.backup(target, pages=1024)
        finally:
            target.close()
    finally:
        origin.close()


def _require_schema(copy: SQLiteBackend, source: Path) -> None:
    """Refuses a backup with anything less or more than its revision has. Raises FormatError."""
    connection = copy.connect()
    try:
        found = schema_differences(connection, str(schema_revision(connection, source)))
    finally:
        connection.close()
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise FormatError(
            f"{source}: this is not a whole Cofire backup: {'; '.join(found[:3])}{more}. Nothing "
            "was replaced; restore another backup"
        )


REVISION_LEAP = 1_000
"""How far a restored space's revision leaps ahead: more than others can write meanwhile."""


def _outrun(prepared: sqlite3.Connection, live: sqlite3.Connection) -> None:
    """Gives a restored copy counters and revisions that no reader of the live store has seen."""
    prepared.execute("BEGIN IMMEDIATE")
    for counter in live.execute("SELECT tenant, name, value FROM counters").fetchall():
        prepared.execute(
            "INSERT INTO counters (tenant, name, value) VALUES (?, ?, ?) "
            "ON CONFLICT (tenant, name) DO UPDATE SET value = max(value, excluded.value)",
            counter,
        )
    rows = live.execute("SELECT tenant, id, revision, last_number FROM spaces").fetchall()
    for tenant, space, revision, last_number in rows:
        prepared.execute(
            "UPDATE spaces SET revision = max(revision, ?), last_number = max(last_number, ?) "
            "WHERE tenant = ? AND id = ?",
            (revision, last_number, tenant, space),
        )
    # What was deleted since the backup is back; its receipts stay, so that they can tell.
    receipts = live.execute("SELECT tenant, uid, time, body FROM receipts").fetchall()
    prepared.executemany(
        "INSERT OR REPLACE INTO receipts (tenant, uid, time, scrubbed, body) "
        "VALUES (?, ?, ?, 0, ?)",
        receipts,
    )
    prepared.execute("UPDATE receipts SET scrubbed = 0")
    prepared.execute("UPDATE spaces SET revision = revision + ?", (REVISION_LEAP,))
    prepared.execute("UPDATE spaces SET floor = revision")
    prepared.execute("COMMIT")


def _require_restorable(source: Path) -> None:
    """Checks that a file is a whole Cofire store of a schema this version can read.

    Raises NotFoundError, FormatError or SchemaVersionError.
    """
    if not source.is_file():
        raise NotFoundError(f"{source}: no such backup")
    try:
        connection = sqlite3.connect(f"file:{quote(str(source))}?mode=ro", uri=True)
        try:
            revision = schema_revision(connection, source)
            problems = connection.execute("PRAGMA quick_check(1)").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as exc:
        raise FormatError(f"{source}: this is not a readable Cofire backup: {exc}") from exc
    if revision is None:
        raise FormatError(f"{source}: this database is empty, not a Cofire backup")
    if revision not in REVISIONS:
        raise SchemaVersionError(
            f"{source}: this backup has schema {revision}, and this version of Cofire knows them "
            f"up to {HEAD}; upgrade Cofire"
        )
    if problems[0][0] != "ok":
        raise FormatError(f"{source}: this backup is damaged: {problems[0][0]}")

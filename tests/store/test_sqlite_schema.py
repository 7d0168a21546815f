"""A backup must be what the migrations make: nothing less, and nothing that would keep texts."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cofire.errors import FormatError
from cofire.memory import Memory
from cofire.store import migrations, open_store, sqlite_files
from cofire.store.sqlite import SQLiteBackend
from cofire.store.sqlite_schema import schema_differences
from cofire.testing import an_item, make_space

KEEPS = (
    "CREATE TRIGGER t AFTER INSERT ON items BEGIN INSERT INTO tenants VALUES (9, new.content); END"
)


def changed(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (("DROP TABLE links",), "the table links is missing"),
        (("DROP INDEX ix_items_uid",), "the index ix_items_uid is missing"),
        (("ALTER TABLE items DROP COLUMN language",), "the table items is not as it should be"),
        (("ALTER TABLE items ADD COLUMN more TEXT",), "the table items is not as it should be"),
        (
            ("DROP INDEX ix_items_uid", "CREATE INDEX ix_items_uid ON items (tenant, space, uid)"),
            "the index ix_items_uid is not as it should be",
        ),
        (
            ("ALTER TABLE items ADD COLUMN more TEXT AS (content)",),
            "the table items is not as it should be",
        ),
        (
            (
                "DROP TABLE projections",
                "CREATE VIEW projections AS SELECT * FROM items",
            ),
            "the table projections is missing; the view projections is not ours",
        ),
        ((KEEPS,), "the trigger t is not ours"),
        (("CREATE VIEW v AS SELECT * FROM items",), "the view v is not ours"),
        (("CREATE TABLE loot (x)",), "the table loot is not ours"),
        (("CREATE INDEX loot ON items (content)",), "the index loot is not ours"),
    ],
)
def test_a_backup_of_another_schema_is_refused_and_nothing_replaced(
    tmp_path: Path, statements: tuple[str, ...], reason: str
) -> None:
    with open_store(tmp_path / "m.db") as store:
        space = make_space(store)
        store.append(space, [an_item("kept")])
        store.backup(tmp_path / "copy.db")
        changed(tmp_path / "copy.db", *statements)
        with pytest.raises(FormatError, match=f"{reason}.*Nothing was replaced"):
            store.restore(tmp_path / "copy.db")
        assert [row.content for row in store.iterate_items(space)] == ["kept"]
        assert list(store.check()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "m.db"]


def test_statistics_of_its_own_make_no_difference(tmp_path: Path) -> None:
    with open_store(tmp_path / "m.db") as store:
        store.append(make_space(store), [an_item("kept")])
        store.backup(tmp_path / "copy.db")
        changed(tmp_path / "copy.db", "ANALYZE")
        store.restore(tmp_path / "copy.db")
        assert list(store.check()) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [("DROP TABLE links", "the table links is missing"), (KEEPS, "the trigger t is not ours")],
)
def test_check_reports_another_schema(tmp_path: Path, statement: str, found: str) -> None:
    path = tmp_path / "m.db"
    with Memory.open(path, vectors=False) as memory:
        memory.remember("one")
    changed(path, statement)
    with Memory.open(path, vectors=False) as memory:
        (finding,) = memory.check()
    assert finding.code == "schema"
    assert found in finding.examples


@pytest.mark.parametrize("revision", migrations.REVISIONS)
def test_every_revision_is_known_by_its_tables(tmp_path: Path, revision: str) -> None:
    connection = sqlite3.connect(tmp_path / "none.db")
    found = schema_differences(connection, revision)
    connection.close()
    assert "the table items is missing" in found


def everything(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
        found: list[object] = list(schema)
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            found += [table, *connection.execute(f"SELECT * FROM {table} ORDER BY 1")]  # noqa: S608
        for name in ("application_id", "user_version", "journal_mode", "page_size", "auto_vacuum"):
            found += connection.execute(f"PRAGMA {name}").fetchall()
        return found


def test_new_stores_are_what_the_migrations_make(tmp_path: Path) -> None:
    with closing(SQLiteBackend(tmp_path / "migrated.db", busy_timeout=0.0)) as backend:
        backend.prepare()
    sqlite_files.migrate_anew(tmp_path / "migrated.db")
    open_store(tmp_path / "new.db").close()
    assert everything(tmp_path / "new.db") == everything(tmp_path / "migrated.db")


def test_what_new_stores_are_made_of_is_fresh() -> None:
    script = Path(__file__).resolve().parents[2] / "scripts" / "make_new_store.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0

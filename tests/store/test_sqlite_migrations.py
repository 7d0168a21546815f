"""Files of every released schema are brought on to the present one with all that they hold.

schema-0001.db.gz is tested in test_sqlite_files; data/make_old_store.py says how the others were
made, each by the code of its time.
"""

from __future__ import annotations

import gzip
import importlib.util
import multiprocessing
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cofire import Memory
from cofire.settings import Settings, load_settings
from cofire.store import migrations, open_store
from cofire.store.sqlite_schema import schema_differences
from cofire.types import SpaceRef

DATA = Path(__file__).parent / "data"
FORMER = migrations.REVISIONS[:-1]
REMADE = {"alembic_version", "tenants", "models", "counters", "checkpoints"}
"""Tables that revision 0004 makes of other rows, or drops."""
TENANTS = ("default", "harbour")
NOW = "2026-04-01T00:00Z"


def maker() -> Any:
    """The program that wrote the files, for its key and its texts."""
    spec = importlib.util.spec_from_file_location("make_old_store", DATA / "make_old_store.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = maker()


def old_store(folder: Path, revision: str) -> Path:
    path = folder / "m.db"
    path.write_bytes(gzip.decompress((DATA / f"schema-{revision}.db.gz").read_bytes()))
    return path


def rows(path: Path, columns: dict[str, list[str]] | None = None) -> dict[str, list[Any]]:
    """Every row of every table that has any, in order; only of `columns` where they are given."""
    with closing(sqlite3.connect(path)) as connection:
        found = {}
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        ).fetchall():
            if columns is not None and table not in columns:
                continue
            names = _columns(connection, table) if columns is None else columns[table]
            listed = ", ".join(f'"{name}"' for name in names)
            query = f"SELECT {listed} FROM {table}"  # noqa: S608 - names from the file itself
            found[table] = sorted(connection.execute(query), key=repr)
        return found


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def columns_of(path: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        ).fetchall()
        return {table: _columns(connection, table) for (table,) in tables if table not in REMADE}


def revision_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def opened(path: Path, identity: str = "agent", tenant: str = "default", **more: Any) -> Memory:
    return Memory.open(path, identity, tenant=tenant, create=False, settings=settings(), **more)


def settings() -> Settings:
    return load_settings(embedder="hashing:16", encryption_key=MAKER.KEY)


@pytest.mark.parametrize("revision", FORMER)
def test_every_row_comes_through(tmp_path: Path, revision: str) -> None:
    path = old_store(tmp_path, revision)
    columns = columns_of(path)
    before, others = rows(path, columns), rows(path)
    open_store(path).close()
    assert revision_of(path) == migrations.HEAD
    with closing(sqlite3.connect(path)) as connection:
        assert schema_differences(connection, migrations.HEAD) == []
    after = rows(path)
    if revision == "0001":  # whose events spoke of memories that were not there
        before.pop("events")
    assert {table: rows(path, columns)[table] for table in before} == before
    assert after["tenants"] == others["tenants"]
    if revision < "0004":
        _require_remade(columns["spaces"], before, others, after)
    else:
        remade = REMADE & others.keys() - {"alembic_version"}
        assert {table: after[table] for table in remade} == {
            table: others[table] for table in remade
        }
    copy = tmp_path / f"m.db.schema-{revision}.backup"
    assert revision_of(copy) == revision
    assert rows(copy) == others


def _require_remade(
    spaces: list[str],
    before: dict[str, list[Any]],
    others: dict[str, list[Any]],
    after: dict[str, list[Any]],
) -> None:
    """Tenants have what revision 0004 gave to each."""
    tenants = [number for number, _ in after["tenants"]]
    # Each tenant has the models that it used, and counts on from where all of them were.
    used = {
        (row[spaces.index("tenant")], row[spaces.index("model")])
        for row in before["spaces"]
        if row[spaces.index("model")] is not None
    }
    assert {row[:2] for row in after["models"]} == used
    assert {row[1:] for row in after["models"]} == set(others["models"])
    assert after["counters"] == sorted(
        [
            (tenant, name, value)
            for tenant in tenants
            for name, value in others["counters"]
            if name != "tenant"
        ],
        key=repr,
    )


@pytest.mark.parametrize("revision", ["0002", "0003", "0004"])
@pytest.mark.parametrize("tenant", TENANTS)
def test_what_was_remembered_is_recalled(tmp_path: Path, revision: str, tenant: str) -> None:
    path = old_store(tmp_path, revision)
    with opened(path, projects="pier", tenant=tenant) as memory:
        assert list(memory.check()) == []
        assert [str(space.space) for space in memory.stats().spaces] == [
            f"{tenant}/agent", f"{tenant}/project:pier",
        ]  # fmt: skip
        learned = memory.strengths(now=NOW)
        found = memory.recall("Where is the boathouse key?", k=3)
        assert "The boathouse key hangs behind the clock." in [hit.content for hit in found]
        assert memory.recall("pier", k=1)[0].content == "The pier is closed."
        (ferry,) = [item for item in memory.list(limit=200) if "Juist" in item.content
                    and item.kind == "episode"]  # fmt: skip
        assert ferry.content == "The ferry to Juist leaves at ten."
        assert [version.content for version in memory.history(ferry.id)] == [MAKER.TURNS[0][3]]
        assert [link.strength for link in memory.links(ferry.id) if link.type == "related"] == [0.4]
        assert learned
        assert memory.replay() == 0  # the links are what the log says
        assert memory.strengths(now=NOW) == learned


@pytest.mark.parametrize("revision", ["0002", "0003", "0004"])
def test_life_goes_on(tmp_path: Path, revision: str) -> None:
    path = old_store(tmp_path, revision)
    known = set(rows(path, {"spaces": ["tenant", "id"]})["spaces"])
    with opened(path) as memory:
        recall = memory.recall("Where is the boathouse key?", k=5)
        clock = next(hit for hit in recall.items if hit.content == MAKER.TURNS[3][3])
        memory.feedback(recall, used=recall.ids[:2])
        receipt = memory.forget(clock.id)
        assert memory.verify(receipt)
        assert not any("clock" in item.content for item in memory.list(limit=200))
        memory.remember("The boathouse has been sold.")
        assert "sold" in memory.recall("boathouse sold", k=1)[0].content
        memory.consolidate()
        assert list(memory.check()) == []
    assert not list(tmp_path.glob("*.backup"))  # it held what was forgotten
    with open_store(path) as store:
        for tenant in TENANTS:
            made = store.space(SpaceRef(tenant=tenant, identity="new"), create=True)
            assert made is not None
            assert (made.tenant_id, made.space_id) not in known


@pytest.mark.parametrize("revision", ["0003", "0004"])
def test_derived_records_and_receipts_come_through(tmp_path: Path, revision: str) -> None:
    path = old_store(tmp_path, revision)
    with opened(path) as memory:
        facts = memory.records("Mara", kinds="fact")
        assert any("Leer" in record.item.content for record in facts)
        (receipt,) = memory.receipts()
        assert memory.verify(receipt)
        assert memory.reports()
        assert "ferry" in memory.hydrate().text


@pytest.mark.parametrize("revision", ["0003", "0004"])
def test_an_encrypted_space_comes_through(tmp_path: Path, revision: str) -> None:
    path = old_store(tmp_path, revision)
    with opened(path, "sealed") as memory:
        assert list(memory.check()) == []
        assert "clock" in memory.recall("boathouse key", k=3).text
        memory.remember("The tide is out.", speaker="Ilse")
        assert "tide" in memory.recall("tide", k=1).text
    assert b"boathouse key hangs" not in b"".join(
        content.encode()
        for (content,) in _query(path, "SELECT content FROM items WHERE space = 6 AND parent = 0")
    )


def _query(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def _open_at_once(path: Path, barrier: Any, answers: Any) -> None:
    barrier.wait(30)
    with opened(path) as memory:
        answers.put([item.content for item in memory.recall("boathouse key", k=3)])


def test_processes_that_open_it_at_once_migrate_it_once(tmp_path: Path) -> None:
    path = old_store(tmp_path, "0003")
    processes = multiprocessing.get_context("spawn")
    barrier, answers = processes.Barrier(3), processes.Queue()
    started = [
        processes.Process(target=_open_at_once, args=(path, barrier, answers)) for _ in range(3)
    ]
    for process in started:
        process.start()
    found = [answers.get(timeout=60) for _ in started]
    for process in started:
        process.join(30)
    assert [process.exitcode for process in started] == [0, 0, 0]
    assert found[0] == found[1] == found[2]
    assert revision_of(path) == migrations.HEAD
    assert [copy.name for copy in tmp_path.glob("*.backup")] == ["m.db.schema-0003.backup"]
    assert revision_of(tmp_path / "m.db.schema-0003.backup") == "0003"
    with opened(path) as memory:
        assert list(memory.check()) == []


@pytest.mark.parametrize("revision", FORMER)
def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_store(tmp_path, revision)
    before = rows(path)
    whole: Callable[..., None] = migrations.upgrade

    def stumble(connection: Any, **options: Any) -> None:
        whole(connection, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(migrations, "upgrade", stumble)
    with pytest.raises(KeyboardInterrupt):
        open_store(path)
    assert rows(path) == before
    monkeypatch.undo()
    open_store(path).close()
    assert revision_of(path) == migrations.HEAD

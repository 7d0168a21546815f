"""Copies between stores, SQLite and PostgreSQL: whole, equal, resumed after a kill, or refused."""

from __future__ import annotations

import gzip
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofire import Memory
from cofire.errors import (
    ConfigurationError,
    InputError,
    NotFoundError,
    StoreBusyError,
    StoreCorruptError,
    StoreUnavailableError,
)
from cofire.settings import load_settings
from cofire.store import Store, copied_rows, copied_serving, copier, open_store
from cofire.store.copy_report import CopyReport
from cofire.store.copying import copy_store, discard_copies
from cofire.store.records import tenant_number
from cofire.store.schema import SPACE_TABLES, metadata
from cofire.store.sealing import parse_key
from cofire.testing import an_item, full_item, make_space
from cofire.testing.serving import DIGEST, HASH, a_key, an_entry, begun
from cofire.types import SpaceRef
from confirming import forget_all
from postgres_server import Database

SOURCE = Path(__file__).resolve().parents[2] / "src"
DATA = Path(__file__).parents[1] / "store" / "data" / "schema-0003.db.gz"
KEY = "Y29maXJlIHRlc3RzOiBhIGtleSBvZiAzMiBieXRlcyE="
TENANTS = ("default", "harbour")
WHO = (("default", "agent"), ("harbour", "agent"), ("default", "sealed"))
NOT_COPIED = {"claims", "jobs", "idempotency"}
QUESTIONS = ("Where is the boathouse key?", "ferry", "Who lives in Emden?")
KILLED_AFTER = """
    import os, signal, sys
    from cofire.store import copied_rows, open_store
    from cofire.store.copying import copy_store
    from cofire.store.sealing import parse_key
    source, target, key, calls = *sys.argv[1:4], int(sys.argv[4])
    copied_rows.PAGE = 50
    def told(done, total):
        global calls
        calls -= 1
        if calls == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    key = parse_key(key, "key")
    with open_store(source, master_key=key) as one, open_store(target, master_key=key) as other:
        copy_store(one, other, progress=told)
"""


def opened(where: str | Path, key: str | None = KEY) -> Store:
    return open_store(where, master_key=None if key is None else parse_key(key, "key"))


def remembered(where: str | Path, tenant: str, identity: str) -> Memory:
    settings = load_settings(encryption_key=KEY, embedder="hashing:16")
    projects = () if identity == "sealed" else "pier"
    return Memory.open(where, identity, projects=projects, tenant=tenant, settings=settings)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with something in every table, whose tenants were counted: 1 and 2."""
    path = tmp_path_factory.mktemp("everything") / "m.db"
    path.write_bytes(gzip.decompress(DATA.read_bytes()))
    with remembered(path, "harbour", "passing") as memory:
        memory.remember("On the way to Juist.", time="2026-03-02T09:00Z")
        forget_all(memory)
    with remembered(path, "default", "agent") as memory:
        recall = memory.recall("ferry", now="2026-03-09T12:00Z")
        memory.feedback(recall, used=[recall.items[0].id], now="2026-03-09T12:01Z")
        memory.archive(memory.remember("The old boat was sold.", time="2026-03-01T12:00Z").id)
    with opened(path) as store:
        for who in (SpaceRef(identity="agent"), SpaceRef(identity="sealed")):
            space = store.space(who, create=False)
            assert space is not None
            store.put_projection(space, 1, np.eye(16, dtype="<f4").tobytes())
            store.append(space, [an_item("Boats, all in all.", kind="shape", pending=True)])
        for tenant in TENANTS:
            store.put_key(tenant, a_key(users=("mara",)))
            store.write_audit([an_entry(3, tenant=tenant, space=1), an_entry(5, tenant=tenant)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for table in {*SPACE_TABLES, *metadata.sorted_tables}:
            (count,) = connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()  # noqa: S608
            assert count or table.name in NOT_COPIED, table.name
    return path.read_bytes()


@pytest.fixture
def full(everything: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "full.db"
    path.write_bytes(everything)
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "target.db")
    database: Database = request.getfixturevalue("postgres_store")
    return str(database.app_url)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied_rows, "PAGE", 50)


def copy(source: str | Path, target: str | Path, *tenants: str) -> CopyReport:
    with opened(source) as one, opened(target) as other:
        return copy_store(one, other, tenants or None)


def raw_rows(path: Path) -> dict[str, list[Any]]:
    """Every row of what is not encrypted, by table and tenant's name, as it is in the file."""
    found: dict[str, list[Any]] = {}
    with closing(sqlite3.connect(path)) as connection:
        names = dict(connection.execute("SELECT id, name FROM tenants").fetchall())
        sealed = set(
            connection.execute("SELECT tenant, id FROM spaces WHERE settings LIKE '%sealed%'")
        )
        for table in metadata.sorted_tables:
            rows = connection.execute(f'SELECT * FROM "{table.name}"').fetchall()  # noqa: S608
            columns = list(table.columns.keys())
            space = "id" if table.name == "spaces" else "space"
            kept = []
            for row in rows:
                values = dict(zip(columns, row, strict=True))
                if (values.get("tenant"), values.get(space)) in sealed:
                    continue
                tenant = values.pop("id" if table.name == "tenants" else "tenant")
                kept.append((names[tenant], *values.values()))
            found[table.name] = sorted(kept, key=repr)
    return found


def recalled(where: str | Path) -> list[Any]:
    """What is recalled, with scores; asking leaves its traces, so of stores that are done with."""
    found: list[Any] = []
    for tenant, identity in WHO:
        with remembered(where, tenant, identity) as memory:
            for question in QUESTIONS:
                hits = memory.recall(question, now="2026-03-10T08:00Z").items
                assert hits
                found.append([(hit.id, hit.score, hit.content) for hit in hits])
            found.append([(one.id, one.version, one.tags) for one in memory.list(limit=50).items])
            found.append([(link.source, link.target, link.strength) for link in links(memory)])
    return found


def links(memory: Memory) -> Iterator[Any]:
    for item in memory.list(limit=50).items:
        yield from memory.links(item.id)


def require_true_receipts(where: str | Path) -> None:
    """What was deleted, a memory and a whole space, is still said to be gone, and is."""
    for identity in ("agent", "passing"):
        with remembered(where, "harbour", identity) as memory:
            receipts = memory.receipts()
            assert receipts
            assert all(memory.verify(receipt).found == {} for receipt in receipts)


def test_there_and_back_again(full: Path, tmp_path: Path, postgres_store: Database) -> None:
    url, last = postgres_store.app_url, tmp_path / "last.db"
    there = copy(full, url)
    assert {one.table: one.rows for one in there.tables}["items"] > 150
    back = copy(url, last, *TENANTS)
    assert back.tables == there.tables
    assert {one.space: one.tables for one in back.spaces} == {
        one.space: one.tables for one in there.spaces
    }
    assert raw_rows(last) == raw_rows(full)
    for where in (url, last):
        with opened(where) as store:
            for tenant in TENANTS:
                assert list(store.check(tenant)) == []
                for space in store.spaces(tenant):
                    assert space.tenant_id == tenant_number(tenant)
                    assert store.replay(space) == 0
                    assert "copying" not in space.settings
        require_true_receipts(where)
    expected = recalled(full)
    assert recalled(url) == expected
    assert recalled(last) == expected


def test_what_is_encrypted_stays_so(
    full: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copied_rows, "PAGE", 5)  # also where masked hashes tell pages apart
    copy(full, target)
    with opened(target) as store:
        spaces = {space.ref.identity: space.encrypted for space in store.spaces("default")}
        assert spaces["sealed"]
        assert not spaces["agent"]
    with pytest.raises(ConfigurationError, match="no key is set"):
        Memory.open(target, "sealed", settings=load_settings(embedder="hashing:16"))
    if "://" not in target:
        assert b"ten. Since" not in Path(target).read_bytes()


def test_another_key_for_the_target_and_encryption_of_the_rest(full: Path, tmp_path: Path) -> None:
    new, path = b"k" * 32, tmp_path / "new.db"
    with opened(full) as one, open_store(path, master_key=new, encrypt_new=True) as other:
        copy_store(one, other)
        assert all(space.encrypted for space in other.spaces())
        assert list(other.check()) == []
    with pytest.raises(ConfigurationError, match="another key"):
        opened(path).spaces() and Memory.open(
            path, "agent", settings=load_settings(encryption_key=KEY, embedder="hashing:16")
        )


def test_without_the_key_nothing_is_written(full: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    with opened(full, None) as one, opened(empty) as other:
        with pytest.raises(ConfigurationError, match=r"default/sealed: .*Nothing was copied"):
            copy_store(one, other)
        assert other.spaces() == []
    with opened(full) as one, opened(empty, None) as other:
        with pytest.raises(ConfigurationError, match="no key is set"):
            copy_store(one, other)
        assert other.spaces() == []


def test_a_copy_that_is_killed_goes_on(full: Path, target: str, small_pages: None) -> None:
    seen = []
    for calls in (1, 5, 9, 14):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(KILLED_AFTER), full, target, KEY, str(calls)],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        with opened(target) as store:
            space = SpaceRef(identity="agent")
            with pytest.raises(StoreUnavailableError, match=r"run the\s+same|Run the same"):
                store.space(space, create=True)
            assert {finding.code for finding in store.check("default")} == {"copying"}
            seen.append(
                sum(len(one.settings["copying"]["tallies"]) for one in store.spaces("default"))
            )
    assert seen == sorted(set(seen))  # each went on where the one before it was killed
    report = copy(full, target)
    assert len(report.resumed) == 7
    assert report.restarted == ()
    with opened(full) as one, opened(target) as other:
        for tenant in TENANTS:
            assert list(other.check(tenant)) == []
            assert [space.ref for space in other.spaces(tenant)] == [
                space.ref for space in one.spaces(tenant)
            ]
    assert recalled(target) == recalled(full)


class StoppedError(Exception):
    """In place of a kill."""


def stop_after(calls: int) -> Callable[[int, int | None], None]:
    def told(done: int, total: int | None) -> None:
        nonlocal calls
        calls -= 1
        if calls == 0:
            raise StoppedError

    return told


def interrupted(source: Path, target: str | Path, calls: int) -> None:
    with opened(source) as one, opened(target) as other, pytest.raises(StoppedError):
        copy_store(one, other, progress=stop_after(calls))


def test_what_changed_meanwhile_is_copied_anew(full: Path, target: str, small_pages: None) -> None:
    interrupted(full, target, 4)
    with remembered(full, "default", "agent") as memory:
        memory.remember("The clock has stopped.", time="2026-03-11T08:00Z")
    report = copy(full, target)
    assert report.restarted == (SpaceRef(identity="agent"),)
    assert len(report.resumed) == 7
    with remembered(target, "default", "agent") as memory:
        assert memory.recall("Has the clock stopped?").items[0].content == "The clock has stopped."
        assert list(memory.check()) == []


def test_a_kill_while_tenants_are_finished(
    full: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = copier.Copier._close

    def stopped(self: Any, job: Any, made: Any) -> Any:
        if job.name == "harbour":
            raise StoppedError
        return close(self, job, made)

    with monkeypatch.context() as patched, pytest.raises(StoppedError):
        patched.setattr(copier.Copier, "_close", stopped)
        copy(full, target)
    report = copy(full, target)
    assert report.finished_before == ("default",)
    assert {one.space.tenant for one in report.spaces} == {"harbour"}
    with opened(target) as store:
        assert [*store.check("default"), *store.check("harbour")] == []
    with pytest.raises(InputError, match="already"):
        copy(full, target)


def test_a_wrong_row_is_found(full: Path, tmp_path: Path) -> None:
    path = tmp_path / "target.db"
    interrupted(full, path, 3)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE links SET strength = strength + 1e-9 WHERE space = 1")
    with pytest.raises(StoreCorruptError, match="default/agent: the table links in"):
        copy(full, path)
    with opened(path) as store:
        with pytest.raises(StoreUnavailableError, match="being copied"):
            store.space(SpaceRef(identity="agent"), create=False)
        assert len(discard_copies(store)) == 7
        assert store.spaces() == []
    copy(full, path)
    with opened(path) as store:
        assert list(store.check()) == []


def test_a_space_that_is_there_is_refused_and_nothing_written(full: Path, target: str) -> None:
    with opened(target) as store:
        make_space(store, "agent", "harbour")
    with pytest.raises(InputError, match=r"harbour/agent: this space is in .* already"):
        copy(full, target)
    with opened(target) as store:
        assert store.spaces("default") == []
        assert len(store.spaces("harbour")) == 1
    copy(full, target, "default")
    with opened(target) as store:
        assert len(store.spaces("default")) == 4


def test_into_a_tenant_with_spaces_of_its_own(full: Path, target: str) -> None:
    with opened(target) as store:
        own = make_space(store, "own", "harbour")
        store.append(own, [full_item()])
    copy(full, target)
    with opened(target) as store:
        spaces = store.spaces("harbour")
        assert len({space.space_id for space in spaces}) == 4
        assert min(space.space_id for space in spaces if space.ref != own.ref) > own.space_id
        assert list(store.check("harbour")) == []
        assert make_space(store, "later", "harbour").space_id > max(one.space_id for one in spaces)
    require_true_receipts(target)
    with remembered(target, "harbour", "agent") as memory:
        found = [hit.id for hit in memory.recall("ferry", now="2026-03-10T08:00Z").items]
    with remembered(full, "harbour", "agent") as memory:
        assert found == [hit.id for hit in memory.recall("ferry", now="2026-03-10T08:00Z").items]


def test_keys_and_the_audit_trail_come_along(
    full: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copied_serving, "PAGE", 3)
    with opened(full) as store:
        (given,) = store.list_keys("harbour")
        space = store.space(SpaceRef(tenant="harbour", identity="agent"), create=False)
        assert space is not None
        entries = [
            an_entry(time, tenant="harbour", space=space.space_id) for time in (4, 4, 4, 4, 9)
        ]
        store.write_audit(entries)
        store.revoke_key("harbour", given.uid, 8)
        begun(store, now=10)
        store.job_failed(space, "E", 10, None, dead=True)
    with opened(target) as store:
        made = make_space(store, "own", "harbour")  # takes the number 1
        own = an_entry(4, tenant="harbour", space=made.space_id)
        store.write_audit([own])
        older = replace(a_key(name="older"), uid=given.uid)
        assert store.put_key("harbour", older).revoked is None
        kept = store.put_key("harbour", a_key(name="kept"))
    report = copy(full, target)
    assert {one.table: one.rows for one in report.tables}["audit"] == 9
    assert {one.table: one.rows for one in report.tables}["api_keys"] == 2
    with opened(full) as one, opened(target) as other:
        # A token finds its key in the copy, too, though tenants were counted in the old file.
        for store in (one, other):
            found = store.find_key(tenant_number("harbour"), given.uid)
            assert found is not None
            assert (found.name, found.revoked) == ("laptop", 8)
            assert store.touch_key(tenant_number("harbour"), given.uid, 10**9)
        assert {key.uid for key in other.list_keys("harbour")} == {given.uid, kept.uid}
        names = {space.space_id: space.ref for space in other.spaces("harbour")}
        there = {row.uid: row for row in other.list_audit("harbour")}
        assert names[there[own.uid].space or 0] == made.ref
        assert {names[there[row.uid].space or 0] for row in entries} == {space.ref}
        assert other.dead_jobs("harbour") == []
        assert other.begin_request("t1", HASH, DIGEST, now=11, expires=99, stale=5).state == "new"
        assert list(other.check("harbour")) == []


def test_tenants_must_exist_and_be_named(full: Path, postgres_store: Database) -> None:
    url = postgres_store.app_url
    with pytest.raises(NotFoundError, match="no tenant 'nobody'"):
        copy(full, url, "default", "nobody")
    with opened(url) as one, opened(full) as other:
        with pytest.raises(InputError, match="--tenant NAME"):
            copy_store(one, other)
        assert one.spaces("default") == []


def test_two_at_once_do_not_mix(full: Path, target: str, small_pages: None) -> None:
    with opened(full) as one, opened(target) as other:
        first = True

        def told(done: int, total: int | None) -> None:
            nonlocal first
            if first:
                first = False
                copy_store(one, other)

        with pytest.raises((StoreBusyError, NotFoundError), match=r"somebody else|removed"):
            copy_store(one, other, progress=told)
        assert [*other.check("default"), *other.check("harbour")] == []


def test_an_unfinished_copy_is_not_copied_on(full: Path, tmp_path: Path) -> None:
    interrupted(full, tmp_path / "half.db", 2)
    with pytest.raises(StoreUnavailableError, match="not finished"):
        copy(tmp_path / "half.db", tmp_path / "other.db")

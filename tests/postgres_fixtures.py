"""PostgreSQL for tests: one server per run, one empty database per test."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import pgbouncer_server
from postgres_server import (
    APPLICATION,
    WHEEL,
    Address,
    Database,
    PostgresServer,
    fresh_database,
    private_server,
    programs,
    template_with,
)


def require_postgres() -> None:
    """Skip the test where there is no PostgreSQL; in CI that is a failure."""
    if programs() is not None and importlib.util.find_spec("psycopg") is not None:
        return
    missing = f"no PostgreSQL: pip install 'psycopg[binary]' {WHEEL}"
    if os.environ.get("CI"):
        pytest.fail(missing)  # there nothing is left out silently
    pytest.skip(missing)


def require_pgbouncer() -> None:
    """Skip the test where there is no pgbouncer; in CI too, which has what pip installs only."""
    if pgbouncer_server.program() is None:
        pytest.skip("no pgbouncer: install it with the system's packages")


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """The server that all processes of this test run share."""
    require_postgres()
    from postgres_keeper import shared_server  # not for systems without Unix sockets and fork

    own: Path = tmp_path_factory.getbasetemp()
    with shared_server(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as address:
        yield address


@pytest.fixture
def postgres_database(postgres_server: Address) -> Iterator[Database]:
    """An empty database that has the extension vector."""
    with fresh_database(postgres_server) as database:
        yield database


def make_store(database: Database, *, partitions: int = 2) -> None:
    """The tables in an empty database, with fewer parts than usual: they are made quicker."""
    from cofire.store.postgres_schema import upgrade

    upgrade(database.owner_url, app_roles=[APPLICATION], partitions=partitions)


@pytest.fixture
def postgres_store(postgres_server: Address) -> Iterator[Database]:
    """A database with an empty Cofire store."""
    template = template_with(postgres_server, "cofire_template", make_store)
    with fresh_database(postgres_server, template=template) as database:
        yield database


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server for one test, which may stop, kill and restart it: what was committed stays."""
    require_postgres()
    with private_server(synchronous_commit="on") as server:
        yield server

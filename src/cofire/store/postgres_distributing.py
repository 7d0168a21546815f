"""Running what distributes a store's tables over the machines of a Citus cluster.

The statements, and what they rest on, are in `distributing`. They have not been run on Citus.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg

from cofire.errors import ConfigurationError
from cofire.store.distributing import (
    available,
    database_violations,
    distributed,
    statements,
)
from cofire.store.postgres_connections import parse_url
from cofire.store.postgres_errors import translated
from cofire.store.schema import metadata
from cofire.store.urls import describe


def planned(url: str, *, shards: int) -> list[str]:
    """What `distribute` would run on a cluster where nothing is distributed yet; nothing is
    connected to. Raises ConfigurationError."""
    parse_url(url)
    database = unquote(urlsplit(url).path.strip("/"))
    if not database:
        raise ConfigurationError(f"{describe(url)}: name the database in the URL")
    return statements(metadata.tables.values(), database=database, shards=shards)


def distribute(url: str, *, shards: int) -> list[str]:
    """Distributes the tables that are not yet, each in a transaction of its own, as the role of the
    URL; returns the statements that were run.

    Raises ConfigurationError (no Citus in this database, or something in it that Citus does not
    take), StoreUnavailableError.
    """
    where = describe(url)
    conninfo, _ = parse_url(url)
    try:
        with psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as connection:
            _require_fit(connection, where)
            made = statements(
                metadata.tables.values(),
                database=connection.info.dbname,
                shards=shards,
                done=distributed(lambda query: _rows(connection, query)),
            )
            for statement in made:
                _rows(connection, statement)
            return made
    except psycopg.Error as exc:
        raise translated(exc, where, 0) from exc


def _require_fit(connection: psycopg.Connection[Any], where: str) -> None:
    if not available(lambda query: _rows(connection, query)):
        raise ConfigurationError(
            f"{where}: not run on Citus: the extension is not in this database; nothing was changed"
        )
    found = database_violations(lambda query: _rows(connection, query))
    if found:
        listed = "; ".join(f"{one.rule}: {one.where}" for one in found[:3])
        raise ConfigurationError(f"{where}: Citus would refuse this schema: {listed}")


def _rows(connection: psycopg.Connection[Any], query: str) -> list[tuple[Any, ...]]:
    cursor = connection.execute(query.encode())
    return cursor.fetchall() if cursor.description is not None else []

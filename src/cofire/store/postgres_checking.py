"""What a PostgreSQL database is like, as any role that may connect sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from cofire.errors import NotFoundError
from cofire.store.migrations import HEAD
from cofire.store.postgres_connections import parse_url
from cofire.store.postgres_errors import translated
from cofire.store.postgres_opening import LEAST_VERSION, problems, schema_revision, unfit
from cofire.store.urls import describe

_SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('server_version'),
    current_setting('server_encoding'), current_setting('synchronous_commit'),
    pg_is_in_recovery(), (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
    to_regtype('public.halfvec') IS NOT NULL, to_regclass('cofire.alembic_version') IS NOT NULL
"""
_PARTS = """
SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
WHERE c.relnamespace = 'cofire'::regnamespace AND c.relname = 'items'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseReport:
    """A database: facts that a person reads, and what is wrong with it.

    `unfit`: why the role may not open the store (None: it may), which is no fault in the owner's.
    `partitions`: how many parts each table has. `problems`: what would keep the store from being
    opened, or tenants from being kept apart.
    """

    where: str
    role: str
    unfit: str | None
    server: str
    vector: str | None
    encoding: str
    synchronous_commit: str
    replica: bool
    revision: str | None
    partitions: int
    problems: tuple[str, ...]


def examine(url: str) -> DatabaseReport:
    """Looks at the database without changing it.

    Raises NotFoundError (no Cofire schema in it, or none that this role may use),
    StoreUnavailableError, ConfigurationError.
    """
    where = describe(url)
    conninfo, _ = parse_url(url)
    try:
        with psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as connection:
            connection.prepare_threshold = None
            return _report(connection, where)
    except psycopg.errors.InsufficientPrivilege as exc:
        raise NotFoundError(
            f"{where}: this role may not use the Cofire store of this database; have its owner run "
            "`cofire db upgrade --app-role ROLE`"
        ) from exc
    except psycopg.Error as exc:
        raise translated(exc, where, 0) from exc


def _report(connection: psycopg.Connection[Any], where: str) -> DatabaseReport:
    number, version, encoding, commit, replica, vector, halfvec, made = connection.execute(
        _SERVER
    ).fetchall()[0]
    if not made:
        raise NotFoundError(
            f"{where}: no Cofire store in this database yet; have the role that is to own it run "
            "`cofire db upgrade`"
        )
    found = []
    if number < LEAST_VERSION:
        found.append(f"PostgreSQL {version} is older than {LEAST_VERSION // 10_000}")
    if encoding != "UTF8":
        found.append(f"the encoding is {encoding}, not UTF8")
    if not halfvec:
        found.append("pgvector is missing, older than 0.8, or not in the schema public")
    revision = schema_revision(connection)
    if revision != HEAD:
        found.append(f"the schema is {revision}, and this version of Cofire needs {HEAD}")
    else:
        found.extend(problems(connection))
    return DatabaseReport(
        where=where,
        role=str(connection.info.user),
        unfit=unfit(connection),
        server=version,
        vector=vector,
        encoding=encoding,
        synchronous_commit=commit,
        replica=replica,
        revision=revision,
        partitions=connection.execute(_PARTS).fetchall()[0][0],
        problems=tuple(found),
    )

"""Making and upgrading the schema of a PostgreSQL store, as the role that owns it."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql

from cofire.errors import ConfigurationError, SchemaVersionError
from cofire.store.migrations import HEAD, REVISIONS
from cofire.store.postgres_connections import parse_url
from cofire.store.postgres_errors import translated
from cofire.store.urls import describe

PARTITIONS = 16
"""How many parts a table has: enough that indexes stay small and VACUUM can work side by side."""

FUNCTIONS = (
    "cofire.search_texts(text[], bigint, bigint)",
    "cofire.due_spaces(bigint, bigint, bigint, bigint)",
    "cofire.queue(bigint, bigint, bigint, bigint)",
    "cofire.dead_jobs(bigint)",
)
"""What runs with the owner's rights, and application roles may call."""

MOST_DIMENSIONS = 4000
"""Of an HNSW index on `halfvec` (pgvector)."""


def upgrade(
    url: str, *, app_roles: Sequence[str] = (), partitions: int = PARTITIONS
) -> tuple[str | None, str]:
    """Brings the schema to the present revision as one transaction, and grants what the library
    needs to `app_roles`, and what is new to roles that could use the store before; returns the
    revision before (None: there was none) and after.

    `url` is of the role that owns (or will own) the schema. `partitions` counts for a new one
    only. Raises StoreUnavailableError, SchemaVersionError (made by a newer Cofire),
    ConfigurationError.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    from cofire.store import migrations

    where = describe(url)
    conninfo, _ = parse_url(url)
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(conninfo), poolclass=NullPool
    )
    try:
        with engine.begin() as connection:
            # One upgrade at a time, however many are started together.
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('cofire upgrade'))")
            connection.exec_driver_sql("SET LOCAL search_path = cofire, public")
            raw = connection.connection.driver_connection
            assert isinstance(raw, psycopg.Connection)  # noqa: S101 - the engine is psycopg's
            before = _revision(raw)
            if before is not None and before not in REVISIONS:
                raise SchemaVersionError(
                    f"{where}: this store has schema {before}, and this version of Cofire knows "
                    f"them up to {HEAD}. Upgrade Cofire (`pip install --upgrade cofire`)"
                )
            if before != HEAD:
                _require_vector(raw, where)
                connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS cofire")
                migrations.upgrade(connection, partitions=partitions)
            former = () if before in {None, HEAD} else _granted(raw)
            for role in dict.fromkeys((*former, *app_roles)):
                grant(raw, role)
    except DBAPIError as exc:
        cause = exc.orig if isinstance(exc.orig, Exception) else exc
        raise translated(cause, where, 0) from exc
    except psycopg.Error as exc:
        raise translated(exc, where, 0) from exc
    finally:
        engine.dispose()
    return before, HEAD


def _revision(connection: psycopg.Connection[tuple[object, ...]]) -> str | None:
    made = connection.execute("SELECT to_regclass('cofire.alembic_version')").fetchall()[0][0]
    if made is None:
        return None
    rows = connection.execute("SELECT version_num FROM cofire.alembic_version").fetchall()
    return str(rows[0][0]) if rows else None


def _granted(connection: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    """The roles that could use the store before: they are granted what is new as well."""
    rows = connection.execute(
        "SELECT DISTINCT pg_get_userbyid(a.grantee) FROM pg_class c, aclexplode(c.relacl) a "
        "WHERE c.oid = 'cofire.spaces'::regclass AND a.privilege_type = 'INSERT' "
        "AND a.grantee NOT IN (0, c.relowner) ORDER BY 1"
    ).fetchall()
    return [str(name) for (name,) in rows]


def _require_vector(connection: psycopg.Connection[tuple[object, ...]], where: str) -> None:
    # 0.8 scans an index on until enough rows pass the conditions: large spaces need that.
    rows = connection.execute(
        "SELECT string_to_array(extversion, '.')::int[] >= ARRAY[0, 8] FROM pg_extension "
        "WHERE extname = 'vector' AND to_regtype('public.halfvec') IS NOT NULL"
    ).fetchall()
    if not rows or not rows[0][0]:
        raise ConfigurationError(
            f"{where}: this database has no pgvector 0.8 or newer; have an administrator run "
            "CREATE EXTENSION vector in it"
        )


def grant(connection: psycopg.Connection[tuple[object, ...]], role: str) -> None:
    """Lets a role use the store: rows of the tables, by way of their policies, and the views."""
    name = sql.Identifier(role)
    for statement in (
        "GRANT USAGE ON SCHEMA cofire TO {}",
        "GRANT SELECT ON cofire.alembic_version TO {}",
        *(f"GRANT EXECUTE ON FUNCTION {signature} TO {{}}" for signature in FUNCTIONS),
    ):
        connection.execute(sql.SQL(statement).format(name))
    rows = connection.execute(
        "SELECT relname, relkind::text FROM pg_class WHERE relnamespace = 'cofire'::regnamespace "
        "AND relkind IN ('p', 'v')"
    ).fetchall()
    for table, kind in rows:
        what = "SELECT, INSERT, UPDATE, DELETE" if kind == "p" else "SELECT"
        connection.execute(
            sql.SQL("GRANT {} ON cofire.{} TO {}").format(
                sql.SQL(what), sql.Identifier(str(table)), name
            )
        )


def add_vector_index(url: str, dimension: int) -> None:
    """Makes the index that large spaces with vectors of `dimension` (1 to 4000) are searched by,
    as the role that owns the schema; 384 has one from the start. It holds no rows until a space
    is switched to it (`Store.set_indexed`). Raises ConfigurationError, StoreUnavailableError."""
    if not 1 <= dimension <= MOST_DIMENSIONS:
        raise ConfigurationError(
            f"pgvector indexes half-precision vectors of 1 to {MOST_DIMENSIONS} dimensions, not "
            f"{dimension}"
        )
    where = describe(url)
    conninfo, _ = parse_url(url)
    statement = sql.SQL(
        "CREATE INDEX IF NOT EXISTS {} ON cofire.vectors USING hnsw "
        "((vector::public.halfvec({})) public.halfvec_cosine_ops) "
        "WHERE indexed = 1 AND public.vector_dims(vector) = {}"
    ).format(
        sql.Identifier(f"ix_vectors_{dimension}"), sql.Literal(dimension), sql.Literal(dimension)
    )
    try:
        with psycopg.connect(conninfo) as connection:
            connection.execute(statement)
    except psycopg.Error as exc:
        raise translated(exc, where, 0) from exc

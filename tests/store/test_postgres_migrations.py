"""A PostgreSQL store of an earlier schema is brought on with what it holds, and used as before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from alembic import command
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from cofire.errors import SchemaVersionError
from cofire.store import migrations, open_store
from cofire.store.postgres_opening import problems
from cofire.store.postgres_schema import upgrade
from cofire.store.records import tenant_number
from cofire.store.schema import metadata
from cofire.testing import an_item, make_space
from postgres_server import APPLICATION, Database

PARTS = 3
HERE = tenant_number("default")
GRANTED = (
    f"GRANT USAGE ON SCHEMA cofire TO {APPLICATION}",
    f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA cofire TO {APPLICATION}",
    f"REVOKE INSERT, UPDATE, DELETE ON cofire.alembic_version FROM {APPLICATION}",
    "GRANT EXECUTE ON FUNCTION cofire.search_texts(text[], bigint, bigint) TO " + APPLICATION,
)
"""What an application's role was granted by the code of schema 0004 (and more, of views)."""
HELD = (
    f"SELECT set_config('cofire.tenant', '{HERE}', true)",
    f"INSERT INTO cofire.tenants VALUES ({HERE}, 'default')",  # noqa: S608
    f"INSERT INTO cofire.counters VALUES ({HERE}, 'space', 1)",  # noqa: S608
    f"INSERT INTO cofire.spaces (tenant, id, identity, revision) VALUES ({HERE}, 1, 'agent', 7)",  # noqa: S608
)


@pytest.fixture
def former(postgres_database: Database) -> Iterator[Database]:
    """A store of schema 0004 with a space in it, as its application left it."""
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(postgres_database.owner_url),
        poolclass=NullPool,
    )
    with engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL search_path = cofire, public")
        connection.exec_driver_sql("CREATE SCHEMA cofire")
        config = migrations.configuration()
        config.attributes.update(connection=connection, partitions=PARTS)
        command.upgrade(config, "0004")
    engine.dispose()
    run(postgres_database.owner_url, *GRANTED)
    run(postgres_database.app_url, *HELD)
    yield postgres_database


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Runs statements in one transaction; returns the last one's rows."""
    with psycopg.connect(url) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description is not None else []


def test_it_is_used_as_before_and_has_what_is_new(former: Database) -> None:
    with pytest.raises(SchemaVersionError, match="cofire db upgrade"):
        open_store(former.app_url)
    assert upgrade(former.owner_url) == ("0004", migrations.HEAD)
    assert upgrade(former.owner_url) == (migrations.HEAD, migrations.HEAD)
    with open_store(former.app_url) as store:  # the role needs to be granted nothing by hand
        (space,) = store.spaces("default")
        assert (str(space.ref), space.revision) == ("default/agent", 7)
        assert [one.ref for one in store.due_spaces(9, every=5, idle=50)] == [space.ref]
        store.job_done(space, 7, 9)
        store.append(make_space(store, "new"), [an_item()])
        assert list(store.check("default")) == []


def test_it_is_what_a_new_one_is(former: Database, postgres_store: Database) -> None:
    upgrade(former.owner_url)
    assert described(former.admin_url) == described(postgres_store.admin_url)
    with psycopg.connect(former.app_url) as connection:
        assert problems(connection) == []
    parts = run(
        former.admin_url,
        "SELECT inhparent::regclass::text, count(*) FROM pg_inherits JOIN pg_class c "
        "ON c.oid = inhparent WHERE c.relkind = 'p' GROUP BY 1",
    )
    assert dict(parts) == {f"cofire.{name}": PARTS for name in metadata.tables}


def test_statistics_of_keys_are_fixed(postgres_store: Database) -> None:
    """The planner is told of the new tables, too, what their keys are like."""
    rows = run(
        postgres_store.admin_url,
        "SELECT tablename, attname FROM pg_stats WHERE schemaname = 'cofire' AND n_distinct <> 0",
    )
    told = set(rows)
    for table in ("api_keys", "audit", "idempotency", "jobs"):
        for column in metadata.tables[table].primary_key:
            assert (f"{table}_p0", column.name) in told
            assert (f"{table}_p1", column.name) in told


def described(url: str) -> list[tuple[Any, ...]]:
    """Columns, indexes, policies and functions of the store, but for the number of partitions."""
    columns = run(
        url,
        "SELECT table_name, column_name, data_type, is_nullable, column_default, ordinal_position "
        "FROM information_schema.columns WHERE table_schema = 'cofire' "
        "AND table_name !~ '_p[0-9]+$' ORDER BY 1, 6",
    )
    indexes = run(
        url,
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'cofire' "
        "AND tablename !~ '_p[0-9]+$' ORDER BY 1, 2",
    )
    policies = run(
        url,
        "SELECT tablename, policyname, permissive, roles, cmd, qual, with_check FROM pg_policies "
        "WHERE schemaname = 'cofire' ORDER BY 1, 2",
    )
    functions = run(
        url,
        "SELECT p.oid::regprocedure::text, p.prosrc, p.prosecdef, p.proconfig FROM pg_proc p "
        "WHERE pronamespace = 'cofire'::regnamespace ORDER BY 1",
    )
    return [*columns, *indexes, *policies, *functions]


def test_the_tables_have_the_columns_that_the_statements_ask_for(postgres_store: Database) -> None:
    rows = run(
        postgres_store.admin_url,
        "SELECT table_name, column_name, is_nullable FROM information_schema.columns "
        "WHERE table_schema = 'cofire'",
    )
    found = {(table, column): nullable == "YES" for table, column, nullable in rows}
    for table in metadata.tables.values():
        for column in table.columns:
            assert found[table.name, column.name] == column.nullable, (table.name, column.name)

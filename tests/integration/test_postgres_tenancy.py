"""PostgreSQL itself keeps tenants apart, whatever the library forgets to ask for.

Each test that sees nothing has a twin that sees something by the same statement.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Double,
    LargeBinary,
    SmallInteger,
    literal,
    true,
)
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import BinaryExpression
from sqlalchemy.sql.expression import Delete, Insert, Update

import cofire.store
from cofire.store.columns import HalfVector
from cofire.store.postgres_connections import Connections
from cofire.store.postgres_flavour import PostgresFlavour
from cofire.store.schema import metadata
from cofire.store.sealing import Vault
from cofire.store.session import Query, Session, SqlFlavour
from postgres_fixtures import make_store
from postgres_server import Address, Database, fresh_database, template_with

ALPHA, BRAVO, NOBODY = 11, 22, 33
"""Numbers of two tenants that have a row in every table, and of one that there is not."""
TABLES = tuple(sorted(metadata.tables))
LOOKED_AT = ("claims", "jobs", "spaces", "tenants")
"""What the owner's functions for workers read."""
UNSET = object()
FORBIDDEN = psycopg.errors.InsufficientPrivilege
MARKS = {ALPHA: "alpha", BRAVO: "bravo"}

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def filled(postgres_server: Address) -> Iterator[Database]:
    """A store in which two tenants have one row in every table. Tests leave it as it is."""
    template = template_with(postgres_server, "cofire_template", make_store)
    with fresh_database(postgres_server, template=template) as database:
        with psycopg.connect(database.admin_url) as admin:
            for tenant in (ALPHA, BRAVO):
                fill(admin, tenant)
        yield database


def fill(connection: Connection, tenant: int) -> None:
    for table in TABLES:
        insert(connection, table, tenant)


def row_of(table: str, tenant: int) -> dict[str, Any]:
    """A row, the same for every tenant save for its texts and the tenant's number."""
    return {
        column.name: _value(column.type, column.name, tenant)
        for column in metadata.tables[table].columns
    } | {owner_of(table): tenant}


def owner_of(table: str) -> str:
    return "id" if table == "tenants" else "tenant"


JSON = ("tags", "keywords", "event_times", "metadata", "settings", "report", "body", "credits")


def _value(kind: Any, name: str, tenant: int) -> Any:
    if isinstance(kind, HalfVector):
        return "[1,2]"
    if isinstance(kind, LargeBinary):
        return MARKS[tenant].encode().ljust(16)
    if isinstance(kind, BigInteger | SmallInteger):
        return 0 if name in {"parent", "scrubbed", "archived"} else 1
    if isinstance(kind, Double):
        return 0.5
    return f'["{MARKS[tenant]}"]' if name in JSON else MARKS[tenant]


def insert(connection: Connection, table: str, tenant: int) -> None:
    row = row_of(table, tenant)
    connection.execute(
        sql.SQL("INSERT INTO cofire.{} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, row)),
            sql.SQL(", ").join(sql.Placeholder() * len(row)),
        ),
        list(row.values()),
    )


@contextmanager
def asking(url: str, tenant: object) -> Iterator[Connection]:
    """A transaction as a tenant (UNSET: as nobody), undone at its end."""
    with psycopg.connect(url) as connection:
        be(connection, tenant)
        yield connection
        connection.rollback()


def be(connection: Connection, tenant: object) -> None:
    if tenant is not UNSET:
        connection.execute("SELECT set_config('cofire.tenant', %s, true)", (str(tenant),))


def run(connection: Connection, statement: str, table: str, *values: object) -> int:
    """How many rows a statement sees or changes; `{t}` is the table, `{o}` whose a row is, `{c}`
    another column."""
    column = (
        "tenant"
        if table not in TABLES
        else next(one for one in row_of(table, ALPHA) if one != owner_of(table))
    )
    text = sql.SQL(statement).format(
        t=sql.Identifier("cofire", table),
        o=sql.Identifier(owner_of(table)),
        c=sql.Identifier(column),
    )
    return connection.execute(text, values or None).rowcount


def value(connection: Connection, query: str, *values: object) -> Any:
    rows = connection.execute(query.encode(), values or None).fetchall()
    return rows[0][0]


# What the catalogue says


def test_every_table_has_row_level_security_forced(filled: Database) -> None:
    with psycopg.connect(filled.admin_url) as admin:
        rows = admin.execute(
            "SELECT relname, relkind::text, relispartition, relrowsecurity, relforcerowsecurity "
            "FROM pg_class WHERE relnamespace = 'cofire'::regnamespace "
            "AND relkind IN ('r', 'p', 'm', 'f')"
        ).fetchall()
    assert {name for name, kind, *_ in rows if kind == "p"} == set(TABLES)
    assert {name for name, kind, part, *_ in rows if kind == "r" and not part} == {
        "alembic_version"
    }
    assert sum(part for _, _, part, *_ in rows) == 2 * len(TABLES)
    assert [name for name, *_, on, forced in rows if not (on and forced)] == []


def test_every_policy_is_the_one_that_was_designed(filled: Database) -> None:
    with psycopg.connect(filled.admin_url) as admin:
        rows = admin.execute(
            "SELECT tablename, policyname, permissive, roles::text, cmd, qual, with_check "
            "FROM pg_policies WHERE schemaname = 'cofire' ORDER BY tablename"
        ).fetchall()
    own = "(NULLIF(current_setting('cofire.tenant'::text, true), ''::text))::bigint"
    expected = [
        (table, "own_tenant", "PERMISSIVE", "{public}", "ALL", rule, rule)
        for table in TABLES
        for rule in [f"({owner_of(table)} = {own})"]
    ]
    version = ("alembic_version", "the_schema", "PERMISSIVE", "{public}", "ALL", "true", None)
    # Lets the owner's function for full text, which applies the tenant itself, use its index.
    words = ("items", "full_text", "PERMISSIVE", "{cofire_owner}", "SELECT", "true", None)
    # And those for workers, which look for what is due among all tenants.
    work = [
        (table, "due_work", "PERMISSIVE", "{cofire_owner}", "SELECT", "true", None)
        for table in LOOKED_AT
    ]
    assert sorted(rows, key=lambda row: row[:2]) == sorted(
        [*expected, version, words, *work], key=lambda row: row[:2]
    )


def test_workers_are_told_what_is_due_of_all_tenants_and_no_more(filled: Database) -> None:
    asked = {
        "dead_jobs(-1)": "tenant space tenant_name identity user project revision ran attempts "
        "next_at dead error",
        "due_spaces(9, 1, 1, 9)": "tenant space tenant_name identity user project lag changed "
        "attempts",
        "queue(9, 1, 1, -1)": "due waiting dead running oldest",
    }
    for function, columns in asked.items():
        for tenant in (UNSET, ALPHA):
            with asking(filled.app_url, tenant) as app:
                found = app.execute(f"SELECT * FROM cofire.{function}".encode())  # noqa: S608
                assert [one.name for one in found.description or ()] == columns.split()
                rows = found.fetchall()
                if "jobs" in function:
                    assert [row[0] for row in rows] == [ALPHA, BRAVO]
                else:
                    assert rows == ([(0, 0, 2, 0, 0)] if "queue" in function else [])
    with asking(filled.app_url, ALPHA) as app, pytest.raises(FORBIDDEN):
        app.execute("SELECT * FROM cofire.standing_spaces(9, 1, 1)")
    with psycopg.connect(filled.admin_url) as admin:
        rows = admin.execute(
            "SELECT proname, prosecdef, proconfig[1] FROM pg_proc "
            "WHERE pronamespace = 'cofire'::regnamespace"
        ).fetchall()
    path = "search_path=cofire, pg_temp"
    assert {name: (definer, set_) for name, definer, set_ in rows} == {
        "standing_spaces": (False, None),
        **dict.fromkeys(("dead_jobs", "due_spaces", "queue", "search_texts"), (True, path)),
    }


def test_views_ask_with_the_rights_of_whoever_asks(filled: Database) -> None:
    with psycopg.connect(filled.admin_url) as admin:
        views = admin.execute(
            "SELECT relname, reloptions FROM pg_class "
            "WHERE relnamespace = 'cofire'::regnamespace AND relkind = 'v'"
        ).fetchall()
    assert len(views) == 5
    for view, options in views:
        assert options == ["security_invoker=true"]
        seen = {}
        for tenant in (UNSET, NOBODY, ALPHA, BRAVO):
            with asking(filled.app_url, tenant) as app:
                rows = app.execute(sql.SQL("SELECT * FROM cofire.{}").format(sql.Identifier(view)))
                seen[tenant] = [row[0] for row in rows.fetchall()]
        assert seen == {UNSET: [], NOBODY: [], ALPHA: [ALPHA], BRAVO: [BRAVO]}, view


def test_the_application_has_no_other_rights(filled: Database) -> None:
    with psycopg.connect(filled.app_url) as app:
        rights = app.execute(
            "SELECT relname, relispartition, relkind::text, ARRAY(SELECT kind FROM unnest(ARRAY["
            "'SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) kind "
            "WHERE has_table_privilege(oid, kind)) FROM pg_class "
            "WHERE relnamespace = 'cofire'::regnamespace AND relkind IN ('r', 'p', 'v')"
        ).fetchall()
        assert not value(app, "SELECT has_schema_privilege('cofire', 'CREATE')")
    for name, part, kind, held in rights:
        expected = ["SELECT", "INSERT", "UPDATE", "DELETE"] if kind == "p" else ["SELECT"]
        assert held == ([] if part else expected), name


def test_a_part_shows_nothing_even_to_the_owner_of_it(filled: Database) -> None:
    with psycopg.connect(filled.admin_url) as admin:
        assert run(admin, "SELECT FROM {t}", "items") == 2
        assert sum(run(admin, "SELECT FROM {t}", f"items_p{n}") for n in (0, 1)) == 2
    for part in ("items_p0", "items_p1"):
        with asking(filled.owner_url, ALPHA) as owner:
            assert run(owner, "SELECT FROM {t}", part) == 0
        with asking(filled.app_url, ALPHA) as app, pytest.raises(FORBIDDEN):
            run(app, "SELECT FROM {t}", part)


# What a role sees


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("role", ["app_url", "owner_url"])
def test_only_the_tenant_that_is_named_is_seen(filled: Database, role: str, table: str) -> None:
    # The owner's functions for full text (policy full_text) and for workers (policy due_work) read
    # all of it, and change nothing.
    reads_all = role == "owner_url" and table in {"items", *LOOKED_AT}
    url = getattr(filled, role)
    statements = [
        "SELECT FROM {t}",
        "SELECT FROM {t} FOR UPDATE",
        "UPDATE {t} SET {c} = {c}",
        "DELETE FROM {t}",
    ]
    for statement in statements[1:] if reads_all else statements:
        for tenant, expected in ((ALPHA, 1), (BRAVO, 1), (NOBODY, 0), (UNSET, 0), ("", 0)):
            with asking(url, tenant) as connection:
                assert run(connection, statement, table) == expected, (statement, tenant)
        with asking(url, "garbage") as connection, pytest.raises(psycopg.DataError):
            run(connection, statement, table)
    with asking(url, ALPHA) as connection:
        assert run(connection, "SELECT FROM {t} WHERE {o} = %s", table, BRAVO) == int(reads_all)
        assert run(connection, "DELETE FROM {t} WHERE {o} = %s", table, BRAVO) == 0
        assert run(connection, "SELECT FROM {t} WHERE {o} = %s", table, ALPHA) == 1


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_written_for_another_tenant(filled: Database, table: str) -> None:
    for tenant in (BRAVO, UNSET, "", NOBODY):
        with asking(filled.app_url, tenant) as app, pytest.raises(FORBIDDEN):
            run(app, "DELETE FROM {t}", table)
            insert(app, table, ALPHA)
    with asking(filled.app_url, "garbage") as app, pytest.raises(psycopg.DataError):
        insert(app, table, ALPHA)
    with asking(filled.app_url, ALPHA) as app, pytest.raises(FORBIDDEN):
        run(app, "UPDATE {t} SET {o} = %s", table, NOBODY)  # given away
    with asking(filled.app_url, ALPHA) as app, pytest.raises(FORBIDDEN):
        run(app, "TRUNCATE {t}", table)
    with asking(filled.app_url, ALPHA) as app:
        run(app, "DELETE FROM {t}", table)
        insert(app, table, ALPHA)
    with psycopg.connect(filled.admin_url) as admin:
        assert run(admin, "SELECT FROM {t}", table) == 2


def test_a_key_that_another_tenant_has_is_no_hint(filled: Database) -> None:
    """The refusal is the same whether the row is there or not, and says nothing of it."""
    said = []
    for _ in range(2):
        with asking(filled.app_url, ALPHA) as app, pytest.raises(FORBIDDEN) as refused:
            insert(app, "items", BRAVO)
        said.append((str(refused.value), refused.value.diag.message_detail))
        with psycopg.connect(filled.admin_url) as admin:
            admin.execute("DELETE FROM cofire.items WHERE tenant = %s", (BRAVO,))
    assert said[0] == said[1]
    assert said[0][1] is None
    with psycopg.connect(filled.admin_url) as admin:
        insert(admin, "items", BRAVO)


def test_the_setting_ends_with_its_transaction(filled: Database) -> None:
    with psycopg.connect(filled.app_url, autocommit=True) as app:
        for end in ("COMMIT", "ROLLBACK"):
            app.execute("BEGIN")
            be(app, ALPHA)
            assert value(app, "SELECT count(*) FROM cofire.items") == 1
            app.execute(end.encode())
            # Not NULL any more, as on a new connection: hence NULLIF in the policies.
            assert value(app, "SELECT current_setting('cofire.tenant', true)") == ""
            assert value(app, "SELECT count(*) FROM cofire.items") == 0


def test_a_temporary_table_does_not_take_a_tables_place(filled: Database) -> None:
    from cofire.store.postgres import OWN, SETTINGS

    with psycopg.connect(filled.app_url) as app:
        app.execute("CREATE TEMPORARY TABLE items (tenant bigint)")
        app.execute(OWN.format(ALPHA).encode())
        app.execute(SETTINGS.encode(), ["0"] * SETTINGS.count("%s"))
        assert value(app, "SELECT count(*) FROM items") == 1
        app.rollback()


# Statements that forget to say whose rows they mean


def forgetful(query: Query) -> Query:
    """The statement with every condition on a tenant taken away."""

    def build(flavour: SqlFlavour) -> Any:
        statement: Any = query.build(flavour)
        return visitors.replacement_traverse(statement, {}, _without_tenant)

    return Query(build)


def _without_tenant(element: Any, **_: Any) -> Any:
    if not isinstance(element, BinaryExpression):
        return None
    sides = (element.left, element.right)
    names = {getattr(side, "name", None) for side in sides}
    columns = {getattr(getattr(side, "table", None), "name", None) for side in sides}
    owned = "tenant" in names or ("id" in names and "tenants" in columns)
    bound = any(isinstance(side, BindParameter) for side in sides)
    return true() if owned and bound else None


def every_query() -> Iterator[tuple[str, Query]]:
    for module in pkgutil.iter_modules(cofire.store.__path__):
        if module.name.startswith("sqlite"):
            continue
        names = vars(importlib.import_module(f"cofire.store.{module.name}"))
        for label, found in names.items():
            for place, query in enumerate(_flat(found)):
                yield f"{module.name}.{label}.{place}", query


def _flat(found: object) -> Iterator[Query]:
    if isinstance(found, Query):
        yield found
    elif isinstance(found, tuple | dict):
        for part in found.values() if isinstance(found, dict) else found:
            yield from _flat(part)


def parameters(query: Query) -> dict[str, Any]:
    """Values that fit ALPHA's rows, and BRAVO's but for the tenant."""
    flavour = Still()
    compiled: Any = query.build(flavour).compile(dialect=flavour.dialect)  # type: ignore[attr-defined]
    return {
        name: bound.value if bound.value is not None else _bound(name, bound.type)
        for name, bound in compiled.binds.items()
    }


def _bound(name: str, kind: Any) -> Any:
    if name.endswith("tenant"):
        return ALPHA
    if isinstance(kind, HalfVector):
        return b"\0\0\0\0"
    if kind.__class__.__name__ == "ARRAY":
        return _bound(name, kind.item_type)
    return {
        "LargeBinary": MARKS[ALPHA].encode().ljust(16),
        "Text": MARKS[ALPHA],
        "String": MARKS[ALPHA],
        "Double": 0.5,
    }.get(kind.__class__.__name__, 1)


class Still(PostgresFlavour):
    """The clock stands still: what two runs give can be compared."""

    def clock(self) -> ColumnElement[int]:
        return literal(1, BigInteger())


Answers = Mapping[str, object]


def answers(url: str, tenant: object) -> Answers:
    """What each forgetful statement gives, or how many rows it changes; each is undone."""
    found: dict[str, object] = {}
    connections = Connections(url, wait=5.0)
    connection = connections.connect()
    connection.execute("BEGIN")
    connection.execute("SET LOCAL search_path = cofire, public")
    be(connection, tenant)
    session = Session(connection.cursor(), Still(), {}, {}, Vault())
    for name, query in every_query():
        if isinstance(query.build(Still()), Insert):
            continue
        connection.execute("SAVEPOINT one")
        try:
            found[name] = _answer(session, query)
        except psycopg.Error as exc:
            found[name] = type(exc)
        connection.execute("ROLLBACK TO one")
    connection.close()
    connections.close()
    return found


def _answer(session: Session, query: Query) -> object:
    values = parameters(query)
    careless = forgetful(query)
    if isinstance(query.build(Still()), Update | Delete):
        return session.run(careless, **values)
    return sorted(map(repr, session.all(careless, **values)))


def test_a_forgotten_condition_leaks_nothing(postgres_store: Database) -> None:
    with psycopg.connect(postgres_store.admin_url) as admin:
        fill(admin, ALPHA)
    alone = answers(postgres_store.app_url, ALPHA)
    with psycopg.connect(postgres_store.admin_url) as admin:
        fill(admin, BRAVO)
        held = dump(admin)
    everything = answers(postgres_store.admin_url, ALPHA)
    assert answers(postgres_store.app_url, ALPHA) == alone
    # Without the policies most of them would have shown or changed the other's rows.
    ran = [name for name, answer in alone.items() if not isinstance(answer, type)]
    leaking = [name for name in ran if everything[name] != alone[name]]
    assert len(ran) > 150, {name: one for name, one in alone.items() if isinstance(one, type)}
    assert len(leaking) > 75
    assert not any(isinstance(one, int) and one > 0 for one in answers(
        postgres_store.app_url, UNSET).values())  # fmt: skip
    with psycopg.connect(postgres_store.admin_url) as admin:
        assert dump(admin) == held


def dump(admin: Connection) -> list[Any]:
    return [
        admin.execute(sql.SQL("SELECT t::text FROM cofire.{} t").format(sql.Identifier(table)))
        .fetchall()
        for table in TABLES
    ]  # fmt: skip

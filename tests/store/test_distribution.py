"""What Citus asks of a distributed schema holds for ours, as far as its documentation says."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import (
    BigInteger,
    Column,
    Computed,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ExcludeConstraint

import cofire.store
from cofire.store.distributing import (
    DATABASE_RULES,
    LEAST_VERSION,
    TABLE_RULES,
    available,
    database_violations,
    distributed,
    statements,
    table_violations,
    transaction_settings,
)
from cofire.store.distributing_queries import (
    QUERY_RULES,
    SETTING_RULE,
    query_violations,
    text_violations,
)
from cofire.store.listing import _page
from cofire.store.postgres_flavour import PostgresFlavour
from cofire.store.schema import items, links, metadata, models, spaces, tenants
from cofire.store.sealed_queries import make_plan
from cofire.store.session import Query
from postgres_server import Database

BY_NAME = "by a tenant's name: asks every shard, and gets one answer; its number would find it"
ALL_TENANTS = "of all tenants: for SQLite only, `Store.shared` asks for one"
EXEMPT: Mapping[str, str] = {
    "checking.STRAYS": ALL_TENANTS,
    "checking_serving.OF_TENANTS": ALL_TENANTS,
    "copying.ALL_TENANTS": ALL_TENANTS,
    "copy_marker.FOUND": BY_NAME,
    "jobs.DEAD_JOBS": ALL_TENANTS,
    "jobs.DUE_SPACES": ALL_TENANTS,
    "jobs.QUEUE": ALL_TENANTS,
    "keys.ALL_TENANTS": ALL_TENANTS,
    "receipts.PENDING": ALL_TENANTS,
    "spaces.FIND_SPACE": BY_NAME,
    "spaces.FIND_TENANT": BY_NAME,
    "spaces.LIST_ALL_SPACES": ALL_TENANTS,
    "spaces.LIST_ENCRYPTED": ALL_TENANTS,
    "spaces.LIST_SPACES": BY_NAME,
}
"""The statements that do not stay on one machine, or would not work there, and why."""

FLAVOUR = PostgresFlavour()
ROOT = Path(__file__).resolve().parents[2]


# Of the store


def _flat(value: object) -> Iterator[Query]:
    if isinstance(value, Query):
        yield value
    elif isinstance(value, tuple | Mapping):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _flat(part)


def _modules() -> Iterator[tuple[str, Mapping[str, object]]]:
    for module in pkgutil.iter_modules(cofire.store.__path__):
        yield module.name, vars(importlib.import_module(f"cofire.store.{module.name}"))


def _queries() -> Iterator[tuple[str, Query]]:
    """Every query of the store, once, by the module that builds it and by its name there."""
    seen: set[Query] = set()
    for _, names in _modules():
        for label, value in names.items():
            for query in _flat(value):
                if query not in seen:
                    seen.add(query)
                    yield f"{query.build.__module__.rpartition('.')[2]}.{label}", query
    flags = (
        "kinds speakers sessions since until after newest_first archived with_derived trusted_only"
    ).split()
    for chosen in ((), *((flag,) for flag in flags), tuple(flags)):
        for wanted in (0, 2):
            given: dict[str, Any] = {flag: flag in chosen for flag in flags}
            yield "listing._page", _page(tags_wanted=wanted, attributes_wanted=wanted, **given)


def _texts() -> Iterator[tuple[str, str]]:
    """Every statement that is no more than text, of the modules for PostgreSQL."""
    for module, names in _modules():
        if module.startswith("postgres"):
            for label, value in names.items():
                if isinstance(value, str) and re.match(
                    r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", value
                ):
                    yield f"{module}.{label}", value


def test_every_table_can_be_distributed() -> None:
    assert table_violations(metadata.tables.values()) == []


def _forms(query: Query) -> Iterator[Any]:
    """A query's statement, and what is run in its place where a space is encrypted."""
    statement: Any = query.build(FLAVOUR)
    yield statement
    sealed = make_plan(statement)
    if sealed is not None:
        yield sealed.statement


def test_every_statement_stays_on_one_machine() -> None:
    checked = 0
    found: set[tuple[str, str]] = set()
    for where, query in _queries():
        for statement in _forms(query):
            found |= {(one.where, one.what) for one in query_violations(statement, where=where)}
        checked += 1
    for where, text in _texts():
        found |= {(one.where, one.what) for one in text_violations(text, where=where)}
        checked += 1
    assert checked > 300
    assert {(where, what) for where, what in found if where not in EXEMPT} == set()
    assert {where for where, _ in found} == set(EXEMPT), "exempt without need"


def _run(connection: psycopg.Connection[Any]) -> Callable[[str], list[tuple[Any, ...]]]:
    return lambda statement: connection.execute(statement.encode()).fetchall()


def test_the_schema_as_it_is_made_can_be_distributed(postgres_store: Database) -> None:
    with psycopg.connect(postgres_store.owner_url) as connection:
        assert database_violations(_run(connection)) == []
        assert not available(_run(connection))  # the statements are checked, and never run


def test_every_table_is_distributed_beside_the_tenants(postgres_store: Database) -> None:
    made = statements(metadata.tables.values(), database='odd"name', shards=8)
    assert made[0] == 'ALTER DATABASE "odd""name" SET citus.propagate_set_commands = \'local\''
    assert made[1] == (
        "SELECT create_distributed_table('cofire.tenants', 'id', "
        "colocate_with => 'none', shard_count => 8)"
    )
    call = re.compile(
        r"SELECT create_distributed_table\('cofire\.(\w+)', 'tenant', "
        r"colocate_with => 'cofire\.tenants'\)"
    )
    named = {match[1] for match in map(call.fullmatch, made[2:]) if match is not None}
    assert len(made[2:]) == len(named)
    with psycopg.connect(postgres_store.owner_url) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'cofire'::regnamespace "
            "AND relkind = 'p'"
        ).fetchall()
    assert named | {"tenants"} == {name for (name,) in rows} == set(metadata.tables)


def test_what_is_distributed_is_left_out() -> None:
    tables = metadata.tables.values()
    everything = statements(tables, database="d")
    rest = statements(tables, database="d", done=("tenants", "items"))
    assert [one for one in everything if one not in rest] == [
        one for one in everything if "'cofire.tenants', 'id'" in one or "'cofire.items'" in one
    ]
    with pytest.raises(ValueError, match="at least one shard"):
        statements(tables, database="d", shards=0)


def test_what_citus_has_distributed_is_asked_of_its_catalogue(postgres_database: Database) -> None:
    # In place of the extension: the two columns of its catalogue that are read.
    with psycopg.connect(postgres_database.owner_url) as connection:
        for statement in (
            "CREATE SCHEMA cofire",
            "CREATE TABLE cofire.items (a int)",
            "CREATE TEMP TABLE pg_dist_partition AS SELECT 'cofire.items'::regclass logicalrelid",
        ):
            connection.execute(statement.encode())
        assert distributed(_run(connection)) == {"items"}


@pytest.mark.parametrize(("tenant", "value"), [(7, "7"), (-3, "-3"), (None, "")])
def test_a_transaction_says_whose_it_is_by_a_command(
    postgres_database: Database, tenant: int | None, value: str
) -> None:
    with psycopg.connect(postgres_database.app_url) as connection:
        for statement in transaction_settings(tenant):
            assert text_violations(statement, where="here") == []
            connection.execute(statement.encode())
        rows = connection.execute("SELECT current_setting('cofire.tenant')").fetchall()
        assert rows == [(value,)]


# Rules that can fail


def _table(*parts: Any, tenant: Any = BigInteger, nullable: bool = False) -> Table:
    own = Column("tenant", tenant, primary_key=not nullable, autoincrement=False, nullable=nullable)
    number = Column("number", BigInteger, primary_key=True, autoincrement=False)
    return Table("made", MetaData(), own, number, Column("text", Text), *parts)


def _reference(*, with_tenant: bool) -> Table:
    held = MetaData()
    Table("other", held, Column("tenant", BigInteger), Column("number", BigInteger))
    names = ["tenant", "number"] if with_tenant else ["number"]
    return Table(
        "made",
        held,
        Column("tenant", BigInteger, primary_key=True, autoincrement=False),
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        ForeignKeyConstraint(names, [f"other.{name}" for name in names], name="fk"),
    )


BROKEN_TABLES = [
    ("unique-with-tenant", _table(UniqueConstraint("number", name="uq"))),
    ("unique-with-tenant", _table(Index("ix", "number", unique=True))),
    ("unique-with-tenant", Table("made", MetaData(), Column("tenant", BigInteger, nullable=False))),
    ("references-with-tenant", _reference(with_tenant=False)),
    ("one-type", _table(tenant=Integer)),
    ("one-type", _table(nullable=True)),
    (
        "not-generated",
        Table(
            "made",
            MetaData(),
            Column("tenant", BigInteger, Computed("number + 1"), primary_key=True),
            Column("number", BigInteger, primary_key=True, autoincrement=False),
        ),
    ),
    ("exclusion-with-tenant", _table(ExcludeConstraint(("number", "="), name="ex"))),
    (
        "exclusion-with-tenant",
        _table(ExcludeConstraint(("tenant", "<>"), ("number", "="), name="ex")),
    ),
    ("no-sequences", _table(Column("seq", Integer, Identity()))),
    ("no-sequences", _table(Column("seq", Integer, Sequence("s")))),
    ("no-sequences", _table(Column("seq", Integer, server_default=func.nextval("s")))),
]


@pytest.mark.parametrize(("rule", "table"), BROKEN_TABLES)
def test_a_table_that_breaks_a_rule_is_found(rule: str, table: Table) -> None:
    assert rule in {found.rule for found in table_violations([table])}


@pytest.mark.parametrize(
    "table",
    [
        _table(UniqueConstraint("text", "tenant", name="uq")),
        _table(Index("ix", "number")),
        _table(ExcludeConstraint(("tenant", "="), ("number", "="), name="ex")),
        _reference(with_tenant=True),
    ],
)
def test_a_table_that_keeps_the_rules_is_not(table: Table) -> None:
    assert table_violations([table]) == []


TENANT: Any = bindparam("tenant")
OTHER: Any = bindparam("other")
HERE = items.c.tenant == TENANT
_elsewhere = select(links.c.source).where(links.c.source == items.c.number)
_of_model = (models.c.tenant == spaces.c.tenant) & (models.c.id == spaces.c.model)

BROKEN_STATEMENTS = [
    ("one-machine", select(items)),
    ("one-machine", select(items).where(items.c.tenant > TENANT)),
    ("one-machine", select(items).where(items.c.number == TENANT)),
    ("one-machine", select(items).where(HERE | (items.c.number == OTHER))),
    ("one-machine", select(items).where(~HERE)),
    ("one-machine", select(items).where(items.c.tenant.in_([1, 2]))),
    ("one-machine", select(items, links).where(HERE, links.c.source == items.c.number)),
    ("one-machine", select(items, links).where(items.c.tenant == links.c.tenant)),
    ("one-machine", select(items).join(links, links.c.source == items.c.number).where(HERE)),
    ("one-machine", select(items).where(HERE, exists(_elsewhere))),
    ("one-machine", select(items).where(HERE, items.c.number.in_(select(links.c.source)))),
    ("one-machine", select(items).where(exists().where(HERE, links.c.tenant == TENANT))),
    ("one-machine", select(items).where(~exists().where(HERE, links.c.tenant == TENANT))),
    ("one-machine", select(items).outerjoin(
        links, (links.c.tenant == items.c.tenant) & (links.c.tenant == TENANT))),
    ("one-machine", union_all(select(items.c.number).where(HERE), select(items.c.number))),
    ("one-machine", select(select(items).subquery())),
    ("one-machine", select(select(items).cte("w"))),
    ("one-machine", select(items).outerjoin(links, (links.c.tenant == TENANT) & HERE)),
    ("one-machine", update(items).values(title="x").where(items.c.number == 3)),
    ("one-machine", update(items).values(title="x").where(HERE, links.c.source == items.c.number)),
    ("one-machine", delete(items).where(items.c.number == 3)),
    ("one-machine", delete(items).where(HERE, items.c.number.in_(select(links.c.target)))),
    ("one-machine", insert(items).from_select(items.columns.keys(), select(items))),
    ("one-machine", select(tenants).where(tenants.c.name == "x")),
    ("one-tenant", select(items, links).where(HERE, links.c.tenant == OTHER)),
    ("one-tenant", select(items).where(items.c.tenant == 1, exists().where(links.c.tenant == 2))),
    ("one-tenant", union_all(select(items).where(HERE), select(items).where(items.c.tenant == 2))),
    (
        "outer-joins-on-tenant",
        select(spaces)
        .outerjoin(models, models.c.id == spaces.c.model)
        .where(spaces.c.tenant == TENANT, models.c.tenant == TENANT),
    ),
    (
        "outer-joins-on-tenant",
        select(spaces).join(models, models.c.id == spaces.c.model, full=True),
    ),
    ("locks-on-one-machine", select(spaces).where(spaces.c.id == 3).with_for_update()),
    ("tenant-never-changes", update(items).values(tenant=OTHER).where(HERE)),
    ("tenant-never-changes", update(tenants).values(id=OTHER).where(tenants.c.id == TENANT)),
    (
        "tenant-never-changes",
        postgresql.insert(items).on_conflict_do_update(
            index_elements=["tenant", "space", "number"], set_={"tenant": 3}
        ),
    ),
    ("rows-have-a-place", insert(items).values(number=3)),
    ("rows-have-a-place", insert(items).values(tenant=func.abs(3), number=3)),
    ("rows-have-a-place", insert(items).from_select(["number"], select(literal(3)))),
    (
        "no-subqueries-in-values",
        insert(items).values(
            tenant=TENANT,
            number=select(func.max(links.c.source)).where(links.c.tenant == TENANT)
            .scalar_subquery(),
        ),
    ),
    (
        "no-changes-in-with",
        select(delete(items).where(HERE).returning(items.c.number).cte("gone")),
    ),
    ("immutable-functions", update(items).where(HERE).values(number=func.nextval("s"))),
    ("immutable-functions", update(items).where(HERE).values(time=func.clock_timestamp())),
    ("immutable-functions", delete(items).where(HERE, items.c.time > func.now())),
    ("immutable-functions", insert(items).values(tenant=TENANT, number=func.nextval("s"))),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "statement"), BROKEN_STATEMENTS)
def test_a_statement_that_breaks_a_rule_is_found(rule: str, statement: Any) -> None:
    found = query_violations(statement, where="here")
    assert rule in {one.rule for one in found}
    assert all(one.source.startswith("https://") and one.where == "here" for one in found)


@pytest.mark.parametrize(
    "statement",
    [
        select(items).where(HERE).with_for_update(),
        select(items).where(items.c.tenant == TENANT, items.c.number == 3),
        select(items, links).where(HERE, links.c.tenant == items.c.tenant),
        select(items).join(links, links.c.tenant == items.c.tenant).where(links.c.tenant == TENANT),
        select(spaces).outerjoin(models, _of_model).where(spaces.c.tenant == TENANT),
        select(items).where(HERE, ~exists().where(links.c.tenant == items.c.tenant)),
        select(items).where(HERE, items.c.number.in_(select(func.unnest(bindparam("numbers"))))),
        select(items.alias("a"), items.alias("b").c.tenant).where(
            items.alias("a").c.tenant == TENANT, items.alias("b").c.tenant == TENANT
        ),
        select(select(items).where(HERE).subquery()),
        union_all(select(items).where(HERE), select(items).where(HERE)),
        update(items).values(title=func.lower(items.c.title)).where(HERE),
        delete(items).where(HERE),
        insert(items),
        insert(items).from_select(items.columns.keys(), select(items).where(HERE)),
    ],
)
def test_a_statement_that_keeps_the_rules_is_not(statement: Any) -> None:
    assert query_violations(statement, where="here") == []


def test_what_is_no_statement_on_tables_is_refused() -> None:
    with pytest.raises(TypeError):
        query_violations(func.now(), where="here")


@pytest.mark.parametrize(
    ("rule", "sql"),
    [
        (SETTING_RULE, "SELECT set_config('cofire.tenant', %s, true)"),
        ("one-machine", "SELECT id FROM spaces WHERE id = %s FOR UPDATE"),
        ("one-machine", "UPDATE cofire.items SET title = %s"),
    ],
)
def test_a_text_that_breaks_a_rule_is_found(rule: str, sql: str) -> None:
    assert [found.rule for found in text_violations(sql, where="here")] == [rule]


BROKEN_DATABASES = {
    "no-triggers": "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW;END'"
    "; CREATE TRIGGER t BEFORE INSERT ON cofire.items FOR EACH ROW EXECUTE FUNCTION f()",
    "no-rules": "CREATE RULE r AS ON DELETE TO cofire.items DO INSTEAD NOTHING",
    "one-level-of-partitions": "CREATE TABLE cofire.made (tenant bigint NOT NULL) "
    "PARTITION BY LIST (tenant); CREATE TABLE cofire.made_1 PARTITION OF cofire.made "
    "FOR VALUES IN (1) PARTITION BY LIST (tenant)",
    "no-subqueries-in-policies": "CREATE POLICY p ON cofire.items "
    "USING (tenant IN (SELECT id FROM cofire.tenants))",
    "indexes-unique-with-tenant": "CREATE TABLE cofire.made (tenant bigint NOT NULL, a int UNIQUE)",
    "foreign-keys-with-tenant": "CREATE TABLE cofire.made (tenant bigint PRIMARY KEY, other bigint "
    "REFERENCES cofire.made)",
    "no-sequences-in-schema": "CREATE SEQUENCE cofire.made",
    "every-table-by-tenant": "CREATE TABLE cofire.made (number bigint)",
}


def test_a_database_that_breaks_a_rule_is_found(postgres_store: Database) -> None:
    assert set(BROKEN_DATABASES) == {rule.name for rule in DATABASE_RULES}
    with psycopg.connect(postgres_store.admin_url) as connection:
        for rule, change in BROKEN_DATABASES.items():
            for statement in change.split("; "):
                connection.execute(statement.encode())
            assert {found.rule for found in database_violations(_run(connection))} == {rule}
            connection.rollback()


def test_every_rule_has_been_broken_here() -> None:
    assert {rule for rule, _ in BROKEN_TABLES} == {rule.name for rule in TABLE_RULES}
    assert {rule for rule, _ in BROKEN_STATEMENTS} == {rule.name for rule in QUERY_RULES}


def test_the_page_about_growth_shows_what_is_made() -> None:
    page = (ROOT / "docs" / "explanation" / "growth.md").read_text(encoding="utf-8")
    shown = [line.strip() for line in page.split("```")[1].splitlines()[1:] if line.strip()]
    made = statements(metadata.tables.values(), database="memories")
    assert shown == [f"{statement};" for statement in made[: len(shown)]]
    assert f"Citus {LEAST_VERSION} or newer" in page

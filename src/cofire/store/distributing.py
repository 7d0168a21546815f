"""Spreading the tables of a PostgreSQL store over several machines by tenant, with Citus.

Here is what an operator runs (`statements`), and what Citus asks of tables and of a database, one
rule for each documented restriction; what it asks of statements is in `distributing_queries`.
Nothing here has been run on Citus: the rules are its documentation, checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table, UniqueConstraint
from sqlalchemy.dialects.postgresql import ExcludeConstraint

SCHEMA = "cofire"
FIRST = "tenants"
"""The table that all others are colocated with."""
SHARDS = 32
"""Into how many shards a table is cut, as Citus does when it is not told."""
LEAST_VERSION = "11.2"
"""The first Citus that hands the isolation level of BEGIN on to its workers (pull request 6483)."""

_DOCS = "https://docs.citusdata.com/en/stable/"
_CODE = "https://github.com/citusdata/citus/blob/main/src/backend/distributed/"
DDL = _DOCS + "develop/reference_ddl.html"
SQL = _DOCS + "develop/reference_workarounds.html"
BY_TENANT = _DOCS + "develop/migration_mt_query.html"
FUNCTIONS = _DOCS + "develop/api_udf.html"
ROUTER = _CODE + "planner/multi_router_planner.c"
MAKING = _CODE + "commands/create_distributed_table.c"
POLICIES = _CODE + "commands/policy.c"
SETTINGS = _CODE + "commands/variableset.c"
TRIGGERS = _CODE + "commands/trigger.c"

Run: TypeAlias = Callable[[str], Sequence[Sequence[Any]]]
"""Runs one statement without parameters and returns its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing that Citus would refuse, or would not do on one machine.

    rule: the name of the rule. where: the table, constraint or statement. source: where the rule
    is documented.
    """

    rule: str
    where: str
    what: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRule:
    """A restriction on tables; `broken` yields what a table has against it."""

    name: str
    source: str
    broken: Callable[[Table], Iterator[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseRule:
    """A restriction on what is in the schema; `query` selects what breaks it, one text a row."""

    name: str
    source: str
    query: str


# What an operator does


def distribution_column(table: Table) -> Column[Any]:
    """Which column says on which machine a row is: the tenant's number."""
    return table.c["id" if table.name == FIRST else "tenant"]


def available(run: Run) -> bool:
    """Whether this database has the extension Citus (made, not only installed)."""
    return bool(run("SELECT 1 FROM pg_extension WHERE extname = 'citus'"))


def distributed(run: Run) -> set[str]:
    """The names of the store's tables that are distributed already; needs Citus."""
    rows = run(
        "SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid "
        "WHERE c.relnamespace = 'cofire'::regnamespace AND NOT c.relispartition"
    )
    return {str(name) for (name,) in rows}


def statements(
    tables: Iterable[Table],
    *,
    database: str,
    shards: int = SHARDS,
    done: Collection[str] = (),
) -> list[str]:
    """The statements that distribute `tables` by tenant, in order, each on its own.

    They are for the coordinator, for the owner of the tables if they are empty and for a role
    that row-level security does not hold if they are not: rows are then copied to the workers.
    `done`: tables that are distributed already. Raises ValueError for less than one shard.
    """
    if shards < 1:
        raise ValueError(f"a table has at least one shard, not {shards}")
    ordered = sorted(tables, key=lambda table: (table.name != FIRST, table.name))
    name = database.replace('"', '""')
    made = [
        # Row-level security asks for `cofire.tenant`, also on the workers.
        f"ALTER DATABASE \"{name}\" SET citus.propagate_set_commands = 'local'",
    ]
    for table in ordered:
        if table.name in done:
            continue
        beside = (
            f"colocate_with => 'none', shard_count => {shards}"
            if table.name == FIRST
            else f"colocate_with => '{SCHEMA}.{FIRST}'"
        )
        column = distribution_column(table).name
        made.append(
            f"SELECT create_distributed_table('{SCHEMA}.{table.name}', '{column}', {beside})"
        )
    return made


def transaction_settings(tenant: int | None) -> list[str]:
    """What a transaction on Citus says of its tenant, once it has begun.

    Commands, because they alone are handed on to the workers: Citus propagates SET LOCAL, not
    what the function set_config does. Without them row-level security shows nothing there.
    """
    return [f"SET LOCAL cofire.tenant = '{'' if tenant is None else int(tenant)}'"]


# What Citus asks of tables


def _keys(table: Table) -> Iterator[tuple[str, set[str]]]:
    for constraint in table.constraints:
        if isinstance(constraint, PrimaryKeyConstraint | UniqueConstraint):
            yield str(constraint.name), {column.name for column in constraint.columns}
    for index in table.indexes:
        if index.unique:
            yield str(index.name), {column.name for column in index.columns}


def _unkeyed(table: Table) -> Iterator[str]:
    column = distribution_column(table).name
    if not table.primary_key.columns:
        yield "no primary key"
    for name, columns in _keys(table):
        if columns and column not in columns:
            yield f"{name} is unique without {column}"


def _unfit_references(table: Table) -> Iterator[str]:
    own = distribution_column(table)
    for constraint in table.foreign_key_constraints:
        pairs = [(key.parent, key.column) for key in constraint.elements]
        if not any(from_ is own and to is distribution_column(to.table) for from_, to in pairs):
            yield f"{constraint.name} refers to a row that may be elsewhere"


def _unfit_column(table: Table) -> Iterator[str]:
    column = distribution_column(table)
    if type(column.type) is not BigInteger:
        yield f"{column.name} is {column.type}, not bigint as in the tables beside it"
    if column.nullable:
        yield f"{column.name} may be NULL"


def _generated(table: Table) -> Iterator[str]:
    if distribution_column(table).computed is not None:
        yield f"{distribution_column(table).name} is a generated column"


def _exclusions(table: Table) -> Iterator[str]:
    own = distribution_column(table).name
    for constraint in table.constraints:
        if isinstance(constraint, ExcludeConstraint):
            equal = {name for _, name, operator in constraint._render_exprs if operator == "="}
            if own not in equal:
                yield f"{constraint.name} excludes rows without {own} ="


def _counted(table: Table) -> Iterator[str]:
    for column in table.columns:
        default = str(getattr(column.server_default, "arg", "")).casefold()
        sequence = column.default is not None and column.default.is_sequence
        asked = column.identity is not None or column.autoincrement is True
        if asked or sequence or "nextval" in default:
            yield f"{column.name} is numbered by a sequence"


TABLE_RULES = (
    TableRule(name="unique-with-tenant", source=DDL, broken=_unkeyed),
    TableRule(name="references-with-tenant", source=DDL, broken=_unfit_references),
    TableRule(name="one-type", source=FUNCTIONS, broken=_unfit_column),
    TableRule(name="not-generated", source=MAKING, broken=_generated),
    TableRule(name="exclusion-with-tenant", source=MAKING, broken=_exclusions),
    TableRule(name="no-sequences", source=SQL, broken=_counted),
)


def table_violations(tables: Iterable[Table]) -> list[Violation]:
    """What Citus would refuse of these tables; each of them must have a tenant."""
    return [
        Violation(rule=rule.name, where=table.name, what=what, source=rule.source)
        for table in tables
        for rule in TABLE_RULES
        for what in rule.broken(table)
    ]


# What Citus asks of a database

_OURS = """
WITH ours AS (
    SELECT oid, relname, relkind, relispartition,
        CASE WHEN relname ~ '^tenants(_[0-9]+)?$' THEN 'id' ELSE 'tenant' END AS own
    FROM pg_class WHERE relnamespace = 'cofire'::regnamespace AND relname <> 'alembic_version'
), placed AS (
    SELECT c.oid, a.attnum FROM ours c JOIN pg_attribute a ON a.attrelid = c.oid
        AND a.attname = c.own AND a.atttypid = 'bigint'::regtype AND a.attnotnull
        AND a.attgenerated = ''
)
"""
"""What every query of a rule may select from: the relations of the store, and their columns of
the tenant as Citus wants them. A coordinator may have shards of its own: `tenants_` and digits."""

DATABASE_RULES = (
    DatabaseRule(
        name="no-triggers",
        source=TRIGGERS,
        query="SELECT t.tgname FROM pg_trigger t JOIN ours c ON c.oid = t.tgrelid "
        "WHERE NOT t.tgisinternal",
    ),
    DatabaseRule(
        name="no-rules",
        source=SQL,
        query="SELECT r.rulename FROM pg_rewrite r JOIN ours c ON c.oid = r.ev_class "
        "WHERE c.relkind IN ('r', 'p')",
    ),
    DatabaseRule(
        name="one-level-of-partitions",
        source=SQL,
        query="SELECT relname FROM ours WHERE relkind = 'p' AND relispartition",
    ),
    DatabaseRule(
        name="no-subqueries-in-policies",
        source=POLICIES,
        query="SELECT p.polname FROM pg_policy p JOIN ours c ON c.oid = p.polrelid "
        "WHERE concat(p.polqual, p.polwithcheck) LIKE '%{SUBLINK%'",
    ),
    DatabaseRule(
        name="indexes-unique-with-tenant",
        source=DDL,
        query="SELECT i.indexrelid::regclass::text FROM pg_index i "
        "JOIN ours c ON c.oid = i.indrelid WHERE NOT c.relispartition "
        "AND (i.indisunique OR i.indisexclusion) AND NOT EXISTS (SELECT 1 FROM placed "
        "WHERE placed.oid = c.oid AND placed.attnum = ANY(i.indkey::int2[]))",
    ),
    DatabaseRule(
        name="foreign-keys-with-tenant",
        source=DDL,
        query="SELECT k.conname FROM pg_constraint k JOIN ours c ON c.oid = k.conrelid "
        "WHERE NOT c.relispartition AND k.contype = 'f' AND NOT EXISTS (SELECT 1 FROM placed "
        "WHERE placed.oid = c.oid AND placed.attnum = ANY(k.conkey))",
    ),
    DatabaseRule(
        name="no-sequences-in-schema",
        source=SQL,
        query="SELECT relname FROM ours WHERE relkind = 'S'",
    ),
    DatabaseRule(
        name="every-table-by-tenant",
        source=BY_TENANT,
        query="SELECT relname FROM ours WHERE relkind IN ('r', 'p') AND NOT relispartition "
        "AND NOT EXISTS (SELECT 1 FROM placed WHERE placed.oid = ours.oid)",
    ),
)


def database_violations(run: Run) -> list[Violation]:
    """What Citus would refuse of the schema as it is in a database."""
    return [
        Violation(rule=rule.name, where=str(name), what="in the database", source=rule.source)
        for rule in DATABASE_RULES
        for (name,) in run(_OURS + rule.query)
    ]

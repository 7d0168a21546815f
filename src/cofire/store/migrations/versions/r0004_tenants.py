"""Nothing is shared between tenants; PostgreSQL.

Revision 0004. Models and counters belong to a tenant, ids are unique within one; spaces too large
for memory and claims of consolidation are noted. PostgreSQL stores begin here.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import context, op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _upgrade_sqlite()
    else:
        _make_postgres(int(context.config.attributes.get("partitions", 16)))


def _upgrade_sqlite() -> None:
    _give_tenants_their_models()
    _give_tenants_their_counters()
    _rebuild("tenants", "id BIGINT NOT NULL, name TEXT NOT NULL, CONSTRAINT pk_tenants "
             "PRIMARY KEY (id)", "SELECT id, name FROM former")  # fmt: skip
    op.create_index("ix_tenants_name", "tenants", ["name"], unique=False)
    _rebuild_spaces()
    op.add_column(
        "vectors",
        sa.Column(
            "indexed",
            sa.SmallInteger(),
            server_default="0",
            nullable=False,
            comment="1: the space is too large to be searched in memory",
        ),
    )
    op.drop_table("checkpoints")
    op.create_table(
        "claims",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("holder", sa.Text(), nullable=False, comment="which worker, of which process"),
        sa.Column("fence", sa.BigInteger(), nullable=False, comment="rises with every claim"),
        sa.Column("taken", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False, comment="by the database's clock"),
        sa.PrimaryKeyConstraint("tenant", "space", name=op.f("pk_claims")),
        comment="Who consolidates a space at present.",
        sqlite_with_rowid=False,
    )
    op.drop_index("ix_receipts_pending", "receipts")
    op.create_index(
        "ix_receipts_pending",
        "receipts",
        ["scrubbed", "tenant"],
        unique=False,
        sqlite_where=sa.text("scrubbed = 0"),
        postgresql_where=sa.text("scrubbed = 0"),
    )


def _rebuild(table: str, columns: str, rows: str) -> None:
    """Makes a table of SQLite anew from rows of the `former` one."""
    op.execute(f"ALTER TABLE {table} RENAME TO former")
    op.execute(f"CREATE TABLE {table} ({columns})")
    op.execute(f"INSERT INTO {table} {rows}")
    op.execute("DROP TABLE former")


def _give_tenants_their_models() -> None:
    _rebuild(
        "models",
        "tenant BIGINT NOT NULL, id BIGINT NOT NULL, name TEXT NOT NULL, "
        "dimension BIGINT NOT NULL, CONSTRAINT pk_models PRIMARY KEY (tenant, id), "
        "CONSTRAINT uq_models_tenant_name_dimension UNIQUE (tenant, name, dimension)",
        "SELECT DISTINCT used.tenant, former.id, former.name, former.dimension FROM former JOIN "
        "(SELECT tenant, model FROM spaces UNION SELECT tenant, model FROM vectors) AS used "
        "ON used.model = former.id",
    )


def _give_tenants_their_counters() -> None:
    # Each tenant goes on where all of them were: no id is given out again.
    _rebuild(
        "counters",
        "tenant BIGINT NOT NULL, name VARCHAR(40) NOT NULL, value BIGINT NOT NULL, "
        "CONSTRAINT pk_counters PRIMARY KEY (tenant, name)",
        "SELECT tenants.id, former.name, former.value FROM former CROSS JOIN tenants "
        "WHERE former.name <> 'tenant'",
    )


def _rebuild_spaces() -> None:
    columns = (
        'tenant, id, identity, "user", project, revision, floor, last_number, model, settings, '
        "created"
    )
    _rebuild(
        "spaces",
        "tenant BIGINT NOT NULL, id BIGINT NOT NULL, identity TEXT DEFAULT '' NOT NULL, "
        "\"user\" TEXT DEFAULT '' NOT NULL, project TEXT DEFAULT '' NOT NULL, "
        "revision BIGINT DEFAULT '0' NOT NULL, floor BIGINT DEFAULT '0' NOT NULL, "
        "last_number BIGINT DEFAULT '0' NOT NULL, model BIGINT, "
        "settings TEXT DEFAULT '{}' NOT NULL, created BIGINT DEFAULT '0' NOT NULL, "
        "indexed SMALLINT DEFAULT '0' NOT NULL, "
        "CONSTRAINT pk_spaces PRIMARY KEY (tenant, id), "
        "CONSTRAINT uq_spaces_tenant_identity_user_project "
        'UNIQUE (tenant, identity, "user", project)',
        f"({columns}) SELECT {columns} FROM former",  # noqa: S608 - written above
    )


OWN_TENANT = "NULLIF(current_setting('cofire.tenant', true), '')::bigint"
"""The number of the tenant that a transaction is about: nothing, if it did not say so."""


def _make_postgres(partitions: int) -> None:
    path = Path(__file__).with_name("r0004_postgres.sql")
    for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
        if not paragraph.startswith("--"):
            op.get_bind().exec_driver_sql(paragraph.replace("%", "%%"))
    for table, key in _tables():
        whole = f"cofire.{table}"
        for number in range(partitions):
            part = f"{whole}_p{number}"
            op.execute(
                f"CREATE TABLE {part} PARTITION OF {whole} "
                f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})"
            )
            _fix_statistics(part)
            # Nobody reads a part by its own name: there is no policy that lets one.
            op.execute(f"ALTER TABLE {part} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {whole} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_tenant ON {whole} USING ({key} = {OWN_TENANT}) "
            f"WITH CHECK ({key} = {OWN_TENANT})"
        )
    # The operator @@ is not leakproof: behind a policy that names a column it is never a condition
    # of an index. search_texts applies the tenant itself; its owner is let past with a constant.
    op.execute("CREATE POLICY full_text ON cofire.items FOR SELECT TO CURRENT_USER USING (true)")
    op.execute(
        "ALTER TABLE cofire.alembic_version ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
    )
    op.execute("CREATE POLICY the_schema ON cofire.alembic_version USING (true)")


DISTINCT = {
    **dict.fromkeys(("tenant", "space"), 1.0),
    **dict.fromkeys(("uid", "seq", "key_hash"), -1.0),
    **dict.fromkeys(("number", "time"), -0.5),
    **dict.fromkeys(("revision", "recall", "source", "target"), -0.1),
    **dict.fromkeys(("session_hash", "parent"), -0.05),
    "hash": -0.01,
}
"""How many different values a column has, for the planner: so many, or that share of the rows. One
tenant and one space: what is sought in a part that holds just one is never read whole."""


def _fix_statistics(part: str) -> None:
    """Tells the planner for good what the columns of keys are like, as on SQLite.

    A space that was filled a moment ago is not among what ANALYZE has seen: taken for one row, all
    of it is scanned where one memory of it is looked up. Other columns are analysed as usual.
    """
    rows = op.get_bind().execute(
        sa.text(
            "SELECT attname FROM pg_attribute WHERE attrelid = CAST(:part AS regclass) "
            "AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        ),
        {"part": part},
    )
    columns = [name for (name,) in rows if name in DISTINCT]
    kept = ", ".join(f"ALTER COLUMN {column} SET STATISTICS 0" for column in columns)
    if columns:
        op.execute(f"ALTER TABLE {part} {kept}")
        op.execute("SELECT " + ", ".join(_statistics(part, column) for column in columns))


def _statistics(part: str, column: str) -> str:
    return (
        "pg_restore_attribute_stats('schemaname', 'cofire', 'relname', "
        f"'{part.partition('.')[2]}', 'attname', '{column}', 'inherited', false, "
        f"'null_frac', 0::real, 'avg_width', 8, 'n_distinct', ({DISTINCT[column]})::real)"
    )


def _tables() -> list[tuple[str, str]]:
    """Each table and the column that says whose a row is."""
    rows = op.get_bind().execute(
        sa.text(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = 'cofire' AND c.relkind = 'p' ORDER BY c.relname"
        )
    )
    return [(name, "id" if name == "tenants" else "tenant") for (name,) in rows]

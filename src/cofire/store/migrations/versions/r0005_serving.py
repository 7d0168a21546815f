"""Servers and workers.

Revision 0005. API keys, the audit trail, requests that are done once, and how background
consolidation of a space stands.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _key(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def _integer(name: str, comment: str | None = None) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False, comment=comment)


def _maybe(name: str, comment: str | None = None) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=True, comment=comment)


def _text(name: str, comment: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, comment=comment)


def _maybe_text(name: str, comment: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=True, comment=comment)


def _bytes(name: str, comment: str | None = None) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=False, comment=comment)


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _upgrade_sqlite()
    else:
        _upgrade_postgres()


def _upgrade_sqlite() -> None:
    op.create_table(
        "jobs",
        _key("tenant"),
        _key("space"),
        _integer("revision", "of the space, as last consolidated"),
        _maybe("ran", "when the last success ended"),
        _integer("attempts", "failures since"),
        _maybe("next_at", "not to be tried before"),
        _maybe("dead", "when it was given up"),
        _maybe_text("error", "class and message of the last; no content"),
        sa.PrimaryKeyConstraint("tenant", "space", name=op.f("pk_jobs")),
        comment="How background consolidation of a space stands.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "api_keys",
        _key("tenant"),
        _bytes("uid"),
        _bytes("hash", "SHA-256 of the secret"),
        _text("name"),
        _text("principal"),
        _maybe_text("identities", "JSON: names; NULL: any"),
        _maybe_text("users", "JSON: names; NULL: any"),
        _maybe_text("projects", "JSON: names; NULL: any"),
        _text("scopes", "JSON: some of serving_records.SCOPES"),
        _integer("created"),
        _maybe("expires"),
        _maybe("revoked"),
        _maybe("last_used", "to a minute"),
        sa.PrimaryKeyConstraint("tenant", "uid", name=op.f("pk_api_keys")),
        comment="Who may ask a server for what.",
    )
    op.create_table(
        "audit",
        _key("tenant"),
        _key("time"),
        _bytes("uid"),
        _maybe_text("principal"),
        sa.Column("key", sa.LargeBinary(), nullable=True, comment="the uid of the API key"),
        _text("surface"),
        _text("action"),
        _maybe("space"),
        _text("outcome"),
        _maybe_text("code", "the error's class"),
        _maybe("count", "of memories"),
        _maybe_text("request"),
        sa.PrimaryKeyConstraint("tenant", "time", "uid", name=op.f("pk_audit")),
        comment="Who did what, and never what it was about.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "idempotency",
        _key("tenant"),
        _bytes("hash", "of the principal and the caller's key"),
        _bytes("digest", "of the request"),
        sa.Column("state", sa.SmallInteger(), nullable=False, comment="0: running, 1: done"),
        _integer("fence", "tells who began it from others"),
        _maybe("status"),
        _maybe_text("response", "JSON: ids and counts; no content"),
        _integer("created"),
        _integer("expires"),
        sa.PrimaryKeyConstraint("tenant", "hash", name=op.f("pk_idempotency")),
        comment="Requests that are to be done once, however often they are sent.",
    )
    op.create_index("ix_idempotency_expires", "idempotency", ["tenant", "expires"], unique=False)


OWN_TENANT = "NULLIF(current_setting('cofire.tenant', true), '')::bigint"
"""As in revision 0004."""
MADE = ("api_keys", "audit", "idempotency", "jobs")
LOOKED_AT = ("claims", "jobs", "spaces", "tenants")
"""The tables that the functions of all tenants read: with their owner's rights, for whom each has
a policy that lets it read them."""
DISTINCT = {
    "api_keys": {"tenant": 1.0, "uid": -1.0},
    "audit": {"tenant": 1.0, "time": -0.5, "uid": -1.0},
    "idempotency": {"tenant": 1.0, "hash": -1.0, "expires": -0.5},
    "jobs": {"tenant": 1.0, "space": -1.0},
}
"""How many different values the columns of keys have: so many, or that share of the rows."""


def _upgrade_postgres() -> None:
    path = Path(__file__).with_name("r0005_postgres.sql")
    for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
        if not paragraph.startswith("--"):
            op.get_bind().exec_driver_sql(paragraph.replace("%", "%%"))
    partitions = _partitions()
    for table in MADE:
        whole = f"cofire.{table}"
        for number in range(partitions):
            part = f"{whole}_p{number}"
            op.execute(
                f"CREATE TABLE {part} PARTITION OF {whole} "
                f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})"
            )
            _fix_statistics(part, DISTINCT[table])
            op.execute(f"ALTER TABLE {part} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {whole} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY own_tenant ON {whole} USING (tenant = {OWN_TENANT}) "
            f"WITH CHECK (tenant = {OWN_TENANT})"
        )
    for table in LOOKED_AT:
        op.execute(
            f"CREATE POLICY due_work ON cofire.{table} FOR SELECT TO CURRENT_USER USING (true)"
        )


def _partitions() -> int:
    """How many parts the other tables have: rows of a tenant lie in parts of one number."""
    rows = op.get_bind().execute(
        sa.text("SELECT count(*) FROM pg_inherits WHERE inhparent = 'cofire.spaces'::regclass")
    )
    return int(rows.scalar_one())


def _fix_statistics(part: str, distinct: dict[str, float]) -> None:
    """Tells the planner for good what the columns of keys are like; see revision 0004."""
    kept = ", ".join(f"ALTER COLUMN {column} SET STATISTICS 0" for column in distinct)
    op.execute(f"ALTER TABLE {part} {kept}")
    told = ", ".join(
        "pg_restore_attribute_stats('schemaname', 'cofire', 'relname', "
        f"'{part.partition('.')[2]}', 'attname', '{column}', 'inherited', false, "
        f"'null_frac', 0::real, 'avg_width', 8, 'n_distinct', ({count})::real)"
        for column, count in distinct.items()
    )
    op.execute(f"SELECT {told}")

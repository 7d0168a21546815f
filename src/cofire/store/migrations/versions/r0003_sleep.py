"""Consolidation.

Revision 0003. What is derived from memories, what it rests on, how far each step has come, and
receipts of deletion.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _key(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def _integer(name: str, default: str | None = None) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), server_default=default, nullable=False)


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        return  # on PostgreSQL, revision 0004 is the first
    op.create_table(
        "derived",
        _key("tenant"),
        _key("space"),
        _key("number"),
        sa.Column("maker", sa.Text(), nullable=False, comment="'extractive', or the model's name"),
        sa.Column(
            "prompt",
            sa.Text(),
            nullable=True,
            comment="name@version of what the model was asked",
        ),
        sa.Column(
            "state", sa.SmallInteger(), nullable=False, comment="a position in records.STATES"
        ),
        sa.Column("subject", sa.Text(), server_default="", nullable=False),
        _integer("subject_hash", "0"),
        sa.Column("slot", sa.Text(), nullable=True),
        _integer("slot_hash", "0"),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("single", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column(
            "reasons",
            sa.Text(),
            server_default="[]",
            nullable=False,
            comment="why it is not trusted",
        ),
        sa.Column(
            "closed",
            sa.BigInteger(),
            nullable=True,
            comment="when its end of validity was recorded",
        ),
        sa.PrimaryKeyConstraint("tenant", "space", "number", name=op.f("pk_derived")),
        comment="What consolidation made, beside its row in items.",
    )
    op.create_index(
        "ix_derived_slot", "derived", ["tenant", "space", "subject_hash", "slot_hash"], unique=False
    )
    op.create_table(
        "sources",
        _key("tenant"),
        _key("space"),
        _key("number"),
        _key("source"),
        _key("start"),
        _integer("end"),
        _integer("version"),
        sa.PrimaryKeyConstraint(
            "tenant", "space", "number", "source", "start", name=op.f("pk_sources")
        ),
        comment="What a derived memory rests on: characters of a version of another. No words.",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sources_source", "sources", ["tenant", "space", "source"], unique=False)
    op.create_table(
        "steps",
        _key("tenant"),
        _key("space"),
        sa.Column("name", sa.String(length=40), nullable=False),
        _integer("period"),
        _integer("revision"),
        _integer("seq"),
        _integer("time"),
        sa.PrimaryKeyConstraint("tenant", "space", "name", name=op.f("pk_steps")),
        comment="How far each step of consolidation has come.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "consolidations",
        _key("tenant"),
        _key("space"),
        _key("seq"),
        _integer("started"),
        _integer("ended"),
        sa.Column(
            "report",
            sa.Text(),
            nullable=False,
            comment="JSON: counts, durations, cost; no content",
        ),
        sa.PrimaryKeyConstraint("tenant", "space", "seq", name=op.f("pk_consolidations")),
    )
    op.create_table(
        "receipts",
        _key("tenant"),
        sa.Column("uid", sa.LargeBinary(), nullable=False),
        _integer("time"),
        sa.Column("scrubbed", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("body", sa.Text(), nullable=False, comment="JSON: ids and counts; no content"),
        sa.PrimaryKeyConstraint("tenant", "uid", name=op.f("pk_receipts")),
        comment="What was deleted, told without saying what it was.",
    )
    op.create_index(
        "ix_receipts_pending",
        "receipts",
        ["scrubbed"],
        unique=False,
        sqlite_where=sa.text("scrubbed = 0"),
        postgresql_where=sa.text("scrubbed = 0"),
    )

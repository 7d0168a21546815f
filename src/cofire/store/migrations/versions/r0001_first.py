"""The first schema.

Revision 0001. Written out in full: a migration must not follow later changes of `schema.py`.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        return  # on PostgreSQL, revision 0004 is the first
    op.create_table(
        "accesses",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("access_count", sa.BigInteger(), nullable=False),
        sa.Column("last_accessed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "number", name=op.f("pk_accesses")),
        comment="Apart from items: counting a use must not rewrite a long text.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "attributes",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "hash", "number", name=op.f("pk_attributes")),
        comment="Top-level metadata by the hash of name and comparable value.",
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_attributes_number", "attributes", ["tenant", "space", "number"], unique=False
    )
    op.create_table(
        "checkpoints",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "seq", name=op.f("pk_checkpoints")),
        comment="The fold of the events up to seq, to bound replay.",
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counters")),
        comment="The last id given out, by kind of thing; ids are never used again.",
    )
    op.create_table(
        "events",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("recall", sa.LargeBinary(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("credits", sa.Text(), nullable=False, comment="JSON: [[number, credit], …]"),
        sa.Column("outcome", sa.Double(), nullable=True),
        sa.Column("signal", sa.Text(), nullable=True),
        sa.Column("principal", sa.Text(), nullable=True),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "seq", name=op.f("pk_events")),
    )
    op.create_table(
        "interactions",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("ended", sa.BigInteger(), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "hash", name=op.f("pk_interactions")),
        comment="Sessions by the hash of their name.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "items",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("uid", sa.LargeBinary(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column(
            "parent",
            sa.BigInteger(),
            nullable=False,
            comment="0, or the whole this is a segment of",
        ),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("speaker_hash", sa.BigInteger(), nullable=False),
        sa.Column("session_hash", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("event_start", sa.BigInteger(), nullable=True),
        sa.Column("event_end", sa.BigInteger(), nullable=True),
        sa.Column("expires", sa.BigInteger(), nullable=True),
        sa.Column("importance", sa.SmallInteger(), nullable=False),
        sa.Column("pinned", sa.SmallInteger(), nullable=False),
        sa.Column("signals", sa.BigInteger(), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.Column("concepts", sa.LargeBinary(), nullable=False),
        sa.Column("facets", sa.LargeBinary(), nullable=False),
        sa.Column(
            "pending", sa.SmallInteger(), nullable=False, comment="a vector is wanted but missing"
        ),
        sa.Column(
            "segment", sa.BigInteger(), nullable=False, comment="index among the whole's segments"
        ),
        sa.Column(
            "segments", sa.BigInteger(), nullable=False, comment="how many this whole has, or 0"
        ),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=True, comment="minutes east of UTC"),
        sa.Column("recorded", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.Column("archived", sa.BigInteger(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("valid_from", sa.BigInteger(), nullable=True),
        sa.Column("valid_to", sa.BigInteger(), nullable=True),
        sa.Column("untrusted", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("key_hash", sa.BigInteger(), nullable=True),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("speaker", sa.Text(), nullable=True),
        sa.Column("session", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("tags", sa.Text(), server_default="[]", nullable=False),
        sa.Column("keywords", sa.Text(), server_default="[]", nullable=False),
        sa.Column("event_times", sa.Text(), server_default="[]", nullable=False),
        sa.Column("metadata", sa.Text(), server_default="{}", nullable=False),
        sa.Column("content", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "space", "number", name=op.f("pk_items")),
    )
    op.create_index(
        "ix_items_key",
        "items",
        ["tenant", "space", "key_hash"],
        unique=False,
        sqlite_where=sa.text("key_hash IS NOT NULL"),
        postgresql_where=sa.text("key_hash IS NOT NULL"),
    )
    op.create_index("ix_items_revision", "items", ["tenant", "space", "revision"], unique=False)
    op.create_index(
        "ix_items_session",
        "items",
        ["tenant", "space", "session_hash", "parent", "number"],
        unique=False,
    )
    op.create_index(
        "ix_items_time", "items", ["tenant", "space", "parent", "time", "uid"], unique=False
    )
    op.create_index("ix_items_uid", "items", ["tenant", "space", "uid"], unique=True)
    op.create_table(
        "links",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("source", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("target", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("type", sa.SmallInteger(), nullable=False),
        sa.Column("strength", sa.Double(), nullable=False),
        sa.Column("coactivations", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_coactivated", sa.BigInteger(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "source", "target", name=op.f("pk_links")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_links_revision", "links", ["tenant", "space", "revision"], unique=False)
    op.create_index("ix_links_target", "links", ["tenant", "space", "target"], unique=False)
    op.create_table(
        "models",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dimension", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("name", "dimension", name=op.f("uq_models_name_dimension")),
        comment="Embedding models, so that each vector can name its own in a few bytes.",
    )
    op.create_table(
        "projections",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "version", name=op.f("pk_projections")),
        comment="The fitted projection of a space's vectors, the newest version counts.",
    )
    op.create_table(
        "recall_items",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("recall", sa.LargeBinary(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("linked", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant", "space", "recall", "number", name=op.f("pk_recall_items")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_recall_items_number", "recall_items", ["tenant", "space", "number"], unique=False
    )
    op.create_table(
        "recalls",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("uid", sa.LargeBinary(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=True),
        sa.Column("query", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "uid", name=op.f("pk_recalls")),
    )
    op.create_index("ix_recalls_time", "recalls", ["tenant", "space", "time"], unique=False)
    op.create_table(
        "spaces",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("identity", sa.Text(), server_default="", nullable=False),
        sa.Column("user", sa.Text(), server_default="", nullable=False),
        sa.Column("project", sa.Text(), server_default="", nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "floor",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="Changes since a lower revision can only be had as a rebuild.",
        ),
        sa.Column("last_number", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("model", sa.BigInteger(), nullable=True),
        sa.Column("settings", sa.Text(), server_default="{}", nullable=False),
        sa.Column("created", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_spaces")),
        sa.UniqueConstraint("id", name=op.f("uq_spaces_id")),
        sa.UniqueConstraint(
            "tenant",
            "identity",
            "user",
            "project",
            name=op.f("uq_spaces_tenant_identity_user_project"),
        ),
    )
    op.create_table(
        "tags",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "hash", "number", name=op.f("pk_tags")),
        comment="Tags by their hash; the words are with the item.",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_tags_number", "tags", ["tenant", "space", "number"], unique=False)
    op.create_table(
        "tenants",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenants")),
        sa.UniqueConstraint("name", name=op.f("uq_tenants_name")),
    )
    op.create_table(
        "tombstones",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "source", sa.BigInteger(), nullable=False, comment="a number, or a link's source"
        ),
        sa.Column("target", sa.BigInteger(), nullable=False, comment="0, or a link's target"),
        sa.PrimaryKeyConstraint(
            "tenant", "space", "revision", "source", "target", name=op.f("pk_tombstones")
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "vectors",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("model", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False, comment="float16, little-endian"),
        sa.PrimaryKeyConstraint("tenant", "space", "number", "model", name=op.f("pk_vectors")),
    )
    op.create_table(
        "versions",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("replaced", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "number", "version", name=op.f("pk_versions")),
    )

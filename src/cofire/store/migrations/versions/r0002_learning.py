"""Learning from use.

Revision 0002. What the learning log says of a link's strength, and which events speak of a memory.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

PAGE = 1_000


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        return  # on PostgreSQL, revision 0004 is the first
    op.add_column(
        "links", sa.Column("rejections", sa.BigInteger(), server_default="0", nullable=False)
    )
    op.add_column("links", sa.Column("tick", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("links", sa.Column("quota_day", sa.BigInteger(), nullable=True))
    op.add_column(
        "links",
        sa.Column(
            "quota",
            sa.Text(),
            nullable=True,
            comment="JSON: [[principal, moved], …] on quota_day",
        ),
    )
    op.add_column(
        "recall_items",
        sa.Column(
            "via",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="the memory or cue whose link alone brought it, or 0",
        ),
    )
    op.add_column(
        "events",
        sa.Column("question", sa.BigInteger(), nullable=True, comment="the hash of what was asked"),
    )
    op.add_column(
        "events",
        sa.Column(
            "cue", sa.BigInteger(), nullable=True, comment="the number of the question's cue"
        ),
    )
    op.add_column(
        "events", sa.Column("trusted", sa.SmallInteger(), server_default="0", nullable=False)
    )
    op.create_table(
        "event_items",
        sa.Column("tenant", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("space", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "space", "number", "seq", name=op.f("pk_event_items")),
        comment="Which events speak of a memory.",
        sqlite_with_rowid=False,
    )
    _create_indexes()
    _index_events()


def _create_indexes() -> None:
    op.create_index(
        "ix_events_question", "events", ["tenant", "space", "question", "principal"], unique=False
    )
    for name, table, columns, condition in (
        ("ix_events_cue", "events", ["cue"], "cue IS NOT NULL"),
        ("ix_items_cue", "items", ["updated", "number"], "kind = 9"),
        ("ix_links_rejections", "links", ["rejections"], "rejections > 0"),
    ):
        op.create_index(
            name,
            table,
            ["tenant", "space", *columns],
            unique=False,
            sqlite_where=sa.text(condition),
            postgresql_where=sa.text(condition),
        )


def _index_events() -> None:
    """Fills `event_items` from events that are there already, and takes memories that are not
    out of them. (Schema 0001 kept events for later; only an import could write any.)"""
    connection = op.get_bind()
    events = _table("events", "tenant", "space", "seq", "credits")
    key = sa.tuple_(events.c.tenant, events.c.space, events.c.seq)
    after = (-1, -1, -1)
    while True:
        page = connection.execute(
            sa.select(events).where(key > sa.tuple_(*after)).order_by(*events.c[:3]).limit(PAGE)
        ).all()
        for tenant, space, seq, text in page:
            credits_ = json.loads(text)
            present = _present(connection, tenant, space, {int(pair[0]) for pair in credits_})
            kept = [pair for pair in credits_ if int(pair[0]) in present]
            if kept != credits_:
                connection.execute(
                    sa.update(events)
                    .where(key == sa.tuple_(tenant, space, seq))
                    .values(credits=json.dumps(kept, separators=(",", ":")))
                )
            for number in sorted(present):
                row = {"tenant": tenant, "space": space, "number": number, "seq": seq}
                connection.execute(sa.insert(_table("event_items", *row)).values(row))
        if len(page) < PAGE:
            return
        after = page[-1][:3]


def _table(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *map(sa.column, columns))


def _present(connection: sa.Connection, tenant: int, space: int, numbers: set[int]) -> set[int]:
    items = _table("items", "tenant", "space", "number")
    found = connection.execute(
        sa.select(items.c.number).where(
            items.c.tenant == tenant, items.c.space == space, items.c.number.in_(sorted(numbers))
        )
    )
    return {row[0] for row in found}

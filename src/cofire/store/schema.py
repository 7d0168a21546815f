"""The one schema, in SQLAlchemy Core, for every back end.

Tenant and space come first in every key, so that a space is a contiguous range and no query can
reach beyond it. Types are portable: 64-bit integers for times (µs since 1970 UTC), numbers and
hashes (unsigned hashes are stored as their signed twins), text, bytes; JSON is canonical text.
There are no foreign keys: each verb keeps the tables together in one transaction, and
`Store.check` verifies that they are. Nothing is shared between tenants, not even a counter: so
PostgreSQL keeps each table in partitions by tenant, and can enforce who sees what row by row.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from cofire.store.columns import HalfVector

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _key(name: str) -> Column[int]:
    return Column(name, BigInteger, primary_key=True, autoincrement=False)


def _integer(name: str, default: str | None = None) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=default)


def _small(name: str, default: str | None = None) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default=default)


def _moment(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=True)


counters = Table(
    "counters",
    metadata,
    _key("tenant"),
    Column("name", String(40), primary_key=True),
    _integer("value"),
    comment="The last id given out, by kind of thing; ids are never used again.",
)

tenants = Table(
    "tenants",
    metadata,
    Column(
        "id",
        BigInteger,
        primary_key=True,
        autoincrement=False,
        comment="from the name, by records.tenant_number (older stores: counted)",
    ),
    Column("name", Text, nullable=False),
    Index("ix_tenants_name", "name"),
)

models = Table(
    "models",
    metadata,
    _key("tenant"),
    _key("id"),
    Column("name", Text, nullable=False),
    _integer("dimension"),
    UniqueConstraint("tenant", "name", "dimension"),
    comment="Embedding models, so that each vector can name its own in a few bytes.",
)

spaces = Table(
    "spaces",
    metadata,
    _key("tenant"),
    _key("id"),
    Column("identity", Text, nullable=False, server_default=""),
    Column("user", Text, nullable=False, server_default=""),
    Column("project", Text, nullable=False, server_default=""),
    _integer("revision", "0"),
    Column(
        "floor",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="Changes since a lower revision can only be had as a rebuild.",
    ),
    _integer("last_number", "0"),
    Column("model", BigInteger, nullable=True),
    Column("settings", Text, nullable=False, server_default="{}"),
    _integer("created", "0"),
    Column(
        "indexed",
        SmallInteger,
        nullable=False,
        server_default="0",
        comment="1: too large to be searched in memory",
    ),
    UniqueConstraint("tenant", "identity", "user", "project"),
)

items = Table(
    "items",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("number"),
    Column("uid", LargeBinary, nullable=False),
    _integer("revision"),
    # What the active graph reads, for wholes and segments alike; before the long columns, so
    # that SQLite finds it without following the overflow pages of a long text.
    Column("parent", BigInteger, nullable=False, comment="0, or the whole this is a segment of"),
    _small("kind"),
    _integer("speaker_hash"),
    _integer("session_hash"),
    _integer("time"),
    _moment("event_start"),
    _moment("event_end"),
    _moment("expires"),
    _small("importance"),
    _small("pinned"),
    _integer("signals"),
    _integer("length"),
    Column("terms", LargeBinary, nullable=False),
    Column("concepts", LargeBinary, nullable=False),
    Column("facets", LargeBinary, nullable=False),
    Column("pending", SmallInteger, nullable=False, comment="a vector is wanted but missing"),
    Column("segment", BigInteger, nullable=False, comment="index among the whole's segments"),
    Column("segments", BigInteger, nullable=False, comment="how many this whole has, or 0"),
    _integer("start"),
    _integer("end"),
    _integer("tokens"),
    # What people read; empty on segments.
    _integer("version", "1"),
    Column("offset", BigInteger, nullable=True, comment="minutes east of UTC"),
    _integer("recorded"),
    _integer("updated"),
    _moment("archived"),
    Column("confidence", Double, nullable=True),
    _moment("valid_from"),
    _moment("valid_to"),
    _small("untrusted", "0"),
    Column("key", Text, nullable=True),
    Column("key_hash", BigInteger, nullable=True),
    Column("language", Text, nullable=True),
    Column("role", Text, nullable=True),
    Column("speaker", Text, nullable=True),
    Column("session", Text, nullable=True),
    Column("title", Text, nullable=True),
    Column("tags", Text, nullable=False, server_default="[]"),
    Column("keywords", Text, nullable=False, server_default="[]"),
    Column("event_times", Text, nullable=False, server_default="[]"),
    Column("metadata", Text, nullable=False, server_default="{}"),
    Column("content", Text, nullable=True),
    Index("ix_items_uid", "tenant", "space", "uid", unique=True),
    Index("ix_items_revision", "tenant", "space", "revision"),
    Index("ix_items_time", "tenant", "space", "parent", "time", "uid"),
    Index("ix_items_session", "tenant", "space", "session_hash", "parent", "number"),
    Index(
        "ix_items_key",
        "tenant",
        "space",
        "key_hash",
        sqlite_where=text("key_hash IS NOT NULL"),
        postgresql_where=text("key_hash IS NOT NULL"),
    ),
    Index(
        "ix_items_cue",
        "tenant",
        "space",
        "updated",
        "number",
        sqlite_where=text("kind = 9"),
        postgresql_where=text("kind = 9"),
    ),
)

vectors = Table(
    "vectors",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("number"),
    _key("model"),
    Column("vector", HalfVector, nullable=False, comment="float16"),
    Column(
        "indexed",
        SmallInteger,
        nullable=False,
        server_default="0",
        comment="1: the space is too large to be searched in memory",
    ),
)

accesses = Table(
    "accesses",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("number"),
    _integer("access_count"),
    _integer("last_accessed"),
    comment="Apart from items: counting a use must not rewrite a long text.",
    sqlite_with_rowid=False,
)

# The next three hold hashes and no text: the pages of a tree in the order of hashes are split
# all the time, and leave copies of what they held where deletion does not reach.
tags = Table(
    "tags",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("hash"),
    _key("number"),
    Index("ix_tags_number", "tenant", "space", "number"),
    comment="Tags by their hash; the words are with the item.",
    sqlite_with_rowid=False,
)

attributes = Table(
    "attributes",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("hash"),
    _key("number"),
    Index("ix_attributes_number", "tenant", "space", "number"),
    comment="Top-level metadata by the hash of name and comparable value.",
    sqlite_with_rowid=False,
)

interactions = Table(
    "interactions",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("hash"),
    _integer("started"),
    _integer("ended"),
    _integer("turns"),
    comment="Sessions by the hash of their name.",
    sqlite_with_rowid=False,
)

links = Table(
    "links",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("source"),
    _key("target"),
    _small("type"),
    Column("strength", Double, nullable=False),
    _integer("coactivations", "0"),
    _moment("last_coactivated"),
    _integer("created"),
    _integer("revision"),
    _integer("rejections", "0"),
    _integer("tick", "0"),
    _moment("quota_day"),
    Column("quota", Text, nullable=True, comment="JSON: [[principal, moved], …] on quota_day"),
    Index("ix_links_target", "tenant", "space", "target"),
    Index("ix_links_revision", "tenant", "space", "revision"),
    Index(
        "ix_links_rejections",
        "tenant",
        "space",
        "rejections",
        sqlite_where=text("rejections > 0"),
        postgresql_where=text("rejections > 0"),
    ),
    sqlite_with_rowid=False,
)

tombstones = Table(
    "tombstones",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("revision"),
    Column("source", BigInteger, primary_key=True, comment="a number, or a link's source"),
    Column("target", BigInteger, primary_key=True, comment="0, or a link's target"),
    sqlite_with_rowid=False,
)

versions = Table(
    "versions",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("number"),
    _key("version"),
    Column("content", Text, nullable=False),
    Column("title", Text, nullable=True),
    _integer("replaced"),
)

recalls = Table(
    "recalls",
    metadata,
    _key("tenant"),
    _key("space"),
    Column("uid", LargeBinary, primary_key=True),
    _integer("time"),
    Column("profile", Text, nullable=False),
    Column("principal", Text, nullable=True),
    Column("query", Text, nullable=False),
    Index("ix_recalls_time", "tenant", "space", "time"),
)

recall_items = Table(
    "recall_items",
    metadata,
    _key("tenant"),
    _key("space"),
    Column("recall", LargeBinary, primary_key=True),
    _key("number"),
    _integer("position"),
    Column("score", Double, nullable=False),
    _small("linked"),
    Column(
        "via",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="the memory or cue whose link alone brought it, or 0",
    ),
    Index("ix_recall_items_number", "tenant", "space", "number"),
    sqlite_with_rowid=False,
)

events = Table(
    "events",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("seq"),
    Column("recall", LargeBinary, nullable=True),
    Column("type", Text, nullable=False),
    Column("credits", Text, nullable=False, comment="JSON: [[number, credit], …]"),
    Column("outcome", Double, nullable=True),
    Column("signal", Text, nullable=True),
    Column("principal", Text, nullable=True),
    _integer("time"),
    Column("question", BigInteger, nullable=True, comment="the hash of what was asked"),
    Column("cue", BigInteger, nullable=True, comment="the number of the question's cue"),
    _small("trusted", "0"),
    Index("ix_events_question", "tenant", "space", "question", "principal"),
    Index(
        "ix_events_cue",
        "tenant",
        "space",
        "cue",
        sqlite_where=text("cue IS NOT NULL"),
        postgresql_where=text("cue IS NOT NULL"),
    ),
)

event_items = Table(
    "event_items",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("number"),
    _key("seq"),
    comment="Which events speak of a memory.",
    sqlite_with_rowid=False,
)

derived = Table(
    "derived",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("number"),
    Column("maker", Text, nullable=False, comment="'extractive', or the model's name"),
    Column("prompt", Text, nullable=True, comment="name@version of what the model was asked"),
    Column("state", SmallInteger, nullable=False, comment="a position in records.STATES"),
    Column("subject", Text, nullable=False, server_default=""),
    _integer("subject_hash", "0"),
    Column("slot", Text, nullable=True),
    _integer("slot_hash", "0"),
    Column("value", Text, nullable=True),
    _small("single", "0"),
    Column("reasons", Text, nullable=False, server_default="[]", comment="why it is not trusted"),
    Column("closed", BigInteger, nullable=True, comment="when its end of validity was recorded"),
    Index("ix_derived_slot", "tenant", "space", "subject_hash", "slot_hash"),
    comment="What consolidation made, beside its row in items.",
)

sources = Table(
    "sources",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("number"),
    _key("source"),
    _key("start"),
    _integer("end"),
    _integer("version"),
    Index("ix_sources_source", "tenant", "space", "source"),
    comment="What a derived memory rests on: characters of a version of another. No words.",
    sqlite_with_rowid=False,
)

steps = Table(
    "steps",
    metadata,
    _key("tenant"),
    _key("space"),
    Column("name", String(40), primary_key=True),
    _integer("period"),
    _integer("revision"),
    _integer("seq"),
    _integer("time"),
    comment="How far each step of consolidation has come.",
    sqlite_with_rowid=False,
)

consolidations = Table(
    "consolidations",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("seq"),
    _integer("started"),
    _integer("ended"),
    Column("report", Text, nullable=False, comment="JSON: counts, durations, cost; no content"),
)

claims = Table(
    "claims",
    metadata,
    _key("tenant"),
    _key("space"),
    Column("holder", Text, nullable=False, comment="which worker, of which process"),
    Column("fence", BigInteger, nullable=False, comment="rises with every claim"),
    _integer("taken"),
    Column("expires", BigInteger, nullable=False, comment="by the database's clock"),
    comment="Who consolidates a space at present.",
    sqlite_with_rowid=False,
)

jobs = Table(
    "jobs",
    metadata,
    _key("tenant"),
    _key("space"),
    Column("revision", BigInteger, nullable=False, comment="of the space, as last consolidated"),
    Column("ran", BigInteger, nullable=True, comment="when the last success ended"),
    Column("attempts", BigInteger, nullable=False, comment="failures since"),
    Column("next_at", BigInteger, nullable=True, comment="not to be tried before"),
    Column("dead", BigInteger, nullable=True, comment="when it was given up"),
    Column("error", Text, nullable=True, comment="class and message of the last; no content"),
    comment="How background consolidation of a space stands.",
    sqlite_with_rowid=False,
)

receipts = Table(
    "receipts",
    metadata,
    _key("tenant"),
    Column("uid", LargeBinary, primary_key=True),
    _integer("time"),
    _small("scrubbed", "0"),
    Column("body", Text, nullable=False, comment="JSON: ids and counts; no content"),
    Index(
        "ix_receipts_pending",
        "scrubbed",
        "tenant",
        sqlite_where=text("scrubbed = 0"),
        postgresql_where=text("scrubbed = 0"),
    ),
    comment="What was deleted, told without saying what it was.",
)

api_keys = Table(
    "api_keys",
    metadata,
    _key("tenant"),
    Column("uid", LargeBinary, primary_key=True),
    Column("hash", LargeBinary, nullable=False, comment="SHA-256 of the secret"),
    Column("name", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("identities", Text, nullable=True, comment="JSON: names; NULL: any"),
    Column("users", Text, nullable=True, comment="JSON: names; NULL: any"),
    Column("projects", Text, nullable=True, comment="JSON: names; NULL: any"),
    Column("scopes", Text, nullable=False, comment="JSON: some of serving_records.SCOPES"),
    _integer("created"),
    _moment("expires"),
    _moment("revoked"),
    Column("last_used", BigInteger, nullable=True, comment="to a minute"),
    comment="Who may ask a server for what.",
)

audit = Table(
    "audit",
    metadata,
    _key("tenant"),
    _key("time"),
    Column("uid", LargeBinary, primary_key=True),
    Column("principal", Text, nullable=True),
    Column("key", LargeBinary, nullable=True, comment="the uid of the API key"),
    Column("surface", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("space", BigInteger, nullable=True),
    Column("outcome", Text, nullable=False),
    Column("code", Text, nullable=True, comment="the error's class"),
    Column("count", BigInteger, nullable=True, comment="of memories"),
    Column("request", Text, nullable=True),
    comment="Who did what, and never what it was about.",
    sqlite_with_rowid=False,
)

idempotency = Table(
    "idempotency",
    metadata,
    _key("tenant"),
    Column("hash", LargeBinary, primary_key=True, comment="of the principal and the caller's key"),
    Column("digest", LargeBinary, nullable=False, comment="of the request"),
    Column("state", SmallInteger, nullable=False, comment="0: running, 1: done"),
    Column("fence", BigInteger, nullable=False, comment="tells who began it from others"),
    Column("status", BigInteger, nullable=True),
    Column("response", Text, nullable=True, comment="JSON: ids and counts; no content"),
    _integer("created"),
    _integer("expires"),
    Index("ix_idempotency_expires", "tenant", "expires"),
    comment="Requests that are to be done once, however often they are sent.",
)

projections = Table(
    "projections",
    metadata,
    _key("tenant"),
    _key("space"),
    _key("version"),
    Column("data", LargeBinary, nullable=False),
    comment="The fitted projection of a space's vectors, the newest version counts.",
)

SPACE_TABLES: tuple[Table, ...] = (
    items,
    vectors,
    accesses,
    tags,
    attributes,
    interactions,
    links,
    tombstones,
    versions,
    recalls,
    recall_items,
    events,
    event_items,
    derived,
    sources,
    steps,
    consolidations,
    claims,
    jobs,
    projections,
)
"""Every table keyed by (tenant, space, …): what forgetting a space must empty."""

NUMBERED_TABLES: tuple[Table, ...] = (
    items,
    vectors,
    accesses,
    tags,
    attributes,
    versions,
    recall_items,
    event_items,
    derived,
    sources,
)
"""Tables with a row per item: what forgetting an item must empty, and orphans are sought in."""

-- What revision 0004 makes of an empty PostgreSQL database: run by `cofire db upgrade`, which also
-- makes the partitions and the row-level security of every table. One statement per paragraph.

CREATE TABLE cofire.counters (
    tenant BIGINT NOT NULL,
    name VARCHAR(40) NOT NULL,
    value BIGINT NOT NULL,
    CONSTRAINT pk_counters PRIMARY KEY (tenant, name)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.tenants (
    id BIGINT NOT NULL,
    name TEXT NOT NULL,
    CONSTRAINT pk_tenants PRIMARY KEY (id)
) PARTITION BY HASH (id);

CREATE INDEX ix_tenants_name ON cofire.tenants (name);

CREATE TABLE cofire.models (
    tenant BIGINT NOT NULL,
    id BIGINT NOT NULL,
    name TEXT NOT NULL,
    dimension BIGINT NOT NULL,
    CONSTRAINT pk_models PRIMARY KEY (tenant, id),
    CONSTRAINT uq_models_tenant_name_dimension UNIQUE (tenant, name, dimension)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.spaces (
    tenant BIGINT NOT NULL,
    id BIGINT NOT NULL,
    identity TEXT DEFAULT '' NOT NULL,
    "user" TEXT DEFAULT '' NOT NULL,
    project TEXT DEFAULT '' NOT NULL,
    revision BIGINT DEFAULT '0' NOT NULL,
    floor BIGINT DEFAULT '0' NOT NULL,
    last_number BIGINT DEFAULT '0' NOT NULL,
    model BIGINT,
    settings TEXT DEFAULT '{}' NOT NULL,
    created BIGINT DEFAULT '0' NOT NULL,
    indexed SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_spaces PRIMARY KEY (tenant, id),
    CONSTRAINT uq_spaces_tenant_identity_user_project UNIQUE (tenant, identity, "user", project)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.items (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    number BIGINT NOT NULL,
    uid BYTEA NOT NULL,
    revision BIGINT NOT NULL,
    parent BIGINT NOT NULL,
    kind SMALLINT NOT NULL,
    speaker_hash BIGINT NOT NULL,
    session_hash BIGINT NOT NULL,
    time BIGINT NOT NULL,
    event_start BIGINT,
    event_end BIGINT,
    expires BIGINT,
    importance SMALLINT NOT NULL,
    pinned SMALLINT NOT NULL,
    signals BIGINT NOT NULL,
    length BIGINT NOT NULL,
    terms BYTEA NOT NULL,
    concepts BYTEA NOT NULL,
    facets BYTEA NOT NULL,
    pending SMALLINT NOT NULL,
    segment BIGINT NOT NULL,
    segments BIGINT NOT NULL,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    version BIGINT DEFAULT '1' NOT NULL,
    "offset" BIGINT,
    recorded BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    archived BIGINT,
    confidence DOUBLE PRECISION,
    valid_from BIGINT,
    valid_to BIGINT,
    untrusted SMALLINT DEFAULT '0' NOT NULL,
    key TEXT,
    key_hash BIGINT,
    language TEXT,
    role TEXT,
    speaker TEXT,
    session TEXT,
    title TEXT,
    tags TEXT DEFAULT '[]' NOT NULL,
    keywords TEXT DEFAULT '[]' NOT NULL,
    event_times TEXT DEFAULT '[]' NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    content TEXT,
    search TSVECTOR GENERATED ALWAYS AS (
        CASE WHEN content ~ '^[A-Za-z0-9+/]{38,}={0,2}$' THEN NULL
        ELSE to_tsvector('simple', left(coalesce(title || ' ', '') || content, 50000)) END
    ) STORED,
    CONSTRAINT pk_items PRIMARY KEY (tenant, space, number)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_items_cue ON cofire.items (tenant, space, updated, number) WHERE kind = 9;

CREATE INDEX ix_items_key ON cofire.items (tenant, space, key_hash) WHERE key_hash IS NOT NULL;

CREATE INDEX ix_items_revision ON cofire.items (tenant, space, revision);

CREATE INDEX ix_items_session ON cofire.items (tenant, space, session_hash, parent, number);

CREATE INDEX ix_items_time ON cofire.items (tenant, space, parent, time, uid);

CREATE UNIQUE INDEX ix_items_uid ON cofire.items (tenant, space, uid);

CREATE TABLE cofire.vectors (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    number BIGINT NOT NULL,
    model BIGINT NOT NULL,
    vector public.halfvec NOT NULL,
    indexed SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_vectors PRIMARY KEY (tenant, space, number, model)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.accesses (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    number BIGINT NOT NULL,
    access_count BIGINT NOT NULL,
    last_accessed BIGINT NOT NULL,
    CONSTRAINT pk_accesses PRIMARY KEY (tenant, space, number)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.tags (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    number BIGINT NOT NULL,
    CONSTRAINT pk_tags PRIMARY KEY (tenant, space, hash, number)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_tags_number ON cofire.tags (tenant, space, number);

CREATE TABLE cofire.attributes (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    number BIGINT NOT NULL,
    CONSTRAINT pk_attributes PRIMARY KEY (tenant, space, hash, number)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_attributes_number ON cofire.attributes (tenant, space, number);

CREATE TABLE cofire.interactions (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    hash BIGINT NOT NULL,
    started BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    turns BIGINT NOT NULL,
    CONSTRAINT pk_interactions PRIMARY KEY (tenant, space, hash)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.links (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    source BIGINT NOT NULL,
    target BIGINT NOT NULL,
    type SMALLINT NOT NULL,
    strength DOUBLE PRECISION NOT NULL,
    coactivations BIGINT DEFAULT '0' NOT NULL,
    last_coactivated BIGINT,
    created BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    rejections BIGINT DEFAULT '0' NOT NULL,
    tick BIGINT DEFAULT '0' NOT NULL,
    quota_day BIGINT,
    quota TEXT,
    CONSTRAINT pk_links PRIMARY KEY (tenant, space, source, target)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_links_rejections ON cofire.links (tenant, space, rejections) WHERE rejections > 0;

CREATE INDEX ix_links_revision ON cofire.links (tenant, space, revision);

CREATE INDEX ix_links_target ON cofire.links (tenant, space, target);

CREATE TABLE cofire.tombstones (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    source BIGINT NOT NULL,
    target BIGINT NOT NULL,
    CONSTRAINT pk_tombstones PRIMARY KEY (tenant, space, revision, source, target)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.versions (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    number BIGINT NOT NULL,
    version BIGINT NOT NULL,
    content TEXT NOT NULL,
    title TEXT,
    replaced BIGINT NOT NULL,
    CONSTRAINT pk_versions PRIMARY KEY (tenant, space, number, version)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.recalls (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    uid BYTEA NOT NULL,
    time BIGINT NOT NULL,
    profile TEXT NOT NULL,
    principal TEXT,
    query TEXT NOT NULL,
    CONSTRAINT pk_recalls PRIMARY KEY (tenant, space, uid)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_recalls_time ON cofire.recalls (tenant, space, time);

CREATE TABLE cofire.recall_items (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    recall BYTEA NOT NULL,
    number BIGINT NOT NULL,
    position BIGINT NOT NULL,
    score DOUBLE PRECISION NOT NULL,
    linked SMALLINT NOT NULL,
    via BIGINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_recall_items PRIMARY KEY (tenant, space, recall, number)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_recall_items_number ON cofire.recall_items (tenant, space, number);

CREATE TABLE cofire.events (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    recall BYTEA,
    type TEXT NOT NULL,
    credits TEXT NOT NULL,
    outcome DOUBLE PRECISION,
    signal TEXT,
    principal TEXT,
    time BIGINT NOT NULL,
    question BIGINT,
    cue BIGINT,
    trusted SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (tenant, space, seq)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_events_cue ON cofire.events (tenant, space, cue) WHERE cue IS NOT NULL;

CREATE INDEX ix_events_question ON cofire.events (tenant, space, question, principal);

CREATE TABLE cofire.event_items (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    number BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    CONSTRAINT pk_event_items PRIMARY KEY (tenant, space, number, seq)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.derived (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    number BIGINT NOT NULL,
    maker TEXT NOT NULL,
    prompt TEXT,
    state SMALLINT NOT NULL,
    subject TEXT DEFAULT '' NOT NULL,
    subject_hash BIGINT DEFAULT '0' NOT NULL,
    slot TEXT,
    slot_hash BIGINT DEFAULT '0' NOT NULL,
    value TEXT,
    single SMALLINT DEFAULT '0' NOT NULL,
    reasons TEXT DEFAULT '[]' NOT NULL,
    closed BIGINT,
    CONSTRAINT pk_derived PRIMARY KEY (tenant, space, number)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_derived_slot ON cofire.derived (tenant, space, subject_hash, slot_hash);

CREATE TABLE cofire.sources (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    number BIGINT NOT NULL,
    source BIGINT NOT NULL,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_sources PRIMARY KEY (tenant, space, number, source, start)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_sources_source ON cofire.sources (tenant, space, source);

CREATE TABLE cofire.steps (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    name VARCHAR(40) NOT NULL,
    period BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    time BIGINT NOT NULL,
    CONSTRAINT pk_steps PRIMARY KEY (tenant, space, name)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.consolidations (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    started BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    report TEXT NOT NULL,
    CONSTRAINT pk_consolidations PRIMARY KEY (tenant, space, seq)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.claims (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    holder TEXT NOT NULL,
    fence BIGINT NOT NULL,
    taken BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    CONSTRAINT pk_claims PRIMARY KEY (tenant, space)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.receipts (
    tenant BIGINT NOT NULL,
    uid BYTEA NOT NULL,
    time BIGINT NOT NULL,
    scrubbed SMALLINT DEFAULT '0' NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT pk_receipts PRIMARY KEY (tenant, uid)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_receipts_pending ON cofire.receipts (scrubbed, tenant) WHERE scrubbed = 0;

CREATE TABLE cofire.projections (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    version BIGINT NOT NULL,
    data BYTEA NOT NULL,
    CONSTRAINT pk_projections PRIMARY KEY (tenant, space, version)
) PARTITION BY HASH (tenant);


CREATE INDEX ix_items_search ON cofire.items USING gin (search);

CREATE INDEX ix_vectors_384 ON cofire.vectors
USING hnsw ((vector::public.halfvec(384)) public.halfvec_cosine_ops)
WHERE indexed = 1 AND public.vector_dims(vector) = 384;

CREATE FUNCTION cofire.search_texts(wanted text[], of_space bigint, most bigint)
RETURNS TABLE (place bigint, number bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = cofire, pg_temp
AS $$
SELECT asked.place, found.number
FROM unnest(wanted) WITH ORDINALITY AS asked (query, place)
CROSS JOIN LATERAL (
    SELECT items.number FROM cofire.items
    WHERE items.tenant = NULLIF(current_setting('cofire.tenant', true), '')::bigint
        AND items.space = of_space AND items.search @@ asked.query::tsquery
    LIMIT most
) AS found
$$;

REVOKE ALL ON FUNCTION cofire.search_texts(text[], bigint, bigint) FROM PUBLIC;

CREATE VIEW cofire.v_spaces WITH (security_invoker = true) AS
SELECT s.tenant, s.id AS space, t.name AS tenant_name, nullif(s.identity, '') AS identity,
    nullif(s."user", '') AS "user", nullif(s.project, '') AS project,
    m.name AS model, m.dimension, s.revision, s.settings::jsonb AS settings,
    to_timestamp(s.created / 1e6) AS created
FROM cofire.spaces s
JOIN cofire.tenants t ON t.id = s.tenant
LEFT JOIN cofire.models m ON m.tenant = s.tenant AND m.id = s.model;

CREATE VIEW cofire.v_memories WITH (security_invoker = true) AS
SELECT i.tenant, i.space, i.number, encode(i.uid, 'hex')::uuid AS id,
    (ARRAY['episode', 'tool_event', 'procedure', 'fact', 'trait', 'persona', 'goal', 'thread',
        'concept', 'cue', 'shape', 'gist', 'word'])[i.kind + 1] AS kind,
    i.content, i.title, i.speaker, i.role, i.session, to_timestamp(i.time / 1e6) AS time,
    to_timestamp(i.recorded / 1e6) AS recorded, to_timestamp(i.updated / 1e6) AS updated,
    to_timestamp(i.expires / 1e6) AS expires, to_timestamp(i.archived / 1e6) AS archived,
    i.importance, i.pinned = 1 AS pinned, i.version, i.confidence,
    CASE WHEN i.tags LIKE '[%' THEN i.tags::jsonb END AS tags,
    CASE WHEN i.metadata LIKE '{%' THEN i.metadata::jsonb END AS metadata,
    coalesce(a.access_count, 0) AS access_count, to_timestamp(a.last_accessed / 1e6) AS last_accessed
FROM cofire.items i
LEFT JOIN cofire.accesses a
    ON a.tenant = i.tenant AND a.space = i.space AND a.number = i.number
WHERE i.parent = 0;

CREATE VIEW cofire.v_links WITH (security_invoker = true) AS
SELECT tenant, space, source, target,
    (ARRAY['temporal', 'abstraction', 'association', 'coactivation', 'related', 'supports', 'causes',
        'evolves_to', 'annotates', 'evidence', 'contradicts', 'supersedes'])[type + 1] AS type,
    strength, coactivations, to_timestamp(last_coactivated / 1e6) AS last_coactivated,
    to_timestamp(created / 1e6) AS created
FROM cofire.links;

CREATE VIEW cofire.v_events WITH (security_invoker = true) AS
SELECT tenant, space, seq, encode(recall, 'hex')::uuid AS recall, type, credits::jsonb AS credits,
    outcome, signal, principal, to_timestamp(time / 1e6) AS time, cue, trusted = 1 AS trusted
FROM cofire.events;

CREATE VIEW cofire.v_evidence WITH (security_invoker = true) AS
SELECT s.tenant, s.space, s.number, s.source, s.start, s."end", s.version,
    d.maker, d.prompt, (ARRAY['current', 'quarantined', 'stale'])[d.state + 1] AS state
FROM cofire.sources s
JOIN cofire.derived d ON d.tenant = s.tenant AND d.space = s.space AND d.number = s.number;

-- What revision 0005 adds to a PostgreSQL store: run by `cofire db upgrade`, which also makes the
-- partitions and the row-level security of every table. One statement per paragraph.

CREATE TABLE cofire.jobs (
    tenant BIGINT NOT NULL,
    space BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    ran BIGINT,
    attempts BIGINT NOT NULL,
    next_at BIGINT,
    dead BIGINT,
    error TEXT,
    CONSTRAINT pk_jobs PRIMARY KEY (tenant, space)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.api_keys (
    tenant BIGINT NOT NULL,
    uid BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    name TEXT NOT NULL,
    principal TEXT NOT NULL,
    identities TEXT,
    users TEXT,
    projects TEXT,
    scopes TEXT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT,
    revoked BIGINT,
    last_used BIGINT,
    CONSTRAINT pk_api_keys PRIMARY KEY (tenant, uid)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.audit (
    tenant BIGINT NOT NULL,
    time BIGINT NOT NULL,
    uid BYTEA NOT NULL,
    principal TEXT,
    key BYTEA,
    surface TEXT NOT NULL,
    action TEXT NOT NULL,
    space BIGINT,
    outcome TEXT NOT NULL,
    code TEXT,
    count BIGINT,
    request TEXT,
    CONSTRAINT pk_audit PRIMARY KEY (tenant, time, uid)
) PARTITION BY HASH (tenant);

CREATE TABLE cofire.idempotency (
    tenant BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    digest BYTEA NOT NULL,
    state SMALLINT NOT NULL,
    fence BIGINT NOT NULL,
    status BIGINT,
    response TEXT,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    CONSTRAINT pk_idempotency PRIMARY KEY (tenant, hash)
) PARTITION BY HASH (tenant);

CREATE INDEX ix_idempotency_expires ON cofire.idempotency (tenant, expires);

-- How every space stands with background consolidation: what the functions after it ask. With the
-- rights of whoever asks, so it shows the application's roles one tenant's.

CREATE FUNCTION cofire.standing_spaces(now_at bigint, every bigint, idle bigint)
RETURNS TABLE (tenant bigint, space bigint, due_at bigint, changed smallint, attempts bigint,
    next_at bigint, dead bigint, held boolean)
LANGUAGE sql STABLE
AS $$
SELECT s.tenant, s.id,
    greatest(
        CASE WHEN s.revision > coalesce(j.revision, 0)
            THEN coalesce(j.ran_at + least(every, idle), least(s.created, now_at))
            ELSE j.ran_at + idle END,
        j.next_time),
    (s.revision > coalesce(j.revision, 0))::int::smallint,
    coalesce(j.attempts, 0), j.next_time, j.dead,
    c.expires IS NOT NULL
FROM cofire.spaces s
LEFT JOIN (
    SELECT k.*,
        CASE WHEN k.ran > now_at + 86400000000 THEN now_at - idle ELSE k.ran END AS ran_at,
        CASE WHEN k.next_at > now_at + 86400000000 THEN now_at ELSE k.next_at END AS next_time
    FROM cofire.jobs k
) j ON j.tenant = s.tenant AND j.space = s.id
LEFT JOIN cofire.claims c ON c.tenant = s.tenant AND c.space = s.id
    AND c.expires > floor(extract(epoch FROM now()) * 1000000)::bigint
    AND 2 * c.taken - c.expires < floor(extract(epoch FROM now()) * 1000000)::bigint
WHERE (s.revision > coalesce(j.revision, 0) OR j.ran IS NOT NULL)
    AND s.settings NOT LIKE '%"copying"%'
$$;

CREATE FUNCTION cofire.due_spaces(now_at bigint, every bigint, idle bigint, most bigint)
RETURNS TABLE (tenant bigint, space bigint, tenant_name text, identity text, "user" text,
    project text, lag bigint, changed smallint, attempts bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = cofire, pg_temp SET enable_seqscan = on SET jit = off
AS $$
SELECT d.tenant, d.space, t.name, s.identity, s."user", s.project, d.lag, d.changed, d.attempts
FROM (
    SELECT o.tenant, o.space, now_at - o.due_at AS lag, o.changed, o.attempts
    FROM cofire.standing_spaces(now_at, every, idle) o
    WHERE o.due_at <= now_at AND o.dead IS NULL AND NOT o.held
    ORDER BY now_at - o.due_at DESC, o.tenant, o.space LIMIT most
) d
JOIN cofire.spaces s ON s.tenant = d.tenant AND s.id = d.space
JOIN cofire.tenants t ON t.id = d.tenant
ORDER BY d.lag DESC, d.tenant, d.space
$$;

CREATE FUNCTION cofire.queue(now_at bigint, every bigint, idle bigint, of_tenant bigint)
RETURNS TABLE (due bigint, waiting bigint, dead bigint, running bigint, oldest bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = cofire, pg_temp SET enable_seqscan = on SET jit = off
AS $$
SELECT count(*) FILTER (WHERE o.dead IS NULL AND NOT o.held AND o.due_at <= now_at),
    count(*) FILTER (WHERE o.dead IS NULL AND NOT o.held AND o.next_at > now_at),
    count(*) FILTER (WHERE o.dead IS NOT NULL),
    count(*) FILTER (WHERE o.dead IS NULL AND o.held),
    coalesce(max(now_at - o.due_at)
        FILTER (WHERE o.dead IS NULL AND NOT o.held AND o.due_at <= now_at), 0)
FROM cofire.standing_spaces(now_at, every, idle) o
WHERE of_tenant = -1 OR o.tenant = of_tenant
$$;

CREATE FUNCTION cofire.dead_jobs(of_tenant bigint)
RETURNS TABLE (tenant bigint, space bigint, tenant_name text, identity text, "user" text,
    project text, revision bigint, ran bigint, attempts bigint, next_at bigint, dead bigint,
    error text)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = cofire, pg_temp SET enable_seqscan = on SET jit = off
AS $$
SELECT j.tenant, j.space, t.name, s.identity, s."user", s.project, j.revision, j.ran, j.attempts,
    j.next_at, j.dead, j.error
FROM cofire.jobs j
JOIN cofire.spaces s ON s.tenant = j.tenant AND s.id = j.space
JOIN cofire.tenants t ON t.id = j.tenant
WHERE j.dead IS NOT NULL AND (of_tenant = -1 OR j.tenant = of_tenant)
ORDER BY j.dead, j.tenant, j.space
$$;

REVOKE ALL ON FUNCTION cofire.standing_spaces(bigint, bigint, bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cofire.due_spaces(bigint, bigint, bigint, bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cofire.queue(bigint, bigint, bigint, bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cofire.dead_jobs(bigint) FROM PUBLIC;

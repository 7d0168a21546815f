"""Opening a PostgreSQL store: is the role fit for it, is the schema ours and current?"""

from __future__ import annotations

from typing import Any

import psycopg

from cofire.errors import ConfigurationError, NotFoundError, SchemaVersionError
from cofire.store.migrations import HEAD, REVISIONS
from cofire.store.postgres import PostgresBackend
from cofire.store.postgres_connections import Connections
from cofire.store.postgres_errors import translated
from cofire.store.postgres_schema import FUNCTIONS

LEAST_VERSION = 180_000  # statistics that stay as they are said (pg_restore_attribute_stats)

_DATABASE = """
SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
    to_regclass('cofire.alembic_version') IS NOT NULL
"""
# Whoever was logged in may come back to that role, whatever SET ROLE made of it. The three server
# roles read, write and run what they like as the server itself, and so make themselves superusers;
# before PostgreSQL 16 a role with CREATEROLE could join any that is none.
_ROLES = """
SELECT bool_or(r.rolsuper), bool_or(r.rolbypassrls),
    coalesce(bool_or(r.rolname IN ('pg_execute_server_program', 'pg_read_server_files',
        'pg_write_server_files')
        OR r.rolcreaterole AND current_setting('server_version_num')::int < 160000), false)
FROM pg_roles r
WHERE pg_has_role(current_user, r.oid, 'MEMBER') OR pg_has_role(session_user, r.oid, 'MEMBER')
"""
_OWNED = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'cofire'::regnamespace AND (pg_has_role(current_user, c.relowner, 'MEMBER')
    OR pg_has_role(session_user, c.relowner, 'MEMBER'))
ORDER BY c.relname LIMIT 1
"""
# Row-level security holds SELECT, INSERT, UPDATE and DELETE. TRUNCATE empties a table for all
# tenants, a foreign key tells whether a row is there, a trigger acts in other tenants' writes.
_EXCESS = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'cofire'::regnamespace AND c.relkind IN ('r', 'p')
    AND (has_table_privilege(c.oid, 'TRUNCATE, REFERENCES, TRIGGER')
        OR c.relname = 'alembic_version' AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE'))
ORDER BY c.relname LIMIT 1
"""
_SCHEMA = """
SELECT has_schema_privilege(n.oid, 'CREATE') OR pg_has_role(session_user, n.nspowner, 'MEMBER')
FROM pg_namespace n WHERE n.nspname = 'cofire'
"""
_TABLES = """
SELECT c.relname, c.relispartition, c.relrowsecurity AND c.relforcerowsecurity,
    coalesce(array_agg(p.polname || ' ' || p.polcmd::text || ' ' || p.polpermissive || ' '
        || coalesce(pg_get_expr(p.polqual, p.polrelid), '') || ' '
        || coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '')
        || CASE WHEN p.polroles = '{0}' THEN '' WHEN p.polroles = ARRAY[c.relowner]
            THEN ' for its owner' ELSE ' for some' END)
        FILTER (WHERE p.oid IS NOT NULL), '{}'),
    EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
        OR EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid),
    has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
        AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
FROM pg_class c LEFT JOIN pg_policy p ON p.polrelid = c.oid
WHERE c.relnamespace = 'cofire'::regnamespace AND c.relkind IN ('r', 'p')
GROUP BY c.oid, c.relname, c.relispartition, c.relrowsecurity, c.relforcerowsecurity
ORDER BY c.relname
"""
_VIEWS = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'cofire'::regnamespace AND c.relkind IN ('v', 'm')
    AND NOT coalesce('security_invoker=true' = ANY (c.reloptions), false)
ORDER BY c.relname
"""
# What runs with its owner's rights and is not ours may show what it likes.
_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p
WHERE p.pronamespace = 'cofire'::regnamespace AND p.prosecdef
    AND has_function_privilege(p.oid, 'EXECUTE')
    AND p.oid <> ALL (SELECT to_regprocedure(ours) FROM unnest(%s::text[]) AS ours
        WHERE to_regprocedure(ours) IS NOT NULL)
ORDER BY 1
"""
# The owner's function for full text applies the tenant itself (`@@` is not leakproof: behind a
# policy that names a column no index serves it).
_FULL_TEXT = "full_text r true true  for its owner"
# The owner's functions for workers look at all tenants; see migration 0005.
_DUE_WORK = "due_work r true true  for its owner"
_LOOKED_AT = {"claims", "jobs", "spaces", "tenants"}
_OWN = "(NULLIF(current_setting('cofire.tenant'::text, true), ''::text))::bigint"


def open_database(
    url: str,
    *,
    busy_timeout: float,
    statement_timeout: float = 300.0,
    durability: str,
    connections: int = 8,
) -> PostgresBackend:
    """A back end on a database whose schema is current, as a role that row-level security holds.

    Raises NotFoundError (no Cofire schema in it), SchemaVersionError (an older or newer one),
    ConfigurationError (the role may see past the tenants, or the database is not as Cofire made
    it), StoreUnavailableError.
    """
    made = Connections(url, wait=busy_timeout, most=connections)
    try:
        connection = made.connect()
        try:
            _require_current(connection, made.description)
            _require_fit_role(connection, made.description)
            found = problems(connection)
        finally:
            connection.close()
    except psycopg.Error as exc:
        raise translated(exc, made.description, busy_timeout) from exc
    if found:
        raise ConfigurationError(
            f"{made.description}: tenants would not be kept apart: {'; '.join(found[:3])}. Have "
            "the owner of the tables run `cofire db upgrade` and `cofire db check`"
        )
    return PostgresBackend(
        made,
        busy_timeout=busy_timeout,
        statement_timeout=statement_timeout,
        durability=durability,
    )


def _require_current(connection: psycopg.Connection[Any], where: str) -> None:
    version, encoding, made = connection.execute(_DATABASE).fetchall()[0]
    if version < LEAST_VERSION:
        raise ConfigurationError(
            f"{where}: this is PostgreSQL {version // 10_000}; Cofire needs "
            f"{LEAST_VERSION // 10_000} or newer"
        )
    if encoding != "UTF8":
        raise ConfigurationError(
            f"{where}: this database's encoding is {encoding}; make one with ENCODING 'UTF8'"
        )
    revision = schema_revision(connection) if made else None
    if revision is None:
        raise NotFoundError(
            f"{where}: no Cofire store in this database yet; have the role that is to own it run "
            "`cofire db upgrade`"
        )
    if revision not in REVISIONS:
        raise SchemaVersionError(
            f"{where}: this store has schema {revision}, and this version of Cofire knows them up "
            f"to {HEAD}. Upgrade Cofire (`pip install --upgrade cofire`)"
        )
    if revision != HEAD:
        raise SchemaVersionError(
            f"{where}: this store has schema {revision}, and this version of Cofire needs {HEAD}; "
            "have its owner run `cofire db upgrade`"
        )


def schema_revision(connection: psycopg.Connection[Any]) -> str | None:
    """The schema revision that a database says it has. Raises psycopg.Error."""
    rows = connection.execute("SELECT version_num FROM cofire.alembic_version").fetchall()
    return str(rows[0][0]) if rows else None


def _require_fit_role(connection: psycopg.Connection[Any], where: str) -> None:
    reason = unfit(connection)
    if reason is not None:
        raise ConfigurationError(
            f"{where}: the role {connection.info.user} {reason}. Open the store with a role of "
            "its own that is granted only what it needs: `cofire db upgrade OWNER_URL --app-role "
            "ROLE`"
        )


def unfit(connection: psycopg.Connection[Any]) -> str | None:
    """What keeps the role that is connected from opening a store; None if nothing does. The
    database must have a Cofire schema. Raises psycopg.Error."""
    return _by_membership(connection) or _by_ownership(connection) or _by_rights(connection)


def _by_membership(connection: psycopg.Connection[Any]) -> str | None:
    super_, bypasses, escapes = connection.execute(_ROLES).fetchall()[0]
    if super_:
        return "is (or may become) a superuser, whom row-level security does not hold"
    if bypasses:
        return "may bypass row-level security (BYPASSRLS)"
    if escapes:
        return (
            "may make itself another that row-level security does not hold (pg_execute_server_"
            "program, pg_read_server_files, pg_write_server_files, or CREATEROLE)"
        )
    return None


def _by_ownership(connection: psycopg.Connection[Any]) -> str | None:
    owned = connection.execute(_OWNED).fetchall()
    if owned:
        return (
            f"owns the table {owned[0][0]} (or may act as who does), and could switch its "
            "row-level security off"
        )
    if connection.execute(_SCHEMA).fetchall()[0][0]:
        return "may make things of its own in the schema cofire (CREATE)"
    return None


def _by_rights(connection: psycopg.Connection[Any]) -> str | None:
    excess = connection.execute(_EXCESS).fetchall()
    if excess:
        return (
            f"has rights to the table {excess[0][0]} that row-level security does not hold "
            "(TRUNCATE, REFERENCES, TRIGGER), or may say which schema this is; REVOKE them"
        )
    return None


def problems(connection: psycopg.Connection[Any]) -> list[str]:
    """What keeps the database from holding tenants apart, or from working; [] if nothing."""
    from cofire.store.schema import metadata

    found: list[str] = []
    seen = set()
    for name, part, forced, policies, triggers, granted in connection.execute(_TABLES).fetchall():
        if name == "alembic_version":
            continue
        if not forced:
            found.append(f"row-level security of {name} is not on and forced")
        if triggers:
            found.append(f"{name} has a trigger or a rule, which is not ours")
        if part:
            if policies:
                found.append(f"the part {name} can be read past its table")
            continue
        seen.add(name)
        key = "id" if name == "tenants" else "tenant"
        rule = f"({key} = {_OWN})"
        ours = [f"own_tenant * true {rule} {rule}"]
        if name == "items":
            ours.insert(0, _FULL_TEXT)
        if name in _LOOKED_AT:
            ours.insert(0, _DUE_WORK)
        if sorted(policies) != ours:
            found.append(f"the policies of {name} are not ours")
        if not granted:
            found.append(f"this role may not read and write {name}")
    for (name,) in connection.execute(_FUNCTIONS, (list(FUNCTIONS),)).fetchall():
        found.append(f"the function {name} runs with its owner's rights and is not ours")
    for (name,) in connection.execute(_VIEWS).fetchall():
        found.append(f"the view {name} shows what its owner sees, not what who asks may see")
    return found + [f"the table {name} is missing" for name in sorted(set(metadata.tables) - seen)]

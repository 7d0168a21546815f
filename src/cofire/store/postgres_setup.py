"""The SQL with which an administrator prepares a PostgreSQL server for a store, once."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

DATABASE, OWNER, APPLICATION = "cofire", "cofire_owner", "cofire_app"
"""Names where a URL gives none."""
_PREFIXES = ("postgresql", "postgres")


def setup_statements(url: str, app_roles: Sequence[str] = ()) -> str:
    """A script for psql, run as a superuser: roles, database, extension.

    The database and its owner are those of `url`, if it is one of PostgreSQL.
    """
    database, owner = _named_by(url)
    roles = list(app_roles) or [APPLICATION]
    logins = [
        f"CREATE ROLE {_quoted(role)} LOGIN PASSWORD 'CHANGE ME' NOSUPERUSER NOCREATEDB "
        "NOCREATEROLE NOBYPASSRLS;"
        for role in (owner, *roles)
    ]
    name = _quoted(database)
    everyone = ", ".join(map(_quoted, (owner, *roles)))
    return "\n".join(
        [
            "-- Run once with psql as a superuser, with passwords of your own.",
            "-- The first role owns the store and upgrades it; the library opens it as another.",
            *logins,
            f"CREATE DATABASE {name} OWNER {_quoted(owner)} ENCODING 'UTF8' TEMPLATE template0;",
            f"REVOKE ALL ON DATABASE {name} FROM PUBLIC;",
            f"GRANT CONNECT ON DATABASE {name} TO {everyone};",
            f"\\connect {name}",
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC;",
            "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;",
        ]
    )


def _named_by(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    if parts.scheme not in _PREFIXES:
        return DATABASE, OWNER
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    return unquote(parts.path.strip("/")) or DATABASE, unquote(user) or OWNER


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

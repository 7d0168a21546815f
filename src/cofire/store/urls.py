"""URLs of databases, as they may be shown."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit


def describe(url: str) -> str:
    """A PostgreSQL URL as it may be shown: without its password and parameters."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    host = host or dict(parse_qsl(parts.query)).get("host", "")
    return f"postgresql://{user.partition(':')[0]}{at}{host}{parts.path}"

"""Where memories are kept: one schema, one class of verbs, any database behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cofire.errors import ConfigurationError, InputError, MissingExtraError
from cofire.store.sealing import Vault
from cofire.store.session import Backend
from cofire.store.store import Store

__all__ = ["Store", "Upgraded", "open_store", "upgrade_store"]

NEEDS_POSTGRES = 'PostgreSQL needs the extra "postgres": pip install "cofire[postgres]"'
_POSTGRES = ("postgresql://", "postgres://")
_URL = re.compile(r"^[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def open_store(
    url_or_path: str | Path,
    *,
    create: bool = True,
    busy_timeout: float = 30.0,
    durability: str = "normal",
    statement_timeout: float = 300.0,
    pool_size: int = 8,
    master_key: bytes | None = None,
    encrypt_new: bool = False,
) -> Store:
    """Opens a store, or makes it. The only place that knows the back ends by name.

    `url_or_path` is a file, or `sqlite:///relative/file` or `sqlite:////absolute/file`, or
    `postgresql://user@host/database` (all that libpq takes, and `pooler=transaction` behind a
    pooler); there the schema must be made first, by `cofire db upgrade`. A store in memory only is
    refused.
    `busy_timeout` is how many seconds a write waits for other writers, and on PostgreSQL a caller
    for a server that restarts. `durability` is "full" (an acknowledged write survives a power
    failure) or "normal" (it survives the end of the process; the last moments before a power
    failure may be lost, never half of a write; on PostgreSQL: as the server is set).
    `statement_timeout` is how many seconds PostgreSQL works on one statement, `pool_size` how many
    connections to it this process may have.
    `master_key` (32 bytes) unwraps the keys of encrypted spaces; `encrypt_new`: spaces that are
    made from now on are encrypted.

    Raises NotFoundError (missing, and `create` is false), StoreUnavailableError,
    SchemaVersionError, StoreCorruptError, FormatError, ConfigurationError, InputError.
    """
    if durability not in {"full", "normal"}:
        raise InputError(f'durability is "full" or "normal", not {durability!r}')
    if not busy_timeout >= 0:
        raise InputError(f"busy_timeout is a number of seconds from 0, not {busy_timeout}")
    backend: Backend
    if is_postgres(url_or_path):
        vault = Vault(master_key, encrypt_new=encrypt_new)
        backend = _open_postgres(
            str(url_or_path),
            busy_timeout=busy_timeout,
            statement_timeout=statement_timeout,
            durability=durability,
            connections=pool_size,
        )
    else:
        path, options = _sqlite_path(url_or_path)
        vault = Vault(master_key, encrypt_new=encrypt_new)
        from cofire.store.sqlite_files import open_file

        backend = open_file(
            path,
            create=create,
            busy_timeout=busy_timeout,
            durability=durability,
            url_options=options,
        )
    backend.vault = vault
    try:
        return Store(backend)
    except BaseException:
        backend.close()
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """What bringing a store's schema up to date did: its revision before (None: there was no
    store) and after, and the copy made first, which only files get."""

    where: str
    before: str | None
    after: str
    copy: Path | None = None


def upgrade_store(
    url_or_path: str | Path,
    *,
    app_roles: Sequence[str] = (),
    partitions: int | None = None,
    busy_timeout: float = 30.0,
) -> Upgraded:
    """Brings a store's schema up to date: a file's as opening does, a PostgreSQL database's as the
    role that owns (or will own) it.

    `app_roles` are granted what the library needs; `partitions` is how many parts the tables of a
    new store get. Raises NotFoundError, what `open_store` raises, and InputError for options that a
    file has no use for.
    """
    from cofire.store.migrations import HEAD

    if is_postgres(url_or_path):
        return _upgrade_postgres(str(url_or_path), app_roles, partitions)
    if app_roles or partitions is not None:
        raise InputError(f"{url_or_path}: a file has no roles and no partitions")
    path, options = _sqlite_path(url_or_path)
    from cofire.store.sqlite_files import upgrade_file

    before, copy = upgrade_file(path, busy_timeout=busy_timeout, url_options=options)
    return Upgraded(where=str(path), before=before, after=HEAD, copy=copy)


def _upgrade_postgres(url: str, app_roles: Sequence[str], partitions: int | None) -> Upgraded:
    try:
        from cofire.store.postgres_schema import PARTITIONS, upgrade
    except ImportError as exc:
        raise MissingExtraError(NEEDS_POSTGRES) from exc
    from cofire.store.urls import describe

    before, after = upgrade(url, app_roles=app_roles, partitions=partitions or PARTITIONS)
    return Upgraded(where=describe(url), before=before, after=after)


def schema_of(url_or_path: str | Path) -> str | None:
    """The schema revision of a file as it is; opening would change it. Raises what that does."""
    from cofire.store.sqlite_files import revision_of_file

    path, options = _sqlite_path(url_or_path)
    return revision_of_file(path, url_options=options)


def is_postgres(url_or_path: str | Path) -> bool:
    """Whether a store is named that is in a PostgreSQL database."""
    return isinstance(url_or_path, str) and url_or_path.lower().startswith(_POSTGRES)


def _open_postgres(url: str, **options: Any) -> Backend:
    try:
        from cofire.store.postgres_opening import open_database
    except ImportError as exc:
        raise MissingExtraError(NEEDS_POSTGRES) from exc
    return open_database(url, **options)


def _sqlite_path(url_or_path: str | Path) -> tuple[Path, dict[str, str]]:
    path, options = _path_and_options(url_or_path)
    name = str(path)
    in_memory = name == ":memory:" or options.get("mode") == "memory"
    if in_memory or (isinstance(url_or_path, str) and name.startswith("file:")):
        raise ConfigurationError(
            f"{url_or_path}: name a file, as in memories.db or sqlite:///memories.db; stores in "
            "memory only and SQLite's own file: names are not supported"
        )
    return path, options


def _path_and_options(url_or_path: str | Path) -> tuple[Path, dict[str, str]]:
    if isinstance(url_or_path, Path) or not _URL.match(url_or_path):
        if not str(url_or_path) or "\0" in str(url_or_path):
            raise InputError("a store needs the path of a file")
        return Path(url_or_path), {}
    parts = urlsplit(url_or_path)
    if parts.scheme not in {"sqlite", "sqlite+pysqlite"}:
        raise ConfigurationError(
            f"no back end for {parts.scheme}://; use the path of a file, sqlite:///file or "
            "postgresql://user@host/database"
        )
    if parts.netloc or len(parts.path) < 2:
        raise ConfigurationError(
            f"{url_or_path}: name a file, as in sqlite:///memories.db (three slashes; four for an "
            "absolute path); stores in memory only are not supported"
        )
    return Path(unquote(parts.path[1:])), dict(parse_qsl(parts.query))

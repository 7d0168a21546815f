"""The copies that migrations leave beside a store. Nobody asked for them, so deletion reaches them:
a copy that holds anything of what is deleted goes whole, since its schema is an older one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from cofire.logs import get_logger

_log = get_logger(__name__)

_THERE = (
    "SELECT 1 FROM spaces JOIN items ON items.tenant = spaces.tenant AND items.space = spaces.id "
    "WHERE spaces.tenant = ? AND spaces.id = ?"
)


def copy_before(store: Path, revision: str) -> Path:
    """Where a store is copied to before it is brought on from a schema."""
    return store.with_name(f"{store.name}.schema-{revision}.backup")


def drop_copies(store: Path, tenant: int, spaces: Mapping[int, Sequence[bytes] | None]) -> bool:
    """Deletes the copies that hold any of a tenant's memories, by space (None: all of it), or that
    cannot be read; returns whether none is left. A file that cannot be deleted is logged."""
    left = True
    for copy in _copies(store):
        if not _holds(copy, tenant, spaces):
            continue
        try:
            copy.unlink()
        except OSError as exc:
            _log.warning(
                "a copy from before a migration holds what was deleted; delete it yourself",
                copy=str(copy),
                reason=str(exc),
            )
            left = False
    return left


def _copies(store: Path) -> list[Path]:
    start, end = f"{store.name}.schema-", ".backup"
    return [
        found
        for found in store.parent.iterdir()
        if found.name.startswith(start) and found.name.endswith(end) and found.is_file()
    ]


def _holds(copy: Path, tenant: int, spaces: Mapping[int, Sequence[bytes] | None]) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(copy))}?mode=ro", uri=True)) as connection:
            for space, uids in spaces.items():
                if uids is None:
                    if connection.execute(f"{_THERE} LIMIT 1", (tenant, space)).fetchone():
                        return True
                    continue
                for uid in uids:
                    if connection.execute(
                        f"{_THERE} AND items.uid = ?", (tenant, space, uid)
                    ).fetchone():
                        return True
    except sqlite3.Error:
        return True
    return False

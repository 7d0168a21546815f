"""Write what the migrations make of an empty SQLite file, so that new stores need not run them;
`--check` only says if it is stale."""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from cofire.store.migrations import HEAD, NEW_STORE
from cofire.store.sqlite_files import migrate_anew


def content(connection: sqlite3.Connection) -> dict[str, Any]:
    """The schema of an empty store, and the rows that it has from the beginning."""
    schema = [
        sql
        for name, sql in connection.execute("SELECT name, sql FROM sqlite_master")
        if sql is not None and not name.startswith("sqlite_")
    ]
    rows = {
        table: [list(row) for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608
        for table in ("alembic_version", "sqlite_stat1")
    }
    return {"revision": HEAD, "schema": schema, "rows": rows}


def made() -> str:
    """The file as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.db"
        migrate_anew(path)
        with closing(sqlite3.connect(path)) as connection:
            return json.dumps(content(connection), indent=1) + "\n"


def main() -> int:
    text = made()
    if "--check" in sys.argv[1:]:
        if NEW_STORE.exists() and NEW_STORE.read_text(encoding="utf-8") == text:
            return 0
        print(f"{NEW_STORE} is stale: run python scripts/make_new_store.py")
        return 1
    NEW_STORE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Somebody who reads a store behind Cofire's back, and so is in the way of clearing its files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def a_reader(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody who reads the state of this moment and does not stop."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("BEGIN")
        assert connection.execute("SELECT count(*) FROM items").fetchone()
        yield connection
    finally:
        connection.close()

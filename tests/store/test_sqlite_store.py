"""The SQLite store passes the conformance suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from cofire.store import open_store
from cofire.testing import Opener, StoreConformance


class TestSQLiteStore(StoreConformance):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        return lambda: open_store(tmp_path / "store.db")


class TestSQLiteStoreNormalDurability(StoreConformance):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        return lambda: open_store(f"sqlite:///{tmp_path}/a%20b?c.db".replace("?", "%3F"),
                                  durability="normal")  # fmt: skip

"""The SQLite store passes the conformance suite."""

from __future__ import annotations

import os
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


class TestEncryptedSQLiteStore(StoreConformance):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        key = os.urandom(32)
        return lambda: open_store(tmp_path / "store.db", master_key=key, encrypt_new=True)

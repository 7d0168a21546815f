"""The PostgreSQL store passes the conformance suite, as an application's role."""

from __future__ import annotations

import os

import pytest

from cofire.store import open_store
from cofire.testing import Opener, StoreConformance
from postgres_server import Database


class TestPostgresStore(StoreConformance):
    @pytest.fixture
    def opener(self, postgres_store: Database) -> Opener:
        return lambda: open_store(postgres_store.app_url)


class TestEncryptedPostgresStore(StoreConformance):
    @pytest.fixture
    def opener(self, postgres_store: Database) -> Opener:
        key = os.urandom(32)
        return lambda: open_store(postgres_store.app_url, master_key=key, encrypt_new=True)

"""The store under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cofire.store import Store
from cofire.store.records import SpaceInfo
from cofire.testing.samples import make_space

Opener = Callable[[], Store]
TENANTS = ("default", "other", "t1", "t2")
"""Every tenant that a test has."""


class StoreFixtures:
    """The store that each test gets, and a space in it."""

    @pytest.fixture
    def opener(self) -> Opener:
        """A function that opens the store under test; each test gets a new, empty one."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, opener: Opener) -> Iterator[Store]:
        with opener() as store:
            yield store
            for tenant in TENANTS:
                assert list(store.check(tenant)) == []

    @pytest.fixture
    def space(self, store: Store) -> SpaceInfo:
        return make_space(store)

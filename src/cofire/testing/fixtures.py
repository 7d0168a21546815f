"""The store under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cofire.store import Store
from cofire.store.records import SpaceInfo
from cofire.testing.samples import make_space

Opener = Callable[[], Store]


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
            assert list(store.check()) == []

    @pytest.fixture
    def space(self, store: Store) -> SpaceInfo:
        return make_space(store)

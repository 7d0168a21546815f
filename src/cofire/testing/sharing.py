"""Many at once: threads, several openings, closing."""

from __future__ import annotations

import threading

import pytest

from cofire.errors import StoreError
from cofire.store import Store
from cofire.store.records import SpaceInfo
from cofire.testing.changes import seen
from cofire.testing.fixtures import Opener, StoreFixtures
from cofire.testing.samples import an_item, make_space


class SharingTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_threads_lose_nothing(self, store: Store, space: SpaceInfo) -> None:
        errors: list[BaseException] = []

        def work(name: int) -> None:
            try:
                for index in range(40):
                    store.append(space, [an_item(f"{name}-{index}", session=str(name))])
                    seen(store, space, store.revision(space) - 1)
            except BaseException as exc:  # noqa: BLE001 - shown by the assertion below
                errors.append(exc)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert store.counts(space).items == 320
        assert store.revision(space) == 320
        assert len(seen(store, space, 0).links) == 8 * 39

    def test_another_opening_sees_the_next_call(
        self, opener: Opener, store: Store, space: SpaceInfo
    ) -> None:
        with opener() as other:
            assert other.counts(space).items == 0
            store.append(space, [an_item()])
            assert other.counts(space).items == 1
            assert other.revision(space) == 1

    def test_a_closed_store_says_so(self, opener: Opener) -> None:
        store = opener()
        space = make_space(store)
        store.close()
        store.close()
        for call in (lambda: store.revision(space), lambda: store.append(space, [an_item()])):
            with pytest.raises(StoreError, match="closed"):
                call()

"""Vectors: late ones, another model, projections."""

from __future__ import annotations

import pytest

from cofire.errors import ConfigurationError, EmbeddingMismatchError, InputError
from cofire.store import Store
from cofire.store.records import SpaceInfo
from cofire.testing.changes import seen
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import DIMENSION, MODEL, a_vector, an_item, fill


class VectorTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_reembedding_can_stop_and_go_on(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        wanting = [row.number for row in store.pending(space, "new", 2)]
        assert wanting == [1, 3, 4, 5]
        assert [row.number for row in store.pending(space, MODEL, DIMENSION)] == [5]
        assert [row.content for row in store.pending(space, "new", 2, limit=2)] == ["one", "long"]
        before = store.revision(space)
        assert store.put_vectors(space, "new", 2, [(1, b"\0\x3c\0\0"), (99, b"\0\x3c\0\0")]) == 1
        assert store.revision(space) == before
        assert [row.number for row in store.pending(space, "new", 2)] == [3, 4, 5]
        with pytest.raises(ConfigurationError, match="2 memories"):
            store.switch_model(space, "new", 2)
        store.put_vectors(space, "new", 2, [(3, b"\0\0\0\x3c"), (4, b"\0\0\0\x3c")])
        switched = store.switch_model(space, "new", 2)
        assert (switched.model, switched.dimension) == ("new", 2)
        changes = seen(store, space, before)
        assert changes.rebuild
        assert [row.vector for row in changes.rows] == [
            b"\0\x3c\0\0", None, b"\0\0\0\x3c", b"\0\0\0\x3c", None,
        ]  # fmt: skip
        assert store.counts(space).pending == 1
        with pytest.raises(EmbeddingMismatchError):
            store.append(space, [an_item(vector=a_vector(1))])
        store.append(switched, [an_item(vector=b"\0\x3c\0\0")])
        with pytest.raises(InputError):
            store.put_vectors(space, "new", 2, [(1, b"\0")])

    def test_switching_may_leave_some_for_later(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        switched = store.switch_model(space, "new", 2, allow_missing=True)
        assert store.counts(space).pending == 4
        assert store.put_vectors(switched, "new", 2, [(1, b"\0\x3c\0\0")]) == 1
        assert store.counts(space).pending == 3

    def test_a_late_vector_is_seen(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item(pending=True)])
        assert store.put_vectors(space, MODEL, DIMENSION, [(1, a_vector(1))]) == 1
        (row,) = seen(store, space, 1).rows
        assert row.vector == a_vector(1)
        assert store.vectors(space, [1, 2]) == {1: a_vector(1)}
        assert store.counts(space).pending == 0

    def test_only_a_newer_projection_is_kept(self, store: Store, space: SpaceInfo) -> None:
        assert store.projection(space) is None
        store.put_projection(space, 1, b"one")
        store.put_projection(space, 2, b"two")
        assert store.projection(space) == (2, b"two")
        with pytest.raises(InputError):
            store.put_projection(space, 2, b"other")

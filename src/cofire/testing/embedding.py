"""Vectors: late ones, another model, projections."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cofire.errors import ConfigurationError, EmbeddingMismatchError, InputError
from cofire.store import Store
from cofire.store.records import ItemRow, NewVector, SpaceInfo
from cofire.testing.changes import seen
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import DIMENSION, MODEL, a_vector, an_item, fill, some_segments

ACROSS = b"\0\x3c\0\0"
ALONG = b"\0\0\0\x3c"


def made(rows: Mapping[int, ItemRow], vectors: Mapping[int, bytes]) -> list[NewVector]:
    """Vectors, by number, of the texts that these rows had."""
    return [NewVector(number, rows[number].revision, vector) for number, vector in vectors.items()]


def pending(store: Store, space: SpaceInfo, model: str, dimension: int) -> dict[int, ItemRow]:
    """What lacks a vector, by number."""
    return {row.number: row for row in store.pending(space, model, dimension)}


class VectorTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_reembedding_can_stop_and_go_on(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        wanting = pending(store, space, "new", 2)
        assert list(wanting) == [1, 3, 4, 5]
        assert list(pending(store, space, MODEL, DIMENSION)) == [5]
        assert [row.content for row in store.pending(space, "new", 2, limit=2)] == ["one", "long"]
        before = store.revision(space)
        first = [*made(wanting, {1: ACROSS}), NewVector(99, before, ACROSS)]
        assert store.put_vectors(space, "new", 2, first) == 1
        assert store.revision(space) == before
        assert list(pending(store, space, "new", 2)) == [3, 4, 5]
        with pytest.raises(ConfigurationError, match="2 memories"):
            store.switch_model(space, "new", 2)
        assert store.put_vectors(space, "new", 2, made(wanting, {3: ALONG, 4: ALONG})) == 2
        switched = store.switch_model(space, "new", 2)
        assert (switched.model, switched.dimension) == ("new", 2)
        changes = seen(store, space, before)
        assert changes.rebuild
        assert [row.vector for row in changes.rows] == [ACROSS, None, ALONG, ALONG, None]
        assert store.counts(space).pending == 1
        with pytest.raises(EmbeddingMismatchError):
            store.append(space, [an_item(vector=a_vector(1))])
        store.append(switched, [an_item(vector=ACROSS)])
        with pytest.raises(InputError):
            store.put_vectors(space, "new", 2, made(wanting, {1: b"\0"}))

    def test_switching_may_leave_some_for_later(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        switched = store.switch_model(space, "new", 2, allow_missing=True)
        assert store.counts(space).pending == 4
        wanting = pending(store, switched, "new", 2)
        assert store.put_vectors(switched, "new", 2, made(wanting, {1: ACROSS})) == 1
        assert store.counts(space).pending == 3

    def test_a_late_vector_is_seen(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item(pending=True)])
        late = made(pending(store, space, MODEL, DIMENSION), {1: a_vector(1)})
        assert store.put_vectors(space, MODEL, DIMENSION, late) == 1
        (row,) = seen(store, space, 1).rows
        assert row.vector == a_vector(1)
        assert store.vectors(space, [1, 2]) == {1: a_vector(1)}
        assert store.counts(space).pending == 0

    @pytest.mark.parametrize("own", [True, False])
    def test_a_vector_of_a_former_text_is_not_written(
        self, store: Store, space: SpaceInfo, *, own: bool
    ) -> None:
        parts = some_segments((0, 4), (4, 9), pending=True)
        store.append(
            space,
            [
                an_item("old", pending=True),
                an_item("kept", pending=True),
                an_item("long text", segments=parts),
                an_item("gone", pending=True),
            ],
        )
        model, dimension = (MODEL, DIMENSION) if own else ("new", 2)
        vector = a_vector(1) if own else ACROSS
        wanting = pending(store, space, model, dimension)
        assert list(wanting) == [1, 2, 4, 5, 6]
        store.update(space, 1, an_item("new", pending=True), now=1)
        store.update(space, 3, an_item("song next", segments=parts), now=1)
        store.forget(space, [6])
        late = made(wanting, dict.fromkeys(wanting, vector))
        before = store.revision(space)
        assert store.put_vectors(space, model, dimension, late) == 1
        assert store.revision(space) == before + own
        left = pending(store, space, model, dimension)
        assert {number: row.content for number, row in left.items()} == {
            1: "new", 4: "song", 5: " next",
        }  # fmt: skip
        if own:
            assert store.vectors(space, list(wanting)) == {2: vector}
        # What was passed over is made anew, of the text there is now.
        again = made(left, dict.fromkeys(left, vector))
        assert store.put_vectors(space, model, dimension, again) == 3
        assert pending(store, space, model, dimension) == {}
        assert list(store.check("default")) == []

    def test_only_a_newer_projection_is_kept(self, store: Store, space: SpaceInfo) -> None:
        assert store.projection(space) is None
        store.put_projection(space, 1, b"one")
        store.put_projection(space, 2, b"two")
        assert store.projection(space) == (2, b"two")
        with pytest.raises(InputError):
            store.put_projection(space, 2, b"other")

"""Spaces: told apart, kept, refused, forgotten whole."""

from __future__ import annotations

import pytest

from cofire.errors import EmbeddingMismatchError, InputError, NotFoundError
from cofire.store import Store
from cofire.store.records import SpaceInfo
from cofire.testing.changes import seen
from cofire.testing.fixtures import Opener, StoreFixtures
from cofire.testing.samples import DIMENSION, MODEL, an_item, fill, make_space
from cofire.types import SpaceRef


class SpaceTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_a_missing_space_is_none_unless_made(self, store: Store) -> None:
        ref = SpaceRef(identity="a", user="u")
        assert store.space(ref, create=False) is None
        made = store.space(ref, create=True, now=7)
        assert made is not None
        assert made.ref == ref
        assert (made.revision, made.model, made.dimension, made.settings) == (0, None, None, {})
        assert store.space(ref, create=True) == made

    def test_spaces_are_told_apart(self, store: Store) -> None:
        refs = [
            SpaceRef(identity="a"),
            SpaceRef(identity="a", user="u"),
            SpaceRef(identity="u"),
            SpaceRef(project="a"),
            SpaceRef(tenant="other", identity="a"),
            SpaceRef(identity="%"),
            SpaceRef(identity="A"),
        ]
        made = [store.space(ref, create=True) for ref in refs]
        assert len({(space.tenant_id, space.space_id) for space in made if space}) == len(refs)
        assert {space.ref for space in store.spaces("default")} == {*refs[:4], *refs[5:]}
        assert {space.ref for space in store.spaces("other")} == {refs[4]}
        assert store.spaces("nobody") == []
        if store.shared:
            with pytest.raises(InputError, match="name one"):
                store.spaces()
        else:
            assert {space.ref for space in store.spaces()} == set(refs)

    @pytest.mark.parametrize(
        "ref", [SpaceRef(), SpaceRef(user="u"), SpaceRef(project="p", identity="a")]
    )
    def test_a_space_needs_an_owner(self, store: Store, ref: SpaceRef) -> None:
        with pytest.raises(InputError):
            store.space(ref, create=True)

    def test_settings_are_kept(self, opener: Opener, store: Store, space: SpaceInfo) -> None:
        store.set_settings(space, {"rule": "linear", "alpha": 0.1})
        with opener() as again:
            assert again.refreshed(space).settings == {"rule": "linear", "alpha": 0.1}

    def test_another_model_is_refused(self, store: Store, space: SpaceInfo) -> None:
        assert store.set_model(space, MODEL, DIMENSION) == store.refreshed(space)
        for model, dimension in ((MODEL, 8), ("other", DIMENSION)):
            with pytest.raises(EmbeddingMismatchError, match="cofire reembed"):
                store.set_model(space, model, dimension)

    def test_forgetting_a_space_leaves_the_others(self, store: Store) -> None:
        spaces = [make_space(store, *who) for who in (("u1", "t1"), ("u2", "t1"), ("u1", "t2"))]
        for space in spaces:
            fill(store, space)
        store.forget_space(spaces[0])
        assert store.space(spaces[0].ref, create=False) is None
        for verb in (store.revision, store.counts, store.refreshed):
            with pytest.raises(NotFoundError):
                verb(spaces[0])
        with pytest.raises(NotFoundError):
            store.append(spaces[0], [an_item()])
        with pytest.raises(NotFoundError):
            store.forget_space(spaces[0])
        for space in spaces[1:]:
            assert store.counts(space).items == 3
            assert len(seen(store, space, 0).rows) == 5
        again = make_space(store, "u1", "t1")
        assert again.space_id not in {space.space_id for space in spaces}
        assert store.counts(again).items == 0

"""Changing: updates with history, keys, segments; links by hand."""

from __future__ import annotations

import pytest

from cofire.errors import InputError, KeyConflictError, NotFoundError
from cofire.store import Store
from cofire.store.records import SpaceInfo, VersionRow
from cofire.testing.changes import seen
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import a_vector, an_item, some_segments
from cofire.types import Filters


class ChangingTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_update_keeps_the_former_text(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item("old", title="t", tags=("a",), metadata={"k": 1}, key="key")])
        new = an_item("new", tags=("b",), speaker="Ada", vector=a_vector(0, 1), recorded=9)
        updated = store.update(space, 1, new, now=50)
        assert (updated.version, updated.revision) == (2, 2)
        row = store.get(space, 1)
        assert row is not None
        assert (row.content, row.title, row.tags, row.key) == ("new", None, ("b",), "key")
        assert (row.recorded, row.updated, row.version) == (1_000, 50, 2)
        assert row.uid != new.uid
        assert store.history(space, 1) == [VersionRow(1, 1, "old", "t", 50)]
        assert store.list([space], Filters(tags=("a",))) == []
        assert store.list([space], Filters(metadata={"k": 1})) == []
        (changed,) = seen(store, space, 1).rows
        assert changed.vector == a_vector(0, 1)
        assert store.update(space, 1, new, now=60).version == 2
        assert len(store.history(space, 1)) == 1
        with pytest.raises(NotFoundError):
            store.update(space, 99, new, now=1)

    def test_update_may_change_the_key(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item("one", key="k1"), an_item("two", key="k2"), an_item("three")])
        store.update(space, 1, an_item("one", key="ignored"), now=2)
        assert store.find_keys(space, ["k1", "ignored"]).keys() == {"k1"}
        store.update(space, 1, an_item("changed"), now=3, key="k9")
        store.update(space, 1, an_item("changed"), now=3, key="k9")
        store.update(space, 3, an_item("three"), now=3, key="k3")
        row = store.get(space, 1)
        assert row is not None
        assert (row.key, row.content, row.version) == ("k9", "changed", 2)
        assert store.find_keys(space, ["k1", "k3", "k9"]).keys() == {"k3", "k9"}
        before = store.revision(space)
        with pytest.raises(KeyConflictError, match="'k2'"):
            store.update(space, 1, an_item("again"), now=4, key="k2")
        assert store.revision(space) == before
        assert [row.content for row in store.fetch(space, [1, 2])] == ["changed", "two"]
        assert store.append(space, [an_item("another", key="k1")]).created == (True,)
        assert store.append(space, [an_item("changed", key="k9")]).created == (False,)

    def test_update_replaces_segments_that_moved(self, store: Store, space: SpaceInfo) -> None:
        text = "first part second part"
        segments = some_segments((0, 11), (11, 22), vector=a_vector(1))
        store.append(space, [an_item(text, segments=segments)])
        before = store.revision(space)
        same = some_segments((0, 11), (11, 22), vector=a_vector(0, 1))
        store.update(space, 1, an_item(text, segments=same, tags=("t",), importance=9), now=2)
        changes = seen(store, space, before)
        assert [row.number for row in changes.rows] == [1, 2, 3]
        assert {row.importance for row in changes.rows} == {9}
        assert changes.rows[1].vector == a_vector(0, 1)
        assert changes.removed_items == []
        before = store.revision(space)
        moved = some_segments((0, 5), (5, 10), (10, 22))
        store.update(space, 1, an_item(text, segments=moved), now=3)
        changes = seen(store, space, before)
        assert [row.number for row in changes.rows] == [1, 4, 5, 6]
        assert changes.removed_items == [2, 3]
        assert changes.removed_links == [(2, 3)]
        assert [(link.source, link.target) for link in changes.links] == [(4, 5), (5, 6)]
        store.update(space, 1, an_item("short", vector=a_vector(1)), now=4)
        assert store.counts(space).segments == 0

    def test_links(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item() for _ in range(3)])
        revision = store.link(space, 1, 2, "supports", 0.7, now=9)
        assert revision == store.revision(space) == 2
        (link,) = store.links(space, 2)
        assert (link.source, link.target, link.type, link.strength) == (1, 2, "supports", 0.7)
        assert link.source_uid == store.fetch(space, [1])[0].uid
        for bad in (-0.1, 1.1, float("nan"), float("inf")):
            with pytest.raises(InputError):
                store.link(space, 2, 1, "related", bad)
        for arguments in ((1, 2, "related"), (1, 1, "related"), (1, 3, "nonsense")):
            with pytest.raises(InputError):
                store.link(space, *arguments)
        for ends in ((1, 99), (99, 1)):
            with pytest.raises(NotFoundError):
                store.link(space, *ends, "related")
        assert store.revision(space) == 2
        store.unlink(space, 1, 2)
        changes = seen(store, space, 2)
        assert changes.removed_links == [(1, 2)]
        assert store.links(space, 1) == []
        with pytest.raises(NotFoundError):
            store.unlink(space, 1, 2)

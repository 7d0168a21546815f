"""Forgetting: nothing is left, and chains have no gaps."""

from __future__ import annotations

import pytest

from cofire.store import Store
from cofire.store.records import LINK_TYPES, SpaceInfo
from cofire.testing.changes import seen
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import an_item, fill, some_segments
from cofire.types import Filters, LinkType


class ForgettingTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_forgetting_leaves_nothing(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        before = store.revision(space)
        assert store.forget(space, [2, 99]) == 1
        changes = seen(store, space, before)
        assert changes.removed_items == [2, 3, 4]
        assert set(changes.removed_links) == {(1, 2), (3, 4)}
        assert store.fetch(space, [2, 3, 4]) == []
        assert store.history(space, 2) == []
        assert store.links(space, 1) == []
        assert store.vectors(space, [3, 4]) == {}
        assert store.list([space], Filters(tags=("t",))) == []
        assert store.forget(space, [2]) == 0
        assert store.forget(space, []) == 0
        record = store.recall_record(space, b"r" * 16)
        assert record is not None
        assert [hit.number for hit in record.hits] == [1]
        store.forget(space, [1])
        assert store.recall_record(space, b"r" * 16) is None

    def test_a_segment_stands_for_its_whole(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        assert store.forget(space, [3]) == 1
        assert store.get(space, 2) is None

    def test_a_forgotten_turn_leaves_no_gap(self, store: Store, space: SpaceInfo) -> None:
        turns = [an_item(str(at), session="s", recorded=100 + at) for at in range(1, 10)]
        store.append(space, [*turns, an_item("ten", session="t")])
        store.link(space, 3, 6, "supports", 0.9)
        before = store.revision(space)
        assert store.forget(space, [4, 1, 9, 7, 5]) == 5  # both ends, one turn, two in a row
        assert store.revision(space) == before + 1
        changes = seen(store, space, before)
        assert [(link.source, link.target) for link in changes.links] == [(6, 8)]
        chain = {(link.source, link.target): link for link in seen(store, space, 0).links}
        assert chain.keys() == {(2, 3), (3, 6), (6, 8)}
        assert LINK_TYPES[chain[3, 6].type] is LinkType.SUPPORTS  # what is linked stays so
        (link,) = store.links(space, 8)
        assert (link.type, link.strength, link.created) == ("temporal", 0.5, 108)
        assert (link.coactivations, link.last_coactivated) == (0, None)
        store.append(space, [an_item("eleven", session="s")])
        store.forget(space, [8])
        assert [(link.source, link.target) for link in store.links(space, 11)] == [(6, 11)]

    def test_a_chain_closes_over_a_segmented_turn(self, store: Store, space: SpaceInfo) -> None:
        text = "one part and another"
        segments = some_segments((0, 9), (9, len(text)))
        again = some_segments((0, 9), (9, len(text)))
        long = an_item(text, session="s", segments=segments)
        store.append(
            space,
            [
                an_item(session="s"),
                long,
                an_item(text, session="s", segments=again),
                an_item(session="s"),
            ],
        )
        assert {(link.source, link.target) for link in seen(store, space, 0).links} == {
            (1, 2), (2, 5), (5, 8), (3, 4), (6, 7),
        }  # fmt: skip
        assert store.forget(space, [4]) == 1  # a segment stands for its whole
        pairs = {(link.source, link.target) for link in seen(store, space, 0).links}
        assert pairs == {(1, 5), (5, 8), (6, 7)}

    def test_only_gaps_in_a_session_are_closed(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item(), an_item(), an_item(), an_item(session="s")])
        for source, target in ((1, 2), (2, 3), (4, 2), (2, 4)):
            store.link(space, source, target, "temporal")
        store.append(space, [an_item(session="s") for _ in range(2)], link_sessions=False)
        store.forget(space, [2, 5])
        assert seen(store, space, 0).links == []

    def test_an_old_reader_rebuilds(
        self, store: Store, space: SpaceInfo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cofire.store.forgetting.KEPT_TOMBSTONES", 10)
        store.append(space, [an_item() for _ in range(40)])
        start = store.revision(space)
        for number in range(1, 31):
            store.forget(space, [number])
        changes = seen(store, space, start)
        assert changes.rebuild
        assert [row.number for row in changes.rows] == list(range(31, 41))
        recent = seen(store, space, store.revision(space) - 2)
        assert not recent.rebuild
        assert recent.removed_items == [29, 30]

"""Forgetting: nothing is left, and chains have no gaps."""

from __future__ import annotations

import pytest

from cofire.errors import ConfigurationError
from cofire.store import Store
from cofire.store.records import LINK_TYPES, SpaceInfo
from cofire.testing.changes import seen
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import an_item, fill, make_space, some_segments
from cofire.types import Filters, LinkType


class ForgettingTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_forgetting_leaves_nothing(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        before = store.revision(space)
        assert store.forget(space, [2, 99]).memories == 1
        changes = seen(store, space, before)
        assert changes.removed_items == [2, 3, 4]
        assert set(changes.removed_links) == {(1, 2), (3, 4)}
        assert store.fetch(space, [2, 3, 4]) == []
        assert store.history(space, 2) == []
        assert store.links(space, 1) == []
        assert store.vectors(space, [3, 4]) == {}
        assert store.list([space], Filters(tags=("t",))) == []
        assert store.forget(space, [2]).memories == 0
        assert store.forget(space, []).memories == 0
        record = store.recall_record(space, b"r" * 16)
        assert record is not None
        assert [hit.number for hit in record.hits] == [1]
        store.forget(space, [1])
        assert store.recall_record(space, b"r" * 16) is None

    def test_a_receipt_says_what_went_and_is_kept(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        other = make_space(store, "other")
        (also,) = store.append(other, [an_item("x")]).numbers
        uid = next(row.uid for row in store.iterate_items(space) if row.number == 2)
        would = store.delete([(space, [2])], b"w" * 16, now=90, rehearse=True)
        assert store.receipts(space.tenant_id) == []
        assert store.get(space, 2) is not None
        assert store.links(space, 1) != []
        receipt = store.delete([(space, [4, 99]), (other, [also])], b"a" * 16, now=90)
        first, second = receipt.parts
        assert first == would.parts[0]
        assert (first.ref, first.uids, first.numbers) == (space.ref, (uid,), (2, 3, 4))
        assert (first.memories, first.links, first.recalls, first.whole) == (1, 2, 0, False)
        assert (second.ref, second.numbers, second.memories) == (other.ref, (also,), 1)
        assert (receipt.time, receipt.scrubbed) == (90, False)
        assert store.receipt(space.tenant_id, b"a" * 16) == receipt
        assert store.receipt(space.tenant_id + 1, b"a" * 16) is None
        assert store.traces(receipt) == {}
        store.clear_traces(thorough=True)
        assert store.pending_receipts() == []
        assert store.shared or store.receipts(space.tenant_id)[0].scrubbed
        later = store.delete_space(other, b"b" * 16, now=91)
        assert (later.parts[0].whole, later.parts[0].memories) == (True, 0)
        assert [row.uid[:1] for row in store.receipts(space.tenant_id)] == [b"b", b"a"]
        if store.shared:  # the operator's
            with pytest.raises(ConfigurationError):
                store.scrub()
            return
        assert [row.uid[:1] for row in store.pending_receipts()] == [b"b"]
        store.scrub()
        assert store.pending_receipts() == []

    def test_what_is_there_again_is_found(self, store: Store, space: SpaceInfo) -> None:
        item = an_item("one", session="s")
        store.append(space, [item])
        receipt = store.delete([(space, [1])], b"a" * 16, now=90)
        assert store.traces(receipt) == {}
        elsewhere = make_space(store, "elsewhere")
        store.append(elsewhere, [item])
        assert store.traces(receipt) == {"items": 1}
        store.clear_traces(thorough=True)
        if not store.shared:
            assert [row.uid for row in store.pending_receipts()] == [receipt.uid]
        gone = store.delete_space(elsewhere, b"b" * 16, now=91)
        assert (store.traces(gone), store.traces(receipt)) == ({}, {})

    def test_the_receipt_of_a_space_looks_for_the_space(
        self, store: Store, space: SpaceInfo
    ) -> None:
        fill(store, space)
        receipt = store.delete_space(space, b"a" * 16, now=90, rehearse=True)
        found = store.traces(receipt)
        assert found["items"] == 5
        assert {"vectors", "links", "versions", "recalls", "recall_items", "tags"} <= found.keys()
        store.delete_space(space, b"a" * 16, now=90)
        assert store.traces(receipt) == {}

    def test_a_segment_stands_for_its_whole(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        assert store.forget(space, [3]).memories == 1
        assert store.get(space, 2) is None

    def test_a_forgotten_turn_leaves_no_gap(self, store: Store, space: SpaceInfo) -> None:
        turns = [an_item(str(at), session="s", recorded=100 + at) for at in range(1, 10)]
        store.append(space, [*turns, an_item("ten", session="t")])
        store.link(space, 3, 6, "supports", 0.9)
        before = store.revision(space)
        assert (
            store.forget(space, [4, 1, 9, 7, 5]).memories == 5
        )  # both ends, one turn, two in a row
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
        assert store.forget(space, [4]).memories == 1  # a segment stands for its whole
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

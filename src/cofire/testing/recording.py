"""Use: recall records, access counts, the learning log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cofire.errors import InputError
from cofire.store import Store
from cofire.store.records import EventRecord, SpaceInfo
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import a_recall, fill, make_space


class RecordingTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_recalls_count_and_do_not_move_the_revision(
        self, store: Store, space: SpaceInfo
    ) -> None:
        fill(store, space)
        before = store.revision(space)
        gone = make_space(store, "gone")
        store.forget_space(gone)
        batch = [a_recall(uid=b"1" * 16, numbers=(1, 4, 99), time=60),
                 a_recall(uid=b"2" * 16, numbers=(4, 3), time=50),
                 a_recall(uid=b"3" * 16, numbers=(99,)),
                 a_recall(uid=b"4" * 16, numbers=())]  # fmt: skip
        entries = [(space, record) for record in batch] + [(gone, batch[0])]
        assert store.record_recalls(entries) == 3
        assert store.record_recalls(entries) == 0
        assert store.revision(space) == before
        row = store.fetch(space, [2])[0]
        assert (row.access_count, row.last_accessed) == (2, 60)
        record = store.recall_record(space, b"1" * 16)
        assert record is not None
        assert [hit.number for hit in record.hits] == [1, 4]
        store.record_access(space, [4, 99], 70)
        assert store.fetch(space, [2])[0].last_accessed == 70
        # Records are as old as their uids say, whatever time their callers gave.
        assert store.purge_recalls(space, before=int.from_bytes(b"4" * 6, "big") * 1_000) == 2
        assert [found.uid for found in store.iterate_recalls(space)] == [b"4" * 16, b"r" * 16]
        assert store.recall_record(space, b"1" * 16) is None

    def test_events_are_numbered_by_the_store(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        event = EventRecord(
            recall=b"r" * 16, type="feedback", items=((1, 1.0), (2, -0.5)), outcome=0.5,
            signal="used", principal="p", time=5,
        )  # fmt: skip
        assert store.append_events(space, [event, event]) == 2
        assert store.append_events(space, [event]) == 3
        events = list(store.iterate_events(space))
        assert [found.seq for found in events] == [1, 2, 3]
        assert events[0].items == event.items
        assert store.replay(space) == 1  # appending alone moves no link
        full = replace(
            event, items=((1, 1.0), (5, 1.0), (77, 1.0)), question=(1 << 64) - 1, trusted=True,
            via=((5, 1), (1, 77)), recall=None, outcome=None,
        )  # fmt: skip
        store.append_events(space, [full])
        (*_, found) = store.iterate_events(space)
        assert found == replace(full, seq=4, items=((1, 1.0), (5, 1.0)), via=((5, 1),))
        for wrong in (
            replace(event, signal="wished"), replace(event, outcome=2.0),
            replace(event, items=((1, 1.0), (1, 0.5))), replace(event, items=((1, -1.5),)),
        ):  # fmt: skip
            with pytest.raises(InputError):
                store.append_events(space, [wrong])

    def test_a_hit_says_which_link_alone_brought_it(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        record = a_recall(uid=b"v" * 16, numbers=(1, 5))
        hits = (record.hits[0], record.hits[1]._replace(linked=True, via=1))
        store.record_recalls([(space, replace(record, hits=hits))])
        found = store.recall_record(space, b"v" * 16)
        assert found is not None
        assert found.hits == hits

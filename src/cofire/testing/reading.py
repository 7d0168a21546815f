"""Reading: changes, lookups, pages, filters, counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cofire.errors import InputError
from cofire.ids import new_uuid7
from cofire.store import Store
from cofire.store.records import UNTRUSTED_SIGNAL, SpaceInfo
from cofire.testing.changes import seen
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import (
    DIMENSION,
    MODEL,
    a_vector,
    an_item,
    fill,
    make_space,
    some_segments,
)
from cofire.types import Filters


class ReadingTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_changes_are_what_is_newer(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item(session="s")])
        first = seen(store, space, 0)
        assert first.rebuild
        store.append(space, [an_item(session="s", vector=a_vector(1))])
        second = seen(store, space, first.revision)
        assert not second.rebuild
        assert [row.number for row in second.rows] == [2]
        assert [(link.source, link.target) for link in second.links] == [(1, 2)]
        nothing = seen(store, space, second.revision)
        assert (nothing.revision, nothing.rows, nothing.rebuild) == (second.revision, [], False)
        assert seen(store, space, second.revision + 9).rebuild

    def test_fetch_keeps_the_order_and_skips_the_unknown(
        self, store: Store, space: SpaceInfo
    ) -> None:
        store.append(space, [an_item(str(number)) for number in range(1, 4)])
        assert [row.content for row in store.fetch(space, [3, 99, 1])] == ["3", "1"]
        assert store.fetch(space, []) == []
        assert store.get(space, 99) is None
        assert store.get(space, b"\0" * 16) is None

    def test_long_lists_of_numbers_work(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item("last")])
        many = list(range(40_000, 0, -1))
        assert [row.content for row in store.fetch(space, many)] == ["last"]
        assert store.forget(space, many).memories == 1

    def test_locate_looks_only_where_told(self, store: Store) -> None:
        one, two = make_space(store, "one"), make_space(store, "two")
        uid = new_uuid7().bytes
        store.append(two, [an_item(), an_item(uid=uid)])
        assert store.locate([one, two], uid) == (two, 2)
        assert store.locate([one], uid) is None
        assert store.locate([], uid) is None

    def test_keys_are_found(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item("one", key="k1"), an_item("two", key="K1"), an_item("three")])
        store.append(make_space(store, "other"), [an_item("elsewhere", key="k3")])
        found = store.find_keys(space, ["k1", "k3", "none", "K1", "k1"])
        assert {key: row.content for key, row in found.items()} == {"k1": "one", "K1": "two"}
        assert store.find_keys(space, []) == {}
        store.forget(space, [1])
        assert list(store.find_keys(space, ["k1", "K1"])) == ["K1"]

    def test_metadata_are_found(self, store: Store, space: SpaceInfo) -> None:
        store.append(
            space,
            [
                an_item("one", metadata={"path": "a\\_b%", "n": 1}),
                an_item("two", metadata={"path": "x", "digest": "y"}),
                an_item("three", metadata={"path": "x"}),
                an_item("four", metadata={"path": ["x"]}),
                an_item("five", metadata={"other": "x"}),
            ],
        )

        def found(name: str, *values: str) -> list[str]:
            return [row.content for row in store.find_metadata(space, name, values)]

        assert found("path", "x") == ["two", "three"]
        assert found("path", "x", "a\\_b%", "x") == ["one", "two", "three"]
        assert found("path", "%") == found("n", "1") == found("path") == []
        store.update(space, 3, an_item("three", metadata={"path": "z"}), now=1)
        assert (found("path", "x"), found("path", "z")) == (["two"], ["three"])

    def test_pages_follow_time_and_uid(self, store: Store) -> None:
        one, two = make_space(store, "one"), make_space(store, "two")
        for index in range(7):
            for space in (one, two):
                store.append(space, [an_item(time=index // 2), an_item(time=5 - index)])
        for newest_first in (False, True):
            listed: list[tuple[int, bytes]] = []
            after = None
            while True:
                page = store.list([one, two], after=after, limit=3, newest_first=newest_first)
                listed += [(row.item.time, row.item.uid) for row in page]
                if len(page) < 3:
                    break
                after = listed[-1]
            assert len(set(listed)) == 28
            assert listed == sorted(listed, reverse=newest_first)
        assert store.list([]) == []
        with pytest.raises(InputError):
            store.list([one], limit=0)

    def test_filters_are_literal(self, store: Store, space: SpaceInfo) -> None:
        base = datetime(2024, 1, 1, tzinfo=UTC)
        day = 86_400_000_000
        start = 1_704_067_200_000_000
        store.append(
            space,
            [
                an_item("plan", tags=("foo_bar", "x"), time=start, speaker="Ada"),
                an_item("secret", tags=("fooXbar",), time=start + day, speaker="ada"),
                an_item("path", metadata={"path": "a\\_b%", "n": 1}, time=start + 2 * day),
                an_item("other", metadata={"path": "aX_bY", "n": 1.5}, session="s",
                        time=start + 3 * day),
                an_item("fact", kind="fact", metadata={"n": {"a": [1, None]}}, time=start),
            ],
        )  # fmt: skip

        def found(**wanted: Any) -> list[str]:
            rows = store.list([space], Filters(**wanted), newest_first=False)
            return sorted(row.item.content for row in rows)

        assert found(tags=("foo_bar",)) == ["plan"]
        assert found(tags=("foo_bar", "x")) == ["plan"]
        assert found(tags=("foo_bar", "fooXbar")) == []
        assert found(tags=("%",)) == found(tags=("FOO_BAR",)) == []
        assert found(metadata={"path": "a\\_b%"}) == ["path"]
        assert found(metadata={"n": 1.0}) == ["path"]
        assert found(metadata={"n": "1"}) == found(metadata={"missing": None}) == []
        assert found(metadata={"n": {"a": [1, None]}}) == ["fact"]
        assert found(speakers=("Ada",)) == ["plan"]
        assert found(speakers=("Ada", "ada")) == ["plan", "secret"]
        assert found(sessions=("s",)) == ["other"]
        assert found(kinds=("fact",)) == ["fact"]
        assert found(since=base + timedelta(days=1), until=base + timedelta(days=3)) == [
            "path",
            "secret",
        ]

    def test_what_is_not_trusted_can_be_left_out(self, store: Store, space: SpaceInfo) -> None:
        parts = some_segments((0, 1), (2, 3))
        store.append(space, [an_item("a b"), an_item("c d", untrusted=True, segments=parts)])

        def marked() -> dict[int, bool]:
            rows = seen(store, space, 0).rows
            return {row.number: row.signals & UNTRUSTED_SIGNAL > 0 for row in rows}

        def trusted() -> list[str]:
            rows = store.list([space], Filters(trusted_only=True))
            return sorted(row.item.content for row in rows)

        assert marked() == {1: False, 2: True, 3: True, 4: True}
        assert trusted() == ["a b"]
        assert [row.untrusted for row in store.fetch(space, [1, 2, 3])] == [False, True, True]
        store.update(space, 2, an_item("c d", segments=parts), now=1)
        assert (trusted(), any(marked().values())) == (["a b", "c d"], False)
        updated = store.update(space, 1, an_item("a b", untrusted=True), now=2)
        assert (trusted(), updated.version) == (["c d"], 2)

    def test_counts(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        counts = store.counts(space)
        assert (counts.items, counts.segments, counts.links, counts.pending) == (3, 2, 2, 1)
        assert counts.by_kind == {"episode": 2, "fact": 1}
        assert (counts.model, counts.dimension) == (MODEL, DIMENSION)
        assert (counts.oldest, counts.newest) == (10, 30)
        assert store.counts(make_space(store, "empty")).oldest is None
        assert store.shared or store.size() > 0

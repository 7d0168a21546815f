"""What any store must do, as tests that a back end of your own can run (needs pytest).

Subclass `StoreConformance` in a test module, give it a fixture `opener` that returns a function
opening the same empty store again and again, and pytest does the rest:

    class TestMine(StoreConformance):
        @pytest.fixture
        def opener(self, tmp_path):
            return lambda: open_store(tmp_path / "store.db")
"""

# ruff: noqa: S101 - these are tests

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cofire.errors import (
    ConfigurationError,
    EmbeddingMismatchError,
    InputError,
    KeyConflictError,
    NotFoundError,
    StoreError,
)
from cofire.store import Store
from cofire.store.records import (
    KINDS,
    LINK_TYPES,
    Amendment,
    EventRecord,
    GraphLink,
    GraphRow,
    LinkRow,
    NewItem,
    NewSegment,
    RecallHit,
    RecallRecord,
    SpaceInfo,
    VersionRow,
    facet_hash,
)
from cofire.types import Filters, SpaceRef, new_uuid7

Opener = Callable[[], Store]
MODEL, DIMENSION = "test-model", 4


def a_vector(*values: float) -> bytes:
    """A stored vector of `DIMENSION` numbers (the rest zero)."""
    return struct.pack(f"<{DIMENSION}e", *values, *(0.0,) * (DIMENSION - len(values)))


def some_terms(*hashes: int) -> bytes:
    """A terms blob with every count 1."""
    return struct.pack(f"<{len(hashes)}Q", *sorted(hashes)) + b"\1" * len(hashes)


def an_item(content: str = "hello", **fields: Any) -> NewItem:
    """An item with what a test does not care about filled in."""
    defaults: dict[str, Any] = {"uid": new_uuid7().bytes, "time": 1_000, "recorded": 1_000}
    return NewItem(content=content, **{**defaults, **fields})


def some_segments(*places: tuple[int, int], **fields: Any) -> tuple[NewSegment, ...]:
    """Segments at these character places."""
    return tuple(
        NewSegment(uid=new_uuid7().bytes, start=start, end=end, **fields) for start, end in places
    )


def make_space(store: Store, identity: str = "agent", tenant: str = "default") -> SpaceInfo:
    """A space with the test model."""
    space = store.space(SpaceRef(tenant=tenant, identity=identity), create=True)
    assert space is not None
    return store.set_model(space, MODEL, DIMENSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Changes with named rows."""

    revision: int
    rebuild: bool
    rows: list[GraphRow]
    links: list[GraphLink]
    removed_items: list[int]
    removed_links: list[tuple[int, int]]


def seen(store: Store, space: SpaceInfo, since: int) -> Seen:
    """What changed since, with named rows."""
    changes = store.changes(space, since)
    rows, links = changes.named()
    return Seen(
        revision=changes.revision,
        rebuild=changes.rebuild,
        rows=rows,
        links=links,
        removed_items=changes.removed_items,
        removed_links=changes.removed_links,
    )


class StoreConformance:
    """Run by subclassing; see the module."""

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

    # Spaces

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
        assert len({space.space_id for space in made if space}) == len(refs)
        assert {space.ref for space in store.spaces()} == set(refs)
        assert {space.ref for space in store.spaces("other")} == {refs[4]}
        assert store.spaces("nobody") == []

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

    # Appending

    def test_every_field_comes_back(self, opener: Opener, store: Store, space: SpaceInfo) -> None:
        item = full_item()
        appended = store.append(space, [item])
        assert appended.created == (True,)
        assert appended.uids == (item.uid,)
        assert appended.revision == store.revision(space) == 1
        with opener() as again:
            row = again.get(space, item.uid)
        assert row is not None
        same = [
            "uid",
            "kind",
            "content",
            "title",
            "speaker",
            "role",
            "session",
            "time",
            "offset",
            "recorded",
            "expires",
            "archived",
            "tags",
            "importance",
            "pinned",
            "metadata",
            "key",
            "language",
            "keywords",
            "tokens",
            "event_times",
            "pending",
            "confidence",
            "valid_from",
            "valid_to",
            "untrusted",
        ]
        assert {name: getattr(row, name) for name in same} == {
            name: getattr(item, name) for name in same
        }
        assert (row.number, row.parent, row.whole) == (appended.numbers[0], 0, item.uid)
        assert (row.updated, row.version, row.revision) == (item.recorded, 1, 1)
        assert (row.access_count, row.last_accessed) == (0, None)

    def test_the_graph_gets_every_column(self, store: Store, space: SpaceInfo) -> None:
        item = full_item()
        store.append(space, [item])
        (row,) = seen(store, space, 0).rows
        assert KINDS[row.kind] == item.kind
        assert row.speaker == facet_hash("speaker", item.speaker or "")
        assert row.session == facet_hash("session", item.session or "")
        assert (row.event_start, row.event_end) == (5, 30)
        same = [
            "uid",
            "time",
            "expires",
            "importance",
            "signals",
            "length",
            "terms",
            "concepts",
            "facets",
            "vector",
        ]
        assert {name: getattr(row, name) for name in same} == {
            name: getattr(item, name) for name in same
        }
        assert (row.number, row.revision, row.parent, row.pinned) == (1, 1, 0, 1)

    @pytest.mark.parametrize(
        "text",
        ["", " ", "\x00", "a\x00b", "'; DROP TABLE items; --", "%_\\", "\U0001f600", "e\u0301",
         "\ufeff\r\n\t", "字" * 5_000, "x" * 1_000_000],
        ids=lambda text: f"{text[:8]!r}-{len(text)}",
    )  # fmt: skip
    def test_any_text_survives(self, store: Store, space: SpaceInfo, text: str) -> None:
        item = an_item(
            text, title=text, speaker=text, role=text, session=text, key=text, language=text,
            tags=(text,), keywords=(text,), metadata={text: [text, {text: text}]},
        )  # fmt: skip
        store.append(space, [item])
        row = store.get(space, 1)
        assert row is not None
        assert row.content == text
        assert (row.title, row.speaker, row.role, row.session) == (text,) * 4
        assert (row.key, row.language, row.tags, row.keywords) == (text, text, (text,), (text,))
        assert row.metadata == {text: [text, {text: text}]}
        filters = Filters(
            speakers=(text,), sessions=(text,), tags=(text,), metadata=dict(row.metadata)
        )
        assert [found.item.number for found in store.list([space], filters)] == [1]

    def test_a_lone_surrogate_is_a_clear_error(self, store: Store, space: SpaceInfo) -> None:
        with pytest.raises(InputError):
            store.append(space, [an_item("good"), an_item("\ud83d")])
        assert store.counts(space).items == 0
        store.append(space, [an_item("good")])

    def test_a_number_too_large_is_a_clear_error(self, store: Store, space: SpaceInfo) -> None:
        with pytest.raises(InputError):
            store.append(space, [an_item(time=1 << 70)])
        assert store.revision(space) == 0

    def test_numbers_are_dense_and_never_used_again(self, store: Store, space: SpaceInfo) -> None:
        assert store.append(space, [an_item(), an_item()]).numbers == (1, 2)
        assert store.append(space, [an_item(key="k")]).numbers == (3,)
        repeated = store.append(space, [an_item(), an_item(key="k"), an_item()])
        assert repeated.numbers == (4, 3, 5)
        store.forget(space, [5])
        assert store.append(space, [an_item()]).numbers == (6,)

    def test_a_key_makes_repetition_harmless(self, store: Store, space: SpaceInfo) -> None:
        first = store.append(space, [an_item("text", key="k")])
        again = store.append(space, [an_item("text", key="k"), an_item("text", key="k")])
        assert again.created == (False, False)
        assert again.uids == first.uids * 2
        both = store.append(space, [an_item("new", key="n"), an_item("new", key="n")])
        assert both.created == (True, False)
        assert len(set(both.uids)) == 1
        other = make_space(store, "other")
        assert store.append(other, [an_item("else", key="k")]).created == (True,)

    def test_a_key_with_another_text_writes_nothing(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item("text", key="k")])
        before = store.revision(space)
        with pytest.raises(KeyConflictError, match="'k'"):
            store.append(space, [an_item("new"), an_item("other", key="k")])
        assert store.revision(space) == before
        assert store.counts(space).items == 1

    def test_a_failed_batch_leaves_nothing(self, store: Store, space: SpaceInfo) -> None:
        uid = new_uuid7().bytes
        bad = (
            an_item(uid=uid),
            an_item(vector=b"\0" * 3),
            an_item(kind="nonsense"),
        )
        store.append(space, [an_item(uid=uid)])
        for item in bad:
            with pytest.raises(InputError):
                store.append(space, [an_item(session="s", tags=("t",)), item])
        assert store.revision(space) == 1
        assert store.counts(space).items == 1
        assert store.append(space, []).revision == 1

    def test_turns_of_a_session_are_chained(self, store: Store, space: SpaceInfo) -> None:
        store.append(
            space,
            [
                an_item("a", session="s", time=10),
                an_item("x"),
                an_item("b", session="s", time=20),
                an_item("other", session="t"),
            ],
        )
        store.append(space, [an_item("late", session="s", time=5)])
        links = seen(store, space, 0).links
        assert [(link.source, link.target) for link in links] == [(1, 3), (3, 5)]
        assert {LINK_TYPES[link.type].value for link in links} == {"temporal"}
        assert {link.strength for link in links} == {0.5}
        store.append(space, [an_item(session="s")], link_sessions=False)
        assert len(seen(store, space, 0).links) == 2

    def test_segments_are_cut_from_their_text(self, store: Store, space: SpaceInfo) -> None:
        text = "Ünïcödé 🎉 text, first; and second."
        segments = some_segments((0, 16), (16, len(text)), vector=a_vector(1), terms=some_terms(3))
        whole = an_item(
            text, segments=segments, session="s", speaker="Ada", tags=("t",), tokens=400,
            event_times=(("x", 5, 6, 0, 3), ("y", 7, 9, 20, 25)),
        )  # fmt: skip
        store.append(space, [an_item(session="s"), whole, an_item(session="s")])
        rows = store.fetch(space, [4, 2, 3, 5])
        assert [row.content for row in rows] == [text[16:], text, text[:16], "hello"]
        assert [row.parent for row in rows] == [2, 0, 2, 0]
        assert {row.whole for row in rows[:3]} == {whole.uid}
        assert [row.segment for row in rows] == [1, 0, 0, 0]
        assert [row.segments for row in rows] == [2, 2, 2, 0]
        assert {(row.speaker, row.session, row.tags) for row in rows[:3]} == {("Ada", "s", ("t",))}
        graph = {row.number: row for row in seen(store, space, 0).rows}
        assert graph[3].speaker == graph[2].speaker
        assert graph[3].session == graph[1].session
        assert (graph[3].event_start, graph[3].event_end) == (5, 6)
        assert (graph[4].event_start, graph[4].event_end) == (7, 9)
        assert (graph[2].vector, graph[3].vector) == (None, a_vector(1))
        links = seen(store, space, 0).links
        assert {(link.source, link.target) for link in links} == {(1, 2), (2, 5), (3, 4)}
        counts = store.counts(space)
        assert (counts.items, counts.segments) == (3, 2)
        assert [found.item.number for found in store.list([space])] != [3, 4]

    # Reading

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
        assert store.forget(space, many) == 1

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

    def test_counts(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        counts = store.counts(space)
        assert (counts.items, counts.segments, counts.links, counts.pending) == (3, 2, 2, 1)
        assert counts.by_kind == {"episode": 2, "fact": 1}
        assert (counts.model, counts.dimension) == (MODEL, DIMENSION)
        assert (counts.oldest, counts.newest) == (10, 30)
        assert store.counts(make_space(store, "empty")).oldest is None
        assert store.size() > 0

    # Changing

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

    # Forgetting

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

    # Vectors

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

    # Use

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
        assert store.purge_recalls(space, before=55) == 3
        assert [found.uid for found in store.iterate_recalls(space)] == [b"1" * 16]

    def test_events_are_numbered_by_the_store(self, store: Store, space: SpaceInfo) -> None:
        event = EventRecord(
            recall=b"r" * 16, type="feedback", items=((1, 1.0), (2, -0.5)), outcome=0.5,
            signal="used", principal="p", time=5,
        )  # fmt: skip
        assert store.append_events(space, [event, event]) == 2
        assert store.append_events(space, [event]) == 3
        events = list(store.iterate_events(space))
        assert [found.seq for found in events] == [1, 2, 3]
        assert events[0].items == event.items

    # Whole spaces

    def test_a_copy_can_be_made_of_what_iterates(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        store.update(space, 1, an_item("one, changed", session="s", time=10), now=77)
        other = make_space(store, "copy")
        copy_space(store, space, other)
        for iterate in (store.iterate_items, store.iterate_links, store.iterate_versions):
            one = [row._replace(**zeroed(row)) for row in iterate(space)]
            two = [row._replace(**zeroed(row)) for row in iterate(other)]
            assert [shown(row) for row in one] == [shown(row) for row in two]
        assert [row.number for row in store.iterate_items(space, last=2)] == [1, 2]
        assert [row.number for row in store.iterate_items(space, segments=True)] == [1, 2, 3, 4, 5]

    def test_iteration_goes_past_a_page(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item(session="s") for _ in range(1_203)])
        assert [row.number for row in store.iterate_items(space)] == list(range(1, 1_204))
        assert len(list(store.iterate_links(space))) == 1_202

    # Many at once

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


def a_recall(*, uid: bytes, numbers: Sequence[int], time: int = 50) -> RecallRecord:
    """A recall record whose hits are these numbers."""
    return RecallRecord(
        uid=uid,
        query="what?",
        time=time,
        profile="cofire",
        hits=tuple(
            RecallHit(number, position, 0.5, linked=False)
            for position, number in enumerate(numbers)
        ),
    )


def full_item() -> NewItem:
    """An item with every field set to something of its own."""
    return NewItem(
        uid=new_uuid7().bytes,
        kind="fact",
        content="content",
        title="title",
        speaker="speaker",
        role="role",
        session="session",
        time=-5,
        offset=-330,
        recorded=12,
        expires=13,
        archived=14,
        tags=("b", "a"),
        importance=7,
        pinned=True,
        metadata={"b": [1, 2.5, None, True], "a": {"ü": "x"}},
        key="key",
        language="de",
        keywords=("k1", "k2"),
        tokens=17,
        event_times=(("then", 20, 30, 1, 5), ("before", 5, 6, 7, 9)),
        signals=(1 << 40) + 1,
        length=19,
        terms=some_terms(1, (1 << 64) - 1),
        concepts=some_terms(5),
        facets=struct.pack("<2Q", 1, 2),
        vector=a_vector(0.5, -0.25),
        confidence=0.25,
        valid_from=40,
        valid_to=50,
        untrusted=True,
    )


def fill(store: Store, space: SpaceInfo) -> None:
    """Three items (1; 2 with segments 3 and 4; 5), history, a recall: something everywhere."""
    store.append(
        space,
        [
            an_item("one", session="s", time=10, vector=a_vector(1)),
            an_item(
                "long text",
                session="s",
                time=20,
                tags=("t",),
                metadata={"m": 1},
                segments=some_segments((0, 4), (4, 9), vector=a_vector(0, 1)),
            ),
            an_item("five", kind="fact", time=30, pending=True),
        ],
    )
    changed = an_item(
        "long text",
        title="new title",
        session="s",
        time=20,
        tags=("t",),
        metadata={"m": 1},
        segments=some_segments((0, 4), (4, 9), vector=a_vector(0, 1)),
    )
    store.update(space, 2, changed, now=40)
    store.record_recalls([(space, a_recall(uid=b"r" * 16, numbers=(1, 3)))], count_use=False)


def copy_space(store: Store, space: SpaceInfo, other: SpaceInfo) -> None:
    """Copies items, history, counts and links by the verbs an import uses."""
    numbers: dict[int, int] = {}
    history = list(store.iterate_versions(space))
    for row in store.iterate_items(space):
        segments = [
            part for part in store.iterate_items(space, segments=True) if part.parent == row.number
        ]
        item = an_item(
            row.content,
            uid=row.uid, kind=row.kind, title=row.title, session=row.session, time=row.time,
            recorded=row.recorded, tags=row.tags, metadata=row.metadata, pending=row.pending,
            segments=tuple(
                NewSegment(uid=part.uid, start=part.start, end=part.end) for part in segments
            ),
        )  # fmt: skip
        (number,) = store.append(other, [item], link_sessions=False).numbers
        numbers[row.number] = number
        numbers.update({part.number: number + 1 + index for index, part in enumerate(segments)})
        store.amend(
            other,
            [
                Amendment(
                    number=number,
                    updated=row.updated,
                    version=row.version,
                    access_count=row.access_count,
                    last_accessed=row.last_accessed,
                    history=tuple(found for found in history if found.number == row.number),
                )
            ],
        )
    links = [
        link._replace(source=numbers[link.source], target=numbers[link.target])
        for link in store.iterate_links(space)
    ]
    store.put_links(other, links)
    store.put_links(other, links)


def zeroed(row: Any) -> dict[str, Any]:
    """What differs between copies on purpose."""
    return {"revision": 0} if isinstance(row, LinkRow) or hasattr(row, "revision") else {}


def shown(row: Any) -> dict[str, Any]:
    """A row as names and values, for readable differences."""
    values: dict[str, Any] = row._asdict()
    return values

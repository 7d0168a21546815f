"""Appending: every field, keys, batches, sessions, segments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cofire.errors import InputError, KeyConflictError
from cofire.ids import new_uuid7
from cofire.store import Store
from cofire.store.records import KINDS, LINK_TYPES, UNTRUSTED_SIGNAL, SpaceInfo, facet_hash
from cofire.testing.changes import seen
from cofire.testing.fixtures import Opener, StoreFixtures
from cofire.testing.samples import (
    a_vector,
    an_item,
    full_item,
    make_space,
    some_segments,
    some_terms,
)
from cofire.types import Filters


class AppendingTests(StoreFixtures):
    """Part of `StoreConformance`."""

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
        store.append(space, [full_item()])
        assert not seen(store, space, 0).rows  # what is archived is not in the graph
        item = replace(full_item(), archived=None, key=None)
        store.append(space, [item])
        item = replace(item, signals=item.signals | UNTRUSTED_SIGNAL)  # as it is not trusted
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
            "valid_from",
            "valid_to",
            "recorded",
        ]
        assert {name: getattr(row, name) for name in same} == {
            name: getattr(item, name) for name in same
        }
        assert (row.number, row.revision, row.parent, row.pinned) == (2, 2, 0, 1)

    @pytest.mark.parametrize(
        "text",
        ["", " ", "'; DROP TABLE items; --", "%_\\", "\U0001f600", "e\u0301",
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

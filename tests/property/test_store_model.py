"""Random appends, updates, links and deletions against a model in a dictionary.

A reader that applies every `changes` to what it has must always hold the same picture as one that
reads everything anew.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cofire.errors import InputError, KeyConflictError
from cofire.store import open_store
from cofire.store.records import Changes, GraphLink, GraphRow, NewItem, NewVector
from cofire.testing import DIMENSION, MODEL, a_vector, an_item, make_space, some_segments

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
few_keys = st.none() | st.sampled_from(["k1", "k2", "k3"])
few_sessions = st.none() | st.sampled_from(["s1", "s2"])


@st.composite
def new_items(draw: st.DrawFn) -> NewItem:
    text = draw(texts)
    cut = draw(st.integers(0, len(text)))
    segmented = draw(st.booleans()) and 0 < cut < len(text)
    vector = a_vector(1)
    return an_item(
        text,
        title=draw(st.none() | texts),
        key=draw(few_keys),
        session=draw(few_sessions),
        time=draw(st.integers(-(10**15), 10**16)),
        tags=tuple(draw(st.lists(texts, max_size=3))),
        metadata=draw(st.dictionaries(texts, st.none() | st.integers() | texts, max_size=2)),
        vector=None if segmented else draw(st.sampled_from([None, vector])),
        segments=some_segments((0, cut), (cut, len(text)), vector=vector) if segmented else (),
    )


class Reader:
    """A picture of the space kept by applying changes."""

    def __init__(self) -> None:
        self.revision = 0
        self.rows: dict[int, GraphRow] = {}
        self.links: dict[tuple[int, int], GraphLink] = {}

    def apply(self, changes: Changes) -> None:
        if changes.rebuild:
            self.rows.clear()
            self.links.clear()
        for number in changes.removed_items:
            self.rows.pop(number, None)
        for pair in changes.removed_links:
            self.links.pop(pair, None)
        rows, links = changes.named()
        self.rows.update({row.number: row for row in rows})
        self.links.update({(link.source, link.target): link for link in links})
        self.revision = changes.revision


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = open_store(Path(self.folder.name) / "m.db", durability="normal")
        self.space = make_space(self.store)
        self.model: dict[int, dict[str, Any]] = {}
        self.keys: dict[str, int] = {}
        self.eager = Reader()
        self.lazy = Reader()

    def teardown(self) -> None:
        assert list(self.store.check()) == []
        self.store.close()
        self.folder.cleanup()

    @rule(batch=st.lists(new_items(), min_size=1, max_size=4))
    def append(self, batch: list[NewItem]) -> None:
        known = {key: self.model[number]["content"] for key, number in self.keys.items()}
        conflict = False
        for item in batch:
            if item.key is not None:
                conflict |= known.setdefault(item.key, item.content) != item.content
        try:
            appended = self.store.append(self.space, batch)
        except KeyConflictError:
            assert conflict
            return
        assert not conflict
        for item, number, created in zip(batch, appended.numbers, appended.created, strict=True):
            if created:
                assert number not in self.model
                self.model[number] = {"history": [], "uid": item.uid, "key": item.key}
                self._remember(number, item)
                if item.key is not None:
                    self.keys[item.key] = number
            else:
                assert item.key is not None
                assert self.keys[item.key] == number

    def _remember(self, number: int, item: NewItem) -> None:
        self.model[number].update(
            content=item.content,
            title=item.title,
            session=item.session,
            time=item.time,
            tags=item.tags,
            metadata=dict(item.metadata),
            segments=len(item.segments),
        )

    @precondition(lambda self: self.model)
    @rule(data=st.data(), item=new_items(), key=few_keys)
    def update(self, data: st.DataObject, item: NewItem, key: str | None) -> None:
        number = data.draw(st.sampled_from(sorted(self.model)))
        former = self.model[number]
        if key is not None and self.keys.get(key, number) != number:
            with pytest.raises(KeyConflictError):
                self.store.update(self.space, number, item, now=5, key=key)
            return
        self.store.update(self.space, number, item, now=5, key=key)
        if key is not None:
            if former["key"] is not None:
                self.keys.pop(former["key"])
            self.keys[key] = number
            former["key"] = key
        if (former["content"], former["title"]) != (item.content, item.title):
            former["history"].append((former["content"], former["title"]))
        self._remember(number, item)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        numbers = data.draw(st.lists(st.sampled_from(sorted(self.model)), unique=True, max_size=3))
        assert self.store.forget(self.space, [*numbers, 10**9]).memories == len(numbers)
        for number in numbers:
            key = self.model.pop(number)["key"]
            if key is not None:
                del self.keys[key]

    @precondition(lambda self: len(self.model) > 1)
    @rule(data=st.data(), strength=st.floats(0, 1))
    def link(self, data: st.DataObject, strength: float) -> None:
        source, target = data.draw(
            st.lists(st.sampled_from(sorted(self.model)), unique=True, min_size=2, max_size=2)
        )
        linked = {(row.source, row.target) for row in self.store.links(self.space, source)}
        try:
            self.store.link(self.space, source, target, "related", strength)
        except InputError:
            assert (source, target) in linked
            self.store.unlink(self.space, source, target)

    @rule()
    def catch_up(self) -> None:
        self.lazy.apply(self.store.changes(self.space, self.lazy.revision))

    @rule()
    def reembed(self) -> None:
        for row in self.store.pending(self.space, MODEL, DIMENSION):
            made = NewVector(row.number, row.revision, a_vector(1))
            assert self.store.put_vectors(self.space, MODEL, DIMENSION, [made]) == 1

    @invariant()
    def readers_agree(self) -> None:
        full = Reader()
        full.apply(self.store.changes(self.space, 0))
        self.eager.apply(self.store.changes(self.space, self.eager.revision))
        assert self.eager.rows == full.rows
        assert self.eager.links == full.links
        late = Reader()
        late.rows, late.links = dict(self.lazy.rows), dict(self.lazy.links)
        late.apply(self.store.changes(self.space, self.lazy.revision))
        assert late.rows == full.rows
        assert late.links == full.links
        ends = {end for pair in full.links for end in pair}
        assert ends <= set(full.rows)

    @invariant()
    def the_model_agrees(self) -> None:
        rows = {row.number: row for row in self.store.iterate_items(self.space)}
        assert set(rows) == set(self.model)
        for number, wanted in self.model.items():
            row = rows[number]
            found = {name: getattr(row, name) for name in wanted if name != "history"}
            assert found == {name: value for name, value in wanted.items() if name != "history"}
            history = [(old.content, old.title) for old in self.store.history(self.space, number)]
            assert history == wanted["history"]
            assert row.version == len(history) + 1
        listed = [row.item.number for row in self.store.list([self.space], limit=1_000)]
        order = sorted(rows.values(), key=lambda row: (row.time, row.uid), reverse=True)
        assert listed == [row.number for row in order]


StoreMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestStoreAgainstModel = StoreMachine.TestCase

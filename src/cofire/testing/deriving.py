"""What is derived: filed, verified, ended, archived, and following what it rests on."""

from __future__ import annotations

from typing import Any

import pytest

from cofire.errors import InputError
from cofire.store import Store
from cofire.store.planning import OutdatedPlanError, Plan, Restated, Validity
from cofire.store.records import DERIVED_SIGNAL, DerivedRow, NewDerived, SpaceInfo, StepRow
from cofire.testing.changes import seen
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import a_vector, an_item, some_segments, some_terms
from cofire.types import LinkType

EVIDENCE, SUPERSEDES = LinkType.EVIDENCE.value, LinkType.SUPERSEDES.value


def a_record(*sources: int, content: str = "a fact", **fields: Any) -> NewDerived:
    """A derived memory that rests on version 1 of these."""
    item = fields.pop("item", {})
    return NewDerived(
        item=an_item(content, kind="fact", vector=a_vector(1), **item),
        maker=fields.pop("maker", "extractive"),
        sources=tuple((number, 1, 0, 2) for number in sources),
        links=tuple((number, EVIDENCE, 0.5) for number in sources),
        **fields,
    )


class DerivingTests(StoreFixtures):
    """Part of `StoreConformance`."""

    @pytest.fixture
    def turns(self, store: Store, space: SpaceInfo) -> tuple[int, ...]:
        """Three turns, 1 to 3."""
        return store.append(
            space, [an_item(text, terms=some_terms(at, 9)) for at, text in enumerate("abc", 1)]
        ).numbers

    def file(self, store: Store, space: SpaceInfo, *new: NewDerived, now: int = 50) -> list[int]:
        """Files them all; their numbers."""
        numbers = store.file_derived(space, new, now=now).numbers
        filed = [number for number in numbers if number is not None]
        assert len(filed) == len(new)
        return filed

    def one(self, store: Store, space: SpaceInfo, number: int) -> DerivedRow:
        """A derived memory as stored."""
        (row,) = store.derived(space, [number])
        return row

    def test_what_is_filed_comes_back(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        before = store.revision(space)
        new = a_record(
            1, 2, prompt="p@1", subject="Ada", slot="lives in", value="Porto", single=True,
            item={"confidence": 0.75, "valid_from": 5, "tags": ("t",), "metadata": {"a": 1}},
        )  # fmt: skip
        (number,) = self.file(store, space, new)
        row = self.one(store, space, number)
        assert (row.maker, row.prompt, row.state, row.subject) == (
            "extractive",
            "p@1",
            "current",
            "Ada",
        )
        assert (row.slot, row.value, row.single, row.reasons, row.closed) == (
            "lives in", "Porto", True, (), None,
        )  # fmt: skip
        assert [(one.source, one.version, one.start, one.end) for one in row.sources] == [
            (1, 1, 0, 2), (2, 1, 0, 2),
        ]  # fmt: skip
        assert (row.item.confidence, row.item.valid_from, row.item.archived) == (0.75, 5, None)
        changes = seen(store, space, before)
        assert [(one.number, one.signals & DERIVED_SIGNAL > 0) for one in changes.rows] == [
            (number, True)
        ]
        assert {(one.source, one.target) for one in changes.links} == {(number, 1), (number, 2)}
        assert [one.item.number for one in store.derived_about(space, ["ADA "])] == [number]
        assert store.resting_on(space, [1]) == {number: {1}}
        assert store.derived(space) == [row]

    def test_what_rests_on_what_has_changed_is_left_out(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        store.update(space, 1, an_item("a, edited"), now=20)
        store.forget(space, [3])
        filed = store.file_derived(space, [a_record(n) for n in (1, 2, 3)], now=50)
        assert [number is None for number in filed.numbers] == [True, False, True]
        assert filed.skipped == 2

    def test_what_is_not_trusted_is_out_of_the_graph(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        before = store.revision(space)
        new = a_record(1, state="quarantined", reasons=("quote: not there",))
        (number,) = self.file(store, space, new)
        row = self.one(store, space, number)
        assert (row.state, row.reasons, row.item.archived) == (
            "quarantined", ("quote: not there",), 50,
        )  # fmt: skip
        assert number not in [one.number for one in seen(store, space, before).rows]
        with pytest.raises(InputError, match="verification decides"):
            store.restore_archived(space, [number])
        store.set_sources(
            space, number, [(2, 1, 0, 1), (3, 9, 0, 1), (99, 0, 0, 0)],
            state="current", confidence=0.5, links_to=[(2, EVIDENCE, 0.5)], now=60,
        )  # fmt: skip
        row = self.one(store, space, number)
        assert (row.state, row.reasons, row.item.archived) == ("current", (), None)
        assert [one.source for one in row.sources] == [2], (
            "of 3 there is no version 9, and no 99 of any"
        )
        assert number in [one.number for one in seen(store, space, before).rows]

    def test_superseding_ends_and_forgetting_reopens(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        (old,) = self.file(store, space, a_record(1))
        self.file(store, space, a_record(2, supersedes=((old, 70),)), now=55)
        row = self.one(store, space, old)
        assert (row.item.valid_to, row.closed, row.item.archived) == (70, 55, None)
        assert store.closed_after(space, 54) == (old,)
        assert store.closed_after(space, 55) == ()
        (later,) = self.file(store, space, a_record(3, item={"valid_from": 90}))
        ends = Plan(
            joins=((later, old, "supersedes", 1.0),),
            validity=(Validity(old, row.item.valid_from, 90),),
        )
        store.apply(space, ends, now=56)
        forgotten = store.forget(space, [2], now=80)
        assert (forgotten.derived, forgotten.reopened) == (1, ())
        row = self.one(store, space, old)
        assert (row.item.valid_to, row.closed) == (90, 80), "the later one still ends it"
        assert store.forget(space, [later], now=81).reopened == (old,)
        row = self.one(store, space, old)
        assert (row.item.valid_to, row.closed) == (None, None)

    def test_archiving_is_reversible(self, store: Store, space: SpaceInfo) -> None:
        text = "one part and another"
        segments = some_segments((0, 9), (9, len(text)), vector=a_vector(1))
        store.append(
            space, [an_item("a", session="s"), an_item(text, session="s", segments=segments)]
        )
        whole = seen(store, space, 0)
        before = store.revision(space)
        assert store.archive(space, [2, 99], now=40) == [2]
        assert store.archive(space, [2], now=41) == []
        assert seen(store, space, before).removed_items == [2, 3, 4]
        assert [row.number for row in seen(store, space, 0).rows] == [1]
        assert [one.item.number for one in store.list([space])] == [1]
        assert [one.item.number for one in store.list([space], archived=True)] == [2]
        assert store.restore_archived(space, [2]) == [2]
        again = seen(store, space, 0)
        assert [row.number for row in again.rows] == [row.number for row in whole.rows]
        assert {(one.source, one.target) for one in again.links} == {
            (one.source, one.target) for one in whole.links
        }
        store.set_importance(space, [(2, 9)])
        assert {row.importance for row in seen(store, space, 0).rows if row.number > 1} == {9}

    def test_editing_a_source_makes_stale(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        first, second = self.file(store, space, a_record(1, 2), a_record(2))
        store.update(space, 1, an_item("a", title="of another title"), now=60)
        row = self.one(store, space, first)
        assert (row.state, row.item.archived) == ("stale", 60)
        assert row.reasons == ("quote: a source was edited",)
        assert self.one(store, space, second).state == "current"
        store.update(space, 2, an_item("b", tags=("only a tag",)), now=61)
        assert self.one(store, space, second).state == "current"

    def test_forgetting_reaches_what_rests_on_it(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        """`terms` of the turns are (1, 9), (2, 9), (3, 9): 1, 2 and 3 tell, 9 does not."""
        alone, common, telling, other = self.file(
            store,
            space,
            a_record(1, content="xx"),
            a_record(1, 2, content="yy", item={"terms": some_terms(9)}),
            a_record(1, 2, content="zz", item={"terms": some_terms(1)}),
            a_record(2, content="b"),
        )
        (deep,) = self.file(store, space, a_record(alone, content="deep"))
        (wide,) = self.file(store, space, a_record(alone, other, content="wide"))
        forgotten = store.forget(space, [1], now=70)
        assert (forgotten.memories, forgotten.derived) == (1, 3)
        assert forgotten.doubtful == (common, wide)
        assert [row.item.number for row in store.derived(space)] == [common, other, wide]
        states = [self.one(store, space, number).state for number in (common, other, wide)]
        assert states == ["stale", "current", "stale"]
        assert store.fetch(space, [alone, telling, deep]) == []
        assert [one.source for one in self.one(store, space, common).sources] == [2]

    def test_forgetting_takes_what_quotes_it(self, store: Store, space: SpaceInfo) -> None:
        gone, kept = store.append(
            space, [an_item("I left the key in the blue tin."), an_item("The tin is blue.")]
        ).numbers
        quoting, shared, history = self.file(
            store,
            space,
            a_record(gone, kept, content="I left the key in the blue tin."),
            a_record(gone, kept, content="The tin is blue."),
            a_record(gone, kept, content="before"),
        )
        store.update(space, history, an_item("after", kind="fact"), now=60)
        assert len(store.history(space, history)) == 1
        forgotten = store.forget(space, [gone], now=70)
        assert forgotten.derived == 1
        assert forgotten.doubtful == (shared, history)
        assert store.derived(space, [quoting]) == []
        assert store.history(space, history) == [], "what it said before may have quoted it"

    def test_making_room_for_a_better_record_is_no_deletion(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        (former,) = self.file(store, space, a_record(1, content="the same words"))
        (above,) = self.file(store, space, a_record(former, 2, content="the same words"))
        applied = store.apply(space, Plan(retired=(former,)), now=60)
        assert applied.retired == 1
        assert self.one(store, space, above).state == "stale"

    def test_a_plan_is_applied_with_its_note(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        (held,) = self.file(store, space, a_record(1, 2))
        noted = StepRow("distil", period=3, revision=7, seq=2, time=60)
        applied = store.apply(
            space,
            Plan(
                derived=(a_record(3), a_record(99)),
                restated=(Restated(number=held, sources=((2, 1, 0, 0),), confidence=0.5),),
                archived=(1,),
                importance=((2, 8),),
                joins=((1, 2, "related", 0.3), (1, 99, "related", 0.3), (-1, 2, "related", 0.3)),
            ),
            noted,
            before=StepRow("distil"),
            now=60,
        )
        assert [number is None for number in applied.filed] == [False, True]
        assert (applied.restated, applied.archived, applied.importance) == (1, 1, 1)
        related = [(link.source, link.target) for link in store.links(space, 2)
                   if link.type == "related"]  # fmt: skip
        assert related == [(1, 2), (applied.filed[0], 2)]
        assert store.steps(space) == {"distil": noted}
        assert [one.source for one in self.one(store, space, held).sources] == [2]

    def test_an_outdated_plan_does_nothing(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        first = StepRow("distil", seq=1, time=60)
        store.apply(space, Plan(archived=(1,)), first, before=StepRow("distil"), now=60)
        with pytest.raises(OutdatedPlanError):
            store.apply(
                space,
                Plan(archived=(2,)),
                StepRow("distil", seq=2),
                before=StepRow("distil"),
                now=61,
            )
        assert store.steps(space) == {"distil": first}
        assert [one.item.number for one in store.list([space], archived=True)] == [1]

    def test_how_it_was_made_can_be_copied(
        self, store: Store, space: SpaceInfo, turns: tuple[int, ...]
    ) -> None:
        self.file(store, space, a_record(1, 2, subject="Ada", value="x"), a_record(3, prompt="p@2"))
        rows = list(store.iterate_derived(space))
        assert [(row.number, len(row.sources)) for row in rows] == [(4, 2), (5, 1)]
        assert list(store.iterate_derived(space, last=4)) == rows[:1]
        other = store.space(type(space.ref)(identity="copy"), create=True)
        assert other is not None
        store.append(other, [an_item(text) for text in "abc"])
        store.append(other, [an_item("d", kind="fact"), an_item("e", kind="fact")])
        store.put_derived(other, rows)
        store.put_derived(other, rows)
        assert list(store.iterate_derived(other)) == rows
        assert [row.item.number for row in store.derived_about(other, ["ada"])] == [4]

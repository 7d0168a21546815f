"""Any sequence of learning, linking and forgetting: the links are what the log says, and the log
is what it would be had the forgotten never been used."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cofire.dynamics.plasticity import (
    COFIRE_RULE,
    DAY_US,
    RULES,
    SIGNALS,
    LinkState,
    Rule,
    current,
)
from cofire.errors import InputError
from cofire.store import Store, open_store, settling
from cofire.store.cues import NewCue
from cofire.store.learning import Learned, NewEvent
from cofire.store.records import SpaceInfo
from cofire.testing import an_item, make_space

MEMORIES = 7
NARROW = replace(COFIRE_RULE, name="narrow", links_per_item=2)
"""So few links that items lose some all the time."""
rules = st.sampled_from([*[NARROW] * 6, *RULES.values()])
numbers = st.integers(1, MEMORIES)


@dataclass(frozen=True)
class Use:
    """A piece of evidence; `question` also says which cue it is about (0: none)."""

    items: tuple[tuple[int, float], ...]
    signal: str
    outcome: float | None
    principal: str | None
    time: int
    question: int
    asked: bool
    trusted: bool
    via: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Tie:
    """A link by hand, made or, if there is one, removed."""

    source: int
    target: int
    type: str


uses = st.builds(
    Use,
    items=st.lists(
        st.tuples(numbers, st.sampled_from([1.0, 1.0, 1.0, 1.0, 0.5, -1.0])),
        min_size=2,
        max_size=4,
        unique_by=lambda item: item[0],
    ).map(tuple),
    signal=st.sampled_from([*["used"] * 12, *SIGNALS]),
    outcome=st.sampled_from([*[None] * 6, 0.5, -1.0]),
    principal=st.sampled_from([None, "p", "q"]),
    time=st.integers(0, 3 * DAY_US),
    question=st.integers(0, 3),
    asked=st.booleans(),
    trusted=st.booleans(),
    via=st.lists(st.tuples(numbers, numbers), max_size=1).map(tuple),
)
ties = (
    st.tuples(numbers, numbers)
    .filter(lambda ends: ends[0] != ends[1])
    .flatmap(
        lambda ends: st.builds(
            Tie, st.just(ends[0]), st.just(ends[1]), st.sampled_from(["supports", "coactivation"])
        )
    )
)
sequences = st.lists(uses | uses | uses | uses | ties, min_size=4, max_size=14)


@cache
def empty_store() -> bytes:
    """A store without anything: making one takes longer than most sequences."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.db"
        open_store(path).close()
        return path.read_bytes()


class World:
    """A store with some memories in one session, and the cue of each question."""

    def __init__(self, folder: str, name: str, rule: Rule) -> None:
        path = Path(folder) / name
        path.write_bytes(empty_store())
        self.store: Store = open_store(path, durability="normal")
        self.space: SpaceInfo = make_space(self.store)
        self.rule = rule
        self.cues: dict[int, int] = {}
        self.store.append(
            self.space,
            [an_item(str(number), session="s" if number > 3 else None)
             for number in range(1, MEMORIES + 1)],
        )  # fmt: skip

    def do(self, step: Use | Tie, without: int = 0) -> Learned | None:
        """One step, as if one of the memories had not been part of it."""
        if isinstance(step, Tie):
            if without not in (step.source, step.target):
                self._tie(step)
            return None
        cue = NewCue(
            item=an_item(str(step.question), kind="cue"), merge_into=self.cues.get(step.question)
        )
        done = self.store.learn(
            self.space,
            NewEvent(
                items=tuple(item for item in step.items if item[0] != without),
                signal=step.signal,
                outcome=step.outcome,
                principal=step.principal,
                time=step.time,
                question=step.question if step.asked else None,
                via={item: way for item, way in step.via if without not in (item, way)},
            ),
            self.rule,
            trusted=step.trusted,
            cue=cue if step.question else None,
            now=step.time,
        )
        if done.cue is not None:
            self.cues[step.question] = done.cue
        return done

    def _tie(self, step: Tie) -> None:
        try:
            self.store.link(self.space, step.source, step.target, step.type, 0.5)
        except InputError:
            rows = self.store.links(self.space, step.source)
            (row,) = (row for row in rows if row[:2] == (step.source, step.target))
            if row.last_coactivated is None:
                self.store.unlink(self.space, step.source, step.target)

    def tied(self, without: int) -> set[tuple[int, int, str]]:
        """Links made by hand, but for those of one memory."""
        return {
            (row.source, row.target, row.type)
            for row in self.store.iterate_links(self.space)
            if row.last_coactivated is None and without not in (row.source, row.target)
        }

    def stored(self) -> dict[tuple[int, int], LinkState]:
        found = {}
        for row in self.store.iterate_links(self.space):
            if row.last_coactivated is not None and row.quota_day is not None:
                paired = row.type == "coactivation"
                pair = (min(row[:2]), max(row[:2])) if paired else (row.source, row.target)
                found[pair] = LinkState(
                    row.strength, row.coactivations, row.last_coactivated, row.tick,
                    row.rejections, row.quota_day, row.quota,
                )  # fmt: skip
        return found

    def strengths(self) -> dict[tuple[str, int], LinkState]:
        """The stored states by memory and what it is linked to; of a cue, by its question."""
        contents = {row.number: row.content for row in self.store.iterate_items(self.space)}
        cues = {row.number for row in self.store.iterate_items(self.space) if row.kind == "cue"}
        return {
            (f"cue {contents[source]}" if source in cues else str(source), target): state
            for (source, target), state in self.stored().items()
        }

    def require_order(self) -> None:
        """What must hold at any time."""
        stored = self.stored()
        assert stored == self.store.fold(self.space)
        assert all(0.0 <= state.strength <= 1.0 for state in stored.values())
        degrees = Counter(
            end for pair, state in stored.items() if state.strength > 0.0 for end in pair
        )
        if self.rule.links_per_item is not None:
            assert max(degrees.values(), default=0) <= self.rule.links_per_item
        events = list(self.store.iterate_events(self.space))
        assert len({event.seq for event in events}) == len(events)


@settings(max_examples=40, deadline=None)
@given(
    steps=sequences,
    rule=rules,
    gone=numbers,
    later=st.lists(uses, max_size=4),
    wide=st.sampled_from([0, 3_000, 3_000]),
)
def test_the_forgotten_might_never_have_been_used(
    *, steps: Sequence[Use | Tie], rule: Rule, gone: int, later: Sequence[Use], wide: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(settling, "WIDE", wide)  # 0: by folding the whole log
        world = World(folder, "one.db", rule)
        never = World(folder, "never.db", rule)
        with world.store, never.store:
            for step in steps:
                world.do(step)
                world.require_order()
                never.do(step, without=gone)
            never.require_order()
            # Where a learned link lies, a link by hand may be refused: then the two histories
            # differ by more than the memory that was forgotten.
            assume(world.tied(without=gone) == never.tied(without=gone))
            world.store.forget(world.space, [gone])
            never.store.forget(never.space, [gone])
            world.require_order()
            assert list(world.store.check()) == []
            assert world.strengths() == never.strengths()
            assert evidence(world) == evidence(never)
            # And what is learned afterwards is the same, too.
            for question in list(world.cues):
                if world.store.get(world.space, world.cues[question]) is None:
                    del world.cues[question]
            for step in later:
                one = world.do(step, without=gone)
                two = never.do(step, without=gone)
                assert one is not None
                assert two is not None
                assert (one.seq is None) == (two.seq is None)
            world.require_order()
            assert world.strengths() == never.strengths()
            world.store.forget(world.space, list(range(1, MEMORIES + 1)))
            assert world.stored() == {}
            assert {event.type for event in world.store.iterate_events(world.space)} <= {"redact"}
            assert list(world.store.iterate_items(world.space)) == []


def evidence(world: World) -> list[tuple[object, ...]]:
    """What the log says, but for numbers of events and cues, and the notice of a redaction."""
    contents = {row.number: row.content for row in world.store.iterate_items(world.space)}
    return sorted(
        (
            event.type, event.time, event.items[:2] if event.type == "evict" else event.items,
            event.principal or "", event.signal or "", contents.get(event.cue or 0, ""),
        )
        for event in world.store.iterate_events(world.space)
        if event.type != "redact" and (event.type != "evict" or event.cue is None)
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(uses, max_size=14))
def test_nobody_moves_a_link_further_than_the_cap(steps: Sequence[Use]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, "one.db", replace(COFIRE_RULE, links_per_item=None))
        with world.store:
            moved: Counter[tuple[tuple[int, int], str, int]] = Counter()
            for step in steps:
                before = world.stored()
                world.do(replace(step, trusted=False))
                for pair, state in world.stored().items():
                    former = before.get(pair)
                    if state != former:
                        start = 0.0 if former is None else current(world.rule, former, state.last)
                        day = state.last // DAY_US
                        moved[pair, step.principal or "", day] += abs(  # type: ignore[assignment]
                            state.strength - start
                        )
            assert max(moved.values(), default=0) <= 0.2 + 1e-9


@settings(max_examples=25, deadline=None)
@given(steps=sequences, gone=st.lists(numbers, max_size=3), few=st.integers(1, 2))
def test_cues_stay_few_and_the_fold_stays_true(
    steps: Sequence[Use | Tie], gone: Sequence[int], few: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, "one.db", replace(NARROW, name="few", most_cues=few))
        with world.store:
            for step in steps:
                world.do(step)
                world.require_order()
                kinds = Counter(row.kind for row in world.store.iterate_items(world.space))
                assert kinds["cue"] <= few
            for number in gone:
                world.store.forget(world.space, [number])
                world.require_order()
            assert list(world.store.check()) == []
            assert world.store.replay(world.space) == 0


@pytest.mark.parametrize("asked", [False, True])
def test_ten_thousand_calls_move_a_link_no_further_than_one_day_allows(
    tmp_path: Path, asked: bool
) -> None:
    with open_store(tmp_path / "m.db") as store:
        space = make_space(store)
        store.append(space, [an_item("one"), an_item("two")])

        def call(principal: str, number: int, outcome: float = 1.0) -> None:
            event = NewEvent(
                items=((1, 1.0), (2, 1.0)), signal="used", time=number, outcome=outcome,
                principal=principal, question=number if asked else None,
            )  # fmt: skip
            store.learn(space, event, COFIRE_RULE, now=number)

        for number in range(10_000):
            call("spammer", number)
        (link,) = store.iterate_links(space)
        assert link.strength == pytest.approx(0.2)
        assert link.quota == (("spammer", 0.2),)
        for number in range(10_000, 10_020):
            call("another", number, -1.0)
        (link,) = store.iterate_links(space)
        assert link.strength < 0.01
        for number in range(10_020, 10_100):
            call("spammer", number)
        (link,) = store.iterate_links(space)
        assert link.strength < 0.01
        assert list(store.check()) == []

"""The fold beside a plain twin that looks at every link each time; and what the log tells."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cofire.dynamics.plasticity import COFIRE_RULE, DAY_US, LinkState, Rule, apply, cue_rule
from cofire.store import Store, open_store, settling
from cofire.store.folding import Fold, Pair, moves_of, taken_link
from cofire.store.records import EventRecord
from cofire.testing import an_item, make_space

MEMORIES = 7
NARROW = replace(COFIRE_RULE, name="narrow", links_per_item=2)
numbers = st.integers(1, MEMORIES)
evidence = st.builds(
    EventRecord,
    type=st.just("feedback"),
    recall=st.none(),
    items=st.lists(
        st.tuples(numbers, st.sampled_from([1.0, 1.0, 1.0, 0.5, -1.0])),
        min_size=2,
        max_size=4,
        unique_by=lambda item: item[0],
    ).map(lambda items: tuple(sorted(items))),
    signal=st.sampled_from(["used", "used", "used", "cited"]),
    outcome=st.sampled_from([None, None, None, -1.0]),
    principal=st.sampled_from([None, "p", "q"]),
    time=st.integers(0, 400 * DAY_US),
)
logs = st.lists(evidence, min_size=4, max_size=40)


def used(*items: int, principal: str, time: int) -> EventRecord:
    return EventRecord(
        type="feedback", recall=None, items=tuple((number, 1.0) for number in items),
        signal="used", outcome=None, principal=principal, time=time,
    )  # fmt: skip


@cache
def empty_store() -> bytes:
    """A store without anything: making one takes longer than most sequences."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.db"
        open_store(path).close()
        return path.read_bytes()


def copied_store(path: Path) -> Store:
    path.write_bytes(empty_store())
    return open_store(path, durability="normal")


def plain_fold(
    rule: Rule, events: Sequence[EventRecord]
) -> tuple[dict[Pair, LinkState], list[tuple[Pair, int, tuple[int, ...]]]]:
    """Strengths, and (pair, time, causes) of every eviction: `Fold` without its bookkeeping, for
    events that each count."""
    assert rule.half_life_days is not None
    half_life = rule.half_life_days * DAY_US
    states: dict[Pair, LinkState] = {}
    evicted = []

    def links_of(end: int) -> list[Pair]:
        return [pair for pair, state in states.items() if end in pair and state.strength > 0.0]

    def later_strength(pair: Pair) -> float:
        return math.log2(states[pair].strength) + states[pair].last / half_life

    for event in events:
        came = []
        for pair, cue, credit in moves_of(rule, event):
            former = states.get(pair)
            if cue and former is None and credit < 0.0:
                continue
            states[pair] = apply(
                cue_rule(rule) if cue else rule, former, credit, event.signal or "", event.time,
                principal=event.principal, trusted=event.trusted,
            )  # fmt: skip
            if states[pair].strength > 0.0 and (former is None or former.strength == 0.0):
                came.append(pair)
        for end in sorted({end for pair in came for end in pair}):
            while len(links_of(end)) > (rule.links_per_item or math.inf):
                gone = min(links_of(end), key=lambda pair: (later_strength(pair), pair))
                del states[gone]
                others = {n for pair in came if end in pair and pair != gone for n in pair}
                evicted.append((gone, event.time, tuple(sorted(others - {end}))))
    return states, evicted


@settings(max_examples=150, deadline=None)
@given(events=logs, cues=st.lists(st.sampled_from([None, 50, 51]), min_size=40, max_size=40))
def test_the_fold_is_that_of_its_plain_twin(
    events: Sequence[EventRecord], cues: Sequence[int | None]
) -> None:
    asked = [replace(event, cue=cue) for event, cue in zip(events, cues, strict=False)]
    fold = Fold(NARROW)
    for event in asked:
        fold.take(event)
    states, evicted = plain_fold(NARROW, asked)
    assert fold.states == states
    assert [(gone.pair, gone.event.time, gone.causes) for gone in fold.evictions] == evicted


@settings(max_examples=30, deadline=None)
@example(  # what is left at 1 depended on its links with both that go
    events=[
        *[used(1, 4, 7, principal="p", time=time) for time in (728_507_971, 69)],
        *[used(1, 3, 6, principal="q", time=153) for _ in range(2)],
    ],
    gone=[7, 4],
    wide=3_000,
)
@given(
    events=logs,
    gone=st.lists(numbers, min_size=1, max_size=2),
    wide=st.sampled_from([0, 10, 3_000]),
)
def test_after_forgetting_links_and_reports_are_what_the_plain_twin_says(
    *, events: Sequence[EventRecord], gone: Sequence[int], wide: int
) -> None:
    """However the strengths are settled: by parts, by the whole log, or by parts that give up."""
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        copied_store(Path(folder) / "m.db") as store,
    ):
        patch.setattr(settling, "WIDE", wide)
        space = make_space(store)
        store.append(space, [an_item(str(number)) for number in range(1, MEMORIES + 1)])
        store.append_events(space, events)
        store.replay(space, NARROW)
        for number in gone:
            store.forget(space, [number])
            log = list(store.iterate_events(space))
            states, evicted = plain_fold(NARROW, [e for e in log if e.type == "feedback"])
            assert store.fold(space) == states
            assert store.replay(space) == 0
            told = Counter((taken_link(e), e.time) for e in log if e.type == "evict")
            assert told == Counter((pair, time) for pair, time, _ in evicted)
            stored = {
                (min(row[:2]), max(row[:2])): row.strength for row in store.iterate_links(space)
            }
            assert stored == {pair: state.strength for pair, state in states.items()}

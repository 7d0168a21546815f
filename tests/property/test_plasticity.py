"""Invariants of the learning rules: bounds, monotony, conservation, and fast = readable."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cofire.dynamics import plasticity_reference
from cofire.dynamics.credit import cue_credits, pair_credits
from cofire.dynamics.plasticity import (
    COFIRE_RULE,
    DAY_US,
    RULES,
    SIGNALS,
    LinkState,
    Rule,
    apply,
    coactivation_window,
    current,
    decayed,
    hela_mem,
    linear,
    reinforced,
    weakened,
)
from cofire.dynamics.plasticity_reference import LinkEvent

SHARE = st.floats(0.0, 1.0)
CREDIT = st.floats(-1.0, 1.0)
TIME = st.integers(0, 4000 * DAY_US)
ITEMS = st.dictionaries(st.integers(1, 20), CREDIT, max_size=8)
VIA = st.dictionaries(st.integers(1, 20), st.integers(0, 20), max_size=4)
ANY_RULE = st.one_of(
    st.sampled_from([*RULES.values()]),
    st.builds(
        Rule,
        name=st.just("any"),
        kind=st.sampled_from(["asymptotic", "linear", "hela_mem"]),
        alpha=st.fixed_dictionaries(dict.fromkeys(SIGNALS, SHARE)),
        alpha_rejected=SHARE,
        graded=st.booleans(),
        initial=st.sampled_from([0.0, 0.5]),
        half_life_days=st.sampled_from([None, 0.5, 180.0]),
        cap_per_day=st.sampled_from([None, 0.05, 0.2, 1.0]),
        retention=SHARE,
        eta=SHARE,
    ),
)


@st.composite
def event_lists(draw: Any, in_order: bool = True) -> list[LinkEvent]:
    """Events of few days and principals, so that caps are met."""
    events: list[LinkEvent] = draw(
        st.lists(
            st.builds(
                LinkEvent,
                credit=st.one_of(CREDIT, st.sampled_from([-1.0, 0.0, 1.0])),
                signal=st.sampled_from(SIGNALS),
                time=st.one_of(st.integers(0, 3 * DAY_US), TIME),
                principal=st.sampled_from([None, "ann", "bob"]),
                trusted=st.booleans(),
                tick=st.integers(0, 30),
            ),
            max_size=20,
        )
    )
    if in_order:
        times = sorted(event.time for event in events)
        ticks = sorted(event.tick for event in events)
        events = [
            dataclasses.replace(event, time=time, tick=tick)
            for event, time, tick in zip(events, times, ticks, strict=True)
        ]
    return events


def step(rule: Rule, state: LinkState | None, event: LinkEvent) -> LinkState:
    return apply(
        rule, state, event.credit, event.signal, event.time,
        principal=event.principal, trusted=event.trusted, tick=event.tick,
    )  # fmt: skip


# -- Equations -----------------------------------------------------------------------------------


@given(strength=SHARE, alpha=SHARE, credit=CREDIT, step=SHARE)
def test_every_step_stays_between_0_and_1_and_goes_its_way(
    strength: float, alpha: float, credit: float, step: float
) -> None:
    assert strength <= reinforced(strength, alpha, abs(credit)) <= 1.0
    assert 0.0 <= weakened(strength, alpha, credit) <= strength
    assert strength <= linear(strength, step) <= 1.0
    assert strength <= hela_mem(strength, 0, True, 0.995, step) <= 1.0


@given(
    strengths=st.tuples(SHARE, SHARE),
    alphas=st.tuples(SHARE, SHARE),
    credits=st.tuples(SHARE, SHARE),
)
def test_steps_are_monotone_in_each_argument(
    strengths: tuple[float, float], alphas: tuple[float, float], credits: tuple[float, float]
) -> None:
    (s, t), (a, b), (c, d) = map(sorted, (strengths, alphas, credits))
    slack = 1e-15
    assert reinforced(s, a, c) <= reinforced(t, a, c) + slack
    assert reinforced(s, a, c) <= reinforced(s, b, c) + slack
    assert reinforced(s, a, c) <= reinforced(s, a, d) + slack
    assert weakened(s, a, c) <= weakened(t, a, c) + slack
    assert weakened(s, b, c) <= weakened(s, a, c) + slack
    assert weakened(s, a, d) <= weakened(s, a, c) + slack
    assert linear(s, a) <= linear(t, a) and linear(s, a) <= linear(s, b)
    assert hela_mem(s, 3, True) <= hela_mem(t, 3, True) + slack
    assert hela_mem(s, 3, False) <= hela_mem(s, 3, True)


@given(strength=SHARE, first=TIME, second=TIME, half_life=st.floats(0.1, 1000.0))
def test_decay_composes(strength: float, first: int, second: int, half_life: float) -> None:
    at_once = decayed(strength, first + second, half_life)
    in_two = decayed(decayed(strength, first, half_life), second, half_life)
    assert in_two == pytest.approx(at_once, rel=1e-9, abs=1e-300)
    assert 0.0 <= at_once <= decayed(strength, first, half_life) <= strength


# -- Credit --------------------------------------------------------------------------------------


@given(items=ITEMS, via=VIA, outcome=CREDIT)
def test_pair_credits_equal_their_reference(
    items: dict[int, float], via: dict[int, int], outcome: float
) -> None:
    fast = pair_credits([*items.items()], via, outcome=outcome)
    slow = plasticity_reference.pair_credits(items, via, outcome)
    assert [pair[:2] for pair in fast if abs(pair[2]) > 1e-300] == [
        pair[:2] for pair in slow if abs(pair[2]) > 1e-300
    ]
    for one, other in zip(fast, slow, strict=False):
        if one[:2] == other[:2]:
            assert one[2] == pytest.approx(other[2], rel=1e-12)


@given(items=ITEMS, via=VIA, outcome=CREDIT)
def test_an_item_gives_no_more_than_1(
    items: dict[int, float], via: dict[int, int], outcome: float
) -> None:
    credits = pair_credits([*items.items()], via, outcome=outcome)
    for number, own in items.items():
        mine = [
            abs(credit)
            for i, j, credit in credits
            if (number == i and (items[j] > 0.0 or own < 0.0))
            or (number == j and (items[i] > 0.0 or own < 0.0))
        ]
        assert sum(mine) <= abs(own) + 1e-12


@given(items=ITEMS, via=VIA, outcome=CREDIT, random=st.randoms(use_true_random=False))
def test_credits_do_not_depend_on_the_order_of_items(
    items: dict[int, float], via: dict[int, int], outcome: float, random: Any
) -> None:
    shuffled = [*items.items()]
    random.shuffle(shuffled)
    assert pair_credits(shuffled, via, outcome=outcome) == pair_credits(
        [*items.items()], via, outcome=outcome
    )
    assert cue_credits(shuffled, 0.5, outcome=outcome) == cue_credits(
        [*items.items()], 0.5, outcome=outcome
    )


@given(items=ITEMS, via=VIA, outcome=CREDIT)
def test_signs_of_credits(items: dict[int, float], via: dict[int, int], outcome: float) -> None:
    for i, j, credit in pair_credits([*items.items()], via, outcome=outcome):
        assert i < j
        assert 0.0 < abs(credit) <= 1.0
        assert items[i] > 0.0 or items[j] > 0.0
        if credit > 0.0:
            assert items[i] > 0.0 and items[j] > 0.0 and outcome > 0.0
            assert via.get(i) != j and via.get(j) != i
    for number, credit in cue_credits([*items.items()], 0.5, outcome=outcome):
        assert 0.0 < abs(credit) <= abs(items[number])
        assert (credit > 0.0) == (items[number] > 0.0 and outcome > 0.0)


# -- The fold ------------------------------------------------------------------------------------


@given(rule=ANY_RULE, events=event_lists())
def test_the_fold_equals_its_reference(rule: Rule, events: list[LinkEvent]) -> None:
    state: LinkState | None = None
    for event in events:
        state = step(rule, state, event)
    slow = plasticity_reference.fold(rule, events)
    assert (state is None) == (slow is None)
    if state is None or slow is None:
        return
    assert state.strength == pytest.approx(slow.strength, abs=1e-9)
    assert state._replace(strength=0.0, moved=()) == slow._replace(strength=0.0, moved=())
    fast_moved, slow_moved = dict(state.moved), dict(slow.moved)
    for principal in fast_moved.keys() | slow_moved.keys():
        other = slow_moved.get(principal, 0.0)
        assert fast_moved.get(principal, 0.0) == pytest.approx(other, abs=1e-9)


@given(rule=ANY_RULE, events=event_lists(in_order=False), now=TIME, tick=st.integers(0, 100))
def test_strengths_stay_between_0_and_1_in_any_order_of_times(
    rule: Rule, events: list[LinkEvent], now: int, tick: int
) -> None:
    state: LinkState | None = None
    for event in events:
        before = state
        state = step(rule, state, event)
        assert 0.0 <= state.strength <= 1.0
        assert 0.0 <= current(rule, state, now, tick) <= state.strength
        if before is not None:
            assert state.last >= before.last
            assert state.tick >= before.tick


@given(rule=ANY_RULE, events=event_lists())
def test_an_event_moves_a_link_its_own_way(rule: Rule, events: list[LinkEvent]) -> None:
    state: LinkState | None = None
    for event in events:
        before = 0.0
        if state is not None:
            before = current(rule, state, event.time, event.tick)
        moved = step(rule, state, event)
        off = event.credit == 0.0 or rule.alpha[event.signal] == 0.0
        if not off and event.credit > 0.0:
            assert moved.strength >= before
        elif not off:
            assert moved.strength <= before
        counted = (state.coactivations + state.rejections) if state is not None else 0
        assert moved.coactivations + moved.rejections == counted + (not off)
        state = moved


@given(events=event_lists(), cap=st.floats(0.01, 1.0))
def test_a_principal_moves_a_link_within_the_cap_of_a_day(
    events: list[LinkEvent], cap: float
) -> None:
    rule = dataclasses.replace(COFIRE_RULE, cap_per_day=cap)
    state: LinkState | None = None
    moved: dict[tuple[str, int], float] = {}
    for event in events:
        before = 0.0
        if state is not None:
            before = current(rule, state, event.time, event.tick)
        last = state
        state = step(rule, state, event)
        if not event.trusted and state != last and state.last == event.time:
            key = (event.principal or "", state.day)
            moved[key] = moved.get(key, 0.0) + abs(state.strength - before)
    for amount in moved.values():
        assert amount <= cap + 1e-9


@given(
    kind=st.sampled_from(["asymptotic", "linear"]),
    credits=st.lists(SHARE, min_size=1, max_size=6),
    sign=st.sampled_from([1.0, -1.0]),
)
def test_order_does_not_matter_among_events_of_one_sign_and_moment(
    kind: Any, credits: list[float], sign: float
) -> None:
    assume(all(credits))
    rule = dataclasses.replace(COFIRE_RULE, kind=kind, cap_per_day=None)
    results = []
    for order in itertools.islice(itertools.permutations(credits), 24):
        state = apply(rule, None, 1.0, "used", 0)
        for credit in order:
            state = apply(rule, state, sign * credit, "used", 0)
        results.append(state.strength)
    assert results == pytest.approx([results[0]] * len(results), abs=1e-12)


@given(events=event_lists())
def test_the_same_events_give_the_same_bits(events: list[LinkEvent]) -> None:
    states = []
    for _ in range(2):
        state: LinkState | None = None
        for event in events:
            state = step(COFIRE_RULE, state, event)
        states.append(state)
    assert states[0] == states[1]


@given(times=st.lists(TIME, max_size=12), random=st.randoms(use_true_random=False))
def test_the_window_equals_its_reference_in_any_order(times: list[int], random: Any) -> None:
    width = coactivation_window(times)
    expected = plasticity_reference.coactivation_window(times, COFIRE_RULE)
    assert width / 1e6 == pytest.approx(expected, abs=1e-5)
    shuffled = list(times)
    random.shuffle(shuffled)
    assert coactivation_window(shuffled) == width

"""Learning rules: each equation by hand, and what a fold over events does with it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from cofire.dynamics.credit import cue_credits, pair_credits
from cofire.dynamics.plasticity import (
    ATAMAIA_RULE,
    COFIRE_RULE,
    DAY_US,
    ECHOMCP_RULE,
    HELA_MEM_RULE,
    RULES,
    SIGNALS,
    LinkState,
    Rule,
    apply,
    coactivation_window,
    cue_rule,
    current,
    decayed,
    hela_mem,
    linear,
    reinforced,
    weakened,
)

UNCAPPED = dataclasses.replace(COFIRE_RULE, cap_per_day=None)
MINUTE = 60_000_000


def fold(rule: Rule, credits: list[float], signal: str = "used", **event: Any) -> LinkState:
    state: LinkState | None = None
    for credit in credits:
        state = apply(rule, state, credit, signal, 0, **event)
    assert state is not None
    return state


# -- Equations -----------------------------------------------------------------------------------


def test_a_strength_halves_every_half_life() -> None:
    assert decayed(0.8, 180 * DAY_US, 180.0) == pytest.approx(0.4)
    assert decayed(0.8, 360 * DAY_US, 180.0) == pytest.approx(0.2)
    assert decayed(0.8, 360 * DAY_US, None) == 0.8
    assert decayed(0.8, -DAY_US, 180.0) == 0.8


def test_asymptotic_takes_sixteen_steps_from_a_half_past_nine_tenths() -> None:
    strength, steps = 0.5, 0
    while strength < 0.9:
        strength, steps = reinforced(strength, 0.1, 1.0), steps + 1
    assert steps == 16


def test_asymptotic_gains_five_points_at_a_half_and_one_at_nine_tenths() -> None:
    assert reinforced(0.5, 0.1, 1.0) == pytest.approx(0.55)
    assert reinforced(0.9, 0.1, 1.0) == pytest.approx(0.91)
    assert reinforced(0.5, 0.1, 0.5) == pytest.approx(0.525)


def test_weakening_takes_a_share_of_what_is_there() -> None:
    assert weakened(0.5, 0.2, -1.0) == pytest.approx(0.4)
    assert weakened(0.5, 0.2, -0.5) == pytest.approx(0.45)
    assert weakened(0.0, 0.2, -1.0) == 0.0


def test_linear_is_full_after_five_steps_from_a_half() -> None:
    strength = 0.5
    for _ in range(5):
        strength = linear(strength, 0.1)
    assert strength == pytest.approx(1.0)
    assert linear(strength, 0.1) == 1.0


def test_hela_mem_keeps_0_995_of_a_weight_per_retrieval_and_adds_0_02() -> None:
    assert hela_mem(0.5, 1, True) == pytest.approx(0.995 * 0.5 + 0.02)
    assert hela_mem(0.5, 10, False) == pytest.approx(0.5 * 0.995**10)
    weight = 0.0
    for _ in range(1000):
        weight = hela_mem(weight, 1, True)
    assert weight == 1.0  # its steady state would be 4


# -- Credit --------------------------------------------------------------------------------------


def test_credit_is_shared_by_all_that_were_used() -> None:
    assert pair_credits([(3, 1.0), (1, 1.0)]) == [(1, 3, 1.0)]
    assert pair_credits([(1, 1.0), (2, 1.0), (3, 0.5)]) == [
        (1, 2, 0.5), (1, 3, 0.25), (2, 3, 0.25)
    ]  # fmt: skip


def test_what_was_rejected_weakens_its_links_to_what_was_used() -> None:
    assert pair_credits([(1, 1.0), (2, 1.0), (9, -1.0), (8, -0.5)]) == [
        (1, 2, 1.0), (1, 8, -0.25), (1, 9, -0.5), (2, 8, -0.25), (2, 9, -0.5)
    ]  # fmt: skip


def test_two_rejected_or_one_alone_say_nothing() -> None:
    assert pair_credits([(1, -1.0), (2, -1.0)]) == []
    assert pair_credits([(1, 1.0)]) == []
    assert pair_credits([(1, 1.0), (2, 0.0)]) == []
    assert pair_credits([]) == []


def test_a_bad_outcome_turns_joint_use_against_the_pair() -> None:
    assert pair_credits([(1, 1.0), (2, 1.0)], outcome=-0.5) == [(1, 2, -0.5)]
    assert pair_credits([(1, 1.0), (2, -1.0)], outcome=-0.5) == [(1, 2, -0.5)]
    assert pair_credits([(1, 1.0), (2, 1.0), (3, -1.0)], outcome=0.0) == []


def test_a_link_never_earns_from_what_it_brought_itself() -> None:
    items = [(1, 1.0), (2, 1.0), (3, 1.0)]
    for via in ({2: 1}, {1: 2}):
        assert pair_credits(items, via) == [(1, 3, 0.5), (2, 3, 0.5)]
    assert pair_credits(items, {2: 0}) == pair_credits(items)
    assert (1, 2, -0.5) in pair_credits(items, {2: 1}, outcome=-1.0)
    assert pair_credits([(1, 1.0), (2, -1.0)], {2: 1}) == [(1, 2, -1.0)]


def test_a_question_is_credited_for_each_item_less_the_more_there_were() -> None:
    items = [(4, 1.0), (2, 1.0), (3, 0.5), (1, 1.0), (9, -1.0)]
    assert cue_credits(items, 0.5) == [(1, 0.5), (2, 0.5), (3, 0.25), (4, 0.5), (9, -0.5)]
    assert cue_credits(items, 0.0)[0] == (1, 1.0)
    assert cue_credits([(1, 1.0), (2, -1.0)], 0.5, outcome=-1.0) == [(1, -1.0), (2, -1.0)]
    assert cue_credits([(1, -0.5)], 0.5) == [(1, -0.5)]
    assert cue_credits([(1, 1.0)], 0.5, outcome=0.0) == []


@pytest.mark.parametrize(
    ("items", "outcome", "words"),
    [
        ([(1, 1.5)], 1.0, "item 1"),
        ([(1, math.nan)], 1.0, "item 1"),
        ([(1, -math.inf)], 1.0, "item 1"),
        ([(1, 1.0)], math.nan, "outcome"),
        ([(1, 1.0), (1, 0.5)], 1.0, "two credits"),
    ],
)
def test_bad_credits_are_refused(
    items: list[tuple[int, float]], outcome: float, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        pair_credits(items, outcome=outcome)
    with pytest.raises(ValueError, match=words):
        cue_credits(items, 0.5, outcome=outcome)


# -- The fold ------------------------------------------------------------------------------------


def test_a_use_makes_a_link_and_counts() -> None:
    state = apply(UNCAPPED, None, 1.0, "used", 5 * DAY_US, principal="ann", tick=7)
    assert state == LinkState(0.3, 1, 5 * DAY_US, 7, 0, 5, ())


def test_what_decayed_is_taken_off_before_the_link_moves() -> None:
    first = apply(UNCAPPED, None, 1.0, "used", 0)
    later = apply(UNCAPPED, first, 1.0, "used", 180 * DAY_US)
    assert later.strength == pytest.approx(0.15 + 0.85 * 0.3)
    assert current(UNCAPPED, first, 180 * DAY_US) == pytest.approx(0.15)


def test_time_never_runs_backwards() -> None:
    first = apply(COFIRE_RULE, None, 1.0, "used", 10 * DAY_US, principal="ann")
    earlier = apply(COFIRE_RULE, first, 1.0, "used", 3 * DAY_US, principal="ann")
    assert earlier.last == 10 * DAY_US
    assert earlier.strength == first.strength  # and no new quota on a day gone by
    assert current(COFIRE_RULE, first, 0) == first.strength


def test_signals_have_their_rates_and_some_are_off() -> None:
    for signal, strength in {"used": 0.3, "cited": 0.15, "explicit": 0.1, "opened": 0.05}.items():
        assert fold(UNCAPPED, [1.0], signal).strength == pytest.approx(strength)
    assert fold(UNCAPPED, [1.0], "retrieved") == LinkState(0.0, 0, 0, 0, 0, 0, ())
    used = fold(UNCAPPED, [1.0])
    assert apply(UNCAPPED, used, 1.0, "retrieved", DAY_US) is used
    assert apply(UNCAPPED, used, 0.0, "used", DAY_US) is used


def test_ten_thousand_calls_of_one_principal_move_a_link_no_further_than_the_cap() -> None:
    state = fold(COFIRE_RULE, [1.0] * 10_000, principal="mallory")
    assert state.strength == pytest.approx(0.2)
    assert state.moved == (("mallory", 0.2),)
    undone = state
    for _ in range(100):
        undone = apply(COFIRE_RULE, undone, -1.0, "used", 0, principal="ann")
    assert undone.strength == pytest.approx(0.0, abs=1e-9)
    assert [name for name, _ in undone.moved] == ["ann", "mallory"]


def test_up_and_down_count_against_the_same_cap() -> None:
    state = fold(COFIRE_RULE, [0.5, -1.0, 1.0, 1.0], principal="ann")
    # 0.15 up, 0.03 down, and the 0.02 that are left.
    assert state.strength == pytest.approx(0.15 - 0.03 + 0.02)
    assert state.moved == (("ann", 0.2),)


def test_a_quota_is_of_a_day_and_a_principal() -> None:
    state = fold(COFIRE_RULE, [1.0, 1.0], principal="ann")
    tomorrow = apply(COFIRE_RULE, state, 1.0, "used", DAY_US, principal="ann")
    assert tomorrow.strength == pytest.approx(0.4, abs=0.001)
    assert tomorrow.day == 1
    both = apply(COFIRE_RULE, state, 1.0, "used", 0, principal="bob")
    assert both.strength == pytest.approx(0.4)
    nobody = fold(COFIRE_RULE, [1.0, 1.0])
    assert nobody.moved == (("", 0.2),)


def test_the_trusted_have_no_cap_and_use_up_none() -> None:
    state = fold(COFIRE_RULE, [1.0] * 20, principal="lead", trusted=True)
    assert state.strength > 0.99
    assert state.moved == ()


def test_a_rejection_without_a_link_is_remembered_and_makes_none() -> None:
    for rule in RULES.values():
        state = fold(rule, [-1.0, -1.0])
        assert (state.strength, state.rejections, state.coactivations) == (0.0, 2, 0)


@pytest.mark.parametrize("credit", [math.nan, math.inf, -math.inf, 1.1, -1.1])
def test_credits_that_are_none_are_refused(credit: float) -> None:
    with pytest.raises(ValueError, match="credit"):
        apply(COFIRE_RULE, None, credit, "used", 0)


def test_unknown_signals_are_refused() -> None:
    with pytest.raises(ValueError, match="signal"):
        apply(COFIRE_RULE, None, 1.0, "liked", 0)


# -- The papers' rules ---------------------------------------------------------------------------


def test_atamaia_creates_at_a_half_and_then_grows_by_a_tenth_of_the_rest() -> None:
    created = fold(ATAMAIA_RULE, [0.25], "explicit")
    assert created.strength == 0.5
    assert fold(ATAMAIA_RULE, [0.25] * 2, "explicit").strength == pytest.approx(0.55)
    assert fold(ATAMAIA_RULE, [1.0] * 2, "background").strength == pytest.approx(0.525)
    assert fold(ATAMAIA_RULE, [1.0, -1.0], "explicit").strength == 0.5
    assert current(ATAMAIA_RULE, created, 10_000 * DAY_US) == 0.5
    assert fold(ATAMAIA_RULE, [-1.0, 1.0], "explicit").strength == 0.5


def test_echomcp_adds_a_tenth() -> None:
    assert fold(ECHOMCP_RULE, [1.0] * 3).strength == pytest.approx(0.7)
    assert fold(ECHOMCP_RULE, [1.0] * 20).strength == 1.0


def test_hela_mem_forgets_by_retrievals_and_not_by_time() -> None:
    state = apply(HELA_MEM_RULE, None, 0.1, "retrieved", 0, tick=1)
    assert state.strength == pytest.approx(0.02)
    later = apply(HELA_MEM_RULE, state, 1.0, "retrieved", 900 * DAY_US, tick=11)
    assert later.strength == pytest.approx(0.02 * 0.995**10 + 0.02)
    assert current(HELA_MEM_RULE, state, 0, 101) == pytest.approx(0.02 * 0.995**100)
    assert current(HELA_MEM_RULE, state, 900 * DAY_US, 0) == state.strength


def test_cue_links_have_rates_of_their_own() -> None:
    rule = cue_rule(COFIRE_RULE)
    assert rule.alpha["used"] == pytest.approx(0.5)
    assert rule.alpha["cited"] == pytest.approx(0.25)
    assert rule.alpha["retrieved"] == 0.0
    assert set(cue_rule(HELA_MEM_RULE).alpha.values()) == {0.0}
    silent = dataclasses.replace(COFIRE_RULE, alpha=dict.fromkeys(SIGNALS, 0.0))
    assert set(cue_rule(silent).alpha.values()) == {0.0}


def test_rules_are_found_by_name() -> None:
    assert {name: rule.name for name, rule in RULES.items()} == {
        name: name for name in ("cofire", "hela_mem", "atamaia", "echomcp")
    }


@pytest.mark.parametrize(
    "bad",
    [
        {"name": ""},
        {"kind": "cubic"},
        {"alpha": {"used": 0.3}},
        {"alpha": {**COFIRE_RULE.alpha, "used": 1.5}},
        {"alpha": {**COFIRE_RULE.alpha, "used": math.nan}},
        {"alpha_rejected": -0.1},
        {"initial": 2.0},
        {"half_life_days": 0.0},
        {"half_life_days": math.inf},
        {"cap_per_day": 0.0},
        {"links_per_item": 0},
        {"retention": 1.1},
        {"eta": -1.0},
        {"cue_alpha": 2.0},
        {"cue_fan": -1.0},
        {"most_cues": -1},
        {"window_gaps": 0.0},
        {"window_least_seconds": 0.0},
        {"window_most_seconds": math.nan},
        {"window_least_seconds": 100_000.0},
    ],
)
def test_bad_constants_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        dataclasses.replace(COFIRE_RULE, **bad)


# -- The window ----------------------------------------------------------------------------------


def test_the_window_spans_five_turns_at_the_pace_of_the_talk() -> None:
    assert coactivation_window([0, 2 * MINUTE, 4 * MINUTE, 6 * MINUTE]) == 10 * MINUTE
    assert coactivation_window([6 * MINUTE, 0, 4 * MINUTE, 2 * MINUTE]) == 10 * MINUTE
    with_a_pause = [0, 2 * MINUTE, 4 * MINUTE, 600 * MINUTE, 602 * MINUTE]
    assert coactivation_window(with_a_pause) == 10 * MINUTE


def test_the_window_is_at_least_a_minute_and_at_most_a_day() -> None:
    assert coactivation_window([0, 1, 2]) == MINUTE
    assert coactivation_window([0, 9 * DAY_US]) == DAY_US
    assert coactivation_window([]) == coactivation_window([5]) == MINUTE

"""Spreading activation: what each constant does, on graphs small enough to check by hand.

`test_graph.py` in the property tests holds the fast versions equal to their references.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from cofire.dynamics.activation import (
    SpreadRule,
    SynapseRule,
    conducting,
    fire,
    hela_mem,
    inhibit,
    route,
    spread,
    synapse,
)
from cofire.dynamics.edges import Csr, csr_from_pairs

OPEN = conducting({0: 1.0, 1: 0.5})


def graph(*edges: tuple[int, int, int, float], size: int = 6, both_ways: bool = False) -> Csr:
    source, target, kind, strength = zip(*edges, strict=True)
    return csr_from_pairs(
        size,
        np.array(source, np.int64),
        np.array(target, np.int64),
        np.array(kind, np.uint8),
        np.array(strength, np.float32),
        both_ways=both_ways,
    )


def run(csr: Csr, seeds: dict[int, float], rule: SpreadRule, **options: Any) -> list[float]:
    values = spread(csr, np.array([*seeds]), np.array([*seeds.values()]), rule, OPEN, **options)
    result: list[float] = values.values.tolist()
    return result


CHAIN = graph((0, 1, 0, 1.0), (1, 2, 0, 1.0), (2, 3, 0, 1.0), both_ways=True)


def test_each_step_goes_one_link_further_and_weaker() -> None:
    values = run(CHAIN, {0: 1.0}, SpreadRule(steps=2, gain=0.4))
    assert values[:4] == pytest.approx([1.0, 0.4, 0.16, 0.0])


def test_fan_effect_shares_what_a_node_sends() -> None:
    star = graph(*((0, n, 0, 1.0) for n in range(1, 5)))
    values = run(star, {0: 1.0}, SpreadRule(steps=1, gain=0.8, fan=1.0))
    assert values[1:5] == pytest.approx([0.2] * 4)


def test_links_that_do_not_conduct_are_no_fan_either() -> None:
    mixed = graph((0, 1, 0, 1.0), (0, 2, 7, 1.0))
    values = run(mixed, {0: 1.0}, SpreadRule(steps=1, gain=0.8, fan=1.0))
    assert values[:3] == pytest.approx([1.0, 0.8, 0.0])


def test_conductance_by_type_and_strength() -> None:
    mixed = graph((0, 1, 0, 0.5), (0, 2, 1, 1.0))
    values = run(mixed, {0: 1.0}, SpreadRule(steps=1, gain=1.0))
    assert values[:3] == pytest.approx([1.0, 0.5, 0.5])


def test_sum_adds_paths_and_max_takes_the_strongest() -> None:
    two = graph((0, 2, 0, 1.0), (1, 2, 0, 1.0))
    seeds = {0: 1.0, 1: 0.5}
    assert run(two, seeds, SpreadRule(steps=1, gain=0.4, combine="sum"))[2] == pytest.approx(0.6)
    assert run(two, seeds, SpreadRule(steps=1, gain=0.4, combine="max"))[2] == pytest.approx(0.4)


def test_sums_stay_below_the_strongest_seed_unless_told_otherwise() -> None:
    many = graph(*((n, 5, 0, 1.0) for n in range(5)))
    seeds = dict.fromkeys(range(5), 0.5)
    assert run(many, seeds, SpreadRule(steps=1, gain=1.0, combine="sum"))[5] == 0.5
    free = SpreadRule(steps=1, gain=1.0, combine="sum", ceiling=False)
    assert run(many, seeds, free)[5] == 2.5


def test_a_direct_hit_is_never_demoted() -> None:
    kept = SpreadRule(steps=2, gain=0.4, decay=0.5)
    assert run(CHAIN, {0: 1.0}, kept)[0] == 1.0
    fading = dataclasses.replace(kept, keep_direct=False)
    assert run(CHAIN, {0: 1.0}, fading)[0] == pytest.approx(0.25)


def test_only_the_most_active_spread() -> None:
    two = graph((0, 2, 0, 1.0), (1, 3, 0, 1.0))
    values = run(two, {0: 0.9, 1: 1.0}, SpreadRule(steps=1, gain=1.0, frontier=1))
    assert values[2:4] == [0.0, 1.0]


def test_equals_at_the_frontier_go_by_id_not_by_node() -> None:
    two = graph((0, 2, 0, 1.0), (1, 3, 0, 1.0))
    rule = SpreadRule(steps=1, gain=1.0, frontier=1)
    ids = (np.zeros(6, np.uint64), np.array([9, 1, 2, 3, 4, 5], np.uint64))
    assert run(two, {0: 1.0, 1: 1.0}, rule)[2:4] == [1.0, 0.0]
    assert run(two, {0: 1.0, 1: 1.0}, rule, ties=ids)[2:4] == [0.0, 1.0]


def test_the_route_leads_from_the_seed() -> None:
    rule = SpreadRule(steps=3, gain=0.5)
    result = spread(CHAIN, np.array([0]), np.array([1.0]), rule, OPEN, record=True)
    way = route(result, 3)
    assert way is not None
    assert way.nodes == (0, 1, 2, 3)
    assert way.amount == pytest.approx(0.125)
    assert route(result, 5) is None


def test_no_seeds_no_activation() -> None:
    assert run(CHAIN, {}, SpreadRule()) == [0.0] * 6
    assert run(CHAIN, {0: 0.0}, SpreadRule()) == [0.0] * 6


@pytest.mark.parametrize(
    ("seeds", "energy", "words"),
    [
        ([0], [1.0, 1.0], "1 seeds have 2"),
        ([0], [-1.0], "not negative"),
        ([0], [np.nan], "finite"),
        ([6], [1.0], "nodes of the graph"),
        ([1, 1], [1.0, 1.0], "distinct"),
    ],
)
def test_bad_seeds_are_refused(seeds: list[int], energy: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        spread(CHAIN, np.array(seeds), np.array(energy), SpreadRule(), OPEN)


@pytest.mark.parametrize(
    "bad",
    [
        {"steps": -1},
        {"gain": 1.5},
        {"decay": -0.1},
        {"fan": np.inf},
        {"threshold": -1.0},
        {"frontier": 0},
        {"combine": "mean"},
    ],
)
def test_bad_constants_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        SpreadRule(**bad)


def test_conductances_are_shares() -> None:
    with pytest.raises(ValueError, match="link type 3"):
        conducting({3: 1.5})


# -- Synapse -------------------------------------------------------------------------------------


def test_synapse_propagates_as_equation_2_says() -> None:
    star = graph((0, 1, 0, 0.5), (0, 2, 0, 1.0))
    rule = SynapseRule(steps=1, inhibition=0.0, steepness=1.0, firing=0.0)
    values = synapse(star, np.array([0]), np.array([1.0]), rule, OPEN).values
    potentials = [0.5 * 1.0, 0.8 * 0.5 / 2, 0.8 * 1.0 / 2]
    assert values[:3] == pytest.approx([1 / (1 + np.exp(-u)) for u in potentials])


def test_silent_nodes_stay_silent_or_rest_at_the_sigmoids_floor() -> None:
    star = graph((0, 1, 0, 1.0))
    seeds, energy = np.array([0]), np.array([1.0])
    silent = synapse(star, seeds, energy, SynapseRule(), OPEN).values
    resting = synapse(star, seeds, energy, SynapseRule(silent="rest"), OPEN).values
    assert silent[2:].tolist() == [0.0] * 4
    assert resting[2:].tolist() == pytest.approx([1 / (1 + np.exp(2.5))] * 4, rel=0.5)


def test_lateral_inhibition_as_equation_3_says() -> None:
    potential = np.array([1.0, 0.6, 0.2, 0.0])
    inhibited = inhibit(potential, 0.5, 2)
    assert inhibited == pytest.approx([1.0, 0.4, 0.0, 0.0])
    assert inhibit(potential, 0.0, 2).tolist() == potential.tolist()


def test_firing_is_half_at_the_threshold_and_does_not_overflow() -> None:
    rates = fire(np.array([-1e6, 0.5, 1e6]), 5.0, 0.5)
    assert rates.tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    "bad", [{"steps": -1}, {"decay": 2.0}, {"fan": -1.0}, {"steepness": 0.0}, {"silent": "maybe"}]
)
def test_bad_synapse_constants_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        SynapseRule(**bad)


# -- HeLa-Mem ------------------------------------------------------------------------------------


def test_hela_mem_takes_one_hop_from_strong_sources_only() -> None:
    base = np.array([0.9, 0.1, 0.5, 0.2, 0.0, 0.0])
    values = hela_mem(CHAIN, base, conductance=OPEN)
    assert values[:4] == pytest.approx([0.9, 0.1 + 0.1 * 0.9, 0.5, 0.2])


def test_hela_mem_needs_a_score_of_every_node() -> None:
    with pytest.raises(ValueError, match="6 nodes"):
        hela_mem(CHAIN, np.zeros(3), conductance=OPEN)

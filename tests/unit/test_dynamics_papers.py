"""What the three papers rank by, by hand.

`test_papers.py` in the property tests holds the fast versions equal to their references.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cofire.dynamics.activation import conducting, hela_mem
from cofire.dynamics.edges import Csr, csr_from_pairs
from cofire.dynamics.papers import (
    DAY_US,
    HOUR_US,
    AtamaiaBoosts,
    SynapseWeights,
    anchor_energy,
    atamaia_blend,
    atamaia_boosted,
    chronological,
    dual_path,
    hela_mem_base,
    hela_mem_keywords,
    link_adjacent,
    strength_to_hits,
    synapse_anchors,
    synapse_score,
    temporal_weight,
)

OPEN = conducting({0: 1.0, 1: 0.5})
TIES = (np.zeros(8, np.uint64), np.arange(8, dtype=np.uint64))
NOW = np.zeros(1, np.int64)


def ties(size: int) -> tuple[Any, Any]:
    return TIES[0][:size], TIES[1][:size]


def graph(*edges: tuple[int, int, int, float], both_ways: bool = True) -> Csr:
    source, target, kind, strength = zip(*edges, strict=True)
    return csr_from_pairs(
        8,
        np.array(source, np.int64),
        np.array(target, np.int64),
        np.array(kind, np.uint8),
        np.array(strength, np.float32),
        both_ways=both_ways,
    )


# -- HeLa-Mem ------------------------------------------------------------------------------------


def test_base_activation_maps_the_cosine_and_adds_half_the_keywords() -> None:
    base = hela_mem_base(np.array([0.2]), np.array([0.5]), NOW)
    assert base == pytest.approx([0.6 + 0.5 * 0.5])
    letter = hela_mem_base(np.array([0.2]), np.array([0.5]), NOW, mapped=False, keyword_weight=0.7)
    assert letter == pytest.approx([0.2 + 0.7 * 0.5])


def test_base_activation_fades_over_sixty_days_or_not_at_all() -> None:
    ages = np.array([0, 60 * DAY_US, -DAY_US])
    ones, none = np.ones(3), np.zeros(3)
    assert hela_mem_base(ones, none, ages) == pytest.approx([1.0, math.exp(-1.0), 1.0])
    assert hela_mem_base(ones, none, ages, tau_days=None).tolist() == [1.0] * 3


def test_keywords_are_a_share_of_those_asked() -> None:
    assert hela_mem_keywords(np.array([0.0, 1.0, 4.0]), 4).tolist() == [0.0, 0.25, 1.0]
    assert hela_mem_keywords(np.array([0.0, 0.0]), 0).tolist() == [0.0, 0.0]


def test_dual_path_adds_what_spreading_flips_in() -> None:
    base = np.array([0.9, 0.8, 0.5, 0.35, 0.3])
    spread = hela_mem(
        csr_from_pairs(
            5, np.array([0]), np.array([4]), np.zeros(1, np.uint8), np.ones(1, np.float32)
        ),
        base, beta=0.84, conductance=OPEN,
    )  # fmt: skip
    found = dual_path(base, spread, ties(5), k=2, m=1)
    assert found.base.tolist() == [0, 1]
    assert found.flipped.tolist() == [4]
    wider = dual_path(base, spread, ties(5), k=2, m=3)
    assert wider.flipped.tolist() == [4, 2, 3]
    raised = dual_path(base, spread, ties(5), k=2, m=3, raised_only=True)
    assert raised.flipped.tolist() == [4]


def test_the_case_study_of_hela_mem_adds_0_043_at_its_own_beta() -> None:
    edge = graph((0, 1, 0, 0.52))
    base = np.array([0.83, 0.35, 0, 0, 0, 0, 0, 0], np.float64)
    raised = hela_mem(edge, base, conductance=OPEN)
    assert raised[1] - 0.35 == pytest.approx(0.043, abs=0.001)


def test_dual_path_of_few_memories_takes_each_once() -> None:
    base = np.array([0.1, 0.2])
    found = dual_path(base, base, ties(2))
    assert (found.base.tolist(), found.flipped.tolist()) == ([1, 0], [])
    nothing = dual_path(np.empty(0), np.empty(0), ties(0))
    assert (len(nothing.base), len(nothing.flipped)) == (0, 0)


def test_equals_go_by_id() -> None:
    base = np.full(3, 0.5)
    reverse = (np.zeros(3, np.uint64), np.array([3, 2, 1], np.uint64))
    found = dual_path(base, base, reverse, k=1, m=1)
    assert (found.base.tolist(), found.flipped.tolist()) == ([2], [1])


@pytest.mark.parametrize("bad", [{"keyword_weight": -1.0}, {"tau_days": 0.0}])
def test_bad_constants_of_hela_mem_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        hela_mem_base(NOW.astype(np.float64), NOW.astype(np.float64), NOW, **bad)


# -- Synapse -------------------------------------------------------------------------------------


def test_anchors_are_the_best_of_both_triggers() -> None:
    cosine = np.array([0.9, 0.1, 0.2, 0.3, 0.0])
    lexical = np.array([0.0, 0.0, 0.0, 0.0, 4.0])
    assert synapse_anchors(cosine, lexical, ties(5), 2).tolist() == [0, 3, 4]
    assert synapse_anchors(cosine, np.zeros(5), ties(5), 1).tolist() == [0]


def test_energy_is_similarity_and_never_negative() -> None:
    assert anchor_energy(np.array([0.5, -0.5]), alpha=2.0).tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="alpha"):
        anchor_energy(np.array([0.5]), alpha=-1.0)


def test_temporal_weight_by_its_unit() -> None:
    gaps = np.array([0, HOUR_US, -HOUR_US, 100 * HOUR_US])
    expected = [1.0, math.exp(-0.01), math.exp(-0.01), math.exp(-1.0)]
    assert temporal_weight(gaps) == pytest.approx(expected)
    assert temporal_weight(gaps, unit_us=100 * HOUR_US)[3] == pytest.approx(math.exp(-0.01))
    assert temporal_weight(gaps, rho=0.0).tolist() == [1.0] * 4
    for bad in ({"rho": -1.0}, {"unit_us": 0.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            temporal_weight(gaps, **bad)


def test_hybrid_score_weighs_0_5_0_3_0_2() -> None:
    one = np.ones(1)
    assert synapse_score(one, 0 * one, 0 * one) == pytest.approx([0.5])
    assert synapse_score(0 * one, one, 0 * one) == pytest.approx([0.3])
    assert synapse_score(0 * one, 0 * one, one) == pytest.approx([0.2])
    flat = SynapseWeights(similarity=1.0, activation=0.0, pagerank=0.0)
    assert synapse_score(0.7 * one, one, one, flat) == pytest.approx([0.7])
    with pytest.raises(ValueError, match="pagerank"):
        SynapseWeights(pagerank=math.nan)


def test_chronological_order_is_by_time_then_id() -> None:
    times = np.array([5, 1, 5, 0])
    assert chronological(np.array([0, 2, 1]), times, ties(4)).tolist() == [1, 0, 2]


# -- Atamaia -------------------------------------------------------------------------------------


def test_blend_is_a_fifth_text_and_four_fifths_cosine() -> None:
    assert atamaia_blend(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx([0.2, 0.8])
    with pytest.raises(ValueError, match="text_weight"):
        atamaia_blend(np.ones(1), np.ones(1), text_weight=1.5)


def test_boosts_multiply_what_matches() -> None:
    blend = np.array([0.5, 0.5, 0.5, 0.5, 0.0, -0.1])
    importance = np.array([1, 10, 1, 1, 10, 10])
    age = np.array([10_000, 10_000, 0, 10_000, 0, 0]) * DAY_US
    strength = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    boosted = atamaia_boosted(blend, importance, age, strength)
    assert boosted == pytest.approx([0.5, 0.6, 0.55, 0.65, 0.0, -0.1])


@pytest.mark.parametrize(
    "bad",
    [{"importance": -1.0}, {"recency": math.inf}, {"hebbian": math.nan}, {"recency_days": 0.0}],
)
def test_bad_boosts_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        AtamaiaBoosts(**bad)


def test_strength_to_other_hits_is_the_strongest_that_conducts() -> None:
    links = graph((0, 1, 0, 0.9), (0, 2, 0, 0.5), (1, 2, 1, 0.8), (1, 3, 7, 1.0), (4, 5, 0, 1.0))
    values = strength_to_hits(links, np.array([0, 1]), OPEN)
    assert values == pytest.approx([0.9, 0.9, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0])


def test_a_link_to_itself_is_no_other_hit() -> None:
    loop = graph((0, 0, 0, 0.9), both_ways=False)
    assert strength_to_hits(loop, np.array([0]), OPEN).tolist() == [0.0] * 8


def test_strong_outgoing_links_bring_in_what_they_lead_to() -> None:
    links = graph(
        (0, 2, 0, 0.8), (0, 3, 0, 0.7), (1, 4, 0, 0.9), (0, 1, 0, 1.0), (5, 0, 0, 1.0),
        (0, 6, 7, 1.0), (0, 4, 1, 0.75), both_ways=False,
    )  # fmt: skip
    found = link_adjacent(links, np.array([0, 1]), TIES, OPEN)
    assert found.rows.tolist() == [4, 2]
    assert found.strengths == pytest.approx([0.9, 0.8])
    wider = link_adjacent(links, np.array([0, 1]), TIES, OPEN, threshold=0.5)
    assert wider.rows.tolist() == [4, 2, 3]
    assert len(link_adjacent(links, np.empty(0, np.int64), TIES, OPEN).rows) == 0
    with pytest.raises(ValueError, match="threshold"):
        link_adjacent(links, np.array([0]), TIES, OPEN, threshold=2.0)

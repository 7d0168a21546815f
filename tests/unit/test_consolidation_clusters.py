"""Hubs, clusters and their rival, by hand and by property."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.consolidation.clusters import Cluster, clusters, density, frequency, hubs
from cofire.dynamics.arrays import F64, I64


def links(*rows: tuple[int, int, float]) -> tuple[I64, I64, F64]:
    source, target, strength = zip(*rows, strict=True) if rows else ((), (), ())
    return (
        np.array(source, np.int64),
        np.array(target, np.int64),
        np.array(strength, np.float64),
    )


STAR = links((0, 1, 0.9), (0, 2, 0.5), (3, 0, 0.7), (1, 2, 0.2))


def test_density_sums_what_links_carry_at_both_ends() -> None:
    assert density(*STAR, size=5) == pytest.approx([2.1, 1.1, 0.7, 0.7, 0.0])


def test_a_link_to_oneself_counts_once() -> None:
    assert density(*links((1, 1, 0.4)), size=2) == pytest.approx([0.0, 0.4])


def test_hubs_are_above_the_threshold_the_densest_first() -> None:
    assert hubs(np.array([1.0, 3.0, 2.0, 3.0]), 1.0).tolist() == [1, 3, 2]


def test_a_cluster_is_a_hub_and_its_strongest_neighbours() -> None:
    found = clusters(*STAR, np.array([2.0, 0.5, 0.0, 0.0, 0.0]), least=1.0, neighbours=2)
    assert found == [Cluster(0, 2.0, (0, 1, 3))]


def test_a_hub_that_another_took_makes_no_cluster_of_its_own() -> None:
    found = clusters(*STAR, density(*STAR, size=5), least=0.6, neighbours=1)
    assert [one.members for one in found] == [(0, 1), (2, 0), (3, 0)]


def test_frequency_is_a_score_like_density() -> None:
    used = frequency(np.array([2, 2, 1], np.int64), 4)
    assert used.tolist() == [0.0, 1.0, 2.0, 0.0]
    assert [one.hub for one in clusters(*STAR, used, least=1.0, neighbours=3)] == [2]


def test_of_several_links_between_two_the_strongest_counts() -> None:
    twice = links((0, 1, 0.3), (1, 0, 0.8), (0, 2, 0.5))
    (found,) = clusters(*twice, np.array([2.0, 0.0, 0.0]), least=1.0, neighbours=5)
    assert found.members == (0, 1, 2)


def test_nothing_of_nothing() -> None:
    assert clusters(*links(), np.zeros(0), least=0.0, neighbours=3) == []


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.floats(0.0, 1.0)), max_size=30),
    st.floats(0.0, 3.0),
    st.integers(1, 5),
)
def test_every_hub_is_in_a_cluster_and_none_is_too_large(
    rows: list[tuple[int, int, float]], least: float, neighbours: int
) -> None:
    source, target, strength = links(*rows)
    score = density(source, target, strength, 8)
    found = clusters(source, target, strength, score, least=least, neighbours=neighbours)
    covered = {member for one in found for member in one.members}
    assert {one.hub for one in found} <= set(hubs(score, least).tolist()) <= covered
    for one in found:
        assert one.members[0] == one.hub
        assert len(set(one.members)) == len(one.members) <= neighbours + 1
    assert [one.density for one in found] == sorted((one.density for one in found), reverse=True)

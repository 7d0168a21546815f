"""Activation over shared concepts, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cofire.dynamics.association import SharedConcepts

KILN, BREMEN, INES = 7, 8, 9


def shared(mentions: list[tuple[int, int]], energy: list[float]) -> SharedConcepts:
    at, concepts = zip(*mentions, strict=True) if mentions else ((), ())
    return SharedConcepts.of(
        np.array(at, np.int64), np.array(concepts, np.uint64), np.array(energy, np.float64)
    )


def test_a_seed_gives_to_those_that_name_the_same_divided_by_the_fan() -> None:
    found = shared([(0, KILN), (1, KILN), (2, KILN), (3, BREMEN)], [0.8, 0.0, 0.0, 0.0])
    gift = 0.8 / math.sqrt(3)
    np.testing.assert_allclose(found.activation(4), [0.0, gift, gift, 0.0])


def test_the_strongest_seed_gives_and_gets_from_the_second() -> None:
    found = shared([(0, KILN), (1, KILN), (2, KILN)], [0.2, 0.9, 0.0])
    share = math.sqrt(3)
    np.testing.assert_allclose(found.activation(3), [0.9 / share, 0.2 / share, 0.9 / share])


def test_concepts_add_up() -> None:
    found = shared([(0, KILN), (0, BREMEN), (1, KILN), (1, BREMEN)], [1.0, 0.0])
    np.testing.assert_allclose(found.activation(2), [0.0, 2.0 / math.sqrt(2)])


def test_of_equal_seeds_the_first_counts_as_the_strongest() -> None:
    found = shared([(2, KILN), (1, KILN), (0, KILN)], [0.0, 0.5, 0.5])
    gift = pytest.approx(0.5 / math.sqrt(3))
    for other in (0, 2):
        ((seed, amount),) = found.sources(other)
        assert seed == 1
        assert amount == gift
    np.testing.assert_allclose(found.activation(3), [0.5 / math.sqrt(3)] * 3)


def test_without_seeds_or_mentions_nothing_arrives() -> None:
    assert shared([], []).activation(0).tolist() == []
    assert shared([(0, KILN), (1, KILN)], [0.0, 0.0]).activation(2).tolist() == [0.0, 0.0]
    assert shared([(0, KILN)], [1.0]).activation(1).tolist() == [0.0]
    assert shared([(0, KILN)], [1.0]).sources(0) == []


def test_sources_add_up_to_the_activation() -> None:
    mentions = [(0, KILN), (0, INES), (1, KILN), (2, INES), (2, KILN), (3, BREMEN), (1, BREMEN)]
    found = shared(mentions, [0.3, 0.7, 0.0, 0.2])
    totals = [sum(gift for _, gift in found.sources(at)) for at in range(4)]
    # The strongest seed's own share comes from the second, which `sources` does not list.
    for at, arrived in enumerate(found.activation(4)):
        assert totals[at] <= arrived + 1e-12

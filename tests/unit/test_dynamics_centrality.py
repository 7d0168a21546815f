"""PageRank, on graphs small enough to check by hand.

`test_papers.py` in the property tests holds it equal to its reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cofire.dynamics.centrality import pagerank
from cofire.dynamics.edges import Csr, csr_from_pairs


def graph(size: int, *edges: tuple[int, int, float]) -> Csr:
    source, target, strength = zip(*edges, strict=True) if edges else ((), (), ())
    return csr_from_pairs(
        size,
        np.array(source, np.int64),
        np.array(target, np.int64),
        np.zeros(len(edges), np.uint8),
        np.array(strength, np.float32),
    )


def ranks(csr: Csr, **options: Any) -> list[float]:
    values: list[float] = pagerank(csr.offsets, csr.targets, csr.strengths, **options).tolist()
    return values


def test_a_ring_shares_alike() -> None:
    ring = graph(4, (0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 0, 1.0))
    assert ranks(ring) == pytest.approx([0.25] * 4)


def test_what_many_lead_to_ranks_high() -> None:
    star = graph(4, (1, 0, 1.0), (2, 0, 1.0), (3, 0, 1.0), (0, 1, 1.0))
    centre, first, second, third = ranks(star)
    assert centre > first > second == pytest.approx(third)


def test_weights_share_out_a_nodes_rank() -> None:
    fork = graph(3, (0, 1, 0.75), (0, 2, 0.25), (1, 0, 1.0), (2, 0, 1.0))
    rank = ranks(fork, damping=0.5)
    assert rank == pytest.approx([0.5 / 3 + 0.5 * (rank[1] + rank[2]),
                                  0.5 / 3 + 0.5 * 0.75 * rank[0],
                                  0.5 / 3 + 0.5 * 0.25 * rank[0]])  # fmt: skip
    alike = pagerank(fork.offsets, fork.targets)
    assert alike[1] == pytest.approx(alike[2])


def test_rank_that_leads_nowhere_goes_to_all() -> None:
    sink = graph(2, (0, 1, 1.0))
    first, second = ranks(sink)
    assert first == pytest.approx(0.15 / 2 + 0.85 * second / 2)
    assert first + second == pytest.approx(1.0)
    worthless = graph(2, (0, 1, 0.0))
    assert ranks(worthless) == pytest.approx([0.5, 0.5])


def test_tiny_weights_count_as_any_other() -> None:
    tiny = graph(3, (0, 1, 3e-40), (0, 2, 1e-40), (1, 0, 1.0), (2, 0, 1.0))
    plain = graph(3, (0, 1, 3.0), (0, 2, 1.0), (1, 0, 1.0), (2, 0, 1.0))
    assert ranks(tiny) == pytest.approx(ranks(plain), abs=1e-4)


def test_a_warm_start_ends_at_the_same_ranks() -> None:
    star = graph(4, (1, 0, 1.0), (2, 0, 1.0), (3, 0, 1.0), (0, 1, 1.0))
    cold = ranks(star, tolerance=1e-12)
    warm = ranks(star, tolerance=1e-12, start=np.array([9.0, 0.0, 0.0, 1.0]))
    assert warm == pytest.approx(cold, abs=1e-11)


def test_nothing_and_one_node() -> None:
    assert pagerank(np.zeros(1, np.int64), np.empty(0, np.int64)).tolist() == []
    assert ranks(graph(1)) == [1.0]
    assert ranks(graph(3), damping=0.0) == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"damping": 1.0}, "damping"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"start": np.ones(3)}, "start has shape"),
        ({"start": np.array([1.0, -0.5])}, "start must be"),
        ({"start": np.zeros(2)}, "start must be"),
        ({"start": np.array([np.nan, 1.0])}, "start must be"),
        ({"targets": np.array([2])}, "targets must be nodes"),
        ({"targets": np.array([-1])}, "targets must be nodes"),
        ({"weights": np.array([-1.0])}, "weights must be"),
        ({"weights": np.array([np.inf])}, "weights must be"),
        ({"weights": np.ones(2)}, "1 targets have 2"),
        ({"offsets": np.array([0, 2, 1])}, "offsets"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"offsets": np.array([0, 1, 1]), "targets": np.array([1])}
    with pytest.raises(ValueError, match=words):
        pagerank(**(arguments | options))

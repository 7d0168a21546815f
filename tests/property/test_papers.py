"""Invariants of what the papers rank by, of PageRank, inhibition and the gate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cofire.dynamics import centrality_reference, papers, papers_reference
from cofire.dynamics.activation import conducting, fire, inhibit
from cofire.dynamics.centrality import pagerank
from cofire.dynamics.edges import Csr, csr_from_pairs
from cofire.dynamics.gate import logistic
from cofire.dynamics.papers import DAY_US, AtamaiaBoosts, SynapseWeights

NODES = 7
CONDUCTANCE = {0: 1.0, 1: 0.5}
CONDUCTING = conducting(CONDUCTANCE)
TIES = (np.zeros(NODES, np.uint64), np.arange(NODES, dtype=np.uint64))
WORDS = ("alder", "birch", "cedar", "dogwood")

EdgeList = list[tuple[int, int, int, float]]
NODE = st.integers(0, NODES - 1)
# Widths of float32 make strengths exact, hundredths make ties.
STRENGTH = st.one_of(st.floats(0.0, 1.0, width=32), st.sampled_from([0.25, 0.5, 0.75, 1.0]))
EDGES = st.lists(st.tuples(NODE, NODE, st.integers(0, 2), STRENGTH), max_size=20)
AGE = st.integers(-DAY_US, 3000 * DAY_US)
SHARE = st.floats(0.0, 1.0)
COSINE = st.floats(-1.0, 1.0)


def scores(low: float = 0.0, high: float = 1.0) -> st.SearchStrategy[Any]:
    hundredths = st.integers(int(low * 100), int(high * 100)).map(lambda value: value / 100)
    return st.lists(hundredths, min_size=NODES, max_size=NODES)


def as_csr(edges: EdgeList, *, both_ways: bool = False) -> Csr:
    source, target, kind, strength = zip(*edges, strict=True) if edges else ((), (), (), ())
    return csr_from_pairs(
        NODES,
        np.array(source, np.int64),
        np.array(target, np.int64),
        np.array(kind, np.uint8),
        np.array(strength, np.float32),
        both_ways=both_ways,
    )


def as_lists(edges: EdgeList, *, both_ways: bool = False) -> dict[int, list[Any]]:
    graph: dict[int, list[Any]] = {}
    for source, target, kind, strength in edges:
        graph.setdefault(source, []).append((target, kind, strength))
        if both_ways:
            graph.setdefault(target, []).append((source, kind, strength))
    return graph


# -- PageRank ------------------------------------------------------------------------------------


def ranks(edges: EdgeList, **options: Any) -> Any:
    csr = as_csr(edges)
    return pagerank(csr.offsets, csr.targets, csr.strengths, tolerance=1e-12, **options)


@given(edges=EDGES, damping=st.floats(0.0, 0.9))
@settings(deadline=None)
def test_pagerank_equals_its_reference_and_sums_to_1(edges: EdgeList, damping: float) -> None:
    fast = ranks(edges, damping=damping)
    weights = {
        node: [(target, strength) for target, _, strength in leaving]
        for node, leaving in as_lists(edges).items()
    }
    slow = centrality_reference.pagerank(NODES, weights, damping, rounds=400)
    assert fast == pytest.approx(slow, abs=1e-9)
    assert fast.sum() == pytest.approx(1.0)
    assert (fast >= (1.0 - damping) / NODES - 1e-9).all()


@given(edges=EDGES, numbers=st.permutations(range(NODES)), random=st.randoms())
@settings(deadline=None)
def test_pagerank_does_not_depend_on_numbers_or_order(
    edges: EdgeList, numbers: list[int], random: Any
) -> None:
    renumbered = [(numbers[i], numbers[j], kind, strength) for i, j, kind, strength in edges]
    random.shuffle(renumbered)
    assert ranks(renumbered)[numbers] == pytest.approx(ranks(edges), abs=1e-10)


@given(edges=EDGES, start=st.lists(st.floats(0.01, 1.0), min_size=NODES, max_size=NODES))
@settings(deadline=None)
def test_pagerank_does_not_depend_on_where_it_starts(edges: EdgeList, start: list[float]) -> None:
    assert ranks(edges, start=np.array(start)) == pytest.approx(ranks(edges), abs=1e-10)


@given(edges=EDGES, factor=st.sampled_from([2.0, 8.0, 1024.0]))  # exact in float32
@settings(deadline=None)
def test_pagerank_does_not_depend_on_the_scale_of_weights(edges: EdgeList, factor: float) -> None:
    scaled = [(i, j, kind, strength * factor) for i, j, kind, strength in edges]
    assert ranks(scaled) == pytest.approx(ranks(edges), abs=1e-5)


# -- Inhibition, firing and the gate -------------------------------------------------------------

POTENTIALS = arrays.arrays(np.float64, st.integers(0, 12), elements=st.floats(0.0, 5.0))


@given(potential=POTENTIALS, strength=st.floats(0.0, 2.0), competitors=st.integers(0, 12))
def test_inhibition_never_raises_and_keeps_the_order(
    potential: Any, strength: float, competitors: int
) -> None:
    inhibited = inhibit(potential, strength, competitors)
    assert (inhibited <= potential).all()
    assert (inhibited >= 0.0).all()
    ranked = np.argsort(potential, kind="stable")
    assert (np.diff(inhibited[ranked]) >= -1e-9).all()
    if len(potential):
        assert inhibited.max() == potential.max()  # the winner goes free
    stronger = inhibit(potential, strength + 0.5, competitors)
    assert (stronger <= inhibited + 1e-12).all()


@given(potential=POTENTIALS, random=st.randoms(use_true_random=False))
def test_inhibition_does_not_depend_on_order(potential: Any, random: Any) -> None:
    order = list(range(len(potential)))
    random.shuffle(order)
    order_array = np.array(order, np.intp)
    shuffled = inhibit(potential[order_array], 0.15, 7)
    assert shuffled.tolist() == inhibit(potential, 0.15, 7)[order_array].tolist()
    assert (np.diff(fire(np.sort(potential), 5.0, 0.5)) >= 0.0).all()


@given(
    features=arrays.arrays(np.float64, (3, 4), elements=st.floats(-50, 50)),
    weights=arrays.arrays(np.float64, 4, elements=st.floats(-5, 5)),
    bias=st.floats(-5, 5),
    feature=st.integers(0, 3),
    more=st.floats(0.0, 10.0),
)
def test_confidence_is_bounded_and_follows_its_weights(
    features: Any, weights: Any, bias: float, feature: int, more: float
) -> None:
    confidence = logistic(features, weights, bias)
    assert ((confidence >= 0.0) & (confidence <= 1.0)).all()
    raised = features.copy()
    raised[:, feature] += more
    change = logistic(raised, weights, bias) - confidence
    assert (change * np.sign(weights[feature]) >= -1e-9).all()
    alone = [float(logistic(row, weights, bias)) for row in features]
    assert alone == confidence.tolist()


# -- HeLa-Mem ------------------------------------------------------------------------------------


@given(
    cosine=COSINE,
    question=st.lists(st.sampled_from(WORDS), max_size=4, unique=True),
    keywords=st.lists(st.sampled_from(WORDS), max_size=4, unique=True),
    age=AGE,
    constants=st.tuples(SHARE, st.sampled_from([None, 1.0, 60.0])),
)
def test_base_activation_equals_its_reference(
    cosine: float,
    question: list[str],
    keywords: list[str],
    age: int,
    constants: tuple[float, float | None],
) -> None:
    weight, tau = constants
    common = np.array([float(len({*question} & {*keywords}))])
    match = papers.hela_mem_keywords(common, len(question))
    fast = papers.hela_mem_base(
        np.array([cosine]), match, np.array([age]), keyword_weight=weight, tau_days=tau
    )
    slow = papers_reference.hela_mem_base(
        cosine, question, keywords, age, keyword_weight=weight, tau_days=tau
    )
    assert fast == pytest.approx([slow], rel=1e-12, abs=1e-12)
    assert 0.0 <= fast[0] <= 1.0 + weight


@given(cosines=st.tuples(COSINE, COSINE), shares=st.tuples(SHARE, SHARE), ages=st.tuples(AGE, AGE))
def test_base_activation_is_monotone_in_each_argument(
    cosines: tuple[float, float], shares: tuple[float, float], ages: tuple[int, int]
) -> None:
    (low, high), (few, many), (young, old) = sorted(cosines), sorted(shares), sorted(ages)

    def base(cosine: float, share: float, age: int) -> float:
        one = papers.hela_mem_base(np.array([cosine]), np.array([share]), np.array([age]))
        return float(one[0])

    assert base(low, few, young) <= base(high, few, young)
    assert base(low, few, young) <= base(low, many, young)
    assert base(low, few, old) <= base(low, few, young)


@given(
    base=scores(),
    gained=scores(),
    k=st.integers(0, NODES),
    m=st.integers(0, NODES),
    raised_only=st.booleans(),
)
def test_dual_path_equals_its_reference(
    base: list[float], gained: list[float], k: int, m: int, raised_only: bool
) -> None:
    spread = [own + gain for own, gain in zip(base, gained, strict=True)]
    fast = papers.dual_path(
        np.array(base), np.array(spread), TIES, k=k, m=m, raised_only=raised_only
    )
    slow = papers_reference.dual_path(base, spread, k, m, raised_only)
    assert (fast.base.tolist(), fast.flipped.tolist()) == slow
    assert len({*fast.base.tolist(), *fast.flipped.tolist()}) == len(fast.base) + len(fast.flipped)
    if not raised_only:
        assert len(fast.base) + len(fast.flipped) == min(NODES, k + m)


@given(base=scores(), gained=scores(), order=st.permutations(range(NODES)))
def test_dual_path_does_not_depend_on_rows(
    base: list[float], gained: list[float], order: list[int]
) -> None:
    own, spread = np.array(base), np.array(base) + np.array(gained)
    plain = papers.dual_path(own, spread, TIES, k=2, m=2)
    rows = np.array(order)
    moved = papers.dual_path(own[rows], spread[rows], (TIES[0], TIES[1][rows]), k=2, m=2)
    assert rows[moved.base].tolist() == plain.base.tolist()
    assert rows[moved.flipped].tolist() == plain.flipped.tolist()


# -- Synapse -------------------------------------------------------------------------------------


@given(cosine=scores(-1.0), lexical=scores(), k=st.integers(0, NODES))
def test_anchors_equal_their_reference(cosine: list[float], lexical: list[float], k: int) -> None:
    fast = papers.synapse_anchors(np.array(cosine), np.array(lexical), TIES, k)
    assert fast.tolist() == papers_reference.synapse_anchors(cosine, lexical, k)
    assert len(fast) <= 2 * k
    energy = papers.anchor_energy(np.array(cosine)[fast])
    assert ((energy >= 0.0) & (energy <= 1.0)).all()


@given(
    one=st.tuples(COSINE, SHARE, SHARE),
    other=st.tuples(SHARE, SHARE, SHARE),
    weights=st.builds(SynapseWeights, similarity=SHARE, activation=SHARE, pagerank=SHARE),
)
def test_hybrid_score_equals_its_reference_and_is_monotone(
    one: tuple[float, float, float], other: tuple[float, float, float], weights: SynapseWeights
) -> None:
    higher = tuple(max(a, b) for a, b in zip(one, other, strict=True))
    cosine, activation, rank = np.array([one, higher]).T
    values = papers.synapse_score(cosine, activation, rank, weights)
    assert values[0] == pytest.approx(papers_reference.synapse_score(*one, weights))
    assert values[1] >= values[0]
    total = weights.similarity + weights.activation + weights.pagerank
    assert abs(values[0]) <= total + 1e-12


@given(gaps=st.tuples(AGE, AGE), rho=st.floats(0.0, 1.0), unit=st.floats(1e6, 1e12))
def test_temporal_weight_equals_its_reference_and_falls(
    gaps: tuple[int, int], rho: float, unit: float
) -> None:
    near, far = sorted(gaps, key=abs)
    weights = papers.temporal_weight(np.array([near, far, -near]), rho=rho, unit_us=unit)
    assert weights[0] == pytest.approx(papers_reference.temporal_weight(near, rho, unit))
    assert 0.0 <= weights[1] <= weights[0] == weights[2] <= 1.0


@given(times=scores(), order=st.permutations(range(NODES)))
def test_chronological_order_does_not_depend_on_the_order_before(
    times: list[float], order: list[int]
) -> None:
    when = (np.array(times) * 4).astype(np.int64)
    sorted_rows = papers.chronological(np.array(order), when, TIES)
    assert sorted_rows.tolist() == sorted(order, key=lambda row: (when[row], row))


# -- Atamaia -------------------------------------------------------------------------------------

MEMORY = st.tuples(SHARE, COSINE, st.integers(1, 10), AGE, SHARE)
BOOSTS = st.builds(AtamaiaBoosts, importance=SHARE, recency=SHARE, hebbian=SHARE)


def atamaia(memory: tuple[float, float, int, int, float], boosts: AtamaiaBoosts) -> float:
    text, cosine, importance, age, strength = (np.array([value]) for value in memory)
    blend = papers.atamaia_blend(text, cosine)
    return float(papers.atamaia_boosted(blend, importance, age, strength, boosts)[0])


@given(one=MEMORY, other=MEMORY, boosts=BOOSTS, argument=st.integers(0, 4))
def test_atamaias_score_equals_its_reference_and_is_monotone(
    one: Any, other: Any, boosts: AtamaiaBoosts, argument: int
) -> None:
    value = atamaia(one, boosts)
    text, cosine, importance, age, strength = one
    slow = papers_reference.atamaia_score(
        text, cosine, importance, age, strength=strength, boosts=boosts
    )
    assert value == pytest.approx(slow, rel=1e-9, abs=1e-12)
    assert -0.8 - 1e-12 <= value <= 1.0 + boosts.importance + boosts.recency + boosts.hebbian + 1e-9
    older = argument == 3
    better = min(one[argument], other[argument]) if older else max(one[argument], other[argument])
    changed = (*one[:argument], better, *one[argument + 1 :])
    assert atamaia(changed, boosts) >= value - 1e-12


@given(edges=EDGES, hits=st.sets(NODE))
def test_strength_to_hits_equals_its_reference(edges: EdgeList, hits: set[int]) -> None:
    fast = papers.strength_to_hits(
        as_csr(edges, both_ways=True), np.array([*hits], np.int64), CONDUCTING
    )
    slow = papers_reference.strength_to_hits(
        as_lists(edges, both_ways=True), NODES, hits, CONDUCTANCE
    )
    assert fast == pytest.approx(slow)
    assert ((fast >= 0.0) & (fast <= 1.0)).all()


@given(edges=EDGES, selected=st.sets(NODE), threshold=st.sampled_from([0.0, 0.25, 0.5, 0.75]))
def test_link_adjacent_equals_its_reference(
    edges: EdgeList, selected: set[int], threshold: float
) -> None:
    fast = papers.link_adjacent(
        as_csr(edges), np.array([*selected], np.int64), TIES, CONDUCTING, threshold=threshold
    )
    slow = papers_reference.link_adjacent(as_lists(edges), selected, CONDUCTANCE, threshold)
    assert dict(zip(fast.rows.tolist(), fast.strengths.tolist(), strict=True)) == slow
    assert fast.rows.tolist() == sorted(slow, key=lambda row: (-round(slow[row], 6), row))

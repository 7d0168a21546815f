"""Invariants of the active graph and of the mechanisms that run on it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.dynamics import activation, activation_reference
from cofire.dynamics.activation import SpreadRule, SynapseRule
from cofire.dynamics.edges import Csr, csr_from_pairs
from cofire.dynamics.ranking import best, round_scores, top_k
from cofire.dynamics.scoring import bm25_reference
from cofire.graph import links, postings, snapshot
from cofire.graph.active import BM25, ActiveGraph
from cofire.graph.masks import RowFilter, row_mask
from cofire.graph.sidecar import SidecarKey, load_sidecar, save_sidecar
from cofire.graph.vectors import Projection, fit_projection

DIMENSION = 8
TERMS = range(1, 12)
CONCEPTS = range(21, 26)
FACETS = range(31, 36)
LINK_TYPES = 3
PROJECTION = Projection(matrix=np.eye(DIMENSION, dtype=np.float32)[:5], version=3)
KEY = SidecarKey(space="s", model="m", dimension=DIMENSION)

Row = tuple[Any, ...]


@dataclass(slots=True)
class Changes:
    revision: int
    rebuild: bool = False
    rows: list[Row] = field(default_factory=list)
    links: list[tuple[int, int, int, float, int]] = field(default_factory=list)
    removed_items: list[int] = field(default_factory=list)
    removed_links: list[tuple[int, int]] = field(default_factory=list)


@contextmanager
def small_limits() -> Iterator[None]:
    """Thresholds so low that a few rows pass through every stage: merges, compaction, scans."""
    with (
        patch.multiple(postings, TAIL=6, DELTA_MIN=12, DELTA_SHARE=2),
        patch.multiple(links, DELTA_MIN=4, _FEW=2),
        patch.multiple(snapshot, COARSE_FROM=6, EXACT_BYTES=10 * DIMENSION * 4, _BATCH=3),
    ):
        yield


def pack(counts: dict[int, int]) -> bytes:
    keys = sorted(counts)
    return np.array(keys, "<u8").tobytes() + bytes(counts[key] for key in keys)


def unit_rows(vectors: Any) -> Any:
    wide = np.asarray(vectors, np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.divide(wide, norms, out=np.zeros_like(wide), where=norms > 0).astype(np.float16)


@st.composite
def contents(draw: st.DrawFn) -> tuple[Any, ...]:
    """Everything of a row but its number and uid."""
    terms = draw(st.dictionaries(st.sampled_from(TERMS), st.integers(1, 255), max_size=5))
    concepts = draw(st.dictionaries(st.sampled_from(CONCEPTS), st.integers(1, 3), max_size=3))
    facets = draw(st.sets(st.sampled_from(FACETS), max_size=3))
    vector = draw(
        st.none()
        | st.just(b"\0" * (2 * DIMENSION))
        | st.just(np.full(DIMENSION, np.nan, np.float16).tobytes())
        | st.just(b"short")
        | st.integers(0, 40).map(
            lambda seed: unit_rows(np.random.default_rng(seed).standard_normal((1, DIMENSION)))
            .tobytes()
        )
    )  # fmt: skip
    times = st.integers(-(10**15), 10**15)
    return (
        1, 0, draw(st.integers(0, 3)), draw(st.sampled_from([0, 51, 52])),
        draw(st.sampled_from([0, 61, 62])), draw(times), draw(st.none() | times),
        draw(st.none() | times), draw(st.none() | times), draw(st.integers(1, 10)),
        draw(st.booleans()), draw(st.integers(0, 7)), sum(terms.values()), pack(terms),
        pack(concepts), np.array(sorted(facets), "<u8").tobytes(), vector,
        draw(st.none() | times), draw(st.none() | times), draw(times),
    )  # fmt: skip


def make_row(number: int, content: tuple[Any, ...]) -> Row:
    uid = (number * 0x9E3779B97F4A7C15 % 2**128).to_bytes(16, "big")
    return (number, uid, *content)


@dataclass(slots=True)
class Space:
    """What the database would hold, and the changes that led there."""

    rows: dict[int, Row] = field(default_factory=dict)
    links: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)
    history: list[Changes] = field(default_factory=list)

    def whole(self) -> Changes:
        """Everything, as a rebuild."""
        return Changes(
            revision=self.history[-1].revision if self.history else 0,
            rebuild=True,
            rows=[self.rows[number] for number in sorted(self.rows)],
            links=[(s, t, kind, w, 1) for (s, t), (kind, w) in sorted(self.links.items())],
        )


@st.composite
def spaces(draw: st.DrawFn, steps: int = 6) -> Space:
    space = Space()
    highest = 0
    for revision in range(1, draw(st.integers(1, steps)) + 1):
        changes = Changes(revision)
        for number in draw(st.sets(st.sampled_from(sorted(space.rows) or [0]), max_size=3)) - {0}:
            if draw(st.booleans()):
                changes.removed_items.append(number)
                del space.rows[number]
                for pair in [pair for pair in space.links if number in pair]:
                    del space.links[pair]
            else:
                space.rows[number] = make_row(number, draw(contents()))
                changes.rows.append(space.rows[number])
        for content in draw(st.lists(contents(), max_size=5)):
            highest += draw(st.integers(1, 2))
            space.rows[highest] = make_row(highest, content)
            changes.rows.append(space.rows[highest])
        for pair in draw(st.sets(st.sampled_from(sorted(space.links) or [(0, 0)]), max_size=3)):
            if pair != (0, 0):
                changes.removed_links.append(pair)
                del space.links[pair]
        numbers = st.sampled_from(sorted(space.rows) or [0])
        for source, target in draw(st.lists(st.tuples(numbers, numbers), max_size=6)):
            if source != target:
                kind = draw(st.integers(0, LINK_TYPES - 1))
                strength = draw(st.integers(0, 8)) / 8
                space.links[source, target] = (kind, strength)
                changes.links.append((source, target, kind, strength, revision))
        space.history.append(changes)
    return space


QUERIES = unit_rows(np.random.default_rng(5).standard_normal((3, DIMENSION))).astype(np.float32)
WORDS = ([1], [2, 3, 4], [9, 1, 1, 5, 11])


def found(graph: ActiveGraph, rows: Any, scores: Any) -> list[tuple[bytes, float]]:
    return [(graph.uid(row), float(score)) for row, score in zip(rows, scores, strict=True)]


def describe(graph: ActiveGraph) -> dict[str, Any]:
    """All that a reader can learn, in terms that do not depend on rows."""
    number = graph.column("number")
    live = np.flatnonzero(graph.column("live"))
    columns = [name for name in graph.table.names if name not in ("scan", "speaker", "session")]
    one: dict[str, Any] = {"revision": graph.revision, "items": graph.items}
    one["columns"] = {
        int(number[row]): [
            *(graph.column(name)[row].tobytes() for name in columns),
            graph.speakers.hash(int(graph.column("speaker")[row])),
            graph.sessions.hash(int(graph.column("session")[row])),
            graph.uid(row),
            graph.row(int(number[row])) == row,
        ]
        for row in live
    }
    for name, keys in (("terms", TERMS), ("concepts", CONCEPTS), ("facets", FACETS)):
        lists = getattr(graph, name).lookup(np.array(keys, np.uint64), graph.live)
        one[name] = [
            sorted(zip(number[rows].tolist(), counts.tolist(), strict=True))
            for rows, counts in lists
        ]
    one["idf"] = [graph.term_rows(term).idf for term in TERMS]
    one["average"] = graph.average_length
    one["lexical"] = [found(graph, *graph.lexical_top(words, top=4)) for words in WORDS]
    one["dense"] = [found(graph, *graph.dense(query, None, 4)) for query in QUERIES]
    edges = graph.neighbours(live)
    one["links"] = sorted(
        (int(number[live[o]]), int(number[t]), int(kind), float(w), bool(out))
        for o, t, kind, w, out in zip(
            edges.origin, edges.target, edges.type, edges.strength, edges.outward, strict=True
        )
    )
    before, after = graph.adjacent(live, 0)
    for _ in range(2):  # asked again, it comes from what is kept with the snapshot
        again = graph.adjacent(live, 0)
        assert again[0].tolist() == before.tolist()
        assert again[1].tolist() == after.tolist()
    one["adjacent"] = sorted(
        (int(number[row]), *(int(number[x]) if x >= 0 else -1 for x in pair))
        for row, *pair in zip(live, before, after, strict=True)
    )
    origin, concept, count = graph.concepts_of(live)
    one["forward"] = sorted(
        zip(number[live[origin]].tolist(), concept.tolist(), count.tolist(), strict=True)
    )
    one["sessions"] = {
        int(number[row]): number[graph.session_rows(int(row))].tolist() for row in live
    }
    return one


@given(space=spaces())
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("projection", [None, PROJECTION], ids=["exact", "coarse"])
def test_incremental_equals_rebuilt(projection: Projection | None, space: Space) -> None:
    with small_limits():
        graph = ActiveGraph.empty(DIMENSION, projection)
        snapshots = []
        for changes in space.history:
            graph = graph.apply(changes)
            snapshots.append((graph, describe(graph)))
        rebuilt = ActiveGraph.empty(DIMENSION, projection).apply(space.whole())
        assert describe(graph) == describe(rebuilt)
        assert describe(graph.compacted()) == describe(rebuilt)
        assert describe(graph.apply(space.whole())) == describe(rebuilt)
        for snapshot, before in snapshots:
            assert describe(snapshot) == before


@given(space=spaces(), fork=st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_two_lines_from_one_snapshot_do_not_disturb_each_other(space: Space, fork: int) -> None:
    with small_limits():
        graph = ActiveGraph.empty(DIMENSION)
        for changes in space.history[:fork]:
            graph = graph.apply(changes)
        one = other = graph
        for changes in space.history[fork:]:
            one, other = one.apply(changes), other.apply(changes)
            assert describe(one) == describe(other)


@given(space=spaces(), cut=st.integers(0, 6))
@settings(max_examples=25, deadline=None)
def test_sidecar_and_newer_changes_equal_rebuilt(space: Space, cut: int) -> None:
    with small_limits(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        graph = ActiveGraph.empty(DIMENSION, PROJECTION)
        for changes in space.history[:cut]:
            graph = graph.apply(changes)
        save_sidecar(path, graph, KEY)
        loaded = load_sidecar(path, KEY, PROJECTION).graph
        assert loaded is not None
        assert describe(loaded) == describe(graph)
        for changes in space.history[cut:]:
            loaded = loaded.apply(changes)
        rebuilt = ActiveGraph.empty(DIMENSION, PROJECTION).apply(space.whole())
        rebuilt.revision = loaded.revision
        assert describe(loaded) == describe(rebuilt)


@given(space=spaces(), words=st.lists(st.sampled_from(TERMS), max_size=6))
@settings(max_examples=25, deadline=None)
def test_bm25_is_the_textbook_formula(space: Space, words: list[int]) -> None:
    graph = ActiveGraph.empty(DIMENSION)
    for changes in space.history:
        graph = graph.apply(changes)
    documents = {}
    for number, row in space.rows.items():
        blob = row[15]
        count = len(blob) // 9
        if count:
            keys = np.frombuffer(blob[: 8 * count], "<u8").tolist()
            documents[number] = dict(zip(map(str, keys), blob[8 * count :], strict=True))
    lengths = [space.rows[number][14] for number in documents]
    expected = bm25_reference(list(documents.values()), lengths, [str(w) for w in words], BM25)
    scores = graph.lexical(words)
    for number, score in zip(documents, expected, strict=True):
        assert scores[graph.row(number)] == pytest.approx(score, rel=2e-6)
    assert np.count_nonzero(scores) == np.count_nonzero(expected)


@given(
    space=spaces(steps=3),
    wanted=st.builds(
        RowFilter,
        any_of=st.lists(st.lists(st.sampled_from(FACETS), max_size=2).map(tuple), max_size=2).map(
            tuple
        ),
        all_of=st.lists(st.sampled_from(FACETS), max_size=2).map(tuple),
        kinds=st.sets(st.integers(0, 3), max_size=2).map(tuple),
        without_kinds=st.sets(st.integers(0, 3), max_size=1).map(tuple),
        since=st.none() | st.integers(-(10**15), 10**15),
        until=st.none() | st.integers(-(10**15), 10**15),
        now=st.none() | st.integers(-(10**15), 10**15),
    ),
)
@settings(max_examples=50, deadline=None)
def test_masks_equal_brute_force(space: Space, wanted: RowFilter) -> None:
    graph = ActiveGraph.empty(DIMENSION)
    for changes in space.history:
        graph = graph.apply(changes)

    def passes(row: Row) -> bool:
        facets = set(np.frombuffer(row[17], "<u8").tolist())
        return (
            all(facets & set(group) for group in wanted.any_of)
            and facets >= set(wanted.all_of)
            and (not wanted.kinds or row[4] in wanted.kinds)
            and row[4] not in wanted.without_kinds
            and (wanted.since is None or row[7] >= wanted.since)
            and (wanted.until is None or row[7] < wanted.until)
            and (wanted.now is None or row[10] is None or row[10] > wanted.now)
        )

    mask = row_mask(graph, wanted)
    kept = np.ones(graph.size, np.bool_) if mask is None else mask
    assert set(graph.column("number")[kept].tolist()) == {
        number for number, row in space.rows.items() if passes(row)
    }
    every = np.flatnonzero(kept)
    for query in QUERIES:
        rows, _ = graph.dense(query, mask, 100)
        assert set(rows.tolist()) == {r for r in every if graph.column("has_vector")[r]}


def test_coarse_scan_finds_what_the_exact_scan_finds() -> None:
    """Clustered vectors of 384 dimensions whose variance falls as that of embeddings does."""
    rng = np.random.default_rng(11)
    count, dimension = 6000, 384
    basis = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    basis *= (1.0 / np.sqrt(np.arange(1, dimension + 1)))[:, None]
    centres = rng.standard_normal((60, dimension))
    raw = (centres[rng.integers(0, 60, count)] + rng.standard_normal((count, dimension))) @ basis
    vectors = unit_rows(raw)
    rows = [
        (
            *(n + 1, n.to_bytes(16, "big"), 1, 0, 0, 0, 0, 0, None, None, None, 5, 0, 0, 0),
            *(*blobs, None, None, 0),
        )
        for n, blobs in enumerate((b"", b"", b"", vector.tobytes()) for vector in vectors)
    ]
    projection = Projection(matrix=fit_projection(vectors), version=1)
    coarse = ActiveGraph.empty(dimension, projection).apply(Changes(1, rows=rows))
    exact = ActiveGraph.empty(dimension).apply(Changes(1, rows=rows))
    shared = 0
    for index in range(0, count, 60):
        query = vectors[index].astype(np.float32)
        query += 0.03 * rng.standard_normal(dimension).astype(np.float32)
        one, other = coarse.dense(query, None, 10), exact.dense(query, None, 10)
        shared += len({*one[0].tolist()} & {*other[0].tolist()})
        truth = round_scores(vectors.astype(np.float64) @ (query / np.linalg.norm(query)))
        assert np.allclose(other[1], np.sort(truth)[::-1][:10], atol=2e-6)
    assert shared >= 0.99 * 10 * 100


# -- mechanisms ----------------------------------------------------------------------------------

NODES = 9
EDGES = st.lists(
    st.tuples(
        st.integers(0, NODES - 1),
        st.integers(0, NODES - 1),
        st.integers(0, LINK_TYPES - 1),
        st.integers(0, 8).map(lambda n: n / 8),
    ),
    max_size=25,
)
SEEDS = st.dictionaries(
    st.integers(0, NODES - 1), st.integers(0, 10).map(lambda n: n / 10), max_size=NODES
)
RULES = st.builds(
    SpreadRule,
    steps=st.integers(0, 4),
    gain=st.sampled_from([0.0, 0.4, 0.8, 1.0]),
    decay=st.sampled_from([0.0, 0.5, 1.0]),
    fan=st.sampled_from([0.0, 0.5, 1.0]),
    combine=st.sampled_from(["max", "sum"]),
    frontier=st.none() | st.integers(1, NODES),
    threshold=st.sampled_from([0.0, 0.05]),
    keep_direct=st.booleans(),
    ceiling=st.booleans(),
)
CONDUCTANCE = {0: 1.0, 1: 0.5}
CONDUCTING = activation.conducting(CONDUCTANCE)

EdgeList = list[tuple[int, int, int, float]]


def as_csr(edges: EdgeList) -> Csr:
    columns = list(zip(*edges, strict=True)) or [(), (), (), ()]
    return csr_from_pairs(
        NODES,
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64),
        np.array(columns[2], np.uint8),
        np.array(columns[3], np.float32),
    )


def as_lists(edges: EdgeList) -> dict[int, list[tuple[int, int, float]]]:
    lists: dict[int, list[tuple[int, int, float]]] = {}
    for source, target, kind, strength in edges:
        lists.setdefault(source, []).append((target, kind, strength))
    return lists


def arrays(seeds: dict[int, float]) -> tuple[Any, Any]:
    return np.array([*seeds], np.int64), np.array([*seeds.values()], np.float64)


def assert_equal_values(values: Any, expected: dict[int, float]) -> None:
    wanted = [expected.get(node, 0.0) for node in range(NODES)]
    assert values == pytest.approx(wanted, abs=1e-9)


@given(edges=EDGES, seeds=SEEDS, rule=RULES)
@settings(max_examples=150, deadline=None)
def test_spread_equals_its_reference(
    edges: EdgeList, seeds: dict[int, float], rule: SpreadRule
) -> None:
    fast = activation.spread(as_csr(edges), *arrays(seeds), rule, CONDUCTING)
    slow = activation_reference.spread(as_lists(edges), seeds, rule, CONDUCTANCE)
    assert_equal_values(fast.values, slow)


@given(
    edges=EDGES,
    seeds=SEEDS,
    rule=st.builds(
        SynapseRule,
        steps=st.integers(0, 3),
        inhibition=st.sampled_from([0.0, 0.15, 0.5]),
        competitors=st.integers(0, 4),
        fan=st.sampled_from([0.0, 0.5, 1.0]),
        silent=st.sampled_from(["zero", "rest"]),
    ),
)
@settings(max_examples=100, deadline=None)
def test_synapse_equals_its_reference(
    edges: EdgeList, seeds: dict[int, float], rule: SynapseRule
) -> None:
    fast = activation.synapse(as_csr(edges), *arrays(seeds), rule, CONDUCTING)
    slow = activation_reference.synapse(as_lists(edges), NODES, seeds, rule, CONDUCTANCE)
    assert_equal_values(fast.values, slow)
    assert (fast.values <= 1.0).all()


@given(edges=EDGES, base=st.lists(st.floats(0, 1), min_size=NODES, max_size=NODES))
def test_hela_mem_equals_its_reference(edges: EdgeList, base: list[float]) -> None:
    fast = activation.hela_mem(as_csr(edges), np.array(base), conductance=CONDUCTING)
    slow = activation_reference.hela_mem(as_lists(edges), base, 0.1, 0.6, CONDUCTANCE)
    assert fast == pytest.approx(slow, abs=1e-9)


@given(edges=EDGES, seeds=SEEDS, rule=RULES, random=st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_activation_is_bounded_and_independent_of_order(
    edges: EdgeList, seeds: dict[int, float], rule: SpreadRule, random: Any
) -> None:
    one = activation.spread(as_csr(edges), *arrays(seeds), rule, CONDUCTING, record=True)
    shuffled_edges, shuffled = list(edges), list(seeds.items())
    random.shuffle(shuffled_edges)
    random.shuffle(shuffled)
    other = activation.spread(as_csr(shuffled_edges), *arrays(dict(shuffled)), rule, CONDUCTING)
    assert one.values.tolist() == other.values.tolist()
    top = max(seeds.values(), default=0.0)
    assert (one.values >= 0.0).all()
    if rule.ceiling or rule.combine == "max":
        assert (one.values <= top + 1e-12).all()
    if rule.keep_direct:
        assert all(one.values[node] >= energy for node, energy in seeds.items())
    assert set(np.flatnonzero(one.values)) <= set(one.touched.tolist())
    for node in one.touched.tolist():
        route = activation.route(one, node)
        if route is None:
            assert seeds.get(node)
        else:
            assert seeds.get(route.nodes[0])
            assert len(set(route.nodes)) == len(route.nodes)
            assert route.nodes[-1] == node
            assert route.amount > 0.0


@given(
    scores=st.lists(st.integers(-3, 5).map(lambda n: n / 4 + 1e-8 * n), max_size=40),
    count=st.integers(0, 45),
    random=st.randoms(use_true_random=False),
)
def test_the_best_k_do_not_depend_on_rows(scores: list[float], count: int, random: Any) -> None:
    ids = list(range(len(scores)))
    random.shuffle(ids)
    expected = sorted(zip(round_scores(np.array(scores)), ids, strict=True), key=_falling)[:count]
    places = list(range(len(scores)))
    random.shuffle(places)
    values = np.array([scores[place] for place in places])
    low = np.array([ids[place] for place in places], np.uint64)
    high = np.zeros(len(low), np.uint64)
    rows, rounded = best(values, high, low, count)
    assert list(zip(rounded.tolist(), low[rows].tolist(), strict=True)) == expected
    again = top_k(round_scores(values), high, low, count)
    assert again.tolist() == rows.tolist()


def _falling(pair: tuple[float, int]) -> tuple[float, int]:
    return -pair[0], pair[1]


@given(seed=st.integers(0, 10**6), count=st.integers(1, 900), ties=st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_guessed_threshold_never_shows(seed: int, count: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(30_000).astype(np.float32)
    if ties:
        scores = np.round(scores, 1)
    scores[::16] += rng.integers(-3, 4)  # where the sample is taken from
    scores[rng.random(30_000) < 0.2] = -np.inf
    low = rng.permutation(30_000).astype(np.uint64)
    high = np.zeros(30_000, np.uint64)
    expected = np.lexsort((low, -scores))[:count]
    assert top_k(scores, high, low, count).tolist() == expected.tolist()

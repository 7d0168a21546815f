"""The active graph of a small space, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph_rows import Changes, pack, row, vector

from cofire.dynamics.activation import SpreadRule, conducting, spread
from cofire.errors import StoreCorruptError
from cofire.graph import snapshot
from cofire.graph.active import ActiveGraph
from cofire.graph.masks import RowFilter, row_mask
from cofire.graph.rows import NEVER, NO_TIME, NOBODY
from cofire.graph.vectors import Projection, fit_projection

EAST, NORTH, NORTHEAST = vector(1, 0), vector(0, 1), vector(1, 1)
QUERY = np.array([1.0, 0.0], np.float32)


def space() -> ActiveGraph:
    rows = [
        row(1, terms={7: 1}, vector=EAST, speaker=100, session=200, facets=(1,), concepts={5: 1}),
        row(2, terms={7: 2, 8: 1}, vector=NORTHEAST, speaker=101, session=200, facets=(1, 2)),
        row(3, terms={8: 1}, vector=NORTH, session=200, kind=3, event=(10, 20), concepts={5: 2}),
        row(4, session=201, expires=50),
    ]
    links = [(1, 2, 0, 0.5, 1), (2, 3, 0, 0.5, 1), (1, 3, 4, 1.0, 1)]
    return ActiveGraph.empty(2).apply(Changes(revision=9, rows=rows, links=links))


def numbers(graph: ActiveGraph, rows: Any) -> list[int]:
    found: list[int] = graph.column("number")[rows].tolist()
    return found


def test_an_empty_graph_answers_everything_with_nothing() -> None:
    graph = ActiveGraph.empty(2)
    assert graph.dense(QUERY)[0].tolist() == []
    assert graph.lexical([1, 2]).tolist() == []
    assert graph.lexical_top([1])[0].tolist() == []
    assert row_mask(graph, RowFilter(since=1)) is not None
    assert graph.row(1) == -1
    assert graph.apply(Changes()).items == 0
    with pytest.raises(ValueError, match="positive"):
        ActiveGraph.empty(0)


def test_columns_and_their_absent_values() -> None:
    graph = space()
    first, third, fourth = (graph.row(n) for n in (1, 3, 4))
    assert graph.revision == 9
    assert graph.uid(first) == (1).to_bytes(16, "big")
    assert graph.speakers.hash(int(graph.column("speaker")[first])) == 100
    assert graph.column("speaker")[third] == NOBODY
    assert graph.column("event_start")[third] == 10
    assert graph.column("event_start")[first] == NO_TIME
    assert graph.column("expires")[first] == NEVER
    assert graph.column("expires")[fourth] == 50
    assert graph.column("has_vector").tolist() == [True, True, True, False]
    assert graph.rows_of(np.array([4, 9, 1])).tolist() == [3, -1, 0]
    with pytest.raises(ValueError, match="read-only"):
        graph.column("time")[0] = 1


def test_dense_ranks_by_cosine_without_rows_that_have_no_vector() -> None:
    graph = space()
    rows, similarities = graph.dense(QUERY * 5)
    assert numbers(graph, rows) == [1, 2, 3]
    assert similarities.tolist() == pytest.approx([1.0, 0.707107, 0.0], abs=2e-4)
    assert graph.similarity(np.array([3, 0]), QUERY).tolist() == [0.0, 1.0]
    masked = graph.dense(QUERY, np.array([False, True, True, True]), 1)
    assert numbers(graph, masked[0]) == [2]


@pytest.mark.parametrize("query", [[0.0, 0.0], [np.nan, 1.0]])
def test_a_query_that_points_nowhere_finds_nothing(query: list[float]) -> None:
    assert space().dense(np.array(query))[0].tolist() == []
    assert space().similarity(np.array([0]), np.array(query)).tolist() == [0.0]


def test_a_query_of_another_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="2 dimensions"):
        space().dense(np.ones(3))


@pytest.mark.parametrize(
    "blob", [None, b"", b"abc", bytes(4), np.array([np.nan, 1], "<f2").tobytes()]
)
def test_an_unusable_vector_is_none(blob: bytes | None) -> None:
    graph = ActiveGraph.empty(2).apply(Changes(rows=[row(1, vector=blob), row(2, vector=EAST)]))
    assert numbers(graph, graph.dense(-QUERY)[0]) == [2]


def test_equal_memories_go_by_uid() -> None:
    rows = [row(n, vector=EAST, terms={1: 1}, uid=bytes(15) + bytes([9 - n])) for n in (1, 2, 3)]
    graph = ActiveGraph.empty(2).apply(Changes(rows=rows))
    assert numbers(graph, graph.dense(QUERY, None, 2)[0]) == [3, 2]
    assert numbers(graph, graph.lexical_top([1], top=2)[0]) == [3, 2]


def test_term_statistics_follow_removal_and_update() -> None:
    graph = space()
    assert graph.documents == 3
    assert graph.average_length == pytest.approx(5 / 3)
    assert numbers(graph, graph.term_rows(7).rows) == [1, 2]
    assert graph.term_rows(7).counts.tolist() == [1, 2]
    newer = graph.apply(Changes(revision=10, removed_items=[1], rows=[row(3, terms={7: 5})]))
    assert numbers(newer, newer.term_rows(7).rows) == [2, 3]
    assert numbers(newer, newer.term_rows(8).rows) == [2]
    assert newer.average_length == 4.0
    assert graph.average_length == pytest.approx(5 / 3)


def test_query_terms_may_be_weighted_repeated_and_masked() -> None:
    graph = space()
    once, twice = graph.lexical([7]), graph.lexical([7, 7])
    assert twice == pytest.approx(2 * once)
    assert graph.lexical([7], [2.0]) == pytest.approx(2 * once)
    assert graph.lexical([7], mask=np.array([True, False, True, True]))[1] == 0.0
    assert graph.lexical([8, 7]).tolist() == graph.lexical([7, 8]).tolist()
    assert graph.lexical([]).tolist() == [0.0] * 4


def test_an_update_moves_the_row_and_keeps_its_links() -> None:
    graph = space()
    newer = graph.apply(Changes(revision=10, rows=[row(2, vector=EAST)]))
    assert newer.items == 4
    moved = newer.row(2)
    assert numbers(newer, newer.neighbours(np.array([moved])).target) == [3, 1]


def test_links_of_a_removed_item_are_not_met() -> None:
    graph = space().apply(Changes(revision=10, removed_items=[2]))
    edges = graph.neighbours(np.array([graph.row(1)]))
    assert numbers(graph, edges.target) == [3]
    assert edges.type.tolist() == [4]


def test_neighbours_by_type_and_direction() -> None:
    graph = space()
    middle = np.array([graph.row(2)])
    assert numbers(graph, graph.neighbours(middle, (0,), inward=False).target) == [3]
    assert numbers(graph, graph.neighbours(middle, (0,), outward=False).target) == [1]
    assert len(graph.neighbours(middle, (5,))) == 0


def test_previous_and_next_and_the_session() -> None:
    graph = space()
    before, after = graph.adjacent(np.array([0, 1, 2, 3]), 0)
    assert before.tolist() == [-1, 0, 1, -1]
    assert after.tolist() == [1, 2, -1, -1]
    assert numbers(graph, graph.session_rows(1)) == [1, 2, 3]
    assert numbers(graph, graph.session_rows(3)) == [4]
    alone = ActiveGraph.empty(2).apply(Changes(rows=[row(1), row(2)]))
    assert alone.session_rows(1).tolist() == [1]


def test_terms_of_sessions_count_live_rows_only() -> None:
    graph = space().apply(Changes(revision=10, removed_items=[1]))
    code = graph.sessions.code(200)
    assert graph.session_lengths()[code] == 4


def test_concepts_both_ways() -> None:
    graph = space()
    assert numbers(graph, graph.concept_rows(5)) == [1, 3]
    origin, concepts, counts = graph.concepts_of(np.array([2, 1, 0]))
    assert (origin.tolist(), concepts.tolist(), counts.tolist()) == ([0, 2], [5, 5], [2, 1])


def test_activation_spreads_over_its_links() -> None:
    graph = space()
    rule = SpreadRule(steps=1, gain=0.4)
    found = spread(
        graph.adjacency(), np.array([0]), np.ones(1), rule, conducting({0: 1.0}), ties=graph.ties
    )
    assert found.values.tolist() == pytest.approx([1.0, 0.2, 0.0, 0.0])


def test_filters() -> None:
    graph = space()

    def kept(wanted: RowFilter) -> list[int]:
        mask = row_mask(graph, wanted)
        assert mask is not None
        return numbers(graph, mask)

    assert row_mask(graph, RowFilter()) is None
    assert row_mask(graph, RowFilter(now=49)) is None
    assert kept(RowFilter(now=50)) == [1, 2, 3]
    assert kept(RowFilter(all_of=(1, 2))) == [2]
    assert kept(RowFilter(any_of=((1, 2),))) == [1, 2]
    assert kept(RowFilter(any_of=((),))) == []
    assert kept(RowFilter(kinds=(3,))) == [3]
    assert kept(RowFilter(without_kinds=(3,))) == [1, 2, 4]
    assert kept(RowFilter(since=2, until=4)) == [2, 3]


def test_a_rebuild_forgets_what_was_there() -> None:
    graph = space().apply(Changes(revision=12, rebuild=True, rows=[row(5, terms={7: 1})]))
    assert numbers(graph, np.flatnonzero(graph.column("live"))) == [5]
    assert graph.row(1) == -1
    assert graph.documents == 1


def test_compaction_leaves_no_trace_of_what_was_removed() -> None:
    graph = space().apply(Changes(revision=10, removed_items=[1, 2]))
    assert graph.size == 2
    assert graph.live is None
    assert graph.speakers.hashes() == []
    assert graph.sessions.hashes() == [200, 201]
    assert graph.terms.base.keys.tolist() == [8]


def test_a_number_given_twice_in_one_change_counts_once() -> None:
    rows = [row(1, terms={1: 1}), row(1, terms={2: 1})]
    graph = ActiveGraph.empty(2).apply(Changes(rows=rows))
    assert graph.items == 1
    assert len(graph.term_rows(1).rows) == 0


def test_a_malformed_column_is_named_with_the_way_to_mend_it() -> None:
    broken = list(row(17))
    broken[15] = b"12345"
    with pytest.raises(StoreCorruptError, match=r"item 17 .* terms .*cofire doctor"):
        ActiveGraph.empty(2).apply(Changes(rows=[tuple(broken)]))


def test_a_failed_change_leaves_the_snapshot_usable() -> None:
    graph = space()
    broken = list(row(5))
    broken[17] = b"123"
    with pytest.raises(StoreCorruptError, match="facets"):
        graph.apply(Changes(rows=[row(6, terms={7: 1}), tuple(broken)]))
    newer = graph.apply(Changes(revision=10, rows=[row(5, terms={7: 1}, speaker=55)]))
    assert numbers(newer, newer.term_rows(7).rows) == [1, 2, 5]
    assert newer.speakers.hash(int(newer.column("speaker")[newer.row(5)])) == 55


def test_numbers_may_have_gaps() -> None:
    graph = ActiveGraph.empty(2).apply(Changes(rows=[row(1000)]))
    graph = graph.apply(Changes(revision=2, rows=[row(5), row(2000)]))
    assert [graph.row(n) for n in (1000, 5, 2000, 6)] == [0, 1, 2, -1]


def many(count: int, dimension: int) -> list[Any]:
    rng = np.random.default_rng(6)
    return [row(n + 1, vector=vector(*rng.standard_normal(dimension))) for n in range(count)]


def test_the_scan_changes_with_the_size_of_the_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "COARSE_FROM", 30)
    monkeypatch.setattr(snapshot, "EXACT_BYTES", 50 * 16 * 4)
    rows = many(80, 16)
    sample = np.frombuffer(b"".join(r[18] for r in rows), np.float16).reshape(-1, 16)
    projection = Projection(matrix=fit_projection(sample, 12), version=1)
    query = sample[3].astype(np.float32)
    exact = coarse = ActiveGraph.empty(16)
    coarse = ActiveGraph.empty(16, projection)
    widths = []
    for start in range(0, 80, 10):
        changes = Changes(revision=start, rows=rows[start : start + 10])
        exact, coarse = exact.apply(changes), coarse.apply(changes)
        widths.append([g.table["scan"].shape[1] if "scan" in g.table.names else 0
                       for g in (exact, coarse)])  # fmt: skip
        one, other = exact.dense(query, None, 5), coarse.dense(query, None, 5)
        assert one[0].tolist() == other[0].tolist()
        assert one[1].tolist() == other[1].tolist()
    assert widths == [[16, 16], [16, 16], *[[16, 12]] * 3, *[[0, 12]] * 3]
    changed = exact.with_projection(projection)
    assert changed.dense(query, None, 5)[0].tolist() == coarse.dense(query, None, 5)[0].tolist()
    assert changed.with_projection(None).projection is None


def test_a_projection_of_another_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="3 dimensions"):
        ActiveGraph.empty(2, Projection(matrix=np.eye(3, dtype=np.float32), version=1))


def test_projections_are_deterministic_and_orthonormal() -> None:
    rng = np.random.default_rng(8)
    vectors = (rng.standard_normal((300, 20)) * np.arange(1, 21)).astype(np.float16)
    vectors[7] = 0
    vectors[9] = np.nan
    one = fit_projection(vectors, 5)
    assert np.array_equal(one, fit_projection(vectors.copy(), 5))
    assert one @ one.T == pytest.approx(np.eye(5), abs=1e-5)
    assert (one[np.arange(5), np.abs(one).argmax(axis=1)] > 0).all()
    with pytest.raises(ValueError, match="too few"):
        fit_projection(vectors[:3], 5)


def test_bytes_are_counted() -> None:
    graph = space()
    assert graph.nbytes > 4 * (2 * 2 + 50)
    assert pack({}) == b""

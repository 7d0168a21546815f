"""Gists and akin words in a recall, on graphs small enough to follow."""

from __future__ import annotations

import numpy as np
import pytest
from graph_rows import Changes, Row, row, vector
from hypothesis import given
from hypothesis import strategies as st

from cofire.graph.active import ActiveGraph
from cofire.retrieval import abstractions
from cofire.retrieval.abstractions import (
    abstractions_of,
    akin_words,
    asked_terms,
    kin,
    words_of,
)
from cofire.store.records import DERIVED_SIGNAL, KIND_CODES, LINK_CODES

ABSTRACTION, EVIDENCE = LINK_CODES["abstraction"], LINK_CODES["evidence"]
RELATED, TEMPORAL = LINK_CODES["related"], LINK_CODES["temporal"]
HIKING, POTTERY, ACTIVITY, RARE = 11, 12, 13, 14


def derived(made: Row) -> Row:
    signals = 13
    return (*made[:signals], DERIVED_SIGNAL, *made[signals + 1 :])


def graph_of(rows: list[Row], links: list[tuple[int, int, int, float, int]]) -> ActiveGraph:
    return ActiveGraph.empty(2).apply(Changes(rows=rows, links=links))


def word(number: int, term: int) -> Row:
    return derived(row(number, concepts={term: 1}, vector=vector(1, 0), kind=KIND_CODES["word"]))


@pytest.fixture
def graph() -> ActiveGraph:
    rows = [
        row(1, terms={HIKING: 1}, vector=vector(1, 0)),
        row(2, terms={POTTERY: 1}, vector=vector(0, 1)),
        row(3, terms={ACTIVITY: 1, HIKING: 1}, vector=vector(1, 1)),
        *(row(number, terms={RARE + number: 1}, vector=vector(1, 2)) for number in range(4, 40)),
        derived(row(40, vector=vector(1, 0), kind=KIND_CODES["gist"])),
        derived(row(41, vector=vector(0, 1), kind=KIND_CODES["fact"])),
        word(50, HIKING),
        word(51, POTTERY),
        word(52, ACTIVITY),
    ]
    links = [
        (40, 2, ABSTRACTION, 0.8, 1),
        (41, 2, EVIDENCE, 0.8, 1),
        (41, 3, EVIDENCE, 0.8, 1),
        (1, 2, TEMPORAL, 0.5, 1),
        (52, 50, RELATED, 0.5, 1),
        (52, 51, RELATED, 0.25, 1),
    ]
    return graph_of(rows, links)


def test_records_stand_for_what_they_rest_on(graph: ActiveGraph) -> None:
    found = abstractions_of(graph)
    gist, fact = graph.row(40), graph.row(41)
    at, records = found.of(np.array([0, 1, 2], np.intp))
    assert list(zip(at.tolist(), records.tolist(), strict=True)) == [
        (1, gist),
        (1, fact),
        (2, fact),
    ]
    assert found.reached(np.array([fact], np.intp)).tolist() == [1, 2]
    assert np.flatnonzero(found.rows).tolist() == [gist, fact]
    assert abstractions_of(graph) is found


def test_a_memory_has_what_is_akin_to_the_question(graph: ActiveGraph) -> None:
    terms = np.array([ACTIVITY], np.uint64)
    (asked,) = asked_terms(graph, terms, np.array([3.0]))
    assert asked.share == 1.0
    found = kin(graph, terms, np.array([3.0]), None)
    own = min(graph.term_rows(ACTIVITY).idf / 4, 1.0)
    hiking = 0.5 * min(graph.term_rows(HIKING).idf / 4, 1.0)
    pottery = 0.25 * min(graph.term_rows(POTTERY).idf / 4, 1.0)
    assert found[:4] == pytest.approx([hiking, pottery, own, 0.0])


def test_words_that_the_space_does_not_know_are_left_out(graph: ActiveGraph) -> None:
    known = kin(graph, np.array([ACTIVITY], np.uint64), np.array([3.0]), None)
    both = kin(graph, np.array([ACTIVITY, 999], np.uint64), np.array([3.0, 9.0]), None)
    assert both.tolist() == known.tolist()
    assert not kin(graph, np.array([999], np.uint64), np.array([9.0]), None).any()
    assert not kin(graph, np.empty(0, np.uint64), np.empty(0), None).any()


def test_nothing_outside_of_the_mask(graph: ActiveGraph) -> None:
    mask = np.zeros(graph.size, np.bool_)
    mask[0] = True
    found = kin(graph, np.array([ACTIVITY], np.uint64), np.array([3.0]), mask)
    assert np.flatnonzero(found).tolist() == [0]


def test_the_way_is_told(graph: ActiveGraph) -> None:
    terms, idfs = np.array([ACTIVITY], np.uint64), np.array([3.0])
    found = kin(graph, terms, idfs, None)
    ((word_row, amount),) = akin_words(graph, terms, idfs, 0)
    assert word_row == graph.row(50)
    assert amount == pytest.approx(found[0])
    assert akin_words(graph, terms, idfs, 2) == []


def test_a_space_that_never_slept_has_its_own_words() -> None:
    plain = graph_of([row(1, terms={HIKING: 1}), row(2, terms={POTTERY: 1})], [])
    assert not len(abstractions_of(plain)) and not len(words_of(plain).term)
    found = kin(plain, np.array([HIKING], np.uint64), np.array([1.0]), None)
    assert found.tolist() == [pytest.approx(min(plain.term_rows(HIKING).idf / 4, 1.0)), 0.0]


def test_what_is_akin_is_found_once_for_a_snapshot(
    graph: ActiveGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms, idfs = np.array([ACTIVITY], np.uint64), np.array([3.0])
    (first,) = asked_terms(graph, terms, idfs)
    (again,) = asked_terms(graph, terms, idfs)
    assert all(one is other for one, other in zip(first.akin, again.akin, strict=True))
    monkeypatch.setattr(abstractions, "KEPT_AKIN", 1)
    two = np.array([ACTIVITY, HIKING], np.uint64)
    before = kin(graph, two, np.array([3.0, 2.0]), None)
    assert kin(graph, two, np.array([3.0, 2.0]), None).tolist() == before.tolist()


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), unique=True),
    st.sets(st.integers(0, 9)),
)
def test_pairs_are_found_from_either_side(pairs: list[tuple[int, int]], asked: set[int]) -> None:
    record, memory = (np.array([pair[end] for pair in pairs], np.intp) for end in (0, 1))
    found = abstractions.Abstractions.of_pairs(record, memory, 10)
    rows = np.array(sorted(asked), np.intp)
    at, records = found.of(rows)
    assert list(zip(rows[at].tolist(), records.tolist(), strict=True)) == sorted(
        (other, one) for one, other in pairs if other in asked
    )
    assert found.reached(rows).tolist() == sorted({other for one, other in pairs if one in asked})
    assert np.flatnonzero(found.rows).tolist() == sorted({one for one, _ in pairs})

"""The terms of a score against the plain reference, on any small space."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.retrieval.candidates import Candidates
from cofire.retrieval.features import DAY, TERMS, find_candidates
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked, Question
from retrieval_reference import (
    Turn,
    bm25,
    chain,
    concept_activation,
    cosines,
    graph_of,
    idfs,
    session_bm25,
    spread_coverage,
    walk,
)

EVERYTHING = Profile(name="everything", weights=dict.fromkeys(TERMS, 1.0))
UNIT = [
    tuple(float(value) for value in np.asarray(corner) / np.linalg.norm(corner))
    for corner in ((1, 0, 0, 0), (1, 1, 0, 0), (1, 1, 1, 1), (0, 1, -1, 0), (-1, 0, 2, 1))
]

counts = st.dictionaries(st.integers(1, 8), st.integers(1, 3), max_size=5)
turns = st.builds(
    Turn,
    terms=counts.filter(bool),
    concepts=st.dictionaries(st.integers(100, 104), st.just(1), max_size=3),
    vector=st.sampled_from(UNIT),
    session=st.integers(0, 3),
    names=st.sets(st.sampled_from([900, 901])).map(tuple),
    time=st.integers(0, 40).map(lambda day: day * DAY),
    event=st.none() | st.integers(0, 40).map(lambda day: (day * DAY, (day + 1) * DAY)),
)
spaces = st.lists(turns, min_size=1, max_size=14)


def question(terms: tuple[int, ...], **given: object) -> Question:
    fields: dict[str, object] = {
        "text": "", "terms": terms, "words": tuple(map(str, terms)), "embedded": "x", "names": (),
        "range": None, "asks_when": False, "asks_name": False,
    }  # fmt: skip
    return Question(**{**fields, **given})  # type: ignore[arg-type]


def candidates(space: list[Turn], asked: Question, vector: tuple[float, ...]) -> Candidates:
    wide = np.asarray(vector, np.float32)
    found = find_candidates(graph_of(space), Asked(question=asked, vector=wide), EVERYTHING, None)
    assert found.rows.tolist() == list(range(len(space)))  # every turn has a vector: an anchor
    return found


@settings(max_examples=60, deadline=None)
@given(spaces, st.sets(st.integers(1, 10), max_size=4), st.sampled_from(UNIT))
def test_words_sessions_and_neighbours(
    space: list[Turn], words: set[int], vector: tuple[float, ...]
) -> None:
    query = tuple(sorted(words))
    found = candidates(space, question(query), vector)
    before, after = chain(space)
    documents = [turn.terms for turn in space]
    lengths = [sum(turn.terms.values()) for turn in space]
    constants = EVERYTHING.bm25
    expected = bm25(documents, lengths, query, constants.k1, constants.b)
    np.testing.assert_allclose(found.bm25, expected, rtol=1e-5)
    similarity = cosines(space, vector)
    columns = {
        "similarity": similarity,
        "similarity_before": neighbours(similarity, -1, before, after),
        "similarity_before_2": neighbours(similarity, -2, before, after),
        "similarity_after": neighbours(similarity, 1, before, after),
        "similarity_after_2": neighbours(similarity, 2, before, after),
        "session_similarity": [
            max(similarity[i] for i, other in enumerate(space) if other.session == turn.session)
            if turn.session
            else similarity[at]
            for at, turn in enumerate(space)
        ],
    }
    if query:
        weights = idfs(space, query)
        total = sum(weights) or 1.0
        columns |= {
            "coverage": [
                sum(w for t, w in zip(query, weights, strict=True) if t in turn.terms) / total
                for turn in space
            ],
            "spread_coverage": spread_coverage(space, before, after, query, EVERYTHING.window),
            "session_bm25": session_bm25(space, query, EVERYTHING),
        }
    for name, values in columns.items():
        np.testing.assert_allclose(
            found.columns[name], np.asarray(values), rtol=1e-5, atol=2e-6, err_msg=name
        )


def neighbours(values: np.ndarray, step: int, before: list[int], after: list[int]) -> list[float]:
    places = [walk(at, step, before, after) for at in range(len(values))]
    return [float(values[place]) if place >= 0 else 0.0 for place in places]


@settings(max_examples=60, deadline=None)
@given(spaces, st.sets(st.integers(1, 8), max_size=3), st.sampled_from(UNIT))
def test_concepts_carry_the_energy_of_the_best_other_seed(
    space: list[Turn], words: set[int], vector: tuple[float, ...]
) -> None:
    found = candidates(space, question(tuple(sorted(words))), vector)
    similarity = cosines(space, vector)
    best = found.best_bm25
    own = np.maximum(similarity, found.bm25 / best if best > 0.0 else 0.0)
    # Up to ten of each leg are seeds: here rank decides which of the fourteen.
    dense = sorted(range(len(space)), key=lambda at: (-round(float(similarity[at]), 6), at))[:10]
    lexical = [at for at in range(len(space)) if found.bm25[at] > 0.0]
    lexical = sorted(lexical, key=lambda at: (-round(float(found.bm25[at]), 6), at))[:10]
    energy = [max(own[at], 0.0) if at in {*dense, *lexical} else 0.0 for at in range(len(space))]
    np.testing.assert_allclose(
        found.columns["concepts"], concept_activation(space, energy), rtol=1e-5, atol=5e-6
    )


@settings(max_examples=40, deadline=None)
@given(spaces, st.integers(0, 40), st.integers(1, 20), st.sampled_from([(), (900,), (900, 901)]))
def test_times_and_people(space: list[Turn], first: int, days: int, names: tuple[int, ...]) -> None:
    start, end = first * DAY, (first + days) * DAY
    found = candidates(space, question((1,), range=(start, end), names=names), UNIT[0])
    for at, turn in enumerate(space):
        told = turn.event is not None and turn.event[0] < end and turn.event[1] > start
        assert found.columns["in_range"][at] == float(told or start <= turn.time < end)
        near = start - DAY <= turn.time < end + EVERYTHING.days_after * DAY
        assert found.columns["near_range"][at] == float(near)
        if names:
            term = "speaker" if len(names) == 1 else "speaker_first"
            assert found.columns[term][at] == float(names[0] in turn.names)


@settings(max_examples=40, deadline=None)
@given(spaces, st.sampled_from(UNIT), st.data())
def test_a_mask_keeps_everything_else_out(
    space: list[Turn], vector: tuple[float, ...], data: st.DataObject
) -> None:
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(space), max_size=len(space))))
    asked = Asked(question=question((1, 2)), vector=np.asarray(vector, np.float32))
    found = find_candidates(graph_of(space), asked, EVERYTHING, kept)
    assert kept[found.rows].all()
    assert len(found.rows) == np.count_nonzero(kept)


@settings(max_examples=40, deadline=None)
@given(spaces, st.sets(st.integers(1, 8), max_size=3), st.sampled_from(UNIT))
def test_a_profile_computes_the_same_terms_whatever_else_it_weighs(
    space: list[Turn], words: set[int], vector: tuple[float, ...]
) -> None:
    graph = graph_of(space)
    asked = Asked(question=question(tuple(sorted(words))), vector=np.asarray(vector, np.float32))
    every = find_candidates(graph, asked, EVERYTHING, None)
    for term in ("similarity_before", "spread_coverage", "session_bm25", "tells_time"):
        weights = {"similarity": 1.0, "similarity_after": 1.0, term: 1.0}
        found = find_candidates(graph, asked, Profile(name="one", weights=weights), None)
        assert found.rows.tolist() == every.rows.tolist()
        assert (term in found.columns) == (term in every.columns)
        if term in found.columns:
            assert np.array_equal(found.columns[term], every.columns[term])

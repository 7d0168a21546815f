"""The papers' profiles against the plain reference, on any small space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipes_reference as reference
from cofire.dynamics.activation import SynapseRule
from cofire.dynamics.papers import AtamaiaBoosts
from cofire.retrieval.candidates import Scored
from cofire.retrieval.profiles import Profile, profile_of
from cofire.retrieval.question import Asked, Question
from cofire.retrieval.ranking import RANKINGS
from cofire.retrieval.recipes import AtamaiaRecipe, HelaMemRecipe, Recipe, SynapseRecipe
from recipes_reference import Case
from retrieval_reference import Turn

DAY = 86_400_000_000
UNIT = [
    tuple(float(value) for value in np.asarray(corner) / np.linalg.norm(corner))
    for corner in ((1, 0, 0, 0), (1, 1, 0, 0), (3, 1, 2, 1), (0, 1, -1, 0), (-1, 0, 2, 1))
]

turns = st.builds(
    Turn,
    terms=st.dictionaries(st.integers(1, 6), st.integers(1, 3), min_size=1, max_size=4),
    concepts=st.dictionaries(st.integers(100, 104), st.just(1), max_size=3),
    vector=st.none() | st.sampled_from(UNIT),
    session=st.integers(0, 2),
    time=st.integers(0, 90).map(lambda day: day * DAY // 3),
    importance=st.integers(1, 10),
)
TYPES = ("coactivation", "related", "supports", "contradicts")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    space = draw(st.lists(turns, min_size=1, max_size=10))
    places = st.integers(0, len(space) - 1)
    pairs = draw(st.sets(st.tuples(places, places).filter(lambda pair: pair[0] != pair[1])))
    strength = st.sampled_from((0.25, 0.5, 0.75, 1.0))
    return Case(
        turns=space,
        learned={pair: (draw(st.sampled_from(TYPES)), draw(strength)) for pair in sorted(pairs)},
        query=tuple(sorted(draw(st.sets(st.integers(1, 8), max_size=3)))),
        vector=draw(st.none() | st.sampled_from(UNIT)),
        now=draw(st.integers(0, 40)) * DAY,
        allowed=draw(st.none() | st.sets(places)),
    )


def asked(case: Case) -> Asked:
    question = Question(
        text="", terms=case.query, words=tuple(map(str, case.query)), embedded="x", names=(),
        range=None, asks_when=False, asks_name=False,
    )  # fmt: skip
    vector = None if case.vector is None else np.asarray(case.vector, np.float32)
    return Asked(question=question, vector=vector, now=case.now)


def ranked(case: Case, recipe: Recipe, depth: int | None = None) -> tuple[Scored, Profile]:
    profile = profile_of(recipe, "x")
    profile = replace(profile, depth=depth or profile.depth)
    searched = [(case.graph(), case.mask())]
    (scored,) = RANKINGS[profile.ranking](searched, asked(case), profile)
    return scored, profile


def check(scored: Scored, profile: Profile, expected: dict[int, float]) -> None:
    """The same memories with the same scores, each the weighted sum of its terms."""
    found = dict(zip(scored.candidates.rows.tolist(), scored.scores.tolist(), strict=True))
    assert found == pytest.approx(expected, abs=2e-6)
    total = np.zeros(len(found))
    for term, column in scored.candidates.columns.items():
        total += profile.weights[term] * column
    np.testing.assert_allclose(total, scored.scores, atol=1e-9)


hela_recipes = st.builds(
    HelaMemRecipe,
    keyword_weight=st.sampled_from((0.0, 0.5, 0.7)),
    tau_days=st.sampled_from((None, 5.0, 60.0)),
    mapped=st.booleans(),
    beta=st.sampled_from((0.0, 0.1, 0.84)),
    theta=st.sampled_from((0.0, 0.4, 0.6)),
    base=st.integers(1, 4),
    flips=st.integers(0, 3),
    raised_only=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(cases(), hela_recipes, st.integers(0, 8))
def test_hela_mem(case: Case, recipe: HelaMemRecipe, wanted: int) -> None:
    depth = max(recipe.depth, wanted)
    scored, profile = ranked(case, recipe, depth)
    check(scored, profile, reference.hela_mem(case, recipe, depth))
    given_by = scored.candidates.columns["passed_on"] * recipe.beta
    assert scored.candidates.paths is not None
    for row, given_to in zip(scored.candidates.rows.tolist(), given_by.tolist(), strict=True):
        told = sum(path.activation for path in scored.candidates.paths(row))
        if recipe.beta > 0.0:
            assert told == pytest.approx(given_to, abs=1e-6)


synapse_recipes = st.builds(
    SynapseRecipe,
    anchors=st.sampled_from((1, 3, 30)),
    alpha=st.sampled_from((0.5, 1.0)),
    rule=st.builds(
        SynapseRule,
        steps=st.integers(0, 3),
        inhibition=st.sampled_from((0.0, 0.15)),
        silent=st.sampled_from(("zero", "rest")),
    ),
    rho=st.sampled_from((0.0, 0.01)),
    temporal_back=st.booleans(),
    episodes_of_concept=st.integers(1, 3),
    incoming=st.none() | st.integers(1, 4),
    scaled_pagerank=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(cases(), synapse_recipes)
def test_synapse(case: Case, recipe: SynapseRecipe) -> None:
    scored, profile = ranked(case, recipe)
    expected, active = reference.synapse(case, recipe)
    check(scored, profile, expected)
    found = scored.candidates.columns["activation"].tolist()
    assert found == pytest.approx([active[row] for row in scored.candidates.rows.tolist()])
    assert scored.confidence is not None
    assert 0.0 <= scored.confidence <= 1.0
    if expected:
        top = min(expected, key=lambda at: (-round(expected[at], 6), at))
        assert scored.confidence == pytest.approx(min(1.0, active[top]), abs=1e-6)


atamaia_recipes = st.builds(
    AtamaiaRecipe,
    shortlist=st.sampled_from((1, 3, 200)),
    text_weight=st.sampled_from((0.0, 0.2, 1.0)),
    boosts=st.builds(AtamaiaBoosts, hebbian=st.sampled_from((0.0, 0.3, 1.0))),
    expand_from=st.integers(0, 3),
    expand_over=st.sampled_from((0.0, 0.7, 1.0)),
)


@settings(max_examples=150, deadline=None)
@given(cases(), atamaia_recipes)
def test_atamaia(case: Case, recipe: AtamaiaRecipe) -> None:
    scored, profile = ranked(case, recipe)
    check(scored, profile, reference.atamaia(case, recipe))
    assert scored.candidates.paths is not None
    for row in scored.candidates.rows.tolist():
        boost = scored.candidates.columns["linked"][scored.candidates.rows == row]
        told = max((path.activation for path in scored.candidates.paths(row)), default=0.0)
        assert told == pytest.approx(recipe.boosts.hebbian * float(boost[0]), abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(cases(), st.sampled_from([HelaMemRecipe(), SynapseRecipe(), AtamaiaRecipe()]))
def test_asking_twice_gives_the_same_bits(case: Case, recipe: Recipe) -> None:
    one, _ = ranked(case, recipe)
    two, _ = ranked(case, recipe)
    assert one.candidates.rows.tolist() == two.candidates.rows.tolist()
    assert one.scores.tobytes() == two.scores.tobytes()
    assert one.confidence == two.confidence

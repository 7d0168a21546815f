"""The papers' profiles: worked examples, and what each constant switches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofire.dynamics.activation import SynapseRule
from cofire.dynamics.papers import AtamaiaBoosts, SynapseWeights
from cofire.memory import Memory
from cofire.models.hashing import HashingEmbedder
from cofire.retrieval.candidates import Scored
from cofire.retrieval.profiles import PROFILES, Profile, profile_of
from cofire.retrieval.question import Asked, Question
from cofire.retrieval.ranking import RANKINGS
from cofire.retrieval.recipes import (
    ATAMAIA_RECIPE,
    HELA_MEM_RECIPE,
    SYNAPSE_RECIPE,
    AtamaiaRecipe,
    HelaMemRecipe,
    Recipe,
    SynapseRecipe,
)
from cofire.retrieval.synapse import network
from cofire.types import Message
from fakes import FailingEmbedder
from recipes_reference import Case, Learned
from retrieval_reference import Turn

PAPERS = ("hela_mem", "synapse", "atamaia")
DAY = 86_400_000_000
HOUR = DAY // 24
NOW = datetime(2024, 3, 1, tzinfo=UTC)


# By the equations


def turn(cosine: float | None = None, *terms: int, **given: Any) -> Turn:
    """A turn of some cosine to the question's vector (1, 0, 0, 0)."""
    vector = None if cosine is None else (cosine, math.sqrt(1.0 - cosine * cosine), 0.0, 0.0)
    return Turn(terms=dict.fromkeys(terms or (99,), 1), vector=vector, **given)


def space(*turns: Turn, learned: Learned | None = None, **given: Any) -> Case:
    fields: dict[str, Any] = {"query": (1, 2), "vector": (1.0, 0.0, 0.0, 0.0), **given}
    return Case(turns=turns, learned=learned or {}, **fields)


def run(case: Case, recipe: Recipe, depth: int | None = None) -> Scored:
    profile = profile_of(recipe, "x")
    question = Question(
        text="", terms=case.query, words=tuple(map(str, case.query)), embedded="x", names=(),
        range=None, asks_when=False, asks_name=False,
    )  # fmt: skip
    vector = None if case.vector is None else np.asarray(case.vector, np.float32)
    asked = Asked(question=question, vector=vector, now=case.now)
    profile = replace(profile, depth=depth or profile.depth)
    return RANKINGS[profile.ranking]([(case.graph(), case.mask())], asked, profile)[0]


def scores(case: Case, recipe: Recipe, depth: int | None = None) -> dict[int, float]:
    found = run(case, recipe, depth)
    return dict(zip(found.candidates.rows.tolist(), found.scores.round(6).tolist(), strict=True))


def column(found: Scored, term: str) -> list[float]:
    values: list[float] = found.candidates.columns[term].round(6).tolist()
    return values


LASTING = replace(HELA_MEM_RECIPE, tau_days=None)


def test_hela_mem_by_hand() -> None:
    """Turn 0 has cosine 0.6 and one of two keywords, and is 60 days old; turn 1 is after it."""
    case = space(turn(0.6, 1, session=1), turn(0.0, session=1), now=60 * DAY)
    base = [(0.8 + 0.5 * 0.5) * math.exp(-1), 0.5 * math.exp(-1)]
    assert scores(case, HELA_MEM_RECIPE) == pytest.approx(dict(enumerate(base)), abs=1e-3)
    given = 0.1 * 1.05 * 0.5
    assert scores(case, LASTING) == pytest.approx({0: 1.05, 1: 0.5 + given}, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"keyword_weight": 0.0}, {0: 0.8, 1: 0.5 + 0.1 * 0.8 * 0.5}),
        ({"mapped": False}, {0: 0.85, 1: 0.1 * 0.85 * 0.5}),
        ({"beta": 0.0}, {0: 1.05, 1: 0.5}),
        ({"theta": 1.1}, {0: 1.05, 1: 0.5}),
        ({"theta": 0.4}, {0: 1.05 + 0.1 * 0.5 * 0.5, 1: 0.5 + 0.1 * 1.05 * 0.5}),
        ({"links": ()}, {0: 1.05, 1: 0.5}),
        ({"links": ("coactivation",)}, {0: 1.05, 1: 0.5}),
        ({"base": 1, "flips": 0}, {0: 1.05}),
    ],
    ids=str,
)
def test_constants_of_hela_mem(change: dict[str, Any], expected: dict[int, float]) -> None:
    case = space(turn(0.6, 1, session=1), turn(0.0, session=1), now=60 * DAY)
    assert scores(case, replace(LASTING, **change)) == pytest.approx(expected, abs=1e-3)


def test_what_was_learned_spreads_as_turns_do_and_contradiction_does_not() -> None:
    learned: Learned = {(0, 1): ("coactivation", 1.0), (2, 0): ("contradicts", 1.0)}
    found = run(space(turn(0.6, 1), turn(0.0), turn(0.0), learned=learned), LASTING)
    assert column(found, "passed_on") == pytest.approx([0.0, 1.05, 0.0], abs=1e-3)
    assert found.candidates.paths is not None
    (path,) = found.candidates.paths(1)
    assert path.type == "coactivation"
    assert path.activation == pytest.approx(0.105, abs=1e-3)
    assert found.candidates.paths(2) == []


def test_the_flip_path_takes_what_spreading_raised_past_better_matches() -> None:
    turns = [turn(0.9), turn(0.1), turn(0.2), turn(0.3)]
    case = space(*turns, learned={(0, 1): ("coactivation", 1.0)}, query=())
    strong = replace(LASTING, base=1, flips=1, beta=0.8)
    found = run(case, strong)
    assert found.candidates.rows.tolist() == [0, 1]
    assert found.candidates.dense_anchor.tolist() == [True, False]  # only its link brought it
    assert list(scores(case, replace(strong, beta=0.0))) == [0, 3]
    assert list(scores(case, replace(strong, beta=0.0, raised_only=True))) == [0]


def test_for_a_longer_list_the_base_path_grows_and_the_flips_stay() -> None:
    case = space(*[turn(0.5 - n / 100) for n in range(30)], query=())
    assert len(scores(case, LASTING)) == 15
    assert len(scores(case, LASTING, depth=22)) == 22
    raised = replace(LASTING, raised_only=True)
    assert len(scores(case, raised)) == 10
    assert len(scores(case, raised, depth=22)) == 17  # k = 22 - 5, and nothing is raised


def test_hela_mem_without_a_vector_goes_by_keywords() -> None:
    case = space(turn(None, 1, 2), turn(0.0, 1), vector=None)
    assert scores(case, LASTING) == pytest.approx({0: 0.5, 1: 0.25})
    pending = space(turn(None, 1, 2), turn(0.0, 1))
    assert scores(pending, LASTING) == pytest.approx({0: 0.5, 1: 0.75})


PLAIN = replace(SYNAPSE_RECIPE, shares=SynapseWeights(similarity=0.0, activation=1.0, pagerank=0.0))
ONE_STEP = replace(PLAIN, rule=SynapseRule(steps=1, inhibition=0.0))


def rate(potential: float) -> float:
    return 1.0 / (1.0 + math.exp(-5.0 * (potential - 0.5)))


def test_synapse_by_hand() -> None:
    """One anchor, energy 0.8. It has the next turn and one concept, so a fan of 2."""
    case = space(
        turn(0.8, session=1, concepts={7: 1}),
        turn(0.1, session=1, time=10 * HOUR),
        turn(0.1, concepts={7: 1}),
    )
    recipe = replace(ONE_STEP, anchors=1)
    near = rate(0.8 * math.exp(-0.1) * 0.8 / 2)
    assert scores(case, recipe) == pytest.approx({0: rate(0.4), 1: near, 2: 0.0}, abs=1e-3)
    two = replace(recipe, rule=replace(recipe.rule, steps=2))
    assert scores(case, two)[2] == pytest.approx(rate(0.8 * 0.8 * rate(0.8 * 0.8 * 0.4) / 2), 1e-3)


@pytest.mark.parametrize(
    ("change", "terms"),
    [
        ({"rho": 0.0}, "near"),
        ({"rho_hours": 24.0}, "near"),
        ({"alpha": 0.5}, "all"),
        ({"anchors": 3}, "all"),
        ({"abstraction": 0.1}, "far"),
        ({"episodes_of_concept": 3}, "far"),
        ({"rule": SynapseRule(steps=2, inhibition=0.0, spreading=0.4)}, "all"),
    ],
    ids=str,
)
def test_constants_of_synapse(change: dict[str, Any], terms: str) -> None:
    case = space(
        turn(0.8, session=1, concepts={7: 1}),
        turn(0.4, session=1, time=10 * HOUR),
        turn(0.4, concepts={7: 1}),
    )
    recipe = replace(PLAIN, anchors=1, rule=SynapseRule(steps=2, inhibition=0.0))
    before, after = scores(case, recipe), scores(case, replace(recipe, **change))
    moved = {"near": (1,), "far": (2,), "all": (1, 2)}[terms]
    assert all(before[at] != pytest.approx(after[at], abs=1e-6) for at in moved)


def test_synapse_goes_back_in_time_only_if_told() -> None:
    case = space(turn(0.1, session=1), turn(0.8, session=1))
    recipe = replace(ONE_STEP, anchors=1)
    assert scores(case, recipe)[0] > 0.0
    assert scores(case, replace(recipe, temporal_back=False))[0] == 0.0


def test_at_most_so_many_edges_lead_to_a_node() -> None:
    turns = [turn(0.1, concepts={7: 1}, time=n) for n in range(20)]
    graph = space(*turns).graph()
    capped = network(graph, SYNAPSE_RECIPE)
    into = np.bincount(capped.edges.targets)
    assert into[20] == 15
    sources = np.repeat(np.arange(21), np.diff(capped.edges.offsets))
    assert sources[capped.edges.targets == 20].tolist() == list(range(5, 20))  # the latest
    free = network(graph, replace(SYNAPSE_RECIPE, incoming=None))
    assert np.bincount(free.edges.targets)[20] == 20


def test_the_graph_is_made_once_for_a_snapshot() -> None:
    graph = space(turn(0.5, session=1), turn(0.5, session=1)).graph()
    assert network(graph, SYNAPSE_RECIPE) is network(graph, SYNAPSE_RECIPE)
    assert network(graph, replace(SYNAPSE_RECIPE, rho=0.5)) is not network(graph, SYNAPSE_RECIPE)


def test_scaled_pagerank_counts_and_the_letter_next_to_nothing() -> None:
    case = space(turn(0.5, session=1), turn(0.5, session=1), turn(0.5, session=1))
    recipe = replace(
        SYNAPSE_RECIPE, shares=SynapseWeights(similarity=0.0, activation=0.0, pagerank=1.0)
    )
    letter = scores(case, recipe)
    assert sum(letter.values()) == pytest.approx(1.0, abs=1e-5)
    scaled = scores(case, replace(recipe, scaled_pagerank=True))
    assert max(scaled.values()) == 1.0
    assert max(letter, key=letter.__getitem__) == max(scaled, key=scaled.__getitem__) == 1


def test_a_memory_that_may_not_be_recalled_passes_nothing_on() -> None:
    turns = [turn(0.8, session=1), turn(0.1, session=1), turn(0.1, session=1)]
    recipe = replace(PLAIN, anchors=1, rule=SynapseRule(steps=2, inhibition=0.0))
    assert scores(space(*turns), recipe)[2] > 0.0
    closed = scores(space(*turns, allowed={0, 2}), recipe)
    assert closed.keys() == {0, 2}
    assert closed[2] == 0.0
    # Nor where every node fires: what is closed has a rate and sends none of it.
    restless = replace(recipe, rule=replace(recipe.rule, steps=3, silent="rest"))
    apart = [replace(turns[0], session=0), replace(turns[2], session=0)]
    assert scores(space(*turns, allowed={0, 2}), restless)[2] == scores(space(*apart), restless)[1]


@pytest.mark.parametrize(("cosine", "sure"), [(0.9, True), (0.01, False)])
def test_the_gate_of_synapse(cosine: float, sure: bool) -> None:
    found = run(space(turn(cosine)), replace(SYNAPSE_RECIPE, rule=SynapseRule(steps=1)))
    assert found.confidence == pytest.approx(rate(cosine / 2), abs=1e-3)
    gate = PROFILES["synapse"].gate
    assert gate is not None
    assert found.confidence is not None
    assert gate.threshold == 0.12
    assert gate.abstains(found.confidence) is not sure


NO_BOOSTS = AtamaiaBoosts(importance=0.0, recency=0.0, hebbian=0.0)
BARE = replace(ATAMAIA_RECIPE, boosts=NO_BOOSTS)


def test_atamaia_by_hand() -> None:
    """Turn 0 is the best by words; turn 1 has none of them and is out, however close."""
    case = space(turn(0.5, 1), turn(0.99), turn(0.25, 1, importance=10), now=30 * DAY)
    assert scores(case, BARE) == pytest.approx({0: 0.2 + 0.4, 2: 0.2 + 0.2}, abs=1e-3)
    boosted = {0: 0.6 * (1 + 0.2 * 4 / 9 + 0.1 / 2), 2: 0.4 * (1 + 0.2 + 0.1 / 2)}
    assert scores(case, ATAMAIA_RECIPE) == pytest.approx(boosted, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"text_weight": 1.0}, {0: 1.0, 2: 1.0}),
        ({"shortlist": 1}, {0: 0.6}),
        ({"boosts": replace(NO_BOOSTS, importance=0.9)}, {0: 0.6 * 1.4, 2: 0.4 * 1.9}),
        ({"boosts": replace(NO_BOOSTS, recency=1.0, recency_days=10.0)}, {0: 0.675, 2: 0.45}),
    ],
    ids=str,
)
def test_constants_of_atamaia(change: dict[str, Any], expected: dict[int, float]) -> None:
    case = space(turn(0.5, 1), turn(0.99), turn(0.25, 1, importance=10), now=30 * DAY)
    assert scores(case, replace(BARE, **change)) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "strength", "change", "reached"),
    [
        ("coactivation", 0.71, {}, True),
        ("supports", 0.71, {}, True),
        ("coactivation", 0.7, {}, False),
        ("contradicts", 1.0, {}, False),
        ("coactivation", 0.71, {"expand_over": 0.8}, False),
        ("coactivation", 0.71, {"expand_from": 0}, False),
        ("coactivation", 0.71, {"links": ("supports",)}, False),
    ],
)
def test_strong_links_bring_in_what_the_words_do_not(
    kind: str, strength: float, change: dict[str, Any], reached: bool
) -> None:
    turns = (turn(0.5, 1), turn(0.5))
    out = space(*turns, learned={(0, 1): (kind, strength)}, now=900 * DAY)
    found = scores(out, replace(ATAMAIA_RECIPE, **change))
    assert (1 in found) is reached
    if reached:
        assert found[1] == pytest.approx(0.4 * (1 + 0.2 * 4 / 9 + 0.3 * strength), abs=1e-3)
    back = space(*turns, learned={(1, 0): (kind, strength)})
    assert 1 not in scores(back, replace(ATAMAIA_RECIPE, **change))  # outgoing links only


def test_a_hit_gains_by_its_link_to_another_hit() -> None:
    turns = (turn(0.5, 1), turn(0.5, 1), turn(0.5, 1))
    found = run(space(*turns, learned={(0, 1): ("related", 0.5)}), ATAMAIA_RECIPE)
    linked = column(found, "linked")
    assert linked[0] == linked[1] == pytest.approx(0.3, abs=1e-3)
    assert linked[2] == 0.0
    assert found.candidates.paths is not None
    (path,) = found.candidates.paths(0)
    assert path.activation == pytest.approx(0.3 * linked[0], abs=1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: HelaMemRecipe(keyword_weight=-0.1),
        lambda: HelaMemRecipe(tau_days=0.0),
        lambda: HelaMemRecipe(tau_days=math.nan),
        lambda: HelaMemRecipe(beta=1.1),
        lambda: HelaMemRecipe(theta=-1.0),
        lambda: HelaMemRecipe(base=0),
        lambda: HelaMemRecipe(flips=-1),
        lambda: HelaMemRecipe(links=("friendship",)),
        lambda: SynapseRecipe(anchors=0),
        lambda: SynapseRecipe(alpha=math.inf),
        lambda: SynapseRecipe(rho=-0.01),
        lambda: SynapseRecipe(rho_hours=0.0),
        lambda: SynapseRecipe(abstraction=1.5),
        lambda: SynapseRecipe(episodes_of_concept=0),
        lambda: SynapseRecipe(incoming=0),
        lambda: SynapseRecipe(threshold=1.2),
        lambda: AtamaiaRecipe(shortlist=0),
        lambda: AtamaiaRecipe(text_weight=-0.2),
        lambda: AtamaiaRecipe(expand_from=-1),
        lambda: AtamaiaRecipe(expand_over=1.7),
        lambda: AtamaiaRecipe(links=("",)),
    ],
)
def test_constants_out_of_range_are_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"must be|no link type"):
        bad()


# Through Memory.recall


def messages(count: int = 40) -> list[Message]:
    things = "kiln glaze ferry pottery lamp theatre harbour violin".split()
    return [
        Message(
            content=f"I saw the {things[n % 8]} and the {things[n * 3 % 7]}, on day {n}.",
            speaker=("Nora", "Juno")[n % 2],
            session=f"s{n // 8}",
            time=NOW - timedelta(days=60) + timedelta(hours=n),
            tags=("even",) if n % 2 == 0 else (),
        )
        for n in range(count)
    ]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", embedder=HashingEmbedder(64), projects=["p"]) as opened:
        opened.remember(messages())
        yield opened


@pytest.mark.parametrize("profile", PAPERS)
def test_filters_hold(memory: Memory, profile: str) -> None:
    recall = memory.recall("kiln and ferry", 10, profile=profile, tags="even", now=NOW)
    assert recall
    assert all(hit.item.tags == ("even",) for hit in recall)
    assert not memory.recall("kiln", profile=profile, speakers="nobody", now=NOW)


@pytest.mark.parametrize("profile", PAPERS)
def test_an_empty_memory(tmp_path: Path, profile: str) -> None:
    with Memory.open(tmp_path / "m.db", embedder=HashingEmbedder(64), projects=["p"]) as memory:
        recall = memory.recall("kiln", profile=profile, explain=True)
        assert recall.ids == ()
        assert recall.abstain is (profile == "synapse")
        memory.remember("The kiln is hot.")
        assert len(memory.recall("kiln", profile=profile)) == 1  # the project is empty still


@pytest.mark.parametrize("profile", PAPERS)
def test_by_words_only(tmp_path: Path, profile: str) -> None:
    embedder = FailingEmbedder()
    embedder.failing = False
    with Memory.open(tmp_path / "m.db", embedder=embedder) as memory:
        memory.remember(messages())
        embedder.failing = True
        recall = memory.recall("the kiln and the glaze", 3, profile=profile, now=NOW, explain=True)
        assert any("words only" in warning for warning in recall.warnings)
        assert all("kiln" in hit.content or "glaze" in hit.content for hit in recall)
        assert recall.trace is not None
        assert len(recall) == 3
        for item in recall.trace.items:
            assert sum(t.contribution for t in item.terms) == pytest.approx(item.score, abs=2e-6)


@pytest.mark.parametrize("profile", PAPERS)
def test_two_spaces_are_on_one_scale(memory: Memory, profile: str) -> None:
    alone = memory.recall("kiln and ferry", 40, profile=profile, now=NOW)
    memory.remember(messages(), project="p")
    both = memory.recall("kiln and ferry", 80, profile=profile, now=NOW)
    assert {hit.item.space.project for hit in both} == {None, "p"}
    by_content: dict[str, list[float]] = {}
    for hit in both:
        by_content.setdefault(hit.content, []).append(hit.score)
    pairs = [one for one in by_content.values() if len(one) == 2]
    assert pairs
    if profile != "synapse":  # there inhibition is among all that are active
        expected = {hit.content: hit.score for hit in alone}
        assert all(by_content[text][0] == pytest.approx(expected[text]) for text in expected)
    assert all(one == pytest.approx(other, abs=1e-5) for one, other in pairs)


def test_synapse_returns_the_best_in_order_of_time(memory: Memory) -> None:
    profile = PROFILES["synapse"]
    by_score = memory.recall("kiln and ferry", 6, profile=replace(profile, order="score"), now=NOW)
    recall = memory.recall("kiln and ferry", 6, profile="synapse", now=NOW, explain=True)
    assert sorted(recall.ids) == sorted(by_score.ids)
    assert [hit.item.time for hit in recall] == sorted(hit.item.time for hit in recall)
    assert {hit.id: hit.score for hit in recall} == {hit.id: hit.score for hit in by_score}
    assert recall.trace is not None
    assert tuple(item.id for item in recall.trace.items) == recall.ids
    assert recall.confidence is not None
    assert recall.abstain is (recall.confidence < 0.12)
    budget = by_score.tokens - 1  # room for the five best and not for the sixth
    packed = memory.recall("kiln and ferry", 6, profile="synapse", now=NOW, token_budget=budget)
    assert set(by_score.ids[:5]) <= set(packed.ids)


@pytest.mark.parametrize("profile", PAPERS)
def test_recalling_again_changes_nothing(memory: Memory, profile: str) -> None:
    one = memory.recall("kiln and ferry", 10, profile=profile, now=NOW)
    two = memory.recall("kiln and ferry", 10, profile=profile, now=NOW)
    assert [(hit.id, hit.score) for hit in one] == [(hit.id, hit.score) for hit in two]


def test_what_a_profile_weighs_follows_from_its_recipe() -> None:
    other = profile_of(replace(HELA_MEM_RECIPE, beta=0.84, keyword_weight=0.7), "case study")
    assert other.weights["passed_on"] == 0.84
    assert other.weights["keywords"] == 0.7
    assert PROFILES["hela_mem"].take_names_out
    assert [PROFILES[name].ranking for name in PAPERS] == list(PAPERS)
    assert isinstance(other, Profile)

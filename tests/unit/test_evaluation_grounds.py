"""Grounds: weaker recalls that learning is measured on top of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cofire.errors import InputError
from cofire.evaluation.adjusting import Untaught, untaught
from cofire.evaluation.arms import ARMS, K
from cofire.evaluation.benches import remembered
from cofire.evaluation.grounds import GROUNDS, ground_named
from cofire.evaluation.learning import evaluate_learning
from cofire.evaluation.learning_figures import learning_figures
from cofire.evaluation.learning_report import render_learning
from cofire.evaluation.sweeps import cue_points
from cofire.interchange.locomo import load
from cofire.models.hashing import HashingEmbedder
from cofire.retrieval.features import TERMS
from cofire.retrieval.profiles import AWAKE, HELA_MEM, MECHANISMS

THINGS = ("plum tree", "canoe", "violin", "lantern", "kite", "anchor", "scarf", "clock")
LEARNED = MECHANISMS["learning"]


@pytest.fixture(scope="module")
def locomo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One conversation of 16 turns, eight questions, pairs of which share evidence."""
    turns = [
        {
            "speaker": ("Ada", "Ben")[turn % 2],
            "dia_id": f"D1:{turn + 1}",
            "text": f"About the {THINGS[turn % 8]}: it is number {turn} of what we have.",
        }
        for turn in range(16)
    ]
    questions = [
        {
            "question": f"What does {('Ada', 'Ben')[at % 2]} say of the {thing}?",
            "category": 1 + at % 4,
            "answer": "a number",
            "evidence": [f"D1:{at + 1}", f"D1:{(at ^ 1) + 9}"][: 1 + at % 2],
        }
        for at, thing in enumerate(THINGS)
    ]
    talk = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": turns,
        },
        "qa": questions,
    }
    path = tmp_path_factory.mktemp("locomo") / "locomo.json"
    path.write_text(json.dumps([talk]))
    return path


def test_the_first_ground_is_the_default_and_the_others_are_weaker() -> None:
    assert next(iter(GROUNDS.values())).profile is AWAKE
    for name, ground in GROUNDS.items():
        assert ground.name == name
        assert ground.says
        assert ground.profile.ranking == "terms"
        assert set(ground.profile.weights) <= set(TERMS)
    sizes = [len(ground.profile.weights) for ground in GROUNDS.values()]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("name", [name for name in GROUNDS if name != "cofire"])
def test_a_weaker_ground_is_not_fitted_and_learns_as_the_default_does(name: str) -> None:
    profile = ground_named(name).profile
    assert {term: profile.weights[term] for term in LEARNED} == {
        term: AWAKE.weights[term] for term in LEARNED
    }
    given = set(AWAKE.weights.values())
    assert all(weight in given for weight in profile.weights.values())
    assert profile.cues == AWAKE.cues
    assert profile.cutoff is None


def test_a_ground_that_does_not_exist_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InputError, match="cofire, simple, fusion, dense"):
        evaluate_learning("nowhere.json", ground="nonsense")


def test_arms_ask_by_the_ground_unless_they_have_a_profile_of_their_own() -> None:
    dense = ground_named("dense").profile
    assert ARMS["cofire"].asks(dense) is dense
    assert ARMS["hela-mem"].asks(dense) is HELA_MEM
    assert not ARMS["cues-off"].asks(dense).uses("cue")
    assert ARMS["cues-off"].asks(dense).uses("similarity", "association")
    assert not ARMS["links-off"].asks(dense).uses("association")


def test_without_a_cutoff_everything_asked_for_is_returned() -> None:
    ids = np.array([f"{number}" for number in range(K + 5)], object)
    scores = np.linspace(100.0, 0.0, K + 5)
    assert Untaught(ids, scores, None).returned() == tuple(ids[:K])
    assert len(Untaught(ids, scores, 6.0).returned()) < K


def test_sweeps_vary_the_ground() -> None:
    dense = ground_named("dense").profile
    points = list(cue_points(dense))
    assert {profile.name for *_, profile in points} == {"dense"}
    assert sum(default for _, _, default, _ in points) == 4


@pytest.mark.parametrize("name", GROUNDS)
def test_an_untaught_ranking_is_what_a_recall_by_the_ground_returns(
    locomo: Path, name: str
) -> None:
    conversations, _ = load(locomo)
    profile = ground_named(name).profile
    with remembered(conversations, HashingEmbedder(64), lambda done, total: None) as (bench,):
        for question, ranked in zip(bench.asked(), untaught(bench, profile), strict=True):
            recall = bench.memory.recall(question, K, profile=profile, now=bench.now)
            assert ranked.returned() == recall.ids


def test_learning_builds_on_the_ground_that_is_named(locomo: Path) -> None:
    arms = ("cofire", "popularity", "oracle")
    result = evaluate_learning(
        locomo, arms=arms, ground="dense", splits=2, embedder=HashingEmbedder(64)
    )
    figures = learning_figures(result)
    assert figures["ground"] == "dense"
    assert set(figures["arms"]) == {"frozen", *arms}
    assert "Learning builds on the recall 'dense': vectors only." in render_learning(figures)
    default = learning_figures(
        evaluate_learning(locomo, arms=("frozen",), splits=2, embedder=HashingEmbedder(64))
    )
    assert default["ground"] == "cofire"
    recalls = [one["arms"]["frozen"]["subsets"]["all"]["recall"] for one in (figures, default)]
    assert recalls[0] != recalls[1]

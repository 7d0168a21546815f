"""Splits of questions, and the arms that only change an untaught ranking."""

from __future__ import annotations

import numpy as np
import pytest

from cofire.errors import InputError
from cofire.evaluation import courses
from cofire.evaluation.adjusting import Untaught, foreknown
from cofire.evaluation.arms import ARMS
from cofire.evaluation.learning import LearningResult, Pair, evaluate_learning
from cofire.evaluation.learning_figures import learning_figures
from cofire.evaluation.learning_report import render_learning
from cofire.evaluation.splits import (
    chronological_order,
    permuted,
    random_orders,
    split_at,
    unit_vectors,
)

EVIDENCE = (("a",), ("a", "b"), ("c",), ("d",))


def test_orders_are_permutations_and_the_same_again() -> None:
    orders = random_orders(20, 3, 0)
    assert orders == random_orders(20, 3, 0)
    assert orders != random_orders(20, 3, 1)
    assert len({order for _, order in orders}) == 3
    for _, order in orders:
        assert sorted(order) == list(range(20))


def test_the_chronological_order_goes_by_the_latest_evidence() -> None:
    place = {"a": 0, "b": 9, "c": 5, "d": 7}
    assert chronological_order(EVIDENCE, place) == (0, 2, 3, 1)


def test_a_split_tells_who_shares_and_drops_the_near_identical() -> None:
    vectors = unit_vectors(
        [np.array(v) for v in ([1.0, 0, 0], [0, 1.0, 0], [2.0, 0.1, 0], [0, 0, 1])]
    )
    split = split_at("0", (0, 1, 2, 3), 0.25, EVIDENCE, vectors)
    assert split.train == (0,)
    assert split.test == (1, 3), "question 2 says the same as question 0"
    assert split.dropped == 1
    assert split.shared == {1}


def test_everything_is_tested_if_nothing_is_learned_and_nothing_if_all_is() -> None:
    vectors = unit_vectors([np.zeros(2)] * 4)
    assert split_at("0", (3, 2, 1, 0), 0.0, EVIDENCE, vectors).test == (3, 2, 1, 0)
    assert split_at("0", (3, 2, 1, 0), 1.0, EVIDENCE, vectors).test == ()


@pytest.mark.parametrize("count", [2, 3, 10])
def test_permuted_sets_are_dealt_to_others(count: int) -> None:
    sets = [(str(n),) for n in range(count)]
    dealt = permuted(sets, 5)
    assert sorted(dealt) == sorted(sets)
    assert all(one != other for one, other in zip(dealt, sets, strict=True))
    assert permuted(sets, 5) == dealt


def ranked(scores: list[float]) -> Untaught:
    ids = np.array([chr(ord("a") + n) for n in range(len(scores))], object)
    return Untaught(ids, np.array(scores))


def test_popularity_boosts_what_was_used_and_keeps_the_cutoff() -> None:
    untaught = ranked([9.0, 8.5, 8.0, *[2.0] * 12])
    assert untaught.returned()[:3] == ("a", "b", "c")
    assert len(untaught.returned()) == 10, "the rest is further than the cutoff below the best"
    assert untaught.boosted({"c"}, 1.5)[:3] == ("c", "a", "b")
    assert untaught.boosted(set(), 1.5) == untaught.returned()
    assert ranked([]).returned() == ()


def test_what_is_foreknown_goes_first() -> None:
    assert foreknown(("x", "y", "z"), ("z", "w", "q"), {"z", "w"}) == ["z", "w", "x", "y"]


def outcome(question: int, places: tuple[int | None, ...], **changes: object) -> courses.Tested:
    given: dict[str, object] = {
        "conversation": 0, "question": question, "split": "0", "category": 1, "shared": False,
        "places": places,
    }  # fmt: skip
    return courses.Tested(**{**given, **changes})  # type: ignore[arg-type]


def test_figures_pair_by_question_and_count_flips() -> None:
    result = LearningResult(
        source="x/y.json", corrected=True, conversations=1, questions=3, splits=1
    )
    result.tested = {
        "frozen": [
            outcome(0, (0, 20)),
            outcome(1, (3,)),
            outcome(2, (None,), split="chronological"),
        ],
        "cofire": [outcome(0, (0, 5)), outcome(1, (12,)), outcome(2, (0,), split="chronological")],
    }
    result.pairs = [Pair(strength=0.0, used=10, together=1), Pair(strength=0.3, used=4, together=2)]
    result.curve = {0.5: (result.tested["cofire"], result.tested["frozen"])}
    figures = learning_figures(result)
    arm = figures["arms"]["cofire"]
    assert arm["subsets"]["all"]["tests"] == 2
    assert [one["mean"] for one in arm["subsets"]["all"]["difference"]] == [-50.0, -25.0, 0.0]
    assert arm["subsets"]["multi evidence"]["difference"][1]["mean"] == 50.0
    assert arm["subsets"]["earlier half, later half"]["difference"][0]["mean"] == 100.0
    assert arm["flips"] == {"lost": 50.0, "gained": 50.0}
    assert [one["frequency"] for one in figures["strengths"]] == [0.1, 0.5]
    text = render_learning(figures)
    assert "y.json" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_an_arm_that_does_not_exist_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InputError, match="shuffled"):
        evaluate_learning("nowhere.json", arms=("nonsense",))


def test_every_arm_has_a_base_that_learned_nothing() -> None:
    for arm in ARMS.values():
        base = ARMS[arm.base]
        assert base.teacher is None
        assert not base.adjusts
        assert arm.says

"""Figures of a result, against numbers worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cofire.evaluation.qa.figures import figures_of, percent
from cofire.evaluation.qa.refusal_figures import STEPS, refusal_figures
from outcomes_of_runs import Data, outcome

LOCOMO = Data(
    counts={"multi-hop": 282, "temporal": 321, "open-domain": 96, "single-hop": 841},
    scored_apart=frozenset({"adversarial"}),
)


def arm(*outcomes: Any, data: Data = LOCOMO, **values: Any) -> dict[str, Any]:
    found: dict[str, Any] = figures_of(outcomes, data, rounds=200, **values)["arms"]["cofire"]
    return found


def test_a_mean_with_its_interval_and_seeds() -> None:
    found = arm(
        outcome("a", seed=0, f1=1.0), outcome("b", seed=0, f1=0.5),
        outcome("a", seed=1, f1=0.5), outcome("b", seed=1, f1=0.2), outcome("c", seed=1),
    )  # fmt: skip
    measure = found["groups"]["single-hop"]["measures"]["f1"]
    assert (measure["n"], measure["questions"]) == (4, 2)
    assert measure["mean"] == pytest.approx(0.55)
    assert measure["seeds"] == {"0": pytest.approx(0.75), "1": pytest.approx(0.35)}
    assert measure["sd"] == pytest.approx(0.4 / 2**0.5)
    # Two questions are drawn: twice b (0.35), twice a (0.75) or each once.
    assert (measure["low"], measure["high"]) == (pytest.approx(0.35), pytest.approx(0.75))
    assert found["seeds"] == [0, 1]
    assert found["groups"]["single-hop"]["measures"]["judge"] is None


def test_one_seed_has_no_deviation() -> None:
    measure = arm(outcome("a", f1=1.0))["all"]["measures"]["f1"]
    assert (measure["sd"], measure["low"], measure["high"]) == (None, 1.0, 1.0)


def test_averages_by_the_published_counts_and_as_asked() -> None:
    found = arm(
        outcome("a", group="multi-hop", f1=0.0),
        outcome("b", group="temporal", f1=1.0),
        outcome("c", group="open-domain", f1=0.5),
        outcome("d", group="single-hop", f1=1.0),
        outcome("e", group="single-hop", f1=0.6),
        outcome("f", group="adversarial", f1=1.0, unanswerable=True, abstained=True),
    )
    weighted = found["weighted"]
    assert weighted["weights"] == LOCOMO.counts
    assert weighted["missing"] == []
    expected = (321 * 1.0 + 96 * 0.5 + 841 * 0.8) / 1540
    assert weighted["measures"]["f1"]["mean"] == pytest.approx(expected)
    assert weighted["measures"]["f1"]["seeds"] == {"0": pytest.approx(expected)}
    assert weighted["measures"]["judge"] is None
    assert found["all"]["measures"]["f1"]["mean"] == pytest.approx(3.1 / 5)
    assert found["all"]["questions"] == 5
    assert found["apart"]["measures"]["f1"]["mean"] == 1.0
    assert list(found["groups"]) == [*LOCOMO.counts, "adversarial"]


def test_an_average_without_all_its_groups_says_so() -> None:
    weighted = arm(outcome("a", group="temporal", f1=0.5))["weighted"]
    assert weighted["missing"] == ["multi-hop", "open-domain", "single-hop"]
    assert weighted["measures"]["f1"]["mean"] == 0.5
    assert arm(outcome("a"), data=Data())["weighted"] is None
    assert arm(outcome("a", group="adversarial"))["all"] is None


def test_counts_of_what_went_wrong_and_what_it_took() -> None:
    block = arm(
        outcome("a", context_tokens=100, input_tokens=150, output_tokens=10, cost=0.25,
                seconds=1.0, recall_ms=5.0, malformed="cut"),
        outcome("b", context_tokens=300, input_tokens=350, output_tokens=30, cost=0.5,
                seconds=3.0, recall_ms=7.0, failed="503", text=""),
        outcome("c", abstained=True, reason="gate"),
        outcome("d", abstained=True, reason="evidence"),
        outcome("e", abstained=True, reason="gate"),
    )["all"]  # fmt: skip
    assert (block["malformed"], block["failed"], block["cost"]) == (1, 1, 0.75)
    assert block["abstained"] == {"evidence": 1, "gate": 2}
    assert block["tokens"]["context"] == {"mean": 80.0, "median": 0.0, "p95": pytest.approx(260)}
    assert block["seconds"]["p95"] == pytest.approx(2.6)
    # The one that failed neither answered nor refused.
    refused = block["measures"]["falsely_refused"]
    assert (refused["n"], refused["mean"]) == (4, 0.75)
    assert block["measures"]["refused"] is None


def test_evidence_in_the_context() -> None:
    measures = arm(
        outcome("a", evidence=4, evidence_found=1),
        outcome("b", evidence=2, evidence_found=2),
        outcome("c", evidence=0),
    )["all"]["measures"]
    assert (measures["evidence_share"]["n"], measures["evidence_share"]["mean"]) == (2, 0.625)
    assert measures["evidence_whole"]["mean"] == 0.5


def test_the_judge_by_majority_and_how_its_runs_agree() -> None:
    block = arm(
        outcome("a", judged=(True, True, False)),
        outcome("b", judged=(False, False, False)),
        outcome("c", judged=(True, None, False)),
        outcome("d", judged=(None, None, None)),
        outcome("e"),
    )["all"]
    assert block["measures"]["judge"]["n"] == 3
    assert block["measures"]["judge"]["mean"] == pytest.approx(1 / 3)
    judge = block["judge"]
    assert (judge["runs"], judge["replies"], judge["unusable"], judge["unjudged"]) == (3, 12, 4, 1)
    assert judge["agreement"] == 0.5
    # Two rows: pairs that agree 1/3 and 1; labels 2 and 4 of 6, so chance is 1/9 + 4/9.
    assert judge["kappa"] == pytest.approx((2 / 3 - 5 / 9) / (4 / 9))
    assert arm(outcome("a"))["all"]["judge"] is None


def test_refusals_on_both_sides() -> None:
    asked = [
        outcome("a", confidence=0.9),
        outcome("b", confidence=0.4, abstained=True, reason="gate"),
        outcome("c", confidence=0.6),
        outcome("d", confidence=0.3, unanswerable=True, abstained=True, reason="gate"),
        outcome("e", confidence=0.6, unanswerable=True, abstained=True, reason="evidence"),
        outcome("f", confidence=0.7, unanswerable=True),
        outcome("g", confidence=0.1, unanswerable=True, failed="503", text=""),
    ]
    found = refusal_figures(asked, 0.5)
    assert found["unanswerable"]["n"] == 3
    assert found["unanswerable"]["refused"] == pytest.approx(2 / 3)
    assert found["unanswerable"]["reasons"] == {
        "evidence": pytest.approx(1 / 3), "gate": pytest.approx(1 / 3),
    }  # fmt: skip
    assert found["answerable"]["refused"] == pytest.approx(1 / 3)
    assert found["at_threshold"] == {
        "threshold": 0.5, "unanswerable": pytest.approx(1 / 3), "answerable": pytest.approx(1 / 3),
    }  # fmt: skip
    # Of 9 pairs an answerable one is above in 5 and ties in 1.
    assert found["auc"] == pytest.approx((3 + 1 + 1.5) / 9)
    assert len(found["curve"]) == STEPS
    assert (found["curve"][0]["unanswerable"], found["curve"][-1]["answerable"]) == (0.0, 1.0)


def test_without_confidences_there_is_no_curve() -> None:
    found = refusal_figures([outcome("a"), outcome("b", unanswerable=True)], None)
    assert (found["curve"], found["auc"], found["at_threshold"]) == (None, None, None)
    assert refusal_figures([], None)["answerable"] is None


def test_figures_are_json_and_the_same_again() -> None:
    asked = [outcome(str(at), f1=at / 10, arm=name) for at in range(10) for name in ("x", "y")]
    found = figures_of(asked, LOCOMO, thresholds={"x": 0.5})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found == figures_of(asked, LOCOMO, thresholds={"x": 0.5})
    assert list(found["arms"]) == ["x", "y"]
    assert found["arms"]["x"]["refusals"]["threshold"] == 0.5
    assert figures_of([], LOCOMO)["arms"] == {}


@pytest.mark.parametrize(
    ("share", "questions", "text"),
    [
        (0.5, 20, "50"), (0.456, 100, "46"), (0.456, 200, "45.6"), (1.0, 3, "100"),
        (0.999, 100, ">99"), (0.9999, 2000, ">99.9"), (0.001, 50, "<1"), (0.0, 50, "0"),
        (0.0, 500, "0.0"), (0.0002, 500, "<0.1"), (1.0, 500, "100.0"),
    ],
)  # fmt: skip
def test_percentages_promise_no_more_than_they_know(
    share: float, questions: int, text: str
) -> None:
    assert percent(share, questions) == text


LONGMEMEVAL = Data(
    name="longmemeval", counts={"multi-session": 133, "temporal-reasoning": 133, "other": 2}
)


def test_abstention_counts_in_its_type_and_apart_as_the_official_evaluation_has_it() -> None:
    found = arm(
        outcome("a", group="multi-session", judged=(True,)),
        outcome("b", group="multi-session", judged=(False,)),
        outcome("c_abs", group="multi-session", judged=(True,), unanswerable=True),
        outcome("d", group="temporal-reasoning", judged=(False,)),
        outcome("e_abs", group="temporal-reasoning", judged=(False,), unanswerable=True),
        data=LONGMEMEVAL,
    )
    judged = {name: block["measures"]["judge"]["mean"] for name, block in found["groups"].items()}
    assert judged == {"multi-session": pytest.approx(2 / 3), "temporal-reasoning": 0.0}
    assert found["all"]["measures"]["judge"]["mean"] == pytest.approx(2 / 5)  # overall accuracy
    assert found["abstention"]["measures"]["judge"]["mean"] == 0.5
    assert found["abstention"]["questions"] == 2
    macro = found["macro"]  # task-averaged accuracy
    assert macro["measures"]["judge"]["mean"] == pytest.approx(1 / 3)
    assert macro["missing"] == ["other"]
    assert found["apart"] is None


def test_what_is_scored_apart_is_no_abstention_of_those_that_count() -> None:
    found = arm(
        outcome("a", group="temporal", f1=1.0),
        outcome("b", group="adversarial", f1=1.0, unanswerable=True),
    )
    assert found["abstention"] is None
    assert found["apart"]["questions"] == 1
    assert found["macro"]["weights"] == {"temporal": 1}


def test_no_runs_of_a_judge_agree_on_what_none_was_asked() -> None:
    found = arm(
        outcome("a", judged=(True, False), judge_input_tokens=50, judge_output_tokens=6),
        outcome("b", judged=(True, True), judge_input_tokens=40, judge_output_tokens=4),
        outcome("empty", judged=(False, False), text=" "),
        outcome("failed", judged=(False, False), text="", failed="no reply"),
        outcome("judge down", judged=(None, None), failed="judge: no reply"),
    )
    judge = found["all"]["judge"]
    assert (judge["replies"], judge["unusable"], judge["unjudged"]) == (4, 0, 1)
    assert judge["agreement"] == 0.5
    assert (judge["input_tokens"], judge["output_tokens"]) == (90, 10)
    # What nobody answered is wrong all the same.
    assert found["all"]["measures"]["judge"]["mean"] == pytest.approx(1 / 4)

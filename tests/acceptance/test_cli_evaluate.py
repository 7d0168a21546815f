"""`evaluate locomo` on a small conversation: a table to read, figures to keep."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cofire_process import Cofire

CONVERSATION = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I planted a plum tree today."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "In the yard, or by the river?"},
            {"speaker": "Ada", "dia_id": "D1:3", "text": "By the river, next to the boats."},
            {"speaker": "Ben", "dia_id": "D1:4", "text": "My sister repairs boats for a living."},
        ],
    },
    "qa": [
        {"question": "What did Ada plant?", "answer": "a plum tree", "category": 4,
         "evidence": ["D1:1"]},
        {"question": "Who repairs boats?", "answer": "Ben's sister", "category": 4,
         "evidence": ["D1:4"]},
    ],
}  # fmt: skip


@pytest.fixture
def locomo(cofire: Cofire) -> Cofire:
    (cofire.folder / "locomo.json").write_text(json.dumps([CONVERSATION]))
    return cofire


def test_a_table_and_a_file(locomo: Cofire) -> None:
    done = locomo.ok(
        "evaluate", "locomo", "locomo.json", "--profiles", "cofire,lexical", "--k", "1,2",
        "--json", "figures.json",
    )  # fmt: skip
    assert "2 questions" in done.out
    assert "lexical" in done.out
    assert "\x1b" not in done.out
    assert done.err == "Figures written to figures.json.\n"
    figures = json.loads((locomo.folder / "figures.json").read_text())
    assert figures["ks"] == [1, 2]
    assert {"cofire", "lexical", "cofire without dense"} <= set(figures["profiles"])
    assert [path.name for path in locomo.folder.glob(".*partial")] == []
    assert not locomo.store.exists(), "it works in a store of its own"


def test_json_alone(locomo: Cofire) -> None:
    done = locomo.ok("evaluate", "locomo", "locomo.json", "--profiles", "lexical", "--json", "-")
    assert done.err == ""
    assert done.json["questions"] == 2


@pytest.fixture
def two(cofire: Cofire) -> Cofire:
    """Two conversations, each with questions of every kind."""
    (cofire.folder / "locomo.json").write_text(json.dumps([talk("Ada", "Ben"), talk("Cyd", "Dov")]))
    return cofire


def talk(one: str, other: str) -> dict[str, Any]:
    """Two sessions of ten turns, questions that share evidence, and some without an answer."""
    things = ["plum tree", "canoe", "violin", "lantern", "kite"]
    conversation: dict[str, Any] = {"speaker_a": one, "speaker_b": other}
    for session, month in ((1, "May"), (2, "June")):
        conversation[f"session_{session}_date_time"] = f"1:56 pm on 8 {month}, 2023"
        conversation[f"session_{session}"] = [
            {
                "speaker": (one, other)[turn % 2],
                "dia_id": f"D{session}:{turn + 1}",
                "text": f"I bought a {things[turn % 5]} for {one} and {other}, number {turn}.",
            }
            for turn in range(10)
        ]
    questions = [
        {
            "question": f"What about the {thing} of {name}?",
            "answer": thing,
            "category": 1 + at % 4,
            "evidence": [f"D1:{at + 1}", f"D2:{at + 1}"][: 1 + at % 2],
        }
        for name in (one, other)
        for at, thing in enumerate(things)
    ]
    questions += [
        {"question": f"Why did {one} sell the boat?", "category": 5, "evidence": ["D1:1"],
         "adversarial_answer": "debts"},
        {"question": f"When did {other} marry?", "category": 5, "evidence": ["D1:2"],
         "adversarial_answer": "in May"},
    ]  # fmt: skip
    return {"sample_id": f"conv-{one}", "conversation": conversation, "qa": questions}


def test_the_gate_is_measured_where_something_has_no_answer(two: Cofire) -> None:
    done = two.ok(
        "evaluate", "locomo", "locomo.json", "--profiles", "cofire", "--no-ablations",
        "--json", "figures.json",
    )  # fmt: skip
    assert "does it know what it does not know?" in done.out
    assert "Fitted to all conversations: " in done.out
    gating = json.loads((two.folder / "figures.json").read_text())["gating"]["cofire"]
    assert (gating["answerable"], gating["category_5"], gating["other"]) == (20, 4, 20)
    assert list(gating["gates"]) == ["as shipped", "left out", "left out, who spoke unknown"]
    for gate in gating["gates"].values():
        assert 0.0 <= gate["auc_category_5"] <= 1.0
        assert 0.0 <= gate["calibration_error"] <= 1.0
        assert gate["risk_coverage"][-1] == {"coverage": 1.0, "risk": pytest.approx(0.5)}
        assert gate["at_bound"]["answerable"] <= 0.06


def test_learning_with_every_arm_and_sweep(two: Cofire) -> None:
    done = two.ok(
        "evaluate", "locomo", "locomo.json", "--learning", "--splits", "1", "--sweeps",
        "--json", "learning.json",
    )  # fmt: skip
    for heading in ("all: ", "no evidence shared: ", "earlier half, later half: ", "by category",
                    "questions learned from", "strength of a link", "constant"):  # fmt: skip
        assert heading in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    figures = json.loads((two.folder / "learning.json").read_text())
    arms = figures["arms"]
    assert {"frozen", "cofire", "shuffled", "popularity", "co-retrieval", "hela-mem",
            "cues-off", "links-off", "oracle"} <= set(arms)  # fmt: skip
    assert len({arm["subsets"]["all"]["tests"] for arm in arms.values()}) == 1
    assert all(arms["frozen"]["subsets"]["all"]["difference"][at]["mean"] == 0 for at in range(3))
    oracle = arms["oracle-all"]["subsets"]["all"]["difference"]
    assert all(one["mean"] >= 0.0 for one in oracle), "foreknowledge never harms"
    assert [point["share"] for point in figures["curve"]] == [0.0, 0.1, 0.25, 0.5, 0.75, 0.9]
    assert {one["profile"] for one in figures["sweeps"]} == {"cofire", "synapse"}
    assert sum(one["default"] for one in figures["sweeps"]) >= 6


def test_learning_with_chosen_arms_is_the_same_again(two: Cofire) -> None:
    asked = ("evaluate", "locomo", "locomo.json", "--learning", "--splits", "1",
             "--arms", "hela-mem,shuffled", "--json", "-")  # fmt: skip
    done = two.ok(*asked)
    assert list(done.json["arms"]) == ["frozen", "shuffled", "hela-mem-frozen", "hela-mem"]
    assert two.ok(*asked).json == done.json


def test_learning_on_top_of_a_weaker_recall(two: Cofire) -> None:
    done = two.ok("evaluate", "locomo", "locomo.json", "--learning", "--splits", "1",
                  "--arms", "popularity", "--ground", "fusion", "--json", "-")  # fmt: skip
    assert done.json["ground"] == "fusion"
    assert list(done.json["arms"]) == ["frozen", "popularity"]


def test_learning_options_that_do_not_fit(two: Cofire) -> None:
    evaluate = ("evaluate", "locomo", "locomo.json")
    assert two.run(*evaluate, "--splits", "3").code == 2
    assert two.run(*evaluate, "--sweeps").code == 2
    assert two.run(*evaluate, "--ground", "dense").code == 2
    assert two.run(*evaluate, "--learning", "--splits", "0").code == 2
    done = two.run(*evaluate, "--learning", "--arms", "nonsense")
    assert done.code == 2
    assert "co-retrieval" in done.err
    done = two.run(*evaluate, "--learning", "--ground", "nonsense")
    assert done.code == 2
    assert "fusion" in done.err
    assert two.run("evaluate", "locomo", "missing.json", "--learning").code == 3


def test_what_goes_wrong(locomo: Cofire) -> None:
    assert locomo.run("evaluate", "locomo", "missing.json").code == 3
    assert locomo.run("evaluate", "locomo", "locomo.json", "--profiles", "none").code == 2
    (locomo.folder / "odd.json").write_text("not JSON")
    assert locomo.run("evaluate", "locomo", "odd.json").code == 1


def test_the_verifier_is_measured_on_its_own_records(cofire: Cofire) -> None:
    done = cofire.ok("evaluate", "verifier", "--json", "figures.json")
    assert "held out" in done.out
    figures = json.loads((cofire.folder / "figures.json").read_text())
    assert [row["part"] for row in figures["scores"]] == ["develop", "held out"]
    assert len(figures["records"]) == sum(row["records"] for row in figures["counts"])
    alone = cofire.ok("evaluate", "verifier", "--json", "-")
    assert alone.json == figures
    assert not cofire.store.exists()

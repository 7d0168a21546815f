"""Significance against worked examples, and results set against each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofire.errors import FormatError, InputError, NotFoundError
from cofire.evaluation.qa.comparing import (
    Result,
    compare,
    read_result,
    result_from,
    sides_of,
)
from cofire.evaluation.qa.comparing_report import render_comparison
from cofire.evaluation.qa.labels import labelled
from cofire.evaluation.qa.outcomes import Outcome
from cofire.evaluation.qa.significance import holm, mcnemar, sign_flips
from outcomes_of_runs import outcome, result


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [
        (0, 0, 1.0), (1, 0, 1.0), (5, 5, 1.0), (6, 1, 16 / 128), (1, 6, 16 / 128),
        (10, 2, 158 / 4096), (8, 0, 2 / 256), (3000, 2000, 0.0),
    ],
)  # fmt: skip
def test_mcnemar(gained: int, lost: int, p: float) -> None:
    assert mcnemar(gained, lost) == pytest.approx(p, abs=1e-12)


def test_mcnemar_of_less_than_nothing() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar(-1, 2)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([], 1.0), ([0.0, 0.0], 1.0), ([1.0], 1.0), ([1.0, 1.0, 1.0], 2 / 8),
        ([0.5, 0.3, -0.2], 4 / 8), ([0.0, 0.1, 0.2, 0.3], 2 / 8),  # rounding must not matter
    ],
)  # fmt: skip
def test_sign_flips(differences: list[float], p: float) -> None:
    assert sign_flips(np.array(differences)) == pytest.approx(p)


def test_many_sign_flips_are_drawn() -> None:
    rng = np.random.default_rng(3)
    assert sign_flips(rng.normal(1.0, 1.0, 200)) == pytest.approx(1 / 10_001)
    null = [sign_flips(rng.normal(0.0, 1.0, 40), flips=500) for _ in range(60)]
    assert 0.35 < float(np.mean(null)) < 0.65, "uniform if there is no difference"
    differences = rng.normal(0.2, 1.0, 60)
    assert sign_flips(differences) == sign_flips(differences)
    # Near the normal approximation: z = sum / sqrt(sum of squares).
    z = abs(differences.sum()) / np.sqrt((differences**2).sum())
    from math import erfc, sqrt

    assert sign_flips(differences) == pytest.approx(erfc(z / sqrt(2)), abs=0.03)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def made(*outcomes: Outcome, name: str = "a.json", **values: Any) -> Result:
    given = {
        "benchmark": "locomo", "key": "corrected", "model": "openai:a", "judge": "openai:j",
        "cofire": "1", **values,
    }  # fmt: skip
    return Result(name=name, outcomes=outcomes, **given)


def answers(verdicts: str, **values: Any) -> tuple[Outcome, ...]:
    """One outcome per letter, right where it is "+"."""
    return tuple(
        outcome(f"q{at}", judged=(letter == "+",), f1=float(letter == "+"), **values)
        for at, letter in enumerate(verdicts)
    )


def test_pairs_and_their_tests() -> None:
    one = made(*answers("+----++--"), outcome("alone", f1=1.0))
    two = made(*answers("++++++++-"), name="b.json")
    (found,) = compare(sides_of([one, two]))["comparisons"]
    assert (found["pairs"], found["questions"]) == (9, 9)
    assert (found["only_a"], found["only_b"]) == (1, 0)
    judge = found["measures"]["judge"]
    assert (judge["gained"], judge["lost"], judge["n"]) == (5, 0, 9)
    assert judge["p"] == judge["p_holm"] == pytest.approx(2 / 32)
    assert judge["difference"]["mean"] == pytest.approx(5 / 9)
    assert judge["difference"]["low"] > 0.0
    f1 = found["measures"]["f1"]
    assert (f1["test"], f1["p"]) == ("sign flips", pytest.approx(2 / 32))
    assert (f1["a"], f1["b"]) == (pytest.approx(3 / 9), pytest.approx(8 / 9))
    assert found["measures"]["right"] is None
    assert found["warnings"] == []


def test_seeds_of_a_question_are_no_further_evidence() -> None:
    def seeds(verdicts: str) -> tuple[Outcome, ...]:
        return tuple(one for seed in range(5) for one in answers(verdicts, seed=seed))

    once = compare(sides_of([made(*answers("----+")), made(*answers("+++++"))]))
    often = compare(sides_of([made(*seeds("----+")), made(*seeds("+++++"))]))
    a, b = (one["comparisons"][0]["measures"] for one in (once, often))
    for name in ("judge", "f1"):
        assert a[name]["p"] == b[name]["p"] == pytest.approx(2 / 16)
        assert a[name]["difference"] == pytest.approx(b[name]["difference"])
    assert (b["judge"]["n"], b["judge"]["questions"]) == (25, 5)


def test_a_question_that_each_side_has_right_once_is_no_difference() -> None:
    one = made(outcome("a", judged=(True,)), outcome("a", judged=(False,), seed=1))
    two = made(outcome("a", judged=(False,)), outcome("a", judged=(True,), seed=1))
    judge = compare(sides_of([one, two]))["comparisons"][0]["measures"]["judge"]
    assert (judge["gained"], judge["lost"], judge["p"]) == (0, 0, 1.0)


def test_several_comparisons_are_corrected() -> None:
    arms = [
        one for name in "xyz" for one in answers("+-----" if name == "x" else "++++++", arm=name)
    ]
    found = compare(sides_of([made(*arms)]))
    assert found["holm"]["judge"] == 2
    for one in found["comparisons"]:
        assert one["a"]["arm"] == "x"
        assert one["measures"]["judge"]["p"] == pytest.approx(2 / 32)
        assert one["measures"]["judge"]["p_holm"] == pytest.approx(4 / 32)


def test_which_arms_meet() -> None:
    def arms(*names: str) -> Result:
        return made(*(outcome("q", arm=name) for name in names), name="+".join(names))

    def met(*results: Result, baseline: str | None = None) -> list[tuple[str, str]]:
        return [(a.arm, b.arm) for a, b in sides_of(results, baseline)]

    assert met(arms("x", "y", "z")) == [("x", "y"), ("x", "z")]
    assert met(arms("x", "y"), baseline="y") == [("y", "x")]
    assert met(arms("x", "y"), arms("y", "z")) == [("y", "y")]
    assert met(arms("x"), arms("z")) == [("x", "z")]
    assert met(arms("x", "y"), arms("y", "z"), baseline="x") == [("x", "y"), ("x", "z")]
    for lonely in ([arms("x")], [arms("x", "y"), arms("z")], []):
        with pytest.raises(InputError):
            sides_of(lonely)
    with pytest.raises(InputError, match="no arm"):
        sides_of([arms("x", "y")], "q")


def bounded(*names: str) -> Result:
    return made(*(outcome("q", arm=name) for name in names))


def test_arms_meet_at_the_same_bound() -> None:
    def met(*names: str, baseline: str | None = None) -> list[tuple[str, str]]:
        return [(a.arm, b.arm) for a, b in sides_of([bounded(*names)], baseline)]

    names = ("cofire @500", "cofire @1000", "cofire k=5", "dense @500", "dense @1000", "dense k=5")
    assert met(*names, "full context") == [
        ("cofire @500", "dense @500"), ("cofire @1000", "dense @1000"),
        ("cofire @1000", "full context"), ("cofire k=5", "dense k=5"),
    ]  # fmt: skip
    assert met(*names, baseline="dense @500") == [("dense @500", "cofire @500")]
    assert met(*names, baseline="dense")[0] == ("dense @500", "cofire @500")
    assert len(met(*names, "full context", baseline="full context")) == len(names)
    assert met("cofire @500", "cofire @1000") == [("cofire @500", "cofire @1000")]
    assert met("cofire @500", "dense @1000") == [("cofire @500", "dense @1000")]


def test_identical_answers_are_said_to_be_and_do_not_count() -> None:
    verdicts = {"x": "+-----", "y": "+-----", "z": "++++++"}
    asked = [one for arm, said in verdicts.items() for one in answers(said, arm=arm)]
    figures = compare(sides_of([made(*asked)]))
    same, other = figures["comparisons"]
    assert (same["identical"], other["identical"]) == (True, False)
    assert figures["holm"]["judge"] == 1
    assert same["measures"]["judge"]["p_holm"] == 1.0
    assert other["measures"]["judge"]["p_holm"] == other["measures"]["judge"]["p"]
    text = render_comparison(figures)
    assert "\nidentical: y\n" in text
    assert "Refused falsely, of questions with one: identical in every comparison (2)." in text


def test_what_is_scored_apart_counts_in_refusals_alone() -> None:
    def asked(f1: float, *, refused: bool) -> tuple[Outcome, ...]:
        apart = outcome(
            "x", group="adversarial", unanswerable=True, gold=None, f1=f1, abstained=refused
        )
        return (outcome("q", f1=0.5), apart)

    sides = [made(*asked(f1, refused=f1 > 0), apart=frozenset({"adversarial"})) for f1 in (0, 1)]
    (found,) = compare(sides_of(sides))["comparisons"]
    assert (found["measures"]["f1"]["n"], found["measures"]["f1"]["identical"]) == (1, True)
    assert found["measures"]["refused"]["difference"]["mean"] == 1.0


def test_ablations_stand_under_what_they_are_of() -> None:
    names = ("cofire @500", "dense @500", "cofire without gate @500", "dense without gate @500")
    assert labelled(names) == {
        "cofire @500": "cofire @500", "cofire without gate @500": "  – gate @500",
        "dense @500": "dense @500", "dense without gate @500": "dense without gate @500",
    }  # fmt: skip
    assert labelled(["cofire without gate @500"]) == {
        "cofire without gate @500": "cofire without gate @500"
    }
    assert len(set(labelled(names).values())) == len(names)


@pytest.mark.parametrize("unlike", [{"key": "published"}, {"benchmark": "longmemeval"}])
def test_what_was_not_asked_the_same_is_refused(unlike: dict[str, str]) -> None:
    with pytest.raises(InputError, match="cannot be compared"):
        compare(sides_of([made(*answers("+")), made(*answers("+"), **unlike)]))


def test_other_gold_answers_are_refused() -> None:
    with pytest.raises(InputError, match="1 of their questions differ"):
        compare(sides_of([made(outcome("q")), made(outcome("q", gold="other"))]))


def test_other_settings_are_warned_of() -> None:
    one = {"prompts": {"short@1": "aa"}, "temperature": 0.0, "window": 100}
    other = {"prompts": {"short@1": "bb"}, "temperature": 1.0, "source": "x.json"}
    given = [result(outcome("q", f1=1.0), settings=settings) for settings in (one, other)]
    sides = sides_of([result_from(each, "a.json") for each in given])
    (found,) = compare(sides)["comparisons"]
    assert found["warnings"] == ["questions were asked under other settings: prompts, temperature"]


def test_other_models_are_warned_of() -> None:
    other = made(*answers("+-"), model="openai:b", judge="openai:k", cofire="2")
    found = compare(sides_of([made(*answers("++")), other]))
    warnings = found["comparisons"][0]["warnings"]
    assert len(warnings) == 3
    assert "openai:a and openai:b" in warnings[0]
    assert render_comparison(found).count("WARNING: ") == 3


def test_tables_are_narrow_and_name_the_groups() -> None:
    one = made(*answers("+-+-", group="temporal"), outcome("s", f1=0.5))
    two = made(*answers("++++", group="temporal"), outcome("s", f1=0.25), name="b.json")
    figures = compare(sides_of([one, two]))
    assert "temporal" not in render_comparison(figures)
    text = render_comparison(figures, groups=True)
    assert "  temporal " in text
    assert "  single-hop " in text
    assert max(map(len, text.splitlines())) <= 100


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(result(outcome("q"), outcome("q", text="later"), judge=None)))
    found = read_result(file)
    assert (found.name, found.judge) == ("a.json", "none")
    assert [one.text for one in found.outcomes] == ["later"]
    with pytest.raises(NotFoundError):
        read_result(tmp_path / "b.json")
    for broken in ("{", "[]", "{}", json.dumps({"benchmark": "x", "key": "y", "outcomes": [1]})):
        file.write_text(broken)
        with pytest.raises(FormatError):
            read_result(file)

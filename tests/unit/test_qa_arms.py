"""Columns of the tables: their names, bounds and what each ablation leaves out."""

from __future__ import annotations

import pytest

from cofire.consolidation.steps import STEPS
from cofire.errors import InputError
from cofire.evaluation.qa.arms import (
    ABLATIONS,
    FORGETTING_STEPS,
    FULL,
    KEEPING_STEPS,
    arm_named,
    arms_for,
)
from cofire.retrieval.profiles import AWAKE, COFIRE, PROFILES


def test_every_profile_is_an_arm() -> None:
    arms = arms_for(tuple(PROFILES))
    assert [arm.name for arm in arms] == [f"{name} @1000" for name in PROFILES]
    assert all(arm.tokens == 1000 and arm.gate and not arm.learn for arm in arms)


def test_bounds_multiply_arms() -> None:
    arms = arms_for(("cofire", "dense"), tokens=(500, 1000), ks=(5,))
    assert [arm.name for arm in arms] == [
        "cofire @500", "cofire @1000", "cofire k=5", "dense @500", "dense @1000", "dense k=5",
    ]  # fmt: skip
    assert [(arm.tokens, arm.k) for arm in arms[:3]] == [(500, 60), (1000, 60), (None, 5)]
    assert {arm.base for arm in arms} == {"cofire", "dense"}
    assert [arm.bounded for arm in arms[1:3]] == ["1,000 tokens", "5 memories"]


def test_ablations_are_those_of_the_issue_and_each_changes_the_arm() -> None:
    whole = arm_named("cofire", learn=True)
    arms = {arm.base: arm for arm in arms_for(("cofire",), ablations=True, learn=True)}
    assert list(arms) == [
        "cofire", *(f"cofire without {name}" for name in ABLATIONS), "vectors only", FULL,
    ]  # fmt: skip
    changed = [ABLATIONS[name][1](whole) for name in ABLATIONS]
    assert len({repr(arm) for arm in (whole, *changed)}) == len(ABLATIONS) + 1
    assert not arms["cofire without learning"].learn
    assert not arms["cofire without gate"].gate
    assert not arms["cofire without forgetting"].forgetting
    assert arms["cofire without consolidation"].profile == AWAKE
    assert not arms["cofire without consolidation"].slept
    assert arms["cofire without semantic nodes"].semantic == 0
    assert not arms["cofire without temporal links"].profile.window
    assert arms["cofire without temporal links"].profile.uses("spread_coverage", "concepts")
    assert not arms["cofire without spreading"].profile.uses("concepts", "similarity_after")
    assert arms[FULL].full
    assert arms[FULL].name == FULL


def test_an_arm_of_a_memory_that_never_slept_has_the_weights_for_that() -> None:
    assert arm_named("cofire", slept=True).profile == COFIRE
    assert arm_named("cofire", slept=False).profile == AWAKE


def test_left_out_constants_are_a_column_beside() -> None:
    arms = arms_for(("cofire", "dense"), left_out=True, tokens=(1000,))
    assert [arm.name for arm in arms] == [
        "cofire @1000", "dense @1000", "cofire (left out) @1000",
    ]  # fmt: skip
    assert arms[-1].left_out


@pytest.mark.parametrize("name", ["nobody", "cofire without luck", ""])
def test_a_name_that_is_none_says_which_there_are(name: str) -> None:
    with pytest.raises(InputError, match="use one of"):
        arm_named(name)


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(InputError, match="name a profile"):
        arms_for(())


def test_steps_of_forgetting_are_steps() -> None:
    names = {step.name for step in STEPS}
    assert names >= FORGETTING_STEPS
    assert set(KEEPING_STEPS) == names - FORGETTING_STEPS

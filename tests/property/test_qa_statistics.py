"""Invariants of figures, comparisons and verdicts, whatever the outcomes."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.evaluation.qa.agreement import cohen_kappa, fleiss_kappa
from cofire.evaluation.qa.comparing import Result, Side, compare
from cofire.evaluation.qa.figures import figures_of, percent
from cofire.evaluation.qa.outcomes import Outcome
from cofire.evaluation.qa.significance import holm, mcnemar, sign_flips
from cofire.evaluation.qa.verdicts import read_verdict
from cofire.models.generator import FINISHES
from outcomes_of_runs import Data, outcome

shares = st.floats(0.0, 1.0)
verdicts = st.lists(st.sampled_from([True, False, None]), max_size=3).map(tuple)
DATA = Data(counts={"x": 3, "y": 100, "z": 7, "apart": 50}, scored_apart=frozenset({"apart"}))


@st.composite
def outcomes(draw: st.DrawFn) -> list[Outcome]:
    """Some questions of some groups under up to three seeds, not all under each."""
    found: dict[tuple[str, int], Outcome] = {}
    for _ in range(draw(st.integers(1, 25))):
        task, seed = f"q{draw(st.integers(0, 9))}", draw(st.integers(0, 2))
        found[task, seed] = outcome(
            task, seed=seed, group="xyz"[int(task[1:]) % 3] if task != "q9" else "apart",
            f1=draw(st.none() | shares), judged=draw(verdicts),
            right=draw(st.none() | st.booleans()), abstained=draw(st.booleans()),
            unanswerable=task in {"q1", "q9"},
            confidence=draw(st.none() | shares), failed=draw(st.sampled_from(["", "", "503"])),
        )  # fmt: skip
    return list(found.values())


@settings(max_examples=30, deadline=None)
@given(outcomes())
def test_intervals_hold_their_mean_and_averages_lie_between_their_groups(
    asked: list[Outcome],
) -> None:
    arm = figures_of(asked, DATA, rounds=50)["arms"]["cofire"]
    json.dumps(arm, allow_nan=False)
    for block in (arm["all"], arm["apart"], *arm["groups"].values()):
        for measure in (block or {"measures": {}})["measures"].values():
            if measure is not None:
                assert 0.0 <= measure["low"] <= measure["mean"] <= measure["high"] <= 1.0 + 1e-9
    weighted = arm["weighted"]
    for name, measure in (weighted or {"measures": {}})["measures"].items():
        if measure is not None:
            means = [
                arm["groups"][group]["measures"][name]["mean"] for group in weighted["weights"]
            ]
            assert min(means) - 1e-9 <= measure["mean"] <= max(means) + 1e-9
            assert measure["low"] <= measure["mean"] <= measure["high"]
    curve = arm["refusals"]["curve"] or []
    for one, two in pairwise(curve):
        assert one["unanswerable"] <= two["unanswerable"]
        assert one["answerable"] <= two["answerable"]


@settings(max_examples=30, deadline=None)
@given(outcomes(), outcomes())
def test_pairing_is_symmetric(one: list[Outcome], two: list[Outcome]) -> None:
    sides = [
        Side(
            result=Result(
                name=name, benchmark="b", key="k", model="m", judge="j", cofire="1",
                outcomes=tuple(asked),
            ),
            arm="cofire", outcomes=tuple(asked),
        )
        for name, asked in (("a", one), ("b", two))
    ]  # fmt: skip
    there, back = (
        compare([pair], rounds=50)["comparisons"][0]
        for pair in ((sides[0], sides[1]), (sides[1], sides[0]))
    )
    assert (there["pairs"], there["only_a"], there["only_b"]) == (
        back["pairs"], back["only_b"], back["only_a"],
    )  # fmt: skip
    for name, measure in there["measures"].items():
        other = back["measures"][name]
        if measure is None:
            assert other is None
            continue
        assert measure["difference"]["mean"] == pytest.approx(-other["difference"]["mean"])
        assert measure["difference"]["low"] == pytest.approx(-other["difference"]["high"])
        assert measure["p"] == pytest.approx(other["p"])
        assert 0.0 < measure["p"] <= measure["p_holm"] <= 1.0


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_a_p(gained: int, lost: int) -> None:
    p = mcnemar(gained, lost)
    assert p == mcnemar(lost, gained)
    assert 0.0 <= p <= 1.0
    assert mcnemar(gained + 1, lost) <= p + 1e-12 or gained < lost


@given(st.lists(st.integers(-3, 3), max_size=8))
def test_flips_do_not_depend_on_order_sign_or_scale(differences: list[int]) -> None:
    values = np.array(differences, np.float64)
    p = sign_flips(values)
    assert 0.0 < p <= 1.0
    for other in (values[::-1], -values, values * 0.1):
        assert sign_flips(other) == pytest.approx(p)


@given(st.lists(shares, max_size=8))
def test_holm_is_monotone_and_never_smaller(values: list[float]) -> None:
    adjusted = holm(values)
    pairs = sorted(zip(values, adjusted, strict=True))
    assert all(p <= q <= 1.0 for p, q in pairs)
    assert [q for _, q in pairs] == sorted(adjusted)


@given(st.lists(st.lists(st.booleans(), min_size=2, max_size=2), max_size=12))
def test_kappas_are_bounded(rows: list[list[bool]]) -> None:
    fleiss = fleiss_kappa(rows)
    cohen = cohen_kappa([row[0] for row in rows], [row[1] for row in rows])
    for kappa in (fleiss, cohen):
        assert kappa is None or -1.0 - 1e-9 <= kappa <= 1.0 + 1e-9


@given(shares, st.integers(1, 3000))
def test_percentages_are_all_or_nothing_only_if_they_are(share: float, questions: int) -> None:
    text = percent(share, questions)
    assert (text in {"100", "100.0"}) == (share == 1.0)
    assert (text in {"0", "0.0"}) == (share == 0.0)


pieces = st.sampled_from(
    ['{"why": "', '", "right": ', "true", "false", "}", "{", "[", "]", "```json\n", "```",
     "<think>", "</think>", "yes", "No. ", "\n", "right: ", "Verdict: ", '"', "\\", "not ",
     "\ud83d"]
)  # fmt: skip


@given(
    st.one_of(st.text(max_size=60), st.lists(pieces, max_size=20).map("".join)),
    st.sampled_from(FINISHES),
)
def test_no_reply_raises(text: str, finish: str) -> None:
    verdict = read_verdict(text, finish)  # type: ignore[arg-type]
    assert (verdict.right is None) == bool(verdict.unusable)
    verdict.why.encode()

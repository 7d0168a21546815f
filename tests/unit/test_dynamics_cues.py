"""How well past questions match, and what they pass on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.dynamics.cues import CueRule, cue_match, strongest

RULE = CueRule()
cosines = st.lists(st.floats(-1.0, 1.0), max_size=40).map(np.array)


def test_a_first_cue_counts_only_where_it_is_much_like_the_question() -> None:
    assert cue_match(np.array([0.95]), RULE)[0] > 0.5
    assert cue_match(np.array([0.45]), RULE)[0] < 0.2
    assert cue_match(np.array([0.2]), RULE)[0] < 0.01


def test_the_nearest_of_many_alike_stands_out_no_more_than_it_does() -> None:
    crowd = np.full(40, 0.5)
    alike = cue_match(np.append(crowd, 0.55), RULE)
    apart = cue_match(np.append(crowd - 0.3, 0.55), RULE)
    assert alike[-1] < 0.1
    assert apart[-1] > 0.5


def test_two_equal_cues_share() -> None:
    match = cue_match(np.array([0.9, 0.9, 0.1, 0.1, 0.1]), RULE)
    assert match[0] == match[1]
    assert 0.05 < match[0] < 0.5


def test_nothing_matches_nothing() -> None:
    assert len(cue_match(np.empty(0), RULE)) == 0


@given(cosines)
def test_matches_are_shares_in_the_order_of_the_cosines(similarity: np.ndarray) -> None:
    match = cue_match(similarity.astype(np.float64), RULE)
    assert np.isfinite(match).all()
    assert (match >= 0.0).all()
    assert match.sum() <= 1.0 + 1e-12
    order = np.argsort(similarity, kind="stable")
    assert (np.diff(match[order]) >= -1e-12).all()


@given(cosines, st.randoms(use_true_random=False))
def test_the_order_of_cues_does_not_matter(similarity: np.ndarray, rng: object) -> None:
    order = np.random.default_rng(len(similarity)).permutation(len(similarity))
    one = cue_match(similarity.astype(np.float64), RULE)[order]
    other = cue_match(similarity[order].astype(np.float64), RULE)
    assert one == pytest.approx(other, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0.0, 1.0)), max_size=30))
def test_the_strongest_way_counts_and_never_the_sum(arrivals: list[tuple[int, float]]) -> None:
    targets = np.array([target for target, _ in arrivals], np.int64)
    amounts = np.array([amount for _, amount in arrivals], np.float64)
    found, best, index = strongest(targets, amounts)
    assert found.tolist() == sorted(set(targets.tolist()))
    for target, amount, place in zip(found, best, index, strict=True):
        assert amount == amounts[targets == target].max() == amounts[place]
        assert targets[place] == target


@pytest.mark.parametrize(
    "wrong",
    [{"steepness": 0.0}, {"spread": 0.0}, {"threshold": float("nan")}, {"pseudo": -1.0},
     {"least": 1.0}],
)  # fmt: skip
def test_constants_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        CueRule(**wrong)

"""The retrieval measures of LongMemEval, worked out by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.evaluation.qa.retrieval import (
    Measure,
    Retrieval,
    Retrieved,
    measures_by_level,
    measures_of,
    ndcg_at,
)
from cofire.evaluation.qa.retrieval_report import render_retrieval, retrieval_figures
from cofire.evaluation.qa.tasks import Task
from cofire.interchange.report import ImportReport
from cofire.types import Message


@pytest.mark.parametrize(
    ("ranked", "evidence", "k", "expected"),
    [
        ("abc", "a", 1, 1.0),
        ("bac", "a", 2, 1.0),  # the first two places count the same
        ("bac", "a", 1, 0.0),
        ("bca", "a", 3, 1 / math.log2(3)),
        ("abc", "ac", 3, (1 + 1 / math.log2(3)) / 2),
        ("bcda", "ae", 4, (1 / math.log2(4)) / 2),
        ("ab", "abcd", 2, 1.0),  # nothing better is possible with two
        ("", "a", 5, 0.0),
        ("ab", "", 5, 0.0),
    ],
)
def test_ndcg(ranked: str, evidence: str, k: int, expected: float) -> None:
    assert ndcg_at(list(ranked), list(evidence), k) == pytest.approx(expected)


@given(st.permutations("abcdefgh"), st.sets(st.sampled_from("abcdefgh"), min_size=1))
def test_measures_grow_with_k_and_agree_with_each_other(
    ranked: list[str], evidence: set[str]
) -> None:
    measures = measures_of(ranked, sorted(evidence), range(1, 9))
    for one, more in pairwise(measures):
        assert one.share <= more.share
        assert one.any <= more.any
        assert one.all <= more.all
    for one in measures:
        assert 0.0 <= one.ndcg <= 1.0 + 1e-9
        assert one.all <= one.share <= one.any
        assert (one.ndcg > 0) == (one.any > 0)
    assert measures[-1].all == 1.0


def message(key: str, session: str, role: str) -> Message:
    return Message(content=key, role=role, session=session, key=key)


U1, A1 = message("u1", "s1", "user"), message("a1", "s1", "assistant")
U2, A2 = message("u2", "s2", "user"), message("a2", "s2", "assistant")
TURNS = {str(one.key): one for one in (U1, A1, U2, A2)}


def task(*evidence: str, sessions: tuple[str, ...] = ()) -> Task:
    return Task(
        id="q", material="q", group="g", question="?", answer="!",
        evidence=evidence, evidence_sessions=sessions,
    )  # fmt: skip


def test_user_levels_rank_only_what_the_user_said() -> None:
    found = measures_by_level([A2, A1, U2, U1], task("u1", "a1", sessions=("s1",)), TURNS, (1, 2))
    assert [one.all for one in found["user turns"]] == [0.0, 1.0]
    assert [one.all for one in found["user sessions"]] == [0.0, 1.0]
    assert [one.share for one in found["turns"]] == [0.0, 0.5]
    assert [one.any for one in found["turns"]] == [0.0, 1.0]
    assert [one.all for one in found["sessions"]] == [0.0, 1.0]


def test_levels_without_anything_to_find_are_missing() -> None:
    assert set(measures_by_level([A1], task("a1"), TURNS, (1,))) == {"turns"}
    found = measures_by_level([A1], task(sessions=("s1",)), TURNS, (1,))
    assert set(found) == {"sessions"}
    assert found["sessions"][0].all == 1.0


def retrieved(profile: str, group: str, share: float) -> Retrieved:
    measure = Measure(share=share, any=1.0, all=float(share == 1), ndcg=0.5)
    return Retrieved(
        task=group, group=group, profile=profile, measures={"turns": (measure,)},
        ranks=(1, None), milliseconds=2.0,
    )  # fmt: skip


def test_report() -> None:
    result = Retrieval(
        source="folder/data.json", ks=(10,), profiles=("cofire",), slept=False, jobs=2,
        retrieved=[retrieved("cofire", "b", 1.0), retrieved("cofire", "a", 0.5)],
        questions=3, turns=1234, seconds=8.0, report=ImportReport(source="data.json"),
    )  # fmt: skip
    result.left_out["abstention"] += 1
    rows = result.rows("cofire", "turns")
    assert list(rows) == ["a", "b", "all"]
    assert (rows["all"].questions, rows["all"].share, rows["all"].all) == (2, (75.0,), (50.0,))
    assert result.rows("cofire", "user turns") == {}
    text = render_retrieval(result)
    assert "Left out: 1 abstention." in text
    assert "no question has evidence at this level" in text
    assert "4.0 s a question" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    figures = retrieval_figures(result)
    assert figures["source"] == "data.json"
    assert figures["profiles"]["cofire"]["levels"]["turns"]["all"]["questions"] == 2
    assert figures["profiles"]["cofire"]["questions"][0]["ranks"] == [1, None]

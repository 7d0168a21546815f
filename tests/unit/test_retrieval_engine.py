"""Recall as a whole, on small memories with made-up vectors: order, filters, packing, traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofire import views
from cofire.memory import Memory
from cofire.models.hashing import HashingEmbedder
from cofire.retrieval import ranking
from cofire.retrieval.candidates import Scored, Searched
from cofire.retrieval.features import TERMS
from cofire.retrieval.profiles import AWAKE, COFIRE, LEXICAL, PROFILES, Profile, asked_of
from cofire.retrieval.question import Asked
from cofire.store import Store
from cofire.store.records import ItemRow, SpaceInfo
from cofire.types import Message, Recall
from fakes import FailingEmbedder, StubEmbedder

START = datetime(2024, 1, 1, 9, tzinfo=UTC)
NOW = START + timedelta(days=30)
WORDS = "kiln glaze Bremen ferry Ines pottery lamp cue sister theatre".split()


def turns(count: int) -> list[Message]:
    return [
        Message(
            content=f"I saw the {WORDS[n % 10]} and the {WORDS[(n * 3 + n // 7) % 10]}, turn {n}.",
            speaker=("Nora", "Juno")[n % 2],
            session=f"day {n // 8}",
            time=START + timedelta(hours=n),
            tags=("even",) if n % 2 == 0 else (),
            metadata={"third": n % 3},
        )
        for n in range(count)
    ]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", embedder=HashingEmbedder(64)) as opened:
        opened.remember(turns(60))
        yield opened


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_the_terms_of_a_trace_add_up_to_the_score(memory: Memory, profile: str) -> None:
    for query in ("What did Nora say about the kiln?", "When was the ferry in Bremen?", "lamp"):
        recall = memory.recall(query, 20, profile=profile, now=NOW, explain=True)
        assert recall.trace is not None
        assert [one.id for one in recall.trace.items] == list(recall.ids)
        for item, hit in zip(recall.trace.items, recall, strict=True):
            assert sum(term.contribution for term in item.terms) == pytest.approx(
                hit.score, abs=1e-6
            )
            for term in item.terms:
                assert term.contribution == pytest.approx(term.weight * term.value)


def test_paths_end_at_the_memory_and_start_elsewhere(memory: Memory) -> None:
    recall = memory.recall("the kiln of Ines", 20, now=NOW, explain=True)
    assert recall.trace is not None
    paths = [(item, path) for item in recall.trace.items for path in item.paths]
    assert paths
    for item, path in paths:
        assert path.via[-1] == item.id
        assert item.id not in path.via[:-1]
        assert path.activation > 0.0
        assert path.type in {"temporal", "concept"}


def test_scores_fall_and_a_larger_k_continues_the_smaller(memory: Memory) -> None:
    large = memory.recall("kiln and glaze", 30, now=NOW)
    scores = [hit.score for hit in large]
    assert scores == sorted(scores, reverse=True)
    for k in (1, 2, 7, 29):
        assert memory.recall("kiln and glaze", k, now=NOW).ids == large.ids[:k]


def test_equal_scores_go_by_id(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder=StubEmbedder()) as memory:
        receipt = memory.remember(["the same words"] * 12)
        recall = memory.recall("the same words", 12, profile="dense")
        assert len({hit.score for hit in recall}) == 1
        assert list(recall.ids) == sorted(receipt.ids)


def test_two_spaces_are_ranked_on_one_scale(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory.open(path, embedder=HashingEmbedder(64), projects=["p"]) as memory:
        memory.remember("The kiln is hot.")
        memory.remember("The kiln is hot.", project="p")
        memory.remember("A lamp.", project="p")
        recall = memory.recall("kiln", 3, profile="lexical")
        best = list(recall)[:2]
        assert [hit.content for hit in best] == ["The kiln is hot."] * 2
        assert {hit.item.space.project for hit in best} == {None, "p"}
        assert max(hit.score for hit in recall) == 1.0  # divided by the best of all spaces


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"speakers": "Nora"}, lambda n: n % 2 == 0),
        ({"sessions": ["day 1", "day 3"]}, lambda n: n // 8 in {1, 3}),
        ({"tags": "even"}, lambda n: n % 2 == 0),
        ({"metadata": {"third": 2}}, lambda n: n % 3 == 2),
        ({"since": START + timedelta(hours=20)}, lambda n: n >= 20),
        ({"until": START + timedelta(hours=20)}, lambda n: n < 20),
        ({"speakers": "Juno", "sessions": "day 2"}, lambda n: n % 2 and n // 8 == 2),
        ({"kinds": "fact"}, lambda n: False),
        ({"speakers": "nobody"}, lambda n: False),
    ],
)
def test_filters_decide_what_may_rank(
    memory: Memory, given: dict[str, Any], kept: Callable[[int], bool]
) -> None:
    allowed = {turn.content for n, turn in enumerate(turns(60)) if kept(n)}
    recall = memory.recall("kiln glaze Bremen ferry lamp", 60, profile=without_cutoff(), **given)
    found = {hit.content for hit in recall}
    assert found <= allowed
    if allowed:
        assert found


def without_cutoff() -> Profile:
    return Profile(name="all", weights=COFIRE.weights)


def test_what_expires_is_left_out_from_then_on(memory: Memory) -> None:
    memory.remember("The kiln code is 4711.", expires=NOW)
    before, after = (
        memory.recall("kiln code", 5, now=moment) for moment in (NOW - timedelta(seconds=1), NOW)
    )
    assert before[0].content == "The kiln code is 4711."
    assert "The kiln code is 4711." not in {hit.content for hit in after}


MARKS = 19
"""Wordpieces that a budget sets aside for the marks around a rendering."""


def test_a_budget_packs_whole_memories_in_order(memory: Memory) -> None:
    whole = memory.recall("kiln and glaze", 30, now=NOW)
    costs = [memory.count_tokens(hit.content) + memory.count_tokens(hit.header) for hit in whole]
    budget = MARKS + sum(costs[:4]) + costs[4] - 1
    packed = memory.recall("kiln and glaze", 30, now=NOW, token_budget=budget)
    assert packed.ids[:4] == whole.ids[:4]
    assert packed.tokens <= budget
    assert memory.recall("kiln", 30, now=NOW, token_budget=1).ids == ()


def test_a_shorter_memory_further_down_may_still_fit(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder=HashingEmbedder(64)) as memory:
        memory.remember(["kiln kiln " + "and so on " * 30, "kiln once"])
        first = memory.recall("kiln", 2, profile="lexical")
        assert len(first) == 2
        packed = memory.recall("kiln", 2, profile="lexical", token_budget=MARKS + 20)
        assert [hit.content for hit in packed] == ["kiln once"]


def test_a_cutoff_leaves_at_least_ten(memory: Memory) -> None:
    strict = Profile(name="strict", weights=COFIRE.weights, cutoff=0.0)
    recall = memory.recall("kiln and glaze", 30, profile=strict, now=NOW)
    assert recall.ids == memory.recall("kiln and glaze", 10, profile=strict, now=NOW).ids
    assert len(recall) == 10
    wide = Profile(name="wide", weights=COFIRE.weights, cutoff=2.0)
    best = memory.recall("kiln and glaze", 30, profile=without_cutoff(), now=NOW)
    near = [hit.id for hit in best if hit.score >= best[0].score - 2.0]
    kept = memory.recall("kiln and glaze", 30, profile=wide, now=NOW).ids
    assert list(kept) == list(best.ids[: max(10, len(near))])


def test_what_another_process_forgot_meanwhile_is_replaced_by_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = memory.recall("kiln and glaze", 6, now=NOW).ids
    fetch = Store.fetch
    gone = views.read_id(expected[1])

    def without(self: Store, space: SpaceInfo, numbers: Sequence[int]) -> list[ItemRow]:
        return [row for row in fetch(self, space, numbers) if row.whole != gone]

    monkeypatch.setattr(Store, "fetch", without)
    again = memory.recall("kiln and glaze", 5, now=NOW).ids
    assert again == (expected[0], *expected[2:])


def test_same_question_same_answer_in_a_reopened_memory(tmp_path: Path) -> None:
    answers: list[Recall] = []
    for attempt in range(2):
        with Memory.open(tmp_path / "m.db", embedder=HashingEmbedder(64)) as memory:
            if not attempt:
                memory.remember(turns(40))
            answers.append(memory.recall("the ferry in Bremen", 10, now=NOW))
    assert answers[0].ids == answers[1].ids
    assert [hit.score for hit in answers[0]] == [hit.score for hit in answers[1]]


def test_without_a_usable_vector_words_alone_decide_and_a_warning_says_so(tmp_path: Path) -> None:
    embedder = FailingEmbedder()
    embedder.failing = False
    with Memory.open(tmp_path / "m.db", embedder=embedder) as memory:
        memory.remember(turns(10))
        embedder.failing = True
        recall = memory.recall("kiln", 3, now=NOW)
        assert "kiln" in recall[0].content
        assert any("by words only" in warning for warning in recall.warnings)
        assert memory.recall("kiln", 3, profile=LEXICAL).warnings == ()


def test_candidates_come_in_rank_order_with_every_term(memory: Memory) -> None:
    profile = without_cutoff()
    ids, terms = memory.candidates("kiln and glaze", profile=profile, now=NOW)
    weights = np.array([profile.weights.get(term, 0.0) for term in TERMS])
    recall = memory.recall("kiln and glaze", 60, profile=profile, now=NOW)
    assert ids[: len(recall)] == recall.ids
    np.testing.assert_allclose(
        (terms @ weights)[: len(recall)], [hit.score for hit in recall], atol=1e-5
    )
    assert terms.shape == (len(ids), len(TERMS))


@pytest.mark.parametrize("query", ["", "   ", "?", "zzzz", "\ud83c\udfad"])
def test_a_question_of_hardly_anything_is_answered(memory: Memory, query: str) -> None:
    recall = memory.recall(query, 5, now=NOW)
    assert len(recall) <= 5


def test_an_empty_memory_answers(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder=HashingEmbedder(64)) as memory:
        recall = memory.recall("kiln", 5, explain=True)
        assert recall.ids == ()
        assert recall.trace is not None
        assert memory.candidates("kiln")[0] == ()


def test_a_profile_may_bring_another_ranking(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backwards(searched: Searched, asked: Asked, profile: Profile) -> list[Scored]:
        found = ranking.weighted_terms(searched, asked, profile)
        return [Scored(one.candidates, -one.scores) for one in found]

    monkeypatch.setattr(ranking, "RANKINGS", {**ranking.RANKINGS, "backwards": backwards})
    profile = without_cutoff()
    straight = memory.recall("kiln and glaze", 1_000, profile=profile, now=NOW)
    turned = memory.recall(
        "kiln and glaze", 1_000, profile=replace(profile, ranking="backwards"), now=NOW
    )
    assert [-hit.score for hit in turned][::-1] == [hit.score for hit in straight]


def test_the_default_is_fitted_to_what_is_asked(memory: Memory) -> None:
    """Spaces that never slept are asked by weights that were fitted to such."""

    def terms() -> set[str]:
        trace = memory.recall("Where is the kiln?", now=NOW, explain=True).trace
        assert trace is not None
        return {term.name for item in trace.items for term in item.terms}

    memory.remember("Where did we put the kiln?", session="s", speaker="Ada", time=NOW)
    memory.remember("It is behind the shed. Mind the step.", session="s", speaker="Bo", time=NOW)
    assert terms().isdisjoint({"gist", "kin"})
    memory.consolidate(["gists", "words"], now=NOW)
    assert "kin" in terms()
    mine = replace(COFIRE, name="mine")
    assert asked_of(mine, slept=False) is mine
    assert asked_of(COFIRE, slept=False) is AWAKE

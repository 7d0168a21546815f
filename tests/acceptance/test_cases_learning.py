"""Kind j of the case bank: links stay few, bounded and whole, whatever use does to them."""

from __future__ import annotations

import io
import math
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cofire import Memory
from cofire.dynamics.plasticity import COFIRE_RULE, HELA_MEM_RULE
from cofire.errors import CofireError, InputError, NotFoundError
from cofire.types import LinkType, Recall

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, embedder="hashing:64", trusted=("ops",)) as memory:
        yield memory


def ranking(recall: Recall) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in recall]


# j-05: recalls link nothing


def test_recalls_that_nobody_used_link_nothing_and_change_no_ranking(memory: Memory) -> None:
    memory.remember([f"item {i} about topic {i % 7}" for i in range(300)], now=NOW)
    wanted = [*(f"topic {i}" for i in range(7)), "item 42 about topic 0"]
    before = [ranking(memory.recall(query, 20, now=NOW)) for query in wanted]
    links = memory.stats().spaces[0].links
    for i in range(1_000):
        memory.recall(f"topic {i % 7}", 20, now=NOW)
    assert memory.stats().spaces[0].links == links
    assert [ranking(memory.recall(query, 20, now=NOW)) for query in wanted] == before
    assert memory.recall("item 42 about topic 0", 1, now=NOW)[0].content == "item 42 about topic 0"
    assert memory.strengths(now=NOW) == ()
    assert dict(memory.export(io.BytesIO())).get("event", 0) == 0


def test_recalls_teach_where_the_space_has_chosen_a_rule_by_which_they_do(
    memory: Memory, path: Path
) -> None:
    a, b, c = memory.remember(["the boat is red", "the mast is red", "a grey dog"], now=NOW).ids
    untaught = memory.recall("what is red?", 2, now=NOW)
    assert memory.learn_by("hela_mem") == 0
    assert memory.strengths(now=NOW) == ()
    assert set(untaught.ids) == {a, b}
    recall = memory.recall("what is red?", 2, now=NOW)
    memory.recall("what is red?", 2, now=NOW)
    (link,) = memory.strengths(now=NOW)
    assert ({link.a, link.b}, link.coactivations) == ({a, b}, 2)
    assert link.strength == pytest.approx(0.02 * 0.995 + 0.02)
    first, _ = memory.why(a, b)
    assert (first.signal, first.recall, first.question) == ("retrieved", recall.id, "what is red?")
    assert memory.replay() == 0
    assert memory.check() == []
    assert memory.stats().spaces[0].learning_rule == "hela_mem"
    exported = io.BytesIO()
    memory.export(exported)
    exported.seek(0)
    with Memory.open(path.with_name("n.db"), embedder="hashing:64") as restored:
        assert restored.import_(exported, format="cofire").problems == []
        assert restored.stats().spaces[0].learning_rule == "hela_mem"
        assert restored.strengths(now=NOW) == (link,)
        assert restored.check() == []
    # Back to the default: what only retrieval taught is gone, and comes back with its rule.
    assert memory.learn_by("cofire") == 1
    memory.recall("what is red?", 2, now=NOW)
    assert memory.strengths(now=NOW) == ()
    assert memory.learn_by(replace(HELA_MEM_RULE, name="half", eta=0.01)) == 1
    assert memory.strengths(now=NOW)[0].strength == pytest.approx(0.01 * 0.995 + 0.01)
    memory.forget([a, c])
    assert memory.strengths(now=NOW) == ()
    assert memory.check() == []
    with pytest.raises(InputError, match="no learning rule"):
        memory.learn_by("hebb")
    with pytest.raises(InputError, match="not opened with the project"):
        memory.learn_by("cofire", project="elsewhere")


def test_learned_links_of_one_memory_are_bounded(memory: Memory) -> None:
    memory.remember([f"item {i} about topic {i % 7}" for i in range(60)], now=NOW)
    for i in range(60):
        recall = memory.recall(f"item {i} about topic {i % 7}", 10, now=NOW)
        memory.feedback(recall, recall.ids[:6], by="ops", now=NOW + timedelta(minutes=i))
    cues = {item.id for item in memory.list(kinds="cue", limit=1_000)}
    degree = Counter(
        end
        for link in memory.strengths(now=NOW)
        for end in (link.a, link.b)
        if link.a not in cues and end not in cues
    )
    assert COFIRE_RULE.links_per_item is not None
    assert max(degree.values()) <= COFIRE_RULE.links_per_item
    assert memory.check() == []


# j-06: strengths stay finite and within their bounds


def test_reinforcing_ten_thousand_times_stays_within_bounds(memory: Memory) -> None:
    a, b = memory.remember(["the boat", "the mast"], now=NOW).ids
    for i in range(300):
        memory.strengthen(a, b, by="ops", now=NOW + timedelta(seconds=i))
    (link,) = memory.strengths(now=NOW + timedelta(seconds=300))
    assert 0.9 < link.strength <= 1.0
    (faded,) = memory.strengths(now=NOW + timedelta(days=100_000))
    assert 0.0 <= faded.strength < 0.001


def test_one_principal_moves_a_link_by_the_cap_and_another_undoes_it(memory: Memory) -> None:
    a, b, c = memory.remember(["the boat is red", "the mast is red", "red sails"], now=NOW).ids
    for i in range(200):
        recall = memory.recall(f"what is red, number {i}?", 3, now=NOW)
        memory.feedback(recall, (a, b), by="mallory", now=NOW + timedelta(seconds=i))
    moved = {frozenset((link.a, link.b)): link.strength for link in memory.strengths(now=NOW)}
    assert moved[frozenset((a, b))] == pytest.approx(0.2)
    assert all(strength <= 0.2 + 1e-9 for strength in moved.values())
    for i in range(20):
        recall = memory.recall(f"which are red things, {i}?", 3, now=NOW)
        later = NOW + timedelta(hours=1, seconds=i)
        memory.feedback(recall, (a, b), outcome=-1.0, by="ada", now=later)
    undone = {frozenset((link.a, link.b)): link.strength for link in memory.strengths(now=NOW)}
    assert undone[frozenset((a, b))] < 0.05
    assert c not in {end for pair in undone for end in pair}


def test_the_same_about_the_same_question_counts_once(memory: Memory) -> None:
    a, b = memory.remember(["the boat is red", "the mast is red"], now=NOW).ids
    first = memory.feedback(memory.recall("what is red?", now=NOW), (a, b), by="ada", now=NOW)
    again = memory.feedback(memory.recall("What is red?", now=NOW), (a, b), by="ada", now=NOW)
    other = memory.feedback(memory.recall("what is red?", now=NOW), (a, b), by="bob", now=NOW)
    assert (first.counted, again.counted, other.counted) == (True, False, True)
    assert len(memory.why(a, b)) == 2


@pytest.mark.parametrize("strength", [5, -1, math.nan, math.inf, -math.inf])
def test_a_strength_out_of_bounds_is_refused(memory: Memory, strength: float) -> None:
    a, b = memory.remember(["a boat", "a mast"], now=NOW).ids
    with pytest.raises(InputError):
        memory.link(a, b, LinkType.RELATED, strength=strength)
    assert [link.type for link in memory.links(a)] == []


@pytest.mark.parametrize("outcome", [2, -1.5, math.nan, math.inf, "good", True, None])
def test_an_outcome_out_of_bounds_is_refused(memory: Memory, outcome: object) -> None:
    (a,) = memory.remember("a boat", now=NOW).ids
    recall = memory.recall("boat", now=NOW)
    with pytest.raises(InputError):
        memory.feedback(recall, a, outcome=outcome, now=NOW)  # type: ignore[arg-type]
    assert memory.strengths(now=NOW) == ()


# j-02: both ends of a link exist


def test_feedback_on_what_was_not_returned_is_refused_and_nothing_is_learned(
    memory: Memory,
) -> None:
    (a,) = memory.remember("a boat", now=NOW).ids
    recall = memory.recall("boat", now=NOW)
    for used in ([a, NOWHERE], [NOWHERE], ["no-such-id"]):
        with pytest.raises(InputError, match="did not return"):
            memory.feedback(recall, used, now=NOW)
    with pytest.raises(NotFoundError):
        memory.strengthen(a, NOWHERE, now=NOW)
    with pytest.raises(InputError):
        memory.feedback(recall, now=NOW)
    assert memory.strengths(now=NOW) == ()


def test_feedback_on_an_unknown_recall_says_so(memory: Memory) -> None:
    with pytest.raises(NotFoundError, match="no record of recall"):
        memory.feedback(NOWHERE, NOWHERE, now=NOW)
    with pytest.raises(InputError, match="no recall's id"):
        memory.feedback("nonsense", NOWHERE, now=NOW)


def test_nobody_learns_in_anothers_space(memory: Memory, path: Path) -> None:
    a, b = memory.remember(["the boat is red", "the mast is red"], now=NOW).ids
    recall = memory.recall("what is red?", now=NOW)
    memory.feedback(recall, (a, b), now=NOW)
    before = memory.strengths(now=NOW)
    for tenant, identity, user in (
        ("default", "default", "mallory"),
        ("other", "default", None),
        ("default", "spy", None),
    ):
        with Memory.open(path, identity, user, tenant=tenant, embedder="hashing:64") as stranger:
            (own,) = stranger.remember("my own boat", now=NOW).ids
            with pytest.raises(NotFoundError):
                stranger.feedback(recall.id, a, outcome=-1.0, now=NOW)
            for pair in ((a, b), (own, a), (a, own)):
                with pytest.raises(NotFoundError):
                    stranger.strengthen(*pair, now=NOW)
                with pytest.raises(NotFoundError):
                    stranger.why(*pair)
            assert stranger.strengths(now=NOW) == ()
            assert stranger.proposals(least=1) == ()
    assert memory.strengths(now=NOW) == before


# j-03: forgetting while others learn


def test_forgetting_while_others_learn_leaves_nothing_dangling(memory: Memory) -> None:
    ids = memory.remember([f"the boat number {i} is red" for i in range(30)], now=NOW).ids
    failures: list[BaseException] = []

    def learn(name: str) -> None:
        for i in range(15):
            recall = memory.recall(f"which boats are red, {name} {i}?", 10, now=NOW)
            try:
                memory.feedback(recall, recall.ids[:4], by=name, now=NOW)
            except (InputError, NotFoundError):  # a memory of it was forgotten meanwhile
                continue
            except CofireError as exc:
                failures.append(exc)

    def forget() -> None:
        for id in ids[:20]:
            memory.forget(id)

    threads = [threading.Thread(target=learn, args=(name,)) for name in ("ada", "bob")]
    threads.append(threading.Thread(target=forget))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert memory.check() == []
    assert memory.replay() == 0
    left = set(ids[20:])
    recall = memory.recall("which boats are red?", 30, now=NOW)
    assert set(recall.ids) <= left
    cues = {item.id for item in memory.list(kinds="cue", limit=1_000)}
    assert {end for link in memory.strengths(now=NOW) for end in (link.a, link.b)} <= left | cues


def test_forgetting_takes_back_what_a_memory_taught(memory: Memory, path: Path) -> None:
    texts = ["the boat is red", "the mast is red", "the sail is red"]
    a, b, c = memory.remember(texts, now=NOW).ids
    recall = memory.recall("what is red?", now=NOW)
    memory.feedback(recall, (a, b, c), by="ops", now=NOW)
    memory.forget(c)
    with Memory.open(path.with_name("n.db"), embedder="hashing:64", trusted=("ops",)) as never:
        x, y = never.remember(texts[:2], now=NOW).ids
        never.feedback(never.recall("what is red?", now=NOW), (x, y), by="ops", now=NOW)
        expected = sorted(link.strength for link in never.strengths(now=NOW))
    assert sorted(link.strength for link in memory.strengths(now=NOW)) == pytest.approx(expected)
    memory.forget([a, b])
    assert memory.strengths(now=NOW) == ()
    assert memory.list(kinds="cue").items == ()
    assert b"what is red" not in b"".join(
        file.read_bytes() for file in path.parent.glob(f"{path.name}*")
    )


# j-07: replacement never goes round


def test_replacement_never_goes_in_a_circle(memory: Memory) -> None:
    a, b, c = memory.remember(["version one", "version two", "version three"], now=NOW).ids
    memory.link(b, a, LinkType.SUPERSEDES)
    memory.link(c, b, LinkType.SUPERSEDES)
    for source, target in ((a, b), (a, c), (a, a)):
        with pytest.raises(InputError):
            memory.link(source, target, LinkType.SUPERSEDES)
    assert len(memory.recall("version", now=NOW)) == 3


def test_a_chain_of_five_thousand_replacements_is_walked_without_recursion(
    memory: Memory,
) -> None:
    ids = memory.remember([f"version {i}" for i in range(5_000)], now=NOW).ids
    for i in range(0, 4_999, 50):
        memory.link(ids[i + 1], ids[i], LinkType.SUPERSEDES)
    recall = memory.recall("version 4999", 5, now=NOW)
    assert recall[0].content == "version 4999"

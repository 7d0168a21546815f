"""A session's start and end on a real store: what it opens with, what it leaves open, what becomes
of that over many days."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cofire import Memory, remembering
from cofire.errors import InputError, NotFoundError
from cofire.hydrating import SHARES
from cofire.types import (
    HEADINGS,
    Hydration,
    Kind,
    LinkType,
    Message,
    SleepReport,
    Thread,
    ThreadState,
)

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
SHED = "I'm going to paint the shed in spring."
DONE = "I finally painted the shed!"


def at(days: float) -> datetime:
    return START + timedelta(days=days)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, embedder="hashing:64", projects="site") as memory:
        yield memory


def say(memory: Memory, content: str, days: float, **fields: object) -> str:
    given = {"speaker": "Ada", **fields}
    return memory.remember(content, time=at(days), now=at(days), **given).id  # type: ignore[arg-type]


def sleep(memory: Memory, days: float, *steps: str) -> SleepReport:
    report = memory.consolidate(steps or ("infer_threads", "stale_threads"), now=at(days))[0]
    assert not report.failed
    return report


def held(threads: tuple[Thread, ...]) -> dict[str, str]:
    return {one.content: one.state.value for one in threads}


def by_section(found: Hydration) -> dict[str, list[str]]:
    return {name: [one.content for one in entries] for name, entries in found.sections.items()}


def drawn(found: Hydration) -> set[str]:
    return {entry.id for entry in found.sections.get("involuntary", ())}


# -- Goals and threads ---------------------------------------------------------------------------


def test_a_goal_is_opened_advanced_and_closed(memory: Memory) -> None:
    id = memory.remember("Ship release 2.", kind="goal", time=at(0), now=at(0)).id
    (goal,) = memory.threads(now=at(1))
    assert (goal.id, goal.kind, goal.state, goal.note) == (id, "goal", "opened", None)
    memory.advance(id, "The tests are green.", now=at(1))
    goal = memory.advance(id, "The changelog is written.", now=at(2))
    assert (goal.content, goal.state) == ("Ship release 2.", ThreadState.ADVANCED)
    assert goal.item.content == "Ship release 2.\nThe changelog is written."
    goal = memory.conclude(id, "Released on Friday.", now=at(3))
    assert not goal.is_open
    assert [(one.state, one.note, one.time) for one in goal.history] == [
        ("opened", None, at(0)),
        ("advanced", "The tests are green.", at(1)),
        ("advanced", "The changelog is written.", at(2)),
        ("closed", "Released on Friday.", at(3)),
    ]
    assert (goal.opened, goal.touched) == (at(0), at(3))
    texts = [version.content for version in memory.history(id)]
    assert texts == [
        "Ship release 2.",
        "Ship release 2.\nThe tests are green.",
        "Ship release 2.\nThe changelog is written.",
    ]
    assert memory.threads(now=at(4)) == ()
    assert held(memory.threads("closed", now=at(4))) == {"Ship release 2.": "closed"}
    assert memory.recall("Released on Friday?", now=at(4))[0].id == id
    assert held((memory.advance(id, "One more fix.", now=at(5)),)) == {
        "Ship release 2.": "advanced"
    }
    assert list(memory.check()) == []


def test_states_survive_an_export_and_other_metadata(memory: Memory, tmp_path: Path) -> None:
    id = memory.remember("Ship it.", kind="goal", metadata={"size": 3}, time=at(0), now=at(0)).id
    memory.advance(id, "Half of it.", now=at(1))
    assert memory.get(id).metadata["size"] == 3
    memory.export(tmp_path / "out.jsonl")
    with Memory.open(tmp_path / "other.db", embedder="hashing:64") as other:
        other.import_(tmp_path / "out.jsonl")
        assert other.threads(now=at(2))[0].history == memory.threads(now=at(2))[0].history


def test_metadata_that_are_no_log_do_no_harm(memory: Memory) -> None:
    """No caller may write them, but a file from elsewhere has what it has."""
    far = {"state": "opened", "time": 10**30}
    odd = {"working_state": "dancing", "working_log": [1, {"state": "opened"}, {"time": 5}, far]}
    with pytest.raises(InputError, match="Cofire's own"):
        memory.remember("Ship it.", kind="goal", metadata=odd)
    goal = Message(content="Ship it.", kind="goal", metadata=odd, time=at(0))
    remembering.store_batch(memory._workings, None, [goal], at(0), [0])
    assert [one.state for one in memory.threads(now=at(1))] == ["opened"]
    assert memory.hydrate(now=at(1)).sections["working"][0].header == "Goal, opened 1 January 2026:"


def test_no_advance_undoes_another(memory: Memory, path: Path) -> None:
    id = memory.remember("Ship it.", kind="goal", time=at(0), now=at(0)).id

    def work(name: str) -> None:
        with Memory.open(path, embedder="hashing:64") as mine:
            for place in range(5):
                mine.advance(id, f"{name} {place}", now=at(1 + place))

    workers = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    (goal,) = memory.threads(now=at(9))
    notes = {change.note for change in goal.history}
    assert notes == {None, *(f"{name} {place}" for name in ("one", "two") for place in range(5))}


def test_only_goals_and_threads_have_a_lifecycle(memory: Memory) -> None:
    id = say(memory, "Hello", 0)
    with pytest.raises(InputError, match="episode"):
        memory.advance(id, "more")
    with pytest.raises(NotFoundError):
        memory.conclude("00000000-0000-7000-8000-000000000000")
    with pytest.raises(InputError):
        memory.advance(id, " ")
    with pytest.raises(InputError, match="opened"):
        memory.threads("dancing")
    with pytest.raises(InputError, match="goal"):
        memory.threads(kinds="fact")


# -- The end of a session and the start of the next ----------------------------------------------


def test_a_checkpoint_is_what_the_next_session_opens_with(memory: Memory, path: Path) -> None:
    say(memory, "The shed is red.", 0, session="one")
    first = memory.checkpoint(
        "We talked about sheds.",
        goals="Paint the shed", threads=["Ask Sam for a brush"], session="one", now=at(0.1),
    )  # fmt: skip
    assert (first.summary, first.session) == ("We talked about sheds.", "one")
    assert held(first.open) == {"Paint the shed": "opened", "Ask Sam for a brush": "opened"}
    ends = {link.target: link.type for link in memory.links(first.id) if link.source == first.id}
    assert ends == dict.fromkeys((one.id for one in first.open), LinkType.ANNOTATES)
    memory.close()
    with Memory.open(path, embedder="hashing:64") as later:
        found = later.hydrate(now=at(1))
        assert by_section(found)["working"] == [
            "We talked about sheds.", "Ask Sam for a brush", "Paint the shed",
        ]  # fmt: skip
        assert "Thread, opened 1 January 2026: Ask Sam for a brush" in found.text
        later.conclude(first.open[0].id, now=at(1))
        second = later.checkpoint(goals=["paint the SHED"], now=at(1.1))
        assert second.summary == "The session ended with 1 goal or thread open."
        left = next(one for one in first.open if one.id != first.open[0].id)
        assert [one.id for one in second.open] == [left.id]  # known by its words, opened once
        found = later.hydrate(now=at(2))
        assert [one.id for one in found.sections["working"]] == [second.id, left.id]
        assert list(later.check()) == []


def test_a_project_has_checkpoints_of_its_own(memory: Memory) -> None:
    memory.checkpoint("Own.", goals="Mine", now=at(0))
    shared = memory.checkpoint("Shared.", goals="Ours", project="site", now=at(1))
    assert held(shared.open) == {"Ours": "opened"}
    assert by_section(memory.hydrate(now=at(2)))["working"] == ["Shared.", "Mine", "Ours"]
    assert held(memory.threads(now=at(2))).keys() == {"Mine", "Ours"}


# -- What a session opens with -------------------------------------------------------------------


def test_every_section_says_why(memory: Memory) -> None:
    old = say(memory, "We once built a kayak in the barn.", -200)
    say(memory, "The parrot eats seeds.", -20)
    nine = say(memory, "Never call before nine.", -50, pinned=True)
    vet = say(memory, "The vet is called Holm.", -100)
    memory.link(vet, nine, type="supports", strength=0.9)
    weak = say(memory, "A vet once sang.", -99)
    memory.link(nine, weak, type="supports", strength=0.7)
    for place in range(12):
        say(memory, f"Turn {place} was about the weather.", -1 + place / 100)
        say(memory, f"What does a parrot of size {place} eat?", -20 + place / 100)
    say(memory, "Ada is patient.", -50, kind="trait")
    say(memory, "Ada is a carpenter.", -60, kind="persona")
    say(memory, "Sell the boat.", -3, kind="goal")
    found = memory.hydrate("What does the parrot eat?", now=at(0), token_budget=600, seed=3)
    sections = by_section(found)
    assert list(sections) == list(HEADINGS)
    assert sections["pinned"] == ["Never call before nine."]
    assert sections["persona"] == ["Ada is a carpenter.", "Ada is patient."]
    assert sections["working"] == ["Sell the boat."]
    assert sections["recent"] == [f"Turn {place} was about the weather." for place in range(12)]
    assert "The parrot eats seeds." in sections["relevant"]
    assert set(sections["involuntary"]) <= {
        "We once built a kayak in the barn.",
        "A vet once sang.",
    }
    whys = {entry.content: entry.why for entry in found}
    assert sections["linked"] == ["The vet is called Holm."]
    assert whys["The vet is called Holm."] == f"a link (supports, 0.90) joins it with {nine}"
    assert old in memory.hydrate(now=at(0), seed=3).ids
    assert abs(sum(SHARES.values()) - 1.0) < 1e-9


def test_what_does_not_fit_is_counted(memory: Memory) -> None:
    for place in range(5):
        say(memory, f"Pinned number {place}.", -50, pinned=True)
    found = memory.hydrate(now=at(0), token_budget=40)
    assert 0 < len(found) < 5
    assert found.left_out == {"pinned": 5 - len(found)}


def test_bad_requests_are_refused(memory: Memory) -> None:
    for wrong in ({"token_budget": 0}, {"seed": -1}, {"cue": 5}):
        with pytest.raises(InputError):
            memory.hydrate(**wrong)  # type: ignore[arg-type]
    assert memory.hydrate("  ", now=at(0)).cue is None


def test_chance_follows_strength(memory: Memory) -> None:
    ids = [say(memory, f"Old matter {place}.", -100 + place) for place in range(20)]
    for _ in range(12):
        for other in ids[1:4]:
            memory.strengthen(ids[0], other, by=None, now=at(-1))
    contexts = [memory.hydrate(now=at(0), token_budget=200, seed=seed) for seed in range(60)]
    counts = {id: sum(id in drawn(one) for one in contexts) for id in ids}
    assert len([id for id in ids[4:] if counts.get(id)]) > 3  # anything may come up
    assert counts[ids[0]] > max(counts[id] for id in ids[4:8])


# -- What use of it teaches ----------------------------------------------------------------------


def test_feedback_on_an_opening_context_teaches_and_being_shown_does_not(memory: Memory) -> None:
    ids = [say(memory, f"Matter {place}.", -2 + place / 10) for place in range(3)]
    for seed in range(3):
        memory.hydrate(now=at(0), seed=seed)
    found = memory.hydrate(now=at(0), seed=9)
    learned = memory.feedback(found, used=ids[:2], by="ada", now=at(0))
    assert learned.counted
    (link,) = learned.links
    assert {link.a, link.b} == set(ids[:2])
    assert not memory.feedback(found.id, used=ids[:2], by="ada", now=at(0.1)).counted  # said before
    again = memory.hydrate(now=at(1))
    assert memory.feedback(again, used=ids[:2], by="ada", now=at(1)).counted
    assert [memory.get(id).access_count for id in ids] == [0, 0, 0]
    with pytest.raises(InputError, match="did not return"):
        memory.feedback(again, used=[say(memory, "New.", 2)])
    assert memory.replay() == 0


def test_a_cue_is_learned_from_what_it_brought_alone(memory: Memory) -> None:
    say(memory, "Never call before nine.", -50, pinned=True)
    say(memory, "The parrot eats seeds.", -40)
    for place in range(13):
        say(memory, f"Turn {place} was about the weather.", -1 + place / 100)
    found = memory.hydrate("What does the parrot eat?", now=at(0))
    relevant = [entry.id for entry in found.sections["relevant"] if "parrot" in entry.content]
    assert not memory.feedback(found, used=[found.sections["pinned"][0].id], now=at(0)).counted
    assert memory.feedback(found, used=relevant, now=at(0)).counted
    assert memory.stats().spaces[0].by_kind["cue"] == 1


def test_a_memory_that_came_up_by_chance_and_was_used_wakes_its_links(memory: Memory) -> None:
    old, other, third = (say(memory, f"Old matter {place}.", -100 + place) for place in range(3))
    for place in range(40):
        say(memory, f"Turn {place} was about the weather.", -1 + place / 100)
    memory.strengthen(old, other, now=at(-1))
    before = {(link.a, link.b): link.strength for link in memory.strengths(now=at(0))}
    assert len(before) == 1
    contexts = [memory.hydrate(now=at(0), seed=seed, token_budget=300) for seed in range(20)]
    found = next(one for one in contexts if old in drawn(one))
    learned = memory.feedback(found, used=[old], by="ada", now=at(0))
    (moved,) = learned.links
    assert {moved.a, moved.b} == {old, other}
    assert next(iter(before.values())) < moved.strength < 0.2
    assert {event.signal for event in memory.why(old, other)} == {"explicit", "background"}
    assert not memory.feedback(found, used=[old], by="ada", now=at(0)).counted
    assert memory.replay() == 0
    assert third not in {end for link in memory.strengths() for end in (link.a, link.b)}


def test_forgetting_takes_it_out_of_opening_contexts(memory: Memory) -> None:
    kept, gone = say(memory, "Kept.", -1), say(memory, "Gone away.", -1)
    found = memory.hydrate(now=at(0))
    assert {kept, gone} <= set(found.ids)
    memory.forget(gone)
    assert gone not in memory.hydrate(now=at(0)).ids
    with pytest.raises(InputError):
        memory.feedback(found, used=[gone])
    assert list(memory.check()) == []


# -- What consolidation infers -------------------------------------------------------------------


def test_what_is_meant_is_inferred_and_what_is_done_is_closed(memory: Memory) -> None:
    meant = say(memory, f"Hi! {SHED} The weather is fine.", 0)
    brushes = "Please remind me to buy brushes."
    say(memory, brushes, 0.1, speaker="Sam")
    assert sleep(memory, 1).counts["filed"] == 2
    assert held(memory.threads(now=at(1))) == {SHED: "inferred", brushes: "inferred"}
    goal = memory.threads(kinds="goal", now=at(1))[0]
    assert (goal.kind, goal.item.speaker, goal.opened) == (Kind.GOAL, "Ada", at(0))
    assert "Goal, inferred 1 January 2026 Ada:" in memory.hydrate(now=at(1)).text
    (record,) = memory.records("Ada", kinds="goal")
    assert [(quote.id, quote.text) for quote in record.evidence] == [(meant, SHED)]
    assert record.maker == "extractive"
    assert sleep(memory, 1.5).counts == {}

    done = say(memory, f"{DONE} It took all day.", 9)
    say(memory, "I finally painted the shed!", 9.5, speaker="Sam")  # another one's shed
    assert sleep(memory, 10).counts["closed"] == 1
    assert SHED not in held(memory.threads(now=at(10)))
    closed = memory.threads("closed", kinds="goal", now=at(10))
    assert held(closed) == {SHED: "closed"}
    assert closed[0].history[-1].time == at(9)
    memory.forget(done)
    sleep(memory, 11)
    assert held(memory.threads(kinds="goal", now=at(11))) == {SHED: "inferred"}
    memory.forget(meant)
    assert memory.threads(tuple(ThreadState), kinds="goal", now=at(11)) == ()
    assert list(memory.check()) == []


def test_an_inferred_goal_that_somebody_confirms_is_theirs(memory: Memory) -> None:
    say(memory, SHED, 0)
    sleep(memory, 1)
    (goal,) = memory.checkpoint(goals=SHED, now=at(2)).open
    assert goal.state == "opened"
    assert memory.advance(goal.id, "Bought paint.", now=at(3)).state == "advanced"
    assert list(memory.check()) == []


def test_what_was_begun_and_done_before_the_night_leaves_nothing(memory: Memory) -> None:
    say(memory, SHED, 0)
    say(memory, DONE, 0.5)
    say(memory, "I'm going to sell the boat.", -400)  # meant so long ago that it would be stale
    assert "filed" not in sleep(memory, 1).counts
    assert memory.threads(tuple(ThreadState), now=at(1)) == ()


def test_of_two_that_may_be_meant_none_is_closed(memory: Memory) -> None:
    say(memory, "I'm going to paint the shed red.", 0)
    say(memory, "I'm going to paint the shed door.", 1)
    sleep(memory, 2)
    say(memory, DONE, 3)
    assert "closed" not in sleep(memory, 4).counts
    assert len(memory.threads(now=at(4))) == 2


def test_what_nobody_touches_is_stale_once_and_can_be_taken_up(memory: Memory) -> None:
    told = memory.remember("Sell the boat.", kind="goal", time=at(0), now=at(0)).id
    fresh = memory.remember("Buy a kayak.", kind="thread", time=at(0), now=at(0)).id
    say(memory, SHED, 0)
    sleep(memory, 1)
    memory.advance(fresh, "Found one.", now=at(20))
    assert sleep(memory, 32).counts == {"marked": 2}
    assert held(memory.threads(now=at(32))) == {"Buy a kayak.": "advanced"}
    assert held(memory.threads("stale", now=at(32))) == {"Sell the boat.": "stale", SHED: "stale"}
    assert "Sell the boat." not in by_section(memory.hydrate(now=at(32))).get("working", [])
    assert memory.history(told) == ()  # its text never changed
    assert [one.id for one in memory.list(metadata={"working_state": "stale"}, kinds="goal")]
    (step,) = memory.consolidate("stale_threads", now=at(32))[0].steps
    assert step.skipped
    assert sleep(memory, 33).counts == {}
    assert memory.advance(told, "An offer came.", now=at(34)).is_open
    assert list(memory.check()) == []

"""The steps of forgetting on a real store: once per period, wholly or not at all, reversibly."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofire import Memory
from cofire.consolidation import fading, strengthening
from cofire.consolidation.cycle import run
from cofire.consolidation.fading import FADING_STEPS
from cofire.consolidation.night import SLEEP, Night, SleepRule
from cofire.dynamics.plasticity import ATAMAIA_RULE, COFIRE_RULE, HELA_MEM_RULE
from cofire.graph.active import ActiveGraph
from cofire.retrieval import synapse
from cofire.settings import load_settings
from cofire.store import ledger
from cofire.store.cues import NewCue
from cofire.store.learning import NewEvent
from cofire.store.records import KIND_CODES, SpaceInfo
from cofire.testing import an_item
from cofire.types import Recall, StepReport, to_micros

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
UNSTABLE = {"steps": ("time",), "items": ("uid", "revision"), "links": ("revision",)}
"""Columns that two runs of the same may fill differently."""


def at(days: float) -> datetime:
    return START + timedelta(days=days)


class Agent:
    """A memory, and its nights."""

    def __init__(self, path: Path, rule: SleepRule = SLEEP) -> None:
        self.path = path
        self.rule = rule
        settings = load_settings(embedder="hashing:64", durability="normal")
        self.memory = Memory.open(path, settings=settings)
        self.workings = self.memory._workings
        self.store = self.workings.store

    @property
    def space(self) -> SpaceInfo:
        return self.store.refreshed(self.workings.spaces.all()[0])

    @property
    def graph(self) -> ActiveGraph:
        return self.workings.recaller.graph(self.space)

    def night(self, days: float, **fields: Any) -> Night:
        now = at(days)
        self.workings.settle()
        made = {
            "store": self.store,
            "space": self.space,
            "now": to_micros(now),
            "graph": lambda: self.graph,
            "make": lambda given: (
                self.workings.encoder.derive(
                    list(given), now=now, counter=self.workings.embedder
                ).items
            ),
            "rule": self.rule,
        }
        return Night(**{**made, **fields})

    def sleep(self, days: float, *only: str, **fields: Any) -> dict[str, int]:
        """What a night did, by "step: what"."""
        return counted(run(self.night(days, **fields), FADING_STEPS, only=only))

    def remember(self, *contents: str, days: float = 0.0, **fields: Any) -> list[int]:
        """The numbers of new memories, each said a minute after the one before."""
        messages = [
            {"content": content, "time": at(days) + timedelta(minutes=place), **fields}
            for place, content in enumerate(contents)
        ]
        ids = self.memory.remember(messages, now=at(days)).ids
        return [self.number(id) for id in ids]

    def number(self, id: str) -> int:
        return self.workings.spaces.locate(id)[1]

    def used(
        self, *numbers: int, days: float = 0.0, recall: bytes | None = None, **fields: Any
    ) -> None:
        """Feedback on a recall that returned these."""
        event = NewEvent(
            items=tuple((number, 1.0) for number in numbers), time=to_micros(at(days)),
            recall=recall or str(days).encode().ljust(16, b"-"), **{"signal": "used", **fields},
        )  # fmt: skip
        rule = self.store.rule(self.space)
        # One use alone is evidence about the question, so there must be one.
        cue = NewCue(item=an_item(f"{days}?", kind="cue")) if len(numbers) == 1 else None
        self.store.learn(self.space, event, rule, cue=cue, now=event.time)

    def accessed(self, *numbers: int, days: float) -> None:
        self.store.record_access(self.space, numbers, to_micros(at(days)))

    def importance(self, *numbers: int) -> list[int]:
        return [row.importance for row in self.store.fetch(self.space, numbers)]

    def active(self) -> set[int]:
        graph = self.graph
        rows = graph.column("kind") != KIND_CODES["cue"]
        if graph.live is not None:
            rows = rows & graph.live
        return set(graph.column("number")[rows].tolist())

    def strength(self, one: int, other: int, days: float) -> float | None:
        held = self.store.strengths_of(self.space, [one, other], now=to_micros(at(days)))
        return held.get((one, other))

    def agrees(self) -> bool:
        """Whether the links are what the log says, and the store what it should be."""
        return self.memory.replay() == 0 and list(self.store.check()) == []


def counted(reports: Sequence[StepReport] | Sequence[Any]) -> dict[str, int]:
    for report in reports:
        assert report.error is None, report
    return {
        f"{report.name}: {what}": count
        for report in reports
        for what, count in report.counts.items()
    }


def content_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the store, without what may differ between two runs of the same."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            if table in {"spaces", "tombstones", "recalls", "recall_items"}:
                continue
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            kept = [name for name in columns if name not in UNSTABLE.get(table, ())]
            named = ", ".join(f'"{name}"' for name in kept)
            rows = connection.execute(f'SELECT {named} FROM "{table}"')  # noqa: S608
            found[table] = sorted(rows.fetchall(), key=repr)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def agent(path: Path) -> Iterator[Agent]:
    agent = Agent(path)
    yield agent
    assert agent.agrees()
    agent.memory.close()


TOPICS = ("pottery", "sailing", "chess", "gardening", "violin", "cycling")


def lived(agent: Agent) -> list[int]:
    """Sixty memories in six sessions, some of which were used."""
    numbers = []
    for session, topic in enumerate(TOPICS):
        numbers += agent.remember(
            *(f"We spoke of {topic} with {topic[::-1]} on occasion {place}" for place in range(9)),
            "Thanks!", days=session / 10, session=f"session {session}",
        )  # fmt: skip
    for place in range(8):
        agent.used(numbers[place], numbers[place + 12], days=0.7 + place / 1000)
    for place in range(3):
        agent.used(numbers[20], numbers[21], days=0.8 + place / 1000)
    agent.accessed(numbers[20], numbers[21], numbers[30], days=1.0)
    return numbers


# -- As a whole ----------------------------------------------------------------------------------


def test_every_step_applies_once_in_its_period(agent: Agent) -> None:
    lived(agent)
    seen: set[str] = set()
    for days in (1.1, 2, 32, 62, 96, 130, 200, 420):
        done = agent.sleep(days)
        before, revision = content_of(agent.path), agent.space.revision
        assert agent.sleep(days) == {}
        assert agent.sleep(days + 0.01) == {}
        assert agent.space.revision == revision
        assert content_of(agent.path) == before
        assert agent.agrees()
        seen |= done.keys()
    assert {name.split(":")[0] for name in seen} == {
        "window", "strengthen", "candidates", "prune", "staircase", "archive", "adaptive", "shapes",
    }  # fmt: skip


class Killed(BaseException):
    """The process ends here."""


def test_a_crash_in_the_middle_does_nothing_and_the_next_run_everything(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(path)
    lived(agent)
    agent.sleep(1.1)
    other = tmp_path / "undisturbed.db"
    agent.memory.backup(other)
    for name in [step.name for step in FADING_STEPS]:
        before = content_of(path)
        with monkeypatch.context() as patch:
            patch.setattr(ledger, "put_step", _die)
            try:
                agent.sleep(100, name)
            except Killed:
                assert content_of(path) == before
        agent.sleep(100, name)
    assert agent.agrees()
    agent.memory.close()
    undisturbed = Agent(other)
    undisturbed.sleep(100)
    undisturbed.memory.close()
    assert content_of(path) == content_of(other)


def _die(*_: object) -> None:
    raise Killed


def test_a_crash_between_two_parts_loses_and_repeats_nothing(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(agent)
    agent.sleep(1.1)
    monkeypatch.setattr(fading, "PORTION", 3)
    parts = 0

    def second_part_dies(*given: Any) -> None:
        nonlocal parts
        parts += 1
        if parts == 2:
            raise Killed
        kept(*given)

    kept = ledger.put_step
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "put_step", second_part_dies)
        with pytest.raises(Killed):
            agent.sleep(100, "prune")
    left = len(agent.store.idle_links(agent.space, to_micros(at(50)), now=to_micros(at(100))))
    done = agent.sleep(100, "prune")["prune: pruned"]
    assert 0 < done <= left
    assert agent.sleep(101, "prune") == {}


def test_two_cycles_at_once_do_nothing_twice(path: Path, tmp_path: Path) -> None:
    agents = [Agent(path)]
    lived(agents[0])
    alone = tmp_path / "alone.db"
    agents[0].memory.backup(alone)
    agents.append(Agent(path))
    done: list[dict[str, int]] = []
    for days in (1.1, 100.0):
        start = threading.Barrier(2)

        def cycle(agent: Agent, days: float = days, start: threading.Barrier = start) -> None:
            start.wait()
            done.append(agent.sleep(days))

        threads = [threading.Thread(target=cycle, args=(agent,)) for agent in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(done) == 4
    for agent in agents:
        for days in (1.1, 100.0):
            assert agent.sleep(days) == {}
        assert agent.agrees()
        agent.memory.close()
    only = Agent(alone)
    expected = [only.sleep(days) for days in (1.1, 100.0)]
    only.memory.close()
    both = {name: sum(one.get(name, 0) for one in done) for one in done for name in one}
    assert both == {name: sum(one.get(name, 0) for one in expected) for name in both}
    assert events_of(path) == events_of(alone)


def events_of(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT type, credits, signal FROM events")
        return sorted(rows.fetchall(), key=repr)


# -- What use says -------------------------------------------------------------------------------


def test_what_was_used_soon_after_each_other_is_joined_once(agent: Agent) -> None:
    a, b, c, d = agent.remember("one thing", "second thing", "third matter", "fourth matter")
    agent.used(a, days=1.0)
    agent.used(b, days=1.0001)
    agent.remember(*(f"and then {place}" for place in range(9)), days=1.49)
    agent.used(c, d, days=1.5)  # hours later: another stretch
    assert agent.sleep(1.6, "window") == {"window: events": 1}
    assert agent.strength(a, b, 1.6) == pytest.approx(0.05, rel=1e-3)
    assert agent.strength(a, c, 1.6) is None
    agent.used(a, days=1.7)
    agent.used(b, days=1.7001)
    assert agent.sleep(1.8, "window") == {}  # they are joined already


def test_the_next_night_sees_what_came_just_before_it(agent: Agent) -> None:
    a, b = agent.remember("one thing", "second thing")
    agent.used(a, days=1.0)
    assert agent.sleep(1.0001, "window") == {}
    agent.used(b, days=1.0003)
    assert agent.sleep(1.1, "window") == {"window: events": 1}


def test_the_uses_of_two_principals_are_not_joined(agent: Agent) -> None:
    a, b = agent.remember("one thing", "second thing")
    agent.used(a, days=1.0, principal="ann")
    agent.used(b, days=1.0001, principal="bob")
    assert agent.sleep(1.1, "window") == {}


def test_a_bad_outcome_joins_nothing(agent: Agent) -> None:
    a, b = agent.remember("one thing", "second thing")
    agent.used(a, days=1.0)
    agent.used(b, days=1.0001, outcome=-1.0)
    assert agent.sleep(1.1, "window") == {}


def test_what_was_used_today_is_strengthened_once(agent: Agent) -> None:
    a, b = agent.remember("one thing", "second thing")
    agent.used(a, b, days=1.0)
    before = agent.strength(a, b, 1.1)
    assert before is not None
    assert agent.sleep(1.1, "strengthen") == {"strengthen: events": 1}
    after = agent.strength(a, b, 1.1)
    assert after == pytest.approx(before + (1 - before) * 0.05, rel=1e-6)
    for days in (1.2, 2.0, 3.0):  # a night's own signal is no outcome
        assert agent.sleep(days, "strengthen") == {}


def test_what_was_used_longer_ago_or_is_strong_is_not_strengthened(agent: Agent) -> None:
    a, b, c, d = agent.remember("one thing", "second thing", "third matter", "fourth matter")
    agent.used(a, b, days=1.0)
    for place in range(20):
        agent.used(c, d, days=2.5 + place / 1e5, principal=str(place))
    assert agent.sleep(3.0, "strengthen") == {}


# -- What is alike -------------------------------------------------------------------------------


def test_likeness_makes_candidates_that_use_confirms_and_pruning_removes(agent: Agent) -> None:
    a, b = agent.remember("the cat sat on the old mat", "rain fell on every roof", session="s")
    c, d = agent.remember("a cat sat on the old mat", "rain fell on each roof", days=1.0)
    done = agent.sleep(1.1, "candidates")
    assert done == {"candidates: events": 2}
    assert agent.sleep(1.2, "candidates") == {}
    assert agent.strength(a, c, 1.1) == pytest.approx(0.05)
    agent.used(b, d, days=2.0)
    assert agent.sleep(70, "prune") == {"prune: pruned": 1}
    assert agent.strength(a, c, 70) is None
    assert agent.strength(b, d, 70) is not None
    assert agent.sleep(70, "candidates") == {}  # proposed once, and refuted


def test_linked_polite_and_following_turns_are_no_candidates(agent: Agent) -> None:
    agent.remember("a cat sat on the mat", "a cat sat on the mat", session="s")
    agent.remember("Thank you very much!", "Thank you very much!")
    a, b = agent.remember("snow lay deep in the valley", "snow lay deep in that valley")
    agent.store.link(agent.space, a, b, "related", now=1)
    assert agent.sleep(1.0, "candidates") == {}


def test_a_rule_without_a_rate_for_likeness_makes_none(agent: Agent) -> None:
    agent.remember("a cat sat on the mat", "a cat sat on that mat")
    agent.store.replay(agent.space, ATAMAIA_RULE)
    assert agent.sleep(1.0, "candidates") == {}


def test_a_memory_of_many_likenesses_gets_few(agent: Agent) -> None:
    numbers = agent.remember(*(f"the cat sat on the mat again {place}" for place in range(12)))
    agent.sleep(1.0, "candidates")
    events = list(agent.store.iterate_events(agent.space))
    newest = [event for event in events if event.items[-1][0] == numbers[-1]]
    assert len(newest) == strengthening.LIKENESSES


# -- What fades ----------------------------------------------------------------------------------


def test_a_late_staircase_is_that_of_every_night(tmp_path: Path) -> None:
    found = []
    for name, nights in (("nightly", range(1, 131)), ("late", [131 - 1])):
        agent = Agent(tmp_path / f"{name}.db")
        plain, weighty = agent.remember("plain", days=0)[0], agent.remember("w", importance=9)[0]
        pinned, late = agent.remember("p", pinned=True)[0], agent.remember("later", days=20)[0]
        for days in nights:
            agent.sleep(days + 0.5, "staircase")
        found.append(agent.importance(plain, weighty, pinned, late))
        agent.memory.close()
    assert found[0] == found[1] == [1, 9, 5, 2]


def test_access_and_strong_links_hold_the_staircase(agent: Agent) -> None:
    a, b, c, d = agent.remember("a thing", "other thing", "third", "fourth")
    for place in range(4):
        agent.used(a, b, days=place, principal=str(place))
    agent.accessed(c, days=25)
    agent.sleep(31, "staircase")
    assert agent.importance(a, b, c, d) == [5, 5, 5, 4]


def test_the_unimportant_and_never_accessed_are_archived(agent: Agent) -> None:
    a, b, c = agent.remember("one thing", "second thing", "third", importance=1)
    d = agent.remember("fourth", importance=1, pinned=True)[0]
    agent.accessed(b, days=1)
    agent.remember("young", days=80, importance=1)
    assert agent.sleep(91, "archive") == {"archive: archived": 2}
    assert {b, d} <= agent.active()
    assert not {a, c} & agent.active()


def test_adaptive_forgetting_spares_the_linked_the_recent_and_the_kept(agent: Agent) -> None:
    a, b, c, d = agent.remember("one thing", "second thing", "third", "fourth")
    kept = agent.remember("very important", importance=8) + agent.remember("pin", pinned=True)
    for place in range(5):
        agent.used(a, b, days=place, principal=str(place))
    agent.accessed(c, days=60)
    assert agent.sleep(95, "adaptive") == {"adaptive: archived": 1}
    assert agent.active() == {a, b, c, *kept}
    assert d not in agent.active()


def test_the_active_graph_is_kept_at_its_size(path: Path) -> None:
    agent = Agent(path, replace(SLEEP, most_items=40))
    numbers = lived(agent)
    kept = agent.remember("important", importance=10) + agent.remember("pinned", pinned=True)
    agent.sleep(2.0, "dormant")
    assert agent.graph.items == 39 - len(TOPICS)  # one spare, and room for shapes
    agent.sleep(2.0, "shapes")
    assert agent.graph.items <= 39
    assert set(kept) <= agent.active()
    assert {numbers[20], numbers[21]} <= agent.active()
    polite = {n for n in numbers if agent.store.fetch(agent.space, [n])[0].content == "Thanks!"}
    assert not polite & agent.active()
    assert agent.sleep(2.0, "dormant") == {}
    agent.remember(*(f"another {place}" for place in range(3)), days=3.0)
    agent.sleep(3.0, "dormant", "shapes")
    assert agent.graph.items == 39
    agent.memory.close()


def test_too_many_links_by_rule_lose_the_weakest(path: Path) -> None:
    agent = Agent(path, replace(SLEEP, links_per_item=2))
    a, *others = agent.remember(*(f"matter {place}" for place in range(6)))
    for place, other in enumerate(others[:4]):
        agent.store.link(agent.space, other, a, "related", 0.2 + place / 10, now=1)
    agent.store.link(agent.space, others[4], a, "supports", 0.1, now=1)
    assert agent.sleep(1.0, "cap") == {"cap: pruned": 2}
    left = {link.source for link in agent.store.links(agent.space, a)}
    assert left == {*others[2:]}
    assert agent.sleep(2.0, "cap") == {}
    agent.memory.close()


def told(recall: Recall) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in recall]


def test_restoring_gives_the_rankings_back(agent: Agent) -> None:
    numbers = lived(agent)
    agent.sleep(1.1, "window", "strengthen", "candidates")
    questions = [f"Who spoke of {topic}?" for topic in TOPICS]
    ask = [told(agent.memory.recall(question, now=at(2))) for question in questions]
    assert agent.store.archive(agent.space, numbers[::2], now=to_micros(at(2)))
    assert told(agent.memory.recall(questions[0], now=at(2))) != ask[0]
    agent.store.restore_archived(agent.space, numbers[::2])
    again = [told(agent.memory.recall(question, now=at(2))) for question in questions]
    assert again == ask


# -- Shapes --------------------------------------------------------------------------------------


def shapes_of(agent: Agent) -> list[tuple[int, set[int]]]:
    return [
        (shape.item.number, {source.source for source in shape.sources})
        for shape in agent.store.shapes(agent.space)
    ]


def test_what_is_archived_leaves_one_shape_an_area(agent: Agent) -> None:
    numbers = lived(agent)
    agent.store.archive(agent.space, [*numbers[:5], *numbers[10:15]], now=1)
    assert agent.sleep(2.0, "shapes") == {"shapes: filed": 2}
    members = [own for _, own in shapes_of(agent)]
    assert sorted(map(sorted, members)) == [numbers[:5], numbers[10:15]]
    one = agent.store.shapes(agent.space)[0]
    assert one.item.content.startswith("5 memories about ")
    assert one.item.content.endswith("(1 January 2026) were archived.")
    assert "pottery" in one.item.content
    assert (one.item.kind, one.item.importance, one.maker) == ("shape", 3, "extractive")
    assert agent.store.links(agent.space, one.item.number) == []
    stored = agent.store.vectors(agent.space, [one.item.number, *numbers[:5]])
    vectors = {n: np.frombuffer(blob, "<f2").astype(float) for n, blob in stored.items()}
    mean = np.mean([vectors[number] for number in numbers[:5]], axis=0)
    assert vectors[one.item.number] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-2)
    recall = agent.memory.recall("Who spoke of pottery?", now=at(2))
    assert any("pottery" in shape.content for shape in recall.shapes)


def test_a_shape_follows_its_members(agent: Agent) -> None:
    numbers = lived(agent)
    agent.store.archive(agent.space, numbers[:5], now=1)
    agent.sleep(2.0, "shapes")
    agent.store.restore_archived(agent.space, numbers[:2])
    assert agent.sleep(3.0, "shapes") == {"shapes: filed": 1, "shapes: retired": 1}
    assert [own for _, own in shapes_of(agent)] == [set(numbers[2:5])]
    agent.store.archive(agent.space, numbers[5:7], now=1)
    agent.sleep(4.0, "shapes")
    assert [own for _, own in shapes_of(agent)] == [set(numbers[2:7])]
    agent.store.restore_archived(agent.space, numbers[2:7])
    assert agent.sleep(5.0, "shapes") == {"shapes: retired": 1}
    assert shapes_of(agent) == []


def test_a_deleted_member_is_in_no_shape_from_then_on(agent: Agent) -> None:
    numbers = agent.remember(
        "The zebrafinch sings", "Tea is ready", "Tea is cold", session="garden"
    )
    agent.store.archive(agent.space, numbers, now=1)
    agent.sleep(2.0, "shapes")
    assert "zebrafinch" in agent.store.shapes(agent.space)[0].item.content
    agent.store.forget(agent.space, numbers[:1])
    assert shapes_of(agent) == []  # its words are of what is gone
    assert agent.sleep(3.0, "shapes") == {"shapes: filed": 1}
    assert [own for _, own in shapes_of(agent)] == [set(numbers[1:])]
    assert "zebrafinch" not in agent.store.shapes(agent.space)[0].item.content
    agent.store.forget(agent.space, numbers[1:])
    assert shapes_of(agent) == []
    assert agent.sleep(4.0, "shapes") == {}


def test_shapes_of_sessions_become_those_of_months(agent: Agent) -> None:
    numbers = lived(agent)
    agent.store.archive(agent.space, numbers, now=1)
    assert agent.sleep(2.0, "shapes") == {"shapes: filed": len(TOPICS)}
    assert agent.sleep(400.0, "shapes") == {"shapes: filed": 1, "shapes: retired": len(TOPICS)}
    assert [own for _, own in shapes_of(agent)] == [set(numbers)]


def test_shapes_do_not_fade_themselves(agent: Agent) -> None:
    numbers = lived(agent)
    agent.store.archive(agent.space, numbers[:5], now=1)
    agent.sleep(2.0, "shapes")
    number = shapes_of(agent)[0][0]
    for days in (100, 200, 300):
        agent.sleep(days, "staircase", "archive", "adaptive")
    assert agent.importance(number) == [3]
    assert number in agent.active()


# -- The prior -----------------------------------------------------------------------------------


def test_the_prior_is_made_of_the_graph_as_it_is(agent: Agent) -> None:
    lived(agent)
    assert agent.sleep(1.1)
    assert "synapse" not in agent.graph.cache
    assert agent.sleep(1.1, prior=synapse.prior) == {}
    assert "synapse" in agent.graph.cache


def test_replay_by_another_rule_agrees_with_what_the_nights_logged(agent: Agent) -> None:
    lived(agent)
    for days in (1.1, 2.0, 70.0):
        agent.sleep(days)
    for rule in (HELA_MEM_RULE, ATAMAIA_RULE, COFIRE_RULE):
        agent.store.replay(agent.space, rule)
        assert agent.agrees()

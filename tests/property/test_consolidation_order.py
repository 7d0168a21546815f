"""Whatever order things are told, edited, deleted and slept over in: what is known at the end is
what a store that was told the final texts in order of time would know."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from cofire import Memory
from cofire.types import SemanticRecord

BEGUN = datetime(2024, 1, 1, tzinfo=UTC)
NIGHT = datetime(2024, 8, 1, 3, tzinfo=UTC)
SAID = (
    "I live in Bergen.", "I live in Oslo.", "I moved to Oslo!", "I am living in Rome.",
    "I love tea.", "I hate tea now", "My favourite colour is blue.", "My favourite color is red",
    "I speak French.", "The weather is nice.", "I've lived in Rome since 2019.",
    "I live in Oslo. I love tea.", "I moved to Bergen last week.",
)  # fmt: skip


@dataclass(frozen=True)
class Say:
    who: str
    text: str
    day: int


@dataclass(frozen=True)
class Edit:
    which: int
    text: str


@dataclass(frozen=True)
class Forget:
    which: int


@dataclass(frozen=True)
class Sleep:
    pass


Act = Say | Edit | Forget | Sleep
texts = st.sampled_from(SAID)
places = st.integers(0, 9)
say = st.builds(Say, st.sampled_from(["Ada", "Ada", "Robin"]), texts, st.integers(0, 120))
acts: st.SearchStrategy[list[Act]] = st.lists(
    say | say | say | st.builds(Edit, places, texts) | st.builds(Forget, places) | st.just(Sleep()),
    min_size=3,
    max_size=12,
)


@dataclass(slots=True)
class Told:
    """A memory that is there: its id, and what it says."""

    id: str
    who: str
    text: str
    time: datetime


class World:
    """A memory, what is in it, and how many nights it has slept."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.told: list[Told] = []
        self.nights = 0

    def do(self, act: Act) -> None:
        match act:
            case Say(who, text, day):
                taken = {one.time for one in self.told}
                time = BEGUN + timedelta(days=day)
                while time in taken:  # of two at one time the later comer holds
                    time += timedelta(minutes=1)
                self.say(who, text, time)
            case Edit(which, text) if self.told:
                one = self.told[which % len(self.told)]
                now = NIGHT + timedelta(days=self.nights)
                self.memory.update(one.id, content=text, now=now)
                one.text = text
            case Forget(which) if self.told:
                one = self.told.pop(which % len(self.told))
                self.memory.forget(one.id)
            case Sleep():
                self.sleep()

    def say(self, who: str, text: str, time: datetime) -> None:
        now = NIGHT + timedelta(days=self.nights)
        id = self.memory.remember(text, speaker=who, time=time, now=now).id
        self.told.append(Told(id, who, text, time))

    def sleep(self) -> None:
        now = NIGHT + timedelta(days=self.nights)
        (report,) = self.memory.consolidate(("verify", "facts"), now=now)
        assert not report.failed, report
        self.nights += 1

    def known(self) -> list[tuple[object, ...]]:
        """Every record, by what it says, from when until when, and on whose words it rests."""
        by_id = {one.id: one for one in self.told}
        return sorted((_facts(record, by_id) for record in self.memory.records()), key=repr)


def _facts(record: SemanticRecord, by_id: dict[str, Told]) -> tuple[object, ...]:
    said = sorted((by_id[quote.id].time, by_id[quote.id].text) for quote in record.evidence)
    value = (record.value or "").casefold()
    return (record.subject, record.slot, value, record.valid_from, record.valid_to, tuple(said))


def fresh(path: Path, told: Sequence[Told]) -> list[tuple[object, ...]]:
    with Memory.open(path, embedder="hashing:64") as memory:
        world = World(memory)
        for one in sorted(told, key=lambda one: one.time):
            world.say(one.who, one.text, one.time)
        if told:
            world.sleep()
        return world.known()


@settings(max_examples=40, deadline=None)
@given(acts=acts)
def test_any_order_ends_in_the_same_knowledge(acts: list[Act]) -> None:
    check(acts)


def check(acts: Sequence[Act]) -> None:
    """Does the acts and compares the end with that of a fresh store."""
    with tempfile.TemporaryDirectory() as folder:
        with Memory.open(Path(folder) / "m.db", embedder="hashing:64") as memory:
            world = World(memory)
            for act in acts:
                world.do(act)
            if not world.told:
                return
            world.sleep()
            known = world.known()
            assert memory.check() == []
            world.sleep()
            assert world.known() == known
        assert known == fresh(Path(folder) / "fresh.db", world.told)

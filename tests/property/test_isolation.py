"""Nothing of one space shows in another: whatever several agents of several tenants do in one
store, each gets what it would get if it were alone there, to the last count and score."""

from __future__ import annotations

import io
import itertools
import logging
import re
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cofire import Memory, learning
from cofire.errors import CofireError
from cofire.types import Recall
from postgres_fixtures import make_store
from postgres_server import Address, fresh_database, template_with

START = datetime(2024, 6, 12, 10, tzinfo=UTC)
WORDS = ("boat", "dock", "kiln", "Tuesday", "parrot", "soup", "Ada", "Sam", "likes", "repaired")
PREFIXES = itertools.count()
PROJECT = "regatta"


@dataclass(frozen=True, kw_only=True)
class Agent:
    """Whose memory it is. Tenants use the same names, so that only the tenant differs."""

    tenant: str
    identity: str
    user: str | None = None
    shares: bool = False

    @property
    def own(self) -> str:
        return "/".join((self.tenant, self.identity, self.user or ""))

    @property
    def spaces(self) -> tuple[str, ...]:
        return (self.own, f"{self.tenant}/{PROJECT}") if self.shares else (self.own,)


AGENTS = (
    Agent(tenant="north", identity="ann", shares=True),
    Agent(tenant="north", identity="bob", shares=True),
    Agent(tenant="north", identity="ann", user="eve"),
    Agent(tenant="south", identity="ann", shares=True),
    Agent(tenant="south", identity="ann", user="eve"),
)
SPACES = sorted({space for agent in AGENTS for space in agent.spaces})
RARE = ("zanzibar", "quixotix", "wolfram", "xylophon", "vermouth", "juggernaut", "hyacinth")
SECRETS = dict(zip(SPACES, RARE, strict=True))
"""A word of each space's own, which is in every text of it."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one agent does; the numbers choose among what it has."""

    agent: int
    verb: str
    words: tuple[str, ...]
    first: int
    second: int


VERBS = (
    *("remember",) * 5,
    *("recall",) * 3,
    *("feedback",) * 2,
    *("link", "listing", "get", "export", "consolidate", "forget", "hydrate", "learned"),
    *("update", "archive", "intrude", "intrude"),
)
steps = st.lists(
    st.builds(
        Step,
        agent=st.integers(0, len(AGENTS) - 1),
        verb=st.sampled_from(VERBS),
        words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(tuple),
        first=st.integers(0, 9),
        second=st.integers(0, 9),
    ),
    min_size=6,
    max_size=24,
)


@dataclass
class World:
    """Some agents' memories in one store, and what each was told."""

    prefix: str
    memories: dict[Agent, Memory]
    ids: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    recalls: dict[Agent, list[Recall]] = field(default_factory=lambda: defaultdict(list))
    told: dict[Agent, list[str]] = field(default_factory=lambda: defaultdict(list))

    def run(self, at: int, step: Step, agent: Agent) -> None:
        memory, now = self.memories[agent], START + timedelta(minutes=at)
        self.note(agent, step.verb, lambda: getattr(self, step.verb)(memory, agent, step, now))
        # What was asked is written a moment later by itself: write it now, here as in the twin.
        self.note(agent, "stats", lambda: memory.stats().spaces)

    def note(self, agent: Agent, verb: str, call: Callable[[], object]) -> None:
        try:
            answer = repr(call())
        except CofireError as exc:
            answer = f"{type(exc).__name__}: {exc}"
        hidden = [word for space, word in SECRETS.items() if space not in agent.spaces]
        assert not any(word in answer.lower() for word in hidden), (agent, verb, answer)
        self.told[agent].append(f"{verb}: {plain(answer, self.prefix)}")

    def look_around(self, agent: Agent) -> None:
        memory, step = self.memories[agent], Step(agent=0, verb="", words=WORDS, first=0, second=0)
        for verb in (self.listing, self.export, self.learned):
            self.note(agent, verb.__name__, partial(verb, memory, agent, step, START))

    def seen(self, agent: Agent) -> list[str]:
        return [id for space in agent.spaces for id in self.ids[space]]

    def one_of(self, agent: Agent, number: int) -> str:
        ids = self.seen(agent)
        return ids[number % len(ids)] if ids else str(uuid.UUID(int=7 << 76))

    # The verbs

    def remember(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        space = agent.spaces[step.first % len(agent.spaces)]
        receipt = memory.remember(
            " ".join((*step.words, SECRETS[space])),
            project=None if space == agent.own else PROJECT,
            key=f"note {step.second}" if step.second < 3 else None,
            session="talk" if step.second > 6 else None,
            speaker=step.words[0],
            now=now,
            time=now,
        )
        self.ids[space] += [id for id in receipt.ids if id not in self.ids[space]]
        return receipt

    def recall(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        # A question is kept in every space that it finds something in.
        query = " ".join((*step.words, *(SECRETS[agent.spaces[-1]],) * (step.first % 2)))
        found = memory.recall(query, now=now, explain=True)
        self.recalls[agent].append(found)
        return found

    def feedback(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        recalls = [one for one in self.recalls[agent] if len(one)]
        if not recalls:
            return None
        recall = recalls[step.first % len(recalls)]
        return memory.feedback(recall, used=recall.ids[: 1 + step.second % 3], now=now)

    def link(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        one, other = self.one_of(agent, step.first), self.one_of(agent, step.second)
        return memory.link(one, other, "supports", now=now)

    def listing(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        kinds = ("cue", "concept", "gist", "shape", "word", "fact", "episode")
        shown = memory.list(), memory.list(kinds=kinds), memory.list(archived=True)
        return shown, memory.records(), memory.shapes(), memory.quarantine(), memory.receipts()

    def get(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        id = self.one_of(agent, step.first)
        return memory.get(id), memory.history(id), memory.links(id)

    def export(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        stream = io.BytesIO()
        counts = memory.export(stream)
        text = stream.getvalue().decode().lower()
        hidden = [word for space, word in SECRETS.items() if space not in agent.spaces]
        assert not any(word in text for word in hidden)
        assert any(SECRETS[space] in text for space in agent.spaces if self.ids[space]) or not any(
            self.ids[space] for space in agent.spaces
        )
        return counts

    def consolidate(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        return memory.consolidate(generator="none", now=now + timedelta(days=1))

    def forget(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        id = self.one_of(agent, step.first)
        deletion = memory.forget(id, now=now)
        for space in agent.spaces:
            self.ids[space] = [one for one in self.ids[space] if one not in deletion.ids]
        return deletion, memory.verify(deletion).found

    def hydrate(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        cue = " ".join(step.words) if step.first % 2 else None
        return memory.hydrate(cue, seed=step.second, now=now)

    def learned(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        one, other = self.one_of(agent, step.first), self.one_of(agent, step.second)
        why = () if one == other else memory.why(one, other)
        return memory.strengths(now=now), memory.proposals(1), why, memory.reports(2)

    def update(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        id = self.one_of(agent, step.first)
        secret = next((SECRETS[space] for space in agent.spaces if id in self.ids[space]), "")
        return memory.update(id, content=" ".join((*step.words, secret)), now=now)

    def archive(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        return memory.archive(self.one_of(agent, step.first), now=now)

    def intrude(self, memory: Memory, agent: Agent, step: Step, now: datetime) -> object:
        """Uses what another space has as if it were its own, and learns nothing by it: it is told
        the same as of what never was."""
        theirs = [
            id for space, ids in sorted(self.ids.items()) if space not in agent.spaces for id in ids
        ]
        asked = [
            recall.id
            for other, recalls in self.recalls.items()
            if not set(other.spaces) & set(agent.spaces)
            for recall in recalls
        ]
        own = self.one_of(agent, step.second)
        for id, recall in itertools.zip_longest(theirs[-3:], asked[-2:]):
            if id is not None:
                assert attempts(memory, id, own, now) == attempts(memory, unknown(), own, now)
            if recall is not None:
                assert refused(lambda: memory.feedback(recall, used=own, now=now)) == refused(  # noqa: B023
                    lambda: memory.feedback(unknown(), used=own, now=now)
                )
        return None


def attempts(memory: Memory, id: str, own: str, now: datetime) -> list[str]:
    """What the verbs that take an id say of it."""
    return [
        refused(call)
        for call in (
            lambda: memory.get(id),
            lambda: memory.history(id),
            lambda: memory.links(id),
            lambda: memory.update(id, content="mine", now=now),
            lambda: memory.link(own, id, now=now),
            lambda: memory.link(id, own, now=now),
            lambda: memory.strengthen(own, id, now=now),
            lambda: memory.why(own, id),
            lambda: memory.forget(id, now=now),
            lambda: memory.forget(id, now=now, dry_run=True),
            lambda: memory.archive(id, now=now),
            lambda: memory.unarchive(id),
            lambda: memory.conclude(id, now=now),
            lambda: memory.verify(id),
            lambda: memory.feedback(id, used=id, now=now),
        )
    ]


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(CofireError) as refusal:
        call()
    return f"{type(refusal.value).__name__}: {plain(str(refusal.value), '')}"


def unknown() -> str:
    return str(uuid.uuid4())


_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER = re.compile(r"\bnumber=(\d+)")
_CLOCK = re.compile(r"\bseconds=[\d.e-]+|scrubbed='\w+'|timings={[^}]*}")


def plain(answer: str, prefix: str) -> str:
    """Without what differs between two stores: ids, names of tenants, how long it took."""
    text = _ID.sub("ID", answer.replace(prefix, "") if prefix else answer)
    text = _NUMBER.sub(lambda match: f"number={int(match[1]) & 0xFFFFFFFF}", text)
    return _CLOCK.sub("", text)


@contextmanager
def world(place: str | Path, agents: Sequence[Agent]) -> Iterator[World]:
    prefix = f"tenant-{next(PREFIXES)}-"
    with ExitStack() as opened:
        yield World(
            prefix=prefix,
            memories={
                agent: opened.enter_context(
                    Memory.open(
                        place,
                        agent.identity,
                        agent.user,
                        [PROJECT] if agent.shares else (),
                        tenant=prefix + agent.tenant,
                        embedder="hashing:32",
                    )
                )
                for agent in agents
            },
        )


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """All that is logged, by whomever."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root, log = logging.getLogger(), logging.getLogger("cofire")
    levels = root.level, log.level
    root.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        root.removeHandler(handler)
        root.setLevel(levels[0])
        log.setLevel(levels[1])


def everybody(place: str | Path, script: Sequence[Step]) -> dict[Agent, list[str]]:
    """What each agent is told where all of them use one store."""
    with logged() as log, world(place, AGENTS) as all_:
        for at, step in enumerate(script):
            all_.run(at, step, AGENTS[step.agent])
        for agent in AGENTS:
            all_.look_around(agent)
    assert not any(word in log.getvalue().lower() for word in SECRETS.values())
    return all_.told


def alone(script: Sequence[Step], agents: Sequence[Agent]) -> dict[Agent, list[str]]:
    """What these agents are told where nobody else ever was."""
    with tempfile.TemporaryDirectory() as folder, world(Path(folder, "m.db"), agents) as few:
        for at, step in enumerate(script):
            if AGENTS[step.agent] in few.memories:
                few.run(at, step, AGENTS[step.agent])
    return few.told


def holds(place: str | Path, script: Sequence[Step]) -> None:
    with patch.object(learning, "PATIENCE", 0.0):  # nobody else writes: nothing to wait for
        told = everybody(place, script)
        for agents in ([AGENTS[2]], [one for one in AGENTS if one.tenant == "north"]):
            for agent, wanted in alone(script, agents).items():
                assert told[agent][: len(wanted)] == wanted


some = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.reuse, Phase.generate],  # making a failure smaller would take minutes
)


@given(steps)
@settings(some, max_examples=5)
def test_nothing_leaks_in_sqlite(script: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        holds(Path(folder, "m.db"), script)


@pytest.fixture(scope="module")
def postgres_url(postgres_server: Address) -> Iterator[str]:
    template = template_with(postgres_server, "cofire_template", make_store)
    with fresh_database(postgres_server, template=template) as database:
        yield database.app_url


@given(script=steps)
@settings(some, max_examples=3)
def test_nothing_leaks_in_postgresql(postgres_url: str, script: list[Step]) -> None:
    holds(postgres_url, script)  # tenants of other examples are there, too

"""Workers that consolidate in processes of their own, and ways to stop them in the middle.

Their functions are called by name in new processes, so they live in a module that can be imported.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest
from sqlalchemy import Table, select

from cofire import Memory
from cofire.consolidation import cycle
from cofire.models.generator import Generation
from cofire.settings import load_settings
from cofire.store import Store, ledger, open_store
from cofire.store.records import SpaceInfo
from cofire.store.schema import SPACE_TABLES
from cofire.store.session import Query, Session, of_space
from cofire.testing import ScriptedGenerator
from cofire.types import Message, SleepReport, SpaceRef
from scripts_of_models import echo

DAWN = datetime.fromisoformat("2023-06-01T08:00:00+00:00")
NIGHT = DAWN + timedelta(days=150, hours=19)
LEASE = 0.3
"""Seconds after which a worker that was stopped is taken over."""
PROJECTS = ("north", "south")
NAMES = ("Mira", "Jonas", "Priya", "Wojtek")
PLACES = ("Bergen", "Oslo", "Porto", "Turku")
BEGUN, INSIDE, AFTER = "begun", "inside", "after"
"""Where a worker is killed: before a step, in the transaction of its first part, right after it."""


def at(days: float) -> datetime:
    return DAWN + timedelta(days=days)


def opened(url: str, projects: tuple[str, ...] = (), *, lease: float = LEASE) -> Memory:
    settings = load_settings(claim_seconds=lease, embedder="hashing:64")
    return Memory.open(url, projects=projects, settings=settings)


def lived(url: str) -> None:
    """Half a year of an agent, with work for nearly every step: facts, some that end others and
    one whose evidence was edited, goals, use that teaches, and much that nobody asked for again."""
    with opened(url) as memory:
        ids = [memory.remember(message, now=message.time).id for message in _messages()]
        memory.consolidate(("facts", "distil", "concepts"), now=at(40), generator=model())
        memory.update(ids[1], content="I live in Gdansk.", now=at(41))
        for day in (100, 149.9, 150.5):
            recall = memory.recall("Who likes sailing in Bergen?", now=at(day))
            memory.feedback(recall, recall.ids[:3], recall.ids[-1:], now=at(day))


def shared(url: str) -> None:
    """Several spaces that nobody has consolidated yet."""
    with opened(url, PROJECTS) as memory:
        for project in (None, *PROJECTS):
            for message in _messages()[:9]:
                memory.remember(message, now=message.time, project=project)


def _messages() -> list[Message]:
    told = []
    for day in range(12):
        name, place = NAMES[day % 4], PLACES[day // 4 % 4]
        told += [
            Message(
                content=text, speaker=name, session=f"day {day}", importance=1 if day < 6 else 4,
                time=at(day + hour / 100),
            )
            for hour, text in enumerate((
                f"I went sailing near {place} with {NAMES[(day + 1) % 4]} today, number {day}.",
                f"I live in {place}." if day % 5 == 0 else f"I love soup number {day}.",
                f"I need to call {NAMES[(day + 2) % 4]} about the boat in {place}.",
            ))
        ]  # fmt: skip
    return told


def model(wait: Callable[[Generation], object] | None = None) -> ScriptedGenerator:
    return ScriptedGenerator(then=echo, name="echo", wait=wait)


def slept(memory: Memory, **options: Any) -> tuple[SleepReport, ...]:
    return memory.consolidate(now=NIGHT, generator=options.pop("generator", model()), **options)


# What ends a worker


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die(step: str, moment: str) -> None:
    """From now on this process is killed at that moment of that step."""
    patched = pytest.MonkeyPatch()  # for good
    if moment == BEGUN:
        run = cycle._run_step

        def begun(night: Any, one: Any) -> Any:
            return kill() if one.name == step else run(night, one)

        patched.setattr(cycle, "_run_step", begun)
    elif moment == INSIDE:
        put = ledger.put_step

        def inside(session: Any, space: Any, row: Any) -> None:
            put(session, space, row)
            if row.name == step:
                kill()

        patched.setattr(ledger, "put_step", inside)
    else:
        apply = Store.apply

        def after(self: Store, space: Any, plan: Any, row: Any = None, **given: Any) -> Any:
            applied = apply(self, space, plan, row, **given)
            return kill() if row.name == step else applied

        patched.setattr(Store, "apply", after)


def wait_until_free(url: str) -> None:
    """Waits until the claim of whoever died before has expired."""
    with open_store(url) as store:
        space = store.space(SpaceRef(identity="default"), create=False)
        assert space is not None
        while store.held(space) is not None:
            time.sleep(0.01)


# Workers: each is given a connection for what it has to say


def dying(told: Connection, url: str, step: str, moment: str) -> None:
    """Consolidates until it is killed, and tells of each step that is done."""
    with opened(url) as memory:
        die(step, moment)
        wait_until_free(url)
        slept(memory, told=lambda done: told.send((done.name, dict(done.counts))))
    told.send("survived")


def asking(told: Connection, url: str, lease: float) -> None:
    """Consolidates; its model answers its first question when it is told to. Tells its reports."""
    asked = []

    def wait(request: Generation) -> None:
        asked.append(request)
        if len(asked) == 1:
            told.send("asking")
            told.recv()

    with opened(url, lease=lease) as memory:
        told.send(slept(memory, generator=model(wait)))


def racing(told: Connection, url: str, start: Barrier) -> None:
    """Consolidates several spaces at the same moment as others. Tells its reports."""
    with opened(url, PROJECTS, lease=30) as memory:
        start.wait(30)
        told.send(slept(memory, generator=model(lambda _: time.sleep(0.05))))


# What is left


def state(url: str, ref: SpaceRef) -> dict[str, list[Any]]:
    """Every row of a space, but for what two runs of the same may differ in: random ids, claims,
    and the reports with their durations."""
    with open_store(url) as store:
        space = store.space(ref, create=False)
        assert space is not None
        backend = store._backend
        return {
            table.name: sorted(
                backend.read(of_space(space), partial(_rows, table, space)), key=repr
            )
            for table in SPACE_TABLES
            if table.name not in {"claims", "consolidations"}
        }


def _rows(table: Table, space: SpaceInfo, session: Session) -> list[Any]:
    kept = [column for column in table.columns if column.name != "uid"]
    here = table.c.tenant == space.tenant_id, table.c.space == space.space_id
    return session.all(Query(lambda _: select(*kept).where(*here)))

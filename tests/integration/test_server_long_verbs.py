"""Verbs that take long: they leave threads to the others, and wait for nobody's claim."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import httpx2
import pytest

from cofire.errors import LimitedError
from cofire.memories import Memories
from cofire.memory import Memory
from cofire.server.access import EVERYTHING, Caller, Where, local_caller
from cofire.server.actions import LONG, Action
from cofire.server.service import Service
from cofire.store.claims import Claim
from serving import HASHING, running_server

AT_ONCE = 5.0
"""Seconds, with much to spare on a busy machine; claims are held for sixty."""


def key(number: int) -> Caller:
    return Caller(
        name=f"key {number}", tenant="default", identities=None, users=None, projects=None,
        scopes=EVERYTHING, key=bytes([number]) * 16,
    )  # fmt: skip


class Bench:
    """A service of four threads, and verbs that take until they are released."""

    def __init__(self, memories: Memories) -> None:
        self.service = Service(memories, threads=4)
        self.released = threading.Event()

    async def ask(self, caller: Caller, action: Action) -> None:
        def verb(memory: Memory) -> None:
            assert self.released.wait(30)

        await self.service.run(caller, action, Where(), verb, surface="rest")

    async def refused(self, caller: Caller, action: Action) -> LimitedError:
        with pytest.raises(LimitedError) as raised, anyio.fail_after(AT_ONCE):
            await self.ask(caller, action)
        return raised.value


def bench(path: Path, work: Callable[[Bench], Awaitable[None]]) -> None:
    """Runs `work` in an event loop; what takes long is released afterwards."""

    async def run(memories: Memories) -> None:
        made = Bench(memories)
        try:
            await work(made)
        finally:
            made.released.set()
        assert made.service.running == 0

    with Memories.open(path / "memory.db", embedder=HASHING) as memories:
        anyio.run(run, memories)


@pytest.mark.parametrize("action", sorted(LONG))
def test_what_takes_long_has_half_the_threads(tmp_path: Path, action: Action) -> None:
    async def work(bench: Bench) -> None:
        async with anyio.create_task_group() as group:
            for one in (Action.CONSOLIDATE, action):
                group.start_soon(bench.ask, local_caller(), one)
            await anyio.wait_all_tasks_blocked()
            refused = await bench.refused(local_caller(), action)
            assert (refused.overloaded, refused.retry_after) == (True, 5.0)
            with anyio.fail_after(AT_ONCE):
                await bench.service.run(
                    local_caller(), Action.STATS, Where(), Memory.stats, surface="rest"
                )
            bench.released.set()
        await bench.ask(local_caller(), action)  # as soon as there is room

    bench(tmp_path, work)


def test_a_key_has_one_thing_at_a_time_that_takes_long(tmp_path: Path) -> None:
    async def work(bench: Bench) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(bench.ask, key(1), Action.CONSOLIDATE)
            await anyio.wait_all_tasks_blocked()
            refused = await bench.refused(key(1), Action.EXPORT)
            assert (refused.overloaded, refused.retry_after) == (False, 5.0)
            group.start_soon(bench.ask, key(2), Action.EXPORT)
            await anyio.wait_all_tasks_blocked()
            assert (await bench.refused(key(3), Action.IMPORT)).overloaded
            bench.released.set()
        await bench.ask(key(1), Action.EXPORT)

    bench(tmp_path, work)


def test_what_failed_or_was_denied_keeps_no_place(tmp_path: Path) -> None:
    def fails(memory: Memory) -> None:
        raise ValueError

    async def work(bench: Bench) -> None:
        for _ in range(5):
            with pytest.raises(ValueError):
                await bench.service.run(key(1), Action.CONSOLIDATE, Where(), fails, surface="rest")
        bench.released.set()
        await bench.ask(key(1), Action.CONSOLIDATE)

    bench(tmp_path, work)


def test_a_space_that_a_worker_is_at_is_left_to_it_at_once(tmp_path: Path) -> None:
    with running_server(tmp_path / "memory.db") as running:
        store = running.memories.store
        running.memories.of().remember("The shed key is in the blue tin.")
        (space,) = store.spaces("default")
        claim = store.claim(space, "a worker", 60.0)
        assert isinstance(claim, Claim)
        began = time.monotonic()
        answer = httpx2.post(f"{running.url}/v1/consolidate", json={}, timeout=30)
        assert time.monotonic() - began < AT_ONCE
        (report,) = answer.json()["reports"]
        assert (answer.status_code, report["status"], report["steps"]) == (200, "claimed", [])
        store.release_claim(space, claim)
        (report,) = httpx2.post(f"{running.url}/v1/consolidate", json={}).json()["reports"]
        assert report["status"] == "done"

"""Writing on PostgreSQL: many processes one memory at a time, and one process many at a time."""

from __future__ import annotations

import multiprocessing
import random
import time
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus import ConstantTimeEmbedder, messages
from benchmarks.recall import Figures, timed
from benchmarks.serving import database, encoded, own_space, server_seconds, serving, spending
from cofire.memory import Memory
from cofire.settings import load_settings
from cofire.store import open_store
from cofire.types import SpaceRef

PROCESSES = 4
TENANTS = 10
PROJECTS = 19
"""And the agent's own space: 20 spaces of each tenant."""
EACH = 1_500
"""Memories that each process remembers."""
COMMITS = 2_000
BULK = 30_000
MANY = 10_000


def writers(folder: Path) -> Figures:
    """Memories per second of all processes together, each on disk before the next begins."""
    with serving(folder) as server, database(server) as made:
        figures: Figures = {}
        elsewhere = server.address.url("postgres")  # a database of its own, on the same disk
        for count in (1, PROCESSES):
            taken, _ = _together(_bare, count, elsewhere, COMMITS)
            figures[f"bare INSERTs, committed, {count} at a time [/s]"] = count * COMMITS / taken
        for tenant in range(TENANTS):
            _opened(made.app_url, tenant, ConstantTimeEmbedder()).close()
        before = server_seconds(server)
        taken, told = _together(_write, PROCESSES, made.app_url, EACH)
        spent = server_seconds(server) - before
        every = np.concatenate([times for times, _ in told])
        total = PROCESSES * EACH
        figures["remember one, all processes together [/s]"] = total / taken
        figures["remember one, p50 [ms]"] = float(np.median(every))
        figures["remember one, p99 [ms]"] = float(np.percentile(every, 99))
        here = sum(processor for _, processor in told)
        figures["remember one, processor time of the clients [ms]"] = 1e3 * here / total
        figures["remember one, processor time of the server [ms]"] = 1e3 * spent / total
        taken, _ = _together(_bare, PROCESSES, elsewhere, COMMITS)
        figures["bare INSERTs again [/s]"] = PROCESSES * COMMITS / taken
    return figures


def _together(work: Any, count: int, url: str, each: int) -> tuple[float, list[Any]]:
    """Seconds until all processes are done that began together, and what each tells."""
    processes = multiprocessing.get_context("spawn")
    start = processes.Barrier(count + 1)
    pipes = [processes.Pipe(duplex=False) for _ in range(count)]
    running = [
        processes.Process(target=work, args=(into, start, url, each, number), daemon=True)
        for number, (_, into) in enumerate(pipes)
    ]
    for process in running:
        process.start()
    start.wait(300)
    began = time.perf_counter()
    told = [out.recv() for out, _ in pipes]
    taken = time.perf_counter() - began
    for process in running:
        process.join()
    return taken, told


def _bare(into: Connection, start: Barrier, url: str, each: int, number: int) -> None:
    """The smallest transactions there are."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE IF NOT EXISTS bare_{number} (value bigint)")
        statement = f"INSERT INTO bare_{number} VALUES (%s)"  # noqa: S608 - a number
        start.wait(300)
        for value in range(each):
            connection.execute(statement, (value,))
        into.send(None)


def _opened(url: str, tenant: int, embedder: ConstantTimeEmbedder) -> Memory:
    return Memory.open(
        url, "agent", projects=[f"project {number}" for number in range(PROJECTS)],
        tenant=f"tenant {tenant}", embedder=embedder, settings=load_settings(pool_size=1),
    )  # fmt: skip


def _write(into: Connection, start: Barrier, url: str, each: int, number: int) -> None:
    rng, embedder = random.Random(number), ConstantTimeEmbedder()
    texts = messages(each, seed=10 + number)
    embedder.prepare([message.content for message in texts])
    places = [None, *(f"project {index}" for index in range(PROJECTS))]
    with ExitStack() as opened:
        memories = [
            opened.enter_context(_opened(url, tenant, embedder)) for tenant in range(TENANTS)
        ]
        start.wait(300)
        processor, times = time.process_time(), []
        for message in texts:
            memory, project = rng.choice(memories), rng.choice(places)
            times.append(timed(lambda: memory.remember(message, project=project)))  # noqa: B023
        into.send((times, time.process_time() - processor))


def bulk(folder: Path) -> Figures:
    """Memories per second of one process."""
    texts, embedder = messages(BULK + MANY), ConstantTimeEmbedder()
    embedder.prepare([message.content for message in texts])
    figures: Figures = {}
    with serving(folder) as server, database(server) as made:
        with open_store(made.app_url) as store:
            for batch in (1_000, 5_000):
                space = own_space(store, SpaceRef(identity=f"by {batch}"))
                batches = list(encoded(texts[:BULK], embedder, batch))
                with spending(server) as spent:
                    for items in batches:
                        store.append(space, items)
                name = f"append, {batch:,} in a batch"
                figures[f"{name} [items/s]"] = BULK / spent.clock
                figures[f"{name}, processor time here [µs/item]"] = 1e6 * spent.here / BULK
                figures[f"{name}, that of the server [µs/item]"] = 1e6 * spent.server / BULK
        with Memory.open(made.app_url, embedder=embedder) as memory, spending(server) as spent:
            memory.remember(texts[BULK:])
        figures["remember many [items/s]"] = MANY / spent.clock
        figures["remember many, processor time here [µs/item]"] = 1e6 * spent.here / MANY
        figures["remember many, that of the server [µs/item]"] = 1e6 * spent.server / MANY
    return figures

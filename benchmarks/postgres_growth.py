"""One PostgreSQL database with many spaces, and with many tenants."""

from __future__ import annotations

import gc
import multiprocessing
import random
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.corpus import SESSION, ConstantTimeEmbedder, messages, questions
from benchmarks.recall import NOW, WARM, Figures, K, resident, timed
from benchmarks.serving import database, encoded, own_space, server_seconds, serving
from cofire.ids import new_uuid7
from cofire.memory import Memory
from cofire.retrieval.engine import Recaller
from cofire.retrieval.profiles import profile_named
from cofire.settings import load_settings
from cofire.store import open_store
from cofire.store.records import NewItem
from cofire.types import Filters, SpaceRef

if TYPE_CHECKING:
    from postgres_server import Database

SPACE = 1_000
"""Memories of each space."""
PER_TENANT = 20
"""Spaces of each tenant."""
LOADERS = 2
POOL = 10_000
"""Different texts; each space has a stretch of them."""
SAMPLED = 24
"""Spaces of the large database that questions are asked of."""
CACHE_MB = 32
"""Megabytes of graphs of the process that walks through all spaces."""


def growth(size: int, asked: int, folder: Path) -> Figures:
    """The same questions of spaces of 1,000 memories: among many, and alone in a database."""
    spaces = size // SPACE
    with serving(folder, max_wal_size="4GB") as server, database(server) as large:
        figures: Figures = {}
        before, began = server_seconds(server), time.perf_counter()
        wal = _asked_of(large.admin_url, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0]
        _processes(_fill, large.app_url, [range(one, spaces, LOADERS) for one in range(LOADERS)])
        taken = time.perf_counter() - began
        figures[f"memories stored, {LOADERS} processes [/s]"] = size / taken
        figures["that, processor time of the server [µs/item]"] = (
            1e6 * (server_seconds(server) - before) / size
        )
        wal = _asked_of(large.admin_url, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0] - wal
        figures["write-ahead log [bytes/item]"] = float(wal) / size
        _asked_of(large.admin_url, "VACUUM (ANALYZE)")  # autovacuum would, some time
        with database(server) as small:
            _processes(_fill, small.app_url, [range(1)])
            _asked_of(small.admin_url, "VACUUM (ANALYZE)")
            figures |= compared(large, small, spaces, asked)
        (walked,) = _processes(_walk, large.app_url, [range(spaces)])
        figures |= walked
        figures |= sizes(large, size)
    return figures


def _name(space: int) -> SpaceRef:
    return SpaceRef(tenant=f"tenant {space // PER_TENANT}", identity=f"agent {space % PER_TENANT}")


def _texts() -> tuple[list[NewItem], ConstantTimeEmbedder]:
    embedder, texts = ConstantTimeEmbedder(), messages(POOL)
    embedder.prepare([message.content for message in texts])
    return [item for items in encoded(texts, embedder) for item in items], embedder


def _stretch(space: int, length: int) -> range:
    """Which of the texts a space has: whole sessions, one after another."""
    first = random.Random(space).randrange((length - SPACE) // SESSION + 1) * SESSION
    return range(first, first + SPACE)


def _processes(work: Any, url: str, parts: list[range]) -> list[Any]:
    """Runs each part in a process of its own; what each tells."""
    processes = multiprocessing.get_context("spawn")
    pipes = [processes.Pipe(duplex=False) for _ in parts]
    running = [
        processes.Process(target=work, args=(into, url, part), daemon=True)
        for part, (_, into) in zip(parts, pipes, strict=True)
    ]
    for process, (_, into) in zip(running, pipes, strict=True):
        process.start()
        into.close()  # or a process that failed would be waited for
    told = [out.recv() for out, _ in pipes]
    for process in running:
        process.join()
    return told


def _fill(into: Connection, url: str, spaces: range) -> None:
    pool, _ = _texts()
    gc.freeze()
    with open_store(url) as store:
        for number in spaces:
            space = own_space(store, _name(number))
            chosen = _stretch(number, len(pool))
            store.append(space, [replace(pool[at], uid=new_uuid7().bytes) for at in chosen])
    into.send(None)


def compared(large: Database, small: Database, spaces: int, asked: int) -> Figures:
    """Recalls of spaces of a large database and of the only space of a small one, in turns."""
    texts, embedder = messages(POOL), ConstantTimeEmbedder()
    rng, settings = random.Random(5), load_settings(pool_size=1)
    chosen = rng.sample(range(spaces), min(SAMPLED, spaces))
    firsts: tuple[list[float], list[float]] = ([], [])
    times: tuple[list[float], list[float]] = ([], [])
    with ExitStack() as opened:
        sides: list[list[tuple[int, Memory]]] = [[], []]
        for number in chosen:
            for side, (url, space) in enumerate(((small.app_url, 0), (large.app_url, number))):
                began = time.perf_counter()
                ref = _name(space)
                memory = opened.enter_context(
                    Memory.open(
                        url, ref.identity or "", tenant=ref.tenant, create=False,
                        embedder=embedder, settings=settings,
                    )
                )  # fmt: skip
                embedder.prepare(["the first question"])
                memory.recall("the first question", K, now=NOW)
                firsts[side].append(1e3 * (time.perf_counter() - began))
                sides[side].append((space, memory))
        for turn in range(WARM + asked):
            for side in (0, 1) if turn % 2 else (1, 0):
                space, memory = sides[side][turn % len(chosen)]
                stretch = _stretch(space, POOL)
                (question,) = questions(texts[stretch.start : stretch.stop], 1, seed=turn)
                embedder.prepare([question])
                taken = timed(partial(memory.recall, question, K, now=NOW))
                if turn >= WARM:
                    times[side].append(taken)
    figures: Figures = {}
    for name, found in (("open and first recall", firsts), ("recall, warm", times)):
        alone, among = (float(np.median(side)) for side in found)
        figures[f"{name}, only space of its database, p50 [ms]"] = alone
        figures[f"{name}, one of {spaces:,} spaces, p50 [ms]"] = among
        figures[f"{name}, ratio"] = among / alone
    return figures


def _walk(into: Connection, url: str, spaces: range) -> None:
    """Recalls in every space, twice in a row, tenant by tenant; tells what that takes in memory."""
    texts, embedder = messages(POOL), ConstantTimeEmbedder()
    rng, profile = random.Random(6), profile_named("cofire")
    asked = questions(texts, 200)
    embedder.prepare(asked)
    most_graphs, loads = 0, []
    with open_store(url, pool_size=2) as store:
        sizes = [resident()]
        for start in range(0, len(spaces), PER_TENANT):
            recaller = Recaller(store, embedder, embedder, CACHE_MB * 1_000_000)
            for number in spaces[start : start + PER_TENANT]:
                space = store.space(_name(number), create=False)
                assert space is not None
                for index in range(2):
                    ask = partial(
                        recaller.recall, (space,), rng.choice(asked), K,
                        profile=profile, now=NOW, filters=Filters(), semantic=5,
                    )  # fmt: skip
                    taken = timed(ask)
                    if index == 0:
                        loads.append(taken)
                most_graphs = max(most_graphs, recaller.nbytes)
                sizes.append(resident())
            recaller.close()
    into.send(
        {
            "walk: first recall of a space, p50 [ms]": float(np.median(loads)),
            "walk: resident at the beginning [MB]": sizes[0],
            "walk: resident after a tenth of the spaces [MB]": sizes[len(sizes) // 10],
            "walk: resident at most [MB]": max(sizes),
            "walk: graphs at most [MB]": most_graphs / 1e6,
            "walk: graph_cache_mb": float(CACHE_MB),
        }
    )


SIZES = """
SELECT root.relname, sum(pg_table_size(part.relid)), sum(pg_indexes_size(part.relid))
FROM pg_class AS root JOIN pg_namespace AS space ON space.oid = root.relnamespace,
    LATERAL pg_partition_tree(root.oid) AS part
WHERE space.nspname = 'cofire' AND root.relkind = 'p' AND part.isleaf
GROUP BY root.relname HAVING sum(pg_total_relation_size(part.relid)) > 16 * 4 * 8192
ORDER BY sum(pg_total_relation_size(part.relid)) DESC
"""


def sizes(made: Database, memories: int) -> Figures:
    """Megabytes that a million memories take, by table and of their indexes."""
    figures: Figures = {}
    scale = 1e6 / memories / 1e6
    total = 0.0
    for name, table, indexes in _asked_of(made.admin_url, SIZES):
        figures[f"table {name} [MB per million memories]"] = float(table) * scale
        figures[f"indexes of {name} [MB per million memories]"] = float(indexes) * scale
        total += float(table + indexes) * scale
    figures["all of that [MB per million memories]"] = total
    return figures


# -- Tenants --------------------------------------------------------------------------------------

ROUNDS = 40


def tenants(folder: Path, counts: list[int]) -> Figures:
    """Opening a tenant's memory, one recall in it and closing it, in databases that differ in how
    many tenants they have."""
    figures: Figures = {}
    # Nothing that is written is timed, so it does not have to wait for the disk.
    with serving(folder, synchronous_commit="off") as server, ExitStack() as made:
        databases = [made.enter_context(database(server)) for _ in counts]
        embedder = ConstantTimeEmbedder()
        embedder.prepare(["the ferry"])
        for count, each in zip(counts, databases, strict=True):
            before = _catalogue(each)
            _processes(_found, each.app_url, [range(one, count, LOADERS) for one in range(LOADERS)])
            figures[f"rows of the catalogue more with {count:,} tenants"] = (
                _catalogue(each) - before
            )
            _asked_of(each.admin_url, "VACUUM (ANALYZE)")
        rng, settings = random.Random(7), load_settings(pool_size=1)
        times: dict[int, list[float]] = {count: [] for count in counts}
        processor = dict.fromkeys(counts, 0.0)
        for turn in range(WARM + ROUNDS):
            for count, each in rng.sample(list(zip(counts, databases, strict=True)), len(counts)):
                visit = partial(_visit, each.app_url, rng.randrange(count), embedder, settings)
                before, here = server_seconds(server), time.process_time()
                taken = timed(visit)
                if turn >= WARM:
                    times[count].append(taken)
                    processor[count] += time.process_time() - here + server_seconds(server) - before
        for count in counts:
            name = f"open, recall, close with {count:,} tenants"
            figures[f"{name}, p50 [ms]"] = float(np.median(times[count]))
            figures[f"{name}, processor time, server's included [ms]"] = (
                1e3 * processor[count] / ROUNDS
            )
        least, most = np.median(times[counts[0]]), np.median(times[counts[-1]])
        figures[f"ratio of {counts[-1]:,} to {counts[0]:,} tenants"] = float(most / least)
    return figures


def _visit(url: str, tenant: int, embedder: ConstantTimeEmbedder, settings: Any) -> None:
    with Memory.open(
        url, tenant=f"tenant {tenant}", create=False, embedder=embedder, settings=settings
    ) as memory:
        assert len(memory.recall("the ferry", K, now=NOW)) == 1


def _found(into: Connection, url: str, numbers: range) -> None:
    """Makes tenants of one memory."""
    texts, embedder = messages(1), ConstantTimeEmbedder()
    embedder.prepare([texts[0].content])
    ((item,),) = encoded(texts, embedder)
    with open_store(url) as store:
        for number in numbers:
            space = own_space(store, SpaceRef(tenant=f"tenant {number}", identity="default"))
            store.append(space, [replace(item, uid=new_uuid7().bytes)])
    into.send(None)


def _catalogue(made: Database) -> float:
    """Rows of the catalogue about tables, indexes, types, roles and policies."""
    tables = ("pg_class", "pg_type", "pg_attribute", "pg_roles", "pg_policy", "pg_namespace")
    counts = (_asked_of(made.admin_url, f"TABLE {name}") for name in tables)
    return float(sum(map(len, counts)))


def _asked_of(url: str, query: str) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return list(cursor.fetchall()) if cursor.description else []

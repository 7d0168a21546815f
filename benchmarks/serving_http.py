"""What a server reaches over HTTP on this machine, with memories in SQLite and in PostgreSQL.

    python -m benchmarks.serving_http                            # both, some minutes
    python -m benchmarks.serving_http --stores sqlite --seconds 5
    python -m benchmarks.serving_mix --minutes 10 --json mix.json

`cofire serve` runs in a process of its own; clients (1, 8, 64; one connection each) ask
`/v1/recall` as fast as it answers. "known questions" were asked before, so that their vectors are
in the cache and embedding costs nothing; "new questions" are embedded by the local model. Beside
every load, `/livez` is asked every 20 ms, which is how long the event loop keeps others waiting;
the loop's own lag is read from `/metrics`. Processor time is the server process's; what the library
takes for the same questions is measured before, in this process, one at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import messages, questions
from benchmarks.http_load import Connection, Load, load
from benchmarks.serving import TESTS, database, serving
from cofire.memory import Memory
from cofire.models import Embedder, make_embedder
from cofire.settings import load_settings
from cofire.types import Message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from server_process import ServerProcess

CLIENTS = (1, 8, 64)
KNOWN = 200
"""Questions that are asked again and again."""
NEW = 4_000
"""Questions that are asked once."""
EVERY = 0.02
"""Seconds between two questions for `/livez`."""
LAG = "cofire_event_loop_lag_seconds_bucket"


@contextmanager
def server_of(store: str, settings: dict[str, str]) -> Iterator[ServerProcess]:
    """`cofire serve` of a store."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    from server_process import served

    with served(store, settings=settings) as server:
        yield server


@contextmanager
def store_at(kind: str, folder: Path) -> Iterator[str]:
    """Where an empty store may be: "sqlite", or "postgres" on a server of its own."""
    if kind == "sqlite":
        yield str(folder / "serving.db")
        return
    with serving(folder) as server, database(server) as made:
        yield made.app_url


def recall_request(question: str) -> bytes:
    """A question for `Connection.send`."""
    body = json.dumps({"query": question}).encode()
    head = (
        "POST /v1/recall HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def rest(memory: Memory) -> None:
    """Nothing is due for consolidation, which a server of SQLite would do meanwhile."""
    store, own = memory._workings.store, memory._workings.spaces.own
    store.job_done(own, store.revision(own), time.time_ns() // 1_000)


def library(store: str, embedder: Embedder, asked: Sequence[str]) -> float:
    """Milliseconds of processor time for a recall by the library, vectors known."""
    with Memory.open(store, embedder=embedder) as memory:
        for question in asked:
            memory.recall(question)
        began = time.process_time()
        for question in asked:
            memory.recall(question)
        return 1e3 * (time.process_time() - began) / len(asked)


class Watch:
    """What a load does to others."""

    def __init__(self) -> None:
        self.live: list[float] = []
        self.lag_99 = ""


@asynccontextmanager
async def watched(url: str) -> AsyncIterator[Watch]:
    """How long `/livez` takes meanwhile, and the loop's lag by its own account."""
    watch = Watch()
    before = await lags(url)
    connection = await Connection.open(url)

    async def ask() -> None:
        while True:
            watch.live.append((await connection.ask("GET", "/livez")).seconds)
            await asyncio.sleep(EVERY)

    asking = asyncio.create_task(ask())
    try:
        yield watch
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        connection.close()
    after = await lags(url)
    seen = {end: after[end] - before.get(end, 0.0) for end in after}
    watch.lag_99 = next(end for end, count in seen.items() if count >= 0.99 * seen["+Inf"])


async def lags(url: str) -> dict[str, float]:
    """The histogram of the loop's lag: how often it was up to so many seconds."""
    connection = await Connection.open(url)
    text = (await connection.ask("GET", "/metrics")).body.decode()
    connection.close()
    lines = [line for line in text.splitlines() if line.startswith(LAG)]
    return {line.split('"')[1]: float(line.split()[-1]) for line in lines}


async def recalls(
    server: ServerProcess, asked: Iterator[str], clients: int, seconds: float
) -> dict[str, Any]:
    """One line of the table."""
    before = server.processor
    async with watched(server.url) as watch:
        seen: Load = await load(server.url, map(recall_request, asked), clients, seconds)
    live = sorted(watch.live)
    return {
        "clients": clients,
        "recalls per second": round(seen.rate, 1),
        "p50 [ms]": round(1e3 * seen.quantile(0.5), 1),
        "p99 [ms]": round(1e3 * seen.quantile(0.99), 1),
        "processor time of a recall [ms]": round(
            1e3 * (server.processor - before) / len(seen.seconds), 2
        ),
        "event loop lag, p99 up to [s]": watch.lag_99,
        "/livez p99 [ms]": round(1e3 * live[int(0.99 * len(live))], 1),
        "resident [MB]": round(server.resident / 1e6, 1),
        "failed": seen.failed,
    }


async def gauge(url: str, name: str) -> float:
    """A number without labels of `/metrics`."""
    connection = await Connection.open(url)
    text = (await connection.ask("GET", "/metrics")).body.decode()
    connection.close()
    line = next(line for line in text.splitlines() if line.startswith(name + " "))
    return float(line.split()[-1])


def run(kind: str, texts: Sequence[Message], given: argparse.Namespace) -> dict[str, Any]:
    """All lines of one store."""
    known = questions(texts, KNOWN)
    new = questions(texts, min(NEW, len(texts)), seed=3)
    settings = load_settings(embedder=given.embedder)
    with tempfile.TemporaryDirectory(prefix="cofire-bench-", dir=given.folder) as folder:
        Path(folder).chmod(0o755)  # root's servers run as nobody
        with store_at(kind, Path(folder)) as store:
            embedder = make_embedder(settings)
            with Memory.open(store, embedder=embedder) as memory:
                memory.remember(texts)
                rest(memory)
            alone = library(store, embedder, known)
            lines: list[dict[str, Any]] = []
            with server_of(store, {"embedder": given.embedder}) as server:
                asyncio.run(load(server.url, map(recall_request, known * 3), 2, 3.0))
                for name, asked in (("known", itertools.cycle(known)), ("new", iter(new))):
                    for clients in CLIENTS:
                        line = asyncio.run(recalls(server, asked, clients, given.seconds))
                        lines.append({"questions": name, **line})
                        print(json.dumps({"store": kind, **lines[-1]}), flush=True)
                stopped = server.stop()
    return {"library: processor time of a recall [ms]": alone, "loads": lines, "exit": stopped}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving_http",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--stores", default="sqlite,postgres", help="which, by commas")
    parser.add_argument("--size", type=int, default=10_000, help="memories in the space")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--folder", type=Path, help="where to put the data (on a disk)")
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    given = parser.parse_args()
    texts = messages(given.size)
    result: dict[str, Any] = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    }
    for kind in given.stores.split(","):
        result[kind] = run(kind, texts, given)
        print(f"{kind}: library {result[kind]['library: processor time of a recall [ms]']:.2f} ms")
        if given.json:
            given.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

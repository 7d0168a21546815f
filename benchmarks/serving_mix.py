"""A server under a mix of everything for some minutes: no error, nothing lost, memory flat.

    python -m benchmarks.serving_mix --minutes 10 --json mix.json       # SQLite
    python -m benchmarks.serving_mix --minutes 10 --store postgres

Clients, each with users of their own, remember, recall, give feedback, list and get, and now and
then consolidate, through `cofire serve` in a process of its own. Whatever was acknowledged is
looked for afterwards, one id at a time. Ends with code 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import messages, questions
from benchmarks.http_load import Answer, Connection
from benchmarks.serving_http import gauge, server_of, store_at, watched

if TYPE_CHECKING:
    from cofire.types import Message
    from server_process import ServerProcess

MIX = {"remember": 40, "recall": 35, "feedback": 10, "list": 8, "get": 6, "consolidate": 1}
"""Of a hundred calls."""
LONG = frozenset({"consolidate"})
"""What a server does only so much of at once, and otherwise refuses."""
SAMPLES = 12
"""How often memory is looked at."""
SETTLED = 1 / 3
"""Part of the run after which memory should not grow any more but with what is remembered."""


@dataclass(slots=True)
class Seen:
    """What happened. `kept` are the ids that were acknowledged, by user."""

    calls: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)
    resident: list[tuple[float, int, float]] = field(default_factory=list)
    """Seconds since the beginning, bytes in use, bytes of active graphs among them."""


class Client:
    """One connection, and one user's memories."""

    def __init__(self, number: int, connection: Connection, texts: list[Message], seen: Seen):
        self._user = f"user {number}"
        self._where = f"?user=user%20{number}"
        self._connection, self._texts, self._seen = connection, texts, seen
        self._random = random.Random(number)
        self._asked = questions(texts, len(texts), seed=number)
        self._recalls: list[tuple[str, list[str]]] = []
        seen.kept[self._user] = []

    async def run(self, end: float, pause: float) -> None:
        """Calls one after the other."""
        names, weights = list(MIX), list(MIX.values())
        while time.perf_counter() < end:
            name = self._random.choices(names, weights)[0]
            await getattr(self, f"_{name}")()
            if pause:
                await asyncio.sleep(pause)

    async def _ask(self, name: str, method: str, path: str, body: Any = None) -> Answer | None:
        answer = await self._connection.ask(method, path, body)
        if name in LONG and answer.status == 503:  # others are at it: some other time
            self._seen.calls[f"{name}, refused"] += 1
            return None
        self._seen.calls[name] += 1
        self._seen.seconds.setdefault(name, []).append(answer.seconds)
        if answer.status >= 300:
            self._seen.errors.append(f"{name}: {answer.status} {answer.body[:300]!r}")
            return None
        return answer

    async def _remember(self) -> None:
        message = self._random.choice(self._texts)
        content = f"{message.content} ({self._random.getrandbits(48):x})"
        body = {"content": content, "speaker": message.speaker, "session": message.session}
        answer = await self._ask("remember", "POST", f"/v1/memories{self._where}", body)
        if answer is not None:
            self._seen.kept[self._user] += answer.json()["ids"]

    async def _recall(self) -> None:
        body = {"query": self._random.choice(self._asked)}
        answer = await self._ask("recall", "POST", f"/v1/recall{self._where}", body)
        if answer is not None:
            found = answer.json()
            ids = [item["id"] for item in found["items"]]
            if ids:
                self._recalls = [*self._recalls[-20:], (found["id"], ids)]

    async def _feedback(self) -> None:
        if not self._recalls:
            return
        recall, ids = self._recalls.pop(self._random.randrange(len(self._recalls)))
        body = {"used": ids[:2], "rejected": ids[5:6]}
        await self._ask("feedback", "POST", f"/v1/recalls/{recall}/feedback{self._where}", body)

    async def _list(self) -> None:
        await self._ask("list", "GET", f"/v1/memories{self._where}&limit=50")

    async def _get(self) -> None:
        kept = self._seen.kept[self._user]
        if kept:
            id = self._random.choice(kept)
            await self._ask("get", "GET", f"/v1/memories/{id}{self._where}")

    async def _consolidate(self) -> None:
        if self._random.random() < 0.2:  # it takes as long as many others
            await self._ask("consolidate", "POST", f"/v1/consolidate{self._where}", {})

    async def missing(self, url: str) -> list[str]:
        """Of what was acknowledged, what is not there."""
        lost = []
        connection = await Connection.open(url)
        for id in self._seen.kept[self._user]:
            answer = await connection.ask("GET", f"/v1/memories/{id}{self._where}")
            if answer.status != 200:
                lost.append(id)
        connection.close()
        return lost


async def sample(server: ServerProcess, seen: Seen, seconds: float) -> None:
    """Looks at the server's memory from time to time."""
    began = time.perf_counter()
    while True:
        graphs = await gauge(server.url, "cofire_active_graph_bytes")
        seen.resident.append((time.perf_counter() - began, server.resident, graphs))
        await asyncio.sleep(seconds / SAMPLES)


async def mix(server: ServerProcess, given: argparse.Namespace) -> dict[str, Any]:
    """The run, and what is to be said of it."""
    seen, seconds = Seen(), 60 * given.minutes
    texts = messages(given.texts)
    connections = [await Connection.open(server.url) for _ in range(given.clients)]
    clients = [Client(n, one, texts, seen) for n, one in enumerate(connections)]
    sampling = asyncio.create_task(sample(server, seen, seconds))
    async with watched(server.url) as watch:
        end = time.perf_counter() + seconds
        await asyncio.gather(*(one.run(end, given.pause) for one in clients))
    sampling.cancel()
    await asyncio.gather(sampling, return_exceptions=True)
    graphs = await gauge(server.url, "cofire_active_graph_bytes")
    seen.resident.append((seconds, server.resident, graphs))
    lost = [
        id
        for found in await asyncio.gather(*(one.missing(server.url) for one in clients))
        for id in found
    ]
    for one in connections:
        one.close()
    live = sorted(watch.live)
    beside = [size - graphs for at, size, graphs in seen.resident if at >= SETTLED * seconds]
    return {
        "minutes": given.minutes,
        "calls": dict(seen.calls),
        "errors": seen.errors[:20],
        "missing": lost[:20],
        "acknowledged": sum(map(len, seen.kept.values())),
        "p50 [ms]": {name: milliseconds(found, 0.5) for name, found in seen.seconds.items()},
        "p99 [ms]": {name: milliseconds(found, 0.99) for name, found in seen.seconds.items()},
        "event loop lag, p99 up to [s]": watch.lag_99,
        "/livez p99 [ms]": round(1e3 * live[int(0.99 * len(live))], 1),
        "resident [MB]": [round(size / 1e6, 1) for _, size, _ in seen.resident],
        "active graphs [MB]": [round(size / 1e6, 1) for _, _, size in seen.resident],
        "rest, grown since a third [MB]": round((beside[-1] - beside[0]) / 1e6, 1),
    }


def milliseconds(found: list[float], share: float) -> float:
    """A quantile."""
    return round(1e3 * sorted(found)[int(share * (len(found) - 1))], 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving_mix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between a client's calls")
    parser.add_argument("--texts", type=int, default=500, help="different texts")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--folder", type=Path, help="where to put the data (on a disk)")
    parser.add_argument("--json", type=Path, help="write what was found to this file, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cofire-mix-", dir=given.folder) as folder:
        Path(folder).chmod(0o755)  # root's servers run as nobody
        with (
            store_at(given.store, Path(folder)) as store,
            server_of(store, {"embedder": given.embedder}) as server,
        ):
            found = asyncio.run(mix(server, given))
            found["exit code"] = server.stop()
            found["log"] = [line for line in server.log if '"listening"' not in line][:20]
    text = json.dumps({"store": given.store, **found}, indent=1)
    print(text)
    if given.json:
        given.json.write_text(text)
    if found["errors"] or found["missing"] or found["exit code"]:
        sys.exit(1)


if __name__ == "__main__":
    main()

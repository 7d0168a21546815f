"""Clients that ask a server over HTTP as fast as it answers, and cost little themselves: one
connection each, kept open, requests made ready beforehand."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

BETWEEN = 0.01


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it came; `seconds` from the request's first byte to the answer's last."""

    status: int
    body: bytes
    seconds: float

    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """One connection that is kept open."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str
    ) -> None:
        self._reader, self._writer, self._host = reader, writer, host

    @classmethod
    async def open(cls, url: str) -> Self:
        where = urlsplit(url)
        assert where.hostname is not None
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        return cls(reader, writer, where.netloc)

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request. Raises ConnectionError, asyncio.IncompleteReadError if the server goes."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"host: {self._host}"]
        if body is not None:
            lines += ["content-type: application/json", f"content-length: {len(content)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return await self.send("\r\n".join([*lines, "", ""]).encode() + content)

    async def send(self, request: bytes) -> Answer:
        """A request that was made ready."""
        started = time.perf_counter()
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        at = head.lower().find(b"content-length:")
        length = 0 if at < 0 else int(head[at + 15 : head.index(b"\r", at)])
        content = await self._reader.readexactly(length)
        return Answer(status, content, time.perf_counter() - started)

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connected(url: str, count: int) -> AsyncIterator[list[Connection]]:
    """So many connections."""
    connections = [await Connection.open(url) for _ in range(count)]
    try:
        yield connections
    finally:
        for one in connections:
            one.close()


@dataclass(slots=True)
class Load:
    """What clients saw: seconds of each answer, and how many were not as expected."""

    seconds: list[float] = field(default_factory=list)
    clock: float = 0.0
    failed: int = 0

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.seconds) / self.clock

    def quantile(self, share: float) -> float:
        """Seconds within which this share of the answers came."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


async def load(url: str, requests: Iterator[bytes], clients: int, seconds: float) -> Load:
    """Each client sends the next request as soon as it has its answer, for so long; they come one
    after the other, `BETWEEN` seconds apart."""
    seen = Load()

    async def client(number: int, connection: Connection) -> None:
        await asyncio.sleep(number * BETWEEN)
        while time.perf_counter() < end:
            answer = await connection.send(next(requests))
            seen.seconds.append(answer.seconds)
            seen.failed += answer.status != 200

    async with connected(url, clients) as connections:
        began = time.perf_counter()
        end = began + seconds
        await asyncio.gather(*(client(*one) for one in enumerate(connections)))
        seen.clock = time.perf_counter() - began
    return seen

"""Kinds e and i of the case bank over MCP as a client speaks it over HTTP, with keys: whose
memories somebody reaches, and what keeps a server from answering. (i-04 to i-06, about standard
input and output, are in tests/integration/test_mcp_stdio.py; i-08 is about files, which no tool
reads.)"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psycopg
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from cofire.server.keys import create_key
from fakes import FailingEmbedder, StubEmbedder
from mcp_serving import Serving, mcp_server

ALL = ("read", "write", "forget", "admin")
KEYS: dict[str, tuple[str, dict[str, Any]]] = {
    "t1/u1": ("t1", {"users": ["u1"]}),
    "t1/u2": ("t1", {"users": ["u2"]}),
    "t2/u1": ("t2", {"users": ["u1"]}),
    "t2/u9": ("t2", {"users": ["u9"]}),
    "A": ("t1", {"identities": ["A"], "projects": []}),
    "B": ("t1", {"identities": ["B"], "projects": []}),
}
TOOLS = 13


@dataclass(frozen=True, slots=True)
class Held:
    """A server and a token for each key."""

    server: Serving
    tokens: dict[str, str]

    def run(self, talk: Callable[[Clients], Awaitable[None]]) -> None:
        """Holds a conversation."""

        async def whole() -> None:
            async with AsyncExitStack() as open_:
                await talk(Clients(self, open_))

        anyio.run(whole)


class Clients:
    """A connection for each key and address, made when it is first used."""

    def __init__(self, held: Held, open_: AsyncExitStack) -> None:
        self._held, self._open = held, open_
        self._made: dict[tuple[str, str], Client] = {}

    async def client(self, name: str, query: str = "") -> Client:
        if (name, query) not in self._made:
            headers = {"authorization": f"Bearer {self._held.tokens[name]}"}
            http = await self._open.enter_async_context(httpx2.AsyncClient(headers=headers))
            transport = streamable_http_client(self._held.server.url + query, http_client=http)
            self._made[name, query] = await self._open.enter_async_context(Client(transport))
        return self._made[name, query]

    async def tell(self, name: str, tool: str, /, **arguments: Any) -> Any:
        """(Is it an error, its text)."""
        return await self.at(name, "", tool, **arguments)

    async def at(self, name: str, address: str, tool: str, /, **arguments: Any) -> Any:
        """The same, at an address with parameters."""
        result = await (await self.client(name, address)).call_tool(tool, arguments)
        return result.is_error, "".join(getattr(part, "text", "") for part in result.content)

    async def ask(self, name: str, tool: str, /, **arguments: Any) -> Any:
        error, text = await self.tell(name, tool, **arguments)
        assert not error, text
        return json.loads(text)


@pytest.fixture(params=["sqlite", "postgresql"])
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Held]:
    store: Any = tmp_path / "memory.db"
    if request.param == "postgresql":
        store = request.getfixturevalue("postgres_store").app_url
    with mcp_server(store, keys=True) as server:
        tokens = {}
        for name, (tenant, wanted) in KEYS.items():
            fields = {"identities": None, "users": None, "projects": None, "scopes": ALL, **wanted}
            tokens[name] = create_key(server.service.memories.store, tenant, name, **fields)[1]
        yield Held(server, tokens)


async def recalled(clients: Clients, name: str, query: str) -> str:
    found: str = json.dumps(await clients.ask(name, "recall", query=query))
    return found


async def forget_everything(clients: Clients, name: str) -> int:
    asked = await clients.ask(name, "forget", everything=True)
    gone = await clients.ask(name, "forget", everything=True, confirm=asked["confirm"])
    count: int = gone["deleted"]
    return count


def test_e01_e07_deleting_one_users_memories_deletes_no_others(held: Held) -> None:
    async def talk(clients: Clients) -> None:
        users = ("t1/u1", "t1/u2", "t2/u1")
        for name in users:
            await clients.ask(name, "remember", content="Same sentence everywhere.")
            await clients.ask(name, "remember", content=f"{name} fact")
        assert await forget_everything(clients, "t1/u1") == 2
        assert (await clients.ask("t1/u1", "memory_stats"))["memories"] == 0
        assert (await clients.ask("t1/u1", "recall", query="fact"))["count"] == 0
        for name in users[1:]:
            assert f"{name} fact" in await recalled(clients, name, "fact")
            assert "Same sentence" in await recalled(clients, name, "same sentence")
        await clients.ask("t1/u1", "remember", content="Same sentence everywhere.")
        assert (await clients.ask("t1/u1", "recall", query="same sentence"))["count"] == 1

    held.run(talk)


def test_e04_every_part_of_an_answer_is_within_the_scope(held: Held) -> None:
    async def talk(clients: Clients) -> None:
        await clients.ask("t1/u1", "remember", content="Marla owns the red boat")
        await clients.ask("t2/u9", "remember", content="Marla owes 300 coins")
        parts = [
            await clients.ask("t1/u1", "recall", query="Marla"),
            await clients.ask("t1/u1", "explain_recall", query="Marla"),
            await clients.ask("t1/u1", "hydrate", cue="Marla"),
            await clients.ask("t1/u1", "list_memories"),
            await clients.ask("t1/u1", "memory_stats"),
        ]
        client = await clients.client("t1/u1")
        parts.append([str(one.uri) for one in (await client.list_resources()).resources])
        told = json.dumps(parts)
        assert "boat" in told
        for foreign in ("owes", "coins", "t2", "u9"):
            assert foreign not in told
        assert parts[4]["memories"] == 1
        assert len(parts[5]) == 1

    held.run(talk)


def test_e05_nobody_reaches_another_agents_memory_by_any_tool(held: Held) -> None:
    async def talk(clients: Clients) -> None:
        id = (await clients.ask("A", "remember", content="agent A note"))["id"]
        recall = (await clients.ask("A", "recall", query="note"))["recall"]
        own = (await clients.ask("B", "remember", content="agent B has one"))["id"]
        unknown = id[:-4] + ("0000" if not id.endswith("0000") else "1111")
        tries: tuple[tuple[str, dict[str, Any]], ...] = (
            ("get_memory", {"id": "ID"}),
            ("update_memory", {"id": "ID", "content": "mine now"}),
            ("forget", {"ids": ["ID"]}),
            ("link_memories", {"source": own, "target": "ID"}),
            ("link_memories", {"source": "ID", "target": own}),
            ("strengthen_link", {"a": own, "b": "ID"}),
        )
        for tool, arguments in tries:
            told = []
            for one in (id, unknown):
                given = json.loads(json.dumps(arguments).replace("ID", one))
                error, text = await clients.tell("B", tool, **given)
                assert error, (tool, text)
                told.append(text.replace(one, "ID"))
            assert told[0] == told[1]  # as an id that does not exist
        error, text = await clients.tell("B", "feedback", recall=recall, used=[id])
        assert error, text
        client = await clients.client("B")
        with pytest.raises(Exception, match=r".") as caught:
            await client.read_resource(f"memory://{id}")
        assert "agent A" not in str(caught.value)
        for tool, given in (
            ("recall", {"query": "the note"}),
            ("answer", {"question": "What does the note say?"}),
            ("explain_recall", {"query": "the note"}),
            ("hydrate", {"cue": "the note"}),
            ("list_memories", {}),
        ):
            assert "agent A" not in (await clients.tell("B", tool, **given))[1]
        assert (await clients.ask("B", "memory_stats"))["memories"] == 1
        assert "agent A note" in json.dumps(await clients.ask("A", "get_memory", id=id))
        assert len((await client.list_tools()).tools) == TOOLS  # each is tried in this module

    held.run(talk)


def test_e06_no_scope_or_a_strange_one_never_widens(held: Held) -> None:
    async def talk(clients: Clients) -> None:
        await clients.ask("t1/u1", "remember", content="t1 note")
        assert (await clients.ask("t2/u9", "recall", query="note"))["count"] == 0
        for query in ("?user=u1", "?user=*", "?user=", "?identity="):
            error, text = await clients.at("t2/u9", query, "recall", query="note")
            assert error, (query, text)
            assert "t1 note" not in text
        for argument in ("tenant", "user", "identity", "scope"):
            error, text = await clients.tell("t2/u9", "recall", **{"query": "note", argument: "t1"})
            assert "t1 note" not in text
        assert (await clients.ask("t2/u1", "recall", query="note"))["count"] == 0

    held.run(talk)


def test_i02_a_slow_model_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    release = threading.Event()

    class Slow(StubEmbedder):
        def embed_passages(self, texts: Any) -> Any:
            release.wait(20)
            return super().embed_passages(texts)

    async def talk(url: str) -> None:
        async with (
            Client(streamable_http_client(url)) as client,
            anyio.create_task_group() as group,
        ):
            for number in range(4):
                group.start_soon(client.call_tool, "remember", {"content": f"slow {number}"})
            await anyio.sleep(0.1)
            waits = []
            for _ in range(5):
                started = time.perf_counter()
                await client.list_tools()
                waits.append(time.perf_counter() - started)
            assert not release.is_set()
            assert min(waits) < 0.2
            release.set()
        async with Client(streamable_http_client(url)) as client:
            result = await client.call_tool("list_memories", {})
            assert not result.is_error

    with mcp_server(tmp_path / "memory.db", embedder=Slow()) as server:
        anyio.run(talk, server.url)


def test_i03_nothing_found_and_what_fails_give_connections_back(
    request: pytest.FixtureRequest,
) -> None:
    database = request.getfixturevalue("postgres_store")

    async def talk(url: str) -> None:
        async with Client(streamable_http_client(url)) as client:
            async with anyio.create_task_group() as group:
                for _ in range(12):
                    group.start_soon(client.call_tool, "recall", {"query": "nothing matches this"})
            for _ in range(20):
                await client.call_tool("get_memory", {"id": "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"})
            with psycopg.connect(database.admin_url, autocommit=True) as admin:
                idle = admin.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND state LIKE 'idle in transaction%'"
                ).fetchone()
                assert idle == (0,)
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            result = await client.call_tool("recall", {"query": "x"})
            assert not result.is_error, result

    with mcp_server(database.app_url, embedder=FailingEmbedder()) as server:
        anyio.run(talk, server.url)

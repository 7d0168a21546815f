"""MCP over HTTP behind the server's middleware: keys, addresses, no sessions."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from cofire.server.keys import create_key
from forked_interpreter import start_python
from mcp_pipe import INITIALIZE
from mcp_serving import mcp_server

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


async def asked(url: str, tool: str, *, key: str | None = None, **arguments: Any) -> Any:
    """What a tool answers, over a connection of its own: (is it an error, the text)."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
    ):
        result = await client.call_tool(tool, arguments)
        return result.is_error, "".join(getattr(one, "text", "") for one in result.content)


def test_the_address_says_whose_memories_and_the_key_whether_it_may(tmp_path: Path) -> None:
    with mcp_server(tmp_path / "memory.db", keys=True) as server:
        store = server.service.memories.store
        _, key = create_key(
            store, "default", "coder",
            identities=("mine",), users=("me",), projects=("boats",), scopes=("read", "write"),
        )  # fmt: skip

        async def talk() -> None:
            error, text = await asked(server.url, "remember", key=key, content="The heron is mine.")
            assert not error, text
            shared = f"{server.url}?project=boats"
            await asked(shared, "remember", key=key, content="The boat is ours.", project="boats")
            assert "ours" in (await asked(shared, "recall", key=key, query="boat"))[1]
            assert "ours" not in (await asked(server.url, "recall", key=key, query="boat"))[1]
            for query in ("identity=other", "user=somebody", "project=secret"):
                error, text = await asked(f"{server.url}?{query}", "recall", key=key, query="x")
                assert error
                assert "is not for the" in text
            error, text = await asked(server.url, "forget", key=key, ids=["x"])
            assert error
            assert "needs the scope 'forget'" in text

        anyio.run(talk)
        refused = httpx2.post(server.url, json={}, headers=HEADERS)
        assert refused.status_code == 401
        assert "bearer" in refused.headers["www-authenticate"].lower()


def test_plain_requests_need_no_session_and_get_json(tmp_path: Path) -> None:
    with mcp_server(tmp_path / "memory.db") as server:

        def post(content: Any, **headers: str) -> httpx2.Response:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            return httpx2.post(server.url, content=body, headers={**HEADERS, **headers})

        call = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "remember", "arguments": {"content": "The heron stands."}},
        }  # fmt: skip
        begun = post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
        assert begun.json()["result"]["serverInfo"]["name"] == "cofire"
        assert "mcp-session-id" not in begun.headers
        answer = post(call)  # any process may answer it
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.json()["result"]["structuredContent"]["stored"]
        assert post(b"{broken").status_code == 400
        assert post(b"[" * 50_000).status_code == 400
        assert post(call, origin="https://evil.example").status_code == 403
        assert post(call, host="evil.example").status_code in {400, 403, 421}
        for method in ("GET", "DELETE"):
            refused = httpx2.request(method, server.url, headers=HEADERS)
            assert refused.status_code == 405
            assert refused.headers["allow"] == "POST"
        assert httpx2.post(f"{server.url}/", content=json.dumps(call), headers=HEADERS).is_success


@pytest.mark.parametrize("path", ["", "?identity=", "?identity=%20&user="])
def test_an_empty_name_never_widens(tmp_path: Path, path: str) -> None:
    with mcp_server(tmp_path / "memory.db") as server:
        server.service.memories.of("other").remember("The other agent's heron.")
        error, text = anyio.run(lambda: asked(f"{server.url}{path}", "recall", query="heron"))
        assert "other agent" not in text
        assert error == bool(path)


def test_the_command_serves_mcp_alone(tmp_path: Path) -> None:
    process = start_python(
        ["-m", "cofire", "mcp", "--http", "--port", "0", "--project", "boats"],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src"),
            "OMP_NUM_THREADS": "1",
            "COFIRE_STORE": str(tmp_path / "memory.db"),
            "COFIRE_CONFIG": str(tmp_path / "config.toml"),
            "COFIRE_EMBEDDER": "hashing:64",
        },
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stderr is not None
            listening = json.loads(process.stderr.readline())
            url = listening["url"]
            error, text = anyio.run(
                lambda: asked(f"{url}/mcp", "remember", content="Ours.", project="boats")
            )
            assert not error, text
            assert httpx2.get(f"{url}/livez").is_success
            assert httpx2.get(f"{url}/v1/memories").status_code == 404
        finally:
            process.terminate()
        assert process.wait(30) == 0

"""A server of models on 127.0.0.1, for embeddings and chat, that answers as it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Answer = tuple[int, dict[str, str], bytes | Iterable[bytes]]
"""Status, headers and body; a body in parts is sent part by part, and its connection breaks where
the parts raise OSError."""
Script = Callable[[dict[str, Any]], Answer]


class Endpoint:
    """A server that answers each request with the next script; the last one stays."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.scripts: list[Script] = [vectors]
        self.left = threading.Event()  # a client went before it had all parts
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append({"path": self.path, **body})
                endpoint.keys.append(self.headers.get("Authorization"))
                script = endpoint.scripts[0]
                if len(endpoint.scripts) > 1:
                    endpoint.scripts.pop(0)
                status, headers, content = script(body)
                self.protocol_version = f"HTTP/1.{int(not isinstance(content, bytes))}"
                try:
                    self.send_response(status)
                    for name, value in {"Content-Type": "application/json", **headers}.items():
                        self.send_header(name, value)
                    if isinstance(content, bytes):
                        self.send_header("Content-Length", str(len(content)))
                        self.end_headers()
                        self.wfile.write(content)
                    else:
                        self.send_parts(content)
                except OSError:
                    self.close_connection = True

            def send_parts(self, parts: Iterable[bytes]) -> None:
                self.send_header("Transfer-Encoding", "chunked")
                self.send_header("Connection", "close")
                self.end_headers()
                for part in parts:
                    try:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                    except OSError:
                        endpoint.left.set()
                        raise
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def direction(text: str) -> list[float]:
    """A vector of three numbers that tells texts apart by their length and first letter."""
    return [float(len(text)), float(ord(text[0])), 1.0]


def listed(entries: list[Any]) -> Answer:
    return 200, {}, json.dumps({"object": "list", "data": entries}).encode()


def vectors(body: dict[str, Any]) -> Answer:
    rows = [{"index": n, "embedding": direction(text)} for n, text in enumerate(body["input"])]
    return listed(rows[::-1])


def fails(status: int, message: str = "no", **headers: str) -> Script:
    content = json.dumps({"error": {"message": message}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda body: (status, named, content)


def says(content: bytes) -> Script:
    return lambda body: (200, {}, content)


def gives(*embeddings: object) -> Script:
    return lambda body: listed([{"index": n, "embedding": v} for n, v in enumerate(embeddings)])


def completes(
    text: str | None,
    finish: str | None = "stop",
    *,
    refusal: str | None = None,
    usage: object = None,
) -> Script:
    """A chat model that says `text`."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    return says(json.dumps({**answer, "usage": usage}).encode())


DONE = b"data: [DONE]\n\n"


def event(value: object) -> bytes:
    """One event of a stream, whatever it tells."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def delta(finish: str | None = None, **told: object) -> bytes:
    """An event that brings part of an answer (`content`, `refusal`, `role`), or its end."""
    return event({"choices": [{"index": 0, "delta": told, "finish_reason": finish}]})


def usage(prompt: int, completion: int) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return event({"choices": [], "usage": counts})


def streams(*parts: bytes, then: Callable[[], Iterable[bytes]] = tuple) -> Script:
    """An endpoint that streams `parts`, each by itself, then those of `then`."""

    def told() -> Iterator[bytes]:
        yield from parts
        yield from then()

    return lambda body: (200, {"Content-Type": "text/event-stream"}, told())


def chats_without(refused: Mapping[str, str], then: Script) -> Script:
    """A chat model that refuses requests whose JSON holds a key of `refused`, with its value."""

    def script(body: dict[str, Any]) -> Answer:
        request = json.dumps(body)
        for part, message in refused.items():
            if part in request:
                return fails(400, message)(body)
        return then(body)

    return script


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    server = Endpoint()
    yield server
    server.close()

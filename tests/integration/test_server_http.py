"""What every request passes, over real connections: names, sizes, time, and what is no request."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi import APIRouter

from cofire.logs import JsonLines
from cofire.models import Embedded, make_embedder
from cofire.server import connections
from cofire.server.app import HttpOptions
from cofire.server.dependencies import RequestId
from cofire.server.rest import routers
from cofire.settings import Settings
from serving import Running, running_server

CONTENT = "the shed key is in the blue tin"
OPTIONS = HttpOptions(body_bytes=20_000, seconds=0.3, origins=("https://notes.example",))


def broken() -> APIRouter:
    """A route that fails as none should."""
    router = APIRouter()

    @router.post("/v1/broken")
    async def broken(request: RequestId) -> None:
        raise ValueError(CONTENT)

    return router


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    store = tmp_path_factory.mktemp("http") / "memory.db"
    with running_server(store, options=OPTIONS, routers=[*routers(), broken()]) as running:
        yield running


@pytest.fixture(scope="module")
def client(running: Running) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=running.url, timeout=30.0) as client:
        yield client


def raw(url: str, sent: bytes, *, more: bytes = b"", after: float = 0.0) -> bytes:
    """All that is answered to these bytes, until the server closes the connection."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=10) as connection:
        connection.sendall(sent)
        if more:
            time.sleep(after)
            connection.sendall(more)
        found = b""
        while part := connection.recv(65_536):
            found += part
        return found


def problem(answer: httpx2.Response) -> Any:
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    assert told["request"] == answer.headers["x-request-id"]
    return told


def test_a_request_has_an_id(client: httpx2.Client) -> None:
    given = client.get("/v1/stats", headers={"X-Request-Id": "mine-1"})
    assert given.headers["x-request-id"] == "mine-1"
    made = client.get("/v1/stats", headers={"X-Request-Id": "no id: " + "x" * 100})
    others = client.get("/v1/stats")
    assert 8 <= len(made.headers["x-request-id"]) <= 40
    assert made.headers["x-request-id"] != others.headers["x-request-id"]


def test_answers_say_how_browsers_must_treat_them(client: httpx2.Client) -> None:
    headers = client.get("/v1/stats").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers or "uvicorn" in headers["server"]


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [("GET", "/nowhere", 404, "no-route"), ("PUT", "/v1/recall", 405, "method")],
)
def test_what_is_no_route_is_a_problem(
    client: httpx2.Client, method: str, path: str, status: int, kind: str
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert problem(answer)["type"] == f"urn:cofire:problem:{kind}"
    assert status != 405 or "POST" in answer.headers["allow"]


def test_what_should_not_happen_tells_nothing(
    client: httpx2.Client, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.post("/v1/broken", json={})
    assert answer.status_code == 500
    told = problem(answer)
    assert CONTENT not in answer.text
    [record] = [one for one in caplog.records if one.levelno >= logging.ERROR]
    line = json.loads(JsonLines().format(record))
    assert line["request"] == told["request"]
    assert line["error"] == "ValueError"
    assert "broken" in line["where"]
    assert CONTENT not in caplog.text


# -- Names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "[::", "127.0.0.1.evil.ex"])
def test_another_name_is_refused(client: httpx2.Client, host: str) -> None:
    answer = client.get("/v1/stats", headers={"Host": host})
    assert (answer.status_code, problem(answer)["type"]) == (421, "urn:cofire:problem:http")
    assert client.get("/livez", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_pages_of_other_origins_are_refused(client: httpx2.Client, origin: str) -> None:
    answer = client.post("/v1/recall", json={"query": "x"}, headers={"Origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_its_own_pages_and_those_it_was_told_of_are_not(
    running: Running, client: httpx2.Client
) -> None:
    assert client.get("/v1/stats", headers={"Origin": running.url}).status_code == 200
    known = {"Origin": "https://notes.example"}
    assert client.get("/v1/stats", headers=known).headers["access-control-allow-origin"] == (
        "https://notes.example"
    )
    asked = {"Access-Control-Request-Method": "POST", **known}
    assert client.options("/v1/recall", headers=asked).status_code == 200


# -- Sizes and time -------------------------------------------------------------------------------


def test_a_body_too_large_is_refused(running: Running, client: httpx2.Client) -> None:
    large = {"query": "x" * 20_000}
    assert client.post("/v1/recall", json=large).status_code == 413

    def parts() -> Iterator[bytes]:
        for _ in range(30):
            yield b" " * 1_000

    streamed = client.post(
        "/v1/recall", content=parts(), headers={"Content-Type": "application/json"}
    )
    assert (streamed.status_code, problem(streamed)["type"]) == (
        413,
        "urn:cofire:problem:too-large",
    )


def test_what_says_it_is_no_json_is_refused(client: httpx2.Client) -> None:
    form = client.post("/v1/recall", data={"query": "x"})
    assert form.status_code == 415
    assert "application/json" in problem(form)["detail"]
    packed = client.post("/v1/recall", json={"query": "x"}, headers={"Content-Encoding": "gzip"})
    assert packed.status_code == 415


def test_a_body_that_does_not_come_is_not_waited_for(running: Running) -> None:
    head = (
        b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 20\r\n\r\n"
    )
    began = time.monotonic()
    assert raw(running.url, head + b"{").startswith(b"HTTP/1.1 408 ")
    assert raw(running.url, head + b"{", more=b'"', after=0.2).startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("sent", [b"", b"GET /livez HTTP/1.1\r\nHost: local"])
def test_a_head_that_does_not_come_is_not_waited_for(
    running: Running, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    began = time.monotonic()
    assert raw(running.url, sent, more=b"X", after=0.1) == b""
    assert time.monotonic() - began < 5


def test_slow_clients_hold_nobody_up(running: Running, client: httpx2.Client) -> None:
    where = urlsplit(running.url)
    slow = [socket.create_connection((where.hostname, where.port)) for _ in range(50)]
    try:
        for one in slow:
            one.sendall(b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        began = time.monotonic()
        assert client.get("/livez").status_code == 200
        assert time.monotonic() - began < 5
    finally:
        for one in slow:
            one.close()


# -- What is no request ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", None),  # a TLS client
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000, 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
    ],
    ids=["words", "tls", "head", "length", "lengths", "chunk", "no-host"],
)  # fmt: skip
def test_what_is_no_http_is_refused(
    running: Running, monkeypatch: pytest.MonkeyPatch, sent: bytes, status: int | None
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    try:
        answer = raw(running.url, sent)
    except ConnectionResetError:
        answer = b""
    if status is not None and answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert int(head[9:12]) == status
        assert json.loads(body)["status"] == status
    assert httpx2.get(running.url + "/livez").status_code == 200


BODIES = {
    "nothing": b"",
    "half": b'{"query": "x',
    "words": b"query=x",
    "list": b"[]",
    "null": b"null",
    "number": b"1e999",
    "nan": b'{"query": "x", "k": NaN}',
    "infinite": b'{"query": "x", "metadata": {"a": Infinity}}',
    "deep": b'{"query": "x", "metadata": ' + b'{"a":' * 3_000 + b"1" + b"}" * 3_000 + b"}",
    "deeper": b"[" * 9_000,
    "digits": b'{"query": "x", "k": ' + b"9" * 5_000 + b"}",
    "latin": '{"query": "Käse"}'.encode("latin-1"),
    "utf-16": '{"query": "Käse"}'.encode("utf-16"),
    "surrogate": b'{"query": "\\ud800"}',
    "nul": b'{"query": "a\\u0000b"}',
    "bytes": bytes(range(256)),
    "types": b'{"query": {"a": 1}, "k": "ten", "kinds": 7}',
    "unknown": b'{"query": "x", "tenant": "another"}',
    "twice": b'{"query": "x", "query": "y"}',
    "huge": b'{"query": "x", "k": 1000000000000}',
    "negative": b'{"query": "x", "k": -1}',
}


@pytest.mark.parametrize("path", ["/v1/recall", "/v1/memories", "/v1/forget", "/mcp"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_no_body_breaks_it(client: httpx2.Client, path: str, body: bytes) -> None:
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code < 500, answer.text
    assert CONTENT not in answer.text
    if answer.status_code >= 400:
        problem(answer)


@pytest.mark.parametrize(
    "query",
    ["limit=x", "limit=-1", "after=%00", "identity=", "identity=%ff%fe", "user=%20", "kinds=no",
     "limit=" + "9" * 5_000, "project=a&project=", "since=never", "tenant=another"],
)  # fmt: skip
def test_no_parameter_breaks_it(client: httpx2.Client, query: str) -> None:
    answer = client.get(f"/v1/memories?{query}")
    assert answer.status_code < 500
    assert answer.status_code == 200 or problem(answer)


# -- A model that hangs (case i-02) ---------------------------------------------------------------


class Hanging:
    """An embedder that answers when it is let."""

    def __init__(self) -> None:
        self._inner = make_embedder(Settings(embedder="hashing:64"))
        self.released = threading.Event()
        self.entered = threading.Semaphore(0)
        self.name, self.dimension = self._inner.name, self._inner.dimension
        self.max_tokens = self._inner.max_tokens
        self.count_tokens, self.token_offsets = self._inner.count_tokens, self._inner.token_offsets
        self.embed_query, self.close = self._inner.embed_query, self._inner.close

    def embed_passages(self, texts: Any, /) -> Embedded:
        self.entered.release()
        assert self.released.wait(30)
        return self._inner.embed_passages(texts)


def test_health_answers_while_every_verb_waits_for_a_model(tmp_path: Path) -> None:
    model = Hanging()
    with running_server(tmp_path / "memory.db", embedder=model, waiting=2) as running:

        def add(number: int) -> int:
            body = {"content": f"slow one {number}"}
            return httpx2.post(f"{running.url}/v1/memories", json=body, timeout=30).status_code

        statuses: list[int] = []
        adding = [
            threading.Thread(target=lambda number=number: statuses.append(add(number)))
            for number in range(6)
        ]
        for one in adding:
            one.start()
        for _ in range(4):
            assert model.entered.acquire(timeout=10)
        with httpx2.Client(base_url=running.url) as client:
            for path in ("/livez", "/readyz"):
                waits = []
                for _ in range(5):
                    began = time.monotonic()
                    assert client.get(path).status_code == 200
                    waits.append(time.monotonic() - began)
                assert min(waits) < 0.2  # the machine may be busy otherwise
            while running.service.running < 6:
                time.sleep(0.01)
            full = client.get("/v1/stats")
            assert (full.status_code, full.headers["retry-after"]) == (503, "1")
            assert problem(full)["type"] == "urn:cofire:problem:overloaded"
        model.released.set()
        for one in adding:
            one.join()
        assert statuses == [201] * 6
        assert running.service.running == 0


def test_a_client_who_goes_away_leaves_no_thread_behind(tmp_path: Path) -> None:
    model = Hanging()
    with running_server(tmp_path / "memory.db", embedder=model, threads=1) as running:
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{running.url}/v1/memories", json={"content": "a"}, timeout=0.3)
        model.released.set()
        answer = httpx2.post(f"{running.url}/v1/memories", json={"content": "b"}, timeout=30)
        assert answer.status_code == 201
        assert running.service.running == 0
        found = httpx2.get(f"{running.url}/v1/memories").json()["items"]
        assert {one["content"] for one in found} == {"a", "b"}  # what had begun was finished


def test_what_has_begun_is_finished_when_it_stops(tmp_path: Path) -> None:
    model = Hanging()
    answers: list[httpx2.Response] = []
    with running_server(tmp_path / "memory.db", embedder=model) as running:

        def add() -> None:
            body = {"content": "in flight"}
            answers.append(httpx2.post(f"{running.url}/v1/memories", json=body, timeout=30))

        adding = threading.Thread(target=add)
        adding.start()
        assert model.entered.acquire(timeout=10)
        running.stop()
        time.sleep(0.3)
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{running.url}/livez")
        model.released.set()
        adding.join()
    assert answers[0].status_code == 201

"""`cofire serve` as it is run: killed, stopped, stopped twice, in several processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from cofire import Memory
from cofire.errors import ConfigurationError
from cofire.server.serving import require_safe
from cofire.settings import Settings
from postgres_server import Database
from server_process import ServerProcess
from server_process import served as newly_served

WRITES = 1_000
served = partial(newly_served, forked=True)
CLIENTS = 4
SECRET = "sesame-7f3c"  # noqa: S105 - no password


class Writers:
    """Clients that remember one thing after the other, and keep in mind what was acknowledged."""

    def __init__(self, url: str) -> None:
        self.acknowledged: list[str] = []
        self.refused: list[int] = []
        self._url = url
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(number,)) for number in range(CLIENTS)
        ]

    def _write(self, number: int) -> None:
        # Not httpx: half the processor's time would be this client's.
        where = urlsplit(self._url)
        client = HTTPConnection(where.hostname or "", where.port, timeout=60.0)
        headers = {"Content-Type": "application/json"}
        count = 0
        try:
            while not self._stopping.is_set():
                count += 1
                content = f"writer {number} item {count}"
                body = json.dumps({"content": content})
                client.request("POST", "/v1/memories", body, headers)
                with client.getresponse() as answer:
                    answer.read()
                if answer.status == 201:
                    self.acknowledged.append(content)
                else:
                    self.refused.append(answer.status)
        except (OSError, HTTPException):
            return  # the server has gone, which is what these tests do to it
        finally:
            client.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in self._threads:
                thread.join()

    def wait_for(self, count: int) -> None:
        end = time.monotonic() + 120
        while len(self.acknowledged) < count:
            assert time.monotonic() < end, "too few writes were acknowledged"
            time.sleep(0.002)


def remembered(store: str | Path) -> set[str]:
    """What a store holds. It is checked as well."""
    found: set[str] = set()
    with Memory.open(store, embedder="hashing:64") as memory:
        after: str | None = None
        while True:
            page = memory.list(limit=1_000, after=after)
            found |= {item.content for item in page}
            after = page.next
            if after is None:
                break
        assert list(memory.check()) == []
    return found


def killed_while_writing(store: str | Path, count: int) -> None:
    with served(store, settings={"audit_reads": "false"}) as server:
        writers = Writers(server.url)
        with writers.writing():
            writers.wait_for(count)
            server.kill()
        assert writers.refused == []
    assert len(writers.acknowledged) >= count
    with served(store) as again:
        with httpx2.Client(base_url=again.url) as client:
            found = client.post("/v1/recall", json={"query": writers.acknowledged[-1]}).json()
            assert writers.acknowledged[-1] in {one["content"] for one in found["items"]}
        assert again.stop() == 0
    assert set(writers.acknowledged) <= remembered(store)


def test_a_killed_server_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "memory.db", WRITES)


def test_a_killed_server_keeps_what_it_acknowledged_on_postgres(postgres_store: Database) -> None:
    killed_while_writing(postgres_store.app_url, WRITES)


def test_a_signal_ends_it_when_what_has_begun_is_finished(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    with served(store, settings={"log_level": "info"}) as server:
        writers = Writers(server.url)
        with writers.writing():
            writers.wait_for(100)
            assert server.stop() == 0
        assert writers.refused == []
    assert set(writers.acknowledged) == remembered(store)  # and nothing that was not acknowledged
    lines = [json.loads(line) for line in server.log]
    assert {"listening", "answered"} <= {line["event"] for line in lines}
    assert "writer" not in "".join(server.log)


def half_a_request(server: ServerProcess) -> socket.socket:
    """A request that has begun and does not go on."""
    where = urlsplit(server.url)
    connection = socket.create_connection((where.hostname, where.port))
    connection.sendall(
        b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{"
    )
    time.sleep(0.3)
    return connection


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(tmp_path: Path, second: signal.Signals) -> None:
    with served(tmp_path / "memory.db") as server, half_a_request(server):
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert server.process.poll() is None  # it waits for the request
        began = time.monotonic()
        server.process.send_signal(second)
        assert server.process.wait(20) == 128 + second
        assert time.monotonic() - began < 10  # that request is waited for 30 s


def test_a_request_that_does_not_end_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    settings = {"server_stop_seconds": "1"}
    with served(tmp_path / "memory.db", settings=settings) as server, half_a_request(server):
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 20


@pytest.mark.skipif(sys.platform == "win32", reason="counts by processes of Linux and macOS")
def test_several_processes_answer_as_one(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    with newly_served(store, "--workers", "2") as server:
        with httpx2.Client(base_url=server.url, timeout=60.0) as client:
            assert client.get("/readyz").status_code == 200
        writers = Writers(server.url)
        with writers.writing():
            writers.wait_for(60)
        assert writers.refused == []
        told = httpx2.get(f"{server.url}/metrics").text
        [line] = [
            line for line in told.splitlines()
            if line.startswith("cofire_requests_total") and 'action="remember"' in line
        ]  # fmt: skip
        assert int(float(line.split()[-1])) == len(writers.acknowledged)  # of both
        assert server.stop() == 0
    assert set(writers.acknowledged) == remembered(store)


def test_it_does_not_listen_where_others_are_without_keys() -> None:
    with pytest.raises(ConfigurationError, match="--auth keys"):
        require_safe(Settings(server_host="192.0.2.1"))
    with pytest.raises(ConfigurationError, match="COFIRE_SERVER_HOSTS"):
        require_safe(Settings(server_host="0.0.0.0", server_auth="keys"))  # noqa: S104
    for host in ("127.0.0.1", "::1", "localhost"):
        require_safe(Settings(server_host=host))
    require_safe(Settings(server_host="::", server_auth="keys", server_hosts="memory.example"))


def test_keys_are_wanted_where_they_are_configured(tmp_path: Path) -> None:
    settings = {"server_metrics_token": SECRET, "log_level": "debug"}
    with served(tmp_path / "memory.db", "--auth", "keys", settings=settings) as server:
        with httpx2.Client(base_url=server.url) as client:
            refused = client.post("/v1/recall", json={"query": "x"})
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            wrong = {"Authorization": f"Bearer cofire_{SECRET}"}
            assert client.get("/v1/stats", headers=wrong).status_code == 401
            assert client.get("/livez").status_code == 200
            assert client.get("/readyz").status_code == 200
            assert client.get("/openapi.json").status_code == 200
            assert client.get("/metrics").status_code == 401
            right = {"Authorization": f"Bearer {SECRET}"}
            assert client.get("/metrics", headers=right).status_code == 200
        assert server.stop() == 0
    assert SECRET not in "".join(server.log)


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(AssertionError, match="choose another --port"):  # noqa: SIM117
            with served(tmp_path / "memory.db", "--port", port):
                pass
    assert not os.path.lexists(tmp_path / "memory.db")

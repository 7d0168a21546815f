"""Kinds e and i of the case bank over REST: whose memories somebody reaches, and what keeps a
server from answering (i-04 to i-06 are MCP's)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from cofire.server.access import Place
from cofire.server.keys import create_key
from cofire.server.rest.numbers import identity_number
from fakes import FailingEmbedder
from serving import Running, running_server

NOWHERE = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"
ALL = ("read", "write", "forget", "admin")
NDJSON = {"Content-Type": "application/x-ndjson"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A server, and a client for each key."""

    server: Running
    clients: dict[str, httpx.Client]

    def __getitem__(self, name: str) -> httpx.Client:
        return self.clients[name]


@contextmanager
def holding(store: Any, keys: dict[str, dict[str, Any]]) -> Iterator[Held]:
    """A server of `store` and clients with keys: by name, `tenant` and what else `create_key`
    takes."""
    with running_server(store, keys=True) as server:
        clients = {}
        for name, wanted in keys.items():
            fields = {"identities": None, "users": None, "projects": None, "scopes": ALL, **wanted}
            tenant = fields.pop("tenant")
            _, token = create_key(server.memories.store, tenant, name, **fields)
            clients[name] = httpx.Client(
                base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=30
            )
        try:
            yield Held(server=server, clients=clients)
        finally:
            for client in clients.values():
                client.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Held]:
    """Tenants t1 and t2; in t1 the users u1 and u2, and the agents A and B."""
    store: Any = tmp_path / "memory.db"
    if request.param == "postgresql":
        store = request.getfixturevalue("postgres_store").app_url
    keys: dict[str, dict[str, Any]] = {
        "t1": {"tenant": "t1"},
        "t1/u1": {"tenant": "t1", "users": ["u1"]},
        "t1/u2": {"tenant": "t1", "users": ["u2"]},
        "t2/u1": {"tenant": "t2", "users": ["u1"]},
        "t2/u9": {"tenant": "t2", "users": ["u9"]},
        "A": {"tenant": "t1", "identities": ["A"], "projects": []},
        "B": {"tenant": "t1", "identities": ["B"], "projects": []},
    }
    with holding(store, keys) as found:
        yield found


def add(client: httpx.Client, content: str, **query: Any) -> str:
    answer = client.post("/v1/memories", json={"content": content}, params=query)
    assert answer.status_code == 201, answer.text
    id: str = answer.json()["ids"][0]
    return id


def recalled(client: httpx.Client, query: str, **fields: Any) -> list[str]:
    answer = client.post("/v1/recall", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    return [item["content"] for item in answer.json()["items"]]


def delete_all(client: httpx.Client) -> dict[str, Any]:
    asked = client.post("/v1/forget", json={"everything": True})
    assert asked.status_code == 409, asked.text
    token = asked.json()["token"]
    done = client.post("/v1/forget", json={"everything": True, "confirm": token})
    assert done.status_code == 200, done.text
    gone: dict[str, Any] = done.json()
    return gone


def test_e01_deleting_one_users_memories_deletes_no_others(held: Held) -> None:
    for name in ("t1/u1", "t1/u2", "t2/u1"):
        add(held[name], f"{name} fact")
    gone = delete_all(held["t1/u1"])
    assert gone["memories"] == 1
    assert recalled(held["t1/u1"], "fact") == []
    assert held["t1/u1"].get("/v1/memories").json()["items"] == []
    verified = held["t1/u1"].get(f"/v1/receipts/{gone['id']}/verification")
    assert verified.json()["found"] == {}
    for name in ("t1/u2", "t2/u1"):
        assert recalled(held[name], "fact") == [f"{name} fact"]
        for profile in ("dense", "lexical"):
            assert recalled(held[name], "fact", profile=profile) == [f"{name} fact"]


def test_e04_every_part_of_an_answer_is_within_the_scope(held: Held) -> None:
    add(held["t1/u1"], "Marla owns the red boat")
    add(held["t2/u9"], "Marla owes 300 coins")
    for name in ("t1/u1", "t2/u9"):
        held[name].post("/v1/consolidate", json={})
    client = held["t1/u1"]
    parts = [
        client.post("/v1/recall", json={"query": "Marla", "explain": True}),
        client.post("/v1/candidates", json={"query": "Marla"}),
        client.post("/v1/hydrate", json={"cue": "Marla"}),
        client.get("/v1/records", params={"kinds": ["concept", "fact", "gist", "word"]}),
        client.get("/v1/memories", params={"kinds": ["concept", "episode"]}),
        client.get("/v1/strengths"),
        client.get("/v1/reports"),
        client.get("/v1/export"),
        client.get("/v1/stats"),
    ]
    for part in parts:
        assert part.status_code == 200, part.text
        for foreign in ("owes", "coins", "t2", "u9"):
            assert foreign not in part.text, (part.url, part.text)
    assert parts[-1].json()["items"] <= 2
    assert "boat" in parts[0].text
    assert {space["space"]["user"] for space in parts[-1].json()["spaces"]} == {"u1"}


def surfaces(id: str, number: int, other: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Everything that takes a memory's id: method, path, what is sent."""
    return [
        ("GET", f"/v1/memories/{id}", {}),
        ("GET", f"/v1/memories/{id}/history", {}),
        ("GET", f"/v1/memories/{id}/links", {}),
        ("PATCH", f"/v1/memories/{id}", {"json": {"content": "changed"}}),
        ("DELETE", f"/v1/memories/{id}", {}),
        ("POST", "/v1/links", {"json": {"source": other, "target": id}}),
        ("POST", "/v1/links", {"json": {"source": id, "target": other}}),
        ("DELETE", f"/v1/links/{other}/{id}", {}),
        ("POST", f"/v1/links/{other}/{id}/strengthen", {}),
        ("GET", f"/v1/links/{other}/{id}/why", {}),
        ("POST", "/v1/forget", {"json": {"ids": [id]}}),
        ("POST", "/v1/archive", {"json": {"ids": [id]}}),
        ("POST", "/v1/unarchive", {"json": {"ids": [id]}}),
        ("POST", f"/v1/threads/{id}/advance", {"json": {"note": "x"}}),
        ("POST", f"/v1/threads/{id}/conclude", {"json": {}}),
        ("GET", f"/api/memories/{number}", {}),
        ("POST", f"/api/memories/{number}/links", {"json": {"targetMemoryId": 1}}),
        ("DELETE", f"/api/memories/{number}/links/{number}", {}),
        ("POST", f"/api/memories/{number}/links/{number}/strengthen", {}),
    ]


def test_e05_nobody_reaches_another_agents_memory_by_any_route(held: Held) -> None:
    a, b = held["A"], held["B"]
    id = add(a, "agent A note of a violet umbrella")
    own = add(b, "agent B remark")
    found = a.get(f"/v1/memories/{id}").json()
    recall = a.post("/v1/recall", json={"query": "note"}).json()["id"]
    known = 9_000_000_000_000_000
    for (method, path, sent), (_, nowhere, lacking) in zip(
        surfaces(id, found["number"], own), surfaces(NOWHERE, known, own), strict=True
    ):
        seen = b.request(method, path, **sent)
        missing = b.request(method, nowhere, **lacking)
        assert (seen.status_code, told(seen, id, found["number"])) == (
            missing.status_code, told(missing, NOWHERE, known)
        ), path  # fmt: skip
        assert seen.status_code == (200 if path.endswith("/strengthen") and "/api" in path else 404)
    fed = b.post(f"/v1/recalls/{recall}/feedback", json={"used": [id]})
    assert fed.status_code == 404
    for answer in (
        b.post("/v1/recall", json={"query": "agent A note"}),
        b.post("/v1/candidates", json={"query": "agent A note"}),
        b.post("/v1/hydrate", json={"cue": "agent A note"}),
        b.get("/v1/memories"),
        b.get("/v1/export"),
        b.get("/v1/stats"),
        b.get("/v1/threads"),
        b.get("/v1/strengths"),
    ):
        assert answer.status_code == 200
        assert id not in answer.text
        assert "violet" not in answer.text
    place = Place(tenant="t1", identity="A", user=None, projects=())
    search = f"/api/identities/{identity_number(place)}/memories/search"
    assert b.get(search, params={"q": "note"}).status_code == 404
    assert b.get("/v1/memories", params={"identity": "A"}).status_code == 403
    assert b.get("/v1/memories", params={"project": "A"}).status_code == 403
    after = a.get(f"/v1/memories/{id}").json()
    used = ("access_count", "last_accessed")  # A's own question counts as a use
    assert {**after, **dict.fromkeys(used)} == {**found, **dict.fromkeys(used)}
    assert a.get(f"/v1/memories/{id}/links").json()["items"] == []


def told(answer: httpx.Response, id: str, number: int) -> Any:
    """What is answered, whichever memory it is about."""
    fields = answer.json()
    fields.pop("request", None)
    return json.loads(json.dumps(fields).replace(id, "ID").replace(str(number), "NUMBER"))


def test_e06_no_scope_or_a_strange_one_never_widens(held: Held) -> None:
    add(held["t1/u1"], "t1 note")
    stranger = held["t2/u9"]
    for query in ({}, {"user": "u9"}):
        answer = stranger.post("/v1/recall", json={"query": "note"}, params=query)
        assert answer.json()["items"] == []
    bodies: tuple[dict[str, Any], ...] = (
        {"tenant": "t1"}, {"tenant": ""}, {"tenant": None}, {"tenant": "*"}, {"user": "u1"},
        {"identity": "*"}, {"scope": {}},
    )  # fmt: skip
    for body in bodies:
        answer = stranger.post("/v1/recall", json={"query": "note", **body})
        assert answer.status_code == 422
    queries: tuple[tuple[dict[str, Any], int], ...] = (
        ({"user": "u1"}, 403), ({"user": "*"}, 403), ({"user": ""}, 422), ({"tenant": "t1"}, 422),
        ({"user": ["u9", "u1"]}, 422), ({"identity": ""}, 422), ({"project": ""}, 422),
    )  # fmt: skip
    for query, status in queries:
        answer = stranger.post("/v1/recall", json={"query": "note"}, params=query)
        assert answer.status_code == status, (query, answer.text)
    for client in (held["t1"], held["t2/u1"]):  # nobody's user, and another tenant's u1
        for query in ({}, {"user": "*"}) if client is held["t1"] else ({}, {"user": "u1"}):
            found = client.post("/v1/recall", json={"query": "note"}, params=query)
            assert found.json()["items"] == []
    header = {"X-Tenant": "t1", "X-Tenant-Id": "t1", "Tenant": "t1"}
    answer = stranger.post("/v1/recall", json={"query": "note"}, headers=header)
    assert answer.json()["items"] == []


def test_e07_the_same_words_of_two_users_are_two_memories(held: Held) -> None:
    text = "Same sentence everywhere."
    one, other = add(held["t1/u1"], text), add(held["t1/u2"], text)
    assert one != other
    delete_all(held["t1/u1"])
    for profile in ("cofire", "dense", "lexical"):
        assert recalled(held["t1/u2"], "same sentence", profile=profile) == [text]
    assert held["t1/u2"].get(f"/v1/memories/{other}").json()["embedded"] is True
    again = add(held["t1/u1"], text)
    assert again not in {one, other}
    assert recalled(held["t1/u1"], "same sentence") == [text]


def test_i02_a_slow_model_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    from fakes import StubEmbedder

    release = threading.Event()

    class Slow(StubEmbedder):
        def embed_passages(self, texts: Any) -> Any:
            release.wait(10)
            return super().embed_passages(texts)

    with running_server(tmp_path / "m.db", embedder=Slow()) as server:
        statuses: list[int] = []

        def slow() -> None:
            answer = httpx.post(
                f"{server.url}/v1/memories", json={"content": "slow one"}, timeout=30
            )
            statuses.append(answer.status_code)

        threads = [threading.Thread(target=slow) for _ in range(4)]
        for thread in threads:
            thread.start()
        with httpx.Client(base_url=server.url, timeout=5) as client:
            with pytest.raises(httpx.TimeoutException):  # and goes away
                client.post("/v1/memories", json={"content": "given up"}, timeout=0.2)
            waits = []
            for _ in range(5):
                answer = client.get("/livez")
                assert answer.status_code == 200
                waits.append(answer.elapsed.total_seconds())
                assert client.get("/v1/me").status_code == 200
            assert min(waits) < 0.2  # the machine may be busy otherwise
            release.set()
            for thread in threads:
                thread.join()
            assert statuses == [201] * 4
            assert client.post("/v1/memories", json={"content": "after"}).status_code == 201


def test_i03_nothing_found_and_what_fails_give_connections_back(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue("postgres_store")
    with running_server(database.app_url, embedder=FailingEmbedder()) as server:
        statuses: list[int] = []

        def nothing() -> None:
            answer = httpx.post(
                f"{server.url}/v1/recall", json={"query": "nothing matches this"}, timeout=30,
                params={"user": "u"},
            )  # fmt: skip
            statuses.append(answer.status_code)

        threads = [threading.Thread(target=nothing) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(statuses) == 12
        with httpx.Client(base_url=server.url, timeout=30) as client:
            for _ in range(20):
                client.post("/v1/similarity", json={"query": "x", "texts": ["y"]})
                client.get(f"/v1/memories/{NOWHERE}")
            import psycopg

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
            answer = client.post("/v1/recall", json={"query": "x"})
            assert answer.status_code == 200, answer.text


def test_i08_no_import_reads_the_servers_own_files(tmp_path: Path) -> None:
    """Over REST a file is what is sent, never a path: what names one is words to remember."""
    with (
        running_server(tmp_path / "m.db") as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        sent = b'{"content": "../../etc/passwd", "path": "../../etc/passwd"}\n'
        report = client.post("/v1/import", content=sent, headers=NDJSON).text.splitlines()[-1]
        assert json.loads(report)["imported"] == 1
        (item,) = client.get("/v1/memories").json()["items"]
        assert (item["content"], item["metadata"]) == (
            "../../etc/passwd", {"path": "../../etc/passwd"}
        )  # fmt: skip
        for query in ({"path": "/etc/passwd"}, {"source": "/etc/passwd"}, {"root": "/"}):
            answer = client.post("/v1/import", content=sent, headers=NDJSON, params=query)
            assert answer.status_code == 422

"""The contracts of Atamaia's section 4.3, under /api."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from serving import Running, running_server

NOBODY = 2**62 + 1


BOTH = pytest.mark.parametrize("server", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    store: Any = tmp_path / "memory.db"
    if getattr(request, "param", "sqlite") == "postgresql":
        store = request.getfixturevalue("postgres_store").app_url
    with running_server(store) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        yield client


def made(server: Running, *contents: str, identity: str = "default") -> list[int]:
    """The 64-bit ids of new memories."""
    memory = server.memories.of(identity)
    return [memory.get(memory.remember(content).id).number for content in contents]


def link(client: httpx.Client, one: int, other: int, kind: str = "Related") -> httpx.Response:
    body = {"targetMemoryId": other, "type": kind}
    return client.post(f"/api/memories/{one}/links", json=body)


def detail(client: httpx.Client, id: int) -> dict[str, Any]:
    answer = client.get(f"/api/memories/{id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@BOTH
def test_a_link_from_creation_to_removal(server: Running, client: httpx.Client) -> None:
    one, other = made(server, "The ferry leaves at 9:15.", "The boat is green.")
    created = link(client, one, other)
    assert created.status_code == 201
    dto = created.json()
    assert isinstance(dto.pop("id"), int)
    assert dto == {
        "fromMemoryId": one, "toMemoryId": other, "type": "Related", "strength": 0.5,
        "coActivationCount": 0, "lastCoActivatedAt": None,
    }  # fmt: skip
    assert link(client, one, other).status_code == 409
    assert link(client, one, other, "Supports").status_code == 409
    strength = 0.5
    for count in range(1, 4):
        ends = (one, other) if count % 2 else (other, one)  # it is symmetric
        said = client.post(f"/api/memories/{ends[0]}/links/{ends[1]}/strengthen")
        assert (said.status_code, said.json()) == (200, {"message": "Link strengthened"})
        strength = min(1.0, strength + (1.0 - strength) * 0.1)
        (seen,) = detail(client, one)["linksFrom"]
        assert seen["strength"] == pytest.approx(strength)
        assert seen["coActivationCount"] == count
        assert seen["lastCoActivatedAt"] is not None
    (seen,) = detail(client, other)["linksTo"]
    assert (seen["id"], seen["fromMemoryId"]) == (created.json()["id"], one)
    assert client.delete(f"/api/memories/{one}/links/{other}").status_code == 204
    assert detail(client, one)["linksFrom"] == detail(client, one)["linksTo"] == []
    assert client.delete(f"/api/memories/{one}/links/{other}").status_code == 404


def test_strengthening_what_does_not_exist_is_silent(server: Running, client: httpx.Client) -> None:
    one, other = made(server, "one", "other")
    (foreign,) = made(server, "somebody else's", identity="b")
    for ends in ((one, other), (one, NOBODY), (NOBODY, one), (one, one), (one, foreign)):
        said = client.post(f"/api/memories/{ends[0]}/links/{ends[1]}/strengthen")
        assert (said.status_code, said.json()) == (200, {"message": "Link strengthened"})
    assert server.memories.of().strengths() == ()


def test_what_cannot_be_linked(server: Running, client: httpx.Client) -> None:
    one, other = made(server, "one", "other")
    (foreign,) = made(server, "somebody else's", identity="b")
    assert link(client, one, one).status_code == 422
    assert link(client, one, other, "Marries").status_code == 422
    refused = [link(client, one, missing) for missing in (NOBODY, foreign)]
    assert [answer.status_code for answer in refused] == [404, 404]
    words = [answer.json()["detail"].replace(str(id), "") for answer, id in
             zip(refused, (NOBODY, foreign), strict=True)]  # fmt: skip
    assert words[0] == words[1]
    for id in ("0", "-1", "x"):
        assert client.get(f"/api/memories/{id}").status_code == 422
    assert client.get(f"/api/memories/{foreign}").status_code == 404


@pytest.mark.parametrize("kind", ["Causes", "evolves_to", "EvolvesTo", "Contradicts"])
def test_kinds_of_links(tmp_path: Path, kind: str) -> None:
    with (
        running_server(tmp_path / "m.db") as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        one, other = made(server, "one", "other")
        created = link(client, one, other, kind)
        assert created.json()["type"].lower() == kind.replace("_", "").lower()


@BOTH
def test_getting_counts_as_a_use(server: Running, client: httpx.Client) -> None:
    (id,) = made(server, "The ferry leaves at 9:15.")
    for count in range(1, 4):
        found = detail(client, id)
        assert found["accessCount"] == count
        assert found["lastAccessedAt"] is not None
    assert (found["id"], found["type"], found["content"]) == (
        id, "Episode", "The ferry leaves at 9:15."
    )  # fmt: skip
    guid = found["guid"]
    assert server.memories.of().get(guid).number == id
    client.get(f"/v1/memories/{guid}")
    assert server.memories.of().get(guid).access_count == 3


@BOTH
def test_a_search_is_an_identitys(server: Running, client: httpx.Client) -> None:
    (mine,) = made(server, "The ferry leaves at 9:15.")
    (other,) = made(server, "The ferry is green.", identity="b")
    for who, id in (("default", mine), ("b", other)):
        number = client.get("/v1/me", params={"identity": who}).json()["identity_number"]
        found = client.get(f"/api/identities/{number}/memories/search", params={"q": "ferry"})
        result = found.json()
        assert found.status_code == 200, result
        assert [hit["id"] for hit in result["results"]] == [id]
        assert result["results"][0]["identityId"] == number
        assert (result["totalCandidates"], result["embeddingCoverage"]) == (1, 1.0)
        query: dict[str, str | int] = {"q": "ferry", "topK": 1, "profile": "lexical"}
        found = client.get(f"/api/identities/{number}/memories/search", params=query)
        assert len(found.json()["results"]) == 1
    missing = client.get(f"/api/identities/{NOBODY}/memories/search", params={"q": "ferry"})
    assert missing.status_code == 404
    foreign = {"q": "ferry", "identity": "default"}
    assert (
        client.get(f"/api/identities/{number}/memories/search", params=foreign).status_code == 404
    )


def test_what_was_learned_is_a_link_too(server: Running, client: httpx.Client) -> None:
    one, other = made(server, "The ferry leaves at 9:15.", "The ferry is green.")
    memory = server.memories.of()
    found = memory.recall("ferry")
    memory.feedback(found, found.ids)
    links = detail(client, one)["linksFrom"] + detail(client, one)["linksTo"]
    assert [(seen["type"], seen["coActivationCount"]) for seen in links] == [("Coactivation", 1)]
    assert {links[0]["fromMemoryId"], links[0]["toMemoryId"]} == {one, other}
    ends = links[0]["fromMemoryId"], links[0]["toMemoryId"]
    assert client.delete(f"/api/memories/{ends[0]}/links/{ends[1]}").status_code == 204
    learned = [{link.a, link.b} for link in memory.strengths()]
    assert set(found.ids) not in learned  # what the question is linked with stays

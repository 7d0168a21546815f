"""REST under /v1 as its callers see it: a real server on loopback, on both kinds of store."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2 as httpx
import jsonschema_rs
import pytest

from cofire import Memory
from cofire.plain import plain, recall_shape
from cofire.server.access import Caller, Scope
from cofire.server.answers import json_bytes
from cofire.server.rest.asking import REPLAYED
from fakes import FailingEmbedder
from serving import Running, running_server

NOWHERE = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"
NDJSON = {"Content-Type": "application/x-ndjson"}
OPENAPI = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(OPENAPI.read_text(encoding="utf-8"))

VERBS = {
    "remember": ("remember", "remember_batch"),
    "recall": ("recall",),
    "answer": ("answer",),
    "candidates": ("candidates",),
    "count_tokens": ("count_tokens",),
    "similarity": ("similarity",),
    "feedback": ("feedback",),
    "opened": ("opened",),
    "cited": ("cited",),
    "strengthen": ("strengthen",),
    "strengths": ("strengths",),
    "why": ("why",),
    "proposals": ("proposals",),
    "replay": ("replay",),
    "learn_by": ("learn_by",),
    "get": ("get_memory",),
    "list": ("list_memories",),
    "update": ("update_memory",),
    "history": ("history",),
    "link": ("link",),
    "unlink": ("unlink",),
    "links": ("links",),
    "stats": ("stats",),
    "export": ("export_memories",),
    "import_": ("import_memories",),
    "check": ("check",),
    "forget": ("forget", "forget_memory"),
    "receipts": ("receipts",),
    "verify": ("verify",),
    "hydrate": ("hydrate",),
    "checkpoint": ("checkpoint",),
    "threads": ("threads",),
    "advance": ("advance",),
    "conclude": ("conclude",),
    "consolidate": ("consolidate",),
    "records": ("records",),
    "quarantine": ("quarantine",),
    "shapes": ("shapes",),
    "archive": ("archive",),
    "unarchive": ("unarchive",),
    "reports": ("reports",),
}
"""The operations of each verb of `Memory`."""
ELSEWHERE = {
    "answering": "the parts of an answer are the server's own",
    "open": "a server opens its store",
    "close": "a server closes its store",
    "backup": "a whole store, by its operator",
    "restore": "a whole store, by its operator",
    "scrub": "a whole store, by its operator",
    "rotate_key": "a whole store, by its operator",
    "reembed": "a whole store, by its operator",
    "forget_vectors": "a cache that all share",
    "embed_missing": "the worker's",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    store: Any = tmp_path / "memory.db"
    if request.param == "postgresql":
        store = request.getfixturevalue("postgres_store").app_url
    with running_server(store) as running:
        yield running


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Running]:
    with running_server(tmp_path / "memory.db") as running:
        yield running


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """Of the server that the test asks for."""
    name = "server" if "server" in request.fixturenames else "local"
    with httpx.Client(base_url=request.getfixturevalue(name).url, timeout=30) as client:
        yield client


def ok(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


def problem(response: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    assert (response.status_code, found["type"]) == (status, f"urn:cofire:problem:{kind}")
    assert found["request"] == response.headers["x-request-id"]
    return found


def remember(client: httpx.Client, content: str, **fields: Any) -> str:
    where = fields.pop("where", {})
    answer = ok(client.post("/v1/memories", json={"content": content, **fields}, params=where), 201)
    id: str = answer["ids"][0]
    return id


# Everything is there, and described


def test_every_verb_of_the_library_has_a_route() -> None:
    verbs = {
        name
        for base in Memory.__mro__
        if base is not object
        for name in vars(base)
        if not name.startswith("_")
    }
    assert verbs == VERBS.keys() | ELSEWHERE.keys()
    operations = {one["operationId"] for _, _, one in operations_of(DOCUMENT)}
    wanted = {operation for named in VERBS.values() for operation in named}
    assert wanted <= operations


def operations_of(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [pytest.param(*one, id=one[2]["operationId"]) for one in operations_of(DOCUMENT)],
)
def test_every_route_is_described(method: str, path: str, operation: dict[str, Any]) -> None:
    assert operation["description"].endswith(".")
    assert operation["summary"]
    assert len(operation["tags"]) == 1
    for parameter in operation.get("parameters", ()):
        assert parameter["in"] != "query" or parameter["schema"], parameter
    for status, answer in operation["responses"].items():
        given = answer.get("content", {})
        if status.startswith("2") and "application/json" in given:
            found = given["application/json"]
            assert conforms(found["schema"], found["example"]), found["example"]
        elif status.startswith("2"):
            assert given or status == "204"
        else:
            assert status == "304" or answer["$ref"].endswith(f"/Problem{status}")
    body = operation.get("requestBody")
    if body is not None:
        for media, content in body["content"].items():
            if media == "application/json":
                schema = resolved(content["schema"])
                assert schema["additionalProperties"] is False
                assert schema["examples"]
                assert all(conforms(schema, example) for example in schema["examples"])


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def conforms(schema: dict[str, Any], value: Any) -> bool:
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    return bool(validator.is_valid(value))


def test_what_may_not_be_done_to_whose_memories_is_not_in_bodies_nor_by_unknown_names(
    local: Running, client: httpx.Client
) -> None:
    for path, body in (("/v1/recall", {"query": "x"}), ("/v1/memories", {"content": "x"})):
        for name in ("tenant", "identity", "user", "project"):
            problem(client.post(path, json=body | {name: "other"}), 422, "invalid")
        problem(client.post(path, json=body, params={"tenant": "other"}), 422, "input")
        problem(client.post(path, json=body, params={"user": " "}), 422, "input")
    problem(client.get("/v1/memories", params={"kind": "fact"}), 422, "input")
    problem(client.get("/v1/memories?user=a&user=b"), 422, "input")


# Remembering


def test_a_memory_from_first_to_last(server: Running, client: httpx.Client) -> None:
    made = client.post(
        "/v1/memories",
        json={"content": "The ferry leaves at 9:15.", "speaker": "Ada", "tags": ["travel"]},
    )
    id = ok(made, 201)["ids"][0]
    got = client.get(made.headers["location"])
    assert (ok(got)["content"], got.json()["tags"]) == ("The ferry leaves at 9:15.", ["travel"])
    first = got.headers["etag"]
    unchanged = client.get(f"/v1/memories/{id}", headers={"If-None-Match": first})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    change = {"content": "The ferry leaves at 9:45.", "tags": None}
    changed = client.patch(f"/v1/memories/{id}", json=change, headers={"If-Match": first})
    assert (ok(changed)["content"], changed.json()["tags"]) == (change["content"], [])
    assert client.get(f"/v1/memories/{id}").headers["etag"] == changed.headers["etag"] != first
    problem(
        client.patch(f"/v1/memories/{id}", json={}, headers={"If-Match": first}), 412, "changed"
    )
    problem(client.delete(f"/v1/memories/{id}", headers={"If-Match": first}), 412, "changed")
    history = ok(client.get(f"/v1/memories/{id}/history"))
    assert [one["content"] for one in history["items"]] == ["The ferry leaves at 9:15."]
    assert ok(client.post("/v1/archive", json={"ids": [id]})) == {"archived": 1}
    assert ok(client.get("/v1/memories"))["items"] == []
    assert client.get(f"/v1/memories/{id}").headers["etag"] != changed.headers["etag"]
    assert ok(client.post("/v1/unarchive", json={"ids": [id]})) == {"restored": 1}
    gone = ok(client.delete(f"/v1/memories/{id}", headers={"If-Match": changed.headers["etag"]}))
    assert gone["ids"] == [id]
    assert "ferry" not in json.dumps(gone)
    problem(client.get(f"/v1/memories/{id}"), 404, "not-found")
    receipt = ok(client.get("/v1/receipts"))["items"][0]
    assert receipt["id"] == gone["id"]
    assert ok(client.get(f"/v1/receipts/{gone['id']}/verification"))["found"] == {}


def test_what_was_changed_meanwhile_is_never_overwritten(
    local: Running, client: httpx.Client
) -> None:
    id = remember(client, "nought")
    seen = client.get(f"/v1/memories/{id}").headers["etag"]
    ready = threading.Barrier(8)
    statuses = []

    def change(name: int) -> None:
        with httpx.Client(base_url=local.url, timeout=30) as own:
            ready.wait()
            answer = own.patch(
                f"/v1/memories/{id}", json={"content": f"by {name}"}, headers={"If-Match": seen}
            )
            statuses.append(answer.status_code)

    threads = [threading.Thread(target=change, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, *[412] * 7]
    assert len(ok(client.get(f"/v1/memories/{id}/history"))["items"]) == 1


def test_null_where_nothing_can_be_empty_is_refused(local: Running, client: httpx.Client) -> None:
    id = remember(client, "nought", title="a title")
    for name in ("content", "kind", "time", "importance", "pinned", "untrusted"):
        problem(client.patch(f"/v1/memories/{id}", json={name: None}), 422, "input")
    cleared = ok(client.patch(f"/v1/memories/{id}", json={"title": None}))
    assert cleared["title"] is None
    assert ok(client.patch(f"/v1/memories/{id}", json={}))["version"] == cleared["version"]


def test_a_batch_is_all_or_nothing(local: Running, client: httpx.Client) -> None:
    messages = [{"content": f"memory {number}"} for number in range(1_000)]
    assert (
        len(ok(client.post("/v1/memories:batch", json={"messages": messages}), 201)["ids"]) == 1_000
    )
    problem(
        client.post("/v1/memories:batch", json={"messages": [*messages, messages[0]]}),
        422, "invalid",
    )  # fmt: skip
    broken = [{"content": "good"}, {"content": "bad", "kind": "cue"}]
    assert "message 1" in problem(
        client.post("/v1/memories:batch", json={"messages": broken}), 422, "input"
    )["detail"]  # fmt: skip
    assert ok(client.get("/v1/stats"))["items"] == 1_000


def test_pages_hold_everything_once(local: Running, client: httpx.Client) -> None:
    messages = [{"content": f"memory {number}", "tags": [f"t{number % 2}"]} for number in range(25)]
    client.post("/v1/memories:batch", json={"messages": messages})

    def pages(path: str, **query: Any) -> list[Any]:
        found: list[Any] = []
        after = None
        while True:
            page = ok(
                client.get(
                    path, params={"limit": 7, **query, **({"after": after} if after else {})}
                )
            )
            assert len(page["items"]) <= 7
            found += page["items"]
            after = page["next"]
            if after is None:
                return found

    assert len({one["id"] for one in pages("/v1/memories")}) == 25
    assert len(pages("/v1/memories", tags="t1")) == 12
    ids = [one["id"] for one in pages("/v1/memories")]
    for other in ids[1:10]:
        client.post("/v1/links", json={"source": ids[0], "target": other})
    assert len(pages(f"/v1/memories/{ids[0]}/links")) == 9
    problem(client.get("/v1/memories", params={"after": "nonsense"}), 422, "input")
    problem(client.get("/v1/strengths", params={"after": "-1"}), 422, "input")
    problem(client.get("/v1/memories", params={"limit": 1_001}), 422, "invalid")


# Once


def test_a_request_with_a_key_is_done_once(server: Running, client: httpx.Client) -> None:
    once = {"Idempotency-Key": "a-key"}
    body = {"content": "The ferry leaves at 9:15."}
    first = client.post("/v1/memories", json=body, headers=once)
    again = client.post("/v1/memories", json=body, headers=once)
    assert ok(first, 201) == ok(again, 201)
    assert (first.headers.get(REPLAYED), again.headers[REPLAYED]) == (None, "true")
    assert again.headers["location"] == first.headers["location"]
    assert ok(client.get("/v1/stats"))["items"] == 1
    other = {"content": "Another."}
    problem(client.post("/v1/memories", json=other, headers=once), 422, "input")
    elsewhere = client.post("/v1/memories", json=body, headers=once, params={"user": "u2"})
    problem(elsewhere, 422, "input")
    id = first.json()["ids"][0]
    strengthened = {"Idempotency-Key": "b-key"}
    second = remember(client, "The boat is green.")
    path = f"/v1/links/{id}/{second}/strengthen"
    assert ok(client.post(path, headers=strengthened)) == ok(
        client.post(path, headers=strengthened)
    )
    assert [one["coactivations"] for one in ok(client.get("/v1/strengths"))["items"]] == [1]


def test_a_request_whose_server_was_killed_before_it_answered_is_done_once(
    local: Running, client: httpx.Client, tmp_path: Path
) -> None:
    """The memories are stored, and nothing was noted of the request: the kill came between."""
    for path, body in (
        ("/v1/memories", {"content": "The ferry leaves at 9:15."}),
        ("/v1/memories:batch", {"messages": [{"content": "Twice."}, {"content": "Twice."}]}),
    ):
        once = {"Idempotency-Key": path}
        first = ok(client.post(path, json=body, headers=once), 201)
        with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as rows:
            rows.execute("DELETE FROM idempotency")
        again = ok(client.post(path, json=body, headers=once), 201)
        assert again["ids"] == first["ids"]
        assert set(first["created"]) == {True}
        assert set(again["created"]) == {False}
    assert ok(client.get("/v1/stats"))["items"] == 3


def test_answers_with_content_are_made_anew(
    local: Running, client: httpx.Client, tmp_path: Path
) -> None:
    id = remember(client, "nought")
    once = {"Idempotency-Key": "change"}
    path, body = f"/v1/memories/{id}", {"content": "secret words"}
    first = client.patch(path, json=body, headers=once)
    again = client.patch(path, json=body, headers=once)
    assert ok(first) == ok(again)
    assert first.headers["etag"] == again.headers["etag"]
    ending = {"summary": "secret summary", "threads": ["secret thread"]}
    one = client.post("/v1/checkpoints", json=ending, headers={"Idempotency-Key": "end"})
    two = client.post("/v1/checkpoints", json=ending, headers={"Idempotency-Key": "end"})
    assert ok(one, 201) == ok(two, 201)
    thread = one.json()["open"][0]["id"]
    noted = {"Idempotency-Key": "note"}
    path, body = f"/v1/threads/{thread}/advance", {"note": "secret note"}
    assert ok(client.post(path, json=body, headers=noted)) == ok(
        client.post(path, json=body, headers=noted)
    )
    with closing(sqlite3.connect(tmp_path / "memory.db")) as rows:
        kept = rows.execute("SELECT * FROM idempotency").fetchall()
    assert len(kept) == 3
    assert "secret" not in repr(kept)


def test_what_failed_may_be_tried_again_with_the_same_key(
    local: Running, client: httpx.Client
) -> None:
    one, once = remember(client, "one"), {"Idempotency-Key": "link"}
    body = {"source": one, "target": one}
    for _ in range(2):
        problem(client.post("/v1/links", json=body, headers=once), 422, "input")
    body = {"source": one, "target": remember(client, "other")}
    assert ok(client.post("/v1/links", json=body, headers=once), 201)["strength"] == 0.5
    problem(
        client.post("/v1/links", json=body, headers={"Idempotency-Key": "x" * 256}), 422, "invalid"
    )


def test_two_callers_keys_are_not_the_same(tmp_path: Path) -> None:
    store = tmp_path / "m.db"
    scopes = frozenset(Scope)
    for name in ("one", "other"):
        caller = Caller(
            name=name, tenant="default", identities=None, users=None, projects=None, scopes=scopes
        )
        with (
            running_server(store, local=caller) as server,
            httpx.Client(base_url=server.url, timeout=30) as client,
        ):
            answer = client.post(
                "/v1/memories", json={"content": name}, headers={"Idempotency-Key": "k"}
            )
            assert ok(answer, 201)["created"] == [True]


# Recalling


def test_a_recall_is_what_a_caller_needs(local: Running, client: httpx.Client) -> None:
    id = remember(
        client, "The ferry leaves at 9:15.", speaker="Ada", time="2026-05-08T19:30:00+02:00"
    )
    remember(client, "A web page says otherwise.", untrusted=True)
    found = ok(client.post("/v1/recall", json={"query": "When does the ferry leave?"}))
    best = found["items"][0]
    assert (best["id"], best["content"], best["speaker"]) == (
        id,
        "The ferry leaves at 9:15.",
        "Ada",
    )
    assert best["time"] == "2026-05-08T17:30:00Z"
    assert best["line"] in found["text"]
    assert found["tokens"] > 0
    assert found["confidence"] is None or 0.0 <= found["confidence"] <= 1.0
    assert found["abstain"] in {True, False}
    assert found["warnings"] == []
    assert found["trace"] is None
    with_trace = ok(client.post("/v1/recall", json={"query": "ferry", "k": 1, "explain": True}))
    assert with_trace["trace"]["timings"]
    trusted = ok(client.post("/v1/recall", json={"query": "web page", "trusted_only": True}))
    assert {one["id"] for one in trusted["items"]} <= {id}


def test_one_value_has_one_shape(local: Running, client: httpx.Client) -> None:
    remember(client, "The ferry leaves at 9:15.", time=1778261400, tags=["a"], metadata={"x": [1]})
    memory = local.memories.of()
    found = memory.recall("ferry", explain=True)
    assert json.loads(json_bytes(recall_shape(found))) == plain(recall_shape(found))
    item = memory.list().items[0]
    assert ok(client.get(f"/v1/memories/{item.id}")) == plain(memory.get(item.id))


def test_feedback_teaches_and_is_the_callers(server: Running, client: httpx.Client) -> None:
    ids = [remember(client, text) for text in ("The ferry leaves at 9:15.", "The ferry is green.")]
    found = ok(client.post("/v1/recall", json={"query": "the ferry"}))
    path = f"/v1/recalls/{found['id']}"
    learned = ok(client.post(f"{path}/feedback", json={"used": ids}))
    assert learned["counted"]
    assert ok(client.post(f"{path}/feedback", json={"used": ids}))["counted"] is False
    places = [one["id"] for one in found["items"]]
    cited = ok(client.post(f"{path}/cited", json={"answer": "At 9:15 [1], it is green [2]."}))
    assert cited["counted"]
    assert ok(client.post(f"{path}/cited", json={"answer": "No idea."}))["counted"] is False
    ok(client.post(f"{path}/opened", json={"ids": places[:1]}))
    events = ok(client.get(f"/v1/links/{ids[0]}/{ids[1]}/why"))["items"]
    assert {event["signal"] for event in events} == {"used", "cited"}
    assert {event["by"] for event in events} == {"local"}
    problem(client.post(f"{path}/feedback", json={"used": [NOWHERE]}), 422, "input")
    problem(client.post(f"{path}/feedback", json={"used": ids, "by": "boss"}), 422, "invalid")
    problem(client.post(f"/v1/recalls/{NOWHERE}/feedback", json={"used": ids}), 404, "not-found")


def test_an_answer_is_of_ones_own_memories(server: Running, client: httpx.Client) -> None:
    id = remember(client, "The ferry leaves at 9:15.", where={"user": "nora"})
    asked = {"question": "When does the ferry leave?"}
    found = ok(client.post("/v1/answer", json=asked, params={"user": "nora"}))
    assert [one["id"] for one in found["citations"]] == [id]
    other = ok(client.post("/v1/answer", json=asked, params={"user": "igor"}))
    assert (other["abstained"], other["reason"], other["nearest"]) == (True, "nothing", [])
    far = ok(client.post("/v1/answer", json={**asked, "until": "2020-01-01"}))
    assert far["abstained"]
    learned = client.post(f"/v1/recalls/{found['recall']}/feedback", json={"used": [id]})
    problem(learned, 404, "not-found")
    ok(
        client.post(
            f"/v1/recalls/{found['recall']}/feedback", json={"used": [id]}, params={"user": "nora"}
        )
    )
    for answer in (found, other):
        jsonschema_rs.validate(schema_of("AnswerToQuestion"), answer)


def schema_of(name: str) -> dict[str, Any]:
    """A schema of the document, with those that it refers to."""
    return {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}


def test_an_embedder_that_fails_is_told_without_what_it_said(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "m.db", embedder=FailingEmbedder()) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        stored = client.post("/v1/memories", json={"content": "kept all the same"})
        assert stored.status_code in {201, 502}
        answer = client.post("/v1/similarity", json={"query": "a", "texts": ["b"]})
        problem(answer, 502, "embedding")


# Sessions, sleep, deletion


def test_a_session_ends_and_the_next_one_knows(local: Running, client: httpx.Client) -> None:
    ended = ok(
        client.post("/v1/checkpoints", json={"summary": "Booked.", "threads": ["find a hotel"]}),
        201,
    )
    thread = ended["open"][0]["id"]
    opening = ok(client.post("/v1/hydrate", json={"cue": "hotel", "seed": 1}))
    assert "find a hotel" in opening["text"]
    assert opening["entries"][0]["item"]["id"]
    ok(client.post(f"/v1/recalls/{opening['id']}/feedback", json={"used": [thread]}))
    noted = ok(client.post(f"/v1/threads/{thread}/advance", json={"note": "two answered"}))
    assert (noted["state"], noted["note"]) == ("advanced", "two answered")
    assert ok(client.post(f"/v1/threads/{thread}/conclude", json={}))["state"] == "closed"
    assert ok(client.get("/v1/threads"))["items"] == []
    assert len(ok(client.get("/v1/threads", params={"state": "closed"}))["items"]) == 1
    problem(client.get("/v1/threads", params={"kinds": "fact"}), 422, "invalid")


def test_consolidation_and_what_it_made(local: Running, client: httpx.Client) -> None:
    for day in range(3):
        remember(client, "I live in Emden.", speaker="Ada", time=f"2026-05-0{day + 1}")
    reports = ok(client.post("/v1/consolidate", json={}))["reports"]
    assert [report["status"] for report in reports] == ["done"]
    assert ok(client.get("/v1/reports"))["items"][0]["steps"] == reports[0]["steps"]
    for path in ("records", "quarantine", "shapes", "proposals", "strengths"):
        assert set(ok(client.get(f"/v1/{path}"))) == {"items", "next"}
    problem(client.post("/v1/consolidate", json={"steps": ["nonsense"]}), 422, "input")
    assert ok(client.post("/v1/replay")) == {"mended": 0}
    assert ok(client.put("/v1/rule", json={"rule": "atamaia"})) == {"changed": 3}
    assert ok(client.get("/v1/stats"))["spaces"][0]["learning_rule"] == "atamaia"
    assert ok(client.get("/v1/check")) == {"findings": []}


def test_everything_is_forgotten_only_when_confirmed(local: Running, client: httpx.Client) -> None:
    remember(client, "one", tags=["a"])
    remember(client, "two")
    tried = ok(client.post("/v1/forget", json={"everything": True, "dry_run": True}))
    assert (tried["id"], tried["memories"]) == (None, 2)
    asked = problem(
        client.post("/v1/forget", json={"everything": True}), 409, "confirmation-needed"
    )
    assert asked["count"] == 2
    wrongs: tuple[dict[str, Any], ...] = (
        {}, {"ids": []}, {"tags": ["a"]}, {"scope": "own"}, {"scope": "own", "tags": []},
        {"scope": "own", "tags": None}, {"everything": True, "tags": ["a"]},
        {"ids": ["x"], "everything": True},
    )  # fmt: skip
    for wrong in wrongs:
        assert client.post("/v1/forget", json=wrong).status_code == 422, wrong
    gone = ok(client.post("/v1/forget", json={"scope": "own", "tags": ["a"]}))
    assert gone["memories"] == 1
    old = {"everything": True, "confirm": asked["token"]}
    asked = problem(client.post("/v1/forget", json=old), 409, "confirmation-needed")
    confirmed = client.post("/v1/forget", json={"everything": True, "confirm": asked["token"]})
    assert ok(confirmed)["memories"] == 1
    assert ok(client.get("/v1/stats"))["items"] == 0


def test_projects_are_written_to_by_name(local: Running, client: httpx.Client) -> None:
    ok(client.post("/v1/memories", json={"content": "shared"}, params={"into": "web"}), 201)
    assert ok(client.get("/v1/memories"))["items"] == []
    seen = ok(client.get("/v1/memories", params={"project": "web", "identity": "other"}))
    assert [one["content"] for one in seen["items"]] == ["shared"]
    asked = client.post(
        "/v1/forget", json={"everything": True, "scope": "web"}, params={"project": "web"}
    )
    assert problem(asked, 409, "confirmation-needed")["count"] == 1


# Moving


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def test_an_import_tells_how_far_it_is_and_what_was_wrong(
    local: Running, client: httpx.Client
) -> None:
    told = [json.dumps({"content": f"line {number}"}) for number in range(2_500)]
    told[1_200] = "{broken"
    sent = "\n".join(told).encode()
    *progress, report = lines(client.post("/v1/import", content=sent, headers=NDJSON))
    assert [line["type"] for line in progress] == ["progress"] * len(progress)
    assert [line["done"] for line in progress] == sorted({line["done"] for line in progress})
    assert progress[-1]["done"] <= 2_499
    assert (report["type"], report["imported"], report["dropped"]) == ("report", 2_499, 1)
    assert report["source"] == "body"
    assert report["problems"][0]["where"] == "body, line 1201"
    again = lines(client.post("/v1/import", content=sent, headers=NDJSON))[-1]
    assert (again["imported"], again["known"]) == (0, 2_499)


def test_an_export_is_what_an_import_takes(server: Running, client: httpx.Client) -> None:
    ids = [remember(client, text, tags=["t"]) for text in ("one", "two")]
    client.patch(f"/v1/memories/{ids[0]}", json={"content": "one more"})
    exported = client.get("/v1/export")
    assert int(exported.headers["content-length"]) == len(exported.content)
    whose = {"identity": "another"}
    sent = client.post("/v1/import", content=exported.content, headers=NDJSON, params=whose)
    assert lines(sent)[-1]["imported"] == 2
    copy = ok(client.get(f"/v1/memories/{ids[0]}", params=whose))
    assert (copy["content"], copy["tags"]) == ("one more", ["t"])
    assert len(ok(client.get(f"/v1/memories/{ids[0]}/history", params=whose))["items"]) == 1
    cut = client.post("/v1/import", content=exported.content[:-30], headers=NDJSON)
    found = problem(cut, 422, "format")
    assert found["detail"].startswith("body ")
    assert "/" not in found["detail"]


def test_what_is_no_file_of_lines_is_refused(local: Running, client: httpx.Client) -> None:
    problem(client.post("/v1/import", content=b"{}"), 415, "media-type")
    latin = b'{"content": "caf\xe9"}\n'
    found = problem(client.post("/v1/import", content=latin, headers=NDJSON), 422, "format")
    assert "/" not in found["detail"]
    assert lines(client.post("/v1/import", content=b"", headers=NDJSON))[-1]["read"] == 0
    project = client.post("/v1/import", content=b"", headers=NDJSON, params={"format": "text"})
    problem(project, 422, "invalid")


def test_a_problem_after_the_first_thousand_is_the_last_line(
    local: Running, client: httpx.Client
) -> None:
    sent = b"".join(b'{"content": "line %d"}\n' % number for number in range(3_000))
    own = b'{"type": "header", "format": "cofire", "version": 99}\n'
    problem(client.post("/v1/import", content=own, headers=NDJSON), 422, "format")
    stored = lines(client.post("/v1/import", content=sent, headers=NDJSON, params={"into": "web"}))
    assert stored[-1]["imported"] == 3_000
    assert ok(client.get("/v1/stats"))["items"] == 0
    assert ok(client.get("/v1/stats", params={"project": "web"}))["items"] == 3_000


def test_nothing_of_a_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with (
        running_server(tmp_path / "m.db") as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        for content in (b'{"content": "one"}', b'{"content": "\xe9"}'):
            client.post("/v1/import", content=content, headers=NDJSON)
        client.get("/v1/export")
    assert list(place.iterdir()) == []


# Administration


def test_a_key_makes_none_that_can_do_more(tmp_path: Path) -> None:
    caller = Caller(
        name="boss", tenant="default", identities=("a", "b"), users=None, projects=(),
        scopes=frozenset({Scope.READ, Scope.ADMIN}),
    )  # fmt: skip
    with (
        running_server(tmp_path / "m.db", local=caller) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        made = ok(
            client.post("/v1/keys", json={"name": "x", "identities": ["a"], "scopes": ["read"]}),
            201,
        )
        assert re.fullmatch(r"cofire_[\w-]{32}_[\w-]{43}", made["token"])
        listed = ok(client.get("/v1/keys"))["items"]
        assert [one["id"] for one in listed] == [made["id"]]
        assert "token" not in listed[0]
        for more in (
            {"identities": ["a"], "scopes": ["write"]}, {"identities": ["c"], "scopes": ["read"]},
            {"identities": None, "scopes": ["read"]},
            {"identities": ["a"], "projects": None, "scopes": ["read"]},
        ):  # fmt: skip
            problem(client.post("/v1/keys", json={"name": "y", **more}), 403, "forbidden")
        for whole in ("/v1/audit", "/v1/jobs", "/v1/check"):
            problem(client.get(whole), 403, "forbidden")
        assert ok(client.delete(f"/v1/keys/{made['id']}"))["revoked"] is True
        assert ok(client.delete(f"/v1/keys/{made['id']}"))["revoked"] is False
        problem(client.delete(f"/v1/keys/{NOWHERE}"), 404, "not-found")


def test_who_asks_and_how_much_there_is(local: Running, client: httpx.Client) -> None:
    me = ok(client.get("/v1/me"))
    assert (me["name"], me["tenant"], me["identity"]) == ("local", "default", "default")
    stats = client.get("/v1/stats")
    assert set(ok(stats)) == {"spaces", "items", "links"}
    assert ok(client.get("/v1/jobs"))["given_up"] == []
    assert ok(client.post("/v1/jobs:retry")) == {"retried": 0}
    assert ok(client.get("/v1/audit"))["items"] == []
    problem(client.get("/v1/audit", params={"after": "é"}), 422, "input")


def test_an_address_says_what_it_takes(local: Running, client: httpx.Client) -> None:
    answer = client.put(f"/v1/memories/{NOWHERE}", json={})
    problem(answer, 405, "method")
    assert answer.headers["allow"] == "DELETE, GET, PATCH"

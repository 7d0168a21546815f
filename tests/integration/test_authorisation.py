"""The authorisation matrix: every action, route and tool, by whoever may come.

What is expected follows from `NEEDS`, which `POLICY` states once more, so that nobody changes it by
the way. A new action, route or tool fails here until it has a row.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from starlette.routing import Mount, Route

from cofire.errors import ForbiddenError, InputError
from cofire.memories import Memories
from cofire.memory import Memory
from cofire.server import keys
from cofire.server.access import Caller, Scope, Where, local_caller
from cofire.server.actions import NEEDS, WRITES, Action
from cofire.server.mcp.catalogue import tools_for
from cofire.server.mcp.http import mcp_app
from cofire.server.mcp.tools import Tool
from cofire.server.metrics import Metrics
from cofire.server.rest.numbers import identity_number
from cofire.server.service import Answered, Asked, Service
from cofire.server.serving import Plan, assemble
from cofire.settings import load_settings
from serving import Running, running_server

READS = """recall answer get list history links strengths why proposals hydrate threads records
    quarantine shapes reports receipts verify stats count_tokens export"""
CHANGES = """remember feedback opened cited update link unlink strengthen checkpoint advance
    conclude archive unarchive import"""
POLICY: dict[Action, Scope] = {
    **{Action(name): Scope.READ for name in READS.split()},
    **{Action(name): Scope.WRITE for name in CHANGES.split()},
    Action.FORGET: Scope.FORGET,
    **{
        Action(name): Scope.ADMIN
        for name in ("replay", "learn_by", "consolidate", "check", "keys", "audit", "jobs")
    },
}

TENANT, IDENTITY, USER = "acme", "ada", "nora"
MARK = "heron"
"""In everything that belongs to the tenant and the identity that others must not reach."""
FOREVER = datetime(2100, 1, 1, tzinfo=UTC)


# Actions, by the gate itself


def test_every_action_has_a_row() -> None:
    assert POLICY == NEEDS
    assert set(Action) == set(POLICY)
    looking = {Action.CHECK, Action.AUDIT}
    changing = {action for action, scope in POLICY.items() if scope is not Scope.READ}
    assert changing - looking == WRITES


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memories]:
    path = tmp_path_factory.mktemp("gate") / "memory.db"
    with Memories.open(path, embedder="hashing:16") as opened:
        yield opened


def caller(scopes: Sequence[Scope], **more: Any) -> Caller:
    names: dict[str, Any] = {"identities": None, "users": None, "projects": None, **more}
    return Caller(name="desk", tenant=TENANT, scopes=frozenset(scopes), **names)


def gate(
    memories: Memories, who: Caller, action: Action, where: Where, entered: list[str]
) -> type[Exception] | None:
    """What it raises; `entered` is told whether the verb was called."""
    service = Service(memories)

    def verb(memory: Memory) -> None:
        entered.append(str(memory.stats().spaces[0].space))

    try:
        asyncio.run(service.run(who, action, where, verb, surface="rest"))
    except (ForbiddenError, InputError) as error:
        return type(error)
    return None


@pytest.mark.parametrize("action", list(Action))
def test_an_action_takes_its_scope_and_no_other(memories: Memories, action: Action) -> None:
    for count in range(len(Scope) + 1):
        for scopes in itertools.combinations(Scope, count):
            entered: list[str] = []
            raised = gate(memories, caller(scopes), action, Where(), entered)
            permitted = POLICY[action] in scopes
            assert raised is (None if permitted else ForbiddenError), (action, scopes)
            assert bool(entered) is permitted


@pytest.mark.parametrize(
    ("may", "where", "expected"),
    [
        # the caller's own, where nothing is named
        ({}, {}, "acme/default"),
        ({"identities": ("zoe", "ada")}, {}, "acme/zoe"),
        ({"users": ("igor",)}, {}, "acme/default/igor"),
        # own, named
        ({"identities": ("zoe", "ada")}, {"identity": "ada"}, "acme/ada"),
        ({"users": ("igor", "nora")}, {"user": "nora"}, "acme/default/nora"),
        ({"projects": ("site",)}, {"projects": ("site",)}, "acme/default"),
        ({}, {"identity": "anybody", "user": "whoever", "projects": ("x",)},
         "acme/anybody/whoever"),
        # another's
        ({"identities": ("zoe",)}, {"identity": "ada"}, ForbiddenError),
        ({"users": ("igor",)}, {"user": "nora"}, ForbiddenError),
        ({"projects": ()}, {"projects": ("site",)}, ForbiddenError),
        ({"projects": ("site",)}, {"projects": ("site", "other")}, ForbiddenError),
        ({"identities": ("zoe",)}, {"identity": "ZOE"}, ForbiddenError),
        ({"identities": ("zoe",)}, {"identity": "zoe "}, ForbiddenError),
        # missing where one must be named, or where there is none
        ({"users": ("igor", "nora")}, {}, ForbiddenError),
        ({"identities": ()}, {}, ForbiddenError),
        ({"users": ()}, {}, ForbiddenError),
        # forged: empty, or made of the separators of names
        ({}, {"identity": ""}, InputError),
        ({}, {"identity": " "}, InputError),
        ({}, {"user": ""}, InputError),
        ({}, {"projects": ("",)}, InputError),
        ({"identities": ("zoe",)}, {"identity": "zoe/ada"}, ForbiddenError),
        ({"identities": ("zoe",)}, {"identity": "zoe", "user": "../ada"}, "acme/zoe/../ada"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("action", [Action.RECALL, Action.REMEMBER, Action.FORGET, Action.CHECK])
def test_whose_memories_may_be_named(
    memories: Memories, action: Action, may: Any, where: Any, expected: Any
) -> None:
    entered: list[str] = []
    raised = gate(memories, caller(list(Scope), **may), action, Where(**where), entered)
    if isinstance(expected, str):
        assert (raised, entered) == (None, [expected])
    else:
        assert (raised, entered) == (expected, [])


def test_a_name_made_of_separators_is_another_space(memories: Memories) -> None:
    """ "a/b" without a user is not "a" with the user "b", which is written alike."""
    one = memories.of("x/y", tenant=TENANT)
    other = memories.of("x", "y", tenant=TENANT)
    one.remember("The heron stands in the reeds.")
    assert not list(other.list())


# Routes and tools, over HTTP


class Told:
    """What the gate was asked, and how it ended."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[Action, str]] = []

    def told(self, asked: Asked, answered: Answered, result: object) -> None:
        self.outcomes.append((asked.action, answered.outcome))

    def denied(self) -> int:
        return sum(outcome == "denied" for _, outcome in self.outcomes)


@dataclass
class World:
    """A server, keys for it, and things of the tenant's to ask it for."""

    running: Running
    client: httpx2.Client
    told: Told
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def memory(self) -> Memory:
        memory: Memory = self.running.memories.of(IDENTITY, USER, tenant=TENANT)
        return memory

    def a_memory(self) -> str:
        return self.memory.remember(f"The {MARK} stands in the reeds.").id

    def number(self) -> int:
        return self.memory.get(self.a_memory()).number

    def pair(self) -> tuple[str, str]:
        one, other = self.a_memory(), self.a_memory()
        self.memory.link(one, other)
        return one, other

    def pair_of_numbers(self) -> tuple[int, int]:
        one, other = self.pair()
        return self.memory.get(one).number, self.memory.get(other).number

    def a_recall(self) -> tuple[str, str]:
        """Its id and that of a memory it found."""
        self.a_memory()
        found = self.memory.recall(MARK)
        return str(found.id), found.ids[0]

    def a_thread(self) -> str:
        return self.memory.remember(f"Look for the {MARK}.", kind="thread").id

    def a_receipt(self) -> str:
        return str(self.memory.forget(self.a_memory()).id)

    def archived(self) -> str:
        id = self.a_memory()
        self.memory.archive(id)
        return id

    def a_key(self) -> str:
        record, _ = keys.create_key(
            self.running.memories.store, TENANT, f"{MARK}-spare", scopes=[Scope.ADMIN]
        )
        return keys.key_id(record.uid)

    def own_number(self) -> int:
        place = local_caller(TENANT).place(Where(identity=IDENTITY, user=USER))
        return identity_number(place)

    def state(self) -> list[Any]:
        """What tells whether anything changed: a space's revision grows with every change."""
        stats = self.memory.stats()
        spare = self.running.memories.store.list_keys(TENANT)
        return [
            *((space.revision, space.items) for space in stats.spaces),
            stats.links,
            [(one.uid, one.revoked) for one in spare],
        ]


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request: what stands in its address, its query and its body."""

    at: dict[str, Any] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    json: dict[str, Any] | None = None
    content: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """A route: its action (None: whoever has a key), a request that is permitted and done, whether
    it names something that others do not have, and whether it is about the whole tenant."""

    action: Action | None
    sent: Callable[[World], Sent] = lambda _: Sent()
    names: bool = False
    whole: bool = False
    silent: bool = False
    """It answers the same, whether there is what it names or not."""


def by_id(call: Callable[[World], str], **body: Any) -> Callable[[World], Sent]:
    return lambda world: Sent(at={"id": call(world)}, json=body or None)


def with_ids(world: World) -> Sent:
    return Sent(json={"ids": [world.a_memory()]})


def of_recall(**body: Any) -> Callable[[World], Sent]:
    def sent(world: World) -> Sent:
        recall, id = world.a_recall()
        return Sent(at={"id": recall}, json=body or {"used": [id]})

    return sent


def opened(world: World) -> Sent:
    recall, id = world.a_recall()
    return Sent(at={"id": recall}, json={"ids": [id]})


def of_pair(one: str, other: str) -> Callable[[World], Sent]:
    return lambda world: Sent(at=dict(zip((one, other), world.pair(), strict=True)))


def of_numbers(world: World) -> Sent:
    return Sent(at=dict(zip(("id", "targetId"), world.pair_of_numbers(), strict=True)))


def body(**fields: Any) -> Callable[[World], Sent]:
    return lambda _: Sent(json=fields)


def new_link(world: World) -> Sent:
    return Sent(json={"source": world.a_memory(), "target": world.a_memory()})


ROUTES: dict[str, Row] = {
    "POST /v1/memories": Row(action=Action.REMEMBER, sent=body(content="New.")),
    "POST /v1/memories:batch": Row(
        action=Action.REMEMBER, sent=body(messages=[{"content": "New."}])
    ),
    "GET /v1/memories": Row(action=Action.LIST),
    "GET /v1/memories/{id}": Row(action=Action.GET, sent=by_id(World.a_memory), names=True),
    "PATCH /v1/memories/{id}": Row(
        action=Action.UPDATE, sent=by_id(World.a_memory, importance=7), names=True
    ),
    "DELETE /v1/memories/{id}": Row(action=Action.FORGET, sent=by_id(World.a_memory), names=True),
    "GET /v1/memories/{id}/history": Row(
        action=Action.HISTORY, sent=by_id(World.a_memory), names=True
    ),
    "GET /v1/memories/{id}/links": Row(action=Action.LINKS, sent=by_id(World.a_memory), names=True),
    "POST /v1/recall": Row(action=Action.RECALL, sent=body(query="bird")),
    "POST /v1/answer": Row(action=Action.ANSWER, sent=body(question="Where is the bird?")),
    "POST /v1/recalls/{id}/feedback": Row(action=Action.FEEDBACK, sent=of_recall(), names=True),
    "POST /v1/recalls/{id}/opened": Row(action=Action.OPENED, sent=opened, names=True),
    "POST /v1/recalls/{id}/cited": Row(
        action=Action.CITED, sent=of_recall(answer="There [1]."), names=True
    ),
    "POST /v1/candidates": Row(action=Action.RECALL, sent=body(query="bird")),
    "POST /v1/similarity": Row(action=Action.RECALL, sent=body(query="bird", texts=["fish"])),
    "POST /v1/tokens": Row(action=Action.COUNT_TOKENS, sent=body(text="bird")),
    "POST /v1/links": Row(action=Action.LINK, sent=new_link, names=True),
    "DELETE /v1/links/{source}/{target}": Row(
        action=Action.UNLINK, sent=of_pair("source", "target"), names=True
    ),
    "POST /v1/links/{a}/{b}/strengthen": Row(
        action=Action.STRENGTHEN, sent=of_pair("a", "b"), names=True
    ),
    "GET /v1/links/{a}/{b}/why": Row(action=Action.WHY, sent=of_pair("a", "b"), names=True),
    "GET /v1/strengths": Row(action=Action.STRENGTHS),
    "GET /v1/proposals": Row(action=Action.PROPOSALS),
    "POST /v1/replay": Row(action=Action.REPLAY),
    "PUT /v1/rule": Row(action=Action.LEARN_BY, sent=body(rule="cofire")),
    "POST /v1/hydrate": Row(action=Action.HYDRATE, sent=body(cue="bird")),
    "POST /v1/checkpoints": Row(action=Action.CHECKPOINT, sent=body(summary="Done.")),
    "GET /v1/threads": Row(action=Action.THREADS),
    "POST /v1/threads/{id}/advance": Row(
        action=Action.ADVANCE, sent=by_id(World.a_thread, note="Seen."), names=True
    ),
    "POST /v1/threads/{id}/conclude": Row(
        action=Action.CONCLUDE, sent=by_id(World.a_thread, outcome="Found."), names=True
    ),
    "POST /v1/consolidate": Row(action=Action.CONSOLIDATE, sent=body(steps=["prune"])),
    "GET /v1/reports": Row(action=Action.REPORTS),
    "GET /v1/records": Row(action=Action.RECORDS),
    "GET /v1/quarantine": Row(action=Action.QUARANTINE),
    "GET /v1/shapes": Row(action=Action.SHAPES),
    "POST /v1/archive": Row(action=Action.ARCHIVE, sent=with_ids, names=True),
    "POST /v1/unarchive": Row(
        action=Action.UNARCHIVE, names=True,
        sent=lambda world: Sent(json={"ids": [world.archived()]}),
    ),
    "POST /v1/forget": Row(action=Action.FORGET, sent=with_ids, names=True),
    "GET /v1/receipts": Row(action=Action.RECEIPTS),
    "GET /v1/receipts/{id}/verification": Row(
        action=Action.VERIFY, sent=by_id(World.a_receipt), names=True
    ),
    "POST /v1/import": Row(
        action=Action.IMPORT, sent=lambda _: Sent(content=b'{"content": "New."}\n')
    ),
    "GET /v1/export": Row(action=Action.EXPORT),
    "GET /v1/me": Row(action=None),
    "GET /v1/stats": Row(action=Action.STATS),
    "POST /v1/keys": Row(
        action=Action.KEYS, sent=body(name="new", scopes=["admin"], identities=["x"])
    ),
    "GET /v1/keys": Row(action=Action.KEYS),
    "DELETE /v1/keys/{id}": Row(action=Action.KEYS, sent=by_id(World.a_key), names=True),
    "GET /v1/audit": Row(action=Action.AUDIT, whole=True),
    "GET /v1/jobs": Row(action=Action.JOBS, whole=True),
    "POST /v1/jobs:retry": Row(action=Action.JOBS, whole=True),
    "GET /v1/check": Row(action=Action.CHECK, whole=True),
    "POST /api/memories/{id}/links": Row(
        action=Action.LINK, names=True,
        sent=lambda world: Sent(
            at={"id": world.number()}, json={"targetMemoryId": world.number()}
        ),
    ),
    "DELETE /api/memories/{id}/links/{targetId}": Row(
        action=Action.UNLINK, sent=of_numbers, names=True
    ),
    "POST /api/memories/{id}/links/{targetId}/strengthen": Row(
        action=Action.STRENGTHEN, sent=of_numbers, names=True, silent=True
    ),
    "GET /api/memories/{id}": Row(
        action=Action.GET, names=True, sent=lambda world: Sent(at={"id": world.number()})
    ),
    "GET /api/identities/{identityId}/memories/search": Row(
        action=Action.RECALL, names=True,
        sent=lambda world: Sent(at={"identityId": world.own_number()}, query={"q": "bird"}),
    ),
}  # fmt: skip

OPEN_TO_ALL = {"GET /livez", "HEAD /livez", "GET /readyz", "HEAD /readyz", "GET /openapi.json"}
"""Without a key: they tell nothing that is anybody's."""

STRANGERS = ("none", "empty", "basic", "forged", "another secret", "revoked", "expired")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    told, path = Told(), tmp_path_factory.mktemp("matrix") / "memory.db"
    with (
        pytest.MonkeyPatch.context() as patch,
        running_server(path, keys=True, witnesses=(told,), embedder="hashing:16") as running,
        httpx2.Client(base_url=running.url, timeout=30) as client,
    ):
        for compat, at in ((False, "/mcp"), (True, "/compat")):
            tools = mcp_app(running.service, tools=tools_for(compat=compat))
            running.app.router.routes.append(Route(at, tools))
        patch.setattr("cofire.learning.PATIENCE", 0.0)  # recalls of others are not waited for
        made = World(running=running, client=client, told=told)
        made.keys = _keys(running.memories)
        made.a_memory()
        yield made


def _keys(memories: Memories) -> dict[str, str]:
    """The header of each who may come."""
    store = memories.store
    now = datetime.now(UTC)

    def make(name: str, tenant: str = TENANT, **more: Any) -> str:
        given: dict[str, Any] = {
            "identities": None, "users": None, "projects": None, "scopes": tuple(Scope), **more,
        }  # fmt: skip
        return f"Bearer {keys.create_key(store, tenant, name, **given)[1]}"

    made = {scope.value: make(f"{MARK}-{scope}", scopes=[scope]) for scope in Scope}
    made["everything"] = make(f"{MARK}-everything")
    made["other identity"] = make("zoe", identities=["zoe"])
    made["other user"] = make("igor", users=["igor"])
    made["other tenant"] = make("desk", "other")
    made["empty"], made["basic"] = "", "Basic aGVyb246aGVyb24="
    made["forged"] = "Bearer cofire_" + "A" * 32 + "_" + "A" * 43
    made["another secret"] = made["everything"][:-43] + made["other tenant"][-43:]
    made["expired"] = make(
        f"{MARK}-expired", now=now - timedelta(days=2), expires=now - timedelta(days=1)
    )
    record, token = keys.create_key(store, TENANT, f"{MARK}-revoked")
    keys.revoke_key(store, TENANT, keys.key_id(record.uid))
    made["revoked"] = f"Bearer {token}"
    return made


def ask(
    world: World, operation: str, sent: Sent, who: str, *, naming: bool = True, **query: Any
) -> httpx2.Response:
    method, path = operation.split()
    for name, value in sent.at.items():
        path = path.replace("{" + name + "}", str(value))
    named = {"identity": IDENTITY, "user": USER} if naming else {}
    headers = {} if who == "none" else {"Authorization": world.keys[who]}
    if sent.content is not None:
        headers["Content-Type"] = "application/x-ndjson"
    return world.client.request(
        method, path, params={**sent.query, **named, **query}, headers=headers, json=sent.json,
        content=sent.content,
    )  # fmt: skip


def operations(routes: Sequence[Any]) -> set[str]:
    """All that answers, of routers and of those that they include."""
    found: set[str] = set()
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            found |= operations(included.routes)
        elif isinstance(route, Mount):
            found.add(f"MOUNT {route.path}")
        else:
            found |= {f"{method} {route.path}" for method in route.methods or {"ANY"}}
    return found


def test_every_route_has_a_row(world: World) -> None:
    """Of the application that the tests ask, and of the one that is served."""
    app = world.running.app
    mounted = {"ANY /mcp", "ANY /compat"}
    assert operations(app.routes) == set(ROUTES) | OPEN_TO_ALL | mounted
    described = app.openapi()["paths"]
    assert {f"{m.upper()} {path}" for path, all in described.items() for m in all} == set(ROUTES)
    plan = Plan(settings=load_settings(), caller=local_caller())
    _, served = assemble(plan, world.running.memories, Metrics())
    by_token = {"GET /metrics"}  # a token of the operator's own, or from this machine
    assert operations(served.routes) == (
        set(ROUTES) | OPEN_TO_ALL | by_token | {"ANY /mcp", "MOUNT /mcp"}
    )


@pytest.mark.parametrize("operation", sorted(OPEN_TO_ALL))
def test_what_is_open_to_all_tells_nothing_that_is_anybodys(world: World, operation: str) -> None:
    answer = ask(world, operation, Sent(), "none", naming=False)
    assert answer.status_code == 200
    assert MARK not in answer.text
    assert TENANT not in answer.text


@pytest.mark.parametrize("path", ["/v1/nothing", "/", "/docs", "/v1/memories/", "/mcp/", "/compat"])
def test_what_is_no_route_needs_a_key_too(world: World, path: str) -> None:
    assert world.client.get(path).status_code == 401


@pytest.mark.parametrize("operation", ROUTES)
def test_whoever_has_no_good_key_gets_nothing(world: World, operation: str) -> None:
    sent = ROUTES[operation].sent(world)
    before = world.state()
    for who in STRANGERS:
        answer = ask(world, operation, sent, who)
        assert answer.status_code == 401, (who, answer.text)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert MARK not in answer.text
    assert world.state() == before


@pytest.mark.parametrize("operation", ROUTES)
def test_a_route_takes_the_scope_of_its_action(world: World, operation: str) -> None:
    row = ROUTES[operation]
    for scope in Scope:
        permitted = row.action is None or POLICY[row.action] is scope
        sent = row.sent(world)
        before, told = world.state(), len(world.told.outcomes)
        answer = ask(world, operation, sent, scope.value)
        if permitted:
            assert 200 <= answer.status_code < 300, (scope, answer.text)
            if row.action is not None:
                assert (row.action, "ok") in world.told.outcomes[told:]
        else:
            assert answer.status_code == 403, (scope, answer.text)
            assert world.told.outcomes[told:] == [(row.action, "denied")]
            assert world.state() == before


@pytest.mark.parametrize("operation", ROUTES)
def test_anothers_memories_cannot_be_named(world: World, operation: str) -> None:
    row = ROUTES[operation]
    sent = row.sent(world)
    before = world.state()
    for who in ("other identity", "other user"):
        denied = world.told.denied()
        answer = ask(world, operation, sent, who)
        assert answer.status_code == (200 if row.action is None else 403), (who, answer.text)
        assert MARK not in answer.text
        assert row.action is None or world.told.denied() > denied, "it is not in the audit trail"
    assert world.state() == before


@pytest.mark.parametrize("operation", ROUTES)
def test_whoever_names_nothing_reaches_only_their_own(world: World, operation: str) -> None:
    """Also by an id, which answers as one that does not exist."""
    row = ROUTES[operation]
    sent = row.sent(world)
    before = world.state()
    for who in ("other identity", "other user"):
        answer = ask(world, operation, sent, who, naming=False)
        if row.whole or operation == "POST /v1/keys":
            expected = {403}
        elif row.action is Action.KEYS:
            expected = {200, 403}
        else:
            expected = {404} if row.names and not row.silent else {200, 201}
        assert answer.status_code in expected, (who, answer.text)
        assert MARK not in answer.text
    assert world.state() == before


@pytest.mark.parametrize("operation", ROUTES)
def test_another_tenant_is_another_world(world: World, operation: str) -> None:
    """The same names, and the ids of things that are there: nothing is found."""
    row = ROUTES[operation]
    sent = row.sent(world)
    before = world.state()
    answer = ask(world, operation, sent, "other tenant")
    expected = {404} if row.names and not row.silent else {200, 201}
    assert answer.status_code in expected, answer.text
    assert MARK not in answer.text
    assert world.state() == before


def unknown(sent: Sent) -> Sent:
    """The same request about things that do not exist."""
    changed: dict[str, Any] = {}
    for name, value in sent.at.items():
        changed[name] = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001" if isinstance(value, str) else 12345
    return Sent(at=changed, query=sent.query, json=sent.json, content=sent.content)


@pytest.mark.parametrize(
    "operation", [name for name, row in ROUTES.items() if row.names and "{" in name]
)
def test_what_is_anothers_answers_as_what_does_not_exist(world: World, operation: str) -> None:
    sent = ROUTES[operation].sent(world)
    nothing = unknown(sent)
    there = ask(world, operation, sent, "other tenant")
    nowhere = ask(world, operation, nothing, "other tenant")
    texts = []
    for answer, asked in ((there, sent), (nowhere, nothing)):
        problem = answer.json()
        problem.pop("request", None), problem.pop("instance", None)
        text = json.dumps(problem)
        for value in asked.at.values():
            text = text.replace(str(value), "ID")
        texts.append((answer.status_code, text))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("operation", ROUTES)
def test_a_tenant_is_never_taken_from_a_request(world: World, operation: str) -> None:
    row = ROUTES[operation]
    sent = row.sent(world)
    before = world.state()
    by_query = ask(world, operation, sent, "other tenant", tenant=TENANT)
    assert by_query.status_code == 422, by_query.text
    for name in ("tenant", "identity", "user", "project"):
        if sent.json is None:
            break
        forged = Sent(at=sent.at, query=sent.query, json={**sent.json, name: TENANT})
        by_body = ask(world, operation, forged, "other tenant")
        assert by_body.status_code == 422, (name, by_body.text)
        assert MARK not in by_body.text
    assert world.state() == before


# MCP


Arguments = Callable[[World], dict[str, Any]]


def entity(name: str = "boat") -> dict[str, Any]:
    return {"name": name, "entityType": "thing", "observations": ["It is red."]}


TOOLS: dict[str, tuple[Action, Arguments]] = {
    "remember": (Action.REMEMBER, lambda _: {"content": "New."}),
    "recall": (Action.RECALL, lambda _: {"query": "bird"}),
    "feedback": (
        Action.FEEDBACK,
        lambda world: dict(zip(("recall", "used"), ((r := world.a_recall())[0], [r[1]]),
                               strict=True)),
    ),
    "get_memory": (Action.GET, lambda world: {"id": world.a_memory()}),
    "list_memories": (Action.LIST, lambda _: {}),
    "update_memory": (Action.UPDATE, lambda world: {"id": world.a_memory(), "importance": 7}),
    "forget": (Action.FORGET, lambda world: {"ids": [world.a_memory()]}),
    "link_memories": (
        Action.LINK, lambda world: {"source": world.a_memory(), "target": world.a_memory()},
    ),
    "strengthen_link": (
        Action.STRENGTHEN, lambda world: dict(zip(("a", "b"), world.pair(), strict=True)),
    ),
    "hydrate": (Action.HYDRATE, lambda _: {}),
    "answer": (Action.ANSWER, lambda _: {"question": "Where is the bird?"}),
    "explain_recall": (Action.RECALL, lambda _: {"query": "bird"}),
    "memory_stats": (Action.STATS, lambda _: {}),
    "create_entities": (Action.REMEMBER, lambda _: {"entities": [entity()]}),
    "create_relations": (
        Action.REMEMBER,
        lambda _: {"relations": [{"from": "boat", "to": "boat", "relationType": "is"}]},
    ),
    "add_observations": (
        Action.REMEMBER,
        lambda _: {"observations": [{"entityName": "boat", "contents": ["It floats."]}]},
    ),
    "delete_entities": (Action.FORGET, lambda _: {"entityNames": ["nothing"]}),
    "delete_observations": (
        Action.FORGET, lambda _: {"deletions": [{"entityName": "boat", "observations": ["x"]}]},
    ),
    "delete_relations": (
        Action.FORGET,
        lambda _: {"relations": [{"from": "boat", "to": "boat", "relationType": "was"}]},
    ),
    "read_graph": (Action.LIST, lambda _: {}),
    "search_nodes": (Action.RECALL, lambda _: {"query": "boat"}),
    "open_nodes": (Action.LIST, lambda _: {"names": ["boat"]}),
}  # fmt: skip

OFFERED: dict[str, tuple[str, Tool]] = {
    tool.name: (at, tool)
    for compat, at in ((False, "/mcp"), (True, "/compat"))
    for tool in tools_for(compat=compat)
}


def rpc(
    world: World, at: str, method: str, params: dict[str, Any], who: str, **query: Any
) -> httpx2.Response:
    headers = {"Accept": "application/json, text/event-stream"}
    if who != "none":
        headers["Authorization"] = world.keys[who]
    return world.client.post(
        at, params=query, headers=headers,
        json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
    )  # fmt: skip


def use(world: World, tool: str, arguments: dict[str, Any], who: str, **query: Any) -> Any:
    """What a tool answered: the result of the protocol."""
    params = {"name": tool, "arguments": arguments}
    answer = rpc(world, OFFERED[tool][0], "tools/call", params, who, **query)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


OWN = {"identity": IDENTITY, "user": USER}


def test_every_tool_has_a_row() -> None:
    assert set(OFFERED) == set(TOOLS)
    for name, (action, _) in TOOLS.items():
        assert OFFERED[name][1].actions == (action,)


@pytest.mark.parametrize("tool", TOOLS)
def test_no_tool_without_a_good_key(world: World, tool: str) -> None:
    params = {"name": tool, "arguments": TOOLS[tool][1](world)}
    before = world.state()
    for who in STRANGERS:
        for method in ("tools/call", "tools/list", "initialize"):
            answer = rpc(world, OFFERED[tool][0], method, params, who, **OWN)
            assert answer.status_code == 401, (who, answer.text)
            assert MARK not in answer.text
    assert world.state() == before


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_takes_the_scope_of_its_action(world: World, tool: str) -> None:
    action, arguments = TOOLS[tool]
    if OFFERED[tool][0] == "/compat":
        use(world, "create_entities", {"entities": [entity()]}, "write", **OWN)
    for scope in Scope:
        given = arguments(world)
        before, told = world.state(), len(world.told.outcomes)
        result = use(world, tool, given, scope.value, **OWN)
        if POLICY[action] is scope:
            assert not result.get("isError"), (scope, result)
            assert {(action, "ok")} == set(world.told.outcomes[told:])
        else:
            assert result["isError"]
            assert "scope" in result["content"][0]["text"]
            assert world.told.outcomes[told:] == [(action, "denied")]
            assert MARK not in json.dumps(result).replace(f"{MARK}-{scope}", "")
            assert world.state() == before


@pytest.mark.parametrize("tool", TOOLS)
def test_no_tool_reaches_anothers_memories(world: World, tool: str) -> None:
    action, arguments = TOOLS[tool]
    given = arguments(world)
    before = world.state()
    for who in ("other identity", "other user"):
        named = use(world, tool, given, who, **OWN)
        assert named["isError"], (who, named)
        assert world.told.outcomes[-1] == (action, "denied")
        for result in (named, use(world, tool, given, who)):
            assert MARK not in json.dumps(result)
    elsewhere = use(world, tool, given, "other tenant", tenant=TENANT, **OWN)
    assert MARK not in json.dumps(elsewhere)
    forged = use(world, tool, {**given, "tenant": TENANT, **OWN}, "other tenant")
    assert forged["isError"]
    assert MARK not in json.dumps(forged)
    assert world.state() == before


def test_resources_are_read_with_the_scope_that_reading_takes(world: World) -> None:
    asked = {
        "resources/list": {},
        "resources/read": {"uri": f"memory://{world.a_memory()}"},
    }
    for method, params in asked.items():
        for scope in Scope:
            answer = rpc(world, "/mcp", method, params, scope.value, **OWN).json()
            assert ("result" in answer) is (scope is Scope.READ), answer
        for who in ("other identity", "other user"):
            assert "error" in rpc(world, "/mcp", method, params, who, **OWN).json()
        for query in (OWN, {}):
            assert MARK not in rpc(world, "/mcp", method, params, "other tenant", **query).text
        for who in STRANGERS:
            assert rpc(world, "/mcp", method, params, who).status_code == 401

"""The audit trail: what is in it, when, and what happens where it cannot be written."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cofire.errors import CofireError, ForbiddenError, StoreBusyError, StoreUnavailableError
from cofire.memories import Memories
from cofire.memory import Memory
from cofire.server import auditing
from cofire.server.access import Caller, Scope, Where
from cofire.server.actions import Action
from cofire.server.auditing import DAY, AuditTrail, entry_json
from cofire.server.service import Service
from cofire.store.serving_records import AuditEntry

TENANT = "acme"
NOBODY = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"


@pytest.fixture(scope="module")
def file_memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memories]:
    path = tmp_path_factory.mktemp("audit") / "memory.db"
    with Memories.open(path, embedder="hashing:64") as memories:
        yield memories


@pytest.fixture(params=["sqlite", "postgres"])
def memories(request: pytest.FixtureRequest) -> Iterator[Memories]:
    if request.param == "sqlite":
        yield request.getfixturevalue("file_memories")
        return
    url = request.getfixturevalue("postgres_store").app_url
    with Memories.open(url, embedder="hashing:64") as opened:
        yield opened


def caller(tenant: str, *scopes: Scope) -> Caller:
    return Caller(
        name="desk", tenant=tenant, identities=("default",), users=None, projects=(),
        scopes=frozenset(scopes or Scope), key=bytes(range(16)),
    )  # fmt: skip


def ask(
    service: Service, who: Caller, action: Action, verb: Callable[[Memory], Any], **more: Any
) -> Any:
    return asyncio.run(service.run(who, action, Where(), verb, surface="mcp", **more))


def remember(service: Service, who: Caller) -> Any:
    return ask(
        service, who, Action.REMEMBER, lambda memory: memory.remember("The pier is closed."),
        request="r-1", count=lambda receipt: len(receipt.ids),
    )  # fmt: skip


def recall(service: Service, who: Caller) -> Any:
    return ask(service, who, Action.RECALL, lambda memory: memory.recall("pier"))


def entries(memories: Memories, tenant: str) -> list[AuditEntry]:
    return memories.store.list_audit(tenant)


def test_a_change_is_in_the_trail_before_it_is_answered(memories: Memories) -> None:
    trail = AuditTrail(memories.store)
    service = Service(memories, witnesses=(trail,))
    remember(service, caller("one"))
    (entry,) = entries(memories, "one")
    assert (entry.action, entry.outcome, entry.surface) == ("remember", "ok", "mcp")
    assert (entry.principal, entry.key, entry.count) == ("desk", bytes(range(16)), 1)
    assert (entry.request, entry.code) == ("r-1", None)
    assert abs(entry.time / 1e6 - time.time()) < 60
    trail.close()


def test_what_only_reads_is_there_within_a_second(memories: Memories) -> None:
    trail = AuditTrail(memories.store)
    service = Service(memories, witnesses=(trail,))
    recall(service, caller("two"))
    deadline = time.monotonic() + 10
    while not entries(memories, "two") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [entry.action for entry in entries(memories, "two")] == ["recall"]
    trail.close()


def test_closing_writes_what_waits(memories: Memories) -> None:
    trail = AuditTrail(memories.store)
    service = Service(memories, witnesses=(trail,))
    for _ in range(3):
        recall(service, caller("three"))
    trail.close()
    assert len(entries(memories, "three")) == 3


def test_what_was_denied_is_there_at_once(memories: Memories) -> None:
    trail = AuditTrail(memories.store, reads=False)
    service = Service(memories, witnesses=(trail,))
    with pytest.raises(ForbiddenError):
        recall(service, caller("four", Scope.WRITE))
    with pytest.raises(ForbiddenError):
        asyncio.run(
            service.run(
                caller("four"), Action.RECALL, Where(identity="zoe"),
                lambda memory: memory.recall("x"), surface="rest",
            )
        )  # fmt: skip
    recall(service, caller("four"))  # and reads are not entered
    trail.close()
    assert [(entry.outcome, entry.code) for entry in entries(memories, "four")] == [
        ("denied", "ForbiddenError")
    ] * 2


def test_what_failed_is_there_even_if_nobody_expected_it(file_memories: Memories) -> None:
    trail = AuditTrail(file_memories.store)
    service = Service(file_memories, witnesses=(trail,))
    who = caller("five")
    with pytest.raises(CofireError):
        ask(service, who, Action.UPDATE, lambda memory: memory.update(NOBODY, content="x"))
    with pytest.raises(ZeroDivisionError):
        ask(service, who, Action.FORGET, lambda _: 1 // 0)
    found = {(entry.action, entry.code) for entry in entries(file_memories, "five")}
    assert found == {("update", "NotFoundError"), ("forget", "ZeroDivisionError")}
    trail.close()


class Broken:
    """A store that does not take entries for a while."""

    def __init__(self, memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken = True
        self._write = memories.store.write_audit
        monkeypatch.setattr(memories.store, "write_audit", self)

    def __call__(self, entries: Sequence[AuditEntry]) -> int:
        if self.broken:
            raise StoreBusyError("another writer held it")
        return self._write(entries)


def test_a_change_that_cannot_be_entered_is_told_and_entered_later(
    file_memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Broken(file_memories, monkeypatch)
    trail = AuditTrail(file_memories.store)
    service = Service(file_memories, witnesses=(trail,))
    with pytest.raises(StoreUnavailableError, match="remember was done"):
        remember(service, caller("six"))
    recall(service, caller("six"))  # reading goes on
    store.broken = False
    trail.close()
    assert [entry.action for entry in entries(file_memories, "six")] == ["recall", "remember"]


def test_who_is_denied_is_told_so_whatever_becomes_of_the_trail(
    file_memories: Memories, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = Broken(file_memories, monkeypatch)
    trail = AuditTrail(file_memories.store)
    service = Service(file_memories, witnesses=(trail,))
    with pytest.raises(ForbiddenError):
        remember(service, caller("seven", Scope.READ))
    assert "could not be written" in caplog.text
    store.broken = False
    trail.close()
    assert len(entries(file_memories, "seven")) == 1


def test_memory_is_bounded_while_nothing_can_be_written(
    file_memories: Memories, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(auditing, "HELD", 10)
    store = Broken(file_memories, monkeypatch)
    trail = AuditTrail(file_memories.store)
    for number in range(25):
        trail.note(AuditEntry(tenant="eight", time=number, surface="cli", action="check"))
    store.broken = False
    trail.close()
    assert sorted(entry.time for entry in entries(file_memories, "eight")) == list(range(15, 25))
    assert "lost" in caplog.text
    assert "count=15" in caplog.text


def test_an_entry_that_no_store_would_take_holds_up_no_other(
    file_memories: Memories, caplog: pytest.LogCaptureFixture
) -> None:
    trail = AuditTrail(file_memories.store)
    for time_, surface in ((1, "nowhere"), (2, "cli")):
        trail.note(AuditEntry(tenant="nine", time=time_, surface=surface, action="check"))
    trail.close()
    assert [entry.time for entry in entries(file_memories, "nine")] == [2]
    assert "refused" in caplog.text


def test_entries_are_kept_as_long_as_they_are_to_be(memories: Memories) -> None:
    now = 1_000 * DAY
    trail = AuditTrail(memories.store, days=30, now=lambda: now)
    for days in (0, 29, 31, 400):
        trail.note(AuditEntry(tenant="ten", time=now - days * DAY, surface="cli", action="check"))
    trail.flush()
    assert trail.purge() == 2
    assert trail.purge() == 0
    assert len(entries(memories, "ten")) == 2
    trail.close()
    assert AuditTrail(memories.store).purge() == 0


@pytest.mark.parametrize(
    "request_id", ["What is the pin of my card?", "päron", "a" * 65, "", "a\nb", "x=1;y=2"]
)
def test_a_text_in_place_of_a_requests_id_is_not_entered(
    file_memories: Memories, request_id: str
) -> None:
    trail = AuditTrail(file_memories.store)
    service = Service(file_memories, witnesses=(trail,))
    ask(service, caller("eleven"), Action.STATS, lambda memory: memory.stats(), request=request_id)
    trail.close()
    assert entries(file_memories, "eleven")[0].request is None


def test_an_entry_as_json(file_memories: Memories, tmp_path: Path) -> None:
    made = entry_json(
        AuditEntry(
            tenant=TENANT, time=1_700_000_000_000_000, surface="rest", action="recall",
            principal="desk", key=bytes(16), count=3,
        )
    )  # fmt: skip
    assert json.loads(json.dumps(made)) == {
        "id": made["id"], "time": "2023-11-14T22:13:20Z", "principal": "desk",
        "key": "00000000-0000-0000-0000-000000000000", "surface": "rest", "action": "recall",
        "outcome": "ok", "code": None, "count": 3, "request": None,
    }  # fmt: skip

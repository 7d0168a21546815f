"""Nothing that was remembered, asked or typed is in the audit trail, whatever anybody does."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cofire.errors import CofireError
from cofire.memories import Memories
from cofire.memory import Memory
from cofire.server.access import Caller, Scope, Where
from cofire.server.actions import Action
from cofire.server.auditing import AuditTrail, entry_json
from cofire.server.keys import read_token
from cofire.server.service import Service
from cofire.types import Message

TENANTS = iter(range(10**9))

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30).map(
    lambda text: f"ǂ{text}ǂ"  # so that it is nothing that an entry may have anyhow
)

Verb = Callable[[Memory, str], object]
VERBS: tuple[tuple[Action, Verb], ...] = (
    (Action.REMEMBER, lambda memory, text: memory.remember(text)),
    (
        Action.REMEMBER,
        lambda memory, text: memory.remember(
            [Message(content=text, speaker=text, session=text, metadata={text: text})], tags=text
        ),
    ),
    (Action.RECALL, lambda memory, text: memory.recall(text, speakers=(text,))),
    (Action.GET, lambda memory, text: memory.get(text)),
    (Action.LIST, lambda memory, text: memory.list(tags=(text,))),
    (Action.UPDATE, lambda memory, text: memory.update(text, content=text)),
    (Action.FEEDBACK, lambda memory, text: memory.feedback(text, [text], by=text)),
    (Action.LINK, lambda memory, text: memory.link(text, text)),
    (Action.CHECKPOINT, lambda memory, text: memory.checkpoint(text)),
    (Action.FORGET, lambda memory, text: memory.forget(text)),
    (Action.FORGET, lambda memory, text: memory.forget(everything=True, confirm=text)),
    (Action.VERIFY, lambda memory, text: memory.verify(text)),
    (Action.HYDRATE, lambda memory, text: memory.hydrate(text)),
    (Action.STATS, lambda memory, text: vars(memory)[text]),
)

asked = st.tuples(
    st.sampled_from(VERBS), texts, st.sampled_from(["identity", "user", "project", None]),
    st.sets(st.sampled_from(Scope)), st.booleans(),
)  # fmt: skip


@pytest.fixture(scope="module")
def memories() -> Iterator[Memories]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Memories.open(Path(folder) / "memory.db", embedder="hashing:16") as opened,
    ):
        yield opened


def calling(verb: Verb, text: str, memory: Memory) -> object:
    return verb(memory, text)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(asked, min_size=1, max_size=6))
def test_nothing_that_anybody_typed_is_in_the_trail(
    memories: Memories, requests: list[tuple[Any, ...]]
) -> None:
    tenant = f"tenant {next(TENANTS)}"
    trail = AuditTrail(memories.store)
    service = Service(memories, witnesses=(trail,))

    async def ask() -> None:
        for (action, verb), text, naming, scopes, names_request in requests:
            who = Caller(
                name="desk", tenant=tenant, identities=None, users=None, projects=None,
                scopes=frozenset(scopes) or frozenset(Scope),
            )  # fmt: skip
            named = {} if naming is None else {naming: text}
            where = Where(
                identity=named.get("identity"), user=named.get("user"),
                projects=(text,) if naming == "project" else (),
            )  # fmt: skip
            with suppress(CofireError, TypeError, KeyError):
                await service.run(
                    who, action, where, partial(calling, verb, text),
                    surface="rest", request=text if names_request else None,
                )  # fmt: skip

    asyncio.run(ask())
    trail.close()
    entries = memories.store.list_audit(tenant)
    assert len(entries) == len(requests)
    seen = repr(entries) + repr([entry_json(entry) for entry in entries])
    assert "ǂ" not in seen
    for _, text, *_ in requests:
        assert text not in seen


@given(st.one_of(st.text(), st.text("cofire_Aa0-", max_size=90), st.from_regex(
    r"\Acofire_[A-Za-z0-9_-]{32}_[A-Za-z0-9_-]{43}\Z")))  # fmt: skip
def test_any_text_is_a_key_or_is_not(text: str) -> None:
    """And never an error, nor a number that the database could not hold."""
    presented = read_token(text)
    if presented is not None:
        assert 0 <= presented.tenant_number < 2**63
        assert (len(presented.uid), len(presented.hash)) == (16, 32)
        assert text[40:] not in repr(presented)

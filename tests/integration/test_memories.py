"""`Memories`: one opened store for many agents, users and tenants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cofire import Memories, Memory
from cofire.errors import ConfigurationError


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[Memories]:
    with Memories.open(tmp_path / "memory.db", embedder="hashing:64") as opened:
        yield opened


def texts(memory: Memory, query: str) -> list[str]:
    return [hit.content for hit in memory.recall(query)]


def test_the_same_memory_is_given_again(memories: Memories) -> None:
    assert memories.of("ada") is memories.of("ada")
    assert memories.of("ada") is not memories.of("ada", "bob")


def test_spaces_with_equal_numbers_of_two_tenants_stay_apart(memories: Memories) -> None:
    """Numbers of spaces count from 1 in every tenant, and graphs are kept by number."""
    first, second = memories.of(tenant="one"), memories.of(tenant="two")
    first.remember("The red boat is Marla's.")
    second.remember("The blue boat is Igor's.")
    numbers = {memory._workings.spaces.own.space_id for memory in (first, second)}
    assert len(numbers) == 1
    assert texts(first, "boat") == ["The red boat is Marla's."]
    assert texts(second, "boat") == ["The blue boat is Igor's."]
    assert texts(first, "boat") == ["The red boat is Marla's."]


def test_what_others_did_shows_at_once_and_closing_one_closes_none(memories: Memories) -> None:
    ada, bob = memories.of("ada", projects="boats"), memories.of("bob", projects=["boats"])
    ada.remember("The harbour closes at nine.", project="boats")
    ada.close()
    assert texts(bob, "harbour") == ["The harbour closes at nine."]
    assert texts(ada, "harbour") == ["The harbour closes at nine."]


def test_a_space_forgotten_whole_is_new_for_everybody(memories: Memories) -> None:
    ada, reader = memories.of("ada"), memories.of("bob", projects=())
    ada.remember("One.")
    reader.remember("Another.")
    token = ada.forget(everything=True, dry_run=True)
    assert token.memories == 1
    assert texts(reader, "another") == ["Another."]


@pytest.mark.parametrize("verb", ["reembed", "scrub", "restore", "rotate_key"])
def test_what_concerns_the_whole_store_is_refused(memories: Memories, verb: str) -> None:
    arguments = {"restore": ("backup.db",), "rotate_key": ("key",)}.get(verb, ())
    with pytest.raises(ConfigurationError, match="shares with others"):
        getattr(memories.of("ada"), verb)(*arguments)


def test_check_tells_only_of_the_tenant(memories: Memories) -> None:
    memories.of(tenant="one").remember("One.")
    two = memories.of(tenant="two")
    assert two.check() == []
    assert [space.space.tenant for space in two.stats().spaces] == ["two"]

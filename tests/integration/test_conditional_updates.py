"""What servers need of a memory beside the rest: changes only of what was seen, 64-bit numbers, and
citations of a recall that is known by its id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cofire import Memory
from cofire.errors import ChangedError, LinkExistsError, NotFoundError


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", embedder="hashing:64", projects="web") as memory:
        yield memory


def test_only_what_was_seen_is_changed(memory: Memory) -> None:
    id = memory.remember("one").id
    seen = memory.get(id)
    memory.recall("one")
    memory.get(id, accessed=True)
    changed = memory.update(id, content="two", seen=seen)  # its use is no change of it
    for change in ({"content": "three"}, {"tags": ["a"]}):
        with pytest.raises(ChangedError, match=id):
            memory.update(id, seen=seen, **change)
    assert memory.update(id, tags=["b"], seen=changed).tags == ("b",)
    with pytest.raises(ChangedError):
        memory.update(id, content="three", seen=changed)
    assert memory.get(id).content == "two"


def test_a_number_names_a_memory_of_any_space_that_is_seen(memory: Memory) -> None:
    own, shared = memory.remember("own").id, memory.remember("shared", project="web").id
    for id in (own, shared):
        assert memory.get(memory.get(id).number).id == id
    long = memory.remember("A long text. " * 400).id
    number = memory.get(long).number
    for missing in (0, -1, number + 1, number + 100, 2**63, 2**200):
        with pytest.raises(NotFoundError, match=str(missing)):
            memory.get(missing)


def test_an_access_is_counted_when_it_is_said(memory: Memory) -> None:
    id = memory.remember("one").id
    assert memory.get(id).access_count == 0
    assert [memory.get(id, accessed=True).access_count for _ in range(3)] == [1, 2, 3]
    assert memory.get(id).last_accessed is not None


def test_a_recall_is_cited_by_its_id(memory: Memory) -> None:
    memory.remember([f"The ferry number {number} is green." for number in range(3)])
    memory.remember("The ferry of the project is red.", project="web")
    found = memory.recall("ferry")
    assert len(found) == 4
    by_id = memory.cited(found.id, f"So it is [2], [1] and {found.ids[3]}; see [77].")
    assert by_id.counted
    again = memory.cited(found, f"So it is [2], [1] and {found.ids[3]}.")
    assert not again.counted  # it is the same evidence
    gone = memory.recall("ferry number")
    memory.forget(gone.ids[0])
    assert memory.cited(gone.id, "It is [1].").counted is False
    assert memory.cited(gone.id, "It is [2] and [3].").counted
    with pytest.raises(NotFoundError):
        memory.cited("019d0b7c-1f2e-7a61-8f53-2c9b6de1a001", "[1]")


def test_a_second_link_says_which(memory: Memory) -> None:
    one, other = memory.remember(["one", "other"]).ids
    memory.link(one, other)
    with pytest.raises(LinkExistsError, match=f"{one} is already linked to {other}"):
        memory.link(one, other, "supports")

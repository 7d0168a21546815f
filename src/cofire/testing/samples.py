"""Records and spaces to test with: what a test does not care about is filled in."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from cofire.ids import new_uuid7
from cofire.store import Store
from cofire.store.records import NewItem, NewSegment, RecallHit, RecallRecord, SpaceInfo
from cofire.types import SpaceRef

MODEL, DIMENSION = "test-model", 4


def a_vector(*values: float) -> bytes:
    """A stored vector of `DIMENSION` numbers (the rest zero)."""
    return struct.pack(f"<{DIMENSION}e", *values, *(0.0,) * (DIMENSION - len(values)))


def some_terms(*hashes: int) -> bytes:
    """A terms blob with every count 1."""
    return struct.pack(f"<{len(hashes)}Q", *sorted(hashes)) + b"\1" * len(hashes)


def an_item(content: str = "hello", **fields: Any) -> NewItem:
    """An item with what a test does not care about filled in."""
    defaults: dict[str, Any] = {"uid": new_uuid7().bytes, "time": 1_000, "recorded": 1_000}
    return NewItem(content=content, **{**defaults, **fields})


def some_segments(*places: tuple[int, int], **fields: Any) -> tuple[NewSegment, ...]:
    """Segments at these character places."""
    return tuple(
        NewSegment(uid=new_uuid7().bytes, start=start, end=end, **fields) for start, end in places
    )


def full_item() -> NewItem:
    """An item with every field set to something of its own."""
    return NewItem(
        uid=new_uuid7().bytes,
        kind="fact",
        content="content",
        title="title",
        speaker="speaker",
        role="role",
        session="session",
        time=-5,
        offset=-330,
        recorded=12,
        expires=13,
        archived=14,
        tags=("b", "a"),
        importance=7,
        pinned=True,
        metadata={"b": [1, 2.5, None, True], "a": {"ü": "x"}},
        key="key",
        language="de",
        keywords=("k1", "k2"),
        tokens=17,
        event_times=(("then", 20, 30, 1, 5), ("before", 5, 6, 7, 9)),
        signals=(1 << 40) + 1,
        length=19,
        terms=some_terms(1, (1 << 64) - 1),
        concepts=some_terms(5),
        facets=struct.pack("<2Q", 1, 2),
        vector=a_vector(0.5, -0.25),
        confidence=0.25,
        valid_from=40,
        valid_to=50,
        untrusted=True,
    )


def a_recall(*, uid: bytes, numbers: Sequence[int], time: int = 50) -> RecallRecord:
    """A recall record whose hits are these numbers."""
    return RecallRecord(
        uid=uid,
        query="what?",
        time=time,
        profile="cofire",
        hits=tuple(
            RecallHit(number, position, 0.5, linked=False)
            for position, number in enumerate(numbers)
        ),
    )


def make_space(store: Store, identity: str = "agent", tenant: str = "default") -> SpaceInfo:
    """A space with the test model."""
    space = store.space(SpaceRef(tenant=tenant, identity=identity), create=True)
    assert space is not None
    return store.set_model(space, MODEL, DIMENSION)


def fill(store: Store, space: SpaceInfo) -> None:
    """Three items (1; 2 with segments 3 and 4; 5), history, a recall: something everywhere."""
    store.append(
        space,
        [
            an_item("one", session="s", time=10, vector=a_vector(1)),
            an_item(
                "long text",
                session="s",
                time=20,
                tags=("t",),
                metadata={"m": 1},
                segments=some_segments((0, 4), (4, 9), vector=a_vector(0, 1)),
            ),
            an_item("five", kind="fact", time=30, pending=True),
        ],
    )
    changed = an_item(
        "long text",
        title="new title",
        session="s",
        time=20,
        tags=("t",),
        metadata={"m": 1},
        segments=some_segments((0, 4), (4, 9), vector=a_vector(0, 1)),
    )
    store.update(space, 2, changed, now=40)
    store.record_recalls([(space, a_recall(uid=b"r" * 16, numbers=(1, 3)))], count_use=False)

"""Our own export of a real store: everything of a space, in the documented order."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from cofire.ids import new_uuid7
from cofire.interchange import native
from cofire.interchange.native_records import StoredItem, StoredSpace
from cofire.store import Store, open_store
from cofire.store.records import (
    EventRecord,
    LinkRow,
    NewItem,
    NewSegment,
    RecallHit,
    RecallRecord,
    SpaceInfo,
    VersionRow,
)
from cofire.types import SpaceRef

NOW = 1_704_067_200_000_000
CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def vector(seed: int) -> bytes:
    return np.full(4, 0.5 if seed % 2 else -0.5, dtype="<f2").tobytes()


def item(number: int, *, segments: int = 0, session: str | None = "s") -> NewItem:
    content = f"turn {number} about pottery"
    return NewItem(
        uid=new_uuid7().bytes,
        content=content,
        time=NOW + number,
        recorded=NOW,
        session=session,
        tags=("kiln",),
        metadata={"n": number},
        key=f"k{number}",
        vector=None if segments else vector(number),
        segments=tuple(
            NewSegment(
                uid=new_uuid7().bytes, start=at * 4, end=at * 4 + 4, tokens=1, vector=vector(at)
            )
            for at in range(segments)
        ),
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "memory.db") as opened:
        yield opened


def filled(store: Store) -> SpaceInfo:
    space = store.space(SpaceRef(identity="ada"), create=True, now=NOW)
    assert space is not None
    space = store.set_model(space, "hashing-v1:4", 4)
    numbers = store.append(
        space, [item(1), item(2, segments=3), item(3), item(4, session=None)]
    ).numbers
    new_text = replace(item(1, segments=2), content="turn 1 was about glazes")
    store.update(space, numbers[0], new_text, now=NOW + 100)
    store.forget(space, [numbers[2]])
    recall = RecallRecord(
        uid=new_uuid7().bytes,
        query="pottery?",
        time=NOW,
        profile="cofire",
        hits=(RecallHit(numbers[1], 0, 0.75, False),),
    )
    store.record_recalls([(space, recall)])
    store.append_events(
        space,
        [
            EventRecord(
                recall=recall.uid,
                type="feedback",
                items=((numbers[1], 1.0),),
                outcome=1.0,
                signal="used",
                principal=None,
                time=NOW,
            )
        ],
    )
    return store.refreshed(space)


def test_everything_of_a_space_is_written(store: Store, tmp_path: Path) -> None:
    space = filled(store)
    path = tmp_path / "export.jsonl"
    calls: list[tuple[int, int | None]] = []
    with path.open("wb") as stream:
        writer = native.Writer(stream, created=CREATED)
        native.export_space(store, space, writer, lambda done, total: calls.append((done, total)))
        counts = writer.close()
    summary = native.verify(path)
    assert summary.counts == counts
    assert calls == [(3, 3)]
    found = list(native.read(path))
    assert found[0] == StoredSpace(
        ref=SpaceRef(identity="ada"), model="hashing-v1:4", dimension=4, settings={}
    )
    items = [record for record in found if isinstance(record, StoredItem)]
    assert [(each.row.number, each.row.key) for each in items] == [(1, "k1"), (4, "k2"), (8, "k4")]
    assert [len(each.segments) for each in items] == [2, 3, 0]
    assert [each.vector for each in items] == [None, None, vector(4)]
    assert [part.vector for part in items[1].segments] == [vector(0), vector(1), vector(2)]
    assert items[0].row.metadata == {"n": 1}
    assert items[1].row.access_count == 1
    version = found[2]
    assert isinstance(version, VersionRow)
    assert (version.number, version.version) == (1, 1)
    assert (version.content, items[0].row.content) == (
        "turn 1 about pottery",
        "turn 1 was about glazes",
    )
    links = [record for record in found if isinstance(record, LinkRow)]
    assert {(5, 6), (6, 7)} <= {(link.source, link.target) for link in links}
    recalls = [record for record in found if isinstance(record, RecallRecord)]
    events = [record for record in found if isinstance(record, EventRecord)]
    assert [hit.number for hit in recalls[0].hits] == [4]
    assert events[0].items == ((4, 1.0),)


def test_an_empty_space(store: Store) -> None:
    space = store.space(SpaceRef(identity="nobody"), create=True, now=NOW)
    assert space is not None
    stream = io.BytesIO()
    writer = native.Writer(stream, created=CREATED)
    native.export_space(store, space, writer)
    assert writer.close() == {"space": 1}
    stream.seek(0)
    assert len(list(native.read_stream(stream, "x"))) == 1

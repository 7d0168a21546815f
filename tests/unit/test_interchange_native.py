"""Cofire's own format: complete, in a stable order, and damage is noticed."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofire.errors import FormatError, NotFoundError
from cofire.interchange import native
from cofire.interchange.native_records import Record, StoredItem, StoredSegment, StoredSpace
from cofire.store.records import (
    EventRecord,
    ItemRow,
    LinkRow,
    RecallHit,
    RecallRecord,
    VersionRow,
)
from cofire.types import SpaceRef

CREATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIME = 1_704_067_200_000_001
SPACE = StoredSpace(
    ref=SpaceRef(identity="ada", user="u"), model="m", dimension=4, settings={"b": 1, "a": 2}
)
VECTOR = np.array([0.5, -0.5, 0.5, 0.5], dtype="<f2").tobytes()


def row(number: int, content: str = "text \u2028 😀", **changes: Any) -> ItemRow:
    uid = number.to_bytes(16, "big")
    values: dict[str, Any] = {
        **dict.fromkeys(ItemRow._fields),
        "number": number,
        "uid": uid,
        "whole": uid,
        "parent": 0,
        "segment": 0,
        "segments": 0,
        "start": 0,
        "end": len(content),
        "kind": "episode",
        "content": content,
        "time": TIME,
        "recorded": TIME,
        "updated": TIME,
        "tags": ("b", "a"),
        "importance": 5,
        "pinned": False,
        "metadata": {"z": [1, {"y": None}], "a": 0.1},
        "keywords": ("kiln",),
        "tokens": 3,
        "event_times": (("last Friday", TIME, TIME + 1, 0, 4),),
        "access_count": 0,
        "version": 2,
        "pending": False,
        "untrusted": False,
        "revision": 0,
    }
    return ItemRow(**{**values, **changes})


def link(source: int, target: int) -> LinkRow:
    return LinkRow(source, target, b"", b"", "temporal", 0.5, 3, TIME, TIME, 0)


def segment(number: int, start: int, end: int) -> StoredSegment:
    uid = number.to_bytes(16, "big")
    return StoredSegment(
        number=number, uid=uid, start=start, end=end, tokens=2, pending=False, vector=VECTOR
    )


RECORDS: list[Record] = [
    SPACE,
    StoredItem(row=row(1, offset=-90, key="k", access_count=2, last_accessed=TIME), vector=VECTOR),
    VersionRow(1, 1, "former", None, TIME),
    StoredItem(row=row(2, segments=2), segments=(segment(3, 0, 3), segment(4, 3, 8))),
    link(1, 2),
    link(3, 4),
    RecallRecord(
        uid=b"\1" * 16,
        query="kiln?",
        time=TIME,
        profile="cofire",
        hits=(RecallHit(2, 0, 0.75, True), RecallHit(1, 1, 0.5, False)),
    ),
    EventRecord(
        seq=1,
        recall=b"\1" * 16,
        type="feedback",
        items=((2, 1.0), (1, -0.25)),
        outcome=1.0,
        signal="used",
        principal="ada",
        time=TIME,
    ),
]


def written(records: list[Record], *, closed: bool = True) -> bytes:
    stream = io.BytesIO()
    writer = native.Writer(stream, created=CREATED)
    for record in records:
        match record:
            case StoredSpace():
                writer.space(record)
            case StoredItem():
                writer.item(record)
            case VersionRow():
                writer.version(record)
            case LinkRow():
                writer.link(record)
            case RecallRecord():
                writer.recall(record)
            case EventRecord():
                writer.event(record)
    if closed:
        writer.close()
    return stream.getvalue()


def back(data: bytes) -> list[Record]:
    return list(native.read_stream(io.BytesIO(data), "x"))


def test_round_trip() -> None:
    assert back(written(RECORDS)) == RECORDS
    assert written(back(written(RECORDS))) == written(RECORDS)


def test_numbers_are_counted_anew_and_what_is_gone_is_left_out() -> None:
    records: list[Record] = [
        SPACE,
        StoredItem(row=row(7)),
        StoredItem(row=row(40), segments=(segment(90, 0, 2), segment(91, 2, 4))),
        StoredItem(row=row(41)),
        VersionRow(8, 1, "of a forgotten item", None, TIME),
        link(41, 91),
        link(41, 8),
        RecallRecord(
            uid=b"\2" * 16,
            query="q",
            time=TIME,
            profile="p",
            hits=(RecallHit(41, 0, 1.0, False), RecallHit(500, 1, 0.5, False)),
        ),
        SPACE,
        StoredItem(row=row(12)),
    ]
    found = back(written(records))
    numbers = [record.row.number for record in found if isinstance(record, StoredItem)]
    links = [record for record in found if isinstance(record, LinkRow)]
    recalls = [record for record in found if isinstance(record, RecallRecord)]
    assert numbers == [1, 2, 5, 1]
    assert [(entry.source, entry.target) for entry in links] == [(5, 4)]
    assert [hit.number for hit in recalls[0].hits] == [5]
    assert not any(isinstance(record, VersionRow) for record in found)


def test_first_lines_are_as_documented(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(written(RECORDS))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert list(lines[0].items()) == [
        ("type", "header"),
        ("format", "cofire"),
        ("version", 2),
        ("created", "2026-01-02T03:04:05Z"),
    ]
    assert lines[1] == {
        "type": "space",
        "tenant": "default",
        "identity": "ada",
        "user": "u",
        "model": "m",
        "dimension": 4,
        "settings": {"a": 2, "b": 1},
    }
    assert lines[2]["time"] == "2024-01-01T00:00:00.000001Z"
    assert list(lines[2]["metadata"]) == ["a", "z"]
    summary = native.verify(path)
    assert (summary.created, summary.spaces) == (CREATED, (SPACE,))
    assert summary.counts == {
        "space": 1,
        "item": 2,
        "version": 1,
        "link": 2,
        "recall": 1,
        "event": 1,
    }


def changed(edit: Callable[[list[dict[str, Any]]], object]) -> bytes:
    """An export whose lines were edited by somebody who mended its hash."""
    lines = [json.loads(line) for line in written(RECORDS).decode().split("\n")[:-1]]
    edit(lines)
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1])
    lines[-1]["sha256"] = hashlib.sha256(body).hexdigest()
    return body + json.dumps(lines[-1]).encode() + b"\n"


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda v: v[0].update(version=3), "version 3 of the export format"),
        (lambda v: v[0].update(format="x"), "no Cofire export"),
        (lambda v: v[0].update(created="soon"), "line 1: 'soon' is not a possible time"),
        (lambda v: v.pop(1), "line 2: a record comes before its space"),
        (lambda v: v[2].update(mood="calm"), "line 3: unknown fields: mood"),
        (lambda v: v[2].update(type="wish"), "no record of type 'wish'"),
        (lambda v: v[2].pop("content"), "'content' must be a text"),
        (lambda v: v[2].update(kind="wish"), "'kind' must be one of"),
        (lambda v: v[2].update(time="soon"), "'time' must be a time"),
        (lambda v: v[2].update(uid="1"), "'uid' must be a UUID"),
        (lambda v: v[2].update(vector="$"), "'vector' must be base64"),
        (lambda v: v[2].update(vector="AAAA"), "'vector' must hold 16-bit"),
        (lambda v: v[2].update(pinned=1), "'pinned' must be true or false"),
        (lambda v: v[2].update(number=True), "'number' must be a whole number"),
        (lambda v: v[2].update(tokens=-1), "'tokens' must not be negative"),
        (lambda v: v[2].update(tags=[1]), "'tags' must be a list of texts"),
        (lambda v: v[2].update(metadata=[]), "'metadata' must be an object"),
        (lambda v: v[2].update(event_times=[1]), "'event_times' must be a list of objects"),
        (lambda v: v[2].update(number=2), "item 2 comes where 1 is due"),
        (lambda v: v[4]["segments"][1].update(end=99), "a segment lies outside its text"),
        (lambda v: v[2].update(importance=99), "'importance' must be from 1 to 10, not 99"),
        (lambda v: v[2].update(importance=0), "'importance' must be from 1 to 10"),
        (lambda v: v[2].update(content=""), "'content' must have 1 to"),
        (lambda v: v[2].update(content=" \n"), "item 1: its content is empty"),
        (lambda v: v[2].update(content="bad \ud800"), "'content' has a NUL or a lone surrogate"),
        (lambda v: v[2].update(content="bad \0"), "'content' has a NUL or a lone surrogate"),
        (lambda v: v[2].update(speaker="x" * 100_000), "'speaker' must have 1 to 1,000 char"),
        (lambda v: v[2].update(title=""), "'title' must have 1 to 1,000"),
        (lambda v: v[2].update(key="\udfff"), "'key' has a NUL or a lone surrogate"),
        (lambda v: v[2].update(tags=[""]), "'tags' must have 1 to 1,000"),
        (lambda v: v[2].update(tags=["\ud800"]), "'tags' has a NUL or a lone surrogate"),
        (lambda v: v[2].update(keywords=["\ud800"]), "'keywords' has a NUL or a lone"),
        (lambda v: v[2].update(offset=1_440), "'offset' must be from -1439 to 1439"),
        (lambda v: v[2].update(metadata={"a": "\ud800"}), "'metadata' has a NUL or a lone"),
        (lambda v: v[2].update(metadata={"a": "x" * 1_000_001}), "'metadata' cannot be kept"),
        (lambda v: v[2]["event_times"][0].update(to=99), "an event time lies outside its text"),
        (lambda v: v[2].update(vector="AAA="), "the vector of item 1 is not of its space's model"),
        (lambda v: v[2].update(vector="AAAAAAAAAAA="), "the vector of item 1 is zero"),
        (lambda v: v[2].update(vector="AH4AAAAAAAA="), "the vector of item 1 is zero or not fin"),
        (lambda v: v[4].update(uid=v[2]["uid"]), "two items of the space above have the same uid"),
        (lambda v: v[3].update(content="\ud800"), "'content' has a NUL"),
        (lambda v: v.insert(4, v[3]), "version 1 of item 1 is late"),
        (lambda v: v[5].update(strength=5e300), "'strength' must be from 0 to 1, not 5e"),
        (lambda v: v[5].update(strength=-0.1), "'strength' must be from 0 to 1"),
        (lambda v: v[5].update(strength=10**400), "'strength' must be a finite number"),
        (lambda v: v[5].update(target=1), "item 1 is linked to itself"),
        (lambda v: v.insert(6, v[5]), "two links of the space above have the same ends"),
        (lambda v: v[7].update(query="\ud800"), "'query' has a NUL or a lone surrogate"),
        (lambda v: v[7]["hits"][1].update(number=2), "a recall names an item twice"),
        (lambda v: v[8].update(outcome=2), "an outcome lies in"),
        (lambda v: v[8].update(items=[[1, 1], [1, 1]]), "a memory has two credits"),
        (lambda v: v[8].update(signal="wished"), "unknown signal 'wished'"),
        (lambda v: v[5].update(source=9), "item 9 is named but not there"),
        (lambda v: v[5].update(strength="x"), "'strength' must be a number"),
        (lambda v: v[8].update(items=[[1]]), "'items' must be a list of pairs"),
        (lambda v: v.pop(6), "the footer counts"),
    ],
)
def test_what_is_malformed_is_refused_with_its_line(
    edit: Callable[[list[dict[str, Any]]], object], reason: str
) -> None:
    with pytest.raises(FormatError, match=reason):
        back(changed(edit))


def test_every_truncation_is_noticed() -> None:
    data = written(RECORDS)
    for cut in range(len(data)):
        with pytest.raises(FormatError):
            back(data[:cut])
    with pytest.raises(FormatError, match="no footer"):
        back(written(RECORDS, closed=False))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data.replace(b"former", b"formed"), "changed after it was written"),
        (lambda data: data + b"{}\n", "something follows the footer"),
        (lambda data: data.replace(b"0.75", b"NaN"), "no JSON"),
        (lambda data: data.replace(b"former", b"form\xff\xff"), "no JSON"),
        (lambda data: data.replace(b'{"type":"link"', b'[{"type":"link"', 1), "no JSON"),
        (lambda data: b"", "no Cofire export"),
        (lambda data: b'{"content": "x"}\n', "no Cofire export"),
        (lambda data: b"[1]\n", "no object"),
    ],
)
def test_damage_is_noticed(tmp_path: Path, damage: Callable[[bytes], bytes], reason: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(damage(written(RECORDS)))
    with pytest.raises(FormatError, match=reason):
        native.verify(path)
    with pytest.raises(FormatError, match=reason):
        list(native.read(path))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        native.verify(tmp_path / "none.jsonl")

"""Export and import where they could do harm: what lies there already, and what is half right."""

from __future__ import annotations

import hashlib
import io
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cofire.errors import ConfigurationError, FormatError, InputError
from cofire.memory import Memory
from cofire.store.records import SpaceInfo
from cofire.store.store import Store


def test_an_export_never_goes_over_the_store_itself(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    (tmp_path / "link").symlink_to(f"{path}-wal")
    with Memory.open(path, vectors=False) as memory:
        memory.remember("one")
        os.link(path, tmp_path / "hard.jsonl")
        for name in ("m.db", "m.db-wal", "m.db-shm", "m.db-graph-1", "hard.jsonl", "link"):
            with pytest.raises(InputError, match="belongs to the store itself"):
                memory.export(tmp_path / name)
        memory.remember("two")
    with Memory.open(path, vectors=False) as memory:
        assert [item.content for item in memory.list().items] == ["two", "one"]
        assert list(memory.check()) == []


def test_an_export_replaces_an_older_export_and_nothing_else(tmp_path: Path) -> None:
    notes, chat = tmp_path / "notes.txt", tmp_path / "chat.jsonl"
    notes.write_text("mine")
    chat.write_text('{"content": "mine"}\n')
    with Memory.open(tmp_path / "m.db", vectors=False) as memory:
        memory.remember("one")
        memory.backup(tmp_path / "copy.db")
        for path in (notes, chat, tmp_path / "copy.db"):
            before = path.read_bytes()
            with pytest.raises(InputError, match="left as it is"):
                memory.export(path)
            assert path.read_bytes() == before
        with pytest.raises(InputError, match="regular file"):
            memory.export(tmp_path)
        (tmp_path / "all.jsonl").touch()
        memory.export(tmp_path / "all.jsonl")
        memory.remember("two")
        assert memory.export(tmp_path / "all.jsonl")["item"] == 2
        with pytest.raises(InputError, match="not a backup"):
            memory.backup(tmp_path / "all.jsonl")
        assert memory.export(tmp_path / ("é" * 120 + ".jsonl"))["item"] == 2
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".cofire")]


def test_no_record_of_a_bad_export_is_stored(tmp_path: Path) -> None:
    source = tmp_path / "bad.jsonl"
    with Memory.open(tmp_path / "m.db", vectors=False) as memory:
        memory.remember("seed")
        stream = io.BytesIO()
        memory.export(stream)
        header, space, item = stream.getvalue().splitlines(keepends=True)[:3]
        lines = [header, space]
        for number in range(1, 2_502):
            content = "bad \ud800" if number == 2_501 else f"text {number}"
            more = {"number": number, "uid": str(uuid.uuid4()), "content": content}
            lines.append(json.dumps({**json.loads(item), **more}).encode() + b"\n")
        body = b"".join(lines)
        footer = {"type": "footer", "counts": {"space": 1, "item": 2_501}}
        footer["sha256"] = hashlib.sha256(body).hexdigest()
        source.write_bytes(body + json.dumps(footer).encode() + b"\n")
        with pytest.raises(FormatError, match=r"line 2503: 'content' has a NUL or a lone"):
            memory.import_(source)
        assert memory.stats().spaces[0].items == 1


def test_what_cannot_be_kept_is_reported_with_its_line(tmp_path: Path) -> None:
    source = tmp_path / "chat.jsonl"
    lines: list[Any] = [{"content": f"text {number}"} for number in range(1_500)]
    lines[0] = {"content": "first", "speaker": "x" * 2_000}
    lines[1_200] = {"content": "late", "key": "k" * 2_000}
    lines[1_300] = {"content": "heavy", "notes": "x" * 1_000_001}
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Memory.open(tmp_path / "m.db", vectors=False) as memory:
        report = memory.import_(source)
    assert (report.read, report.imported, report.dropped) == (1_500, 1_497, 3)
    assert [str(problem) for problem in report.problems[:2]] == [
        "chat.jsonl, line 1: dropped: speaker is longer than 1000 characters",
        "chat.jsonl, line 1201: dropped: key is longer than 1000 characters",
    ]
    assert str(report.problems[2]).startswith(
        "chat.jsonl, line 1301: dropped: the metadata have 1,000,013 characters as JSON; 1,000,000"
    )


def test_a_number_too_large_is_mended_as_infinity_is(tmp_path: Path) -> None:
    source = tmp_path / "chat.jsonl"
    source.write_text(
        '{"content": "one", "metadata": {"a": 1e999, "b": -1e999, "c": 1.5}}\n'
        '{"content": "two", "metadata": {"a": Infinity}}\n'
    )
    with Memory.open(tmp_path / "m.db", vectors=False) as memory:
        report = memory.import_(source)
        kept = {item.content: item.metadata for item in memory.list().items}
    assert (report.imported, report.repaired, report.dropped) == (2, 2, 0)
    assert kept == {"one": {"a": None, "b": None, "c": 1.5}, "two": {"a": None}}


@pytest.mark.parametrize(
    "make",
    [
        lambda most: {"a": "x" * (most - 8)},
        lambda most: {"a": ["x" * (most - 10)]},
        lambda most: {"a": "é" * (most - 8)},
    ],
)
def test_metadata_have_a_limit(tmp_path: Path, make: Callable[[int], dict[str, Any]]) -> None:
    with Memory.open(tmp_path / "m.db", vectors=False) as memory:
        kept = memory.remember("most", metadata=make(1_000_000)).ids[0]
        with pytest.raises(InputError, match="1,000,001 characters as JSON; 1,000,000 is the most"):
            memory.remember("more", metadata=make(1_000_001))
        with pytest.raises(InputError, match="is the most"):
            memory.update(kept, metadata=make(1_000_001))
        stream = io.BytesIO()
        memory.export(stream)
    stream.seek(0)
    with Memory.open(tmp_path / "other.db", vectors=False) as memory:
        assert memory.import_(stream, format="cofire").imported == 1


@pytest.mark.parametrize(
    "place",
    [":memory:", "sqlite:///:memory:", "sqlite://", "sqlite:///x.db?mode=memory", "file:x.db"],
)
def test_a_store_in_memory_only_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="in memory only"):
        Memory.open(place, vectors=False)
    assert list(tmp_path.iterdir()) == []


def test_any_number_of_filters_can_be_asked_for(tmp_path: Path) -> None:
    tags = [f"tag {number}" for number in range(1_500)]
    metadata = {f"key {number}": number for number in range(1_500)}
    with Memory.open(tmp_path / "m.db", vectors=False) as memory:
        memory.remember("all", tags=tags, metadata=metadata)
        memory.remember("some", tags=tags[:-1], metadata={**metadata, "key 7": 8})
        memory.remember("none")

        def found(**filters: Any) -> list[str]:
            return [item.content for item in memory.list(**filters).items]

        assert found(tags=tags) == ["all"]
        assert found(tags=tags[:-1] * 2) == ["some", "all"]
        assert found(metadata=metadata) == ["all"]
        assert found(metadata={"key 7": 8}, tags=tags[3:5]) == ["some"]
        assert found(tags=[*tags, "other"]) == []


def test_a_folder_in_place_of_the_sidecar_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cofire.retrieval.loading.SIDECAR_FROM", 5)
    path = tmp_path / "m.db"
    with Memory.open(path, embedder="hashing:16") as memory:
        ids = memory.remember([f"boat {number}" for number in range(20)]).ids
        space: SpaceInfo = memory._workings.spaces.own
        store: Store = memory._workings.store
        sidecar = store.sidecar(space)
        assert sidecar is not None
        sidecar.mkdir()
        assert memory.recall("boat").items
    with Memory.open(path, embedder="hashing:16") as memory:
        assert memory.recall("boat").items
        memory.forget(ids[0])
        assert list(memory.check()) == []
    assert sidecar.is_dir()

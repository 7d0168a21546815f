"""Sidecar files: a good one opens, every other one is ignored with its reason."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_rows import Changes, row, vector

from cofire.graph import sidecar, snapshot
from cofire.graph.active import ActiveGraph
from cofire.graph.sidecar import SidecarKey, delete_sidecar, load_sidecar, save_sidecar
from cofire.graph.vectors import Projection

KEY = SidecarKey(space="0190-space", model="mini@1", dimension=2)


def graph() -> ActiveGraph:
    rows = [
        row(n, terms={n: 1, 99: 2}, concepts={5: 1}, facets=(1,), vector=vector(n, 1), session=9)
        for n in range(1, 800)
    ]
    links = [(n, n + 1, 0, 0.5, 1) for n in range(1, 799)]
    return ActiveGraph.empty(2).apply(Changes(revision=7, rows=rows, links=links))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "space.graph"
    save_sidecar(path, graph(), KEY)
    return path


def reason(path: Path, key: SidecarKey = KEY) -> str:
    loaded = load_sidecar(path, key, None)
    assert loaded.graph is None
    return loaded.reason


def test_what_was_saved_is_loaded_and_grows_on(path: Path) -> None:
    loaded = load_sidecar(path, KEY, None).graph
    assert loaded is not None
    assert loaded.revision == 7
    assert loaded.items == 799
    assert loaded.column("vector").tobytes() == graph().column("vector").tobytes()
    query = np.array([1.0, 0.1])
    assert loaded.dense(query)[0].tolist() == graph().dense(query)[0].tolist()
    newer = loaded.apply(Changes(revision=8, rows=[row(900, terms={99: 1})]))
    assert len(newer.term_rows(99).rows) == 800
    assert newer.neighbours(np.array([4])).target.tolist() == [5, 3]


def test_only_the_owner_can_read_it(path: Path) -> None:
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_missing(tmp_path: Path) -> None:
    assert reason(tmp_path / "none") == "missing"
    assert reason(tmp_path).startswith("unreadable")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (SidecarKey(space="x", model="mini@1", dimension=2), "other space"),
        (SidecarKey(space="0190-space", model="mini@2", dimension=2), "other model"),
        (SidecarKey(space="0190-space", model="mini@1", dimension=3), "other dimension"),
    ],
)
def test_a_file_for_something_else_is_ignored(path: Path, other: SidecarKey, words: str) -> None:
    assert reason(path, other) == words


def test_another_format_is_ignored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sidecar, "FORMAT", sidecar.FORMAT + 1)
    assert f"format {sidecar.FORMAT - 1}" in reason(path)


def test_any_changed_byte_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    header = int.from_bytes(whole[8:12], "little")
    payload = 12 + header + 32
    places = np.random.default_rng(3).integers(payload + 64, len(whole), 60).tolist()
    unnoticed = []
    for place in [0, 9, 20, payload - 1, *places]:
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        loaded = load_sidecar(path, KEY, None)
        if loaded.graph is not None:
            unnoticed.append(place)
        else:
            assert loaded.reason.startswith("damaged")
    # The filling between arrays (up to 63 bytes each) means nothing and is not covered.
    assert len(unnoticed) <= 3


def test_moved_blocks_are_noticed(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    end = len(whole) - 64
    start = end - 4 * 4096
    block = whole[start : start + 64]
    whole[start : start + 64] = whole[start + 8192 : start + 8192 + 64]
    whole[start + 8192 : start + 8192 + 64] = block
    path.write_bytes(whole)
    assert reason(path).startswith("damaged")


@pytest.mark.parametrize("size", [0, 5, 12, 200, -1, -5000])
def test_truncation_is_noticed(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])
    assert reason(path).startswith("damaged")


def test_additions_are_noticed(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")
    assert reason(path).startswith("damaged")


def read_header(path: Path) -> dict[str, Any]:
    whole = path.read_bytes()
    header: dict[str, Any] = json.loads(whole[12 : 12 + int.from_bytes(whole[8:12], "little")])
    return header


def rewritten(path: Path, **changes: object) -> None:
    """The same file with another header, its digest made right: what a forger would do."""
    whole = path.read_bytes()
    start = 12 + int.from_bytes(whole[8:12], "little") + 32
    payload = whole[start + -start % 64 :]
    path.write_bytes(sidecar._pack_header(read_header(path) | changes) + payload)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("row.number", ["|O8", [799], 0]),
        ("row.number", ["<f4", [799], 0]),
        ("row.number", ["<i4", [-1], 0]),
        ("row.number", ["<i4", [], 0]),
        ("row.number", ["<i4", [798], 0]),
        ("row.number", ["<i4", [799, 1], 0]),
        ("row.number", ["<i4", [799], -64]),
        ("row.number", ["<i4", [799], 10**30]),
        ("row.vector", ["<f2", [799, 10**12], 0]),
        ("terms.keys", ["<u8", [10**12], 0]),
    ],
)
def test_arrays_that_cannot_be_are_refused(path: Path, name: str, entry: list[object]) -> None:
    rewritten(path, arrays=read_header(path)["arrays"] | {name: entry})
    assert "cannot be an array" in reason(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"arrays": []},
        {"arrays": None},
        {"arrays": {"row.number": 1}},
        {"key": None},
        {"key": "x"},
        {"revision": "x"},
        {"revision": -1},
        {"revision": True},
        {"size": 10**30},
        {"size": 5},
        {"projection": "x"},
        {"payload": None},
    ],
)
def test_a_header_that_makes_no_sense_is_damage(path: Path, changes: dict[str, object]) -> None:
    rewritten(path, **changes)
    assert reason(path).startswith("damaged")


@pytest.mark.parametrize("text", [b"[]", b"1", b"[" * 100_000, b"{", b"\xff"])
def test_a_header_that_is_no_object_is_damage(path: Path, text: bytes) -> None:
    head = sidecar._MAGIC + len(text).to_bytes(4, "little") + text
    path.write_bytes(head + hashlib.blake2b(head, digest_size=32).digest())
    assert reason(path).startswith("damaged")


def test_a_folder_in_its_place_is_left_alone(path: Path) -> None:
    path.unlink()
    path.mkdir()
    assert reason(path).startswith("unreadable")
    with pytest.raises(OSError):
        save_sidecar(path, graph(), KEY)
    delete_sidecar(path)
    assert list(path.parent.iterdir()) == [path]


def test_a_header_without_what_it_needs_is_damage(path: Path) -> None:
    rewritten(path, arrays={})
    assert reason(path).startswith("damaged")
    rewritten(path, payload="x")
    assert reason(path).startswith("damaged")


def test_another_projection_computes_the_scan_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "COARSE_FROM", 100)
    turned = Projection(matrix=np.array([[0.6, 0.8]], np.float32), version=2)
    loaded = load_sidecar(path, KEY, turned).graph
    assert loaded is not None
    assert loaded.projection is turned
    expected = graph().column("vector").astype(np.float32) @ turned.matrix.T
    assert np.allclose(loaded.column("scan"), expected, atol=1e-6)
    save_sidecar(path, loaded, KEY)
    again = load_sidecar(path, KEY, turned).graph
    assert again is not None
    assert again.column("scan").tobytes() == loaded.column("scan").tobytes()


def test_a_failed_save_keeps_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_sidecar(path, graph(), KEY)
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


def test_deletion_takes_leftovers_with_it(path: Path) -> None:
    path.with_name(path.name + ".abc.tmp").write_bytes(b"half")
    delete_sidecar(path)
    delete_sidecar(path)
    assert list(path.parent.iterdir()) == []

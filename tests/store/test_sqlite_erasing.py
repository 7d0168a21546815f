"""What deleting leaves in the files: nothing, or a warning and a way to clear it."""

from __future__ import annotations

import logging
import random
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cofire import Memory
from cofire.errors import StoreBusyError, StoreError
from cofire.store import Store, open_store
from cofire.store.records import NewItem, SpaceInfo
from cofire.testing import an_item, make_space
from readers import a_reader

FORGOTTEN = "the code is xylophone-4711"
WARNED = "traces may stay"


def found(path: Path, text: str = FORGOTTEN) -> bool:
    """Whether a text is anywhere in the store's files."""
    return any(text.encode() in one.read_bytes() for one in path.parent.glob(f"{path.name}*"))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path, busy_timeout=0.3) as store:
        yield store


@pytest.fixture
def space(store: Store) -> SpaceInfo:
    space = make_space(store)
    store.append(space, [an_item(FORGOTTEN), an_item("another"), an_item("a third")])
    return space


def test_nobody_in_the_way_is_no_warning(
    store: Store, space: SpaceInfo, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert found(path)
    assert store.forget(space, [1]).memories == 1
    assert not found(path)
    assert warnings(caplog) == []


def test_a_reader_in_the_way_is_told_of(
    store: Store, space: SpaceInfo, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with a_reader(path):
        assert store.forget(space, [1]).memories == 1
        assert store.get(space, 1) is None
        assert found(path)
        (warning,) = warnings(caplog)
        assert WARNED in warning
        assert "cofire scrub" in warning
        assert "somebody was reading" in warning
        assert str(path) in warning
        assert FORGOTTEN not in warning
    caplog.clear()
    assert store.forget(space, [2]).memories == 1
    assert not found(path)
    assert warnings(caplog) == []


def test_a_reader_who_is_soon_gone_is_waited_for(
    store: Store, space: SpaceInfo, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ready, done = threading.Event(), threading.Event()

    def read() -> None:
        with a_reader(path):
            ready.set()
            done.wait(10)
            time.sleep(0.1)

    thread = threading.Thread(target=read)
    thread.start()
    assert ready.wait(10)
    done.set()
    store.forget(space, [1])
    thread.join()
    assert not found(path)
    assert warnings(caplog) == []


def test_the_last_to_close_clears_what_was_left(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.open(path, embedder="hashing:16") as memory:
        id = memory.remember(FORGOTTEN).id
        with a_reader(path):
            assert memory.forget(id).memories == 1
        assert found(path)
        assert WARNED in warnings(caplog)[0]
    assert not found(path)


def test_forgetting_a_space_warns_as_well(
    store: Store, space: SpaceInfo, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with a_reader(path):
        store.forget_space(space)
    assert WARNED in warnings(caplog)[0]


def test_a_file_that_cannot_be_rebuilt_is_told_of(
    store: Store,
    space: SpaceInfo,
    path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(connection: sqlite3.Connection, wait: float) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("cofire.store.sqlite_erasing._rebuild", full)
    assert store.forget(space, [1]).memories == 1
    (warning,) = warnings(caplog)
    assert "could not be rebuilt: database or disk is full" in warning
    assert Path(f"{path}-wal").stat().st_size == 0  # the log is emptied all the same
    with pytest.raises(StoreError, match="disk is full"):
        store.scrub()


def test_scrubbing_clears_what_a_reader_kept(store: Store, space: SpaceInfo, path: Path) -> None:
    with a_reader(path):
        store.forget(space, [1])
        with pytest.raises(StoreBusyError, match=r"somebody was reading.*0\.3 s.*scrub again"):
            store.scrub()
        assert store.get(space, 2) is not None
    assert found(path)
    store.scrub()
    assert not found(path)


def test_scrubbing_waits_for_a_writer_as_long_as_said(
    store: Store, space: SpaceInfo, path: Path
) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match=r"another writer.*0\.3 s"):
        store.scrub()
    other.execute("COMMIT")
    other.close()
    store.scrub()
    assert store.counts(space).items == 3


def test_a_large_file_is_scrubbed_when_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cofire.store.sqlite_erasing.REBUILT_AT_ONCE", 0)
    rng = random.Random(2)
    every = range(1, 1_501)
    with open_store(path, durability="normal") as store:
        space = make_space(store)
        store.append(space, [a_note(number, rng) for number in every])
        for number in every[::3]:  # pages split where texts grow, and copies of rows are left
            store.update(space, number, a_note(number, rng), now=1)
        kept = set(rng.sample(every, 300))
        gone = [number for number in every if number not in kept]
        for part in range(4):
            store.forget(space, gone[part::4])
        assert traces(path, gone), "this test needs something to clear"
    with Memory.open(path, "agent", vectors=False, embedder="hashing:16") as memory:
        before = memory.stats().store_bytes
        assert memory.scrub() == before - memory.stats().store_bytes > 0
        assert traces(path, gone) == set()
        assert traces(path, every) == kept
        assert memory.scrub() == 0
        assert list(memory.check()) == []


def a_note(number: int, rng: random.Random) -> NewItem:
    name = f"NOTE{number:05d}"
    text = f"{name} " + "x" * rng.randrange(900)
    return an_item(text, uid=rng.randbytes(16), title=name, key=name, session=name)


def traces(path: Path, numbers: Iterable[int]) -> set[int]:
    """The numbers of notes of which something is in the store's files."""
    data = b"".join(one.read_bytes() for one in path.parent.glob(f"{path.name}*"))
    return {number for number in numbers if f"NOTE{number:05d}".encode() in data}

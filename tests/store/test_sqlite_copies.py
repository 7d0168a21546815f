"""Copies that migrations leave: gone if they hold what is deleted, and only then."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from cofire.memory import Memory
from cofire.store.sqlite_copies import copy_before
from confirming import forget_all


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


def test_a_copy_goes_with_what_it_holds(path: Path) -> None:
    with Memory.open(path, vectors=False, embedder="hashing:16") as memory:
        early = memory.remember("early").id
        first, second = copy_before(path, "0001"), copy_before(path, "0002")
        memory.backup(first)
        later = memory.remember("later").id
        memory.backup(second)
        new = memory.remember("new").id
        memory.backup(path.with_name("mine.backup"))
        memory.forget(new)
        assert first.exists()
        assert second.exists(), "it was made before"
        memory.forget(later, dry_run=True)
        assert second.exists()
        memory.forget(later)
        assert first.exists()
        assert not second.exists()
        memory.forget(early)
        assert not first.exists()
        assert path.with_name("mine.backup").exists(), "a backup is its maker's"


def test_a_whole_space_takes_its_copies(path: Path) -> None:
    copy = copy_before(path, "0002")
    with (
        Memory.open(path, vectors=False, embedder="hashing:16") as memory,
        Memory.open(path, user="bo", vectors=False, embedder="hashing:16") as other,
    ):
        memory.remember("mine")
        memory.backup(copy)
        other.remember("another's, who is not in it")
        forget_all(other)
        assert copy.exists()
        forget_all(memory)
        assert not copy.exists()


def test_what_cannot_be_read_goes(path: Path) -> None:
    copy = copy_before(path, "0002")
    copy.write_bytes(b"no database")
    with Memory.open(path, vectors=False, embedder="hashing:16") as memory:
        memory.forget(memory.remember("x").id)
    assert not copy.exists()


def test_a_copy_that_cannot_be_deleted_keeps_the_receipt_pending(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    copy = copy_before(path, "0002")
    with Memory.open(path, vectors=False, embedder="hashing:16") as memory:
        id = memory.remember("x").id
        memory.backup(copy)

        unlink = Path.unlink

        def refused(self: Path, missing_ok: bool = False) -> None:
            if self == copy:
                raise PermissionError(13, "not yours", str(self))
            unlink(self, missing_ok=missing_ok)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", refused)
            receipt = memory.forget(id)
        assert receipt.scrubbed == "pending"
        (warning,) = [one for one in caplog.records if one.levelno == logging.WARNING]
        assert "delete it yourself" in warning.getMessage()
        assert not memory.verify(receipt)
        memory.scrub()
        assert memory.verify(receipt)
        assert not copy.exists()

"""Where a backup may be written, and what it leaves alone."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cofire.errors import InputError, StoreError
from cofire.store import Store, open_store
from cofire.testing import an_item, make_space

SOURCE = Path(__file__).resolve().parents[2] / "src"


def remembered(path: Path) -> list[str | None]:
    with open_store(path) as store:
        assert list(store.check()) == []
        return [row.content for row in store.iterate_items(make_space(store))]


def filled(path: Path, *contents: str) -> Store:
    store = open_store(path)
    store.append(make_space(store), [an_item(content) for content in contents])
    return store


def test_a_backup_never_goes_over_the_store_itself(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    (tmp_path / "link.db").symlink_to(path)
    with filled(path, "one") as store:
        os.link(path, tmp_path / "hard.db")
        (tmp_path / "wal").symlink_to(f"{path}-wal")
        (tmp_path / "dangling").symlink_to(f"{path}-graph-7")
        (tmp_path / "sub").mkdir()
        for name in (
            *("m.db", "m.db-wal", "m.db-shm", "m.db-journal", "m.db-graph-1", "sub/../m.db"),
            *("link.db", "hard.db", "wal", "dangling"),
        ):
            assert store.owns(tmp_path / name), name
            with pytest.raises(InputError, match="belongs to the store"):
                store.backup(tmp_path / name)
        for name in ("m.db.bak", "m.db-old", "m.d", "sub/m.db", "no/where/m.db"):
            assert not store.owns(tmp_path / name), name
        store.append(make_space(store), [an_item("two")])
    (tmp_path / "hard.db").unlink()
    with open_store(tmp_path / "link.db") as linked:
        assert linked.owns(path)
        assert linked.owns(Path(f"{path}-wal"))
    assert remembered(path) == ["one", "two"]


def test_a_backup_replaces_an_older_backup_and_nothing_else(tmp_path: Path) -> None:
    notes, other = tmp_path / "notes.txt", tmp_path / "other.db"
    notes.write_text("mine")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    filled(tmp_path / "second.db", "of another agent").close()
    (tmp_path / "empty.db").touch()
    os.mkfifo(tmp_path / "pipe")
    with filled(tmp_path / "m.db", "one") as store:
        for path in (notes, other, tmp_path / "second.db"):
            before = path.read_bytes()
            with pytest.raises(InputError, match="left as it is"):
                store.backup(path)
            assert path.read_bytes() == before
        for path in (tmp_path, tmp_path / "pipe"):
            with pytest.raises(InputError, match="regular file"):
                store.backup(path)
        store.backup(tmp_path / "empty.db")
        store.append(make_space(store), [an_item("two")])
        (tmp_path / "empty.db-graph-1").write_bytes(b"of what was there before")
        (tmp_path / "empty.db-graph-notes").write_bytes(b"not ours")
        store.backup(tmp_path / "empty.db")
        assert not (tmp_path / "empty.db-graph-1").exists()
        assert (tmp_path / "empty.db-graph-notes").exists()
    assert remembered(tmp_path / "empty.db") == ["one", "two"]


def test_a_backup_never_goes_over_a_store_in_use(tmp_path: Path) -> None:
    with filled(tmp_path / "a.db", "A") as store, filled(tmp_path / "b.db", "B") as other:
        with pytest.raises(InputError, match="in use as a store"):
            store.backup(tmp_path / "b.db")
        other.append(make_space(other), [an_item("B2")])
    assert remembered(tmp_path / "b.db") == ["B", "B2"]


def test_a_log_left_by_a_killed_process_is_not_mixed_with_a_backup(tmp_path: Path) -> None:
    daily = tmp_path / "daily.db"
    code = (
        "import os, sys\n"
        "from cofire.store import open_store\n"
        "from cofire.testing import an_item, make_space\n"
        "store = open_store(sys.argv[1])\n"
        "store.append(make_space(store), [an_item('peek') for _ in range(20)])\n"
        "os._exit(9)\n"
    )
    with filled(tmp_path / "m.db", *(f"live {number}" for number in range(200))) as store:
        store.backup(daily)
        killed = subprocess.run(
            [sys.executable, "-c", code, str(daily)],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            check=False,
        )
        assert killed.returncode == 9
        log = Path(f"{daily}-wal")
        assert log.stat().st_size > 0
        before = {path.name: path.read_bytes() for path in (daily, log)}
        with pytest.raises(InputError, match=r"daily\.db-(wal|shm) lies beside it"):
            store.backup(daily)
        assert {path.name: path.read_bytes() for path in (daily, log)} == before
        daily.unlink()  # a log without its file is no better
        with pytest.raises(InputError, match="lies beside it"):
            store.backup(daily)
        for path in tmp_path.glob("daily.db-*"):
            path.unlink()
        store.backup(daily)
    assert len(remembered(daily)) == 200


def test_backups_at_once_do_not_meet(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    failed: list[StoreError | InputError] = []
    with filled(tmp_path / "m.db", *(f"text {number} " * 50 for number in range(500))) as store:

        def back_up() -> None:
            try:
                store.backup(target)
            except (StoreError, InputError) as exc:
                failed.append(exc)

        threads = [threading.Thread(target=back_up) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "m.db"]
    assert len(remembered(target)) == 500


def test_a_backup_follows_no_link_that_was_laid_for_it(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    for name in (f".copy.db.{os.getpid()}.partial", "copy.db.tmp"):
        (tmp_path / name).symlink_to(victim)
    with filled(tmp_path / "m.db", "one") as store:
        store.backup(tmp_path / "copy.db")
        assert victim.read_text() == "precious"
        assert not (tmp_path / "copy.db").is_symlink()
        (tmp_path / "to-notes").symlink_to(victim)
        with pytest.raises(InputError, match="not a backup"):
            store.backup(tmp_path / "to-notes")
    assert victim.read_text() == "precious"

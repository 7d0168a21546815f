"""SQLite files: what is no store, what cannot be written, what was made by another version."""

from __future__ import annotations

import gzip
import os
import random
import sqlite3
import stat
import threading
import time
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from cofire.errors import (
    ConfigurationError,
    FormatError,
    InputError,
    NotFoundError,
    SchemaVersionError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)
from cofire.store import migrations, open_store
from cofire.store.records import NewVector
from cofire.store.schema import metadata
from cofire.store.session import Scope, Session
from cofire.store.sqlite import SQLiteBackend
from cofire.testing import a_vector, an_item, fill, make_space


def test_a_new_store_is_private_and_in_wal(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "m.db"
    with open_store(path) as store:
        make_space(store)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(Path(f"{path}-wal").stat().st_mode) == 0o600
    assert [found.name for found in path.parent.iterdir()] == ["m.db"]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_missing_store_is_not_made_unless_wanted(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        open_store(tmp_path / "none.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("these are my notes, not a database at all. " * 50)
    before = text.read_bytes()
    with pytest.raises(StoreCorruptError, match="not an SQLite database"):
        open_store(text)
    assert text.read_bytes() == before
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    with pytest.raises(FormatError, match="another program"):
        open_store(other)
    assert other.read_bytes() == before
    with pytest.raises(StoreUnavailableError, match="folder"):
        open_store(tmp_path)


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("mysql://host/db", ConfigurationError),
        ("sqlite://", ConfigurationError),
        ("sqlite://host/x.db", ConfigurationError),
        ("", InputError),
        ("a\0b", InputError),
    ],
)
def test_impossible_places_are_refused(where: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        open_store(where)


def test_impossible_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        open_store(tmp_path / "m.db", durability="none")
    with pytest.raises(InputError):
        open_store(tmp_path / "m.db", busy_timeout=-1)


def test_a_disk_without_wal_is_refused(tmp_path: Path) -> None:
    # The dot-file locking of network disks has no shared memory, so SQLite refuses WAL there.
    with pytest.raises(StoreUnavailableError, match="write-ahead logging"):
        open_store(f"sqlite:///{tmp_path}/m.db?vfs=unix-dotfile")


def test_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with open_store(path) as store:
        space = make_space(store)
        store.append(space, [an_item("x" * 500, tags=("t",)) for _ in range(500)])
    data = bytearray(path.read_bytes())
    rng = random.Random(3)
    for start in range(80 * 4096, len(data) - 4096, 4096):
        data[start : start + 200] = rng.randbytes(200)
    path.write_bytes(data)
    with open_store(path) as store:
        findings = store.check()
        assert [finding.code for finding in findings] == ["integrity"]
        with pytest.raises(StoreCorruptError, match="cofire doctor"):
            store.changes(space, 0)
    path.write_bytes(data[:5000])
    with pytest.raises(StoreError):
        open_store(path)


def test_a_newer_schema_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    open_store(path).close()
    _set_revision(path, "9999")
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError, match="9999"):
        open_store(path)
    assert path.read_bytes() == before


def an_old_store(path: Path) -> Path:
    """A file that the first version of the store wrote: two spaces, segments, links, events."""
    packed = Path(__file__).parent / "data" / "schema-0001.db.gz"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def test_an_older_schema_is_copied_then_upgraded(tmp_path: Path) -> None:
    path = an_old_store(tmp_path / "m.db")
    with open_store(path) as store:
        space = make_space(store)
        rows = list(store.iterate_items(space))
        assert [(row.number, row.content) for row in rows] == [
            (1, "one"), (2, "long text"), (5, "five"),
        ]  # fmt: skip
        links = [link[:2] + link[4:6] + link[10:] for link in store.iterate_links(space)]
        assert links == [
            (1, 2, "temporal", 0.5, 0, 0, None, ()),
            (1, 5, "supports", 0.7, 0, 0, None, ()),
            (3, 4, "temporal", 0.5, 0, 0, None, ()),
        ]
        record = store.recall_record(space, b"r" * 16)
        assert record is not None
        assert [(hit.number, hit.via) for hit in record.hits] == [(1, 0), (3, 0)]
        events = list(store.iterate_events(space))
        assert [event.items for event in events] == [((1, 1.0), (2, -0.5)), ((1, 1.0),)]
        assert [(event.question, event.cue, event.trusted) for event in events] == (
            [(None, None, False)] * 2
        )
        # What was logged before links could learn is caught up with by a replay.
        assert [finding.code for finding in store.check()] == ["strengths"]
        assert store.replay(space) == 1
        assert list(store.check()) == []
        store.forget(space, [1])
        assert [event.type for event in store.iterate_events(space)] == ["redact"]
        assert list(store.check()) == []
    copy = tmp_path / "m.db.schema-0001.backup"
    connection = sqlite3.connect(copy)
    assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
    connection.close()
    with open_store(copy) as store:
        assert store.counts(make_space(store)).items == 3


def test_an_old_backup_is_upgraded_when_it_is_restored(tmp_path: Path) -> None:
    backup = an_old_store(tmp_path / "backup.db")
    before = backup.read_bytes()
    with open_store(tmp_path / "m.db") as store:
        store.restore(backup)
        assert store.counts(make_space(store)).items == 3
        assert len(list(store.iterate_events(make_space(store)))) == 2
    assert backup.read_bytes() == before


def test_the_migrations_make_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    open_store(path).close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()
    # SQLite has no comments; and its statistics are a table of its own.
    assert [found for found in differences if found[0] not in {"add_table_comment"}] == []


def test_the_list_of_revisions_is_complete() -> None:
    scripts = ScriptDirectory.from_config(migrations.configuration())
    found = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(found)) == migrations.REVISIONS


def test_a_held_lock_is_waited_for_as_long_as_said(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with open_store(path, busy_timeout=0.3) as store:
        space = make_space(store)
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(StoreBusyError, match=r"0\.3 s"):
            store.append(space, [an_item()])
        assert 0.25 < time.monotonic() - began < 3
        assert store.revision(space) == 0  # readers do not wait
        threading.Timer(0.1, lambda: other.execute("COMMIT")).start()
        assert store.append(space, [an_item()]).revision == 1
        time.sleep(0.2)
        other.close()


def test_a_thread_waits_for_another_as_long_as_said(tmp_path: Path) -> None:
    backend = SQLiteBackend(tmp_path / "m.db", busy_timeout=0.2)
    backend.prepare()
    failed: list[Exception] = []

    def write() -> None:
        try:
            backend.write(Scope(), lambda _: None)
        except StoreBusyError as exc:
            failed.append(exc)

    def hold(_: Session) -> None:
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()

    backend.write(Scope(), hold)
    assert len(failed) == 1
    backend.close()


def test_forgotten_text_is_gone_from_the_files(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    rng = random.Random(1)
    with open_store(path) as store:
        space = make_space(store)
        for start in range(0, 2_000, 100):
            batch = []
            for number in range(start, start + 100):
                secret = f"SECRET{number:05d} " + "x" * rng.randrange(600)
                item = an_item(secret, title=secret, key=secret, tags=(secret,),
                               session=secret, metadata={secret: secret})  # fmt: skip
                batch.append(item)
            store.append(space, batch)
            store.update(space, start + 1, an_item(f"SECRET{start:05d} again"), now=1)
        kept = rng.sample(range(1, 2_001), 200)
        store.forget(space, [number for number in range(1, 2_001) if number not in kept])
        data = b"".join(found.read_bytes() for found in tmp_path.iterdir())
        left = {number for number in range(1, 2_001) if f"SECRET{number - 1:05d}".encode() in data}
        assert left == set(kept)
        store.forget_space(space)
        data = b"".join(found.read_bytes() for found in tmp_path.iterdir())
        assert b"SECRET" not in data


def test_backup_and_restore(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    with open_store(tmp_path / "m.db") as store, open_store(tmp_path / "m.db") as other:
        space = make_space(store)
        fill(store, space)
        rows = [row.content for row in store.iterate_items(space)]
        store.backup(tmp_path / "copy.db", lambda done, total: seen.append((done, total)))
        assert seen
        assert seen[-1][0] == seen[-1][1]
        later = make_space(store, "later")
        store.append(space, [an_item("after the backup") for _ in range(20)])
        revision = store.revision(space)
        store.restore(tmp_path / "copy.db")
        assert [row.content for row in store.iterate_items(space)] == rows
        changes = other.changes(space, revision)
        assert changes.rebuild
        assert changes.revision > revision
        assert len(changes.rows) == 5
        with pytest.raises(NotFoundError):
            other.revision(later)
        again = make_space(store, "new")
        assert again.space_id > later.space_id
        assert store.append(space, [an_item()]).numbers[0] > 25
        assert list(store.check()) == []
    assert sorted(found.name for found in tmp_path.iterdir()) == ["copy.db", "m.db"]
    with open_store(tmp_path / "new.db") as fresh:
        fresh.restore(tmp_path / "copy.db")
        assert [row.content for row in fresh.iterate_items(space)] == rows


def test_only_a_backup_is_restored(tmp_path: Path) -> None:
    with open_store(tmp_path / "m.db") as store:
        space = make_space(store)
        store.append(space, [an_item("kept")])
        store.backup(tmp_path / "copy.db")
        with pytest.raises(NotFoundError):
            store.restore(tmp_path / "none.db")
        (tmp_path / "junk").write_bytes(b"junk" * 5_000)
        sqlite3.connect(tmp_path / "empty.db").close()
        (tmp_path / "half.db").write_bytes((tmp_path / "copy.db").read_bytes()[:20_000])
        for name in ("junk", "empty.db", "half.db"):
            with pytest.raises(FormatError):
                store.restore(tmp_path / name)
        _set_revision(tmp_path / "copy.db", "9999")
        with pytest.raises(SchemaVersionError):
            store.restore(tmp_path / "copy.db")
        assert [row.content for row in store.iterate_items(space)] == ["kept"]
        with pytest.raises(StoreUnavailableError):
            store.backup(tmp_path / "no" / "folder.db")


def test_connections_are_few_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = open_store(path)
    space = make_space(store)
    for _ in range(50):
        assert store.fetch(space, [1]) == []
        with pytest.raises(NotFoundError):
            store.update(space, 1, an_item(), now=1)
        store.list([space])
    iterator = store.iterate_items(space)
    next(iterator, None)
    assert _open_files(path) <= 6
    other = sqlite3.connect(path, isolation_level=None, timeout=0)
    busy, log, done = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (busy, log, done) == (0, 0, 0)  # nobody holds a snapshot
    other.close()
    store.close()
    assert _open_files(path) == 0


def test_check_finds_what_does_not_agree(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    harm = {
        "orphan": "DELETE FROM items WHERE number = 5",
        "lost-segment": "UPDATE items SET parent = 77 WHERE number = 3",
        "segment-count": "UPDATE items SET segments = 3 WHERE number = 2",
        "recall-hit": "DELETE FROM recalls",
        "session-count": "UPDATE interactions SET turns = 9",
        "session": "DELETE FROM interactions",
        "item": "UPDATE items SET importance = 11 WHERE number = 1",
        "link": "UPDATE links SET strength = 2",
        "vector": "UPDATE vectors SET vector = x'007e007e007e007e' WHERE number = 1",
        "terms": "UPDATE items SET terms = x'00' WHERE number = 1",
        "tags": "DELETE FROM tags",
        "pending": "UPDATE items SET pending = 1 WHERE number = 1",
        "stray": "DELETE FROM spaces",
        "key": "UPDATE items SET key_hash = 1 WHERE number < 3",
    }
    for code, statement in harm.items():
        with open_store(path) as store:
            space = make_space(store)
            fill(store, space)
            store.append(space, [an_item()])
            (waiting,) = store.pending(space, "test-model", 4)
            late = NewVector(waiting.number, waiting.revision, a_vector(1))
            store.put_vectors(space, "test-model", 4, [late])
            assert list(store.check()) == []
            connection = sqlite3.connect(path)
            connection.execute(statement)
            connection.commit()
            connection.close()
            found = {finding.code for finding in store.check()}
            assert code in found, (code, found)
        path.unlink()


def _set_revision(path: Path, revision: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _open_files(path: Path) -> int:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system does not list open files")
    targets = []
    for entry in folder.iterdir():
        try:
            targets.append(str(entry.readlink()))
        except OSError:
            continue
    return sum(target == os.fspath(path) for target in targets)

"""One store, real processes: nobody loses anything, whatever happens to the others."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import textwrap
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cofire.errors import StoreError, StoreUnavailableError
from cofire.store import Store, open_store
from cofire.store.session import Scope, Session
from cofire.testing import an_item, make_space
from forked_interpreter import Process, start_python

TESTS = Path(__file__).resolve().parents[1]
SOURCES = TESTS.parent / "src"
WRITER = """
    import sys
    from cofire.store import open_store
    from cofire.testing import an_item, make_space
    path, name, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with open_store(path, durability="normal") as store:
        space = make_space(store)
        for index in range(count):
            batch = [an_item(f"{name}-{index}-{part}", session=name, key=f"{name}-{index}-{part}",
                             tags=(name,)) for part in range(size)]
            store.append(space, batch)
            sys.stdout.write(f"{index}\\n")
            sys.stdout.flush()
"""


def start(code: str, *arguments: object) -> Process:
    """A Python process that runs `code` with our sources."""
    return start_python(
        ["-X", "dev", "-W", "error", "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{TESTS}", "OMP_NUM_THREADS": "1"},
    )


def finish(process: Process) -> str:
    """The output of a process that must succeed."""
    output: str
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return output


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as store:
        yield store


def test_two_writers_lose_nothing_and_a_third_sees_all(path: Path) -> None:
    # Neither the file nor its schema exists: they also race to make it.
    writers = [start(WRITER, path, name, 1_000, 1) for name in ("a", "b")]
    for writer in writers:
        assert len(finish(writer).split()) == 1_000
    reader = start(
        """
        import sys
        from cofire.store import open_store
        from cofire.testing import make_space
        with open_store(sys.argv[1], create=False) as store:
            space = make_space(store)
            contents = {row.content for row in store.iterate_items(space)}
            links = len(store.changes(space, 0).links)
            print(len(contents), links, store.revision(space), list(store.check()))
        """,
        path,
    )
    assert finish(reader).split() == ["2000", "1998", "2000", "[]"]


def test_many_processes_may_make_the_store_at_once(path: Path) -> None:
    writers = [start(WRITER, path, name, 5, 1) for name in range(6)]
    for writer in writers:
        finish(writer)
    with open_store(path) as store:
        assert store.counts(make_space(store)).items == 30


def test_a_write_elsewhere_is_seen_at_the_next_call(path: Path, store: Store) -> None:
    space = make_space(store)
    seen = store.changes(space, 0).revision
    for turn in range(3):
        finish(start(WRITER, path, f"other-{turn}", 2, 2))
        assert store.revision(space) == seen + 2
        changes = store.changes(space, seen)
        assert len(changes.rows) == 4
        seen = changes.revision


def test_a_kill_at_any_moment_loses_nothing_acknowledged(path: Path) -> None:
    rng = random.Random(7)
    with open_store(path) as store:
        make_space(store)
    for turn in range(6):
        writer = start(WRITER, path, f"w{turn}", 10_000, 3)
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        killer = threading.Timer(rng.uniform(0.01, 0.4), writer.send_signal, (signal.SIGKILL,))
        killer.start()
        lines += list(writer.stdout)
        writer.communicate()
        killer.join()
        acknowledged = [int(line) for line in lines if line.endswith("\n")]
        with open_store(path) as store:
            space = make_space(store)
            found = {row.content for row in store.iterate_items(space)}
            for index in acknowledged:
                for part in range(3):
                    assert f"w{turn}-{index}-{part}" in found
            assert sum(content.startswith(f"w{turn}-") for content in found) % 3 == 0
            assert list(store.check()) == []


def test_a_kill_while_the_store_is_made_leaves_one_that_opens(tmp_path: Path) -> None:
    rng = random.Random(5)
    for turn in range(5):
        path = tmp_path / f"{turn}.db"
        writer = start(WRITER, path, "w", 10_000, 1)
        deadline = time.monotonic() + 30
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.4))
        writer.kill()
        writer.communicate()
        with open_store(path) as store:
            store.append(make_space(store), [an_item("after")])
            assert list(store.check()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_can_use_the_store(path: Path, store: Store) -> None:
    space = make_space(store)
    store.append(space, [an_item("parent before")])

    def child() -> None:
        assert store.counts(space).items >= 1  # the parent writes on meanwhile
        for index in range(20):
            store.append(space, [an_item(f"child {index}")])
        store.close()

    process = fork(child)
    for index in range(20):
        store.append(space, [an_item(f"parent {index}")])
    assert wait(process) == 0
    assert store.counts(space).items == 41
    assert list(store.check()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_amid_a_read_is_a_clear_error_in_the_child(store: Store) -> None:
    space = make_space(store)
    reading, done = threading.Event(), threading.Event()

    def hold(_: Session) -> None:
        reading.set()
        done.wait()

    thread = threading.Thread(target=store._backend.read, args=(Scope(), hold))
    thread.start()
    reading.wait()

    def child() -> None:
        for call in (lambda: store.revision(space), lambda: store.append(space, [an_item()])):
            with pytest.raises(StoreUnavailableError, match="forked"):
                call()
        store.close()

    process = fork(child)
    done.set()
    thread.join()
    assert wait(process) == 0
    store.append(space, [an_item("the parent goes on")])
    assert list(store.check()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_amid_writing_threads_do_not_hang(store: Store) -> None:
    space = make_space(store)
    stop = threading.Event()
    written: list[int] = []

    def write() -> None:
        while not stop.is_set():
            written.append(store.append(space, [an_item()]).revision)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()

    def child() -> None:
        try:
            store.append(space, [an_item()])
        except StoreError:
            os._exit(3)

    codes = []
    for _ in range(10):
        codes.append(wait(fork(child)))
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert set(codes) <= {0, 3}
    assert store.counts(space).items == len(written) + codes.count(0)
    assert list(store.check()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_place_is_a_clear_error(what: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "store.db"
        with open_store(path) as store:
            make_space(store)
        path.chmod(0o444 if what == "file" else 0o666)
        folder.chmod(0o777 if what == "file" else 0o555)

        def child() -> None:
            if os.geteuid() == 0:  # who may write everywhere; become nobody
                os.setuid(65534)
            with pytest.raises(StoreUnavailableError, match=r"read-only.*permission.*or copy"):
                open_store(path)
            if what == "folder":
                with pytest.raises(StoreUnavailableError, match="write permission"):
                    open_store(folder / "new.db")

        code = wait(fork(child))
        folder.chmod(0o700)
    assert code == 0


def fork(child: Callable[[], None]) -> int:
    """Runs `child` in a forked process; returns its id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork: what is tested
        process = os.fork()
    if process:
        return process
    code = 1
    try:
        child()
        code = 0
    except BaseException:  # noqa: BLE001 - a forked process must not go on with the parent's tests
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(process: int) -> int:
    """The exit code of a forked process, which must end within a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise AssertionError("the child hangs")

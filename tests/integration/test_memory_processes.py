"""The whole product in real processes on one SQLite file: nobody loses anything, whatever happens
to the others (cases a-03, h-07, and the robustness that issue 2 promises)."""

from __future__ import annotations

import json
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
from collections.abc import Callable
from pathlib import Path

import pytest

from cofire import Memory
from cofire.errors import CofireError, StoreUnavailableError
from confirming import forget_all
from forked_interpreter import Process, start_python

TESTS = Path(__file__).resolve().parents[1]
SOURCES = TESTS.parent / "src"
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

START = """
    import gc, json, sys, time
    from pathlib import Path
    from cofire import Memory
    path = sys.argv[1]

    def say(*words):
        print(*words, flush=True)
"""
WRITER = """
    name, count = sys.argv[2], int(sys.argv[3])
    with Memory.open(path, embedder="hashing:64") as memory:
        for index in range(count):
            memory.remember(f"proc {name} item {index}", session=name, tags=[name])
            if index % 100 == 0:
                memory.recall(f"item {index}", k=3)
        say(memory.check())
"""


def start(code: str, *arguments: object, stdin: int | None = None) -> Process:
    """A Python process that runs `code` with our sources; warnings are errors."""
    return start_python(
        ["-X", "dev", "-W", "error", "-c",
         textwrap.dedent(START) + textwrap.dedent(code), *map(str, arguments)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{TESTS}", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def finish(process: Process) -> list[str]:
    """The lines of a process that must succeed and complain of nothing."""
    output: str
    output, errors = process.communicate(timeout=240)
    assert (process.returncode, errors) == (0, "")
    return output.splitlines()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


# a-03


def test_two_writers_lose_nothing_and_a_third_sees_all(path: Path) -> None:
    # Neither the file nor its space exists: they race to make them, too.
    writers = [start(WRITER, path, name, 600) for name in ("a", "b")]
    for writer in writers:
        assert finish(writer) == ["[]"]
    reader = start(
        """
        with Memory.open(path, create=False, embedder="hashing:64") as memory:
            seen, after = set(), None
            while True:
                page = memory.list(limit=700, after=after)
                seen |= {item.content for item in page}
                after = page.next
                if after is None:
                    break
            wanted = {f"proc {name} item {index}" for name in "ab" for index in range(600)}
            missed = [text for text in sorted(wanted)[::20]
                      if text not in [hit.content for hit in memory.recall(text, 3)]]
            stats = memory.stats()
            say(seen == wanted, missed, stats.items, stats.links, memory.check())
        """,
        path,
    )
    assert finish(reader) == ["True [] 1200 1198 []"]


def test_a_reader_sees_anothers_write_at_its_next_call(path: Path) -> None:
    reader = start(
        """
        with Memory.open(path, embedder="hashing:64") as memory:
            say("ready")
            for line in sys.stdin:
                text = line.strip()
                say(json.dumps({
                    "recall": [hit.content for hit in memory.recall(text, 1)],
                    "items": memory.stats().items,
                    "list": [item.content for item in memory.list(limit=1)],
                }))
        """,
        path,
        stdin=subprocess.PIPE,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"

    def ask(text: str) -> dict[str, object]:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write(text + "\n")
        reader.stdin.flush()
        answer: dict[str, object] = json.loads(reader.stdout.readline())
        return answer

    with Memory.open(path, embedder="hashing:64") as memory:
        for index in range(30):
            text = f"number {index} of thirty"
            id = memory.remember(text).id
            assert ask(text) == {"recall": [text], "items": index + 1, "list": [text]}
            changed = f"changed {index}"
            memory.update(id, content=changed)
            assert ask(changed)["recall"] == [changed]
        memory.forget(id)
        assert ask(changed)["items"] == 29
        forget_all(memory)
        assert ask("number") == {"recall": [], "items": 0, "list": []}
        memory.remember("back again")
        assert ask("back again")["recall"] == ["back again"]
    assert finish(reader) == []


# h-07 and the kills

IMPORTER = """
    def tell(done, total):
        say(done)

    with Memory.open(path, embedder="hashing:64") as memory:
        report = memory.import_(Path(sys.argv[2]), progress=tell)
        say("report", report.imported, report.known)
"""


def test_a_kill_at_any_moment_of_an_import_loses_nothing(path: Path, tmp_path: Path) -> None:
    rng = random.Random(11)
    count = 6_000
    source = tmp_path / "many.jsonl"
    with source.open("w") as file:
        for index in range(count):
            line = {"content": f"line {index}", "session": f"s{index % 7}", "tags": ["imported"]}
            file.write(json.dumps(line) + "\n")
    acknowledged = 0
    for _ in range(5):
        importer = start(IMPORTER, path, source)
        assert importer.stdout is not None
        lines = [importer.stdout.readline() for _ in range(rng.randrange(1, 6))]
        time.sleep(rng.uniform(0.0, 0.1))
        importer.kill()
        rest, _ = importer.communicate()
        lines += rest.splitlines(keepends=True)
        lines = [line for line in lines if line.endswith("\n") and line[0].isdigit()]
        acknowledged = max(acknowledged, *(int(line) for line in lines))
        with Memory.open(path, embedder="hashing:64") as memory:
            items = memory.stats().items
            assert items >= acknowledged
            assert items % 1000 == 0
            assert list(memory.check()) == []
            assert len(memory.recall(f"line {acknowledged - 1}", 5)) == 5
    for known in (items, count):
        lines = finish(start(IMPORTER, path, source))
        assert lines[-1] == f"report {count - known} {known}"
    with Memory.open(path, embedder="hashing:64") as memory:
        assert memory.stats().items == count
        assert memory.stats().links == count - 7
        assert list(memory.check()) == []


def test_a_kill_between_single_writes_loses_nothing_acknowledged(path: Path) -> None:
    rng = random.Random(3)
    code = """
        with Memory.open(path, embedder="hashing:64") as memory:
            for index in range(100_000):
                receipt = memory.remember(f"{sys.argv[2]}-{index}", session="s")
                if index % 5 == 4:
                    memory.update(receipt.id, title="t")
                    say(receipt.id)
                if index % 50 == 49:
                    memory.forget(memory.list(limit=1, newest_first=False).items[0].id)
                memory.recall("x", 2)
    """
    for turn in range(4):
        writer = start(code, path, turn)
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        time.sleep(rng.uniform(0.0, 0.7))
        writer.kill()
        rest, _ = writer.communicate()
        lines += rest.splitlines(keepends=True)
        ids = [line.strip() for line in lines if line.endswith("\n")]
        with Memory.open(path, embedder="hashing:64") as memory:
            for id in ids[-5:]:
                assert memory.get(id).title == "t"
            assert list(memory.check()) == []


# Re-embedding


def test_a_killed_reembedding_goes_on(path: Path) -> None:
    with Memory.open(path, embedder="hashing:32") as memory:
        memory.remember([f"note {index} says {index * 7}" for index in range(4000)])
    code = """
        import fakes, time
        class Slow(fakes.StubEmbedder):
            def embed_passages(self, texts):
                time.sleep(float(sys.argv[2]))
                return super().embed_passages(texts)
        model = Slow(name="B", dimension=16)
        with Memory.open(path, embedder=model, vectors=False) as memory:
            made = memory.reembed(progress=lambda done, total: say(done))
            say("made", made, memory.stats().spaces[0].pending, memory.check())
    """
    first = start(code, path, 0.1)
    assert first.stdout is not None
    told = [first.stdout.readline() for _ in range(4)]
    first.kill()
    first.communicate()
    done = int(told[-1])
    assert 0 < done < 4000
    with Memory.open(path, embedder="hashing:32") as memory:  # the former model is still in use
        assert memory.recall("note 17 says 119", 1, profile="dense")[0].content.startswith(
            "note 17"
        )
        assert list(memory.check()) == []
    lines = finish(start(code, path, 0))
    made = int(lines[-1].split()[1])
    assert made <= 4000 - done
    assert lines[-1].endswith("0 []")


def test_two_processes_may_reembed_at_once(path: Path) -> None:
    with Memory.open(path, embedder="hashing:32") as memory:
        memory.remember([f"note {index} says {index * 7}" for index in range(2000)])
    code = """
        with Memory.open(path, embedder="hashing:48", vectors=False) as memory:
            say("ready")
            sys.stdin.readline()
            memory.reembed()
            memory.remember(f"written by {sys.argv[2]}")
            say(memory.stats().spaces[0].pending, memory.stats().spaces[0].dimension)
    """
    movers = [start(code, path, name, stdin=subprocess.PIPE) for name in "ab"]
    for mover in movers:
        assert mover.stdout is not None
        mover.stdout.readline()
    for mover in movers:
        assert mover.stdin is not None
        mover.stdin.write("go\n")
        mover.stdin.flush()
    for mover in movers:
        assert finish(mover) == ["0 48"]
    with Memory.open(path, embedder="hashing:48") as memory:
        assert memory.stats().items == 2002
        best = memory.recall("note 17 says 119", 1, profile="dense")[0]
        assert (best.content, round(best.score, 2)) == ("note 17 says 119", 1.0)
        assert list(memory.check()) == []


# Forks


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


@needs_fork
def test_a_forked_child_and_its_parent_both_go_on(path: Path) -> None:
    with Memory.open(path, embedder="hashing:64") as memory:
        for index in range(10):
            memory.remember(f"parent before {index}")
        memory.recall("parent")  # a record waits, and a thread to write it

        def child() -> None:
            seen = {hit.content for hit in memory.recall("parent before", k=50)}
            assert seen >= {f"parent before {index}" for index in range(10)}
            memory.stats()  # flushes: what waited is the parent's to write
            for index in range(20):
                id = memory.remember(f"child {index}").id
                assert memory.recall(f"child {index}", 1).ids == (id,)
            memory.forget(id)
            memory.close()

        process = fork(child)
        for index in range(20):
            memory.remember(f"parent {index}")
            memory.recall("parent")
        assert wait(process) == 0
        assert memory.stats().items == 10 + 19 + 20
        ids = [item.id for item in memory.list(limit=1000)]
        assert len(set(ids)) == len(ids)
        assert list(memory.check()) == []
    with Memory.open(path, embedder="hashing:64") as memory:
        out = path.parent / "out.jsonl"
        # 1 + 20 of the parent; the child's: one look at ten and those of what was not forgotten.
        assert memory.export(out)["recall"] == 21 + 1 + 19


@needs_fork
def test_forks_amid_working_threads_do_not_hang(path: Path) -> None:
    with Memory.open(path, embedder="hashing:64") as memory:
        memory.remember("start")
        stop = threading.Event()

        def work(verb: Callable[[], object]) -> None:
            while not stop.is_set():
                verb()

        verbs: tuple[Callable[[], object], ...] = (
            lambda: memory.remember("from a thread"),
            lambda: memory.recall("thread"),
            memory.stats,
        )
        threads = [threading.Thread(target=work, args=(verb,)) for verb in verbs]
        for thread in threads:
            thread.start()

        def child() -> None:
            try:
                memory.recall("thread")
                memory.remember("from a child")
                memory.close()
            except CofireError:
                os._exit(3)

        codes = []
        for _ in range(10):
            codes.append(wait(fork(child)))
            time.sleep(0.01)
        stop.set()
        for thread in threads:
            thread.join()
        assert set(codes) <= {0, 3}
        children = len(memory.list(limit=1)) and [
            item for item in memory.list(limit=10_000) if item.content == "from a child"
        ]
        assert len(children or []) >= codes.count(0)
        assert list(memory.check()) == []


# Places that cannot be written


@needs_fork
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_place_is_one_clear_error(what: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "m.db"
        with Memory.open(path, embedder="hashing:64") as memory:
            memory.remember("something")
        path.chmod(0o444 if what == "file" else 0o666)
        folder.chmod(0o777 if what == "file" else 0o555)

        def child() -> None:
            if os.geteuid() == 0:  # who may write everywhere; become nobody
                os.setuid(65534)
            os.environ["COFIRE_CONFIG"] = os.devnull
            with pytest.raises(StoreUnavailableError, match="write permission"):
                Memory.open(path, embedder="hashing:64")

        code = wait(fork(child))
        folder.chmod(0o700)
    assert code == 0


# Closing


def test_nothing_is_left_open(path: Path) -> None:
    code = """
        import os, warnings
        from cofire.errors import ConfirmationNeededError
        memory = Memory.open(path, embedder="hashing:64")
        memory.remember(["one", "two"])
        memory.recall("one", explain=True)
        memory.export(path + ".jsonl")
        memory.backup(path + ".backup")
        memory.close()
        memory.close()
        with Memory.open(path, embedder="hashing:64") as memory:
            memory.import_(path + ".jsonl")
            memory.restore(path + ".backup")
            try:
                memory.forget(everything=True)
            except ConfirmationNeededError as asked:
                memory.forget(everything=True, confirm=asked.token)
        try:
            Memory.open(path, embedder="hashing:32", create=False, identity="")
        except Exception:
            pass
        try:
            Memory.open(path + ".none", create=False)
        except Exception:
            pass
        del memory
        gc.collect()
        left = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{fd}")] if os.path.exists("/proc") else []
        say([name for name in left if "m.db" in name])
    """
    assert finish(start(code, path)) == ["[]"]


def test_a_program_that_forgets_to_close_loses_no_memory(path: Path) -> None:
    code = """
        memory = Memory.open(path, embedder="hashing:64")
        say(memory.remember("kept").id)
        memory.recall("kept")
        import os
        os._exit(0)
    """
    (id,) = finish(start(code, path))
    with Memory.open(path, embedder="hashing:64") as memory:
        assert memory.get(id).content == "kept"
        assert list(memory.check()) == []

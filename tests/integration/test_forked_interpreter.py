"""A forked process is what `subprocess.run` would have started, but for its imports."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from forked_interpreter import AVAILABLE, ForkedInterpreter, Process, new_python

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="processes are forked on Linux only")
SOURCES = Path(__file__).resolve().parents[2] / "src"

SELF = """
    import json, os, signal, sys, threading, time
    def of(stream):
        raw = getattr(stream.buffer, "raw", stream.buffer)
        return [type(stream.buffer).__name__, type(raw).__name__, stream.name, stream.mode,
                stream.encoding, stream.errors, stream.newlines, stream.line_buffering,
                stream.write_through, stream.isatty(), stream.seekable()]
    status = open("/proc/self/status").read().splitlines()
    print(json.dumps({
        "arguments": [sys.argv, sys.orig_argv[1:], sys.path, sys.flags, sys.warnoptions, __name__],
        "place": [os.getcwd(), dict(os.environ), time.tzname, time.localtime(0)[:5]],
        "streams": [of(sys.stdin), of(sys.stdout), of(sys.stderr), sys.stdin.read()],
        "signals": [str(signal.getsignal(one)) for one in sorted(signal.valid_signals())],
        "masks": [line for line in status if line.startswith(("Sig", "Shd", "Threads"))
                  and not line.startswith("SigQ")],
        "open": sorted(os.listdir("/proc/self/fd")),
        "group": os.getpgid(0),
        "umask": os.umask(0),
        "threads": threading.active_count(),
    }))
"""
LAST = """
    import atexit, os, sys, threading, time
    atexit.register(print, "at exit")
    threading.Thread(target=lambda: (time.sleep(0.05), print("a thread"))).start()
    print("out")
    print("err", file=sys.stderr)
"""
HOW_PROGRAMS_END = {
    "with all they have": LAST,
    "with a code": "import sys; sys.exit(7)",
    "with a text": "import sys; sys.exit('words')",
    "without a word": "import os; os._exit(3)",
    "by a signal": "import os; os.kill(os.getpid(), 9)",
    "unable to say more": "import os; print('x'); os.close(1)",
    "without reading": "pass",
}


@pytest.fixture(scope="module")
def env() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def forked(env: Mapping[str, str]) -> Iterator[ForkedInterpreter]:
    forked = ForkedInterpreter(env)
    yield forked
    forked.close()


def both(
    forked: ForkedInterpreter, arguments: list[str], *, timeout: float = 60, **options: Any
) -> tuple[subprocess.CompletedProcess[bytes], subprocess.CompletedProcess[bytes]]:
    """What became of it, forked and as a new interpreter."""
    new = subprocess.run(
        [sys.executable, *arguments], capture_output=True, check=False, timeout=timeout, **options
    )
    new.args = arguments
    return forked.run(arguments, timeout=timeout, **options), new


def test_it_knows_nothing_of_where_it_comes_from(
    forked: ForkedInterpreter, env: Mapping[str, str], tmp_path: Path
) -> None:
    env = {**env, "TZ": "Asia/Kolkata", "GREETING": "grüße"}
    del env["HOME"]
    arguments = ["-c", textwrap.dedent(SELF), "a b", "ü"]
    one, other = both(forked, arguments, cwd=tmp_path, env=env, input="é\r\n".encode())
    assert (one.returncode, one.stderr) == (0, b"")
    assert json.loads(one.stdout) == json.loads(other.stdout)


@pytest.mark.parametrize("how", HOW_PROGRAMS_END)
def test_it_ends_as_a_new_one_does(
    forked: ForkedInterpreter, env: Mapping[str, str], tmp_path: Path, how: str
) -> None:
    program = ["-c", textwrap.dedent(HOW_PROGRAMS_END[how])]
    one, other = both(forked, program, cwd=tmp_path, env=env, input=b"x" * 200_000)
    assert vars(one) == vars(other)


def test_the_command_is_the_same(
    forked: ForkedInterpreter, env: Mapping[str, str], tmp_path: Path
) -> None:
    env = {**env, "COFIRE_STORE": "memory.db", "COFIRE_EMBEDDER": "hashing:16"}
    for arguments in (["--version"], ["recall"], ["stats"], ["import", "-", "--format", "none"]):
        one, other = both(forked, ["-m", "cofire", *arguments], cwd=tmp_path, env=env, input=b"[]")
        assert vars(one) == vars(other)
    remember = ["-m", "cofire", "remember", "one", "--json"]
    ids = {
        json.loads(done.stdout)["ids"][0]
        for _ in range(2)
        for done in both(forked, remember, cwd=tmp_path, env=env)
    }
    assert len(ids) == 4


def test_nothing_was_done_before_it(
    forked: ForkedInterpreter, env: Mapping[str, str], tmp_path: Path
) -> None:
    """No random number is another process's; what functions cached, they cache on import."""
    code = """
        import functools, importlib, json, random, sys, tempfile
        for name in sys.argv[1:]:
            importlib.import_module(name)
        imported = [name for name in sys.modules if name.startswith("cofire.")]
        cached = {f"{module}.{name}": value.cache_info().currsize
                  for module in imported for name, value in vars(sys.modules[module]).items()
                  if isinstance(value, functools._lru_cache_wrapper)}
        print(json.dumps([random.random(), imported, cached, tempfile.tempdir]))
    """
    arguments = ["-c", textwrap.dedent(code)]
    first = forked.run(arguments, cwd=tmp_path, env=env, timeout=60)
    number, imported, *_ = json.loads(first.stdout)
    assert len(imported) > 100
    one, other = both(forked, [*arguments, *imported], cwd=tmp_path, env=env)
    again, *told = json.loads(one.stdout)
    assert again != number
    assert told == json.loads(other.stdout)[1:]


def test_several_at_once(forked: ForkedInterpreter, env: Mapping[str, str], tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1] * 100_000, sys.stdin.read()); sys.exit(int(sys.argv[1]))"

    def run(number: int) -> subprocess.CompletedProcess[bytes]:
        given = str(number).encode() * 100_000
        arguments = ["-c", code, str(number)]
        return forked.run(arguments, cwd=tmp_path, env=env, input=given, timeout=60)

    with ThreadPoolExecutor(4) as pool:
        for number, done in enumerate(pool.map(run, range(8))):
            text = str(number) * 100_000
            assert (done.returncode, done.stdout.decode()) == (number, f"{text} {text}\n")


def test_standard_error_may_go_where_standard_output_goes(
    forked: ForkedInterpreter, env: Mapping[str, str], tmp_path: Path
) -> None:
    code = (
        "import sys\nfor n in range(3): print(n, file=(sys.stdout, sys.stderr)[n % 2], flush=True)"
    )
    done = forked.run(["-c", code], cwd=tmp_path, env=env, timeout=60, merged=True)
    assert (done.stdout, done.stderr) == (b"0\n1\n2\n", b"")


def test_it_is_killed_in_time(
    forked: ForkedInterpreter, env: Mapping[str, str], tmp_path: Path
) -> None:
    code = (
        "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(60)"
    )
    with pytest.raises(subprocess.TimeoutExpired):
        forked.run(["-c", code], cwd=tmp_path, env=env, timeout=1)
    pid = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until
        time.sleep(0.01)


TALKER = """
    import signal, sys, time
    print(sys.orig_argv[1:3], sys.warnoptions, flush=True)
    print("a complaint", file=sys.stderr, flush=True)
    for line in sys.stdin:
        print(line.strip().upper(), flush=True)
        if line == "rest\\n":
            print("and the rest", flush=True)
    time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("kind", ["forked", "new"])
def test_one_may_talk_with_it(env: Mapping[str, str], tmp_path: Path, kind: str) -> None:
    options, code = ["-W", "error"], textwrap.dedent(TALKER)
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (tmp_path / "errors").open("wb") as errors, contextlib.ExitStack() as ends:
        if kind == "forked":
            interpreter = ForkedInterpreter(env, options)
            ends.callback(interpreter.close)
            start: Any = partial(interpreter.start, cwd=tmp_path, env=env, stderr=errors, **streams)
            processes: list[Process] = [start(["-c", code, seconds]) for seconds in ("0", "60")]
        else:
            new: Any = partial(new_python, cwd=tmp_path, env=env, stderr=errors, **streams)
            processes = [new([*options, "-c", code, seconds]) for seconds in ("0", "60")]
        for process in processes:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "['-W', 'error'] ['error']\n"
            process.stdin.write("one\n")
            process.stdin.flush()
            assert process.stdout.readline() == "ONE\n"
            assert process.poll() is None
        one, other = processes
        assert one.stdin is not None
        one.stdin.write("rest\n")
        assert one.communicate(timeout=60) == ("REST\nand the rest\n", None)
        assert (one.returncode, one.poll(), one.wait()) == (0, 0, 0)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.01)
        other.terminate()
        assert other.wait(60) == -signal.SIGTERM
        other.kill()  # nothing happens to who has ended
        assert other.communicate(timeout=60) == ("", None)
    assert (tmp_path / "errors").read_text() == "a complaint\n" * 2


def test_what_is_read_at_the_start_needs_a_new_interpreter(
    forked: ForkedInterpreter, env: Mapping[str, str]
) -> None:
    assert forked.suits({**env, "COFIRE_STORE": "x", "TZ": "Asia/Tokyo", "FORCE_COLOR": "1"})
    for name in ("PYTHONIOENCODING", "LC_ALL", "PYTHONPATH", "OMP_NUM_THREADS"):
        assert not forked.suits({**env, name: "other"})

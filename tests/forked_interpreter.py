"""Python processes that need not import Cofire again: forked from one that has.

Starting an interpreter and importing what a command imports takes a second of processor time, and
the acceptance tests run a thousand commands. `ForkedInterpreter` keeps one process that has
imported it all and has done nothing else: it has opened no store and no model, has one thread, and
its caches are empty. For every command it forks. What comes of that is a real process with a
memory, an exit and an exit code of its own, which runs the real `python -m cofire …` to the end of
the interpreter (`atexit`, threads, the last flush). Its folder, environment, arguments, time zone
and standard streams are those it was given; the stream objects are the ones that the interpreter
made for pipes when it started.

Not as in a new interpreter: the modules are there already (a test of imports or of start-up time
shows nothing here), and the seed of `hash` is that of the process it comes from (two commands here
do not show that a result is the same for every seed; two runs of the tests do). What an interpreter
or a library reads when it starts, `READ_AT_START`, cannot be changed later: `run_python` starts a
new interpreter where it differs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

AVAILABLE = sys.platform == "linux"
"""Elsewhere system libraries may have threads that a fork leaves behind, or there is no fork."""
READ_AT_START = (
    "PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "OMP_", "OPENBLAS_", "NPY_", "NUMPY_", "PYDANTIC_",
    "PSYCOPG_", "TYPER_",
)  # fmt: skip
"""How the names of variables begin that are read once: by Python, the C library, or on import."""
_HEAVY = (
    "alembic.command", "cryptography.hazmat.primitives.ciphers.aead", "psycopg_pool", "rich.text",
    "sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.dialects.sqlite", "tokenizers",
)  # fmt: skip
"""What Cofire's modules import when they are used.

Left out is what looks at its environment, or begins to work, when it is imported: matplotlib,
ONNX Runtime, openai, structlog."""
_LEFT_OUT = ("cofire.__main__", "cofire.plotting", "cofire.store.migrations")


class ForkedInterpreter:
    """Starts Python programs as children of a process that has imported Cofire.

    `env` is the environment it starts in. Raises RuntimeError where it could not start.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._at_start = _read_at_start(env)
        self._sending = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            # Three pipes, because the children's stream objects are made for these.
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env={**self._at_start, "PATH": env.get("PATH", os.defpath)},
            )

    def suits(self, env: Mapping[str, str]) -> bool:
        """Whether a process with this environment can come from here."""
        return _read_at_start(env) == self._at_start

    def run(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        input: bytes = b"",
        timeout: float,
        merged: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        """What `subprocess.run` gives for Python with these arguments (`-m cofire …` or
        `-c CODE …`) and pipes; `merged` sends standard error where standard output goes. Several
        threads may call it at once.

        Raises subprocess.TimeoutExpired after `timeout` seconds, once the process was killed.
        """
        assert self.suits(env)
        request = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}
        with contextlib.ExitStack() as open_ends:
            streams = [_pipe(open_ends, ours_writes=at == 0) for at in range(3)]
            status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            open_ends.enter_context(status)
            with theirs:
                ends = [streams[at][1] for at in (0, 1, 1 if merged else 2)]
                self._send(request, [*ends, theirs.fileno()])
            for _, end in streams:
                os.close(end)
            pid = int(self._told(status))
            deadline = time.monotonic() + timeout
            try:
                out, err = _exchange([ours for ours, _ in streams], input, deadline)
                status.settimeout(max(deadline - time.monotonic(), 0.001))
                code = int(self._told(status))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(arguments), timeout) from None
        return subprocess.CompletedProcess(list(arguments), code, out, err)

    def _send(self, request: Mapping[str, Any], fds: Sequence[int]) -> None:
        body = json.dumps(request).encode()
        with self._sending:
            try:
                socket.send_fds(self._socket, [len(body).to_bytes(4)], fds)
                self._socket.sendall(body)
            except BrokenPipeError:
                raise RuntimeError(self._complaint()) from None

    def _told(self, status: socket.socket) -> bytes:
        """The next word about a process."""
        word = status.recv(64)
        if not word:
            raise RuntimeError(self._complaint())
        return word

    def _complaint(self) -> str:
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        return f"no process was forked: {(self._process.stderr.read() or b'').decode()}"

    def close(self) -> None:
        """End the process from which others come."""
        self._socket.close()
        self._process.communicate()


_asked: Counter[frozenset[tuple[str, str]]] = Counter()
_shared: dict[frozenset[tuple[str, str]], ForkedInterpreter] = {}
_starting = threading.Lock()


def run_python(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    input: bytes = b"",
    timeout: float,
    merged: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """What `subprocess.run` gives for Python with these arguments (`-m cofire …` or `-c CODE …`).

    The first two processes that agree in what is read at the start are new interpreters, those
    after them come from one that this session of the tests shares.
    """
    if shared := _shared_for(env):
        return shared.run(arguments, cwd=cwd, env=env, input=input, timeout=timeout, merged=merged)
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=env, input=input, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE, check=False, timeout=timeout,
    )  # fmt: skip


def _shared_for(env: Mapping[str, str]) -> ForkedInterpreter | None:
    kind = frozenset(_read_at_start(env).items())
    with _starting:
        _asked[kind] += 1
        if AVAILABLE and _asked[kind] > 2 and kind not in _shared:
            _shared[kind] = ForkedInterpreter(env)
        return _shared.get(kind)


def close_shared() -> None:
    """End what `run_python` started."""
    while _shared:
        _shared.popitem()[1].close()


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START)}


def _pipe(open_ends: contextlib.ExitStack, *, ours_writes: bool) -> tuple[Any, int]:
    """Our end, as a file closed with `open_ends`, and the descriptor of theirs."""
    reading, writing = os.pipe()
    ours, theirs = (writing, reading) if ours_writes else (reading, writing)
    file = open_ends.enter_context(os.fdopen(ours, "wb" if ours_writes else "rb", 0))
    return file, theirs


def _exchange(streams: Sequence[Any], data: bytes, end: float) -> tuple[bytes, bytes]:
    """Send everything, receive everything. Raises TimeoutError at `end`, a monotonic time."""
    stdin, stdout, stderr = streams
    received: dict[Any, list[bytes]] = {stdout: [], stderr: []}
    left = memoryview(data)
    os.set_blocking(stdin.fileno(), False)
    with selectors.DefaultSelector() as ready:
        for file in received:
            ready.register(file, selectors.EVENT_READ)
        ready.register(stdin, selectors.EVENT_WRITE)
        while ready.get_map():
            seconds = end - time.monotonic()
            if seconds <= 0:
                raise TimeoutError
            for key, _ in ready.select(seconds):
                if key.fileobj is stdin:
                    left = _write(stdin, left)
                    done = not left
                else:
                    piece = os.read(key.fd, 1 << 16)
                    received[key.fileobj].append(piece)
                    done = not piece
                if done:
                    ready.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
    return b"".join(received[stdout]), b"".join(received[stderr])


def _write(stdin: Any, left: memoryview) -> memoryview:
    """What is left to write; nothing if nobody reads it."""
    try:
        return left[os.write(stdin.fileno(), left) :] if left else left
    except BrokenPipeError:
        return left[:0]


# The process from which others come


def _prepare() -> None:
    """Import what commands import, and nothing that acts on being imported."""
    import cofire

    found = (one.name for one in pkgutil.walk_packages(cofire.__path__, "cofire."))
    for name in (*found, *_HEAVY):
        if not name.startswith(_LEFT_OUT):
            with contextlib.suppress(ImportError):  # for the command that needs it to complain of
                importlib.import_module(name)
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads > 1:
        raise RuntimeError(f"{threads} threads: a child would have one of them only")
    gc.collect()
    gc.freeze()  # a collection of a child's would copy every page of these objects


def _serve(control: socket.socket) -> list[str] | None:
    """Fork for every request. Returns in a child the arguments it is to run with; None at the
    end."""
    fds: list[int] = []
    while head := _receive(control, 4, fds):
        request = json.loads(_receive(control, int.from_bytes(head), []))
        if os.fork() == 0:
            return _keep(control, request, fds)
        while fds:
            os.close(fds.pop())
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
    return None


def _receive(control: socket.socket, size: int, fds: list[int]) -> bytes:
    """Exactly `size` bytes, or none at the end; descriptors that come with them go to `fds`."""
    data = b""
    while len(data) < size:
        piece, got, _, _ = socket.recv_fds(control, size - len(data), 4)
        fds.extend(got)
        if not piece:
            return b""
        data += piece
    return data


def _keep(control: socket.socket, request: Mapping[str, Any], fds: Sequence[int]) -> list[str]:
    """Fork the process that was asked for, and tell who it is and how it ended. Returns in it."""
    pid = os.fork()
    if pid == 0:
        return _become(control, request, fds)
    for fd in fds[:3]:
        os.close(fd)
    for fd in range(3):
        os.close(fd)
    with contextlib.suppress(OSError):  # nobody may want to know any more
        os.write(fds[3], b"%d" % pid)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(fds[3], b"%d" % code)
    os._exit(0)


def _become(control: socket.socket, request: Mapping[str, Any], fds: Sequence[int]) -> list[str]:
    """Take the place, the streams and the environment of the process that was asked for."""
    control.close()
    for standard, fd in enumerate(fds[:3]):
        os.dup2(fd, standard)
    for fd in fds:
        os.close(fd)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # `random` sees to itself
    arguments: list[str] = request["arguments"]
    sys.orig_argv = [sys.executable, *arguments]
    sys.path[0] = "" if arguments[0] == "-c" else request["cwd"]
    return arguments


def _run(arguments: Sequence[str]) -> None:
    """What the interpreter does with its arguments."""
    option, what, *rest = arguments
    if option == "-c":
        sys.argv = ["-c", *rest]
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
    else:
        assert option == "-m", option
        sys.argv = ["-m", *rest]
        runpy.run_module(what, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _prepare()
    if asked_for := _serve(socket.socket(fileno=int(sys.argv[1]))):
        _run(asked_for)

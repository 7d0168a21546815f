"""Python processes that need not import Cofire again: forked from one that has.

Starting an interpreter and importing what a command imports takes a second of processor time, and
the tests run more than a thousand. `ForkedInterpreter` keeps one process that has
imported it all and has done nothing else: it has opened no store and no model, has one thread, and
its caches are empty. For every command it forks. What comes of that is a real process with a
memory, an exit and an exit code of its own, which runs the real `python -m cofire …` to the end of
the interpreter (`atexit`, threads, the last flush). Its folder, environment, arguments, time zone
and standard streams are those it was given; the stream objects are the ones that the interpreter
made for pipes when it started.

Not as in a new interpreter: the modules are there already (a test of imports or of start-up time
shows nothing here), and the seed of `hash` is that of the process it comes from (two commands here
do not show that a result is the same for every seed; two runs of the tests do). What an interpreter
or a library reads when it starts, `READ_AT_START` and its own options, cannot be changed later:
`run_python` and `start_python` start a new interpreter where it differs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
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
from typing import IO, Any, Self

AVAILABLE = sys.platform == "linux"
"""Elsewhere system libraries may have threads that a fork leaves behind, or there is no fork."""
READ_AT_START = (
    "PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "OMP_", "OPENBLAS_", "NPY_", "NUMPY_", "PYDANTIC_",
    "PSYCOPG_", "TYPER_",
)  # fmt: skip
"""How the names of variables begin that are read once: by Python, the C library, or on import."""
_PARENT = Path(__file__).with_name("interpreter_to_fork.py")


class ForkedProcess:
    """A process that was forked, to be used as one of `subprocess.Popen`.

    `communicate` gives what was not read yet: it knows what the streams have in their buffers.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        pid: int,
        status: socket.socket,
        streams: Sequence[IO[Any] | None],
    ) -> None:
        self.args = list(arguments)
        self.pid = pid
        self.stdin, self.stdout, self.stderr = streams
        self.returncode: int | None = None
        self._status = status
        self._asking = threading.Lock()

    def poll(self) -> int | None:
        """The exit code once it has ended."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        with self._asking:
            if self.returncode is None:
                self._status.settimeout(timeout)
                with contextlib.suppress(BlockingIOError, TimeoutError):
                    word = self._status.recv(64)
                    if not word:
                        raise RuntimeError("nobody knows how the process ended")
                    self.returncode = int(word)
                    self._status.close()
            return self.returncode

    def send_signal(self, signal_: int) -> None:
        """Send it unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal_)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, whatever it does."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Close its input, and read the rest of its output to the end; None of a stream that is
        no pipe. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if self.stdin is not None and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        read: dict[int, Any] = {}
        readers = [
            threading.Thread(target=lambda at=at, file=file: read.update({at: file.read()}))
            for at, file in enumerate((self.stdout, self.stderr))
            if file is not None and not file.closed
        ]
        for reader in readers:
            reader.daemon = True
            reader.start()
        for reader in readers:
            reader.join(_left(deadline))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        self.wait(_left(deadline))
        self._close()
        return read.get(0), read.get(1)

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self.wait()


Process = subprocess.Popen[Any] | ForkedProcess


class ForkedInterpreter:
    """Starts Python programs as children of a process that has imported Cofire.

    `env` is the environment it starts in, `options` are the interpreter's (`-W error`, say). Raises
    RuntimeError where it could not start.
    """

    def __init__(self, env: Mapping[str, str], options: Sequence[str] = ()) -> None:
        self._at_start = _read_at_start(env)
        self._options = list(options)
        self._sending = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            # Three pipes, because the children's stream objects are made for these.
            self._process = subprocess.Popen(
                [sys.executable, *options, str(_PARENT), str(theirs.fileno())],
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
        with contextlib.ExitStack() as open_ends:
            streams = [_pipe(open_ends, ours_writes=at == 0) for at in range(3)]
            ends = [streams[at][1] for at in (0, 1, 1 if merged else 2)]
            pid, status = self._fork(arguments, cwd, env, ends)
            open_ends.enter_context(status)
            for _, end in streams:
                os.close(end)
            deadline = time.monotonic() + timeout
            try:
                out, err = _exchange([ours for ours, _ in streams], input, deadline)
                status.settimeout(max(deadline - time.monotonic(), 0.001))
                code = int(self._told(status))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(arguments), timeout) from None
        return subprocess.CompletedProcess(list(arguments), code, out, err)

    def start(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int | IO[Any] | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        text: bool = False,
        bufsize: int = -1,
    ) -> ForkedProcess:
        """As `subprocess.Popen` does, with what it knows of its parameters."""
        assert self.suits(env)
        ours: list[IO[Any] | None] = [None, None, None]
        ends: list[int] = []
        with contextlib.ExitStack() as given, contextlib.ExitStack() as kept:
            for at, wanted in enumerate((stdin, stdout, stderr)):
                if wanted == subprocess.PIPE:
                    ours[at], end = _pipe(kept, ours_writes=at == 0, bufsize=bufsize, text=text)
                    given.callback(os.close, end)
                elif wanted == subprocess.DEVNULL:
                    end = os.open(os.devnull, os.O_RDWR)
                    given.callback(os.close, end)
                elif wanted == subprocess.STDOUT:
                    end = ends[1]
                elif isinstance(wanted, int):
                    end = wanted
                else:
                    end = at if wanted is None else wanted.fileno()
                ends.append(end)
            pid, status = self._fork(arguments, cwd, env, ends)
            kept.pop_all()
        return ForkedProcess(arguments, pid, status, ours)

    def _fork(
        self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], ends: Sequence[int]
    ) -> tuple[int, socket.socket]:
        """The id of a process with these standard streams, and what tells its exit code."""
        request = {
            "options": self._options, "arguments": list(arguments), "cwd": str(cwd), "env": {**env}
        }  # fmt: skip
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._send(request, [*ends, theirs.fileno()])
            return int(self._told(status)), status
        except BaseException:
            status.close()
            raise

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


_asked: Counter[tuple[object, ...]] = Counter()
_shared: dict[tuple[object, ...], ForkedInterpreter] = {}
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


def start_python(
    arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, **options: Any
) -> Process:
    """What `subprocess.Popen` gives for Python with these arguments; before `-m` or `-c` there may
    be options of the interpreter that have a value (`-W error`). `options` are those of
    `ForkedInterpreter.start`. New interpreters and others as with `run_python`.

    Not for tests of imports, and not for what starts processes with `multiprocessing`.
    """
    own = next(at for at, one in enumerate(arguments) if one in {"-m", "-c"})
    if shared := _shared_for(env, arguments[:own]):
        return shared.start(arguments[own:], cwd=cwd or Path.cwd(), env=env, **options)
    return new_python(arguments, cwd=cwd, env=env, **options)


def new_python(
    arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, **options: Any
) -> Process:
    """As `start_python`, always a new interpreter."""
    return subprocess.Popen([sys.executable, *arguments], cwd=cwd, env=env, **options)


def _shared_for(env: Mapping[str, str], options: Sequence[str] = ()) -> ForkedInterpreter | None:
    kind = (*options, *sorted(_read_at_start(env).items()))
    with _starting:
        _asked[kind] += 1
        if AVAILABLE and _asked[kind] > 2 and kind not in _shared:
            _shared[kind] = ForkedInterpreter(env, options)
        return _shared.get(kind)


def close_shared() -> None:
    """End what `run_python` and `start_python` share."""
    while _shared:
        _shared.popitem()[1].close()


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START)}


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.001)


def _pipe(
    open_ends: contextlib.ExitStack, *, ours_writes: bool, bufsize: int = 0, text: bool = False
) -> tuple[Any, int]:
    """Our end, as a file closed with `open_ends`, and the descriptor of theirs."""
    reading, writing = os.pipe()
    ours, theirs = (writing, reading) if ours_writes else (reading, writing)
    file: IO[Any] = os.fdopen(ours, "wb" if ours_writes else "rb", bufsize)
    if text:
        file = io.TextIOWrapper(file)
    open_ends.enter_context(file)
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

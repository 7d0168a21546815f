"""The process from which those of `forked_interpreter` come: a program of its own.

Its argument is the descriptor of a socket, on which it is asked for them."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_HEAVY = (
    "alembic.command", "cryptography.hazmat.primitives.ciphers.aead", "psycopg_pool", "rich.text",
    "sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.dialects.sqlite", "tokenizers",
)  # fmt: skip
"""What Cofire's modules import when they are used.

Left out is what looks at its environment, or begins to work, when it is imported: matplotlib,
ONNX Runtime, openai, structlog."""
_LEFT_OUT = ("cofire.__main__", "cofire.plotting", "cofire.store.migrations")


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
    sys.orig_argv = [sys.executable, *request["options"], *arguments]
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

"""Servers of language models that run on this machine, one for each model in a process.

The server is a process of its own (`local_server`): a fault in native code ends no memory, and what
it works on holds up no thread of this process. It ends with its last holder, or with this process.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from cofire.errors import ConfigurationError
from cofire.models.forking import renew_after_fork

START_SECONDS = 600.0
"""How long a model may take to load."""


@dataclass(frozen=True, slots=True)
class Served:
    """What is served: a GGUF file, with room for `context` tokens, on `threads` threads."""

    path: Path
    context: int
    threads: int


@dataclass(slots=True, eq=False)
class LocalServer:
    """A server that runs. `address` ends with /v1, `key` is wanted by it; who holds `turn` may ask
    without waiting for others, because it answers one request after another."""

    served: Served
    process: subprocess.Popen[str]
    address: str
    key: str
    holders: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


class LocalServers:
    """The servers of this process. A forked child starts with none."""

    def __init__(self) -> None:
        self._running: dict[Served, LocalServer] = {}
        self._lost: list[LocalServer] = []
        self._lock = threading.RLock()  # what is collected gives its server back at any moment
        renew_after_fork(self)

    def renew_after_fork(self) -> None:
        self._lock = threading.RLock()
        self._lost += self._running.values()
        for server in self._running.values():
            server.process.returncode = 0  # it is the parent's to wait for, and to end
            if server.process.stdin is not None:
                server.process.stdin.close()
        self._running = {}

    def take(self, served: Served) -> LocalServer:
        """The server for `served`, started if there is none. Raises ConfigurationError where it
        does not start."""
        with self._lock:
            server = self._running.get(served)
            if server is None or not server.running:
                server = self._running[served] = _start(served)
            server.holders += 1
            return server

    def give_back(self, server: LocalServer) -> None:
        """One holder needs it no longer."""
        with self._lock:
            server.holders -= 1
            if server.holders or server in self._lost:
                return
            if self._running.get(server.served) is server:
                del self._running[server.served]
            server.stop()


SERVERS = LocalServers()


def _start(served: Served) -> LocalServer:
    key = secrets.token_urlsafe(24)
    wanted = {"path": str(served.path), "context": served.context, "threads": served.threads}
    script = Path(__file__).with_name("local_server.py")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as told:
        process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-P", str(script)],  # -P: nothing beside the script is a module
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
            start_new_session=os.name == "posix",  # an interrupt is for this process to handle
        )
        address = _address(process, json.dumps({**wanted, "key": key}))
        if address:
            return LocalServer(served, process, f"{address}/v1", key)
        process.kill()
        process.communicate()
        told.seek(0)
        last = (told.read().strip().splitlines() or ["it said nothing"])[-1]
    raise ConfigurationError(
        f"{served.path} cannot be served as a language model ({last[:300]}); use a GGUF file of a "
        "chat model that the installed xllamacpp knows, and that the memory has room for"
    )


def _address(process: subprocess.Popen[str], wanted: str) -> str:
    """What the server tells, or "" where it ends or is late."""
    if process.stdin is None or process.stdout is None:
        return ""
    late = threading.Timer(START_SECONDS, process.kill)
    late.start()
    try:
        process.stdin.write(f"{wanted}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()
    except BrokenPipeError:
        return ""
    finally:
        late.cancel()

"""A folder and a process that works in it, neither of which outlives whoever made them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ROOM = 2 * 1024**3
"""Bytes that must be free in memory before a folder is put there."""

# Reads the process's id at each start and an empty line at each end. Its input ends when whoever
# writes it does, however that comes: kill -9 too. A process that heeds no signal for ten seconds is
# killed; so is one that nobody reaps, which does no harm.
_WATCHER = """
    running=
    while read -r line; do running=$line; done
    if [ -n "$running" ]; then
        kill -s "$2" "$running"
        for attempt in $(seq 500); do
            kill -0 "$running" || { running=; break; }
            sleep 0.02
        done
        if [ -n "$running" ]; then kill -s KILL "$running"; fi
    fi
    rm -rf -- "$1"
"""


def in_memory() -> Path:
    """A folder whose files are in memory, if this machine has room for them: a database of 900
    files is copied there in 40 ms, on a busy disk in a second. The folder for temporary files
    otherwise."""
    memory = Path("/dev") / "shm"
    if memory.is_dir() and shutil.disk_usage(memory).free > _ROOM:
        return memory
    return Path(tempfile.gettempdir())


def unprivileged() -> dict[str, Any]:
    """Options of `subprocess` that run a program as nobody if this process is root's: PostgreSQL
    and pgbouncer refuse to run as root."""
    if os.geteuid() != 0:
        return {}
    import pwd  # not everywhere, and tests that need no server import this module

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class Watched:
    """A new folder under `parent` (`in_memory()` unless said), and at most one process at a time.

    A shell of its own watches over both. When `close` is called, or this Python process ends in
    whatever way, it sends `ending` (a signal's name without SIG) to the process if that still runs,
    waits for it and removes the folder.
    """

    def __init__(self, parent: Path | None = None, *, ending: str) -> None:
        # A short name: the path of a Unix socket has room for about 100 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="cofire-", dir=parent or in_memory()))
        identity = unprivileged()
        if identity:
            os.chown(self.folder, identity["user"], identity["group"])
        self._ending = signal.Signals[f"SIG{ending}"]
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHER, "watcher", str(self.folder), ending],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for whoever made this
        )

    @property
    def pid(self) -> int | None:
        """The running process's id; None if it has ended or none was begun."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    def begin(self, command: Sequence[str], *, log: Path) -> None:
        """Start the process in the folder; what it prints is added to `log`.

        Raises: RuntimeError if one runs already.
        """
        if self.pid is not None:
            raise RuntimeError(f"{self._process} still runs in {self.folder}")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
                **unprivileged(),
            )
        self._tell(str(self._process.pid))

    def end(self, how: signal.Signals, *, within: float = 60.0) -> None:
        """Send `how` to the process, if one runs, and wait for its end; kill it after `within`
        seconds.

        Raises: subprocess.TimeoutExpired if it had to be killed.
        """
        if self._process is None:
            return
        process, self._process = self._process, None
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(within)
        finally:
            process.kill()
            process.wait()
            self._tell("")

    def close(self) -> None:
        """End the process and remove the folder."""
        try:
            self.end(self._ending)
        finally:
            assert self._watcher.stdin is not None
            self._watcher.stdin.close()
            self._watcher.wait()

    def _tell(self, line: str) -> None:
        assert self._watcher.stdin is not None
        self._watcher.stdin.write(f"{line}\n".encode())
        self._watcher.stdin.flush()

"""`cofire serve` as a process of its own, which may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forked_interpreter import Process, new_python, start_python

SOURCES = Path(__file__).resolve().parents[1] / "src"


class ServerProcess:
    """A server that answers at `url`. `log` are the lines that it wrote on standard error."""

    def __init__(self, process: Process, url: str, log: list[str]) -> None:
        self.process = process
        self.url = url
        self.log = log

    @property
    def processor(self) -> float:
        """Seconds of processor time so far. Linux only; to 0.01 s."""
        fields = self._stat().split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident(self) -> int:
        """Bytes of memory in use. Linux only."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def _stat(self) -> str:
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2]

    def kill(self) -> None:
        """As `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 60.0) -> int:
        """As `kill` does: in order. The exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


@contextmanager
def served(
    store: str | Path,
    *options: str,
    settings: Mapping[str, str] | None = None,
    seconds: float = 60.0,
    forked: bool = False,
) -> Iterator[ServerProcess]:
    """`cofire serve` of a store, at a port that was free; killed afterwards if it still runs.
    `settings` are environment variables without COFIRE_, in small letters. `forked`: see
    `forked_interpreter`; its memory is no measure then."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("COFIRE_")
    } | {
        "PYTHONPATH": str(SOURCES),
        "OMP_NUM_THREADS": "1",
        "COFIRE_CONFIG": os.devnull,
        "COFIRE_STORE": str(store),
        "COFIRE_EMBEDDER": "hashing:64",
        "COFIRE_RATE_LIMIT": "0",
    }
    environment |= {f"COFIRE_{name.upper()}": value for name, value in (settings or {}).items()}
    arguments = ["-m", "cofire", "serve", "--port", "0", *options]
    streams: dict[str, Any] = {
        "stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True
    }  # fmt: skip
    start = start_python if forked else new_python
    process = start(arguments, env=environment, **streams)
    log: list[str] = []
    listening = threading.Event()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            log.append(line)
            if '"listening"' in line:
                listening.set()
        listening.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert listening.wait(seconds), "the server did not start in time"
        told = [line for line in log if '"listening"' in line]
        assert told, "".join(log)
        yield ServerProcess(process, json.loads(told[0])["url"], log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join()
        assert process.stderr is not None
        process.stderr.close()

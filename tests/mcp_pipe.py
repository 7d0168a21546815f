"""A process that serves MCP over its standard streams, spoken to line by line."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from forked_interpreter import new_python, start_python

PATIENCE = 60.0
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
PREAMBLE = "import sys\nfrom cofire.server.mcp.wire import claim\nwire = claim()\n"
SERVE = "from cofire.server.mcp.local import LocalPlan, serve_local\n"


class Pipe:
    """A server made by `script`, Python that ends with serving over `wire`: forked (see
    `forked_interpreter`), or in a `new` interpreter."""

    def __init__(self, script: str, folder: Path, *, new: bool = False, **env: str) -> None:
        self.errors = folder / "errors.txt"
        with self.errors.open("wb") as errors:
            self.process = (new_python if new else start_python)(
                ["-c", PREAMBLE + SERVE + script],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0,
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src"),
                    "OMP_NUM_THREADS": "1",
                    "COFIRE_STORE": str(folder / "memory.db"),
                    "COFIRE_CONFIG": str(folder / "config.toml"),
                    "COFIRE_EMBEDDER": "hashing:64",
                    **env,
                },
            )  # fmt: skip
        self._deaf = False
        self.closed = threading.Event()
        self.lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        """One line."""
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")

    def ask(self, id: int, method: str, params: Mapping[str, Any] | None = None) -> None:
        """A request, whose answer comes later."""
        content = {"jsonrpc": "2.0", "id": id, "method": method}
        self.send(content if params is None else {**content, "params": params})

    def call(self, id: int, name: str, **arguments: Any) -> None:
        """A call of a tool."""
        self.ask(id, "tools/call", {"name": name, "arguments": arguments})

    def answer(self, patience: float = PATIENCE) -> Any:
        """The next line, which has to be a message. Raises queue.Empty."""
        message = json.loads(self.lines.get(timeout=patience).decode("utf-8"))
        assert message["jsonrpc"] == "2.0"
        return message

    def told(self, id: int, name: str, **arguments: Any) -> Any:
        """What a tool answers."""
        self.call(id, name, **arguments)
        answer = self.answer()
        assert answer["id"] == id
        return answer["result"].get("structuredContent")

    def initialize(self) -> Any:
        """Shake hands."""
        self.ask(0, "initialize", INITIALIZE)
        answer = self.answer()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def end(self) -> int:
        """Close its input, and wait for it to end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    @property
    def complaints(self) -> str:
        """What came on standard error."""
        return self.errors.read_text(encoding="utf-8")

    def deaf(self) -> None:
        """Read nothing more, from the next line on, and close that end (`closed`)."""
        self._deaf = True

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
            if self._deaf:
                self.process.stdout.close()
                self.closed.set()
                return

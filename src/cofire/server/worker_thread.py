"""A worker beside a server: a thread that looks for what is due, and has it done."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from cofire.errors import CofireError
from cofire.logs import get_logger
from cofire.memories import Memories
from cofire.server.worker import LONGEST, SHORTEST, SpaceRun, Unmetered, Worker, WorkerMeter
from cofire.server.worker_pace import Pace
from cofire.store.serving_records import Queue
from cofire.types import SpaceRef, to_micros

if TYPE_CHECKING:
    from cofire.settings import Settings

_log = get_logger(__name__)


class _ChildDiedError(CofireError):
    """The process that did the work ended with a failure."""


class WorkerThread:
    """Consolidates what is due in a store that this process serves, for as long as it does.

    The work itself is done in a child process of lower priority, which is there only while
    something is due: in this process it would hold up whoever waits for an answer (figures in
    docs/how-to/run-the-worker.md). The child opens the store by `settings`, so a memory with an
    embedder object or a redaction hook of its own needs `apart=False`, which works in the thread.
    `meter` hears what is done, in either case. Start it after a fork, in one process.
    """

    def __init__(
        self,
        memories: Memories,
        settings: Settings,
        *,
        vectors: bool = True,
        apart: bool = True,
        meter: WorkerMeter | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._memories = memories
        self._settings = settings
        self._vectors = vectors
        self._apart = apart and bool(sys.executable)
        self._meter: WorkerMeter = meter or Unmetered()
        self._pace = pace or Pace.of(settings)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._worker: Worker | None = None
        self._thread = threading.Thread(target=self._watch, name="cofire-worker", daemon=True)

    def start(self) -> None:
        """Begin. To be called once."""
        self._thread.start()

    def stop(self) -> None:
        """End after the part of a step that is being worked on, or when the settings' time for
        that is over. Blocks until then; before the memories are closed."""
        with self._lock:
            self._stopping.set()
            child, worker = self._child, self._worker
        if child is not None:
            child.terminate()
        if worker is not None:
            worker.stop()
        if not self._thread.is_alive():
            return
        self._thread.join(self._settings.worker_stop_seconds + 3.0)
        if child is not None and child.poll() is None:
            child.kill()  # its claim expires
            self._thread.join(3.0)

    def _watch(self) -> None:
        wait = SHORTEST
        while not self._stopping.is_set():
            try:
                if self._due():
                    self._work()
            except (CofireError, OSError) as exc:
                _log.warning("the worker could not work; waiting", reason=str(exc), seconds=wait)
                self._stopping.wait(self._pace.jittered(wait))
                wait = min(2 * wait, LONGEST)
                continue
            wait = SHORTEST
            self._stopping.wait(self._pace.jittered(self._pace.poll))

    def _due(self) -> bool:
        return bool(
            self._memories.store.due_spaces(
                _now(), every=self._pace.every_us, idle=self._pace.idle_us, most=1
            )
        )

    def _work(self) -> None:
        """Does what is due. Raises CofireError, OSError."""
        if self._apart:
            self._work_apart()
            return
        with self._lock:
            if self._stopping.is_set():
                return
            self._worker = Worker(self._memories, meter=self._meter, pace=self._pace)
        self._worker.run(once=True)

    def _work_apart(self) -> None:
        with self._lock:
            if self._stopping.is_set():
                return
            child = self._child = subprocess.Popen(
                # -P: no modules of the working directory, which an editor may have put anywhere.
                [sys.executable, "-P", "-m", "cofire.server.worker_child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        assert child.stdin is not None and child.stdout is not None  # noqa: S101 - pipes
        began: dict[SpaceRef, None] = {}
        try:
            with suppress(BrokenPipeError):  # it ended at once; its exit code tells
                given = {"settings": _plain(self._settings), "vectors": self._vectors}
                child.stdin.write(json.dumps(given) + "\n")
                child.stdin.flush()
            for line in child.stdout:
                if line.startswith("{"):  # and not what some library prints
                    self._hear(json.loads(line), began)
            code = child.wait()
        finally:
            child.kill()
            child.wait()
            with suppress(BrokenPipeError):
                child.stdin.close()
            child.stdout.close()
            with self._lock:
                self._child = None
        if code != 0 and not self._stopping.is_set():
            self._died(code, began)

    def _hear(self, told: dict[str, Any], began: dict[SpaceRef, None]) -> None:
        if "began" in told:
            space = SpaceRef(**told["began"])
            began[space] = None
            self._meter.began(space)
        elif "ended" in told:
            run = SpaceRun(**{**told["ended"], "space": SpaceRef(**told["ended"]["space"])})
            began.pop(run.space, None)
            self._meter.ended(run)
        else:
            self._meter.queued(Queue(*told["queued"]))

    def _died(self, code: int, began: dict[SpaceRef, None]) -> None:
        """Tells of what the child was at when it died, which the store has as failed since it
        began. Raises _ChildDiedError."""
        error = f"the process that worked on it ended with exit code {code}"
        for space in began:
            self._meter.ended(SpaceRun(space=space, outcome="failed", lag=0.0, error=error))
        raise _ChildDiedError(error)


def _plain(settings: Settings) -> dict[str, Any]:
    """All settings, secrets too, as JSON."""
    return {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value
        for name, value in settings
    }


def _now() -> int:
    return to_micros(datetime.now(UTC))

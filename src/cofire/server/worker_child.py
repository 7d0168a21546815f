"""A process that consolidates what is due and ends: started by `worker_thread.WorkerThread`.

On its standard input it is given one line of JSON, {"settings": …, "vectors": …}, and nothing more;
when that is closed, whoever started it is gone, and it stops. On its standard output it says what
it does, one line of JSON each: {"began": …}, {"ended": …}, {"queued": …}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cofire.memories import Memories
from cofire.server.worker import SpaceRun, Worker
from cofire.settings import load_settings
from cofire.store.serving_records import Queue
from cofire.types import SpaceRef

NICER = 5
"""Added to the process's niceness: whoever waits for an answer goes first. With more, a server that
is always busy would leave next to nothing."""


class _Telling:
    """A meter that says everything on standard output."""

    def began(self, space: SpaceRef) -> None:
        self._say({"began": asdict(space)})

    def ended(self, run: SpaceRun) -> None:
        self._say({"ended": asdict(run)})

    def queued(self, queue: Queue) -> None:
        self._say({"queued": queue})

    def _say(self, told: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def run() -> None:
    """What the process does. Raises CofireError."""
    given = json.loads(sys.stdin.readline())
    settings = load_settings(**given["settings"])
    if hasattr(os, "nice"):
        os.nice(NICER)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it
    with Memories.open(
        settings.store, create=False, vectors=given["vectors"], settings=settings
    ) as memories:
        worker = Worker(memories, meter=_Telling())
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())

        def wait() -> None:
            sys.stdin.read()
            worker.stop()

        threading.Thread(target=wait, name="cofire-parent", daemon=True).start()
        worker.run(once=True)
        if worker.left:
            os._exit(0)  # a model that does not answer must not keep the process


if __name__ == "__main__":
    run()

"""What a worker beside a server costs whoever waits for an answer: the lag of an event loop, and
recalls, while one space is consolidated for the first time.

    python -m benchmarks.beside --memories 10000 [--apart | --thread | --alone]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.corpus import messages
from cofire.memories import Memories
from cofire.memory import Memory
from cofire.server.worker import SpaceRun, Unmetered
from cofire.server.worker_pace import Pace
from cofire.server.worker_thread import WorkerThread
from cofire.settings import load_settings

QUESTIONS = 400
TICK, PAUSE = 0.005, 0.02
"""Seconds between looks at the loop, and between an answer and the next question."""
ALONE = 15.0
"""Seconds that are measured without a worker."""


class _Over(Unmetered):
    """Notes that the night is over."""

    def __init__(self) -> None:
        self.runs: list[SpaceRun] = []
        self.event = threading.Event()

    def ended(self, run: SpaceRun) -> None:
        self.runs.append(run)
        self.event.set()


async def _measured(memory: Memory, over: threading.Event) -> tuple[list[float], list[float]]:
    lags: list[float] = []
    recalls: list[float] = []
    questions = [message.content for message in messages(QUESTIONS, seed=9)]

    async def tick() -> None:
        while not over.is_set():
            begun = perf_counter()
            await asyncio.sleep(TICK)
            lags.append(perf_counter() - begun - TICK)

    async def ask() -> None:
        while not over.is_set():
            begun = perf_counter()
            await asyncio.to_thread(memory.recall, questions[len(recalls) % QUESTIONS])
            recalls.append(perf_counter() - begun)
            await asyncio.sleep(PAUSE)

    await asyncio.gather(tick(), ask())
    return lags, recalls


def _summed(values: Sequence[float]) -> dict[str, float]:
    p50, p99, most = np.percentile(values, [50, 99, 100]) * 1e3
    return {"p50": round(p50, 1), "p99": round(p99, 1), "max": round(most, 1)}


def main() -> None:
    """Prints milliseconds as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    how = parser.add_mutually_exclusive_group()
    for name in ("apart", "thread", "alone"):
        how.add_argument(f"--{name}", dest="how", action="store_const", const=name)
    given = parser.parse_args()
    how_named = given.how or "apart"
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(store=str(Path(folder) / "memory.db"), embedder="hashing:384")
        with Memories.open(settings=settings) as memories:
            memory = memories.of("ada")
            memory.remember(messages(given.memories))
            memory.recall("warm")
            meter = _Over()
            beside = WorkerThread(
                memories, settings, apart=how_named == "apart", meter=meter, pace=Pace(poll=0.1)
            )
            if how_named == "alone":
                threading.Timer(ALONE, meter.event.set).start()
            else:
                beside.start()
            lags, recalls = asyncio.run(_measured(memory, meter.event))
            beside.stop()
    night = [round(run.seconds, 1) for run in meter.runs]
    found = {"how": how_named, "night_s": night, "lag_ms": _summed(lags)}
    print(json.dumps({**found, "recall_ms": _summed(recalls)}))


if __name__ == "__main__":
    main()

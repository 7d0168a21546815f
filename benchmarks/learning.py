"""What does learning cost? Prints medians; run `python benchmarks/learning.py --help`."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path

from cofire.dynamics.plasticity import COFIRE_RULE
from cofire.ids import new_uuid7
from cofire.store import Store, open_store
from cofire.store.cues import NewCue
from cofire.store.learning import NewEvent
from cofire.store.records import EventRecord, NewItem, SpaceInfo
from cofire.types import SpaceRef

MODEL, DIMENSION = "bench", 384


def an_item(content: str, kind: str, vector: bytes | None = None) -> NewItem:
    """A memory, or a question."""
    return NewItem(
        uid=new_uuid7().bytes, content=content, kind=kind, time=0, recorded=0, vector=vector,
        terms=random.randbytes(8) + b"\1", length=12,
    )  # fmt: skip


def made(store: Store, memories: int) -> SpaceInfo:
    """A space of so many memories."""
    space = store.space(SpaceRef(tenant="default", identity="bench"), create=True)
    assert space is not None
    space = store.set_model(space, MODEL, DIMENSION)
    for start in range(0, memories, 1000):
        count = min(1000, memories - start)
        store.append(space, [an_item("a turn of a conversation", "episode") for _ in range(count)])
    return space


def some_evidence(rng: random.Random, memories: int, at: int) -> NewEvent:
    """Three memories that were used, one of them a popular one."""
    popular = 1 + int(memories * rng.random() ** 4)
    used = {popular, rng.randint(1, memories), rng.randint(1, memories)}
    while len(used) < 3:
        used.add(rng.randint(1, memories))
    return NewEvent(
        items=tuple((number, 1.0) for number in sorted(used)),
        signal="used",
        time=at * 1_000_000,
        principal=f"user {rng.randrange(5)}",
        question=rng.getrandbits(64),
    )


def as_logged(event: NewEvent) -> EventRecord:
    """The event as the log keeps it."""
    return EventRecord(
        recall=None, type=event.type, items=event.items, outcome=None, signal=event.signal,
        principal=event.principal, time=event.time, question=event.question,
    )  # fmt: skip


def measure(
    folder: Path, durability: str, memories: int, events: int, log: int
) -> dict[str, float]:
    """Milliseconds of a call of each verb; seconds of what looks at the whole log."""
    rng = random.Random(1)
    vector = random.randbytes(2 * DIMENSION)
    figures = {}
    with open_store(folder / f"{durability}.db", durability=durability) as store:
        space = made(store, memories)

        def learn(at: int, *, cue: bool) -> float:
            event = some_evidence(rng, memories, at)
            question = an_item(f"what was said about {at}?", "cue", vector)
            began = time.perf_counter()
            store.learn(
                space, event, COFIRE_RULE, cue=NewCue(item=question) if cue else None,
                now=event.time,
            )  # fmt: skip
            return (time.perf_counter() - began) * 1000

        for what, cue in (("3 used", False), ("3 used and a new cue", True)):
            taken = [learn(at, cue=cue) for at in range(events)]
            figures[f"learn, {what}, p50 [ms]"] = statistics.median(taken)
            figures[f"learn, {what}, p99 [ms]"] = statistics.quantiles(taken, n=100)[98]
        if log:
            for start in range(0, log, 1000):
                batch = [as_logged(some_evidence(rng, memories, start + at)) for at in range(1000)]
                store.append_events(space, batch)
            store.replay(space)
            taken = [learn(at, cue=True) for at in range(log, log + events)]
            figures[f"learn, 3 used and a new cue, after {log} events, p50 [ms]"] = (
                statistics.median(taken)
            )
            figures.update(whole_log(store, space, rng, memories))
    return figures


def whole_log(
    store: Store, space: SpaceInfo, rng: random.Random, memories: int
) -> dict[str, float]:
    """What looks back at the log."""
    figures: dict[str, float] = {}
    count = sum(1 for _ in store.iterate_events(space))
    began, busy = time.perf_counter(), time.process_time()
    states = store.fold(space)
    figures[f"fold {count} events into {len(states)} strengths [s]"] = time.perf_counter() - began
    figures["  of which the processor [s]"] = time.process_time() - busy
    began = time.perf_counter()
    assert store.replay(space) == 0
    figures[f"replay {count} events, nothing to mend [s]"] = time.perf_counter() - began
    pairs = rng.sample(sorted(states), 50)
    for name, calls, call in (
        ("why", 50, lambda pair: store.why(space, *pair)),
        ("forget a memory in a dense log", 5, lambda pair: store.forget(space, [pair[1]])),
    ):
        taken = []
        for pair in pairs[:calls]:
            began = time.perf_counter()
            call(pair)
            taken.append((time.perf_counter() - began) * 1000)
        figures[f"{name}, p50 [ms]"] = statistics.median(taken)
        figures[f"{name}, worst [ms]"] = max(taken)
    assert store.replay(space) == 0
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--durability", choices=["normal", "full"], default="normal")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=2_000, help="timed calls of each kind")
    parser.add_argument("--log", type=int, default=100_000, help="events to fold; 0: skip it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(
            Path(folder),
            options.durability,
            options.memories,
            events=options.events,
            log=options.log,
        )
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:70} {value:10.3f}")


if __name__ == "__main__":
    main()

"""How fast is the store by itself? Prints medians; run `python benchmarks/store.py --help`."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from cofire.ids import new_uuid7
from cofire.store import Store, open_store
from cofire.store.records import NewItem, SpaceInfo
from cofire.types import SpaceRef

MODEL, DIMENSION = "bench", 384
WORDS = ("the", "kiln", "fires", "on", "Tuesday", "and", "glaze", "wants", "a", "slow", "cooling")


def make_items(count: int, seed: int, *, vectors: bool) -> list[NewItem]:
    """Items the size of chat turns: 20 terms, 3 concepts, 4 facets, a session of 20 turns."""
    rng = random.Random(seed)
    items = []
    for index in range(count):
        hashes = sorted(rng.getrandbits(64) for _ in range(20))
        items.append(
            NewItem(
                uid=new_uuid7().bytes,
                content=" ".join(rng.choices(WORDS, k=25)),
                time=index * 1_000_000,
                recorded=index * 1_000_000,
                speaker=f"speaker {index % 2}",
                session=f"session {seed}-{index // 20}",
                tags=("pottery",) if index % 5 == 0 else (),
                tokens=30,
                length=20,
                terms=struct.pack("<20Q", *hashes) + b"\1" * 20,
                concepts=struct.pack("<3Q", *hashes[:3]) + b"\1" * 3,
                facets=struct.pack("<4Q", *hashes[:4]),
                vector=os.urandom(2 * DIMENSION) if vectors else None,
            )
        )
    return items


def median(run: Callable[[], object], times: int) -> float:
    """Median milliseconds of `times` runs."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


def bulk(store: Store, space: SpaceInfo, items: Sequence[NewItem]) -> float:
    """Items per second in batches of 1,000."""
    began = time.perf_counter()
    for start in range(0, len(items), 1000):
        store.append(space, items[start : start + 1000])
    return len(items) / (time.perf_counter() - began)


def single_appends(folder: Path, durability: str, times: int = 500) -> dict[str, float]:
    figures = {}
    with open_store(folder / f"{durability}.db", durability=durability) as store:
        space = made(store)
        for what, vectors in (("without", False), ("with", True)):
            items = iter(make_items(times, int(vectors), vectors=vectors))
            figures[f"append one {what} vector, {durability} [ms]"] = median(
                partial(append_next, store, space, items), times
            )
    figures[f"a bare write and fsync of 4 kB, {durability} [ms]"] = bare_sync(folder, durability)
    return figures


def append_next(store: Store, space: SpaceInfo, items: Iterator[NewItem]) -> None:
    store.append(space, [next(items)])


def bare_sync(folder: Path, durability: str) -> float:
    """What the disk itself takes: the floor of a durable write."""
    with (folder / "bare").open("wb", buffering=0) as handle:

        def write() -> None:
            handle.write(b"x" * 4096)
            if durability == "full":
                os.fsync(handle.fileno())

        return median(write, 200)


def measure(folder: Path, size: int, repeats: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    for durability in ("normal", "full"):
        figures |= single_appends(folder, durability)
    path = folder / "bulk.db"
    with open_store(path) as store:
        space = made(store)
        items = make_items(size, 3, vectors=True)
        figures["bulk append, full [items/s]"] = bulk(store, space, items)
        del items  # or the garbage collector looks through them in what follows
        figures["bytes per item"] = path.stat().st_size / size
    began = time.perf_counter()
    with open_store(path) as store:
        figures["open an existing store [ms]"] = (time.perf_counter() - began) * 1000
        space = made(store)
        numbers = random.Random(0).sample(range(1, size + 1), min(30, size))
        figures["revision [ms]"] = median(lambda: store.revision(space), 2000)
        figures["changes, nothing new [ms]"] = median(
            lambda: store.changes(space, store.revision(space)), 500
        )
        figures["fetch 30 [ms]"] = median(lambda: store.fetch(space, numbers), 500)
        figures["get one [ms]"] = median(lambda: store.get(space, numbers[0]), 500)
        figures["list 100 [ms]"] = median(lambda: store.list([space]), 100)
        figures["counts [ms]"] = median(lambda: store.counts(space), 5)
        figures[f"changes of all {size:,} [ms]"] = median(lambda: store.changes(space, 0), repeats)
        began = time.process_time()
        store.changes(space, 0)
        # On a machine that others use, too, the processor's time says more than the clock's.
        figures["the same, processor time [ms]"] = (time.process_time() - began) * 1000
        figures["forget one [ms]"] = median(
            lambda: store.forget(space, [numbers.pop()]), min(20, len(numbers))
        )
        figures["check [ms]"] = median(store.check, 1)
    return figures


def made(store: Store) -> SpaceInfo:
    space = store.space(SpaceRef(identity="bench"), create=True)
    assert space is not None
    return store.set_model(space, MODEL, DIMENSION)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="items in the large store")
    parser.add_argument("--repeats", type=int, default=5, help="runs of the slow measurements")
    parser.add_argument("--folder", type=Path, help="where to put the stores (default: temporary)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        figures = measure(Path(folder), arguments.size, arguments.repeats)
    if arguments.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:<40} {value:>12,.3f}")


if __name__ == "__main__":
    main()

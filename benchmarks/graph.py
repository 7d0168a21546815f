"""Speed and memory of the active graph on synthetic spaces; prints a table of medians.

    python benchmarks/graph.py --sizes 10000,100000

Vectors are drawn around random topics in a space with falling variance, as sentence embeddings
are; terms follow Zipf's law. Each size runs in a process of its own, so that memory is its own.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cofire.dynamics.activation import SpreadRule, conducting, spread
from cofire.graph.active import ActiveGraph
from cofire.graph.masks import RowFilter, row_mask
from cofire.graph.sidecar import SidecarKey, load_sidecar, save_sidecar
from cofire.graph.vectors import Projection, fit_projection

DIMENSION = 384
VOCABULARY = 60_000
KEY = SidecarKey(space="bench", model="synthetic", dimension=DIMENSION)
TEMPORAL = 0
LIMITS = {
    "dense top 300": (0.5, 4.0),
    "BM25 of 8 terms, top 300": (0.4, 1.5),
    "links of 300 seeds": (0.1, 0.1),
    "load sidecar": (150.0, 150.0),
    "apply all rows": (1500.0, 1500.0),
    "apply one row": (0.2, 0.2),
    "memory, MB": (180.0, 180.0),
}
"""What each step may take, in ms (memory: MB), at 10,000 and 100,000."""


@dataclass(slots=True)
class Changes:
    """The store's `Changes`, as far as the graph looks at it."""

    revision: int
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    links: list[tuple[int, int, int, float, int]] = field(default_factory=list)
    rebuild: bool = False
    removed_items: list[int] = field(default_factory=list)
    removed_links: list[tuple[int, int]] = field(default_factory=list)


class Source:
    """Rows of a synthetic space, by number."""

    def __init__(self, seed: int = 7) -> None:
        self.rng = np.random.default_rng(seed)
        falling = (1.0 / np.sqrt(np.arange(1, DIMENSION + 1))).astype(np.float32)
        rotation, _ = np.linalg.qr(self.rng.standard_normal((DIMENSION, DIMENSION)))
        self.basis = falling[:, None] * rotation.astype(np.float32)
        self.topics = self.rng.standard_normal((500, DIMENSION), dtype=np.float32) @ self.basis
        self.hashes = self.rng.integers(1, 2**63, VOCABULARY, dtype=np.uint64)
        weights = 1.0 / (np.arange(VOCABULARY) + 10.0)
        self.cumulative = np.cumsum(weights / weights.sum())

    def vectors(self, count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        noise = self.rng.standard_normal((count, DIMENSION), dtype=np.float32) @ self.basis
        wide = self.topics[self.rng.integers(0, len(self.topics), count)] + noise
        wide /= np.linalg.norm(wide, axis=1, keepdims=True)
        return wide

    def draw_terms(self, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.intp]]:
        return np.searchsorted(self.cumulative, self.rng.random(shape))

    def rows(self, first: int, count: int) -> list[tuple[Any, ...]]:
        vectors = self.vectors(count).astype(np.float16)
        terms = self.draw_terms((count, 15))
        concepts = self.draw_terms((count, 4))
        rows = []
        for index in range(count):
            number = first + index
            found, counts = np.unique(self.hashes[terms[index]], return_counts=True)
            ideas = np.unique(self.hashes[concepts[index]])
            facets = np.unique(np.array([1, 2 + number % 2, 10 + number // 25], np.uint64))
            rows.append(
                (
                    number,
                    number.to_bytes(16, "big"),
                    number,
                    0,
                    0,
                    1 + number % 2,
                    10 + number // 25,
                    number * 60_000_000,
                    None,
                    None,
                    None,
                    5,
                    False,
                    0,
                    15,
                    found.tobytes() + counts.astype(np.uint8).tobytes(),
                    ideas.tobytes() + bytes([1]) * len(ideas),
                    facets.tobytes(),
                    vectors[index].tobytes(),
                    None,
                    None,
                    0,
                )
            )
        return rows


def links(first: int, count: int) -> list[tuple[int, int, int, float, int]]:
    return [(n - 1, n, TEMPORAL, 0.5, n) for n in range(max(first, 2), first + count)]


def median_ms(call: Callable[[], object], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def resident() -> float:
    """MB resident in this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


class Bench:
    """One space and what is asked of it."""

    def __init__(self, size: int, repeats: int, folder: Path) -> None:
        self.size, self.repeats, self.folder = size, repeats, folder
        self.source = Source()
        self.rows, self.pairs = self.source.rows(1, size), links(1, size)
        sample = np.frombuffer(b"".join(row[-1] for row in self.rows[:20_000]), np.float16)
        self.projection = Projection(fit_projection(sample.reshape(-1, DIMENSION)), 1)
        self.result: dict[str, float] = {}
        start = time.perf_counter()
        changes = Changes(1, self.rows, self.pairs)
        self.graph = ActiveGraph.empty(DIMENSION, self.projection).apply(changes)
        self.result["apply all rows"] = (time.perf_counter() - start) * 1e3
        self.result["memory by count, MB"] = self.graph.nbytes / 1e6
        rng = self.source.rng
        stored = self.graph.column("vector")[:: size // 50].astype(np.float32)
        self.queries = list(stored + 0.02 * rng.standard_normal(stored.shape, dtype=np.float32))
        self.terms = [
            [int(h) for h in self.source.hashes[t]] for t in self.source.draw_terms((50, 8))
        ]
        self.seeds = [rng.choice(size, 300, replace=False) for _ in range(50)]
        self.turn = itertools.count()

    def time(self, name: str, call: Callable[[int], object], repeats: int = 0) -> None:
        """Median of `call`, each time with another case (0 to 49)."""
        self.result[name] = median_ms(lambda: call(next(self.turn) % 50), repeats or self.repeats)

    def searches(self, graph: ActiveGraph, suffix: str = "") -> None:
        self.time(f"dense top 300{suffix}", lambda i: graph.dense(self.queries[i], None, 300))
        self.time(
            f"BM25 of 8 terms, top 300{suffix}", lambda i: graph.lexical_top(self.terms[i], top=300)
        )
        self.time(f"links of 300 seeds{suffix}", lambda i: graph.neighbours(self.seeds[i]))

    def exactness(self) -> None:
        exact = ActiveGraph.empty(DIMENSION).apply(Changes(1, self.rows, []))
        shared = [
            len({*self.graph.dense(q, None, 10)[0]} & {*exact.dense(q, None, 10)[0]})
            for q in self.queries
        ]
        self.result["recall@10 of the coarse scan"] = statistics.mean(shared) / 10
        self.time(
            "dense top 300 without a projection",
            lambda i: exact.dense(self.queries[i], None, 300),
            9,
        )

    def rest(self) -> None:
        graph = self.graph
        few = row_mask(graph, RowFilter(since=0, until=500 * 60_000_000, now=0))
        self.time("dense, filter leaves 500", lambda i: graph.dense(self.queries[i], few, 300))
        half = row_mask(graph, RowFilter(any_of=((2,),)))
        self.time("dense, filter leaves half", lambda i: graph.dense(self.queries[i], half, 300))
        self.time(
            "filter: speaker, time, expiry",
            lambda _: row_mask(graph, RowFilter(any_of=((2,),), since=10**9, now=10**9)),
        )
        self.time(
            "similarity of 300 rows", lambda i: graph.similarity(self.seeds[i], self.queries[i])
        )
        self.time("concepts of 300 rows", lambda i: graph.concepts_of(self.seeds[i]))
        self.time("previous and next of 300", lambda i: graph.adjacent(self.seeds[i], TEMPORAL))
        rule, energy = SpreadRule(steps=3, fan=1.0, frontier=250), np.linspace(1.0, 0.5, 60)
        conductance, view = conducting({TEMPORAL: 1.0}), graph.adjacency()
        self.time(
            "spread, 60 seeds, 3 steps",
            lambda i: spread(view, self.seeds[i][:60], energy, rule, conductance, ties=graph.ties),
        )

    def file(self) -> None:
        path = self.folder / "graph.bin"
        np.save(self.folder / "projection.npy", self.projection.matrix)
        start = time.perf_counter()
        save_sidecar(path, self.graph, KEY)
        self.result["save sidecar"] = (time.perf_counter() - start) * 1e3
        loaded = load_sidecar(path, KEY, self.projection)
        assert loaded.graph is not None, loaded.reason
        self.time("load sidecar", lambda _: load_sidecar(path, KEY, self.projection), 7)

    def growth(self) -> None:
        times = []
        graph = self.graph
        for row in self.source.rows(self.size + 1, 2000):
            start = time.perf_counter()
            graph = graph.apply(Changes(2, [row], links(row[0], 1)))
            times.append((time.perf_counter() - start) * 1e3)
        self.result["apply one row"] = statistics.mean(times)
        self.result["apply one row, median"] = statistics.median(times)
        self.result["apply one row, worst of 2,000"] = max(times)
        self.searches(graph, " after these")


def measure(size: int, repeats: int, folder: Path) -> dict[str, float]:
    bench = Bench(size, repeats, folder)
    bench.searches(bench.graph)
    bench.rest()
    bench.file()
    bench.growth()
    bench.exactness()
    return bench.result


def resident_after_load(folder: Path) -> float:
    """MB that a loaded sidecar adds to the process."""
    projection = Projection(np.load(folder / "projection.npy"), 1)
    warm = ActiveGraph.empty(DIMENSION).apply(Changes(1, Source().rows(1, 500), links(1, 500)))
    warm.dense(np.ones(DIMENSION, np.float32))
    del warm
    gc.collect()
    before = resident()
    loaded = load_sidecar(folder / "graph.bin", KEY, projection)
    graph = loaded.graph
    assert graph is not None, loaded.reason
    graph.dense(np.ones(DIMENSION, np.float32))
    graph.lexical_top([1, 2, 3])
    return resident() - before


def child(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.folder)
    if arguments.memory:
        print(json.dumps({"memory, MB": resident_after_load(folder)}))
    else:
        print(json.dumps(measure(arguments.child, arguments.repeats, folder)))


def run_child(*options: str) -> dict[str, float]:
    command = [sys.executable, __file__, *options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", default="10000,100000", help="items per space, by commas")
    parser.add_argument("--repeats", type=int, default=100, help="timings per median")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--child", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    sizes = [int(size) for size in arguments.sizes.split(",")]
    results = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            options = ("--child", str(size), "--folder", folder)
            results[size] = run_child(*options, "--repeats", str(arguments.repeats))
            results[size] |= run_child(*options, "--memory")
    print(f"{'ms unless stated':42}" + "".join(f"{size:>12,}{'limit':>8}" for size in sizes))
    for name in results[sizes[0]]:
        line = f"{name:42}"
        for size in sizes:
            limit = LIMITS.get(name)
            bound = "" if limit is None else f"{limit[size > 10_000]:g}"
            line += f"{results[size][name]:12.3f}{bound:>8}"
        print(line)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

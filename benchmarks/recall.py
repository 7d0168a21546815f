"""Remembering and recalling at size, beside other libraries where they are installed.

    python -m benchmarks                                  # Cofire alone, 10,000 and 100,000
    python -m benchmarks --peers --json figures.json      # beside the others, at 10,000

Every side gets the same texts and the same vectors (`corpus`), and embedding costs it a look-up, so
what is measured is everything else. With --peers, adding and searching go in turns, so that what
slows the machine for a while slows everybody. The others must not become Cofire's dependencies;
give them an environment of their own, outside of the project:

    python3.11 -m venv ../peers
    ../peers/bin/pip install -e . langgraph langgraph-checkpoint-sqlite pysqlite3-binary \\
        sqlite-vec chromadb mem0ai
    ../peers/bin/python -m benchmarks --peers

One that is missing is left out, and the table says so. README.md beside this file says what each
figure means.
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus import BEGINNING, ConstantTimeEmbedder, messages, questions
from benchmarks.peers import Side, open_peers, refuse_network
from cofire.memory import Memory
from cofire.settings import load_settings
from cofire.types import Message

K = 10
NOW = BEGINNING + timedelta(days=3650)
PEER_SIZE = 10_000
BATCH = 1_000
ALONE = 300
"""Memories remembered one by one."""
WARM = 10
"""Questions asked before any is timed: the first ones import and fill caches."""
ROUNDS = 5
"""Times each question is asked of Cofire again; of these the least counts, which a busy machine
disturbs least."""

Figures = dict[str, float]


def timed(call: Callable[[], Any]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - started)


def kernel() -> float:
    """Milliseconds of a fixed computation (median of 50): tells one machine from another, and a
    busy one from a quiet one. About 0.1 on a quiet one of 2024."""
    matrix = np.random.default_rng(0).standard_normal((10_000, 96)).astype(np.float32)
    return statistics.median(timed(lambda: np.vecdot(matrix, matrix[0])) for _ in range(50))


class Cofire:
    """Cofire as a `Side`, with its defaults: every batch is on disk when `add` returns."""

    name = "cofire"

    def __init__(self, folder: Path, embedder: ConstantTimeEmbedder, **given: Any) -> None:
        settings = load_settings(durability="normal")
        self.memory = Memory.open(
            folder / "cofire.db", embedder=embedder, settings=settings, **given
        )

    def add(self, texts: Sequence[str]) -> None:
        self.memory.remember(texts)

    def remember(self, many: Sequence[Message]) -> None:
        """As `add`, with speakers, sessions and times."""
        self.memory.remember(many)

    def search(self, question: str, k: int) -> int:
        return len(self.memory.recall(question, k, now=NOW))

    def close(self) -> None:
        self.memory.close()


# -- Cofire alone ---------------------------------------------------------------------------------


def measure(size: int, asked: int, folder: Path) -> Figures:
    """Everything about Cofire at one size."""
    texts = messages(size + ALONE)
    embedder = ConstantTimeEmbedder()
    embedder.prepare([message.content for message in texts])
    figures: Figures = {"kernel, before [ms]": kernel()}
    for name, vectors in (("words only", False), ("with vectors", True)):
        place = folder / name.replace(" ", "-")
        place.mkdir()
        side = Cofire(place, embedder, vectors=vectors)
        figures |= {
            f"{name}: {what}": value for what, value in use(side, texts, embedder, asked).items()
        }
        side.close()
    store = folder / "with-vectors"
    figures |= run_child("open", store, size)
    with_model = run_child("open-minilm", store, size)
    figures["resident, MiniLM loaded, too [MB]"] = with_model["resident [MB]"]
    figures["cofire --help, whole process [ms]"] = min(timed(help_text) for _ in range(5))
    figures["kernel, after [ms]"] = kernel()
    return figures


def use(
    side: Cofire, texts: Sequence[Message], embedder: ConstantTimeEmbedder, asked: int
) -> Figures:
    """Remember all but the last texts at once and those one by one; ask questions never asked
    before, and the same ones again."""
    many, alone = texts[:-ALONE], texts[-ALONE:]
    every = questions(many, asked + WARM)
    embedder.prepare(every)
    processor = time.process_time()
    seconds = timed(partial(side.remember, many)) / 1e3
    processor = time.process_time() - processor
    for question in every[asked:]:
        side.search(question, K)
    fresh = [timed(partial(side.search, question, K)) for question in every[:asked]]
    least = list(fresh)
    for _ in range(ROUNDS):
        again = [timed(partial(side.search, question, K)) for question in every[:asked]]
        least = [min(pair) for pair in zip(least, again, strict=True)]
    one = [timed(partial(side.remember, [message])) for message in alone]
    return {
        "remember many [items/s]": len(many) / seconds,
        "remember many, by processor time [items/s]": len(many) / processor,
        "remember one, p50 [ms]": statistics.median(one),
        "recall, first time asked, p50 [ms]": statistics.median(fresh),
        "recall, first time asked, p95 [ms]": float(np.percentile(fresh, 95)),
        "recall, least of 6, p50 [ms]": statistics.median(least),
        "recall, least of 6, p95 [ms]": float(np.percentile(least, 95)),
    }


def help_text() -> None:
    code = "from cofire.cli import main; import sys; sys.argv = ['cofire', '--help']; main()"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


# -- A process of its own -------------------------------------------------------------------------


def run_child(what: str, folder: Path, size: int) -> Figures:
    command = [sys.executable, "-m", "benchmarks", "--child", what, "--folder", str(folder)]
    root = Path(__file__).resolve().parent.parent
    best: Figures = {}
    for _ in range(3):  # the first fills the page cache
        started = time.perf_counter()
        done = subprocess.run(
            [*command, "--sizes", str(size)],
            check=True, stdout=subprocess.PIPE, text=True, cwd=root,
        )  # fmt: skip
        whole = 1e3 * (time.perf_counter() - started)
        found: Figures = json.loads(done.stdout) | {"open and recall, whole process [ms]": whole}
        best = {name: min(value, best.get(name, value)) for name, value in found.items()}
    return best


def child(what: str, folder: Path) -> Figures:
    """Open a store, recall once, and say how long it took and how much memory it takes."""
    embedder = ConstantTimeEmbedder()
    question = "What did Nora say about the lighting and the ferry?"
    embedder.prepare([question])
    figures: Figures = {}
    side = None

    def first() -> None:
        nonlocal side
        side = Cofire(folder, embedder)
        side.search(question, K)

    figures["open and first recall, imports done [ms]"] = timed(first)
    assert side is not None
    for _ in range(20):
        side.search(question, K)
    if what == "open-minilm":
        from cofire.models import make_embedder

        model = make_embedder(load_settings(embedder="minilm"))
        model.embed_query(question)
    figures["resident [MB]"] = resident()
    side.close()
    return figures


def resident() -> float:
    """Megabytes this process has in memory now; the most it had where that is not told."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


# -- Beside others --------------------------------------------------------------------------------


def compare(size: int, asked: int, folder: Path) -> tuple[dict[str, Figures], dict[str, str]]:
    """Every side at one size, in turns."""
    refuse_network()
    texts = [message.content for message in messages(size)]
    every = questions(messages(size), asked + WARM)
    embedder = ConstantTimeEmbedder()
    embedder.prepare([*texts, *every])
    peers, skipped = open_peers(folder, embedder)
    sides: list[Side] = [Cofire(folder, embedder), *peers]
    adding = {side.name: 0.0 for side in sides}
    for start in range(0, size, BATCH):
        part = texts[start : start + BATCH]
        for side in sides:
            adding[side.name] += timed(partial(side.add, part)) / 1e3
        _tell(f"\radded {start + len(part):,}")
    single: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(50):
        new = [f"{texts[number]} Again, number {number}."]
        embedder.prepare(new)
        for side in sides:
            single[side.name].append(timed(partial(side.add, new)))
    searches: dict[str, list[float]] = {side.name: [] for side in sides}
    for index, question in enumerate(every):
        for side in sides:
            taken = timed(partial(side.search, question, K))
            if index >= WARM:
                searches[side.name].append(taken)
        _tell(f"\rasked {index + 1:,}   ")
    print(file=sys.stderr)
    for side in sides:
        side.close()
    return {
        side.name: {
            "add [items/s]": size / adding[side.name],
            "add one, p50 [ms]": statistics.median(single[side.name]),
            "search, p50 [ms]": statistics.median(searches[side.name]),
            "search, p95 [ms]": float(np.percentile(searches[side.name], 95)),
        }
        for side in sides
    }, skipped


# -- Output ---------------------------------------------------------------------------------------


def show(title: str, columns: dict[str, Figures], order: Iterable[str]) -> None:
    print(f"\n{title}")
    print(" " * 52 + "".join(f"{name:>23}" for name in columns))
    for row in order:
        cells = [columns[name].get(row) for name in columns]
        shown = ["" if cell is None else f"{cell:,.2f}" for cell in cells]
        print(f"{row:<52}" + "".join(f"{cell:>23}" for cell in shown))


def _tell(progress: str) -> None:
    """Progress, for somebody who watches."""
    if sys.stderr.isatty():
        print(progress, end="", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", default="10000,100000", help="memories, by commas")
    parser.add_argument("--questions", type=int, default=200, help="questions asked of each side")
    parser.add_argument("--peers", action="store_true", help="measure the others, too")
    parser.add_argument("--only-peers", action="store_true", help="the comparison alone")
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child, given.folder)))
        return
    logging.disable(logging.ERROR)
    sizes = [int(size) for size in given.sizes.split(",")]
    result: dict[str, Any] = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}"
    }
    if not given.only_peers:
        alone = {}
        for size in sizes:
            with tempfile.TemporaryDirectory(prefix="cofire-bench-") as folder:
                alone[f"{size:,}"] = measure(size, given.questions, Path(folder))
        result["cofire"] = alone
        show("Cofire", alone, next(iter(alone.values())))
    if given.peers or given.only_peers:
        size = min([*sizes, PEER_SIZE])
        with tempfile.TemporaryDirectory(prefix="cofire-bench-") as folder:
            sides, skipped = compare(size, given.questions, Path(folder))
        result["peers"] = {"size": size, "figures": sides, "skipped": skipped}
        show(f"Side by side, {size:,} memories", sides, sides["cofire"])
        ours = sides["cofire"]["search, p50 [ms]"]
        ratios = {name: {"": found["search, p50 [ms]"] / ours} for name, found in sides.items()}
        show("Search, times as long as Cofire", ratios, [""])
        for name, reason in skipped.items():
            print(f"left out: {name}: {reason}")
    if given.json:
        given.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

"""What Cofire reaches on PostgreSQL, beside SQLite, and as a database grows.

    python -m benchmarks.postgres                               # all parts: about half an hour
    python -m benchmarks.postgres --parts recall,load --sizes 10000
    python -m benchmarks.postgres --parts growth --growth-size 100000 --json growth.json

Each part starts a server of its own, which waits for the disk at every COMMIT, and asks both sides
in turns, so that what slows the machine for a while slows both. Embedding costs a look-up on all
sides. README.md beside this file says what each figure means.

    recall   the same memories in SQLite and in PostgreSQL, the same calls of both back to back
    load     a new process: opening and the first recall, without what a warm recall takes
    writers  `Memory.remember` one at a time from 4 processes, in 200 spaces of 10 tenants
    bulk     `Store.append` in batches, and `Memory.remember` of many
    growth   1,000,000 memories in 1,000 spaces beside a database with one space of 1,000
    tenants  databases of 100, 1,000 and 10,000 tenants: opening, one recall, closing
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.corpus import ConstantTimeEmbedder, messages, questions
from benchmarks.postgres_growth import growth, tenants
from benchmarks.postgres_writing import bulk, writers
from benchmarks.recall import NOW, ROUNDS, WARM, Figures, K, kernel, timed
from benchmarks.serving import database, encoded, server_seconds, serving, spending
from cofire.memory import Memory
from cofire.settings import load_settings
from cofire.types import Message, Recall

ALONE = 100
"""Memories remembered one by one, and recalls that feedback is given on."""
LOADS = 5
"""New processes that open the store."""
LOADED = 10_000
ROOT = Path(__file__).resolve().parent.parent


class Pair(NamedTuple):
    """The same memories twice."""

    lite: Memory
    postgres: Memory
    url: str
    path: Path


@contextmanager
def pair(
    folder: Path, url: str, texts: Sequence[Message], embedder: ConstantTimeEmbedder
) -> Iterator[Pair]:
    """Both with the same memories, down to their ids."""
    settings = load_settings(durability="normal")
    path = folder / "lite.db"
    with (
        Memory.open(path, embedder=embedder, settings=settings) as lite,
        Memory.open(url, embedder=embedder, settings=settings) as postgres,
    ):
        for items in encoded(texts, embedder):
            for memory in (lite, postgres):
                spaces = memory._workings.spaces
                memory._workings.store.append(spaces.with_model(spaces.own), items)
        yield Pair(lite, postgres, url, path)


def recall(size: int, asked: int, folder: Path) -> Figures:
    """Recalls, single memories and feedback on both sides at one size."""
    texts, embedder = messages(size + ALONE), ConstantTimeEmbedder()
    embedder.prepare([message.content for message in texts])
    every = questions(texts[:size], asked + WARM)
    embedder.prepare(every)
    with (
        serving(folder) as server,
        database(server) as made,
        pair(_emptied(folder), made.app_url, texts[:size], embedder) as both,
    ):
        figures: Figures = {"kernel [ms]": kernel()}
        for question in every[asked:]:
            for memory in (both.lite, both.postgres):
                memory.recall(question, K, now=NOW)
        rounds = [recalls(both, every[:asked]) for _ in range(1 + ROUNDS)]
        figures |= beside("recall, first time asked", rounds[0])
        least = (
            [min(times) for times in zip(*side, strict=True)] for side in zip(*rounds, strict=True)
        )
        figures |= beside(f"recall, least of {1 + ROUNDS}", (next(least), next(least)))
        for name, memory in (("SQLite", both.lite), ("PostgreSQL", both.postgres)):
            with spending(server) as spent:
                for question in every[:asked]:
                    memory.recall(question, K, now=NOW)
                memory._workings.log.flush()
            figures[f"recall, processor time here, {name} [ms]"] = 1e3 * spent.here / asked
            if name == "PostgreSQL":
                figures["recall, processor time of the server [ms]"] = 1e3 * spent.server / asked
        figures |= beside(
            "remember one",
            alternately(both, [partial(_remember, message) for message in texts[size:]]),
        )
        figures |= beside("feedback", feedbacks(both, every[:ALONE]))
        figures |= recorded(made.admin_url)
    return figures


def recalls(both: Pair, asked: Sequence[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of each; both must answer alike."""
    found: list[Recall] = []

    def ask(question: str, memory: Memory) -> None:
        found.append(memory.recall(question, K, now=NOW))

    times = alternately(both, [partial(ask, question) for question in asked])
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert [(hit.id, hit.score) for hit in one] == [(hit.id, hit.score) for hit in other]
    return times


def feedbacks(both: Pair, asked: Sequence[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of feedback on two memories of a recall that has been recorded already."""
    calls = []
    for question in asked:
        given = {}
        for memory in (both.lite, both.postgres):
            given[memory] = memory.recall(question, K, now=NOW)
            memory._workings.log.flush()

        def learn(memory: Memory, given: dict[Memory, Recall] = given) -> None:
            memory.feedback(given[memory], given[memory].ids[:2], now=NOW)

        calls.append(learn)
    return alternately(both, calls)


def recorded(admin_url: str) -> Figures:
    """What the records of recalls take on disk, their indexes included."""
    import psycopg

    with psycopg.connect(admin_url) as admin:
        found = admin.execute(
            "SELECT sum(pg_total_relation_size(relid)) FROM (VALUES ('cofire.recalls'::regclass), "
            "('cofire.recall_items'::regclass)) AS root, pg_partition_tree(root.column1)"
        ).fetchone()
        count = admin.execute("SELECT count(*) FROM cofire.recalls").fetchone()
    assert found is not None
    assert count is not None
    return {"records of recalls [bytes/recall]": float(found[0]) / count[0]}


def _remember(message: Message, memory: Memory) -> None:
    memory.remember(message)


def alternately(
    both: Pair, calls: Sequence[Callable[[Memory], None]]
) -> tuple[list[float], list[float]]:
    """Milliseconds of each call of both, who goes first taking turns."""
    sides = (both.lite, both.postgres)
    times: tuple[list[float], list[float]] = ([], [])
    for turn, call in enumerate(calls):
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side].append(timed(partial(call, sides[side])))
    return times


def beside(name: str, times: tuple[list[float], list[float]]) -> Figures:
    lite, postgres = map(np.array, times)
    figures: Figures = {}
    for side, found in (("SQLite", lite), ("PostgreSQL", postgres)):
        figures[f"{name}, {side}, p50 [ms]"] = float(np.median(found))
        figures[f"{name}, {side}, p95 [ms]"] = float(np.percentile(found, 95))
    figures[f"{name}, difference of each pair, p50 [ms]"] = float(np.median(postgres - lite))
    figures[f"{name}, difference of each pair, p95 [ms]"] = float(
        np.percentile(postgres - lite, 95)
    )
    return figures


# -- A new process --------------------------------------------------------------------------------


def load(size: int, folder: Path) -> Figures:
    """What the first recall of a new process waits for."""
    texts, embedder = messages(size), ConstantTimeEmbedder()
    embedder.prepare([message.content for message in texts])
    figures: Figures = {}
    with serving(folder) as server, database(server) as made:
        with pair(_emptied(folder), made.app_url, texts, embedder) as both:
            path = both.path
        runs: dict[str, list[Figures]] = {"SQLite": [], "PostgreSQL": []}
        taken = 0.0
        for _ in range(LOADS):
            for name, where in (("SQLite", str(path)), ("PostgreSQL", made.app_url)):
                before = server_seconds(server)
                runs[name].append(run_child(where))
                if name == "PostgreSQL":
                    taken += server_seconds(server) - before
        for name, found in runs.items():
            for what in found[0]:
                values = [run[what] for run in found]
                figures[f"{what}, {name}, median of {LOADS} [s]"] = statistics.median(values)
            figures[f"cold load, {name}, least of {LOADS} [s]"] = min(
                run["cold load"] for run in found
            )
        figures["processor time of the server for one load [s]"] = taken / LOADS
    return figures


def run_child(where: str) -> Figures:
    command = [sys.executable, "-m", "benchmarks.postgres", "--child", where]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    found: Figures = json.loads(done.stdout)
    return found


def child(where: str) -> Figures:
    """Open, recall twice, imports done: seconds of opening, of the load (opening and the first
    recall without what the second takes), and of processor time."""
    embedder = ConstantTimeEmbedder()
    asked = [f"What did Nora say about {what}?" for what in ("the lighting", "the ferry")]
    embedder.prepare(asked)
    with (  # imports, and warms what does not hang on a store
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "first.db", embedder=embedder) as memory,
    ):
        memory.remember("The ferry was late.", now=NOW)
        memory.recall(asked[0], K, now=NOW)
    if where.startswith("postgresql"):
        import cofire.store.postgres_connections
        import cofire.store.postgres_opening  # noqa: F401 - imported here, so not timed
    began, processor = time.perf_counter(), time.process_time()
    memory = Memory.open(where, embedder=embedder)
    opened = time.perf_counter()
    memory.recall(asked[0], K, now=NOW)
    first, used = time.perf_counter(), time.process_time() - processor
    memory.recall(asked[1], K, now=NOW)
    second = time.perf_counter() - first
    memory.close()
    return {
        "opening": opened - began,
        "cold load": first - began - second,
        "cold load, processor time here": used,
    }


def _emptied(folder: Path) -> Path:
    place = folder / "lite"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    return place


# -- Output ---------------------------------------------------------------------------------------


def show(title: str, figures: Figures) -> None:
    print(f"\n{title}")
    for name, value in figures.items():
        print(f"  {name:<72}{value:>14,.2f}")


PARTS = ("recall", "load", "writers", "bulk", "growth", "tenants")


def run(part: str, given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Figures]]:
    if part == "recall":
        for size in map(int, given.sizes.split(",")):
            yield f"recall at {size:,}", recall(size, given.questions, folder)
    elif part == "load":
        yield f"load of {LOADED:,}", load(LOADED, folder)
    elif part == "writers":
        yield "writers", writers(folder)
    elif part == "bulk":
        yield "bulk", bulk(folder)
    elif part == "growth":
        yield f"growth to {given.growth_size:,}", growth(given.growth_size, given.questions, folder)
    else:
        yield "tenants", tenants(folder, [int(size) for size in given.tenants.split(",")])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.postgres",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="which, by commas")
    parser.add_argument("--sizes", default="10000,100000", help="memories, for recall")
    parser.add_argument("--questions", type=int, default=200, help="questions asked of each side")
    parser.add_argument("--growth-size", type=int, default=1_000_000, help="a multiple of 1,000")
    parser.add_argument("--tenants", default="100,1000,10000", help="tenants of each database")
    parser.add_argument("--folder", type=Path, help="where to put the data (on a disk)")
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child)))
        return
    random.seed(0)
    result: dict[str, Any] = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}"
    }
    for part in given.parts.split(","):
        with tempfile.TemporaryDirectory(prefix="cofire-bench-", dir=given.folder) as folder:
            Path(folder).chmod(0o755)  # root's servers run as nobody
            for title, figures in run(part, given, Path(folder)):
                result[title] = figures
                show(title, figures)
                if given.json:
                    given.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

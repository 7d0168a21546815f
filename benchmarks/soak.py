"""Many processes at work on one PostgreSQL database for a while, two of them killed: is all there?

    python -m benchmarks.soak --minutes 20 --json soak.json

Clients remember, recall, give feedback, update and forget in spaces that they share; two workers
consolidate the same spaces, and one of them is killed (kill -9) twice in the middle of it and
started again. Every client writes down what was acknowledged to it. In the end: did an error reach
a caller, is everything that was acknowledged and not forgotten there exactly once, as it was last
changed, and nothing of what was forgotten; do `check` and `replay` find nothing to mend?

The clients' clock runs faster (`--hours-per-second`), so that nights pass and there is something to
consolidate. Words are told apart by a mark that no other memory has.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from benchmarks.corpus import messages
from benchmarks.recall import resident
from benchmarks.serving import database, serving
from cofire.errors import CofireError, InputError, NotFoundError
from cofire.memory import Memory
from cofire.settings import load_settings

TENANTS = ("acme", "globex")
PROJECTS = ("north", "south")
PLACES = (None, *PROJECTS)
"""The spaces of each tenant: the agent's own and its projects'."""
DAWN = datetime(2026, 1, 1, 8, tzinfo=UTC)
LEASE = 3.0
"""Seconds after which a killed worker's space may be taken over."""
VERBS = {"remember": 40, "recall": 40, "update": 8, "forget": 6, "look": 6}
"""How often each is chosen. Every second recall is followed by feedback; `look` asks for a memory
by the mark in it, which must be found."""
MARK = re.compile(r"\bmark\d+x\d+\b")
SLEEPERS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What every process is told. `began` and `until` in seconds since 1970; `pause`: seconds that
    a client waits after each call, on average; `faster`: seconds of the clients' clock in one."""

    url: str
    folder: str
    began: float
    until: float
    pause: float
    faster: float

    def now(self) -> datetime:
        return DAWN + timedelta(seconds=(time.time() - self.began) * self.faster)

    def over(self) -> bool:
        return time.time() >= self.until


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What the whole run came to. All but the first block has to be empty or 0."""

    minutes: float = 0.0
    calls: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    updated: int = 0
    forgotten: int = 0
    spaces: int = 0
    links: int = 0
    milliseconds: dict[str, dict[str, float]] = field(default_factory=dict)
    consolidations: dict[str, int] = field(default_factory=dict)
    consolidated: dict[str, int] = field(default_factory=dict)
    kills: list[dict[str, Any]] = field(default_factory=list)
    gone_meanwhile: int = 0
    resident_mb: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    undead: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    mended: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong, and something was done."""
        wrong = (
            self.errors, self.missing, self.twice, self.changed, self.undead, self.findings,
            self.mended,
        )  # fmt: skip
        return self.acknowledged > 0 and not any(wrong)


# -- Clients --------------------------------------------------------------------------------------


class Client:
    """One process that uses the spaces of every tenant, and writes down what it was told."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan = plan
        self._number = number
        self._random = random.Random(number)
        self._texts = [message.content for message in messages(3000, seed=100 + number)]
        self._count = 0
        self._own: list[tuple[str, str, str]] = []
        self._log = (Path(plan.folder) / f"client-{number}.jsonl").open("a", encoding="utf-8")

    def run(self) -> None:
        with ExitStack() as opened:
            opened.callback(self._log.close)
            self._memories = {
                tenant: opened.enter_context(open_memory(self._plan.url, tenant))
                for tenant in TENANTS
            }
            while not self._plan.over():
                (verb,) = self._random.choices(tuple(VERBS), tuple(VERBS.values()))
                try:
                    getattr(self, verb)()
                except CofireError as exc:
                    self._tell(verb="error", during=verb, error=f"{type(exc).__name__}: {exc}")
                if self._count % 100 == 0:
                    self._tell(verb="resident", megabytes=resident())
                time.sleep(self._random.uniform(0, 2 * self._plan.pause))

    def remember(self) -> None:
        tenant, project = self._random.choice(TENANTS), self._random.choice(PLACES)
        texts = [self._new_text() for _ in range(self._random.choice((1, 1, 1, 3)))]
        with self._timed() as taken:
            receipt = self._memories[tenant].remember(
                texts, project=project, speaker=f"speaker {self._number}",
                session=f"session {self._number}-{self._count // 20}", now=self._plan.now(),
            )  # fmt: skip
        kept = list(zip(receipt.ids, texts, strict=True))
        self._own += [(tenant, id, text) for id, text in kept]
        self._tell(verb="remember", tenant=tenant, kept=kept, ms=taken)

    def recall(self) -> None:
        tenant = self._random.choice(TENANTS)
        question = " ".join(self._random.choice(self._texts).split()[:6])
        with self._timed() as taken:
            found = self._memories[tenant].recall(question, now=self._plan.now())
        self._tell(verb="recall", ms=taken)
        if len(found) > 2 and self._random.random() < 0.5:
            self._feedback(tenant, found.id, self._random.sample(found.ids, 3))

    def _feedback(self, tenant: str, recall: str, ids: Sequence[str]) -> None:
        try:
            with self._timed() as taken:
                self._memories[tenant].feedback(
                    recall, ids[:2], ids[2:], by=f"client {self._number}", now=self._plan.now()
                )
        except (InputError, NotFoundError) as exc:
            # Right if another client has forgotten one of them since: looked at in the end.
            self._tell(verb="gone", ids=list(ids), error=f"{type(exc).__name__}: {exc}")
        else:
            self._tell(verb="feedback", ms=taken)

    def update(self) -> None:
        if not self._own:
            return
        place = self._random.randrange(len(self._own))
        tenant, id, text = self._own[place]
        changed = f"{text.split('; changed')[0]}; changed in call {self._count}."
        with self._timed() as taken:
            self._memories[tenant].update(id, content=changed, now=self._plan.now())
        self._own[place] = (tenant, id, changed)
        self._tell(verb="update", tenant=tenant, id=id, text=changed, ms=taken)

    def forget(self) -> None:
        if len(self._own) < 20:
            return
        tenant, id, _ = self._own.pop(self._random.randrange(len(self._own)))
        with self._timed() as taken:
            self._memories[tenant].forget(id, now=self._plan.now())
        self._tell(verb="forget", tenant=tenant, id=id, ms=taken)

    def look(self) -> None:
        """What was acknowledged a moment ago is found."""
        if not self._own:
            return
        tenant, id, text = self._own[-1]
        mark = MARK.findall(text)[0]
        with self._timed() as taken:
            found = self._memories[tenant].recall(mark, 3, now=self._plan.now())
        self._tell(verb="look", ms=taken)
        if id not in found.ids:
            self._tell(verb="error", during="look", error=f"{id} ({mark}) was not found")

    def _new_text(self) -> str:
        self._count += 1
        return f"{self._random.choice(self._texts)} mark{self._number}x{self._count}"

    @contextmanager
    def _timed(self) -> Iterator[list[float]]:
        taken: list[float] = []
        began = time.perf_counter()
        yield taken
        taken.append(1e3 * (time.perf_counter() - began))

    def _tell(self, **told: Any) -> None:
        print(json.dumps(told), file=self._log, flush=True)


def open_memory(url: str, tenant: str) -> Memory:
    settings = load_settings(pool_size=2, claim_seconds=LEASE, embedder="hashing:256")
    return Memory.open(url, "agent", projects=PROJECTS, tenant=tenant, settings=settings)


def use(plan: Plan, number: int) -> None:
    Client(plan, number).run()


# -- Workers --------------------------------------------------------------------------------------


def sleep(plan: Plan, number: int) -> None:
    """Consolidates the spaces of every tenant again and again."""
    place = Path(plan.folder) / f"sleeper-{number}.jsonl"
    with place.open("a", encoding="utf-8") as log, ExitStack() as opened:
        memories = [opened.enter_context(open_memory(plan.url, tenant)) for tenant in TENANTS]
        while not plan.over():
            for memory in memories:
                try:
                    for report in memory.consolidate(now=plan.now()):
                        told = {
                            "verb": "consolidate",
                            "status": report.status,
                            "counts": dict(report.counts),
                            "failed": [
                                f"{step.name}: {step.error}" for step in report.steps if step.error
                            ],
                        }
                        print(json.dumps(told), file=log, flush=True)
                except CofireError as exc:
                    error = f"{type(exc).__name__}: {exc}"
                    told = {"verb": "error", "during": "consolidate", "error": error}
                    print(json.dumps(told), file=log, flush=True)
            print(json.dumps({"verb": "resident", "megabytes": resident()}), file=log, flush=True)
            time.sleep(max(0.2, plan.pause * 10))


def kill_while_it_holds(admin_url: str, worker: BaseProcess, until: float) -> dict[str, Any]:
    """Kills a worker as soon as it has claimed a space; says what it held."""
    import psycopg

    query = "SELECT space, fence FROM cofire.claims WHERE holder LIKE %s AND expires > 0"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        held = None
        while held is None and time.time() < until:
            time.sleep(0.002)
            held = admin.execute(query, (f"%:{worker.pid}:%",)).fetchone()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    return {"held_a_claim": held is not None, "fence": held[1] if held else None}


# -- The whole ------------------------------------------------------------------------------------


def soak(
    seconds: float,
    *,
    clients: int = 4,
    pause: float = 0.05,
    faster: float = 3600.0,
    folder: Path | None = None,
) -> Outcome:
    """Run everything for so many seconds on a server of its own, then look at what is there."""
    processes = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="cofire-soak-") as notes,
        serving(folder) as server,
        database(server) as made,
    ):
        for tenant in TENANTS:
            open_memory(made.app_url, tenant).close()
        began = time.time()
        plan = Plan(
            url=made.app_url, folder=notes, began=began, until=began + seconds,
            pause=pause, faster=faster,
        )  # fmt: skip
        running = [processes.Process(target=use, args=(plan, one)) for one in range(clients)]
        running += [processes.Process(target=sleep, args=(plan, one)) for one in range(SLEEPERS)]
        for process in running:
            process.start()
        kills = []
        for part in (1 / 3, 2 / 3):
            time.sleep(max(0.0, began + part * seconds - time.time()))
            kills.append(kill_while_it_holds(made.admin_url, running[-1], plan.until))
            running[-1] = processes.Process(target=sleep, args=(plan, SLEEPERS - 1))
            running[-1].start()
        for process in running:
            process.join()
        outcome = Outcome(minutes=(time.time() - began) / 60, kills=kills)
        outcome.errors += [
            f"{one.name} ended with {one.exitcode}" for one in running if one.exitcode
        ]
        notes_of = read_notes(Path(notes))
        summarise(outcome, notes_of)
        look_at(outcome, made.app_url, notes_of)
    return outcome


Notes = Mapping[str, list[dict[str, Any]]]


def read_notes(folder: Path) -> Notes:
    """What each process wrote down, by its name. A line that a killed worker left unfinished is
    left out."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        found[path.stem] = [json.loads(line) for line in lines if line.endswith("}")]
    return found


def summarise(outcome: Outcome, notes: Notes) -> None:
    calls, nights, counts = Counter[str](), Counter[str](), Counter[str]()
    taken: defaultdict[str, list[float]] = defaultdict(list)
    for name, lines in notes.items():
        for line in lines:
            calls[line["verb"]] += 1
            if "ms" in line:
                taken[line["verb"]] += line["ms"]
            if line["verb"] == "error":
                outcome.errors.append(f"{name}, {line['during']}: {line['error']}")
            elif line["verb"] == "consolidate":
                nights[line["status"]] += 1
                counts.update(line["counts"])
                outcome.errors += [f"{name}, step {failed}" for failed in line["failed"]]
        sizes = [line["megabytes"] for line in lines if line["verb"] == "resident"]
        if sizes:
            middle = sizes[len(sizes) // 2]
            outcome.resident_mb[name] = [round(size) for size in (sizes[0], middle, sizes[-1])]
    for verb in ("error", "resident", "consolidate", "gone"):
        calls.pop(verb, None)
    outcome.calls, outcome.consolidations = dict(calls), dict(nights)
    outcome.consolidated = {name: count for name, count in sorted(counts.items()) if count}
    for verb, times in taken.items():
        ordered = sorted(times)
        outcome.milliseconds[verb] = {
            "p50": round(statistics.median(ordered), 2),
            "p99": round(ordered[int(len(ordered) * 0.99)], 2),
            "most": round(ordered[-1], 2),
        }


def look_at(outcome: Outcome, url: str, notes: Notes) -> None:
    """Compare what is there with what was acknowledged."""
    lines = [line for part in notes.values() for line in part]
    gone = {line["id"] for line in lines if line["verb"] == "forget"}
    for line in lines:
        if line["verb"] == "gone":
            outcome.gone_meanwhile += 1
            if not gone.intersection(line["ids"]):
                outcome.errors.append(f"feedback: {line['error']}")
    outcome.forgotten = len(gone)
    for tenant in TENANTS:
        wanted: dict[str, str] = {}
        for line in lines:  # of one memory in order: only its own client changes it
            if line.get("tenant") != tenant:
                continue
            if line["verb"] == "remember":
                wanted.update(line["kept"])
                outcome.acknowledged += len(line["kept"])
            elif line["verb"] == "update":
                wanted[line["id"]] = line["text"]
                outcome.updated += 1
        with open_memory(url, tenant) as memory:
            compare(outcome, memory, {id: text for id, text in wanted.items() if id not in gone})
            outcome.undead += [id for id in sorted(gone & wanted.keys()) if _is_there(memory, id)]
            outcome.mended += memory.replay()
            outcome.findings += [f"{tenant}: {finding}" for finding in memory.check()]
            stats = memory.stats()
            outcome.spaces += len(stats.spaces)
            outcome.links += sum(space.links for space in stats.spaces)


def compare(outcome: Outcome, memory: Memory, wanted: Mapping[str, str]) -> None:
    """What should be there, with what is: archived or not, and said once only."""
    there = {item.id: item.content for item in every_episode(memory)}
    outcome.missing += [id for id in wanted if id not in there]
    outcome.changed += [id for id, text in wanted.items() if there.get(id, text) != text]
    marks = Counter(mark for text in there.values() for mark in MARK.findall(text))
    outcome.twice += [mark for mark, count in marks.items() if count > 1]
    known = {mark for text in wanted.values() for mark in MARK.findall(text)}
    outcome.undead += sorted(marks.keys() - known)


def every_episode(memory: Memory) -> Iterator[Any]:
    for archived in (False, True):
        after = None
        while True:
            page = memory.list(limit=5000, after=after, kinds="episode", archived=archived)
            yield from page.items
            after = page.next
            if after is None:
                break


def _is_there(memory: Memory, id: str) -> bool:
    try:
        memory.get(id)
    except NotFoundError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=4, help="processes besides two workers")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds after a call, about")
    parser.add_argument("--hours-per-second", type=float, default=1.0, help="the clients' clock")
    parser.add_argument("--folder", type=Path, help="where the server's data go (on a disk)")
    parser.add_argument("--json", type=Path, help="write the outcome to this file, too")
    given = parser.parse_args()
    outcome = soak(
        60 * given.minutes, clients=given.clients, pause=given.pause,
        faster=3600 * given.hours_per_second, folder=given.folder,
    )  # fmt: skip
    told = json.dumps({"clean": outcome.clean, **asdict(outcome)}, indent=1)
    print(told)
    if given.json:
        given.json.write_text(told)
    sys.exit(0 if outcome.clean else 1)


if __name__ == "__main__":
    main()

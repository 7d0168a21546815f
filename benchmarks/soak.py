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
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from benchmarks.corpus import messages
from benchmarks.recall import resident
from benchmarks.serving import database, serving
from benchmarks.soak_outcome import (
    MARK,
    PROJECTS,
    TENANTS,
    Outcome,
    is_archived,
    look_at,
    open_memory,
    read_notes,
    summarise,
)
from cofire.errors import CofireError, InputError, NotFoundError

PLACES = (None, *PROJECTS)
"""The spaces of each tenant: the agent's own and its projects'."""
DAWN = datetime(2026, 1, 1, 8, tzinfo=UTC)
VERBS = {"remember": 40, "recall": 40, "update": 8, "forget": 6, "look": 6}
"""How often each is chosen. Every second recall is followed by feedback; `look` asks for a memory
by the mark in it, which must be found."""
SLEEPERS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What every process is told. `began`: seconds since 1970, when all of them were ready;
    `pause`: seconds that a client waits after each call, on average; `faster`: seconds of the
    clients' clock in one."""

    url: str
    folder: str
    seconds: float
    pause: float
    faster: float
    began: Synchronized[float]

    @property
    def until(self) -> float:
        return self.began.value + self.seconds

    def now(self) -> datetime:
        return DAWN + timedelta(seconds=(time.time() - self.began.value) * self.faster)

    def over(self) -> bool:
        return time.time() >= self.until

    def begin(self) -> None:
        self.began.value = time.time()


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

    def run(self, start: Barrier) -> None:
        with ExitStack() as opened:
            opened.callback(self._log.close)
            self._memories = {
                tenant: opened.enter_context(open_memory(self._plan.url, tenant))
                for tenant in TENANTS
            }
            start.wait(300)
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
            found = self._memories[tenant].recall(mark, now=self._plan.now())
        self._tell(verb="look", ms=taken)
        if id not in found.ids:
            self._explain(tenant, id, mark)

    def _explain(self, tenant: str, id: str, mark: str) -> None:
        """Something was not found: was it archived since, does a process that loads everything anew
        find it, or nobody?"""
        with open_memory(self._plan.url, tenant) as fresh:
            if is_archived(fresh, id):
                self._tell(verb="archived", id=id)
                return
            now = self._plan.now()
            anew = id in fresh.recall(mark, now=now).ids
            again = id in self._memories[tenant].recall(mark, now=now).ids
        error = f"{id} ({mark}) was not found; again: {again}, by another: {anew}"
        self._tell(verb="error", during="look", error=error)

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


def use(plan: Plan, number: int, start: Barrier) -> None:
    Client(plan, number).run(start)


# -- Workers --------------------------------------------------------------------------------------


def sleep(plan: Plan, number: int, start: Barrier | None) -> None:
    """Consolidates the spaces of every tenant again and again. `start` None: began again."""
    place = Path(plan.folder) / f"sleeper-{number}.jsonl"
    with place.open("a", encoding="utf-8") as log, ExitStack() as opened:
        memories = [opened.enter_context(open_memory(plan.url, tenant)) for tenant in TENANTS]
        if start is not None:
            start.wait(300)
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
        plan = Plan(
            url=made.app_url, folder=notes, seconds=seconds, pause=pause, faster=faster,
            began=processes.Value("d", 0.0),
        )  # fmt: skip
        start = processes.Barrier(clients + SLEEPERS + 1, action=plan.begin)

        def begun(work: Any, number: int, *given: Any) -> BaseProcess:
            process = processes.Process(target=work, args=(plan, number, *given), daemon=True)
            process.start()
            return process

        running = [begun(use, number, start) for number in range(clients)]
        running += [begun(sleep, number, start) for number in range(SLEEPERS)]
        start.wait(300)
        began = plan.began.value
        kills = []
        for part in (1 / 3, 2 / 3):
            time.sleep(max(0.0, began + part * seconds - time.time()))
            kills.append(kill_while_it_holds(made.admin_url, running[-1], plan.until))
            running[-1] = begun(sleep, SLEEPERS - 1, None)
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

"""Several workers that consolidate: each space is one worker's at a time, and one that is killed or
paused in the middle is taken over, with nothing lost and nothing done twice."""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

import sleepers
from cofire.cli import main
from cofire.consolidation.cycle import TAKEN_OVER
from cofire.consolidation.holding import holding
from cofire.consolidation.steps import STEPS
from cofire.errors import StoreBusyError
from cofire.store import Store, open_store
from cofire.store.claims import Claim
from cofire.store.records import SpaceInfo
from cofire.testing import make_space
from cofire.types import SleepReport, SpaceRef
from postgres_fixtures import make_store
from postgres_server import Database, fresh_database, template_with
from sleepers import AFTER, BEGUN, INSIDE, LEASE, PROJECTS, opened, slept, state

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

OWN = SpaceRef(identity="default")
TESTS = Path(__file__).resolve().parents[1]
IDLE = ("dormant", "pagerank")
"""Steps that write nothing that night: there is no transaction to be killed in."""
NAMES = [step.name for step in STEPS]
DEATHS = [
    (name, moment)
    for name in NAMES
    for moment in (BEGUN if name in IDLE else INSIDE, AFTER)
    if moment != AFTER or name in {"facts", "concepts", "shapes"}
]
NewStore = Callable[[Callable[[str], object]], str]
"""Makes a store like one that a function of its URL has filled, and gives its URL."""


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    with ExitStack() as opened_ones:
        if request.param == "sqlite":
            yield lambda fill: _copied(tmp_path, fill)
            return
        server = request.getfixturevalue("postgres_server")

        def new(fill: Callable[[str], object]) -> str:
            def prepare(database: Database) -> None:
                make_store(database)
                fill(database.app_url)

            template = template_with(server, f"cofire_{fill.__name__}", prepare)
            return opened_ones.enter_context(fresh_database(server, template=template)).app_url

        yield new


def _copied(folder: Path, fill: Callable[[str], object]) -> str:
    first = folder / f"{fill.__name__}.db"
    if not first.exists():
        fill(str(first))
    copy = folder / f"copy-{len(list(folder.iterdir()))}.db"
    shutil.copy(first, copy)
    return str(copy)


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Starts processes that have imported everything already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sleepers"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join((str(TESTS), str(TESTS.parent / "src"))))
        multiprocessing.forkserver.ensure_running()
    return context


class Worker:
    """A process that does one of `sleepers`' jobs."""

    def __init__(self, processes: ForkServerContext, job: Any, *given: Any) -> None:
        self.said: Connection
        self.said, its = processes.Pipe()
        self.process: BaseProcess = processes.Process(target=job, args=(its, *given), daemon=True)
        self.process.start()
        its.close()

    def next(self) -> Any:
        assert self.said.poll(30)
        return self.said.recv()

    def rest(self) -> list[Any]:
        """What it still has to say before it ends."""
        said = []
        try:
            while True:
                said.append(self.next())
        except EOFError:
            self.process.join()
        return said

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)


def counts_of(*reports: SleepReport) -> dict[str, Counter[str]]:
    """What was counted, by step."""
    found = {step.name: Counter[str]() for step in STEPS}
    for report in reports:
        for step in report.steps:
            found[step.name].update(step.counts)
    return found


def undisturbed(url: str) -> tuple[dict[str, Counter[str]], dict[str, list[Any]]]:
    with opened(url) as memory:
        (report,) = slept(memory)
        assert report.status == "done"
        assert memory.replay() == 0
        assert memory.check() == []
    return counts_of(report), state(url, OWN)


def taken_over(url: str) -> SleepReport:
    """The report of whoever takes over, as soon as that is let."""
    deadline = time.monotonic() + 20
    with opened(url) as memory:
        while (report := slept(memory)[0]).status == "claimed":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert memory.replay() == 0
        assert memory.check() == []
    assert report.status == "done"
    return report


def test_a_worker_killed_in_any_step_is_taken_over(
    new_store: NewStore, processes: ForkServerContext
) -> None:
    # Each worker takes over from the one before, and dies a step later.
    wanted, end = undisturbed(new_store(sleepers.lived))
    assert {name for name, counts in wanted.items() if counts} >= {
        "verify", "facts", "distil", "gists", "words", "concepts", "candidates", "staircase",
        "archive", "shapes",
    }  # fmt: skip
    url = new_store(sleepers.lived)
    done = counts_of()
    for name, moment in DEATHS:
        worker = Worker(processes, sleepers.dying, url, name, moment)
        told = dict(worker.rest())
        assert worker.process.exitcode == -signal.SIGKILL, name
        assert list(told) == NAMES[: NAMES.index(name)]
        for step, counts in told.items():
            done[step].update(counts)
    report = taken_over(url)
    for step in report.steps:
        done[step.name].update(step.counts)
    for name in NAMES:
        if (name, AFTER) in DEATHS:  # what was counted died with the worker, after it was done
            assert done[name] < wanted[name], name
        else:
            assert done[name] == wanted[name], name
    left = state(url, OWN)
    assert [name for name in end if left[name] != end[name]] == []
    with opened(url) as memory:
        assert len(memory.reports()) == 2, "that of the first night, and one of this"


def test_a_worker_that_was_paused_writes_nothing_after_it_was_taken_over(
    new_store: NewStore, processes: ForkServerContext
) -> None:
    wanted, end = undisturbed(new_store(sleepers.lived))
    url = new_store(sleepers.lived)
    worker = Worker(processes, sleepers.asking, url, LEASE)
    assert worker.next() == "asking"
    worker.signal(signal.SIGSTOP)
    try:
        ours = taken_over(url)
    finally:
        worker.signal(signal.SIGCONT)
    worker.said.send("answer")
    ((theirs,),) = worker.rest()
    assert worker.process.exitcode == 0
    assert theirs.status == "claimed"
    assert f":{os.getpid()}:" in theirs.claimed_by
    assert theirs.claimed_until is None
    last = theirs.steps[-1]
    assert (last.name, last.counts, last.skipped) == ("distil", {}, TAKEN_OVER)
    assert counts_of(ours, theirs) == wanted
    assert state(url, OWN) == end


def test_a_worker_that_waits_for_its_model_keeps_its_space(
    new_store: NewStore, processes: ForkServerContext, capsys: pytest.CaptureFixture[str]
) -> None:
    url = new_store(sleepers.lived)
    worker = Worker(processes, sleepers.asking, url, 0.8)
    assert worker.next() == "asking"
    time.sleep(1.2)
    with opened(url) as memory:
        (report,) = slept(memory)
        assert (report.status, report.steps, report.failed) == ("claimed", (), ())
        assert f":{worker.process.pid}:" in str(report.claimed_by)
        assert report.claimed_until is not None
        assert abs(report.claimed_until.timestamp() - time.time()) < 10
        assert memory.check() == []
        assert memory.remember("others may write meanwhile").created
    assert main(["consolidate", "--store", url, "--embedder", "hashing:64"]) == 0
    said = capsys.readouterr().out
    assert f"skipped; it is being consolidated by {report.claimed_by}" in " ".join(said.split())
    worker.said.send("answer")
    ((theirs,),) = worker.rest()
    assert theirs.status == "done"


def test_workers_that_start_together_share_the_spaces(
    new_store: NewStore, processes: ForkServerContext
) -> None:
    alone, url = new_store(sleepers.shared), new_store(sleepers.shared)
    with opened(alone, PROJECTS) as memory:
        wanted = slept(memory)
    start = processes.Barrier(2)
    workers = [Worker(processes, sleepers.racing, url, start) for _ in range(2)]
    reports = [report for worker in workers for (said,) in [worker.rest()] for report in said]
    assert {report.status for report in reports} == {"done", "claimed"}
    for one in wanted:
        theirs = [report for report in reports if report.space == one.space]
        assert len([report for report in theirs if any(report.counts.values())]) == 1, theirs
        assert counts_of(*theirs) == counts_of(one)
        assert state(url, one.space) == state(alone, one.space)
    with open_store(url) as store:
        assert all(store.held(space) is None for space in store.spaces("default"))


class FailingStore(Store):
    """A store whose renewals of a claim fail, all but the third."""

    tried = 0

    def renew_claim(self, space: SpaceInfo, claim: Claim) -> None:
        self.tried += 1
        if self.tried != 3:
            raise StoreBusyError("another writer held it for too long")
        super().renew_claim(space, claim)


def test_renewing_goes_on_after_it_failed_and_ends_with_the_work(tmp_path: Path) -> None:
    with open_store(tmp_path / "m.db") as store:
        space = make_space(store)
        claim = store.claim(space, "one", 0.06)
        assert isinstance(claim, Claim)
        failing = FailingStore(store._backend)
        with holding(failing, space, claim):
            before = threading.active_count()
            deadline = time.monotonic() + 10
            while failing.tried < 5 and time.monotonic() < deadline:
                time.sleep(0.005)
        assert failing.tried >= 5
        assert threading.active_count() == before - 1
        assert store.held(space) is None

"""The worker: every due space once, whoever dies, fails, waits or is told to stop meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import sleepers
from cofire import Memories
from cofire.cli import main
from cofire.consolidation.cycle import STOPPED
from cofire.consolidation.holding import holding, new_holder
from cofire.consolidation.steps import STEPS
from cofire.errors import ConfirmationNeededError, GenerationError, StoreUnavailableError
from cofire.server.worker import SpaceRun, Worker
from cofire.server.worker_pace import FAR_US, SECOND_US, Pace
from cofire.server.worker_thread import WorkerThread, _plain
from cofire.settings import Settings, load_settings
from cofire.store import open_store
from cofire.store.serving_records import JobRecord, Queue
from cofire.testing import ScriptedGenerator
from cofire.types import SpaceRef, to_micros
from endpoint import Endpoint, endpoint, fails
from forked_interpreter import Process, start_python
from postgres_fixtures import make_store
from postgres_server import PostgresServer, database_at, fresh_database
from scripts_of_models import echo

__all__ = ["endpoint"]

SOURCES = Path(__file__).resolve().parents[2] / "src"
QUICK = Pace(first=0.01, factor=1.0, jitter=0.0, poll=0.02)
ADA = SpaceRef(identity="ada")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    return str(request.getfixturevalue("postgres_store").app_url)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


def settings(url: str, **more: Any) -> Settings:
    given = {"claim_seconds": 0.5, "embedder": "hashing:64", "write_wait": 2.0, **more}
    return load_settings(store=url, **given)


def opened(url: str, **more: Any) -> Memories:
    return Memories.open(settings=settings(url, **more))


def tell(memories: Memories, *spaces: SpaceRef, turns: int = 1) -> None:
    for ref in spaces:
        memory = memories.of(
            ref.identity or "default", ref.user, ref.project or (), tenant=ref.tenant
        )
        for turn in range(turns):
            memory.remember(f"I live in Oslo, in house {turn}.", speaker="Ada", project=ref.project)


def job(url: str, ref: SpaceRef = ADA) -> JobRecord | None:
    with open_store(url) as store:
        space = store.space(ref, create=False)
        assert space is not None
        return store.job(space)


def held(url: str, ref: SpaceRef = ADA) -> bool:
    with open_store(url) as store:
        space = store.space(ref, create=False)
        assert space is not None
        return store.held(space) is not None


@contextmanager
def process(url: str, *arguments: str, **variables: object) -> Iterator[Process]:
    """`cofire worker`, killed afterwards."""
    given = {"EMBEDDER": "hashing:64", "CLAIM_SECONDS": 0.5, "WRITE_WAIT": 2, **variables}
    own = {name: value for name, value in os.environ.items() if not name.startswith("COFIRE_")}
    env = {**own, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1", "COFIRE_STORE": url}
    env.update({f"COFIRE_{name}": str(value) for name, value in given.items()})
    started = start_python(
        ["-m", "cofire", "worker", *arguments],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def until(true: Callable[[], object], within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Meter:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.begun: list[SpaceRef] = []
        self.runs: list[SpaceRun] = []
        self.queues: list[Queue] = []

    def began(self, space: SpaceRef) -> None:
        self.begun.append(space)

    def ended(self, run: SpaceRun) -> None:
        self.runs.append(run)

    def queued(self, queue: Queue) -> None:
        self.queues.append(queue)


class Silent:
    """A model's endpoint that takes a question and does not answer until it is let."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.asked, self.let = threading.Event(), threading.Event()
        self.variables = {
            "GENERATOR": "openai:mute", "GENERATOR_BASE_URL": endpoint.url,
            "GENERATOR_API_KEY": "key", "GENERATOR_RETRIES": 0,
        }  # fmt: skip
        self.settings = {name.lower(): value for name, value in self.variables.items()}

        def script(body: dict[str, Any]) -> Any:
            self.asked.set()
            self.let.wait(30)
            return fails(500)(body)

        endpoint.scripts = [script]


@pytest.fixture
def silent(endpoint: Endpoint) -> Iterator[Silent]:
    found = Silent(endpoint)
    yield found
    found.let.set()


# Sharing


def test_two_workers_share_twenty_spaces_of_several_tenants_and_do_none_twice(url: str) -> None:
    refs = [
        SpaceRef(tenant=f"t{number % 3}", identity=f"agent {number}") for number in range(14)
    ] + [SpaceRef(tenant="t1", project=f"project {number}") for number in range(3)]
    refs += [SpaceRef(identity="ada", user=f"user {number}") for number in range(3)]
    with opened(url) as memories:
        tell(memories, *refs)
    with process(url, "--once", "--json") as one, process(url, "--once", "--json") as other:
        told = [json.loads(worker.communicate(timeout=60)[0]) for worker in (one, other)]
        assert (one.returncode, other.returncode) == (0, 0)
    done = Counter(
        space["space"] for part in told for space in part["spaces"] if space["outcome"] == "done"
    )
    assert done == Counter(str(ref) for ref in refs)
    with opened(url) as memories:
        store = memories.store
        for ref in refs:
            space = store.space(ref, create=False)
            assert space is not None
            assert len(store.reports(space, 9)) == 1
        for tenant in {ref.tenant for ref in refs}:
            made = {space.ref for space in store.spaces(tenant)}
            owners = {SpaceRef(tenant="t1", identity="default")} if tenant == "t1" else set()
            assert made == {ref for ref in refs if ref.tenant == tenant} | owners
        assert Worker(memories).run(once=True) == ()


def test_threads_of_one_worker_share_too(file: str) -> None:
    refs = [SpaceRef(identity=f"agent {number}") for number in range(8)]
    meter = Meter()
    with opened(file) as memories:
        tell(memories, *refs)
        runs = Worker(memories, concurrency=3, meter=meter).run(once=True)
    assert Counter(run.space for run in runs) == Counter(refs)
    assert {run.outcome for run in runs} == {"done"}
    assert meter.runs == list(runs)
    assert Counter(meter.begun) == Counter(refs)
    first = meter.queues[0]  # a thread may have begun before it was asked
    assert first.due + first.running == 8
    assert all(run.lag >= 0 and run.seconds > 0 and run.counts for run in runs)


def test_what_a_worker_wrote_is_looked_at_once_more_and_then_rests(file: str) -> None:
    pace = Pace(every=0.001, idle=10.0)
    with opened(file) as memories:
        tell(memories, ADA)
        rounds = [len(Worker(memories, pace=pace).run(once=True)) for _ in range(4)]
    assert rounds[0] == 1
    assert rounds[-1] == 0


# Stopping and dying


def test_a_worker_killed_in_the_middle_is_taken_over(url: str, silent: Silent) -> None:
    with opened(url) as memories:
        tell(memories, ADA, turns=6)
    with process(url, **silent.variables) as worker:
        assert silent.asked.wait(60)
        worker.kill()
        worker.wait(10)
    noted = job(url)
    assert noted is not None and noted.attempts == 1
    meter = Meter()
    with opened(url) as memories:
        other = Worker(memories, generator=ScriptedGenerator(then=echo), pace=QUICK, meter=meter)
        thread = threading.Thread(target=other.run)
        thread.start()
        until(lambda: meter.runs)
        other.stop()
        thread.join(10)
        assert [(run.space, run.outcome) for run in meter.runs] == [(ADA, "done")]
        assert memories.of("ada").check() == []
    noted = job(url)
    assert noted is not None and (noted.attempts, noted.error) == (0, None)


def test_a_signal_ends_a_worker_within_bounds_and_its_space_is_free(
    file: str, silent: Silent
) -> None:
    with opened(file) as memories:
        tell(memories, ADA, turns=6)
    with process(file, **silent.variables, WORKER_STOP_SECONDS=0.2) as worker:
        assert silent.asked.wait(60)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0  # the model is silent for 30 s
    assert not held(file)
    noted = job(file)
    assert noted is not None and (noted.attempts, noted.next_at) == (0, None)
    with opened(file) as memories:
        (run,) = Worker(memories, generator="none").run(once=True)
    assert run.outcome == "done"


def test_a_child_whose_parent_is_gone_stops(file: str, silent: Silent) -> None:
    with opened(file, worker_stop_seconds=0.2, **silent.settings) as memories:
        tell(memories, ADA, turns=6)
        given = {"settings": _plain(memories.settings), "vectors": True}
    child = subprocess.Popen(
        [sys.executable, "-m", "cofire.server.worker_child"],
        env={**os.environ, "PYTHONPATH": str(SOURCES)}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdin is not None
    child.stdin.write(json.dumps(given) + "\n")
    child.stdin.flush()
    assert silent.asked.wait(60)
    child.communicate(timeout=10)  # closes its standard input
    assert child.returncode == 0
    assert not held(file)


def test_a_second_signal_ends_it_at_once(file: str, silent: Silent) -> None:
    with opened(file) as memories:
        tell(memories, ADA, turns=6)
    with process(file, **silent.variables, WORKER_STOP_SECONDS=60) as worker:
        assert silent.asked.wait(60)
        worker.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == -signal.SIGTERM


def test_a_night_stopped_after_every_part_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    ends = []
    sleepers.lived(str(tmp_path / "whole.db"))
    shutil.copy(tmp_path / "whole.db", tmp_path / "parts.db")
    for name in ("whole", "parts"):
        url = str(tmp_path / f"{name}.db")
        with Memories.open(url, settings=settings(url)) as memories:
            for nights in range(1, 300):
                asked = count(1)
                last = name == "whole"
                report = night(memories, lambda: not last and next(asked) == nights)  # noqa: B023
                if report.steps[-1].skipped != STOPPED:
                    break
            assert len(report.steps) == len(STEPS)
            assert (nights == 1) == last
        ends.append(sleepers.state(url, SpaceRef(identity="default")))
    assert ends[0] == ends[1]


def night(memories: Memories, stopped: Callable[[], bool]) -> Any:
    store = memories.store
    space = store.space(SpaceRef(identity="default"), create=False)
    assert space is not None
    claim = store.claim(space, new_holder(), 30)
    with holding(store, space, claim):  # type: ignore[arg-type]
        return memories.consolidate_claimed(
            space, claim,  # type: ignore[arg-type]
            generator=sleepers.model(), now=sleepers.NIGHT, stopped=stopped,
        )  # fmt: skip


# Failing


def failing(**options: Any) -> ScriptedGenerator:
    return ScriptedGenerator(then=GenerationError("no such model", **options))


def test_failures_of_one_space_stop_no_other_and_are_given_up_and_retried(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bob = SpaceRef(identity="bob")
    with opened(url, embedder="hashing:32") as memories:
        tell(memories, ADA)
    with opened(url) as memories:
        tell(memories, bob)
        pace = Pace(first=0.01, factor=1.0, jitter=0.0, attempts=2)
        runs = Worker(memories, pace=pace).run(once=True)
        assert [(run.space, run.outcome, run.attempts) for run in runs] == [
            (ADA, "failed", 1), (bob, "done", 0),
        ]  # fmt: skip
        assert "EmbeddingMismatchError" in (runs[0].error or "")
        time.sleep(0.02)
        (run,) = Worker(memories, pace=pace).run(once=True)
        assert (run.space, run.outcome, run.attempts) == (ADA, "dead", 2)
        time.sleep(0.02)
        assert Worker(memories, pace=pace).run(once=True) == ()
    assert main(["jobs", "list", "--dead", "--json", "--store", url]) == 0
    (dead,) = json.loads(capsys.readouterr().out)["dead"]
    assert (dead["space"], dead["attempts"]) == ("default/ada", 2)
    assert main(["jobs", "list", "--store", url]) == 0
    assert "1 given up" in capsys.readouterr().out
    assert main(["jobs", "retry", "default/nobody", "--store", url]) == 3
    assert main(["jobs", "retry", "--store", url]) == 2
    assert main(["jobs", "retry", "default/ada", "--json", "--store", url]) == 0
    assert json.loads(capsys.readouterr().out) == {"retried": 1}
    with opened(url, embedder="hashing:32") as memories:
        (run,) = Worker(memories).run(once=True)
        assert (run.space, run.outcome) == (ADA, "done")


def test_a_model_that_asks_to_be_left_alone_is(file: str) -> None:
    with opened(file) as memories:
        tell(memories, ADA, turns=6)
        model = failing(retryable=True, retry_after=3_000.0)
        (run,) = Worker(memories, generator=model, pace=QUICK).run(once=True)
        assert run.outcome == "failed"
        assert (run.error or "").startswith("distil: GenerationError")
        assert Worker(memories, generator=model, pace=QUICK).run(once=True) == ()
    noted = job(file)
    assert noted is not None and noted.next_at is not None
    wait = noted.next_at / SECOND_US - time.time()
    assert 2_900 < wait <= 3_000


def test_a_space_whose_model_talks_nonsense_is_done_and_read_again(file: str) -> None:
    with opened(file) as memories:
        tell(memories, ADA, turns=6)
        model = ScriptedGenerator(then="nonsense")
        (run,) = Worker(memories, generator=model).run(once=True)
        assert run.outcome == "done"
        assert run.counts["unanswered"] > 0
        pace = Pace(every=0.001)
        good = ScriptedGenerator(then=echo)
        (run,) = Worker(memories, generator=good, pace=pace).run(once=True)
        assert run.outcome == "done"
        assert good.requests, "asked about again"


def test_a_bug_is_a_failure_of_its_space_and_repeats_no_content(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def buggy(*_: object, **__: object) -> None:
        raise ValueError("I live in Oslo")

    monkeypatch.setattr(Memories, "consolidate_claimed", buggy)
    with opened(file) as memories:
        tell(memories, ADA)
        (run,) = Worker(memories).run(once=True)
    assert (run.outcome, run.attempts) == ("failed", 1)
    assert "ValueError at buggy" in (run.error or "")
    assert "Oslo" not in (run.error or "")


def test_a_meter_that_fails_ends_the_worker_and_is_told(file: str) -> None:
    class Broken(Meter):
        def ended(self, run: SpaceRun) -> None:
            raise ValueError("no such metric")

    with opened(file) as memories:
        tell(memories, ADA)
        with pytest.raises(ValueError, match="no such metric"):
            Worker(memories, meter=Broken()).run()
        noted = memories.store.job(memories.store.spaces()[0])
    assert noted is not None and noted.attempts == 0


def test_a_space_forgotten_before_its_turn_is_not_made_again(file: str) -> None:
    with opened(file) as memories:
        tell(memories, ADA)
        due = memories.store.due_spaces(now(), every=1, idle=1)
        memory = memories.of("ada")
        with pytest.raises(ConfirmationNeededError) as asked:
            memory.forget(everything=True)
        memory.forget(everything=True, confirm=asked.value.token)
        worker = Worker(memories)
        before = memories.store.spaces()
        assert worker._work(due[0], True) is False
        assert memories.store.spaces() == before


def now() -> int:
    return to_micros(datetime.now(UTC))


@pytest.mark.parametrize("noted", ["done", "failed"])
def test_a_clock_that_was_wrong_keeps_no_space_waiting(url: str, noted: str) -> None:
    future = now() + 3_650 * FAR_US
    with opened(url) as memories:
        tell(memories, ADA)
        store = memories.store
        space = store.space(ADA, create=False)
        assert space is not None
        if noted == "done":
            store.job_done(space, space.revision, future)
        else:
            store.job_failed(space, "no", future, future + 1)
        (due,) = store.due_spaces(now(), every=HOUR_US, idle=24 * HOUR_US)
        assert 0 <= due.lag < 25 * HOUR_US
        (run,) = Worker(memories).run(once=True)
        assert run.outcome == "done"
        assert Worker(memories).run(once=True) == ()


HOUR_US = 3_600 * SECOND_US


def test_a_store_that_goes_away_is_waited_for(own_server: PostgresServer) -> None:
    with fresh_database(own_server.address) as database:
        make_store(database)
        url = database_at(own_server.address, database.name).app_url
        meter = Meter()
        with opened(url, write_wait=0.3) as memories:
            tell(memories, ADA)
            own_server.stop()
            with pytest.raises(StoreUnavailableError):
                Worker(memories).run(once=True)
            worker = Worker(memories, pace=QUICK, meter=meter)
            thread = threading.Thread(target=worker.run)
            thread.start()
            time.sleep(0.5)
            assert meter.runs == []
            own_server.start()
            until(lambda: meter.runs)
            worker.stop()
            thread.join(10)
            assert not thread.is_alive()
        assert [run.outcome for run in meter.runs] == ["done"]


# Beside a server


@pytest.mark.parametrize("apart", [True, False])
def test_a_thread_has_it_done_beside_a_server(file: str, apart: bool) -> None:
    meter = Meter()
    with opened(file) as memories:
        tell(memories, ADA)
        beside = WorkerThread(memories, memories.settings, apart=apart, meter=meter, pace=QUICK)
        beside.start()
        until(lambda: meter.runs)
        tell(memories, SpaceRef(identity="bob"))
        until(lambda: len(meter.runs) > 1)
        beside.stop()
    assert [run.outcome for run in meter.runs] == ["done", "done"]
    assert meter.begun == [run.space for run in meter.runs]
    assert meter.queues


def test_a_child_that_is_killed_counts_and_its_space_waits(file: str, silent: Silent) -> None:
    meter = Meter()
    with opened(file, **silent.settings) as memories:
        tell(memories, ADA, turns=6)
        beside = WorkerThread(memories, memories.settings, meter=meter, pace=QUICK)
        beside.start()
        assert silent.asked.wait(60)
        assert beside._child is not None
        beside._child.kill()
        until(lambda: meter.runs)
        beside.stop()
    assert meter.runs[0].outcome == "failed"
    noted = job(file)
    assert noted is not None and noted.attempts == 1


def test_a_thread_stops_within_bounds_though_a_model_is_silent(file: str, silent: Silent) -> None:
    with opened(file, worker_stop_seconds=0.2, **silent.settings) as memories:
        tell(memories, ADA, turns=6)
        beside = WorkerThread(memories, memories.settings, pace=QUICK)
        beside.start()
        assert silent.asked.wait(60)
        begun = time.monotonic()
        beside.stop()
        assert time.monotonic() - begun < 20
        assert not beside._thread.is_alive()
    assert not held(file)
    noted = job(file)
    assert noted is not None and noted.attempts == 0


def test_a_child_tells_why_a_space_failed(file: str) -> None:
    with opened(file) as memories:
        tell(memories, ADA)
        wrong = load_settings(store=file, embedder="hashing:32", claim_seconds=0.5)
        meter = Meter()
        beside = WorkerThread(memories, wrong, meter=meter, pace=QUICK)
        beside.start()
        until(lambda: meter.runs)
        beside.stop()
    assert "EmbeddingMismatchError" in (meter.runs[0].error or "")

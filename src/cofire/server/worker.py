"""The worker: consolidates whatever is due, over all tenants and spaces of a store.

Several workers, in one process or on many machines, share the work: each claims a space before it
works on it, and asks again then whether it is still due. What became of it is noted before the
claim is released, so no space is done twice. A failure concerns its space alone: it waits longer
each time, and is given up after so many in a row, until `Store.retry_job`. A store that cannot be
reached is waited for.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic, perf_counter
from typing import Any, Protocol

from cofire.consolidation.cycle import STOPPED
from cofire.consolidation.holding import holding, new_holder
from cofire.errors import (
    CofireError,
    GenerationError,
    NotFoundError,
    StoreBusyError,
    StoreError,
    StoreUnavailableError,
)
from cofire.logs import get_logger
from cofire.memories import Memories
from cofire.models import Generated, Generation, Generator, make_generator
from cofire.models.verifying import VerifiedGenerator
from cofire.server.worker_pace import SECOND_US, Pace
from cofire.store.claims import Claim, Held
from cofire.store.records import SpaceInfo
from cofire.store.serving_records import DueSpace, JobRecord, Queue
from cofire.types import SleepReport, SpaceRef, to_micros

_log = get_logger(__name__)

MOST = 100
"""Spaces asked for at once."""
FRESH = 10.0
"""Seconds after which what was due is asked for again, whatever is left of it."""
LAST = 2.0
"""Seconds in which claims are released when the time to stop is over."""
SHORTEST, LONGEST = 1.0, 60.0
"""Seconds between attempts to reach a store, at first and at most."""
OBSERVED = 15.0
"""Seconds between looks at the queue for a meter."""
UNUSABLE = 3_600.0
"""Seconds for which a space is left alone that cannot even be noted as failed (its key is not
here)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRun:
    """What became of one space that was due.

    outcome: "done"; "failed", to be tried again; "dead", given up; "stopped" in the middle because
    the worker was told to, still due; "skipped": another worker has it or has done it, or it is
    gone. lag: how long it had been due (seconds). seconds: how long it took. attempts: failures in
    a row, this one included. error: of what failed, without content. counts: what was done, by
    what was counted. calls, tokens, cost: of a language model.
    """

    space: SpaceRef
    outcome: str
    lag: float
    seconds: float = 0.0
    attempts: int = 0
    error: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class WorkerMeter(Protocol):
    """Who is told what a worker does, such as metrics. Called on the worker's threads; must be
    quick and not raise."""

    def began(self, space: SpaceRef) -> None:
        """A space is claimed and being worked on."""

    def ended(self, run: SpaceRun) -> None:
        """What became of a space that was due."""

    def queued(self, queue: Queue) -> None:
        """How much waits, every `OBSERVED` seconds."""


class Unmetered:
    """A meter that nobody reads."""

    def began(self, space: SpaceRef) -> None: ...

    def ended(self, run: SpaceRun) -> None: ...

    def queued(self, queue: Queue) -> None: ...


class Worker:
    """Consolidates what is due in the store of `memories`, which it does not take over.

    generator: a language model, as in `Memory.consolidate`. concurrency: spaces at once, each on a
    thread (default: what the settings say). patience: seconds that a space's work may still take
    when the worker is told to stop; then its claim is released and what it would still write is
    refused.
    """

    def __init__(
        self,
        memories: Memories,
        *,
        pace: Pace | None = None,
        generator: Generator | str | None = None,
        concurrency: int | None = None,
        patience: float | None = None,
        meter: WorkerMeter | None = None,
    ) -> None:
        settings = memories.settings
        self._memories = memories
        self._pace = pace or Pace.of(settings)
        named = generator is None or isinstance(generator, str)
        self._own = named
        self._generator = (
            make_generator(settings, generator)
            if generator is None or isinstance(generator, str)
            else VerifiedGenerator(generator)
        )
        self._concurrency = concurrency or settings.worker_concurrency
        self._patience = settings.worker_stop_seconds if patience is None else patience
        self._meter: WorkerMeter = meter or Unmetered()
        self._holder = new_holder()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._taken: set[tuple[int, int]] = set()
        self._left_until: dict[tuple[int, int], float] = {}
        self._held: dict[tuple[int, int], tuple[SpaceInfo, Claim]] = {}
        self._jobs: dict[tuple[int, int], JobRecord | None] = {}
        self._runs: list[SpaceRun] = []
        self._outage: CofireError | None = None
        self._bug: Exception | None = None
        self._observed = 0.0
        self.left = False
        """Whether `run` ended before all that was being worked on did."""

    def stop(self) -> None:
        """Have `run` end: what is being worked on ends after its present part. May be called from
        a signal handler."""
        self._stopping.set()

    def run(self, *, once: bool = False) -> tuple[SpaceRun, ...]:
        """Works until `stop`, or (`once`) until nothing is due, no space twice; returns what it did
        then. Raises StoreError only if `once`: otherwise the store is waited for; and whatever a
        meter raises."""
        lanes = [
            threading.Thread(
                target=self._kept, args=(once,), name=f"cofire-worker-{number}", daemon=True
            )
            for number in range(self._concurrency)
        ]
        for lane in lanes:
            lane.start()
        deadline: float | None = None
        while any(lane.is_alive() for lane in lanes):
            if deadline is None and self._stopping.is_set():
                deadline = monotonic() + self._patience
            if deadline is not None and monotonic() > deadline:
                self.left = True
                self._let_go()
                break
            for lane in lanes:
                lane.join(0.05)
        if self._own and self._generator is not None:
            self._generator.close()
        if self._bug is not None:
            raise self._bug
        if once and self._outage is not None:
            raise self._outage
        return tuple(self._runs)

    def _kept(self, once: bool) -> None:
        """A lane whose end by a bug is the end of the worker, and is told by `run`."""
        try:
            self._lane(once)
        except Exception as exc:  # noqa: BLE001 - raised by `run`
            self._bug = exc
            self._stopping.set()

    def _lane(self, once: bool) -> None:
        wait = SHORTEST
        while not self._stopping.is_set():
            try:
                worked = self._round(once)
            except CofireError as exc:
                self._outage = exc
                if once:
                    return
                _log.warning("the store cannot be used; waiting", reason=str(exc), seconds=wait)
                self._stopping.wait(self._pace.jittered(wait))
                wait = min(2 * wait, LONGEST)
                continue
            wait = SHORTEST
            if worked:
                continue
            if once:
                return
            self._stopping.wait(self._pace.jittered(self._pace.poll))

    def _round(self, once: bool) -> bool:
        """Works on what is due at present; whether there was anything."""
        self._observe()
        due = self._memories.store.due_spaces(
            _now(), every=self._pace.every_us, idle=self._pace.idle_us, most=MOST
        )
        worked = False
        fresh = monotonic() + FRESH
        for one in due:
            if self._stopping.is_set() or monotonic() > fresh:
                break
            key = (one.tenant_id, one.space_id)
            if not self._take(key):
                continue
            try:
                worked |= self._work(one, once)
            finally:
                with self._lock:
                    self._taken.discard(key)
                    if once:
                        self._left_until[key] = float("inf")
        return worked

    def _observe(self) -> None:
        with self._lock:
            if monotonic() < self._observed:
                return
            self._observed = monotonic() + OBSERVED
        pace = self._pace
        self._meter.queued(
            self._memories.store.queue(_now(), every=pace.every_us, idle=pace.idle_us)
        )

    def _take(self, key: tuple[int, int]) -> bool:
        """Whether this lane, and no other, works on the space now."""
        with self._lock:
            if key in self._taken or monotonic() < self._left_until.get(key, 0.0):
                return False
            self._left_until.pop(key, None)
            self._taken.add(key)
            return True

    def _leave(self, due: DueSpace, seconds: float) -> None:
        with self._lock:
            self._left_until[due.tenant_id, due.space_id] = monotonic() + seconds

    def _work(self, due: DueSpace, once: bool) -> bool:
        """Claims a space and works on it; whether it did."""
        try:
            claimed = self._claim(due)
            run = None if claimed is None else self._holding(*claimed, due)
        except NotFoundError:  # forgotten since
            run = None
        except StoreUnavailableError:
            raise
        except CofireError as exc:  # its key is not here, or somebody writes in it for very long
            busy = isinstance(exc, StoreBusyError)
            self._leave(due, self._pace.poll if busy else UNUSABLE)
            lag = due.lag / SECOND_US
            run = SpaceRun(space=due.ref, outcome="skipped", lag=lag, error=_told(exc))
        if run is None:
            return False
        self._tell(run, once)
        return run.outcome != "skipped"

    def _claim(self, due: DueSpace) -> tuple[SpaceInfo, Claim] | None:
        """A space that is due, claimed; None: it is gone, or another worker has it."""
        store = self._memories.store
        space = store.space(due.ref, create=False)
        if space is None or space.space_id != due.space_id:
            return None
        claim = store.claim(space, self._holder, self._memories.settings.claim_seconds)
        return None if isinstance(claim, Held) else (space, claim)

    def _holding(self, space: SpaceInfo, claim: Claim, due: DueSpace) -> SpaceRun | None:
        store = self._memories.store
        key = (space.tenant_id, space.space_id)
        with self._lock:
            self._held[key] = (space, claim)
        try:
            with holding(store, space, claim):
                return self._claimed(store.refreshed(space), claim, due)
        finally:
            with self._lock:
                self._held.pop(key, None)
                self._jobs.pop(key, None)

    def _claimed(self, space: SpaceInfo, claim: Claim, due: DueSpace) -> SpaceRun | None:
        """What became of a space that is claimed; None: another worker has seen to it since."""
        store = self._memories.store
        job = store.job(space)
        if not self._pace.is_due(job, space.revision, _now()):
            return None
        self._note_beginning(space, job)
        with self._lock:
            self._jobs[space.tenant_id, space.space_id] = job
        self._meter.began(space.ref)
        started = perf_counter()
        listening = None if self._generator is None else _Listening(self._generator)
        report: SleepReport | None = None
        try:
            report = self._memories.consolidate_claimed(
                space, claim,
                generator=listening, now=datetime.now(UTC), stopped=self._stopping.is_set,
            )  # fmt: skip
            error = _failure(report)
        except NotFoundError:
            raise
        except CofireError as exc:
            error = _told(exc)
        except Exception as exc:  # noqa: BLE001 - a bug that one space meets must not stop the rest
            error = _unexpected(exc)
        run = SpaceRun(
            space=space.ref, outcome="done", lag=due.lag / SECOND_US,
            seconds=perf_counter() - started, error=error, **_sums(report),
        )  # fmt: skip
        return self._noted(space, run, job, report, listening)

    def _noted(
        self,
        space: SpaceInfo,
        run: SpaceRun,
        job: JobRecord | None,
        report: SleepReport | None,
        listening: _Listening | None,
    ) -> SpaceRun:
        """The run with its outcome, which the store knows then. Raises StoreError."""
        store, failures = self._memories.store, _failures(job)
        if report is not None and report.claimed_by is not None:
            return replace(run, outcome="skipped", attempts=failures)
        if run.error is None and report is not None:
            if report.steps and report.steps[-1].skipped == STOPPED:
                self._note_stop(space, job)
                return replace(run, outcome="stopped", attempts=failures)
            store.job_done(space, space.revision, _now())
            return run
        asked = None if listening is None else listening.retry_after
        noted = self._note_failure(
            space, job, run.error or "", self._pace.retry_after(failures + 1, asked), counted=True
        )
        dead = noted.dead is not None
        return replace(run, outcome="dead" if dead else "failed", attempts=noted.attempts)

    def _note_beginning(self, space: SpaceInfo, job: JobRecord | None) -> None:
        """A space is failed until it is done: one that kills whoever works on it (there is not
        memory enough, say) has to be given up, too, and must not keep workers from the others."""
        lease = self._memories.settings.claim_seconds
        wait = self._pace.retry_after(_failures(job) + 1) if _failures(job) else lease
        self._note_failure(space, job, "whoever worked on it ended in the middle", wait)

    def _note_failure(
        self,
        space: SpaceInfo,
        job: JobRecord | None,
        error: str,
        wait: float,
        *,
        counted: bool = False,
    ) -> JobRecord:
        dead = _failures(job) + 1 >= self._pace.attempts
        now = _now()
        again = None if dead else now + round(wait * SECOND_US)
        return self._memories.store.job_failed(space, error, now, again, dead=dead, counted=counted)

    def _note_stop(self, space: SpaceInfo, job: JobRecord | None) -> None:
        """As it was before, to be gone on with at once."""
        if job is None or not job.attempts:
            self._memories.store.retry_job(space)
        else:
            error = job.error or ""
            self._memories.store.job_failed(space, error, _now(), None, counted=True)

    def _tell(self, run: SpaceRun, once: bool) -> None:
        if run.error is not None:
            log = _log.warning if run.outcome == "dead" else _log.info
            log(
                "a space was not consolidated",
                space=str(run.space), outcome=run.outcome, attempts=run.attempts, reason=run.error,
            )  # fmt: skip
        if once:
            with self._lock:
                self._runs.append(run)
        self._meter.ended(run)

    def _let_go(self) -> None:
        """Releases what is still held: whatever is written under it from now on is refused."""
        with self._lock:
            held, jobs = list(self._held.items()), dict(self._jobs)

        def release() -> None:
            for key, (space, claim) in held:
                with suppress(StoreError, NotFoundError):  # it expires by itself
                    if key in jobs:
                        self._note_stop(space, jobs[key])
                    self._memories.store.release_claim(space, claim)

        last = threading.Thread(target=release, name="cofire-worker-release", daemon=True)
        last.start()
        last.join(LAST)


class _Listening:
    """A generator that remembers how long its endpoint asked to be left alone."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self.retry_after: float | None = None

    @property
    def name(self) -> str:
        return self._generator.name

    def generate(self, request: Generation, /) -> Generated:
        try:
            return self._generator.generate(request)
        except GenerationError as exc:
            self.retry_after = exc.retry_after
            raise

    def close(self) -> None:
        """Others use it too."""


def _now() -> int:
    return to_micros(datetime.now(UTC))


def _told(error: CofireError) -> str:
    return f"{type(error).__name__}: {error}"


def _unexpected(error: Exception) -> str:
    """Where a bug is; what it says might repeat what somebody told."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"an unexpected {type(error).__name__} at {at.name}, line {at.lineno}; report it"


def _failure(report: SleepReport) -> str | None:
    """Of the first step that failed."""
    found = (f"{step.name}: {step.error}" for step in report.steps if step.error is not None)
    return next(found, None)


def _sums(report: SleepReport | None) -> dict[str, Any]:
    if report is None:
        return {}
    return {
        "counts": report.counts,
        "calls": report.calls,
        "tokens": report.tokens,
        "cost": report.cost,
    }


def _failures(job: JobRecord | None) -> int:
    return 0 if job is None else job.attempts

"""Numbers for whoever runs the server, as Prometheus reads them. None has content, or a name that
a caller chose: labels are routes, actions, outcomes and stages.

With several workers in one server, each writes its numbers to files of a common folder
(PROMETHEUS_MULTIPROC_DIR), and whichever is asked adds them up.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Literal

import anyio.to_thread
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
    multiprocess,
)

from cofire.answers import Answer
from cofire.errors import StoreError
from cofire.server.service import Answered, Asked, Service
from cofire.server.worker import SpaceRun
from cofire.store.serving_records import Queue
from cofire.types import Recall, SpaceRef

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the histograms' parts."""
MODEL_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
LATE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 5.0)
TICK = 0.05
"""Seconds between two looks at how late the event loop is."""
LOOK = 5.0
"""Seconds between two looks at the queue of background consolidation, which the store answers."""

_Among = Literal["livesum", "livemax"]


class Metrics:
    """Witness of every verb, meter of every answer, told of the stages of every recall."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._shared = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        if not self._shared:
            ProcessCollector(registry=registry)
        self.requests = Counter(
            "cofire_requests", "Verbs asked for.", ["surface", "action", "outcome"],
            registry=registry,
        )  # fmt: skip
        self.errors = Counter(
            "cofire_errors", "Verbs that failed, by class of error.", ["action", "error"],
            registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "cofire_request_seconds", "Time of a verb, its wait for a thread included.",
            ["action"], buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.stages = Histogram(
            "cofire_recall_stage_seconds", "Time of a recall, by stage.",
            ["stage"], buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.abstained = Counter(
            "cofire_recalls_abstained", "Recalls that found nothing worth saying.",
            registry=registry,
        )  # fmt: skip
        self.answered_questions = Counter(
            "cofire_answers", "Answers, by what they are: of a model, extractive, or why none.",
            ["kind"], registry=registry,
        )  # fmt: skip
        self.model_seconds = Histogram(
            "cofire_answer_model_seconds", "Time of the language model over one answer.",
            buckets=MODEL_SECONDS, registry=registry,
        )  # fmt: skip
        self.model_tokens = Counter(
            "cofire_answer_tokens", "Tokens of answers as their endpoint counted them.",
            ["direction"], registry=registry,
        )  # fmt: skip
        self.turns = self._gauge("cofire_answer_turns", "Answers that wait for the model.")
        self.turns_waiting = self._gauge(
            "cofire_answer_turns_waiting", "Answers that wait for their turn of the model."
        )
        self.answers = Counter(
            "cofire_http_requests", "Answers over HTTP.", ["method", "route", "status"],
            registry=registry,
        )  # fmt: skip
        self.answer_seconds = Histogram(
            "cofire_http_seconds", "Time from a request's head to its answer's end.",
            ["route"], buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.in_progress = self._gauge("cofire_http_in_progress", "Requests being answered.")
        self.running = self._gauge("cofire_verbs_running", "Verbs at work or waiting for a thread.")
        self.graph_bytes = self._gauge("cofire_active_graph_bytes", "Active graphs in memory.")
        self.lag = Histogram(
            "cofire_event_loop_lag_seconds", "How late the event loop runs what is due.",
            buckets=LATE, registry=registry,
        )  # fmt: skip
        self.due = self._gauge("cofire_consolidation_due", "Spaces to consolidate now.", "livemax")
        self.oldest = self._gauge(
            "cofire_consolidation_lag_seconds", "How long the oldest of them has been due.",
            "livemax",
        )  # fmt: skip
        self.dead = self._gauge(
            "cofire_consolidation_dead", "Spaces whose consolidation was given up.", "livemax"
        )
        self.waiting = self._gauge(
            "cofire_consolidation_waiting", "Spaces that wait to be tried again.", "livemax"
        )
        self.consolidated = Counter(
            "cofire_consolidations", "Spaces that were due, by what became of them.", ["outcome"],
            registry=registry,
        )  # fmt: skip
        self.consolidation_seconds = Histogram(
            "cofire_consolidation_seconds", "Time of one space.", buckets=SECONDS,
            registry=registry,
        )  # fmt: skip

    def _gauge(self, name: str, about: str, among: _Among = "livesum") -> Gauge:
        return Gauge(name, about, registry=self.registry, multiprocess_mode=among)

    # As a witness of `Service`

    def told(self, asked: Asked, answered: Answered, result: object) -> None:
        """Counts a verb."""
        action = asked.action.value
        self.requests.labels(asked.surface, action, answered.outcome).inc()
        self.seconds.labels(action).observe(answered.seconds)
        if answered.code is not None:
            self.errors.labels(action, answered.code).inc()
        if isinstance(result, Answer):
            self._answered(result)
        recall = result.recall if isinstance(result, Answer) else result
        if isinstance(recall, Recall) and recall.abstain:
            self.abstained.inc()

    def _answered(self, answer: Answer) -> None:
        kind = answer.reason or ("extractive" if answer.extractive else "model")
        self.answered_questions.labels(kind).inc()
        usage = answer.usage
        if usage.calls:
            self.model_seconds.observe(usage.model_seconds)
            self.model_tokens.labels("input").inc(usage.input_tokens)
            self.model_tokens.labels("output").inc(usage.output_tokens)

    def recalled(self, timings: Mapping[str, float]) -> None:
        """Counts the stages of a recall (ms)."""
        for stage, spent in timings.items():
            self.stages.labels(stage).observe(spent / 1e3)

    # As a meter of background consolidation (`worker.WorkerMeter`)

    def began(self, space: SpaceRef) -> None:
        """A space is being worked on."""

    def ended(self, run: SpaceRun) -> None:
        """Counts what became of a space that was due."""
        self.consolidated.labels(run.outcome).inc()
        self.consolidation_seconds.observe(run.seconds)

    def queued(self, queue: Queue) -> None:
        """How much waits."""
        self.due.set(queue.due)
        self.waiting.set(queue.waiting)
        self.dead.set(queue.dead)
        self.oldest.set(queue.oldest / 1e6)

    # As a meter of the middleware

    def begun(self) -> None:
        """Counts a request that is being answered."""
        self.in_progress.inc()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts its answer."""
        self.in_progress.dec()
        self.answers.labels(method, route, str(status)).inc()
        self.answer_seconds.labels(route).observe(seconds)

    # While the application runs

    @asynccontextmanager
    async def watching(self, service: Service, queue: Callable[[], Queue]) -> AsyncIterator[None]:
        """Looks at what nobody tells of: the event loop, sizes, and the `queue` of background
        consolidation, on a thread."""
        tasks = [
            asyncio.create_task(self._watch_loop(service)),
            asyncio.create_task(self._watch_queue(queue)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _watch_loop(self, service: Service) -> None:
        while True:
            due = time.perf_counter() + TICK
            await asyncio.sleep(TICK)
            self.lag.observe(max(0.0, time.perf_counter() - due))
            self.running.set(service.running)
            self.turns.set(service.models.running)
            self.turns_waiting.set(service.models.waiting)
            self.graph_bytes.set(service.memories.graph_bytes)

    async def _watch_queue(self, queue: Callable[[], Queue]) -> None:
        while True:
            with suppress(StoreError):  # the next look may succeed; until then the former counts
                self.queued(await anyio.to_thread.run_sync(queue))
            await asyncio.sleep(LOOK)

    def text(self) -> tuple[bytes, str]:
        """Everything, and its media type."""
        registry = self.registry
        if self._shared:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST

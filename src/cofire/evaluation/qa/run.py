"""Questions of a data set, asked under every arm and seed, answered, scored and judged.

A run goes on where it was stopped, however it was stopped: outcomes are lines of `outcomes.jsonl`,
replies that were paid for are kept by content (`keeping`), and what has an outcome is not asked
again. Recalling and putting contexts together is done by one thread, calls of models by several.

With `learn`, what an answer cites teaches before the next question of the same material is asked:
the questions of a material stand in line then, and materials go side by side. A run that goes on
asks a material from its first question, so that the memory learns what it had learned; kept
replies make that cheap. A question that failed and may succeed later stops its line: what it
would have taught is not skipped.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from cofire.answering.answer import Prepared
from cofire.answers import Answer
from cofire.errors import GenerationError
from cofire.evaluation.qa.answerers import Answerer, Asking, chosen, put, teach
from cofire.evaluation.qa.arms import Arm
from cofire.evaluation.qa.contexts import Evidence, MaterialBench, Shown
from cofire.evaluation.qa.judging import judge
from cofire.evaluation.qa.keeping import Lines
from cofire.evaluation.qa.outcomes import Outcome, OutcomeKey, outcome_line
from cofire.evaluation.qa.pacing import Stop, StoppedError
from cofire.evaluation.qa.planning import Plan, judged, limited
from cofire.evaluation.qa.scores import bleu1, locomo_f1, refuses, token_f1
from cofire.evaluation.qa.tasks import DataSet, Task
from cofire.models import Embedder, Generator
from cofire.retrieval.profiles import Profile
from cofire.types import Progress
from cofire.workings import Workings

AHEAD = 4
"""Questions per thread that are recalled before their turn: enough to keep the threads at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """How a run goes: who answers and judges (`judge_runs` times an answer), under which seeds, the
    first `limit` questions (None: all), `parallel` calls at once. `folds`: the profile of each
    material for arms whose constants are chosen without it."""

    answerer: Answerer
    asking: Asking
    seeds: tuple[int, ...] = (0,)
    judge: Generator | None = None
    judge_runs: int = 1
    limit: int | None = None
    parallel: int = 4
    folds: Mapping[str, Profile] | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question as it was put under an arm, what of its evidence is shown, and the workings of
    the memory that it was put to."""

    task: Task
    arm: Arm
    prepared: Prepared
    evidence: Evidence
    workings: Workings


@dataclass(slots=True)
class _Open:
    """A material at work, and what still needs its stores."""

    bench: MaterialBench
    futures: list[Future[None]]

    def wait(self) -> None:
        """Until none of its work is left."""
        for future in self.futures:
            future.exception()  # who ends the run has heard of it (`Run._ended`)


def _finish(at_work: deque[_Open]) -> None:
    """Wait for the first, and remove it. Where the wait is interrupted it stays at work."""
    at_work[0].wait()
    at_work.popleft().bench.close()


class Run:
    """One go at a plan. `known` are outcomes from before; new ones are added to `lines`."""

    def __init__(
        self,
        data: DataSet,
        arms: Sequence[Arm],
        conduct: Conduct,
        plan: Plan,
        *,
        lines: Lines,
        known: Collection[Outcome],
        stop: Stop,
        embedder: Embedder | str | None = None,
        told: Progress | None = None,
    ) -> None:
        self._data = data
        self._arms = arms
        self._conduct = conduct
        self._plan = plan
        self._lines = lines
        self._known = {one.key: one for one in known}
        self._made: dict[OutcomeKey, Outcome] = {}
        self._done = len(self._in_order())
        self._stop = stop
        self._embedder = embedder
        self._told = told
        self._mutex = threading.Lock()
        self._room = threading.Semaphore(conduct.parallel * AHEAD)

    def go(self) -> tuple[Outcome, ...]:
        """Ask what is due, until all of it is done or the run is to stop. Every outcome there is,
        in the order of arms, seeds and questions. Raises StoreError, EmbeddingError."""
        at_work: deque[_Open] = deque()
        with ThreadPoolExecutor(self._conduct.parallel, "cofire-answer") as pool:
            try:
                for material, tasks in limited(self._data, self._conduct.limit):
                    if self._stop.ended:
                        break
                    if not any(self._due(arm, tasks) for arm in self._arms):
                        continue
                    one = _Open(MaterialBench(material, self._embedder), [])
                    at_work.append(one)
                    self._ask(one, tasks, pool)
                    while len(at_work) > self._conduct.parallel:
                        _finish(at_work)
                while at_work:
                    _finish(at_work)
            except BaseException:  # what is queued is not asked any more; what is asked is kept
                self._stop.because("the run was interrupted")
                raise
            finally:
                while at_work:
                    _finish(at_work)
        return self._in_order()

    def _due(self, arm: Arm, tasks: Sequence[Task]) -> list[tuple[Task, int]]:
        """Questions with seeds that have no outcome yet, or one that failed."""
        return [
            (task, seed)
            for task in tasks
            for seed in self._conduct.seeds
            if (found := self._known.get(OutcomeKey(arm.name, task.id, seed))) is None
            or found.failed
        ]

    def _ask(self, one: _Open, tasks: Sequence[Task], pool: ThreadPoolExecutor) -> None:
        due = {arm.name: self._due(arm, tasks) for arm in self._arms}
        for arm in self._arms:
            if not arm.learn:
                continue
            for seed in sorted({seed for _, seed in due[arm.name]}):
                workings = one.bench.workings(arm, seed)
                self._submit(one, pool, self._line, one.bench, arm, seed, tasks, workings)
        frozen = [arm for arm in self._arms if not arm.learn]
        for task in tasks:
            wanting = [arm for arm in frozen if any(asked is task for asked, _ in due[arm.name])]
            if wanting and not wanting[0].full:
                one.bench.embed(wanting[0], task)
            for arm in wanting:
                seeds = [seed for asked, seed in due[arm.name] if asked is task]
                if self._stop.ended:
                    return
                asked = self._put(one.bench, arm, task, one.bench.workings(arm))
                for seed in seeds:
                    self._submit(one, pool, self._one, _seeded(asked, seed), seed)

    def _submit(
        self, one: _Open, pool: ThreadPoolExecutor, work: Callable[..., object], *given: object
    ) -> None:
        self._room.acquire()
        try:
            future: Future[None] = pool.submit(self._worked, work, given)
        except BaseException:
            self._room.release()
            raise
        future.add_done_callback(self._ended)
        one.futures.append(future)

    def _worked(self, work: Callable[..., object], given: tuple[object, ...]) -> None:
        if not self._stop.ended:
            work(*given)

    def _ended(self, future: Future[None]) -> None:
        self._room.release()
        error = future.exception()
        if isinstance(error, Exception) and not isinstance(error, StoppedError):
            self._stop.because(str(error), error)

    def _put(self, bench: MaterialBench, arm: Arm, task: Task, workings: Workings) -> _Asked:
        folds = self._conduct.folds or {}
        prepared = put(
            bench, task, arm, self._conduct.asking,
            workings=workings,
            profile=folds[bench.material.name] if arm.left_out else None,
            with_model=self._conduct.answerer.generator is not None,
        )  # fmt: skip
        evidence = Shown.by(prepared.context).of(bench.evidence(task))
        return _Asked(task, arm, prepared, evidence, workings)

    def _one(self, asked: _Asked, seed: int) -> Answer | None:
        """Answer, score, judge and write down one question; None where there is no answer that
        stays."""
        answerer, conduct = self._conduct.answerer, self._conduct
        try:
            answer = answerer.answer(asked.workings, asked.prepared, asked.task, asked.evidence)
        except GenerationError as exc:
            self._write(_failed(asked, seed, str(exc), self._data, self._judged(asked.task)))
            return None if exc.retryable else _unanswered(asked)
        outcome = _scored(asked, seed, answer, self._data, answerer)
        if self._judged(asked.task) and conduct.judge is not None:
            outcome = self._with_verdicts(outcome, asked.task, conduct.judge)
        self._write(outcome)
        return answer

    def _judged(self, task: Task) -> int:
        """How often an answer is judged; 0: not."""
        due = self._conduct.judge is not None and judged(self._data, task)
        return self._conduct.judge_runs if due else 0

    def _with_verdicts(self, outcome: Outcome, task: Task, generator: Generator) -> Outcome:
        runs = self._conduct.judge_runs
        try:
            found = judge(generator, task, outcome.text, runs=runs, seed=outcome.seed)
        except GenerationError as exc:
            return replace(outcome, judged=(None,) * runs, failed=f"judge: {exc}")
        return replace(
            outcome,
            judged=tuple(one.right for one in found),
            judge_input_tokens=sum(one.input_tokens for one in found),
            judge_output_tokens=sum(one.output_tokens for one in found),
        )

    def _line(
        self,
        bench: MaterialBench,
        arm: Arm,
        seed: int,
        tasks: Sequence[Task],
        workings: Workings,
    ) -> None:
        """All questions of a material in their order, each of a memory that the ones before
        taught."""
        for task in tasks:
            if self._stop.ended:
                return
            asked = _seeded(self._put(bench, arm, task, workings), seed)
            answer = self._one(asked, seed)
            if answer is None:
                return
            teach(workings, answer, bench.now(task))

    def _write(self, outcome: Outcome) -> None:
        with self._mutex:
            known = self._known.get(outcome.key)
            if known is None or known.failed:  # a line is walked again from its first question
                self._lines.add(outcome_line(outcome))
                self._made[outcome.key] = outcome
                self._done += known is None
            if self._told is not None:
                self._told(self._done, self._plan.outcomes)

    def _in_order(self) -> tuple[Outcome, ...]:
        found = {**self._known, **self._made}
        keys = (
            OutcomeKey(arm.name, task, seed)
            for arm in self._arms
            for seed in self._conduct.seeds
            for task in self._plan.order
        )
        return tuple(found[key] for key in keys if key in found)


def _seeded(asked: _Asked, seed: int) -> _Asked:
    request = asked.prepared.request
    rule = replace(asked.prepared.rule, seed=seed)
    seeded = None if request is None else replace(request, seed=seed)
    return replace(asked, prepared=replace(asked.prepared, rule=rule, request=seeded))


def _scored(asked: _Asked, seed: int, answer: Answer, data: DataSet, answerer: Answerer) -> Outcome:
    task = asked.task
    # An extractive sentence in place of an unusable reply would credit the model with it.
    stood_in = answer.extractive and answerer.generator is not None
    text = "" if stood_in else answer.text
    declined = refuses(text)  # models do so in words of their own, too
    outcome = _bare(asked, seed)
    # An oracle says the key's own words, or nothing: its scores would say no more than `right`.
    scored = not task.choices and not answerer.kind.startswith("oracle")
    choice = chosen(replace(answer, text=text), task, answerer.kind) if task.choices else None
    return replace(
        outcome,
        text=text,
        abstained=(answer.abstained and not stood_in) or declined,
        reason="failed" if stood_in else answer.reason or ("evidence" if declined else ""),
        f1=_f1(text, task, data) if scored else None,
        bleu1=_bleu1(text, task) if scored else None,
        right=_right(asked, answer, answerer, None if choice is None else choice.index),
        input_tokens=answer.usage.input_tokens,
        output_tokens=answer.usage.output_tokens,
        cost=answer.usage.cost,
        seconds=answer.usage.model_seconds,
        context_tokens=answer.context.tokens,
        malformed=answer.malformed if choice is None else choice.malformed,
    )  # fmt: skip


def _f1(text: str, task: Task, data: DataSet) -> float | None:
    if data.name == "locomo" and (task.answer is not None or task.unanswerable):
        return locomo_f1(text, task.group, task.answer)
    return None if task.answer is None or task.unanswerable else token_f1(text, task.answer)


def _bleu1(text: str, task: Task) -> float | None:
    return None if task.answer is None or task.unanswerable else bleu1(text, task.answer)


def _right(asked: _Asked, answer: Answer, answerer: Answerer, choice: int | None) -> bool | None:
    task = asked.task
    if answerer.kind.startswith("oracle") and not (asked.evidence.wanted or task.unanswerable):
        return None  # it sees nothing but evidence, and there is none to be seen
    if task.choices and task.right is not None:
        return choice == task.right
    if not answerer.kind.startswith("oracle"):
        return None
    if task.unanswerable:
        return answer.abstained
    return not answer.abstained


def _failed(asked: _Asked, seed: int, why: str, data: DataSet, judge_runs: int) -> Outcome:
    """No reply counts as a wrong answer, wherever one would count, until the next run tries
    again."""
    task = asked.task
    return replace(
        _bare(asked, seed),
        f1=None if task.choices else _f1("", task, data),
        bleu1=None if task.choices else _bleu1("", task),
        right=False if task.choices and task.right is not None else None,
        judged=(False,) * judge_runs,
        failed=why,
    )


def _unanswered(asked: _Asked) -> Answer:
    """What stands for an answer that there never will be: it teaches nothing."""
    found = asked.prepared
    return Answer(
        question=found.question.text, text="", marked="", abstained=True, reason="failed",
        recall=found.recall, context=found.context,
    )  # fmt: skip


def _bare(asked: _Asked, seed: int) -> Outcome:
    task, prepared = asked.task, asked.prepared
    return Outcome(
        arm=asked.arm.name, task=task.id, material=task.material, group=task.group, seed=seed,
        question=task.question, gold=task.answer, text="", abstained=False, reason="failed",
        unanswerable=task.unanswerable, evidence=asked.evidence.wanted,
        evidence_found=len(asked.evidence.found), confidence=prepared.recall.confidence,
        context_tokens=prepared.context.tokens, recall_ms=1e3 * prepared.seconds,
    )  # fmt: skip

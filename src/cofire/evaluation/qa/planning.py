"""What a run is going to ask, and about what it will take, before anything is paid for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cofire.consolidation.fencing import estimated_tokens
from cofire.errors import InputError
from cofire.evaluation.qa.answerers import Answerer
from cofire.evaluation.qa.arms import Arm
from cofire.evaluation.qa.outcomes import OutcomeKey
from cofire.evaluation.qa.tasks import DataSet, Material, Task

PROMPT = 450
"""Tokens of instructions and question around a context, about."""
MEMORY = 45
"""Tokens of one memory, about: a turn of LoCoMo with its label and day."""
ANSWER = 25
"""Tokens of a short answer with its citations, about."""
JUDGED, VERDICT = 550, 60
"""Tokens of a judge's prompt and of its verdict, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many materials and questions, and how many outcomes of them under all arms and seeds, of
    which `due` are still to be made. `calls` of the model and `judge_calls` are the most there can
    be: refused questions, prompts that are the same and replies that are kept take none. Tokens and
    cost are estimates for all of these."""

    materials: int
    questions: int
    outcomes: int
    due: int
    calls: int
    judge_calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    order: tuple[str, ...]
    """The ids of the questions."""


def limited(data: DataSet, limit: int | None) -> Iterator[tuple[Material, tuple[Task, ...]]]:
    """The materials with the questions that are asked: all, or the first `limit` of the data."""
    left = limit
    for material in data.materials():
        tasks = material.tasks if left is None else material.tasks[:left]
        if tasks:
            yield material, tasks
        if left is not None:
            left -= len(tasks)
            if left <= 0:
                return


def seeds_of(answerer: Answerer, seeds: Sequence[int]) -> tuple[int, ...]:
    """The seeds that make a difference: where no model answers, the first."""
    return tuple(dict.fromkeys(seeds)) if answerer.varies else tuple(seeds[:1])


def plan_of(
    data: DataSet,
    arms: Sequence[Arm],
    answerer: Answerer,
    *,
    seeds: Sequence[int],
    limit: int | None = None,
    judge_runs: int = 0,
    done: Collection[OutcomeKey] = (),
    window: int = 100_000,
) -> Plan:
    """Reads the data once. `done` are outcomes that are there already, `judge_runs` calls of the
    judge per answer (0: no judge). Raises FormatError, NotFoundError, and InputError where nothing
    is asked."""
    counted = _Counted()
    chosen = seeds_of(answerer, seeds)
    for material, tasks in limited(data, limit):
        counted.materials += 1
        whole = sum(estimated_tokens(message.content) + 8 for message in material.messages)
        for task in tasks:
            counted.order.append(task.id)
            for arm in arms:
                due = sum(OutcomeKey(arm.name, task.id, seed) not in done for seed in chosen)
                counted.due += due
                if answerer.generator is not None:
                    counted.calls += due
                    counted.context += due * min(_context(arm, window), whole)
                if judge_runs and judged(data, task):
                    counted.judge_calls += due * judge_runs
    if not counted.order:
        raise InputError("there is no question to ask")
    return counted.plan(answerer, len(arms) * len(chosen))


def judged(data: DataSet, task: Task) -> bool:
    """Whether a judge has something to say of a question: not of choices, which are right or not,
    nor of groups that stay out of the averages, which have a rule of their own, nor where there is
    nothing to judge by."""
    known = task.answer is not None or task.unanswerable
    return known and not task.choices and task.group not in data.scored_apart


class _Counted:
    """Sums over what was read so far."""

    def __init__(self) -> None:
        self.materials = self.due = self.calls = self.judge_calls = self.context = 0
        self.order: list[str] = []

    def plan(self, answerer: Answerer, columns: int) -> Plan:
        input_tokens = self.context + self.calls * PROMPT + self.judge_calls * JUDGED
        output_tokens = self.calls * ANSWER + self.judge_calls * VERDICT
        prices = answerer.spending
        cost = 0.0
        if prices is not None:
            spent = input_tokens * prices.input_price + output_tokens * prices.output_price
            cost = spent / 1e6
        return Plan(
            materials=self.materials, questions=len(self.order),
            outcomes=len(self.order) * columns, due=self.due,
            calls=self.calls, judge_calls=self.judge_calls,
            input_tokens=input_tokens, output_tokens=output_tokens, cost=cost,
            order=tuple(self.order),
        )  # fmt: skip


def _context(arm: Arm, window: int) -> int:
    if arm.full:
        return window
    return arm.k * MEMORY if arm.tokens is None else arm.tokens

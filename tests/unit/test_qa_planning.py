"""What a run is going to ask, and what is asked of it at most."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cofire.answering.answer import Spending
from cofire.errors import InputError
from cofire.evaluation.qa.answerers import Answerer
from cofire.evaluation.qa.arms import Arm, arms_for
from cofire.evaluation.qa.outcomes import OutcomeKey
from cofire.evaluation.qa.planning import limited, plan_of
from cofire.evaluation.qa.tasks import DataSet, Material, Task
from cofire.interchange.report import ImportReport
from cofire.models import Generated, Generation
from cofire.types import Message

NOW = datetime(2024, 5, 1, tzinfo=UTC)


class Silent:
    """A model that is never asked."""

    name = "openai:silent"

    def generate(self, request: Generation, /) -> Generated:
        raise AssertionError("nothing is to be paid for")

    def close(self) -> None:
        pass


def material(name: str, groups: tuple[str, ...]) -> Material:
    tasks = tuple(
        Task(id=f"{name}/{at}", material=name, group=group, question="Who?", answer="Ada")
        for at, group in enumerate(groups)
    )
    messages = (Message(content="Ada was here. " * 40, key="1"),)
    return Material(name=name, messages=messages, now=NOW, tasks=tasks)


MATERIALS = (material("a", ("easy", "easy", "apart")), material("b", ("easy", "hard")))
DATA = DataSet(
    name="locomo", materials=lambda: iter(MATERIALS), counts={},
    scored_apart=frozenset({"apart"}), key="published", report=ImportReport(source="x.json"),
)  # fmt: skip
MODEL = Answerer(kind="model", generator=Silent(), spending=Spending(input_price=1.0))
ARMS: tuple[Arm, ...] = arms_for(("cofire",), tokens=(500, 1000))


@pytest.mark.parametrize(("limit", "asked"), [(None, [3, 2]), (2, [2]), (4, [3, 1]), (9, [3, 2])])
def test_a_limit_takes_the_first_questions(limit: int | None, asked: list[int]) -> None:
    assert [len(tasks) for _, tasks in limited(DATA, limit)] == asked


def test_calls_are_counted_by_arm_seed_and_judge() -> None:
    plan = plan_of(DATA, ARMS, MODEL, seeds=(0, 1), judge_runs=3)
    assert (plan.materials, plan.questions, plan.outcomes) == (2, 5, 20)
    assert (plan.due, plan.calls, plan.judge_calls) == (20, 20, 4 * 2 * 2 * 3)
    assert plan.order == ("a/0", "a/1", "a/2", "b/0", "b/1")
    assert plan.cost == pytest.approx(plan.input_tokens / 1e6)


def test_what_is_done_is_not_asked_again() -> None:
    done = {OutcomeKey("cofire @500", "a/0", 0), OutcomeKey("cofire @1000", "b/1", 0)}
    assert plan_of(DATA, ARMS, MODEL, seeds=(0,), done=done).calls == 8


def test_no_context_is_larger_than_the_material() -> None:
    small = plan_of(DATA, ARMS, MODEL, seeds=(0,))
    large = plan_of(DATA, arms_for(("cofire",), tokens=(90_000,)), MODEL, seeds=(0,))
    assert large.input_tokens / large.calls <= small.input_tokens / small.calls


def test_without_a_model_there_is_one_seed_and_no_call() -> None:
    plan = plan_of(DATA, ARMS, Answerer(kind="oracle"), seeds=(0, 1, 2))
    assert (plan.outcomes, plan.calls, plan.cost) == (10, 0, 0.0)


def test_nothing_to_ask_is_an_error() -> None:
    empty = DataSet(
        name="locomo", materials=lambda: iter(()), counts={}, scored_apart=frozenset(),
        key="published", report=ImportReport(source="x.json"),
    )  # fmt: skip
    with pytest.raises(InputError, match="no question"):
        plan_of(empty, ARMS, MODEL, seeds=(0,))

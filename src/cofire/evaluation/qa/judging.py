"""A language model as judge: is an answer right, measured against the gold answer?

The prompts are files of ours (`prompts`), one for each way of being right. Question, gold answer
and answer stand in the request as data between marks that no answer can foresee or close; the reply
is read by `verdicts` and never trusted to have a form. How far a judge can be believed is measured
on a labelled sample: `judge_agreement`, `cofire evaluate judge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cofire.consolidation.fencing import fenced_lines, json_line
from cofire.errors import PromptTooLongError
from cofire.evaluation.qa.agreement import majority
from cofire.evaluation.qa.prompts import load
from cofire.evaluation.qa.tasks import Task
from cofire.evaluation.qa.verdicts import Verdict, read_verdict
from cofire.models.generator import Generated, Generation, Generator

MAX_TOKENS = 1_000
"""Tokens of a reply: its reason is short, but some models think before they write."""
LONGEST = 8_000
"""Characters of an answer that a judge reads; of more, the beginning and the end."""

PROMPTS: Mapping[str, str] = {
    "temporal": "judge-date",
    "temporal-reasoning": "judge-interval",
    "knowledge-update": "judge-update",
    "single-session-preference": "judge-preference",
}
"""Group of a task → the prompt for it; other groups: "judge". What cannot be answered goes to
"judge-abstention", whatever its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one run of a judge said of one answer.

    `right` is None where the reply cannot be used; `unusable` then says why (`verdicts.Verdict`,
    and "too long" where the model takes no such long request). `why` is the judge's reason,
    `prompt` the prompt's name and version, `model` the judge. Tokens and `seconds` are what the
    call took; an empty answer is wrong without one.
    """

    right: bool | None
    why: str = ""
    unusable: str = ""
    prompt: str
    model: str
    seed: int
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


def prompt_for(task: Task) -> str:
    """The name of the prompt by which answers to a task are judged."""
    return "judge-abstention" if task.unanswerable else PROMPTS.get(task.group, "judge")


def judge_request(task: Task, text: str, *, seed: int = 0, temperature: float = 0.0) -> Generation:
    """What a judge is asked about the answer `text`. Raises ValueError where there is nothing to
    judge by: no gold answer to a question that has one."""
    if task.answer is None and not task.unanswerable:
        raise ValueError(f"task {task.id} has no gold answer to judge by")
    values: dict[str, Any] = {"question": task.question}
    if task.answer is not None:
        values["gold"] = task.answer
    if task.unanswerable and task.trap:
        values["trap"] = task.trap
    values["answer"] = _bounded(text)
    mark, fenced = fenced_lines([json_line(values)], "DATA")
    return load(prompt_for(task)).about(
        {"mark": mark, "fenced": fenced},
        max_tokens=MAX_TOKENS,
        temperature=temperature,
        seed=seed,
    )


def judge(
    generator: Generator,
    task: Task,
    text: str,
    *,
    runs: int = 1,
    seed: int = 0,
    temperature: float = 0.0,
) -> tuple[Judgement, ...]:
    """What a judge says of the answer `text`, asked `runs` times with the seeds `seed`, `seed` + 1
    and so on.

    A reply that cannot be used is a Judgement without a verdict. An endpoint that gives no reply is
    no matter of judging: GenerationError and ConfigurationError are raised.

    Raises:
        ValueError: `runs` is below 1, or the task has no gold answer to judge by.
    """
    if runs < 1:
        raise ValueError(f"a judge runs at least once, not {runs} times")
    return tuple(_judged(generator, task, text, seed + run, temperature) for run in range(runs))


def _judged(
    generator: Generator, task: Task, text: str, seed: int, temperature: float
) -> Judgement:
    request = judge_request(task, text, seed=seed, temperature=temperature)
    generated: Generated | None = None
    if not text.strip():
        verdict, calls = Verdict(False, why="the answer is empty"), 0
    else:
        calls = 1
        try:
            generated = generator.generate(request)
            verdict = read_verdict(generated.text, generated.finish)
        except PromptTooLongError:
            verdict = Verdict(None, unusable="too long")
    took = generated or Generated(text="")
    return Judgement(
        right=verdict.right,
        why=verdict.why,
        unusable=verdict.unusable,
        prompt=str(load(prompt_for(task))),
        model=generator.name,
        seed=seed,
        calls=calls,
        input_tokens=took.input_tokens,
        output_tokens=took.output_tokens,
        seconds=took.seconds,
    )


def verdict_of(judgements: Sequence[Judgement]) -> bool | None:
    """What most of the usable judgements say; see `majority`."""
    return majority([one.right for one in judgements])


def _bounded(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} […] {text[-half:]}"

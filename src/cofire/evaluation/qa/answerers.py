"""Who answers: a language model, nobody (the sentence that fits best), or an oracle.

The oracle sees what a model would see, the context, and nothing else. It gives the right answer if
and only if the turns that the answer rests on stand there, and says "not mentioned" otherwise. Its
accuracy is the most that any model could reach with these contexts, short of guessing; what it
measures is recall, at a price in tokens. What it answers it cites, so that it can teach, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, get_args

from cofire.answering.answer import (
    AnswerRule,
    Prepared,
    Spending,
    completed,
    learned,
    prepare,
    prepared_with,
)
from cofire.answering.pending import generated
from cofire.answering.replies import choice_of
from cofire.answers import Answer, Citation
from cofire.evaluation.arms import TRUSTED
from cofire.evaluation.qa.arms import Arm
from cofire.evaluation.qa.contexts import Evidence, MaterialBench
from cofire.evaluation.qa.scores import token_f1
from cofire.evaluation.qa.tasks import Task
from cofire.models import Generator
from cofire.recalling import Question
from cofire.retrieval.profiles import Profile
from cofire.workings import Workings

Kind = Literal["oracle", "oracle-any", "extractive", "model"]
"""Who answers. "oracle-any" is content with one of the evidence turns."""

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How every question is put. `prompt` names one for open questions; those with choices have
    their own. `max_tokens` bounds a reply, `temperature` is in [0, 2], `window` the wordpieces of a
    full context. `prompts` is a folder whose files replace ours."""

    prompt: str = "short"
    prompts: str | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    window: int = 100_000

    def rule(self, arm: Arm, task: Task, profile: Profile) -> AnswerRule:
        """For one question under an arm, recalled by `profile`."""
        return AnswerRule(
            tokens=arm.tokens, k=arm.k, semantic=arm.semantic, profile=profile, gate=arm.gate,
            prompt="choice" if task.choices else self.prompt, prompts=self.prompts,
            max_tokens=self.max_tokens, temperature=self.temperature, choices=task.choices,
        )  # fmt: skip


def put(
    bench: MaterialBench,
    task: Task,
    arm: Arm,
    asking: Asking,
    *,
    workings: Workings,
    profile: Profile | None = None,
    with_model: bool,
) -> Prepared:
    """A question as it is put: recalled, with its context and the request that is due. `profile`
    takes the place of the arm's. Raises InputError, ConfigurationError, StoreError,
    EmbeddingError."""
    rule = asking.rule(arm, task, profile or arm.profile)
    question = Question(text=workings.encoder.clean(task.question), now=bench.now(task))
    if not arm.full:
        return prepare(workings, question, rule, with_model=with_model)
    recall, context = bench.whole(arm, asking.window)
    found = replace(recall, query=task.question)
    return prepared_with(question, rule, found, context, with_model=with_model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerer:
    """`generator`: the model, for kind "model"; `spending`: what its tokens cost."""

    kind: Kind
    generator: Generator | None = None
    spending: Spending | None = None

    @property
    def name(self) -> str:
        return self.kind if self.generator is None else self.generator.name

    @property
    def varies(self) -> bool:
        """Whether it may answer otherwise under another seed."""
        return self.kind == "model"

    def answer(
        self, workings: Workings, prepared: Prepared, task: Task, evidence: Evidence
    ) -> Answer:
        """What it says. Raises GenerationError where a model gives no reply."""
        if self.kind in {"oracle", "oracle-any"}:
            return self._foretold(prepared, task, evidence)
        if self.generator is None:
            return completed(prepared, None)
        prepared, reply = generated(workings, prepared, self.generator)
        return completed(prepared, reply, model=self.name, spending=self.spending)

    def _foretold(self, prepared: Prepared, task: Task, evidence: Evidence) -> Answer:
        bare = completed(replace(prepared, reason=prepared.reason or "evidence"), None)
        enough = evidence.any if self.kind == "oracle-any" else evidence.all
        if prepared.reason or not (enough or task.unanswerable):
            return bare
        text = _gold(task)
        cited = tuple(
            Citation(id=entry.id, text=entry.quote, time=entry.time, label=entry.label)
            for entry in prepared.context.entries
            if entry.id in evidence.found
        )
        return replace(
            bare, text=text, marked=text, citations=cited, abstained=False, reason="",
            model=self.kind,
        )  # fmt: skip


def _gold(task: Task) -> str:
    if task.choices and task.right is not None:
        return task.choices[task.right]
    return (task.trap if task.unanswerable else task.answer) or "Yes."


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which choice an answer is (None: none, or several), and what was wrong with the reply."""

    index: int | None
    malformed: str


def chosen(answer: Answer, task: Task, kind: Kind) -> Chosen:
    """The choice that an answer is: of a model the letter it names, of anybody else the choice
    that shares most words with what was said."""
    if answer.abstained or not answer.text:
        return Chosen(None, answer.malformed)
    if kind == "model":
        index = choice_of(answer.text, len(task.choices))
        return Chosen(index, answer.malformed or ("" if index is not None else "choice"))
    scores = [token_f1(answer.text, choice) for choice in task.choices]
    best = max(scores)
    return Chosen(scores.index(best) if best > 0.0 else None, answer.malformed)


def teach(workings: Workings, answer: Answer, now: datetime) -> None:
    """What was cited becomes weak positive feedback, as in use; of an extractive answer nothing."""
    learned(workings, answer, by=TRUSTED, now=now)

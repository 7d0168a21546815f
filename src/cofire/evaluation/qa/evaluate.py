"""One evaluation, from a data set and a folder to its result.

The folder has `run.json` (what the run is, so that nothing else is mixed into it), `replies.jsonl`
and `outcomes.jsonl`. The same call again goes on where it was stopped; with more arms, seeds or
questions it adds those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import cofire
from cofire.answering import prompts
from cofire.answering.answer import Spending
from cofire.consolidation.budgets import Budget, Spent
from cofire.errors import CofireError
from cofire.evaluation.qa import prompts as judge_prompts
from cofire.evaluation.qa.answerers import Answerer, Asking, Kind
from cofire.evaluation.qa.arms import Arm
from cofire.evaluation.qa.contexts import MaterialBench
from cofire.evaluation.qa.figures import figures_of
from cofire.evaluation.qa.identity import (
    CODE,
    OUTCOMES,
    claim,
    code_digest,
    digest_of,
    refuse_other,
)
from cofire.evaluation.qa.keeping import KeptGenerator, KeptReplies, Lines, RunFolder
from cofire.evaluation.qa.mechanisms import mechanism_figures
from cofire.evaluation.qa.outcomes import Outcome, read_outcomes
from cofire.evaluation.qa.pacing import PacedGenerator, Pacer, Stop
from cofire.evaluation.qa.planning import Plan, plan_of, seeds_of
from cofire.evaluation.qa.run import Conduct, Run
from cofire.evaluation.qa.tasks import DataSet, Task
from cofire.evaluation.tuning import cross_validated
from cofire.interchange.files import existing
from cofire.memory import Memory
from cofire.models import Generated, Generator, make_embedder
from cofire.models.verifying import VerifiedGenerator
from cofire.retrieval.profiles import Profile
from cofire.settings import load_settings
from cofire.types import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`parallel` calls at once, `requests` and `tokens` a minute; `calls`, `all_tokens` and `cost`
    of everything that the folder keeps, this run's and earlier ones'; a judge's tokens count
    towards `cost` at the prices of the model that answers. None: no limit. A call that fails in
    passing is made `attempts` times in all."""

    parallel: int = 4
    requests: int | None = None
    tokens: int | None = None
    calls: int | None = None
    all_tokens: int | None = None
    cost: float | None = None
    attempts: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What is to be evaluated. `source` names the data in the result, `digest` is its content's.
    `model` answers where `answer` is "model"; `judge` judges. Both should make one attempt per
    call: whoever paces them tries again. `endpoint` is the address they are asked at ("": none, or
    this machine): there, a name may mean another model; results keep a digest of it."""

    data: DataSet
    source: str
    digest: str
    arms: tuple[Arm, ...]
    answer: Kind
    asking: Asking = field(default_factory=Asking)
    model: Generator | None = None
    judge: Generator | None = None
    judge_runs: int = 1
    seeds: tuple[int, ...] = (0,)
    limit: int | None = None
    endpoint: str = ""
    spending: Spending = field(default_factory=Spending)
    embedder: str = "minilm"

    @property
    def answerer(self) -> Answerer:
        return Answerer(kind=self.answer, generator=self.model, spending=self.spending)

    @property
    def runs_of_judge(self) -> int:
        return self.judge_runs if self.judge is not None else 0

    def arm_digests(self) -> dict[str, str]:
        """What each arm is, to the last constant, by its name."""
        return {arm.name: digest_of(arm) for arm in self.arms}

    def about(self) -> dict[str, Any]:
        """What an outcome depends on besides arm, seed and question: what must be the same for
        outcomes to stand in one file."""
        prompt = prompts.load(self.asking.prompt, self.asking.prompts)
        choice = prompts.load("choice", self.asking.prompts)
        judging = [judge_prompts.load(name) for name in judge_prompts.NAMES]
        return {
            "benchmark": self.data.name,
            "key": self.data.key,
            "data": self.digest,
            "answer": self.answer,
            "model": self.answerer.name,
            "judge": None if self.judge is None else self.judge.name,
            "endpoint": digest_of(self.endpoint) if self.endpoint else None,
            "judge_runs": self.runs_of_judge,
            "judge_prompts": (
                {str(one): one.digest for one in judging} if self.judge is not None else {}
            ),
            "prompts": {str(one): one.digest for one in (prompt, choice)},
            "temperature": self.asking.temperature,
            "max_tokens": self.asking.max_tokens,
            "window": self.asking.window,
            "embedder": self.embedder,
            "cofire": cofire.__version__,
            CODE: code_digest(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """What came of it. `stopped` says why not everything was asked ("": it was), `error` what
    stopped it (None: a budget, or questions that wait for one that failed). `spent` is this run's;
    `kept` replies are in the folder, `damaged` lines of it say nothing."""

    evaluation: Evaluation
    outcomes: tuple[Outcome, ...]
    plan: Plan
    stopped: str
    error: CofireError | None
    spent: Spent
    kept: int
    damaged: int

    @property
    def left(self) -> int:
        """Outcomes that are still due."""
        return self.plan.outcomes - sum(not one.failed for one in self.outcomes)


def check_folder(evaluation: Evaluation, folder: Path) -> None:
    """See that the folder, if it is there, is of this run. Raises InputError, FormatError."""
    refuse_other(folder, evaluation.about(), evaluation.arm_digests())


def planned(evaluation: Evaluation, folder: Path | None = None) -> Plan:
    """What `evaluate` would ask, in a folder of this run (`check_folder`). Raises FormatError,
    InputError, NotFoundError."""
    known = () if folder is None else read_outcomes(folder / OUTCOMES)
    return plan_of(
        evaluation.data, evaluation.arms, evaluation.answerer,
        seeds=evaluation.seeds, limit=evaluation.limit, judge_runs=evaluation.runs_of_judge,
        done={one.key for one in known if not one.failed}, window=evaluation.asking.window,
    )  # fmt: skip


def evaluate(
    evaluation: Evaluation,
    folder: Path,
    limits: Limits | None = None,
    *,
    progress: Callable[[str], Progress] | None = None,
) -> Evaluated:
    """Ask what has no outcome in the folder yet.

    Raises InputError (the folder is of another run; nothing to ask), StoreBusyError (another
    process works in it), StoreError, FormatError, NotFoundError, EmbeddingError. An endpoint that
    refuses, a budget that is used up: see `Evaluated.stopped`.
    """
    bounds = limits or Limits()
    stage = progress or (lambda _: lambda done, total: None)
    stop = Stop()
    with ExitStack() as stack:
        stack.enter_context(RunFolder(folder))
        claim(folder, evaluation.about(), evaluation.arm_digests())
        # Held here, it is loaded once, and its vectors are kept from one material to the next.
        stack.callback(make_embedder(load_settings(embedder=evaluation.embedder)).close)
        lines = Lines(folder / OUTCOMES, durable=False)
        stack.callback(lines.close)
        kept = KeptReplies(folder)
        stack.callback(kept.close)
        known = read_outcomes(folder / OUTCOMES)
        plan = planned(evaluation, folder)
        budget = _budget(kept, bounds, evaluation.spending)
        pacer = Pacer(requests=bounds.requests, tokens=bounds.tokens, wait=stop.wait)

        def connected(inner: Generator) -> Generator:
            verified, attempts = VerifiedGenerator(inner), bounds.attempts
            paced = PacedGenerator(
                verified, pacer=pacer, budget=budget, stop=stop, attempts=attempts
            )
            return KeptGenerator(paced, kept)

        model, judge = (
            None if one is None else connected(one) for one in (evaluation.model, evaluation.judge)
        )
        answerer = replace(evaluation.answerer, generator=model)
        conduct = Conduct(
            answerer=answerer,
            asking=evaluation.asking,
            seeds=seeds_of(answerer, evaluation.seeds),
            judge=judge,
            judge_runs=evaluation.judge_runs,
            limit=evaluation.limit,
            parallel=bounds.parallel,
            folds=_folds(evaluation, plan, stage),
        )
        outcomes = Run(
            evaluation.data, evaluation.arms, conduct, plan,
            lines=lines, known=known, stop=stop, embedder=evaluation.embedder,
            told=stage("asking"),
        ).go()  # fmt: skip
        if stop.error is not None and not isinstance(stop.error, CofireError):
            raise stop.error
        priced = tuple(_priced(one, evaluation) for one in outcomes)
        return Evaluated(
            evaluation=evaluation, outcomes=priced, plan=plan, stopped=stop.reason,
            error=stop.error, spent=budget.spent, kept=len(kept), damaged=kept.damaged,
        )  # fmt: skip


def result_of(evaluated: Evaluated, *, command: str | None = None) -> dict[str, Any]:
    """The result as JSON: what reports and comparisons read."""
    evaluation = evaluated.evaluation
    thresholds = {
        arm.name: arm.profile.gate.threshold
        for arm in evaluation.arms
        if arm.gate and arm.profile.gate is not None
    }
    figures = figures_of(evaluated.outcomes, evaluation.data, thresholds=thresholds)
    about = evaluation.about()
    settings = {name: about[name] for name in sorted(about.keys() - {"benchmark", "key"})}
    settings |= {
        "source": evaluation.source, "seeds": list(seeds_of(evaluation.answerer, evaluation.seeds)),
        "limit": evaluation.limit, "learn": any(arm.learn for arm in evaluation.arms),
        "slept": any(arm.slept for arm in evaluation.arms),
        "complete": not evaluated.left,
    }  # fmt: skip
    figures["model"] = about["model"]
    figures["ablations"] = mechanism_figures(figures, evaluated.outcomes)
    return {
        **figures,
        "judge": about["judge"],
        "cofire": about["cofire"],
        "settings": settings,
        "command": command,
        "outcomes": [asdict(one) for one in evaluated.outcomes],
    }


def content_digest(path: Path) -> str:
    """The beginning of a file's SHA-256, 16 hexadecimal digits. Raises NotFoundError."""
    with existing(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def folder_name(evaluation: Evaluation) -> str:
    """The folder of a run that was given none: the same for whatever can stand in one. A change of
    the code alone finds the folder, and in it the replies that were paid for."""
    about = {name: value for name, value in evaluation.about().items() if name != CODE}
    return f"{evaluation.data.name}-{digest_of(about)[:12]}"


def _priced(outcome: Outcome, evaluation: Evaluation) -> Outcome:
    """By today's prices: the folder may have outcomes from before these were changed."""
    if evaluation.model is None:
        return outcome
    took = Generated(
        text="", input_tokens=outcome.input_tokens, output_tokens=outcome.output_tokens
    )
    return replace(outcome, cost=evaluation.spending.cost(took))


def _budget(kept: KeptReplies, limits: Limits, prices: Spending) -> Budget:
    """What is left for this run of the limits on everything the folder keeps."""
    tokens = kept.input_tokens + kept.output_tokens
    spent = kept.input_tokens * prices.input_price + kept.output_tokens * prices.output_price
    return Budget(
        calls=None if limits.calls is None else max(0, limits.calls - len(kept)),
        tokens=None if limits.all_tokens is None else max(0, limits.all_tokens - tokens),
        cost=None if limits.cost is None else max(0.0, limits.cost - spent / 1e6),
        input_price=prices.input_price,
        output_price=prices.output_price,
    )


@dataclass(frozen=True, slots=True)
class _Held:
    """A material's questions that have evidence, for choosing constants (`tuning.Questions`)."""

    memory: Memory
    now: datetime
    tasks: tuple[Task, ...]
    evidence: tuple[tuple[str, ...], ...]

    def asked(self) -> list[str]:
        return [task.question for task in self.tasks]


def _folds(
    evaluation: Evaluation, plan: Plan, stage: Callable[[str], Progress]
) -> dict[str, Profile] | None:
    """For each material the profile chosen on all others; None where no arm asks for it. Every
    material is remembered at once, so this is for data sets of tens."""
    arm = next((arm for arm in evaluation.arms if arm.left_out), None)
    if arm is None or not plan.due:
        return None
    with ExitStack() as stack:
        held: dict[str, _Held] = {}
        told = stage("remembering")
        for material in evaluation.data.materials():
            bench = stack.enter_context(MaterialBench(material, evaluation.embedder))
            memory = bench.memory(replace(arm, learn=False))
            tasks = tuple(
                task for task in material.tasks if task.evidence and not task.unanswerable
            )
            evidence = tuple(bench.evidence(task) for task in tasks)
            held[material.name] = _Held(memory, material.now, tasks, evidence)
            told(len(held), None)
        folds = cross_validated(list(held.values()), arm.profile, stage("choosing constants"))
        return {name: fold.profile for name, fold in zip(held, folds, strict=True)}

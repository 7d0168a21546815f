"""Answering the questions of a data set, as the options of `evaluate` choose it."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofire.cli.evaluating_answers import AnswerOptions
from cofire.cli.options import Common, language_model, words
from cofire.cli.telling import check_places
from cofire.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    from cofire.evaluation.qa.comparing import Result
    from cofire.evaluation.qa.evaluate import Evaluated, Evaluation, Limits
    from cofire.evaluation.qa.planning import Plan
    from cofire.evaluation.qa.tasks import DataSet
    from cofire.interchange.report import ImportReport
    from cofire.models import Generator
    from cofire.settings import Settings

FILES = {
    "locomo": "LoCoMo's JSON file",
    "longmemeval": "a JSON file of LongMemEval",
    "choices": "a JSON file of cases with choices",
}
"""What a data set is read from."""
SHOWN = 3
"""Faults of a file, and reasons of failures, that are told."""
EVERY = "cofire,dense,lexical"
"""Profiles that are compared unless others are named; a model, which costs, is asked of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What of a command's own options chooses the columns of the tables."""

    profiles: str | None
    ks: tuple[int, ...] = ()
    ablations: bool = False
    slept: bool = True
    left_out: bool = False


def answered(
    common: Common,
    options: AnswerOptions,
    columns: Columns,
    path: str,
    *,
    read: Callable[[], DataSet],
    json: str | None,
) -> int:
    """Answer the questions of a data set, or say what that would take; the exit code."""
    from cofire.settings import load_settings

    _check(options)
    check_places(json, options.report)
    settings = load_settings(embedder=common.embedder)
    evaluation = _evaluation(options, columns, settings, path, read())
    try:
        return _carried_out(options, settings, evaluation, json)
    finally:
        for generator in (evaluation.model, evaluation.judge):
            if generator is not None:
                generator.close()


def _carried_out(
    options: AnswerOptions, settings: Settings, evaluation: Evaluation, json: str | None
) -> int:
    from cofire.cli.output import note
    from cofire.cli.progress import stages
    from cofire.evaluation.qa.comparing import read_result
    from cofire.evaluation.qa.evaluate import check_folder, evaluate, result_of
    from cofire.evaluation.report import loader_figures

    earlier = [read_result(Path(file).expanduser()) for file in options.compare or ()]

    with _folder(options, evaluation) as folder:
        check_folder(evaluation, folder)  # outcomes of another run are not this plan's
        plan = _planned(evaluation, folder)
        if options.dry_run:
            _tell_plan(plan, evaluation, json)
            return 0
        if plan.calls or plan.judge_calls:
            note(_plan_line(plan, evaluation))
        try:
            with stages("Reading", quiet=json == "-") as stage:
                done = evaluate(evaluation, folder, _limits(options, settings), progress=stage)
        except KeyboardInterrupt:
            if options.run is not None or evaluation.model is not None:
                note(f"What was answered is kept in {folder}; the same command goes on with it.")
            raise
    result = result_of(done, command=shlex.join(["cofire", *sys.argv[1:]]))
    result["loader"] = loader_figures(evaluation.data.report)
    compared = _compared(result, earlier) if earlier else None
    if compared is not None:
        result["comparisons"] = compared
    _tell(result, options, json)
    return _ending(done, folder)


def _planned(evaluation: Evaluation, folder: Path) -> Plan:
    """What would be asked, and on standard error what of the data is not as it should be: it was
    read as a whole by then. Raises InputError, which says why, where there is nothing to ask."""
    from cofire.evaluation.qa.evaluate import planned

    try:
        plan = planned(evaluation, folder)
    except InputError as exc:
        problems = evaluation.data.report.problems
        first = next((one for one in problems if one.action == "dropped"), None)
        why = "" if first is None else f" ({first})"
        raise InputError(
            f"{evaluation.source}: {exc}{why}; {FILES[evaluation.data.name]} is wanted, see "
            "docs/reference/evaluation-data.md"
        ) from exc
    _tell_faults(evaluation.data.report)
    return plan


def _tell_faults(report: ImportReport) -> None:
    """How much of the data was left out or mended, and the first cases of what was lost."""
    from cofire.cli.output import note

    counts = {
        "dropped": report.dropped, "skipped": report.skipped, "repaired": report.repaired,
        "noted": report.noted,
    }  # fmt: skip
    found = [f"{count:,} {what}" for what, count in counts.items() if count]
    if found:
        note(f"Of the file's entries {', '.join(found)}; --json lists each.")
    for problem in [one for one in report.problems if one.action == "dropped"][:SHOWN]:
        note(f"  {problem}")


def _check(options: AnswerOptions) -> None:
    """Raises InputError for numbers that mean nothing."""
    for name in ("judge_runs", "parallel", "limit", "rpm", "tpm", "window", "reply_tokens"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise InputError(f"--{name.replace('_', '-')} takes a whole number from 1, not {value}")
    for name in ("max_cost", "max_calls", "max_tokens"):
        value = getattr(options, name)
        if value is not None and not value >= 0:
            raise InputError(f"--{name.replace('_', '-')} takes a number from 0, not {value}")
    if options.temperature is not None and not 0.0 <= options.temperature <= 2.0:
        raise InputError(f"--temperature takes a number from 0 to 2, not {options.temperature}")


def _evaluation(
    options: AnswerOptions, columns: Columns, settings: Settings, path: str, data: DataSet
) -> Evaluation:
    from cofire.answering.answer import Spending
    from cofire.cli.options import numbers
    from cofire.evaluation.qa.arms import arms_for
    from cofire.evaluation.qa.evaluate import Evaluation, content_digest

    kind = _kind(options)
    if options.judge is not None and kind.startswith("oracle"):
        raise InputError("--judge has nothing to say of an oracle, which knows the right answers")
    model = _model(options, settings) if kind == "model" else None
    judge = _judge(options, settings, model)
    tokens = () if options.tokens is None else numbers(options.tokens, "--tokens")
    arms = arms_for(
        words(columns.profiles or ("cofire" if kind == "model" else EVERY), "--profiles"),
        ablations=columns.ablations, tokens=tokens, ks=columns.ks, slept=columns.slept,
        learn=options.learn, left_out=columns.left_out,
    )  # fmt: skip
    file = Path(path).expanduser()
    return Evaluation(
        data=data, source=file.name, digest=content_digest(file), arms=arms, answer=kind,
        asking=_asking(options, settings, model), model=model, judge=judge,
        judge_runs=options.judge_runs, seeds=_seeds(options.seeds), limit=options.limit,
        endpoint=settings.generator_base_url if model is not None or judge is not None else "",
        spending=Spending(
            input_price=settings.generator_input_price,
            output_price=settings.generator_output_price,
        ),
        embedder=settings.embedder,
    )  # fmt: skip


def _kind(options: AnswerOptions) -> Any:
    from cofire.evaluation.qa.answerers import KINDS

    kind = options.answer or "model"
    if kind not in KINDS:
        raise InputError(
            f"--answer takes {', '.join(KINDS)}, not {kind!r}; a model is named with --model"
        )
    if kind != "model" and options.model is not None:
        raise InputError(f"--model goes with --answer model, not with --answer {kind}")
    return kind


def _made(settings: Settings, spec: str | None) -> Generator | None:
    """One attempt per call: the run itself tries again, within everybody's limits."""
    from cofire.models import make_generator

    once = settings.model_copy(update={"generator_retries": 0})
    return make_generator(once, language_model(spec))


def _model(options: AnswerOptions, settings: Settings) -> Generator:
    found = _made(settings, options.model or settings.answer_model or None)
    if found is None:
        raise ConfigurationError(
            "there is no model to answer: name one with --model openai:MODEL or --model local, or "
            "set COFIRE_ANSWER_MODEL"
        )
    return found


def _judge(options: AnswerOptions, settings: Settings, model: Generator | None) -> Generator | None:
    if options.judge is None:
        return None
    found = _made(settings, options.judge)
    if found is not None and model is not None and found.name == model.name:
        if not options.judge_same:
            raise InputError(
                f"{model.name} would judge its own answers, which flatters them; name another "
                "--judge, or pass --judge-same if that is what you want"
            )
        return model
    return found


def _asking(options: AnswerOptions, settings: Settings, model: Generator | None) -> Any:
    from cofire.evaluation.qa.answerers import Asking

    reply = options.reply_tokens or settings.answer_max_tokens
    window = options.window
    if window is None:
        local = model is not None and model.name.startswith("local")
        window = max(500, settings.local_context - reply - 600) if local else 100_000
    return Asking(
        prompts=settings.answer_prompts,
        max_tokens=reply,
        temperature=(
            settings.answer_temperature if options.temperature is None else options.temperature
        ),
        window=window,
    )


def _seeds(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        found = ()
    if not found or min(found) < 0:
        raise InputError(f"--seeds takes whole numbers from 0, as in 0,1,2; not {text!r}")
    return found


def _limits(options: AnswerOptions, settings: Settings) -> Limits:
    from cofire.evaluation.qa.evaluate import Limits

    priced = settings.generator_input_price > 0.0 or settings.generator_output_price > 0.0
    if options.max_cost is not None and not priced:
        raise ConfigurationError(
            "--max-cost needs prices: set COFIRE_GENERATOR_INPUT_PRICE and "
            "COFIRE_GENERATOR_OUTPUT_PRICE, or use --max-calls or --max-tokens"
        )
    return Limits(
        parallel=options.parallel, requests=options.rpm, tokens=options.tpm,
        calls=options.max_calls, all_tokens=options.max_tokens, cost=options.max_cost,
        attempts=settings.generator_retries + 1,
    )  # fmt: skip


def _folder(options: AnswerOptions, evaluation: Evaluation) -> Any:
    """The run's folder, as a context: the one named; with a model one in the platform's cache, so
    that nothing paid for is lost; else one that is gone afterwards."""
    from contextlib import nullcontext
    from tempfile import TemporaryDirectory

    from cofire.evaluation.qa.evaluate import folder_name

    if options.run is not None:
        return nullcontext(Path(options.run).expanduser())
    if evaluation.model is not None or evaluation.judge is not None:
        import platformdirs

        cache = Path(platformdirs.user_cache_dir("cofire", appauthor=False))
        return nullcontext(cache / "evaluations" / folder_name(evaluation))
    return _PathOf(TemporaryDirectory(prefix="cofire-"))


class _PathOf:
    """A temporary folder as a path."""

    def __init__(self, folder: Any) -> None:
        self._folder = folder

    def __enter__(self) -> Path:
        return Path(self._folder.__enter__())

    def __exit__(self, *given: object) -> None:
        self._folder.__exit__(*given)


def _plan_line(plan: Plan, evaluation: Evaluation) -> str:
    from cofire.evaluation.qa.judging import MAX_TOKENS

    cost = f", {plan.cost:,.2f} by the prices in the settings" if plan.cost else ""
    received = plan.calls * evaluation.asking.max_tokens + plan.judge_calls * MAX_TOKENS
    # The estimate has replies of the usual length; what is sent is estimated either way.
    more = (received - plan.output_tokens) * evaluation.spending.output_price / 1e6
    at_most = f", {plan.cost + more:,.2f}" if plan.cost else ""
    if not (plan.calls or plan.judge_calls):
        return "No model is asked."
    return (
        f"At most {plan.calls:,} calls to answer and {plan.judge_calls:,} to judge; about "
        f"{plan.input_tokens:,} tokens to send and {plan.output_tokens:,} to receive{cost}; "
        f"{received:,} to receive{at_most} if every reply were as long as it may be "
        f"({evaluation.asking.max_tokens:,} tokens of an answer"
        f"{f', {MAX_TOKENS:,} of a verdict' if plan.judge_calls else ''}). "
        "Replies that are kept take none."
    )


def _tell_plan(plan: Plan, evaluation: Evaluation, json: str | None) -> None:
    from dataclasses import asdict

    from cofire.cli.output import many, print_json, write

    if json == "-":
        print_json({name: value for name, value in asdict(plan).items() if name != "order"})
        return
    write(
        f"{many(plan.questions, 'question')} of {many(plan.materials, 'material')}, under "
        f"{many(len(evaluation.arms), 'arm')}: {many(plan.outcomes, 'outcome')}, {plan.due:,} of "
        "them still due."
    )
    for arm in evaluation.arms:
        write(f"  {arm.name}: {arm.bounded}")
    write(_plan_line(plan, evaluation))


def _compared(result: dict[str, Any], earlier: list[Result]) -> dict[str, Any] | None:
    """This run beside each earlier result; None, with a remark, where they cannot be compared: a
    run that was paid for is told of all the same."""
    from cofire.cli.output import note
    from cofire.evaluation.qa.comparing import compare, result_from, sides_of

    this = result_from(result, "this run")
    try:
        pairs = [pair for one in earlier for pair in sides_of([one, this])]
        figures: dict[str, Any] = compare(pairs)
    except InputError as exc:
        note(f"Not compared: {exc}")
        return None
    return figures


def _tell(result: dict[str, Any], options: AnswerOptions, json: str | None) -> None:
    from cofire.cli.output import note
    from cofire.cli.reporting import write_report
    from cofire.cli.telling import tell
    from cofire.evaluation.qa.comparing_report import render_comparison
    from cofire.evaluation.qa.tables import render_result

    text = render_result(result)
    if "comparisons" in result:
        text += "\n" + render_comparison(result["comparisons"])
    tell(text, result, json)
    if options.report is not None:
        note(f"Report written to {write_report(result, Path(options.report).expanduser())}.")


def _ending(done: Evaluated, folder: Path) -> int:
    """Says what is missing, and why; the exit code."""
    from cofire.cli import FAILURE, exit_code
    from cofire.cli.output import many, note

    if done.damaged:
        note(f"{many(done.damaged, 'line')} of the kept replies said nothing.")
    if done.evaluation.model is not None or done.evaluation.judge is not None:
        note(f"{many(done.kept, 'reply', 'replies')} kept in {folder}.")
    if not done.left:
        return 0
    why = f"Stopped: {done.stopped.rstrip('.')}. " if done.stopped else ""
    failures = Counter(one.failed for one in done.outcomes if one.failed)
    for reason, count in failures.most_common(SHOWN):
        if not done.stopped or reason.rstrip(".") not in done.stopped:
            note(f"{many(count, 'question')} failed: {reason.rstrip('.')}.")
    note(
        f"{why}{many(done.left, 'question')} still to be answered; the same command goes on "
        "with them, and asks for nothing twice."
    )
    return FAILURE if done.error is None else exit_code(done.error)

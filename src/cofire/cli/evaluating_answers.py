"""Options of `evaluate` with which questions are answered."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from cofire.cli.options import Common

PANEL = "Answering"
MODELS = "Models and limits"
ABOUT_RUN = "Runs and results"


def _option(*names: str, panel: str, metavar: str | None = None, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """What the options choose; None where nothing was said."""

    answer: Annotated[
        str | None,
        _option(
            "--answer", panel=PANEL, metavar="WHO",
            help="Answer the questions: oracle (right if the context has all the evidence), "
            "oracle-any (any of it), extractive (no model), or model.",
        ),
    ] = None  # fmt: skip
    model: Annotated[
        str | None,
        _option(
            "--model", panel=PANEL, metavar="MODEL",
            help="Model that answers: openai:MODEL, local or local:FILE.gguf. Default: "
            "COFIRE_ANSWER_MODEL, or COFIRE_GENERATOR. Implies --answer model.",
        ),
    ] = None  # fmt: skip
    judge: Annotated[
        str | None,
        _option(
            "--judge", panel=PANEL, metavar="MODEL",
            help="Model that judges the answers. Default: none does.",
        ),
    ] = None  # fmt: skip
    judge_runs: Annotated[
        int,
        _option(
            "--judge-runs", panel=PANEL, metavar="NUMBER", help="How often each answer is judged."
        ),
    ] = 1
    judge_same: Annotated[
        bool,
        _option("--judge-same", panel=PANEL, help="Let a model judge its own answers."),
    ] = False
    tokens: Annotated[
        str | None,
        _option(
            "--tokens", panel=PANEL, metavar="NUMBERS",
            help="Sizes of the context, as in 500,1000,2000. Default: 1000, unless --k is given.",
        ),
    ] = None  # fmt: skip
    seeds: Annotated[
        str,
        _option(
            "--seeds", panel=PANEL, metavar="NUMBERS", help="Ask everything once per seed: 0,1,2."
        ),
    ] = "0"
    limit: Annotated[
        int | None,
        _option(
            "--limit", panel=PANEL, metavar="NUMBER", help="Only the first questions of the file."
        ),
    ] = None
    learn: Annotated[
        bool,
        _option(
            "--learn", panel=PANEL,
            help="What an answer cites teaches before the next question of its conversation.",
        ),
    ] = False  # fmt: skip
    temperature: Annotated[
        float | None,
        _option(
            "--temperature", panel=MODELS, metavar="NUMBER",
            help="Of answers, 0 to 2. Default: COFIRE_ANSWER_TEMPERATURE, or 0.",
        ),
    ] = None  # fmt: skip
    reply_tokens: Annotated[
        int | None,
        _option(
            "--reply-tokens", panel=MODELS, metavar="NUMBER",
            help="Tokens of a reply at most. Default: COFIRE_ANSWER_MAX_TOKENS, or 512.",
        ),
    ] = None  # fmt: skip
    window: Annotated[
        int | None,
        _option(
            "--window", panel=MODELS, metavar="NUMBER",
            help="Tokens of a full context at most; the oldest is cut. Default: 100000, or what a "
            "local model has room for.",
        ),
    ] = None  # fmt: skip
    parallel: Annotated[
        int, _option("--parallel", panel=MODELS, metavar="NUMBER", help="Calls at once.")
    ] = 4
    rpm: Annotated[
        int | None,
        _option("--rpm", panel=MODELS, metavar="NUMBER", help="Requests per minute at most."),
    ] = None
    tpm: Annotated[
        int | None,
        _option("--tpm", panel=MODELS, metavar="NUMBER", help="Tokens per minute at most."),
    ] = None
    max_cost: Annotated[
        float | None,
        _option(
            "--max-cost", panel=MODELS, metavar="AMOUNT",
            help="Stop before the run's folder has cost more, by the prices in the settings.",
        ),
    ] = None  # fmt: skip
    max_calls: Annotated[
        int | None,
        _option("--max-calls", panel=MODELS, metavar="NUMBER", help="The same for its calls."),
    ] = None
    max_tokens: Annotated[
        int | None,
        _option(
            "--max-tokens", panel=MODELS, metavar="NUMBER",
            help="The same for its tokens, sent and received.",
        ),
    ] = None  # fmt: skip
    run: Annotated[
        str | None,
        _option(
            "--run", panel=ABOUT_RUN, metavar="FOLDER",
            help="Where replies and outcomes are kept; the same command goes on there. Default: "
            "with a model, a folder of its own in the platform's cache.",
        ),
    ] = None  # fmt: skip
    report: Annotated[
        str | None,
        _option(
            "--report", panel=ABOUT_RUN, metavar="FOLDER",
            help="Write a report in Markdown with charts there.",
        ),
    ] = None  # fmt: skip
    compare: Annotated[
        list[str] | None,
        _option(
            "--compare", panel=ABOUT_RUN, metavar="FILE",
            help="Compare with an earlier result (--json), question by question; may be repeated.",
        ),
    ] = None  # fmt: skip
    dry_run: Annotated[
        bool,
        _option(
            "--dry-run", panel=ABOUT_RUN, help="Say what would be asked and what it takes at most."
        ),
    ] = False

    @property
    def asked_for(self) -> bool:
        """Whether questions are to be answered at all."""
        return self.answer is not None or self.model is not None

    def or_else(self, answer: str) -> AnswerOptions:
        """These options, with who answers where nothing was said of it."""
        return self if self.asked_for else replace(self, answer=answer)

    def given(self) -> list[str]:
        """The options that were given, as they are written."""
        return [
            f"--{one.name.replace('_', '-')}"
            for one in fields(self)
            if getattr(self, one.name) != one.default
        ]


def taking_answers(body: Callable[..., int | None]) -> Callable[..., int | None]:
    """Gives a command the options of `AnswerOptions`, as its argument `answers`."""
    hints = get_type_hints(AnswerOptions, include_extras=True)
    added = [
        inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY,
            default=one.default, annotation=hints[one.name],
        )
        for one in fields(AnswerOptions)
    ]  # fmt: skip
    signature = inspect.signature(body, eval_str=True)
    own = [one for one in signature.parameters.values() if one.name != "answers"]

    @wraps(body)
    def taking(common: Common, **given: Any) -> int | None:
        options = AnswerOptions(**{one.name: given.pop(one.name) for one in added})
        return body(common, answers=options, **given)

    # The attribute that `inspect.signature`, and so typer, goes by; functions declare none.
    taking.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    return taking

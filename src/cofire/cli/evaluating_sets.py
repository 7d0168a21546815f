"""`evaluate longmemeval` and `evaluate choices`: data sets whose questions are answered."""

from __future__ import annotations

from typing import Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.evaluating_answers import AnswerOptions, taking_answers
from cofire.cli.evaluating_longmemeval import retrieved
from cofire.cli.evaluating_runs import Columns, answered
from cofire.cli.options import Common, numbers
from cofire.cli.telling import check_places
from cofire.errors import InputError

_ALONE = ("store", "identity", "user", "project", "tenant", "json", "no_vectors")

Profiles = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Profiles to compare, as in cofire,dense. Default: cofire,dense,lexical; with a "
        "model: cofire.",
    ),
]
Depths = Annotated[
    str | None,
    typer.Option("--k", metavar="NUMBERS", help="Contexts of so many memories, as in 5,10,20."),
]
Ablations = Annotated[
    bool,
    typer.Option(
        "--ablations/--no-ablations",
        help="Also the first profile without each mechanism, vectors only and full context.",
    ),
]
Slept = Annotated[
    bool,
    typer.Option("--slept/--no-slept", help="Consolidate first, without a language model."),
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write every figure to a file; `-`: print it."),
]


def register(group: typer.Typer) -> None:
    """Add the commands to `evaluate`."""
    command(
        group,
        "longmemeval",
        examples=(
            "cofire evaluate longmemeval longmemeval_s.json --limit 50 --jobs 2",
            "cofire evaluate longmemeval longmemeval_s.json --limit 50 --answer oracle",
            "cofire evaluate longmemeval longmemeval_s.json --model openai:gpt-4o-mini "
            "--judge openai:gpt-4o",
        ),
        without=_ALONE,
    )(taking_answers(longmemeval))
    command(
        group,
        "choices",
        examples=(
            "cofire evaluate choices questions.json",
            "cofire evaluate choices questions.json --model local --tokens 500,1000",
        ),
        without=_ALONE,
    )(taking_answers(choices))


def longmemeval(
    common: Common,
    *,
    path: Annotated[str, typer.Argument(metavar="PATH", help="LongMemEval's JSON file.")],
    answers: AnswerOptions,
    profiles: Profiles = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            metavar="NUMBERS",
            help="Lengths of the list to score, as in 5,10; with answers, of the context.",
        ),
    ] = None,
    ablations: Ablations = False,
    slept: Annotated[
        bool | None,
        typer.Option(
            "--slept/--no-slept",
            help="Consolidate first, without a language model. Default: only to answer.",
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            metavar="NUMBER",
            help="Without answers: haystacks at a time, each in a process of its own.",
        ),
    ] = 1,
    json: Json = None,
) -> int:
    """Score the recall of what answers LongMemEval's questions, or answer them.

    Each question has a history of its own, remembered and removed in turn, so that the largest
    file takes no more memory than its largest history. Without --answer and --model: the share of
    evidence turns and sessions that is recalled, which takes no language model.
    """
    if not answers.asked_for:
        beside = [name for name in answers.given() if name != "--limit"]
        if beside or ablations:
            raise InputError(f"{(beside or ['--ablations'])[0]} goes with --answer or --model")
        check_places(json)
        retrieved(
            common, path=path, profiles=profiles, k=k, slept=bool(slept), limit=answers.limit,
            jobs=jobs, json=json,
        )  # fmt: skip
        return 0
    from cofire.evaluation.qa.longmemeval_set import longmemeval_set

    columns = _columns(profiles, k, ablations=ablations, slept=slept is not False)
    return answered(common, answers, columns, path, read=lambda: longmemeval_set(path), json=json)


def choices(
    common: Common,
    *,
    path: Annotated[str, typer.Argument(metavar="PATH", help="Cases as JSON, or a case a line.")],
    answers: AnswerOptions,
    profiles: Profiles = None,
    k: Depths = None,
    ablations: Ablations = False,
    slept: Slept = True,
    json: Json = None,
) -> int:
    """Answer multiple-choice questions over dated documents.

    The format of the file is in docs/reference/evaluation-data.md. Without --answer and --model:
    extractive, which takes the choice that shares most words with the sentence that fits best.
    """
    from cofire.evaluation.qa.choices_set import choices_set

    columns = _columns(profiles, k, ablations=ablations, slept=slept)
    options = answers.or_else("extractive")
    return answered(common, options, columns, path, read=lambda: choices_set(path), json=json)


def _columns(profiles: str | None, k: str | None, *, ablations: bool, slept: bool) -> Columns:
    ks = () if k is None else numbers(k, "--k")
    return Columns(profiles=profiles, ks=ks, ablations=ablations, slept=slept)

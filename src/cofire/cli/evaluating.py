"""`evaluate`: how well recall finds what answers a question."""

from __future__ import annotations

from typing import Annotated

import typer

from cofire.cli import evaluating_compare, evaluating_judge, evaluating_sets
from cofire.cli.commands import Group, command
from cofire.cli.evaluating_answers import AnswerOptions, taking_answers
from cofire.cli.evaluating_runs import EVERY, Columns, answered
from cofire.cli.options import Common, numbers, words
from cofire.cli.telling import check_places, tell
from cofire.errors import InputError

_ALONE = ("store", "identity", "user", "project", "tenant", "json", "no_vectors")
"""Common options without meaning here: nothing of a store is read."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(
        name="evaluate",
        help="Measure recall and answers on benchmarks.",
        rich_markup_mode=None,
        cls=Group,
        epilog="cofire evaluate locomo locomo10.json",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    command(
        group,
        "locomo",
        examples=(
            "cofire evaluate locomo locomo10.json",
            "cofire evaluate locomo locomo10.json --corrections corrections.json --no-ablations",
            "cofire evaluate locomo locomo10.json --profiles cofire,dense --k 10,30",
            "cofire evaluate locomo locomo10.json --cross-validate --json result.json",
            "cofire evaluate locomo locomo10.json --learning --json learning.json",
            "cofire evaluate locomo locomo10.json --learning --arms cofire,shuffled --splits 2",
            "cofire evaluate locomo locomo10.json --learning --ground dense",
            "cofire evaluate locomo locomo10.json --answer oracle --tokens 500,1000,2000",
            "cofire evaluate locomo locomo10.json --model openai:gpt-4o-mini --judge openai:gpt-4o "
            "--ablations --seeds 0,1,2 --report report",
        ),
        without=_ALONE,
    )(taking_answers(locomo))
    evaluating_sets.register(group)
    command(
        group,
        "verifier",
        examples=(
            "cofire evaluate verifier",
            "cofire evaluate verifier --json verifier.json",
        ),
        without=_ALONE,
    )(verifier)
    evaluating_judge.register(group)
    evaluating_compare.register(group)
    app.add_typer(group)


def locomo(
    common: Common,
    *,
    path: Annotated[str, typer.Argument(metavar="PATH", help="LoCoMo's JSON file.")],
    answers: AnswerOptions,
    corrections: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Corrections of its answer key, applied before."),
    ] = None,
    profiles: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Profiles to compare, as in cofire,dense. Default: cofire,dense,lexical; with a "
            "model: cofire.",
        ),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            metavar="NUMBERS",
            help="Lengths of the list to score. Default: 5,10,20,30. With answers: contexts of so "
            "many memories.",
        ),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write every figure to a file; `-`: print it."),
    ] = None,
    cross_validate: Annotated[
        bool,
        typer.Option(
            "--cross-validate",
            help="Also choose weights and constants without the conversation that is scored.",
        ),
    ] = False,
    slept: Annotated[
        bool | None,
        typer.Option(
            "--slept/--no-slept",
            help="Consolidate every memory first, without a language model. Default: no; with "
            "answers: yes.",
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Measure on this PostgreSQL store, in tenants that are emptied afterwards. "
            "Default: SQLite files.",
        ),
    ] = None,
    ablations: Annotated[
        bool | None,
        typer.Option(
            "--ablations/--no-ablations",
            help="Also switch every mechanism off in turn. Default: yes; with answers: no.",
        ),
    ] = None,
    learning: Annotated[
        bool,
        typer.Option(
            "--learning",
            help="Measure learning from use instead: feedback on some questions, recall on the "
            "others.",
        ),
    ] = False,
    splits: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="With --learning: random halves. Default: 5."),
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="With --learning: ways to learn, as in cofire,shuffled. Default: all.",
        ),
    ] = None,
    ground: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --learning: the recall it builds on: cofire, simple, fusion or dense. "
            "Default: cofire.",
        ),
    ] = None,
    sweeps: Annotated[
        bool,
        typer.Option("--sweeps", help="With --learning: also vary one constant after another."),
    ] = False,
) -> int:
    """Score the recall of evidence on LoCoMo's conversations, or answers to its questions.

    Prints tables: per category and k, for turns and for sessions, with tokens and time, and how
    well a recall knows that there is no answer. Needs no language model; the conversations go into
    a temporary store. With --answer or --model the questions are answered and the answers scored.
    """
    if answers.asked_for:
        from cofire.evaluation.qa.locomo_set import locomo_set

        if learning or database is not None:
            raise InputError("--learning and --database do not go with --answer and --model")
        columns = Columns(
            profiles=profiles, ks=() if k is None else numbers(k, "--k"),
            ablations=bool(ablations), slept=slept is not False, left_out=cross_validate,
        )  # fmt: skip
        return answered(
            common, answers, columns, path,
            read=lambda: locomo_set(path, corrections=corrections), json=json,
        )  # fmt: skip
    if given := answers.given():
        raise InputError(f"{', '.join(given)}: only with --answer or --model")
    check_places(json)
    if learning:
        _learning(
            common,
            path,
            corrections=corrections,
            splits=splits,
            arms=arms,
            ground=ground,
            sweeps=sweeps,
            json=json,
        )
        return 0
    if splits is not None or arms is not None or ground is not None or sweeps:
        raise InputError("--splits, --arms, --ground and --sweeps go with --learning")
    names, ks = words(profiles or EVERY, "--profiles"), numbers(k or "5,10,20,30", "--k")
    from cofire.cli.progress import stages
    from cofire.evaluation.locomo import evaluate_locomo
    from cofire.evaluation.report import render, to_json

    with stages("Reading", quiet=json == "-") as stage:
        result = evaluate_locomo(
            path,
            corrections=corrections,
            profiles=names,
            ks=ks,
            ablations=ablations is not False,
            cross_validate=cross_validate,
            slept=bool(slept),
            database=database,
            embedder=common.embedder,
            progress=stage,
        )
    tell(render(result), to_json(result), json)
    return 0


def verifier(
    common: Common,
    *,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write every figure to a file; `-`: print it."),
    ] = None,
) -> None:
    """Score the verification of distilled records on a set that ships with Cofire.

    Prints how many false records are refused and how many true ones are lost, by what is wrong with
    them, for the part that the rules were written with and for the part that was held out.
    """
    from cofire.evaluation.verification import outcomes, render_verification, verification_figures

    found = outcomes()
    tell(render_verification(found), verification_figures(found), json)


def _learning(
    common: Common,
    path: str,
    *,
    corrections: str | None,
    splits: int | None,
    arms: str | None,
    ground: str | None,
    sweeps: bool,
    json: str | None,
) -> None:
    """`--learning`."""
    number = 5 if splits is None else splits
    if number < 1:
        raise InputError(f"--splits takes a whole number from 1, not {splits}")
    from cofire.cli.progress import stages
    from cofire.evaluation.arms import ARMS
    from cofire.evaluation.learning import evaluate_learning
    from cofire.evaluation.learning_figures import learning_figures
    from cofire.evaluation.learning_report import render_learning

    with stages("Reading", quiet=json == "-") as stage:
        result = evaluate_learning(
            path,
            corrections=corrections,
            arms=tuple(ARMS) if arms is None else words(arms, "--arms"),
            ground="cofire" if ground is None else ground,
            splits=number,
            sweeps=sweeps,
            embedder=common.embedder,
            progress=stage,
        )
    figures = learning_figures(result)
    tell(render_learning(figures), figures, json)

"""`evaluate judge`: how far a judge of answers can be believed."""

from __future__ import annotations

from typing import Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.options import Common, language_model
from cofire.errors import ConfigurationError, InputError


def register(group: typer.Typer) -> None:
    """Add the command to `evaluate`."""
    command(
        group,
        "judge",
        examples=(
            "cofire evaluate judge --judge openai:gpt-4o-mini",
            "cofire evaluate judge --judge openai:gpt-4o-mini --runs 3 --json judge.json",
        ),
        without=(
            "store", "identity", "user", "project", "tenant", "json", "no_vectors", "embedder",
        ),
    )(judge)  # fmt: skip


def judge(
    common: Common,
    *,
    model: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="Language model that judges: openai:MODEL or local. Default: COFIRE_GENERATOR.",
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option(metavar="NUMBER", help="How often each answer is judged.")
    ] = 1,
    temperature: Annotated[
        float, typer.Option(metavar="NUMBER", help="Its temperature, 0 to 2.")
    ] = 0.0,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="Seed of the first run; the next has the next.")
    ] = 0,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write every figure to a file; `-`: print it."),
    ] = None,
) -> None:
    """Score a judge of answers on a labelled sample that ships with Cofire.

    Prints how often it agrees with the labels, by kind of question, what it let pass and what it
    refused, how many of its replies were unusable, and what it took.
    """
    if runs < 1:
        raise InputError(f"--runs takes a whole number from 1, not {runs}")
    if not 0.0 <= temperature <= 2.0:
        raise InputError(f"--temperature takes a number from 0 to 2, not {temperature}")
    from cofire.cli.progress import progress
    from cofire.cli.telling import check_places, tell
    from cofire.evaluation.qa.judge_agreement import (
        agreement_figures,
        mark,
        render_agreement,
        samples,
    )
    from cofire.models import make_generator
    from cofire.settings import load_settings

    settings = load_settings()
    check_places(json)
    generator = make_generator(settings, language_model(model))
    if generator is None:
        raise ConfigurationError(
            "there is no judge: name one with --judge openai:MODEL, or set COFIRE_GENERATOR"
        )
    try:
        with progress("Judging", quiet=json == "-") as told:
            marked = mark(
                generator, samples(),
                runs=runs, seed=seed, temperature=temperature, progress=told,
            )  # fmt: skip
    finally:
        generator.close()
    figures = agreement_figures(
        marked,
        input_price=settings.generator_input_price,
        output_price=settings.generator_output_price,
    )
    tell(render_agreement(figures), figures, json)

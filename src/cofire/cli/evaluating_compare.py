"""`evaluate compare`: results set against each other, question by question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.options import Common


def register(group: typer.Typer) -> None:
    """Add the command to `evaluate`."""
    command(
        group,
        "compare",
        examples=(
            "cofire evaluate compare result.json",
            'cofire evaluate compare result.json --baseline "vectors only @1000" --groups',
            "cofire evaluate compare before.json after.json --json comparison.json",
        ),
        without=(
            "store", "identity", "user", "project", "tenant", "json", "no_vectors", "embedder",
        ),
    )(compare)  # fmt: skip


def compare(
    common: Common,
    *,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Results of questions answered; the first is the base."
        ),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="ARM",
            help="Arm of the first result that the others are compared with, as in 'dense @500'; "
            "without its bound: at each. Default: that of the first arm.",
        ),
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="Also each group of questions by itself.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Seed of the resampling.")] = 0,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write every figure to a file; `-`: print it."),
    ] = None,
) -> None:
    """Say whether one result is better than another, or may be by chance.

    Questions are paired; differences come with intervals and with tests that are corrected for
    their number. Results of other data sets or answer keys are refused. One file: its arms are
    compared with its first, each with that of the same size of context.
    """
    from cofire.cli.output import note
    from cofire.cli.telling import tell
    from cofire.evaluation.qa.comparing import compare as compared
    from cofire.evaluation.qa.comparing import read_result, sides_of
    from cofire.evaluation.qa.comparing_report import render_comparison

    results = [read_result(Path(file).expanduser()) for file in files]
    figures = compared(sides_of(results, baseline), seed=seed)
    warnings = dict.fromkeys(text for one in figures["comparisons"] for text in one["warnings"])
    for text in warnings if json == "-" else ():  # the tables say it themselves
        note(f"WARNING: {text}.")
    tell(render_comparison(figures, groups=groups), figures, json)

"""`plot`: pictures of what was measured and of what a memory has learned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cofire.cli.commands import Group, command
from cofire.cli.opening import opened
from cofire.cli.options import Common

To = Annotated[
    str, typer.Option("--to", metavar="FILE", help="The picture: a .png or .svg file, replaced.")
]
Most = Annotated[int, typer.Option("--most", metavar="NUMBER", help="Memories drawn at most.")]

AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="As it was at a past moment. Default: now."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(
        name="plot",
        help="Draw what was measured or learned. Needs the extra `plot`.",
        rich_markup_mode=None,
        cls=Group,
        epilog="cofire plot graph --to graph.png",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    command(
        group,
        "learning",
        examples=(
            "cofire plot learning learning.json --to learning.png",
            "cofire plot learning learning.json --to learning.svg",
        ),
        without=("store", "identity", "user", "project", "tenant", "no_vectors", "embedder"),
    )(learning)
    command(
        group,
        "strengths",
        examples=(
            "cofire plot strengths --to strengths.png",
            "cofire plot strengths --most 40 --as-of 2026-03-01 --to strengths.svg",
        ),
        without=("no_vectors", "embedder"),
    )(strengths)
    command(
        group,
        "graph",
        examples=("cofire plot graph --to graph.png", "cofire plot graph --most 60 --to graph.svg"),
        without=("no_vectors", "embedder"),
    )(graph)
    command(
        group,
        "trace",
        examples=(
            'cofire plot trace "Where is the shed key?" --to trace.png',
            'cofire plot trace "Where is the shed key?" -k 6 --profile hela_mem --to trace.svg',
        ),
    )(trace)
    app.add_typer(group)


def learning(
    common: Common,
    *,
    result: Annotated[
        str,
        typer.Argument(
            metavar="RESULT", help="The file of `cofire evaluate locomo --learning --json FILE`."
        ),
    ],
    to: To,
) -> None:
    """Draw what learning adds: the curve, and every way of learning."""
    from cofire.plotting.learning import plot_learning, read_figures

    _drawn(common, plot_learning(read_figures(result), to))


def strengths(common: Common, *, to: To, most: Most = 20, as_of: AsOf = None) -> None:
    """Draw the learned strengths between memories as a heat map."""
    from cofire.arguments import as_count
    from cofire.plotting.canvas import target
    from cofire.plotting.learned import learned_graph
    from cofire.plotting.strengths import plot_strengths

    count, place = as_count("--most", most), target(to)
    with opened(common, vectors=False) as memory:
        found = learned_graph(memory, as_of)
    _drawn(common, plot_strengths(found, place, count))


def graph(common: Common, *, to: To, most: Most = 150, as_of: AsOf = None) -> None:
    """Draw memories and learned links, with hubs and isolated memories."""
    from cofire.arguments import as_count
    from cofire.plotting.canvas import target
    from cofire.plotting.graph import plot_graph
    from cofire.plotting.learned import learned_graph

    count, place = as_count("--most", most), target(to)
    with opened(common, vectors=False) as memory:
        found = learned_graph(memory, as_of)
    _drawn(common, plot_graph(found, place, count))


def trace(
    common: Common,
    *,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to recall.")],
    to: To,
    k: Annotated[int, typer.Option("-k", "--limit", metavar="NUMBER", help="At most so many.")] = 8,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="The profile to recall by.")
    ] = "cofire",
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help='What "last week" counts from. Default: the clock.'),
    ] = None,
) -> None:
    """Draw one recall: what each score is made of, and who passed activation on."""
    from cofire.plotting.canvas import target
    from cofire.plotting.trace import plot_trace

    place = target(to)
    with opened(common) as memory:
        recall = memory.recall(question, k, profile=profile, now=now, explain=True)
        _drawn(common, plot_trace(recall, memory, place))


def _drawn(common: Common, path: Path) -> None:
    from cofire.cli.output import note, print_json

    if common.json:
        print_json({"picture": path})
    else:
        note(f"Picture drawn in {path}.")

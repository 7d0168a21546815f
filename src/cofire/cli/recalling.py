"""`recall`: what bears on a question."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cofire.cli import options
from cofire.cli.commands import command
from cofire.cli.explaining import Explainer
from cofire.cli.opening import opened
from cofire.cli.options import Common, text_or_input
from cofire.cli.output import many, note, plain, print_json, say
from cofire.cli.rendering import print_recalled, recalled_json
from cofire.types import Recall, Trace


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "recall",
        examples=(
            'cofire recall "How do I get into the shed?"',
            'cofire recall "What did we do last week?" -k 5 --explain',
            'cofire recall "allergies" --speaker Nora --since 2026-01-01 --token-budget 500',
            "cofire recall \"deploy\" --project website --json | jq -r '.items[].line'",
        ),
    )(recall)


def recall(
    common: Common,
    *,
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION", help="A question or a few words. `-` reads standard input."
        ),
    ],
    k: Annotated[
        int, typer.Option("-k", "--limit", metavar="NUMBER", help="At most so many.")
    ] = 10,
    token_budget: Annotated[
        int | None,
        typer.Option(
            "--token-budget",
            "--budget",
            metavar="TOKENS",
            help="Only as many whole memories as fit into so many.",
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="cofire, or the baselines dense and lexical.")
    ] = "cofire",
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help='What "last week" counts from. Default: the clock.'),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each came back: words, turns, terms.")
    ] = False,
    kind: options.Kinds = None,
    speaker: options.Speakers = None,
    session: options.Sessions = None,
    tag: options.Tags = None,
    meta: options.Meta = None,
    since: options.Since = None,
    until: options.Until = None,
) -> None:
    """Recall what bears on a question, best first.

    The filters decide what may be ranked at all. Finding nothing is no failure.
    """
    query = text_or_input(question)
    chosen = options.filters(
        kinds=kind,
        speakers=speaker,
        sessions=session,
        tags=tag,
        meta=meta,
        since=since,
        until=until,
    )
    with opened(common) as memory:
        result = memory.recall(
            query,
            k,
            token_budget=token_budget,
            profile=profile,
            now=now,
            explain=explain,
            **chosen,
        )
        if common.json:
            print_json(_as_json(result))
            return
        for warning in result.warnings if common.vectors else ():
            note(f"Note: {warning}")
        if result.items:
            _print_result(result, Explainer(result, memory) if explain else None)
        else:
            hint = " The filters may leave nothing." if any(chosen.values()) else ""
            say(f"Nothing found.{hint}")


def _print_result(result: Recall, explainer: Explainer | None) -> None:
    for place, hit in enumerate(result.items):
        if place:
            say("")
        print_recalled(place + 1, hit)
        if explainer is not None:
            explainer.print(place)
    say("")
    say((f"{many(len(result), 'memory', 'memories')}, {many(result.tokens, 'token')}", "dim"))
    _print_how_sure(result)
    if result.trace is not None:
        _print_trace(result.trace)


def _print_how_sure(result: Recall) -> None:
    """The gate's word, and under which id feedback is given."""
    if result.abstain:
        say("Probably nothing of the kind was ever said: these are only the nearest.")
    sure = "" if result.confidence is None else f"Confidence {result.confidence:.2f}, r"
    say((f"{sure or 'R'}ecall {result.id}", "dim"))


def _as_json(result: Recall) -> dict[str, Any]:
    fields: dict[str, Any] = plain(result)
    return fields | {"items": [recalled_json(hit) for hit in result.items]}


def _print_trace(trace: Trace) -> None:
    """What holds for the whole recall."""
    say((f"Words looked for: {', '.join(trace.terms) or 'none'}", "dim"), hang=2)
    if trace.time_range is not None:
        start, end = trace.time_range
        say((f"Time asked about: {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC", "dim"))
    timings = ", ".join(f"{stage} {ms:.1f}" for stage, ms in trace.timings.items())
    say((f"Milliseconds: {timings} (profile {trace.profile})", "dim"), hang=2)

"""`recall`: what bears on a question."""

from __future__ import annotations

from typing import Annotated

import typer

from cofire.cli import options
from cofire.cli.commands import command
from cofire.cli.explaining import Explainer
from cofire.cli.opening import opened
from cofire.cli.options import Common, text_or_input
from cofire.cli.output import many, note, print_json, say
from cofire.cli.recorded import print_known, print_once_here, repeated
from cofire.cli.rendering import print_recalled
from cofire.plain import recall_shape
from cofire.types import Recall, Trace


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "recall",
        examples=(
            'cofire recall "How do I get into the shed?"',
            'cofire recall "What did we do last week?" -k 5 --explain',
            'cofire recall "Where does Ada live?" --as-of 2025-01-01',
            'cofire recall "allergies" --speaker Nora --since 2026-01-01 --token-budget 500',
            "cofire recall \"deploy\" --project website --json | jq -r '.items[].line'",
        ),
    )(recall)


Limit = Annotated[int, typer.Option("-k", "--limit", metavar="NUMBER", help="At most so many.")]
TokenBudget = Annotated[
    int | None,
    typer.Option(
        "--token-budget",
        "--budget",
        metavar="TOKENS",
        help="Only as many whole memories as fit into so many.",
    ),
]
Now = Annotated[
    str | None,
    typer.Option(metavar="TIME", help='What "last week" counts from. Default: the clock.'),
]
Semantic = Annotated[
    int, typer.Option(metavar="NUMBER", help="Records of consolidation at most; 0: none.")
]
AsOf = Annotated[
    str | None, typer.Option(metavar="TIME", help="What held then, of what was said by then.")
]
KnownAt = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only by what had been recorded by then.")
]


def recall(
    common: Common,
    *,
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION", help="A question or a few words. `-` reads standard input."
        ),
    ],
    k: Limit = 10,
    token_budget: TokenBudget = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="cofire, or the baselines dense and lexical.")
    ] = "cofire",
    now: Now = None,
    semantic: Semantic = 5,
    as_of: AsOf = None,
    known_at: KnownAt = None,
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
    trusted_only: options.TrustedOnly = False,
) -> None:
    """Recall what bears on a question, best first.

    Before the memories stand records that consolidation made of them ("Known"), and that something
    of the kind was once here and is archived. The filters decide what may be ranked at all. Finding
    nothing is no failure.
    """
    chosen = options.filters(
        kinds=kind, speakers=speaker, sessions=session, tags=tag, meta=meta,
        since=since, until=until, trusted_only=trusted_only,
    )  # fmt: skip
    with opened(common) as memory:
        result = memory.recall(
            text_or_input(question), k,
            token_budget=token_budget, profile=profile, now=now, semantic=semantic,
            as_of=as_of, known_at=known_at, explain=explain, **chosen,
        )  # fmt: skip
        if common.json:
            print_json(recall_shape(result))
            return
        for warning in result.warnings if common.vectors else ():
            note(f"Note: {warning}")
        narrowed = any(chosen.values()) or as_of is not None or known_at is not None
        _print_result(result, Explainer(result, memory) if explain else None, narrowed=narrowed)


def _print_result(result: Recall, explainer: Explainer | None, *, narrowed: bool) -> None:
    same = repeated(result)
    told = [record for record in result.semantic if record.content.strip() not in same]
    for record in told:
        print_known(record, evidence=explainer is not None)
    for shape in result.shapes:
        print_once_here(shape)
    if told or result.shapes:
        say("")
    if not result.items:
        hint = " The filters may leave nothing." if narrowed else ""
        say(f"No memories found.{hint}" if told or result.shapes else f"Nothing found.{hint}")
    for place, hit in enumerate(result.items):
        if place:
            say("")
        print_recalled(place + 1, hit, same.get(hit.content.strip()))
        if explainer is not None:
            explainer.print(place)
    if result.items or told or result.shapes:
        _print_sum(result, len(told))


def _print_sum(result: Recall, told: int) -> None:
    """How much it is, how sure, and what holds for the whole recall."""
    say("")
    known = f", {many(told, 'record')}" if told else ""
    tokens = many(result.tokens, "token")
    if result.tokens:
        say((f"{many(len(result), 'memory', 'memories')}{known}, {tokens}", "dim"))
    _print_how_sure(result)
    if result.trace is not None:
        _print_trace(result.trace)


def _print_how_sure(result: Recall) -> None:
    """The gate's word, and under which id feedback is given."""
    if result.abstain and result.items and not result.shapes:  # a shape says that there was
        say("Probably nothing of the kind was ever said: these are only the nearest.")
    sure = "" if result.confidence is None else f"Confidence {result.confidence:.2f}, r"
    say((f"{sure or 'R'}ecall {result.id}", "dim"))


def _print_trace(trace: Trace) -> None:
    """What holds for the whole recall."""
    say((f"Words looked for: {', '.join(trace.terms) or 'none'}", "dim"), hang=2)
    if trace.time_range is not None:
        start, end = trace.time_range
        say((f"Time asked about: {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC", "dim"))
    timings = ", ".join(f"{stage} {ms:.1f}" for stage, ms in trace.timings.items())
    say((f"Milliseconds: {timings} (profile {trace.profile})", "dim"), hang=2)

"""`hydrate`, `checkpoint`, `threads`, `advance`, `conclude`: a session's start and end, and what is
being worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common
from cofire.cli.output import many, note, print_json, say, shortened, table
from cofire.plain import hydration_shape

if TYPE_CHECKING:
    from cofire.types import Hydration, Thread

_ID = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"
SHOWN = 60
"""Columns of a goal's text."""

Now = Annotated[str | None, typer.Option(metavar="TIME", help="When that is. Default: the clock.")]
Threads = Annotated[
    list[str] | None,
    typer.Option("--thread", metavar="TEXT", help="Something left open; may be repeated."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "hydrate",
        examples=(
            "cofire hydrate",
            'cofire hydrate --cue "Where did we leave the parser?" --budget 800 --why',
            "cofire hydrate --json | jq -r .text",
        ),
    )(hydrate)
    command(
        app,
        "checkpoint",
        examples=(
            'cofire checkpoint "The parser reads dates now." --goal "Ship release 2"',
            'cofire checkpoint --thread "Ask Sam about the logo" --session monday',
        ),
    )(checkpoint)
    command(app, "threads", examples=("cofire threads", "cofire threads --state closed --json"))(
        threads
    )
    command(app, "advance", examples=(f'cofire advance {_ID} "The tests are green."',))(advance)
    command(
        app, "conclude", examples=(f"cofire conclude {_ID}", f'cofire conclude {_ID} "Released."')
    )(conclude)


def hydrate(
    common: Common,
    *,
    cue: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the session opens with.")
    ] = None,
    token_budget: Annotated[
        int, typer.Option("--token-budget", "--budget", metavar="TOKENS", help="At most so many.")
    ] = 1500,
    why: Annotated[bool, typer.Option("--why", help="Say why each memory is there.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Makes what comes up by chance repeatable."),
    ] = None,
    untrusted: Annotated[
        bool,
        typer.Option("--untrusted", help="Also what comes from outside, in a fence at the end."),
    ] = False,
    now: Now = None,
) -> None:
    """Print what a session should open with, ready for a prompt.

    Pinned memories, persona and traits, open goals and threads, what was said last, what bears on
    the cue, what strong links join with it, and one or two old memories that come up by chance.
    """
    with opened(common) as memory:
        found = memory.hydrate(
            cue, token_budget=token_budget, now=now, seed=seed, untrusted=untrusted
        )
        if common.json:
            print_json(hydration_shape(found))
            return
        for warning in found.warnings if common.vectors else ():
            note(f"Note: {warning}")
        if not found:
            say("Nothing is remembered yet.")
            return
        _print_why(found) if why else say(found.text)
        left = ", ".join(f"{count} {section}" for section, count in found.left_out.items())
        counted = f"{many(len(found), 'memory', 'memories')}, {many(found.tokens, 'token')}"
        note(f"{counted}{f'; did not fit: {left}' if left else ''}. Recall {found.id}")


def _print_why(found: Hydration) -> None:
    for place, entry in enumerate(found):
        say(("" if not place else "\n") + entry.line)
        outside = ", untrusted" if entry.untrusted else ""
        say((f"{entry.section}{outside}: {entry.why}  {entry.id}", "dim"), indent=2)


def checkpoint(
    common: Common,
    *,
    summary: Annotated[
        str | None, typer.Argument(metavar="SUMMARY", help="What the session was about.")
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A goal that is pursued; may be repeated."),
    ] = None,
    thread: Threads = None,
    session: Annotated[
        str | None, typer.Option(metavar="NAME", help="The session that ends.")
    ] = None,
    now: Now = None,
) -> None:
    """Capture at a session's end what is open; `cofire hydrate` gives it back."""
    with opened(common, create=True) as memory:
        ended = memory.checkpoint(
            summary, goals=goal or (), threads=thread or (), session=session, now=now
        )
        if common.json:
            print_json(ended)
            return
        for warning in ended.warnings:
            note(f"Note: {warning}")
        say(f"Kept: {ended.summary}")
        _print_threads(ended.open)


def threads(
    common: Common,
    *,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE",
            help="opened, advanced, inferred, stale or closed; may be repeated. Default: those "
            "that are open.",
        ),
    ] = None,
    now: Now = None,
) -> None:
    """List goals and threads, the last one touched first.

    `cofire remember TEXT --kind goal` opens one.
    """
    with opened(common, vectors=False) as memory:
        found = memory.threads(state, now=now) if state else memory.threads(now=now)
        if common.json:
            print_json(found)
        elif not found:
            say("none")
        else:
            _print_threads(found)


def advance(
    common: Common,
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="A goal or thread.")],
    said: Annotated[str, typer.Argument(metavar="NOTE", help="How far it has come.")],
    now: Now = None,
) -> None:
    """Note how far a goal or thread has come."""
    with opened(common) as memory:
        _print_changed(common, memory.advance(id, said, now=now))


def conclude(
    common: Common,
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="A goal or thread.")],
    outcome: Annotated[
        str | None, typer.Argument(metavar="OUTCOME", help="What came of it.")
    ] = None,
    now: Now = None,
) -> None:
    """Close a goal or thread. It is still recalled, but no session opens with it."""
    with opened(common) as memory:
        _print_changed(common, memory.conclude(id, outcome, now=now))


def _print_changed(common: Common, thread: Thread) -> None:
    if common.json:
        print_json(thread)
    else:
        _print_threads((thread,))


def _print_threads(found: tuple[Thread, ...]) -> None:
    if found:
        table(
            [
                (
                    one.id,
                    f"{one.kind.value} (untrusted)" if one.item.untrusted else one.kind.value,
                    f"{one.state} {one.touched:%Y-%m-%d}",
                    shortened(
                        one.content if one.note is None else f"{one.content} ({one.note})", SHOWN
                    ),
                )
                for one in found
            ]
        )

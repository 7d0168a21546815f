"""Learning from use: `feedback`, `strengthen`, `why`, `strengths`, `proposals`, `replay`,
`learn-by`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common
from cofire.cli.output import many, print_json, say, shortened, table
from cofire.types import Learned

if TYPE_CHECKING:
    from cofire.memory import Memory

_A = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"
_B = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a002"
QUOTED = 48
"""Columns of a quotation."""
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "feedback",
        examples=(
            f"cofire feedback {_A} --used {_B}",
            f"cofire feedback {_A} --used {_B} --outcome -0.5 --by nora",
            f"cofire feedback {_A} --rejected {_B} --json",
        ),
    )(feedback)
    command(app, "strengthen", examples=(f"cofire strengthen {_A} {_B} --by nora",))(strengthen)
    command(app, "why", examples=(f"cofire why {_A} {_B}", f"cofire why {_A} {_B} --json"))(why)
    command(
        app,
        "strengths",
        examples=("cofire strengths -n 20", "cofire strengths --as-of 2026-01-01 --json"),
    )(strengths)
    command(app, "proposals", examples=("cofire proposals --least 5",))(proposals)
    command(app, "replay", examples=("cofire replay --json",))(replay)
    command(
        app,
        "learn-by",
        examples=("cofire learn-by hela_mem", "cofire learn-by cofire --into website --json"),
    )(learn_by)


def feedback(
    common: Common,
    *,
    recall: Annotated[
        str, typer.Argument(metavar="RECALL", help="The recall's id, as `recall` prints it.")
    ],
    used: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A memory that was used; may be repeated."),
    ] = None,
    rejected: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A memory that was no good; may be repeated."),
    ] = None,
    outcome: Annotated[
        float, typer.Option(metavar="-1..1", help="How it went: 1 helped, -1 did harm.")
    ] = 1.0,
    by: By = None,
    interaction: Annotated[
        str | None, typer.Option(metavar="NAME", help="The conversation in which this happened.")
    ] = None,
) -> None:
    """Say which memories of a recall were used: this is what Cofire learns from.

    Memories used together are linked, and the question is kept as a cue of them. The same about
    the same question counts once for each who says it.
    """
    with opened(common) as memory:
        learned = memory.feedback(
            recall, used or (), rejected or (), outcome=outcome, by=by, interaction=interaction
        )
        _print_learned(common, memory, learned)


def strengthen(
    common: Common,
    *,
    a: Annotated[str, typer.Argument(metavar="ID", help="A memory's id, in full.")],
    b: Annotated[str, typer.Argument(metavar="ID", help="Another's.")],
    by: By = None,
) -> None:
    """Say that two memories belong together."""
    with opened(common, vectors=False) as memory:
        _print_learned(common, memory, memory.strengthen(a, b, by=by))


def why(
    common: Common,
    *,
    a: Annotated[str, typer.Argument(metavar="ID", help="A memory's or a cue's id, in full.")],
    b: Annotated[str, typer.Argument(metavar="ID", help="Another's.")],
) -> None:
    """List the events behind the learned link of two memories, oldest first."""
    with opened(common, vectors=False) as memory:
        events = memory.why(a, b)
    if common.json:
        print_json(events)
        return
    if not events:
        say("Nothing was learned of these two: they were never used together.")
        return
    table(
        [
            (
                f"{event.time:%Y-%m-%d %H:%M}",
                f"{event.movement:+.3f}",
                f"{event.strength:.3f}",
                event.signal or event.type,
                event.by or "",
                shortened(event.question or "", QUOTED),
            )
            for event in events
        ],
        right=frozenset({1, 2}),
    )


def strengths(
    common: Common,
    *,
    limit: Annotated[
        int, typer.Option("-n", "--limit", metavar="NUMBER", help="At most so many.")
    ] = 20,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="TIME", help="As they were at a past moment.")
    ] = None,
) -> None:
    """List learned links, strongest first, recomputed from the log."""
    with opened(common, vectors=False) as memory:
        found = memory.strengths(as_of=as_of)
        if common.json:
            print_json(found[:limit])
            return
        if not found:
            say("Nothing was learned yet: see `cofire feedback --help`.")
            return
        for link in found[:limit]:
            say(f"{link.strength:.3f}  ", (f"{link.a}  {link.b}", "dim"))
            say(_text(memory, link.a), indent=7, hang=2)
            say(_text(memory, link.b), indent=7, hang=2)
    say("")
    say((f"{min(limit, len(found))} of {many(len(found), 'learned link')}", "dim"))


def proposals(
    common: Common,
    *,
    least: Annotated[
        int, typer.Option(metavar="NUMBER", help="Rejections from which a pair is listed.")
    ] = 3,
) -> None:
    """List pairs that may contradict each other: one was rejected where the other was used."""
    with opened(common, vectors=False) as memory:
        found = memory.proposals(least)
        if common.json:
            print_json(found)
            return
        if not found:
            say("No pair was rejected so often.")
            return
        for pair in found:
            say(f"{many(pair.rejections, 'rejection')}  ", (f"{pair.a}  {pair.b}", "dim"))
            say(_text(memory, pair.a), indent=4, hang=2)
            say(_text(memory, pair.b), indent=4, hang=2)


def replay(common: Common) -> None:
    """Recompute every learned strength from the log, and mend what differs."""
    with opened(common, vectors=False) as memory:
        mended = memory.replay()
    if common.json:
        print_json({"mended": mended})
    elif mended:
        say(f"Mended {many(mended, 'learned link')}.")
    else:
        say("Every learned link is what the log says.")


def learn_by(
    common: Common,
    *,
    rule: Annotated[
        str, typer.Argument(metavar="RULE", help="cofire, hela_mem, atamaia or echomcp.")
    ],
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="PROJECT", help="This project's space, not your own."),
    ] = None,
) -> None:
    """Choose the rule that strengths follow, and recompute them from the log by it.

    The default, cofire, learns from feedback only. By the papers' rules every recall links what it
    returned. `cofire stats` tells which rule a space has; nothing is lost by changing it.
    """
    with opened(common, vectors=False, projects=(into,) if into else ()) as memory:
        changed = memory.learn_by(rule, project=into)
    if common.json:
        print_json({"changed": changed})
    else:
        say(f"Learning by {rule} from now on: {many(changed, 'learned link')} changed.")


def _text(memory: Memory, id: str) -> str:
    item = memory.get(id)
    kind = "question: " if item.kind == "cue" else ""
    return f"{kind}{shortened(item.content, QUOTED)}"


def _print_learned(common: Common, memory: Memory, learned: Learned) -> None:
    if common.json:
        print_json(learned)
        return
    if not learned.counted:
        say("Counted before: nothing changed.")
        return
    say(f"Learned: {many(len(learned.links), 'link')} moved.")
    for link in learned.links:
        say(f"{link.strength:.3f}  {_text(memory, link.a)}  –  {_text(memory, link.b)}", indent=2)

"""`consolidate`, `reports`, `records`, `quarantine`, `shapes`, `archive`, `unarchive`: sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common
from cofire.cli.output import many, print_json, say
from cofire.cli.recorded import print_listed_record, print_sleep, summed_up, tell_step
from cofire.errors import InputError
from cofire.plain import report_shape

if TYPE_CHECKING:
    from cofire.memory import Memory
    from cofire.types import SemanticRecord

_ID = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "consolidate",
        examples=("cofire consolidate", "cofire consolidate --step prune --step archive --json"),
    )(consolidate)
    command(app, "reports", examples=("cofire reports", "cofire reports -n 3 --json"))(reports)
    command(
        app,
        "records",
        examples=(
            "cofire records",
            "cofire records --about Ada --json",
            "cofire records --kind concept",
        ),
    )(records)
    command(app, "quarantine", examples=("cofire quarantine", "cofire quarantine --json"))(
        quarantine
    )
    command(app, "shapes", examples=("cofire shapes",))(shapes)
    command(app, "archive", examples=(f"cofire archive {_ID}",))(archive)
    command(app, "unarchive", examples=(f"cofire unarchive {_ID}",))(unarchive)


def consolidate(
    common: Common,
    *,
    step: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run only this step; may be repeated."),
    ] = None,
    generator: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Language model: openai:MODEL, local:FILE, none."),
    ] = None,
    most_calls: Annotated[
        int | None, typer.Option(metavar="N", help="Calls of it at most.")
    ] = None,
    most_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens sent and received at most.")
    ] = None,
    most_cost: Annotated[
        float | None, typer.Option(metavar="AMOUNT", help="What they may cost at most.")
    ] = None,
    now: Annotated[
        str | None, typer.Option(metavar="TIME", help="The night it is. Default: the clock.")
    ] = None,
) -> int:
    """Make what is remembered smaller, more general and still true.

    Each step applies once per period however often it is called, and works on what is new.
    """
    with opened(common) as memory:
        told = None if common.json else tell_step
        reports = memory.consolidate(
            step or (), generator=generator,
            most_calls=most_calls, most_tokens=most_tokens, most_cost=most_cost, now=now, told=told,
        )  # fmt: skip
        if common.json:
            print_json([report_shape(report) for report in reports])
        else:
            for report in reports:
                say(summed_up(report))
    return 1 if any(report.failed for report in reports) else 0


def reports(
    common: Common,
    *,
    limit: Annotated[
        int, typer.Option("-n", "--limit", metavar="NUMBER", help="At most so many.")
    ] = 5,
) -> None:
    """List what the last consolidations did, newest first."""
    with opened(common, vectors=False) as memory:
        found = memory.reports(limit)
    if common.json:
        print_json([report_shape(report) for report in found])
        return
    if not found:
        say("Nothing was consolidated yet: see `cofire consolidate --help`.")
    for place, report in enumerate(found):
        if place:
            say("")
        print_sleep(report)


def records(
    common: Common,
    *,
    about: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those about this subject.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of this kind, as in fact or concept; may be repeated."),
    ] = None,
) -> None:
    """List what consolidation made of memories: facts, traits, persona, procedures.

    Those that hold no longer are listed too, until when they did. Concepts, gists, words and shapes
    are listed where --kind names them. `cofire show ID` has the evidence.
    """
    with opened(common, vectors=False) as memory:
        _print_records(common, memory.records(about, kinds=kind or ()))


def quarantine(common: Common) -> None:
    """List the records that are not trusted, with the reasons; they are never recalled."""
    with opened(common, vectors=False) as memory:
        _print_records(common, memory.quarantine())


def _print_records(common: Common, found: tuple[SemanticRecord, ...]) -> None:
    if common.json:
        print_json(found)
        return
    for record in found:
        print_listed_record(record)
    if not found:
        say("none")


def shapes(common: Common) -> None:
    """List what is left of what was archived: that something was once here, and about what."""
    with opened(common, vectors=False) as memory:
        found = memory.shapes()
    if common.json:
        print_json(found)
        return
    for shape in found:
        say((shape.id, "dim"))
        say(shape.content, indent=2)
    if not found:
        say("none")


def archive(
    common: Common,
    *,
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Memories to put away.")],
) -> None:
    """Take memories out of recall without deleting them."""
    with opened(common, vectors=False) as memory:
        count = memory.archive(ids)
        if common.json:
            print_json({"archived": count})
        else:
            said = many(count, "memory", "memories")
            say(f"archived {said}; `cofire unarchive` brings them back")


def unarchive(
    common: Common,
    *,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID", help="Memories or shapes to bring back.")
    ],
) -> None:
    """Bring archived memories back; for a shape, all that it stands for."""
    with opened(common, vectors=False) as memory:
        count = _brought_back(memory, ids)
        if common.json:
            print_json({"restored": count})
        else:
            say(f"brought back {many(count, 'memory', 'memories')}")


def _brought_back(memory: Memory, ids: list[str]) -> int:
    try:
        return memory.unarchive(ids)
    except InputError as exc:  # the store knows a record by its number, a reader by its id
        for record in memory.quarantine():
            if record.id in ids:
                raise InputError(
                    f"record {record.id} is {record.state}: verification decides whether it is "
                    "recalled; `cofire quarantine` says why"
                ) from exc
        raise

"""`consolidate`, `records`, `quarantine`, `shapes`, `archive`, `unarchive`: sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common
from cofire.cli.output import many, plain, print_json, say, shortened, table

if TYPE_CHECKING:
    from cofire.types import SemanticRecord, SleepReport, StepReport

_ID = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"
QUOTED = 60
"""Columns of a quotation."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "consolidate",
        examples=("cofire consolidate", "cofire consolidate --step prune --step archive --json"),
    )(consolidate)
    command(app, "records", examples=("cofire records", "cofire records --about Ada --json"))(
        records
    )
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
        typer.Option(metavar="MODEL", help="Language model: openai:MODEL, or none."),
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
) -> int:
    """Make what is remembered smaller, more general and still true.

    Each step applies once per period however often it is called, and works on what is new.
    """
    with opened(common) as memory:
        told = None if common.json else _tell
        reports = memory.consolidate(
            step or (), generator=generator,
            most_calls=most_calls, most_tokens=most_tokens, most_cost=most_cost, told=told,
        )  # fmt: skip
        if common.json:
            print_json([{"status": report.status, **plain(report)} for report in reports])
        else:
            for report in reports:
                _say_sum(report)
    return 1 if any(report.failed for report in reports) else 0


def _tell(step: StepReport) -> None:
    done = ", ".join(f"{name} {count:,}" for name, count in step.counts.items())
    said = step.error or step.skipped or done or "nothing to do"
    say(f"{step.name:<14} {'failed: ' if step.error else ''}{said}")


def _say_sum(report: SleepReport) -> None:
    model = f", {report.calls} model calls, {report.tokens:,} tokens" if report.calls else ""
    cost = f", cost {report.cost:.4f}" if report.cost else ""
    say(f"{report.space}: {report.status} in {report.seconds:.1f} s{model}{cost}")


def records(
    common: Common,
    *,
    about: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those about this subject.")
    ] = None,
) -> None:
    """List what consolidation made of memories: facts, traits, concepts."""
    with opened(common, vectors=False) as memory:
        _print_records(common, memory.records(about))


def quarantine(common: Common) -> None:
    """List the records that are not trusted, with the reasons; they are never recalled."""
    with opened(common, vectors=False) as memory:
        _print_records(common, memory.quarantine(), reasons=True)


def _print_records(
    common: Common, found: tuple[SemanticRecord, ...], *, reasons: bool = False
) -> None:
    if common.json:
        print_json(found)
        return
    if not found:
        say("none")
        return
    last = "why not" if reasons else "evidence"
    rows = [
        (
            record.id,
            record.item.kind.value,
            record.subject,
            shortened(record.content, QUOTED),
            "" if record.valid_to is None else f"until {record.valid_to:%Y-%m-%d}",
            "; ".join(record.reasons) if reasons else many(len(record.evidence), "quote"),
        )
        for record in found
    ]
    table([("id", "kind", "about", "record", "holds", last), *rows])


def shapes(common: Common) -> None:
    """List what is left of what was archived: that something was once here, and about what."""
    with opened(common, vectors=False) as memory:
        found = memory.shapes()
        if common.json:
            print_json(found)
        elif not found:
            say("none")
        else:
            table([(shape.id, shape.content) for shape in found])


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
        count = memory.unarchive(ids)
        if common.json:
            print_json({"restored": count})
        else:
            say(f"brought back {many(count, 'memory', 'memories')}")

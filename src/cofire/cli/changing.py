"""`update`: what is no longer so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common, metadata, text_or_input
from cofire.cli.output import print_json, say
from cofire.errors import InputError

CLEARABLE = ("title", "speaker", "role", "session", "tags", "metadata", "expires")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "update",
        examples=(
            'cofire update 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001 --content "It is in the red tin."',
            "cofire update 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001 --tag shed --tag keys --pin",
            "cofire update 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001 --clear expires --json",
        ),
    )(update)


def update(
    common: Common,
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id, in full.")],
    content: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The new text; `-` reads standard input."),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="The new title.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="The new kind.")] = None,
    speaker: Annotated[str | None, typer.Option(metavar="NAME", help="Who said it.")] = None,
    role: Annotated[str | None, typer.Option(metavar="ROLE", help="Their role.")] = None,
    time: Annotated[str | None, typer.Option(metavar="TIME", help="When it was said.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="NAME", help="The conversation it belongs to.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="Its tags, in place of the former; may be repeated."),
    ] = None,
    importance: Annotated[
        int | None, typer.Option(metavar="1-10", help="How much it matters.")
    ] = None,
    pin: Annotated[
        bool | None, typer.Option("--pin/--no-pin", help="Never let it fade, or let it again.")
    ] = None,
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Its metadata, in place of the former."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="Not recalled from then on.")
    ] = None,
    untrusted: Annotated[
        bool | None,
        typer.Option("--untrusted/--trusted", help="Whether it comes from outside."),
    ] = None,
    clear: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help=f"Make it empty: {', '.join(CLEARABLE)}."),
    ] = None,
) -> None:
    """Change a memory. Its former text stays in its history (`cofire show ID --history`)."""
    given = {
        "title": title,
        "kind": kind,
        "speaker": speaker,
        "role": role,
        "time": time,
        "session": session,
        "tags": tag or None,
        "importance": importance,
        "pinned": pin,
        "metadata": metadata(meta) or None,
        "expires": expires,
        "untrusted": untrusted,
    }
    changes = _changes(given, clear or ())
    if content is None and not changes:
        raise InputError("nothing to change: give --content, --tag or another field")
    text = None if content is None else text_or_input(content)
    with opened(common) as memory:
        item = memory.update(id, content=text, **changes)
    if common.json:
        print_json(item)
    else:
        say(f"Updated: {item.id}, now version {item.version}.")


def _changes(given: Mapping[str, Any], clear: Sequence[str]) -> dict[str, Any]:
    """The fields that were given, and None for those to clear. Raises InputError."""
    changes = {name: value for name, value in given.items() if value is not None}
    for field in clear:
        if field not in CLEARABLE:
            raise InputError(f"--clear takes one of {', '.join(CLEARABLE)}; not {field!r}")
        if field in changes:
            raise InputError(f"--clear {field} contradicts the new value given for it")
        changes[field] = None
    return changes

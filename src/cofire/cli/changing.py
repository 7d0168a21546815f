"""`update` and `forget`: what is no longer so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common, metadata, text_or_input
from cofire.cli.output import asks, many, print_json, say, shortened
from cofire.cli.rendering import heading
from cofire.errors import InputError
from cofire.types import Item

if TYPE_CHECKING:
    from cofire.memory import Memory

CLEARABLE = ("title", "speaker", "role", "session", "tags", "metadata", "expires")
SHOWN = 5
"""Memories shown before a question whether to delete them."""


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
    command(
        app,
        "forget",
        examples=(
            "cofire forget 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001",
            "cofire forget 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001 --dry-run",
            "cofire forget --everything --user nora --yes",
            "cofire forget --everything-in website --dry-run --json",
        ),
    )(forget)


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


def forget(
    common: Common,
    *,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The memories' ids, in full.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="All of the agent's own (of --identity, --user).")
    ] = False,
    everything_in: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="All of this project's shared memories.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete memories for good, with their history, links and vectors.

    On a terminal it asks first. Without one, --everything and --everything-in need --yes. If one
    of several ids does not exist, nothing is deleted.
    """
    whole = everything or everything_in is not None
    _check_choice(common, ids, everything, everything_in)
    if whole and not (yes or dry_run or asks()):
        raise InputError(
            "deleting everything needs --yes where nobody can be asked; --dry-run shows what "
            "would go"
        )
    with opened(
        common, vectors=False, projects=(everything_in,) if everything_in else ()
    ) as memory:
        if whole:
            space, count = _space_and_count(memory, everything_in)
            what = f"all {many(count, 'memory', 'memories')} of {space}"
        else:
            items = [memory.get(id) for id in dict.fromkeys(ids or ())]
            count, what = len(items), many(len(items), "memory", "memories")
        if dry_run:
            return _report(common, 0, f"Would forget {what}.", {"would_forget": count})
        if count and not yes and asks() and not common.json:
            if not whole:
                _show(items)
            if not typer.confirm(f"Forget {what} for good?", err=True):
                return _report(common, 1, "Nothing was forgotten.", {"forgotten": 0})
        if whole:
            gone = memory.forget(everything=True, project=everything_in)
        else:
            gone = memory.forget(list(ids or ()))
    text = f"Forgot {many(gone, 'memory', 'memories')}."
    return _report(common, 0, text, {"forgotten": gone})


def _check_choice(
    common: Common, ids: list[str] | None, everything: bool, everything_in: str | None
) -> None:
    """Raises InputError unless exactly one of the three ways is chosen, and clearly."""
    if (bool(ids), everything, everything_in is not None).count(True) != 1:
        raise InputError("name what to forget: ids, or --everything, or --everything-in PROJECT")
    if everything and common.projects:
        raise InputError(
            "--everything deletes the agent's own memories, not a project's: leave --project out, "
            f"or say --everything-in {common.projects[0]}"
        )


def _space_and_count(memory: Memory, project: str | None) -> tuple[str, int]:
    for space in memory.stats().spaces:
        if space.space.project == project:
            return str(space.space), space.items
    return str(project), 0


def _show(items: list[Item]) -> None:
    for item in items[:SHOWN]:
        say((heading(item), "bold"), " ", shortened(item.content, 60))
    if len(items) > SHOWN:
        say(f"and {len(items) - SHOWN:,} more")


def _report(common: Common, code: int, text: str, document: dict[str, int]) -> int:
    if common.json:
        print_json(document)
    else:
        say(text)
    return code

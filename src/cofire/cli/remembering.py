"""`remember` and `import`: what goes in."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common, metadata, text_or_input
from cofire.cli.output import note, print_json, say
from cofire.cli.progress import progress
from cofire.cli.rendering import print_report
from cofire.types import Kind, Receipt, SpaceRef

Into = Annotated[
    str | None,
    typer.Option(
        "--into", metavar="PROJECT", help="Keep it in this project's shared space, not your own."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "remember",
        examples=(
            'cofire remember "The shed key is in the blue tin." --speaker Ada',
            'cofire remember "Moved to Oslo." --time 2024-05-08 --tag home --session diary',
            "git log -1 | cofire remember - --kind tool_event --tag git",
            "curl -s https://example.org/news | cofire remember - --untrusted --tag news",
            'cofire remember "Deploys need two reviews." --into website --json',
        ),
    )(remember)
    command(
        app,
        "import",
        examples=(
            "cofire import notes/",
            "cofire import locomo10.json --store locomo.db",
            "cofire import chat.jsonl --into website",
            "curl -s https://example.org/chat.jsonl | cofire import - --format jsonl",
            "cofire import everything.jsonl --format cofire --json",
        ),
    )(import_)


def remember(
    common: Common,
    *,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help="What to remember, kept as it is. `-` reads standard input, less the line break "
            "at its end.",
        ),
    ],
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="A title.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help=f"{', '.join(list(Kind)[:8])}. Default: episode."),
    ] = None,
    speaker: Annotated[str | None, typer.Option(metavar="NAME", help="Who said it.")] = None,
    role: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Their role, such as user or assistant.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When, as in 2026-03-17T21:53+01:00. Default: now."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The conversation; its turns are linked in order."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="A tag; may be repeated.")
    ] = None,
    importance: Annotated[
        int | None, typer.Option(metavar="1-10", help="How much it matters. Default: 5.")
    ] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Never let it fade.")] = False,
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Metadata; VALUE is JSON, or else text."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="Not recalled from then on.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Your own id; the same key again changes nothing."),
    ] = None,
    untrusted: Annotated[
        bool | None,
        typer.Option(
            "--untrusted/--trusted",
            help="It comes from outside, a tool or a web page. Default: if the role is tool.",
        ),
    ] = None,
    into: Into = None,
) -> None:
    """Remember one text."""
    content = text_or_input(text)
    with opened(common, create=True, projects=(into,) if into else ()) as memory:
        receipt = memory.remember(
            content,
            title=title,
            kind=kind,
            speaker=speaker,
            role=role,
            time=time,
            session=session,
            tags=tag,
            importance=importance,
            pinned=pinned or None,
            metadata=metadata(meta) or None,
            expires=expires,
            key=key,
            untrusted=untrusted,
            project=into,
        )
    if common.json:
        print_json(receipt)
    else:
        _print_receipt(receipt, common, into)


def _print_receipt(receipt: Receipt, common: Common, into: str | None) -> None:
    for warning in receipt.warnings:
        note(f"Note: {warning}")
    if common.projects and into is None:
        note(f"Kept in {_own(common)}; `--into {common.projects[0]}` would share it.")
    if not receipt.ids:
        say("Nothing to remember.")
        return
    say(f"{'Remembered' if receipt.created[0] else 'Known before'}: {receipt.id}")


def _own(common: Common) -> SpaceRef:
    return SpaceRef(
        tenant=common.tenant or "default", identity=common.identity or "default", user=common.user
    )


def import_(
    common: Common,
    *,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A file, a folder, or `-` for standard input.")
    ],
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="cofire (our own export), locomo, longmemeval, jsonl (a message a line) or text "
            "(plain or Markdown). Default: guessed from the content.",
        ),
    ] = None,
    into: Into = None,
    root: Annotated[
        str | None,
        typer.Option(
            "--root",
            metavar="FOLDER",
            help="Refuse a PATH outside this folder; documents are known by their path within it. "
            "Default: PATH itself, or the folder it is in.",
        ),
    ] = None,
) -> int:
    """Import conversations, messages, documents or an export.

    Importing the same again adds nothing; a document that was edited or moved updates its memory.
    The report says what was read, what was new, and what could not be used and why; the exit code
    is 1 if there were records and none could be used.
    """
    with (
        opened(common, create=True, projects=(into,) if into else ()) as memory,
        progress("Importing", quiet=common.json) as bar,
    ):
        source = sys.stdin.buffer if path == "-" else path
        report = memory.import_(source, format=format, project=into, root=root, progress=bar)
    if common.json:
        print_json(report)
    else:
        print_report(report)
    used = report.imported + report.updated + report.known
    return 1 if report.dropped and not used else 0

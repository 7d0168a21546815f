"""`list`, `show`, `history` and `stats`: what is there."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli import options
from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common
from cofire.cli.output import many, print_json, print_json_line, say, size_text, table
from cofire.cli.rendering import moment, print_item, print_links, print_listed, print_versions
from cofire.errors import NotFoundError
from cofire.plain import plain
from cofire.types import Item, Kind, Page, SemanticRecord, SpaceStats

if TYPE_CHECKING:
    from cofire.memory import Memory

PAGE = 1_000
"""Memories read at once by `list --all`."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "list",
        examples=(
            "cofire list --limit 20",
            "cofire list --speaker Nora --since 2026-03-01 --oldest-first",
            "cofire list --after CURSOR_OF_THE_PAGE_BEFORE",
            "cofire list --all --json > memories.jsonl",
        ),
    )(list_)
    command(
        app,
        "show",
        examples=(
            "cofire show 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001",
            "cofire show 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001 --history --links",
            "cofire show 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001 --json",
        ),
    )(show)
    command(
        app,
        "history",
        examples=(
            "cofire history 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001",
            "cofire history 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001 --json",
        ),
    )(history)
    command(app, "stats", examples=("cofire stats", "cofire stats --project website --json"))(stats)


def list_(
    common: Common,
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="NUMBER", help="Memories of a page, to 10,000.")
    ] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Where the page before ended.")
    ] = None,
    oldest_first: Annotated[
        bool, typer.Option("--oldest-first", help="From the oldest on. Default: newest first.")
    ] = False,
    all: Annotated[
        bool,
        typer.Option("--all", help="Every page; with --json one memory a line (JSON lines)."),
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
    """List memories by time, a page at a time."""
    chosen = options.filters(
        kinds=kind,
        speakers=speaker,
        sessions=session,
        tags=tag,
        meta=meta,
        since=since,
        until=until,
        trusted_only=trusted_only,
    )
    with opened(common, vectors=False) as memory:
        asked = chosen | {"limit": PAGE if all else limit, "newest_first": not oldest_first}
        page = memory.list(after=after, **asked)
        if common.json and not all:
            print_json({"items": page.items, "next": page.next})
            return
        shown = _print_page(page, common)
        while all and page.next is not None:
            page = memory.list(after=page.next, **asked)
            shown += _print_page(page, common)
    if common.json:
        return
    if not shown:
        say("No memories" + (" that fit." if any(chosen.values()) else "."))
    elif page.next is not None:
        say("")
        say((f"More: add --after {page.next}", "dim"))


def _print_page(page: Page, common: Common) -> int:
    """Print the memories of a page; returns how many they are."""
    for item in page:
        if common.json:
            print_json_line(item)
        else:
            print_listed(item)
    return len(page)


def show(
    common: Common,
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id, in full.")],
    history: Annotated[bool, typer.Option("--history", help="Also its former texts.")] = False,
    links: Annotated[bool, typer.Option("--links", help="Also its links.")] = False,
) -> None:
    """Show one memory: the whole text and everything known about it.

    Of a record that consolidation made: also whom it is about, when it holds, and the evidence.
    """
    with opened(common, vectors=False) as memory:
        item = memory.get(id)
        record = _record(memory, item)
        versions = memory.history(id) if history else ()
        found = memory.links(id) if links else ()
        if common.json:
            document = plain(item)
            if record is not None:
                own = plain(record)
                document["record"] = {name: own[name] for name in own if name not in _OF_ITEM}
            if history:
                document["history"] = plain(versions)
            if links:
                document["links"] = plain(found)
            print_json(document)
            return
        print_item(item, record)
        if history:
            say("")
            print_versions(versions)
        if links:
            ends = {link.target if link.source == item.id else link.source for link in found}
            print_links(item, found, _texts(memory, ends))


_OF_ITEM = ("id", "content", "item", "score")
"""Fields of a record that the memory which holds it has, or that only a recall gives."""


def _record(memory: Memory, item: Item) -> SemanticRecord | None:
    """The record that a memory is; None for what was said or remembered."""
    if item.kind in (Kind.EPISODE, Kind.TOOL_EVENT, Kind.CUE):  # consolidation makes none of these
        return None
    found = (*memory.records(kinds=item.kind), *memory.quarantine())
    return next((record for record in found if record.id == item.id), None)


def history(
    common: Common,
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id, in full.")],
) -> None:
    """List what a memory said formerly, oldest first.

    Of a record that consolidation made: also the records that it took the place of.
    """
    with opened(common, vectors=False) as memory:
        versions = memory.history(id)
    if common.json:
        print_json(versions)
    else:
        print_versions(versions)


def _texts(memory: Memory, ids: set[str]) -> dict[str, str]:
    """Speaker and text of memories; the parts of a long text have none of their own."""
    texts = {}
    for id in ids:
        with suppress(NotFoundError):
            item = memory.get(id)
            texts[id] = f"{item.speaker}: {item.content}" if item.speaker else item.content
    return texts


def stats(common: Common) -> None:
    """Count memories, links and bytes, and name the embedding model."""
    with opened(common, vectors=False) as memory:
        found = memory.stats()
    if common.json:
        print_json(plain(found) | {"items": found.items, "links": found.links})
        return
    for place, space in enumerate(found.spaces):
        if place:
            say("")
        say((str(space.space), "bold"))
        table(_rows(space), indent=2)
    say("")
    say(f"The store takes {size_text(found.store_bytes)} on disk.")


def _rows(space: SpaceStats) -> list[tuple[str, ...]]:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in space.by_kind.items() if count)
    rows = [("memories", f"{space.items:,}" + (f" ({kinds})" if kinds else ""))]
    if space.segments:
        rows.append(("segments", f"{space.segments:,} parts of long texts"))
    rows.append(("links", f"{space.links:,}, learning by {space.learning_rule}"))
    if space.oldest is not None and space.newest is not None:
        rows.append(("time", f"{moment(space.oldest)} to {moment(space.newest)}"))
    if space.embedding_model is None:
        rows.append(("vectors", "none yet"))
    else:
        rows.append(("vectors", f"{space.embedding_model}, {space.dimension} dimensions"))
    if space.pending:
        waiting = many(space.pending, "memory waits", "memories wait")
        rows.append(("pending", f"{waiting} for a vector; `cofire reembed` makes them"))
    return [*rows, ("revision", f"{space.revision:,}")]

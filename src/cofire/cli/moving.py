"""`export`, `backup`, `restore`, `reembed`, `scrub` and `rotate-key`: the store as a whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common, path_or_none
from cofire.cli.output import asks, many, print_json, say, size_text
from cofire.cli.progress import progress, waiting
from cofire.errors import InputError

if TYPE_CHECKING:
    from cofire.memory import Memory

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "export",
        examples=(
            "cofire export everything.jsonl",
            "cofire export everything.jsonl --project website --json",
            "cofire export - | gzip > everything.jsonl.gz",
        ),
    )(export)
    command(
        app,
        "backup",
        examples=("cofire backup memory-backup.db", "cofire backup memory-backup.db --json"),
    )(backup)
    command(
        app,
        "restore",
        examples=(
            "cofire restore memory-backup.db",
            "cofire restore memory-backup.db --store elsewhere.db --yes --json",
        ),
    )(restore)
    command(
        app,
        "reembed",
        examples=(
            "cofire reembed",
            "cofire reembed --embedder minilm",
            "cofire reembed --store locomo.db --json",
        ),
    )(reembed)
    command(
        app,
        "scrub",
        examples=("cofire scrub", "cofire scrub --store locomo.db --json"),
    )(scrub)
    command(
        app,
        "rotate-key",
        examples=(
            "cofire rotate-key --new-key-file new.key",
            "cofire rotate-key --new-key-file new.key --store locomo.db --json",
        ),
    )(rotate_key)


def export(
    common: Common,
    *,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="The file to write, or `-` for standard output.")
    ],
) -> None:
    """Write all memories to a file that `cofire import` reads.

    It is JSONL, complete and versioned, and holds the agent's own space and those of
    --project, with vectors and history. The file appears whole or not at all, and takes the place
    of an older export only.
    """
    target = path_or_none(path)
    if target is None and common.json:
        raise InputError("`export -` writes the export to standard output; leave --json out")
    with (
        opened(common, vectors=False) as memory,
        progress("Exporting", quiet=common.json) as bar,
    ):
        if target is None:
            memory.export(sys.stdout.buffer, progress=bar)
            return
        counts = memory.export(target, progress=bar)
    if common.json:
        print_json({"path": str(target), "counts": dict(counts)})
        return
    size = size_text(target.stat().st_size)
    say(f"Exported {many(counts.get('item', 0), 'memory', 'memories')} to {target} ({size}).")


def backup(
    common: Common,
    *,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The file to write.")],
) -> None:
    """Copy the whole store to a file, while it is in use.

    Every space is in it, of whatever identity, user, project and tenant. It takes the place of an
    older backup only, and not of one that has been opened as a store since.
    """
    target = Path(path).expanduser()
    with opened(common, vectors=False) as memory, progress("Copying", quiet=common.json) as bar:
        memory.backup(target, progress=bar)
    size = target.stat().st_size
    if common.json:
        print_json({"path": str(target), "bytes": size})
    else:
        say(f"Backed up to {target} ({size_text(size)}). `cofire restore {target}` brings it back.")


def restore(
    common: Common,
    *,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file that `backup` wrote.")],
    yes: Yes = False,
) -> int:
    """Replace the whole store, every space of it, by a backup.

    On a terminal it asks first; without one it needs --yes if there is anything to lose.
    """
    source = Path(path).expanduser()
    with opened(common, create=True, vectors=False) as memory:
        before = memory.stats()
        if before.items and not yes:
            what = f"{many(before.items, 'memory', 'memories')}, and every other space of the store"
            if not asks() or common.json:
                raise InputError(f"this replaces {what}; say --yes, and `cofire backup` it before")
            if not typer.confirm(f"Replace {what} by {source}?", err=True):
                say("Nothing was changed.")
                return 1
        with progress("Copying", quiet=common.json) as bar:
            memory.restore(source, progress=bar)
        after = memory.stats()
    if common.json:
        print_json({"path": str(source), "items": after.items})
    else:
        say(f"Restored {source}: {many(after.items, 'memory', 'memories')} in this space.")
    return 0


def reembed(common: Common) -> None:
    """Give every memory a vector of the embedding model now chosen.

    Adds vectors that are missing, and moves the store to another model (--embedder or
    COFIRE_EMBEDDER). The old vectors stay in use until all new ones are there, so it can be
    interrupted at any time and goes on where it stopped.
    """
    if not common.vectors:
        raise InputError("reembed makes vectors; leave --no-vectors out")
    with (
        opened(common, vectors=False) as memory,
        progress("Embedding", quiet=common.json) as bar,
    ):
        made = memory.reembed(progress=bar)
        model = _model(memory)
    if common.json:
        print_json({"vectors": made, "model": model})
    else:
        done = f"{many(made, 'vector')} made" if made else "Nothing to do: every vector is there"
        say(f"{done}; the model is {model or 'not chosen yet'}.")


def scrub(common: Common) -> None:
    """Clear traces of forgotten texts from the whole store.

    `forget` does so by itself in a file of up to 8 MB. This rebuilds a file of any size: seconds
    for each 100,000 memories, in memory as large as the file, while others may read but not
    write. The exit code is 5 if another process was in the way.
    """
    with opened(common, vectors=False) as memory:
        with waiting("Rebuilding the file", quiet=common.json):
            freed = memory.scrub()
        size = memory.stats().store_bytes
    if common.json:
        print_json({"bytes": size, "freed": freed})
    else:
        say(f"Scrubbed: the store takes {size_text(size)}, {size_text(freed)} less than before.")


def rotate_key(
    common: Common,
    *,
    new_key_file: Annotated[
        str,
        typer.Option(metavar="PATH", help="File with the new key: 32 random bytes in base64."),
    ],
) -> None:
    """Put all encrypted spaces of the store under another master key.

    The settings name the former key; name the new one there afterwards. What is stored stays as
    it is, only the keys of the spaces are wrapped anew, all at once. Backups stay under the former
    key.
    """
    from cofire.workings import read_key_file

    read_key_file(new_key_file)  # complained about before the store is opened
    text = Path(new_key_file).expanduser().read_text(encoding="ascii")
    with opened(common, vectors=False) as memory:
        spaces = memory.rotate_key(text)
    if common.json:
        print_json({"spaces": spaces})
        return
    say(
        f"{many(spaces, 'encrypted space')} under the new key. Name it in the settings from now "
        "on; keep the former one as long as you keep backups from before."
    )


def _model(memory: Memory) -> str | None:
    return memory.stats().spaces[0].embedding_model

"""`forget` and `receipts`: deleting, and what proves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofire.cli import options
from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common
from cofire.cli.output import asks, many, print_json, say, shortened
from cofire.cli.rendering import heading, moment
from cofire.errors import ConfirmationNeededError, InputError
from cofire.types import Deletion, Item, Verification

if TYPE_CHECKING:
    from cofire.memory import Memory

SHOWN = 5
"""Memories shown before a question whether to delete them."""

Confirm = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN", help="Confirms --everything or --everything-in; the refusal names it."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "forget",
        examples=(
            "cofire forget 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001",
            "cofire forget 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001 --dry-run",
            "cofire forget --tag diary --until 2026-01-01 --scope own --dry-run",
            "cofire forget --everything --user nora --yes",
            "cofire forget --everything-in website --dry-run --json",
        ),
    )(forget)
    command(
        app,
        "receipts",
        examples=(
            "cofire receipts",
            "cofire receipts 019d0b7c-1f2e-7a61-8f53-2c9b6de1a001",
            "cofire receipts --json",
        ),
    )(receipts)


def forget(
    common: Common,
    *,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The memories' ids, in full.")
    ] = None,
    kind: options.Kinds = None,
    speaker: options.Speakers = None,
    session: options.Sessions = None,
    tag: options.Tags = None,
    meta: options.Meta = None,
    since: options.Since = None,
    until: options.Until = None,
    scope: Annotated[
        str | None,
        typer.Option(
            metavar="own|PROJECT", help="Where to delete by filters: the agent's own, or a project."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="All of the agent's own (of --identity, --user).")
    ] = False,
    everything_in: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="All of this project's shared memories.")
    ] = None,
    confirm: Confirm = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete memories for good, with everything that is derived from them or repeats them.

    Name ids, or filters and a --scope, or everything. On a terminal it asks first. Without one,
    filters need --yes, and --everything and --everything-in need --yes or --confirm TOKEN. If one
    of several ids does not exist, nothing is deleted. What went is told by a receipt without
    content, which `cofire receipts` checks later.
    """
    chosen = options.filters(
        kinds=kind, speakers=speaker, sessions=session, tags=tag, meta=meta,
        since=since, until=until,
    )  # fmt: skip
    selectors = {name: value for name, value in chosen.items() if value not in ((), {}, None)}
    _require_choice(
        common, ids, selectors, everything=everything, everything_in=everything_in, scope=scope
    )
    asking = asks() and not (yes or dry_run or confirm or common.json)
    if selectors and not (yes or dry_run or asking):
        raise InputError(
            "deleting by filters needs --yes where nobody can be asked; --dry-run shows what "
            "would go"
        )
    shared = tuple(name for name in (everything_in, scope) if name and name != "own")
    with opened(common, vectors=False, projects=shared) as memory:
        whole = everything or everything_in is not None
        how = _Way(
            memory, ids=ids, selectors=selectors, scope=scope, project=everything_in, whole=whole
        )
        would = how.forget(dry_run=True)
        what = f"{'all ' if whole else ''}{many(would.memories, 'memory', 'memories')}"
        what += f" of {would.spaces[0]}" if whole else ""
        if dry_run:
            return _report(common, would, f"Would forget {what}.", "would_forget")
        if asking and would.memories:
            _show(how.items())
            if not typer.confirm(f"Forget {what} for good?", err=True):
                return _refused(common)
        gone = how.forget(confirm=confirm, agreed=yes or asking)
    text = f"Forgot {many(gone.memories, 'memory', 'memories')}."
    return _report(common, gone, text, "forgotten")


class _Way:
    """One of the three ways to say what is to be deleted."""

    def __init__(
        self,
        memory: Memory,
        *,
        ids: Sequence[str] | None,
        selectors: Mapping[str, Any],
        scope: str | None,
        project: str | None,
        whole: bool,
    ) -> None:
        self._memory = memory
        self._ids = list(dict.fromkeys(ids or ()))
        self._selectors = dict(selectors)
        self._scope = scope
        self._project = project
        self._whole = whole

    def forget(
        self, *, dry_run: bool = False, confirm: str | None = None, agreed: bool = False
    ) -> Deletion:
        """Raises ConfirmationNeededError unless somebody `agreed` or the token fits."""
        forget = self._memory.forget
        if self._ids:
            return forget(self._ids, dry_run=dry_run)
        if not self._whole:
            return forget(scope=self._scope, dry_run=dry_run, **self._selectors)
        try:
            return forget(everything=True, project=self._project, confirm=confirm, dry_run=dry_run)
        except ConfirmationNeededError as exc:
            if agreed and confirm is None:
                return forget(everything=True, project=self._project, confirm=exc.token)
            refused = "" if confirm is None else "that token is of another space, or too old. "
            raise ConfirmationNeededError(
                f"{refused}this deletes {many(exc.count, 'memory', 'memories')} for good. Add "
                f"--confirm {exc.token} within ten minutes, or --yes; --dry-run shows what would "
                "go",
                count=exc.count,
                token=exc.token,
            ) from exc

    def items(self) -> list[Item]:
        """The memories that are named one by one."""
        return [self._memory.get(id) for id in self._ids]


def _require_choice(
    common: Common,
    ids: list[str] | None,
    selectors: Mapping[str, Any],
    *,
    everything: bool,
    everything_in: str | None,
    scope: str | None,
) -> None:
    """Raises InputError unless exactly one of the ways is chosen, and clearly."""
    ways = (bool(ids), bool(selectors), everything, everything_in is not None)
    if ways.count(True) != 1:
        raise InputError(
            "name what to forget: ids, or filters and --scope, or --everything, or "
            "--everything-in PROJECT"
        )
    if bool(selectors) != (scope is not None):
        raise InputError(
            "filters and --scope go together: --scope own for the agent's own memories, or "
            "--scope PROJECT"
        )
    if everything and common.projects:
        raise InputError(
            "--everything deletes the agent's own memories, not a project's: leave --project out, "
            f"or say --everything-in {common.projects[0]}"
        )


def _show(items: Sequence[Item]) -> None:
    for item in items[:SHOWN]:
        say((heading(item), "bold"), " ", shortened(item.content, 60))
    if len(items) > SHOWN:
        say(f"and {len(items) - SHOWN:,} more")


def _refused(common: Common) -> int:
    if common.json:
        print_json({"forgotten": 0})
    else:
        say("Nothing was forgotten.")
    return 1


def _report(common: Common, deletion: Deletion, text: str, name: str) -> int:
    if common.json:
        print_json({name: deletion.memories, "receipt": deletion})
        return 0
    say(text)
    for line in _more(deletion):
        say(line, indent=2)
    if deletion.id is not None:
        say((f"Receipt {deletion.id}: {_files(deletion.scrubbed)}", "dim"))
    return 0


def _more(deletion: Deletion) -> list[str]:
    """What else follows, a line each; nothing where nothing does."""
    went = [
        many(count, one)
        for count, one in (
            (deletion.derived, "derived record"),
            (deletion.cues, "cue"),
            (deletion.recalls, "recorded question"),
        )
        if count
    ]
    lines = [f"Along with {', '.join(went)}."] if went else []
    if deletion.doubtful:
        count = len(deletion.doubtful)
        lines.append(f"Out of recall until verified again: {many(count, 'record')}.")
    if deletion.reopened:
        lines.append(f"Holding again: {many(len(deletion.reopened), 'record')}.")
    return lines


def _files(scrubbed: str) -> str:
    if scrubbed == "scrubbed":
        return "no copy is left in the store's files."
    if scrubbed == "operator":
        return "what the server's files, log and backups hold is its operator's to clear."
    return "copies may be left in the store's files; `cofire scrub` clears them."


def receipts(
    common: Common,
    *,
    id: Annotated[
        str | None, typer.Argument(metavar="ID", help="A receipt to check; default: list them.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="NUMBER", help="Receipts listed at most.")
    ] = 20,
) -> int:
    """List the receipts of what was deleted, or check one.

    A receipt names ids, counts and a time, and no content. Checking looks again for everything it
    names; the exit code is 1 if something is there, as after restoring an older backup.
    """
    with opened(common, vectors=False) as memory:
        if id is not None:
            return _print_verification(common, memory.verify(id))
        found = memory.receipts(limit=limit)
    if common.json:
        print_json({"receipts": found})
        return 0
    for one in found:
        where = ", ".join(map(str, one.spaces))
        every = "everything: " if one.everything else ""
        counts = many(one.memories, "memory", "memories")
        say(
            (one.id or "", "dim"),
            "  ",
            (moment(one.time), "bold"),
            f"  {every}{counts} of {where}, {one.scrubbed}",
        )
    if not found:
        say("No receipts: nothing was forgotten here.")
    return 0


def _print_verification(common: Common, verification: Verification) -> int:
    if common.json:
        print_json(verification)
    elif verification.found:
        rows = ", ".join(f"{name} {count:,}" for name, count in sorted(verification.found.items()))
        say(
            f"Not gone: of what the receipt names there is in the store: {rows}. Restoring a "
            "backup or importing an export brings back what it holds; forget it again."
        )
    else:
        say(f"Gone: nothing the receipt names is in the store; {_files(verification.scrubbed)}")
    return 1 if verification.found else 0

"""`db copy`: a store's memories in another store, whatever is behind each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofire.cli.commands import command
from cofire.cli.opening import log_to_standard_error
from cofire.cli.options import Common
from cofire.cli.output import many, note, print_json, say, table
from cofire.cli.progress import progress

if TYPE_CHECKING:
    from cofire.settings import Settings
    from cofire.store import Store
    from cofire.store.copy_report import CopyReport

DIGITS = 16
"""How many digits of a digest a person is shown."""

_OTHER = ("store", "identity", "user", "project", "tenant", "no_vectors", "embedder")
"""Common options without meaning here, or with another one."""


def register(group: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        group,
        "copy",
        examples=(
            "cofire db copy memories.db postgresql://app@host/memory",
            "cofire db copy postgresql://app@host/memory new.db --tenant acme --tenant home",
            "cofire db copy memories.db elsewhere.db --json",
            "cofire db copy memories.db postgresql://app@host/memory --tenant acme --discard",
        ),
        without=_OTHER,
    )(copy)


def copy(
    common: Common,
    *,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="SQLite file or URL of the store to copy.")
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="SQLite file (made if need be) or URL to copy into; on PostgreSQL, after `cofire "
            "db upgrade`.",
        ),
    ],
    tenant: Annotated[
        list[str] | None,
        typer.Option(
            "--tenant",
            metavar="NAME",
            help="Copy this tenant; may be repeated. Default: all; PostgreSQL keeps tenants apart, "
            "and wants each to be named.",
        ),
    ] = None,
    discard: Annotated[
        bool,
        typer.Option(
            "--discard", help="Copy nothing: remove what an interrupted copy left in TARGET."
        ),
    ] = False,
) -> None:
    """Copy memories between SQLite and PostgreSQL, or two of a kind.

    Every space is copied with its ids, former texts, learning log, links, vectors and receipts, in
    the state it has when its turn comes; SOURCE may be in use. Then all of it is read back and
    compared. Interrupted, it goes on where it was when the same command is run again; until then
    nobody can use what is there. A space that TARGET has already is refused. Encrypted spaces need
    the key, and stay encrypted.
    """
    from cofire.settings import load_settings

    settings = load_settings()
    log_to_standard_error(settings.log_level)
    before = () if common.tenant is None else (common.tenant,)
    tenants = (*before, *(tenant or ())) or None
    if discard:
        _discard(common, settings, target, tenants)
        return
    from cofire.store.copying import copy_store, copyable

    with _opened(settings, source, create=False) as origin:
        copyable(origin, tenants)  # complained about before the target is made
        with (
            _opened(settings, target, create=True) as destination,
            progress("Copying", quiet=common.json) as bar,
        ):
            report = copy_store(origin, destination, tenants, bar)
    if common.json:
        print_json(_as_json(report))
    else:
        _print(report)


def _opened(settings: Settings, where: str, *, create: bool) -> Store:
    from cofire.store import open_store
    from cofire.workings import master_key

    return open_store(
        where,
        create=create,
        busy_timeout=settings.write_wait,
        durability=settings.durability,
        statement_timeout=settings.statement_timeout,
        pool_size=settings.pool_size,
        master_key=master_key(settings),
        encrypt_new=create and settings.encrypt_new_spaces,
    )


def _discard(
    common: Common, settings: Settings, target: str, tenants: tuple[str, ...] | None
) -> None:
    from cofire.store.copying import discard_copies

    with _opened(settings, target, create=False) as store:
        gone = discard_copies(store, tenants)
    if common.json:
        print_json({"discarded": [str(ref) for ref in gone]})
    elif gone:
        say(f"Removed {many(len(gone), 'unfinished copy', 'unfinished copies')}.")
    else:
        say("No unfinished copy is there.")


def _as_json(report: CopyReport) -> dict[str, Any]:
    return {
        "source": report.source,
        "target": report.target,
        "rows": sum(one.rows for one in report.tables),
        "tables": report.tables,
        "spaces": [{"space": str(one.space), "tables": one.tables} for one in report.spaces],
        "resumed": [str(ref) for ref in report.resumed],
        "restarted": [str(ref) for ref in report.restarted],
        "finished_before": report.finished_before,
    }


def _print(report: CopyReport) -> None:
    for ref in report.restarted:
        note(f"{ref}: it had changed since the copy was begun, and was copied from the start.")
    for name in report.finished_before:
        note(f"Tenant {name}: its copy was finished before.")
    rows = sum(one.rows for one in report.tables)
    begun = f", {len(report.resumed):,} of them begun before" if report.resumed else ""
    say(
        f"Copied {many(len(report.spaces), 'space')}{begun}: {many(rows, 'row')}, read back and "
        "found equal."
    )
    lines: list[tuple[str, ...]] = [("table", "rows", "digest")]
    lines += [
        (one.table, f"{one.rows:,}", one.digest[:DIGITS]) for one in report.tables if one.rows
    ]
    table(lines, indent=2, right=frozenset({1}))

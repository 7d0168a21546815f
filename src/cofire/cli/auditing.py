"""`audit`: who did what over a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofire.cli.commands import command
from cofire.cli.keys import opened_store
from cofire.cli.options import Common
from cofire.cli.output import print_json, say, table

if TYPE_CHECKING:
    from cofire.store import Store

_PAGE = 1_000
_OTHER = ("identity", "user", "project", "no_vectors", "embedder")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "audit",
        examples=(
            "cofire audit",
            "cofire audit --action forget --since 2026-11-01",
            "cofire audit --principal dashboard -n 1000 --json",
        ),
        without=_OTHER,
    )(audit)


def audit(
    common: Common,
    *,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Not before, as in 2026-03-01.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Before, as in 2026-04-01.")
    ] = None,
    principal: Annotated[
        str | None, typer.Option(metavar="NAME", help="What was done with the keys of this name.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(metavar="NAME", help="What was done: remember, forget, and so on.")
    ] = None,
    limit: Annotated[
        int, typer.Option("-n", "--limit", metavar="NUMBER", min=1, help="At most so many.")
    ] = 100,
) -> None:
    """List who did what over a server, newest first; never what it was about."""
    from cofire.server.auditing import entry_json

    with opened_store(common) as store:
        found = [
            entry_json(entry)
            for entry in _pages(
                store,
                common.tenant or "default",
                limit,
                since=_micros(since),
                until=_micros(until),
                principal=principal,
                action=action,
            )
        ]
    if common.json:
        print_json(found)
        return
    if not found:
        say("Nothing of the kind was done over a server.")
        return
    table([_line(entry) for entry in found])


def _pages(store: Store, tenant: str, limit: int, **asked: Any) -> list[Any]:
    found: list[Any] = []
    while len(found) < limit:
        after = (found[-1].time, found[-1].uid) if found else None
        most = min(_PAGE, limit - len(found))
        page = store.list_audit(tenant, after=after, limit=most, **asked)
        found.extend(page)
        if len(page) < most:
            break
    return found


def _line(entry: dict[str, Any]) -> tuple[str, ...]:
    how = entry["outcome"] if entry["code"] is None else f"{entry['outcome']} ({entry['code']})"
    count = "" if entry["count"] is None else str(entry["count"])
    return (
        entry["time"], entry["principal"] or "-", entry["surface"], entry["action"], how, count,
        entry["request"] or "",
    )  # fmt: skip


def _micros(text: str | None) -> int | None:
    from cofire.encoding.timestamps import parse_time

    if text is None:
        return None
    return (parse_time(text)[0] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

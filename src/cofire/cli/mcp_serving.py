"""`mcp`: Cofire over the Model Context Protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.opening import require_server_extra
from cofire.cli.options import Common
from cofire.errors import InputError

if TYPE_CHECKING:
    from cofire.server.access import Caller

INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "mcp",
        examples=(
            "cofire mcp",
            "cofire mcp --identity coder --project billing",
            "cofire mcp --http --port 8322",
            "cofire mcp --compat",
        ),
    )(mcp)


def mcp(
    common: Common,
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Over HTTP under /mcp, not over standard input.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="With --http: listen here. Default: 127.0.0.1."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --http: port; 0: any that is free. Default: 8321."),
    ] = None,
    auth: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="With --http: keys or none, as for `cofire serve`."),
    ] = None,
    compat: Annotated[
        bool,
        typer.Option(
            "--compat",
            help="The nine tools of the official memory server (create_entities and so on) in "
            "place of Cofire's own.",
        ),
    ] = False,
) -> int:
    """Serve an agent's tools: remember, recall, feedback and nine more.

    Over standard input and output, where clients such as Claude or an editor start it themselves
    (`cofire install` tells them how), or with --http for many clients at once. It ends when the
    client closes its end, or by Ctrl-C, and loses nothing.
    """
    if http:
        return _over_http(common, host=host, port=port, auth=auth, compat=compat)
    if host is not None or port is not None or auth is not None:
        raise InputError("--host, --port and --auth go with --http")
    from cofire.server.mcp.wire import claim

    wire = claim()  # before anything is imported that might print
    require_server_extra()
    from cofire.server.mcp.local import LocalPlan, serve_local

    return serve_local(
        LocalPlan(
            store=common.store,
            embedder=common.embedder,
            vectors=common.vectors,
            tenant=common.tenant or "default",
            identity=common.identity,
            user=common.user,
            projects=common.projects,
            compat=compat,
        ),
        wire,
    )


def _over_http(
    common: Common, *, host: str | None, port: int | None, auth: str | None, compat: bool
) -> int:
    require_server_extra()
    from cofire.server.serving import Plan, serve
    from cofire.settings import load_settings

    settings = load_settings(
        store=common.store, embedder=common.embedder, server_host=host, server_port=port,
        server_auth=auth,
    )  # fmt: skip
    serve(
        Plan(
            settings=settings, caller=_caller(common), vectors=common.vectors,
            rest=False, compat=compat,
        )
    )  # fmt: skip
    return 0


def _caller(common: Common) -> Caller:
    """Who asks where no key is wanted: as for `cofire serve`."""
    from cofire.server.access import local_caller

    return replace(
        local_caller(common.tenant or "default"),
        identities=None if common.identity is None else (common.identity,),
        users=None if common.user is None else (common.user,),
        projects=common.projects or None,
    )

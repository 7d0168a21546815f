"""`serve`: Cofire over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.opening import require_server_extra
from cofire.cli.options import Common


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "serve",
        examples=(
            "cofire serve",
            "cofire serve --port 9000 --auth keys",
            "cofire serve --host 0.0.0.0 --auth keys --workers 2",
        ),
    )(serve)


def serve(
    common: Common,
    *,
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Listen here. Default: 127.0.0.1, this machine only."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", help="Port; 0: any that is free. Default: 8321.")
    ] = None,
    auth: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="keys: whoever asks needs one; none: only on 127.0.0.1."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes that answer. Default: 1.")
    ] = None,
) -> None:
    """Answer over HTTP: REST under /v1 and /api, MCP under /mcp.

    Without keys, whoever can reach the server may do everything, so it listens on this machine
    only, and --tenant, --identity, --user and --project say whose memories they are. Ctrl-C ends
    it when what was begun is finished.
    """
    require_server_extra()
    from cofire.server.access import local_caller
    from cofire.server.serving import Plan
    from cofire.server.serving import serve as run
    from cofire.settings import load_settings

    settings = load_settings(
        store=common.store, embedder=common.embedder, server_host=host, server_port=port,
        server_auth=auth, server_workers=workers,
    )  # fmt: skip
    caller = replace(
        local_caller(common.tenant or "default"),
        identities=None if common.identity is None else (common.identity,),
        users=None if common.user is None else (common.user,),
        projects=common.projects or None,
    )
    run(Plan(settings=settings, caller=caller, vectors=common.vectors))

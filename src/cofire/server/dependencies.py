"""What routes are given: the service, who asks, and whose memories the request names.

All of them are coroutines: FastAPI runs plain functions on its own threads, which costs a turn
of the event loop each.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import Field

from cofire.server.access import Caller, Where
from cofire.server.service import Service


async def the_service(request: Request) -> Service:
    """The service of this application."""
    service: Service = request.app.state.service
    return service


async def the_caller(request: Request) -> Caller:
    """Who asks; the middleware has authenticated them."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


async def request_id(request: Request) -> str:
    """The id by which the caller and the log know this request."""
    name: str = request.scope["state"]["request"]
    return name


async def the_where(
    project: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        Query(
            default_factory=list,
            description="A project whose shared memories are read too; may be repeated.",
        ),
    ],
    identity: Annotated[
        str | None,
        Query(
            min_length=1,
            description="The agent whose memories they are. Default: the key's first.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        Query(min_length=1, description="The end user whom the agent serves, with memories apart."),
    ] = None,
) -> Where:
    """Whose memories the request names."""
    return Where(identity=identity, user=user, projects=tuple(project))


TheService = Annotated[Service, Depends(the_service)]
TheCaller = Annotated[Caller, Depends(the_caller)]
TheWhere = Annotated[Where, Depends(the_where)]
RequestId = Annotated[str, Depends(request_id)]

"""What routes are given: whose memories a request names, and the id that it has.

Whatever is a function is a coroutine: FastAPI runs plain functions on its own threads, which costs
a turn of the event loop each.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import Field


def _no_projects() -> list[str]:
    # Not `list`: the framework looks at its signature for each request, which has to be parsed.
    return []


Projects = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    Query(
        default_factory=_no_projects,
        description="A project whose shared memories are read too; may be repeated.",
    ),
]
Identity = Annotated[
    str | None,
    Query(min_length=1, description="The agent whose memories they are. Default: the key's first."),
]
User = Annotated[
    str | None,
    Query(min_length=1, description="The end user whom the agent serves, with memories apart."),
]


async def request_id(request: Request) -> str:
    """The id by which the caller and the log know this request."""
    name: str = request.scope["state"]["request"]
    return name


RequestId = Annotated[str, Depends(request_id)]

"""REST: everything a memory can do under /v1, and the contracts of Atamaia under /api.

A module for each subject, and in each a router whose routes ask `Service.run` through `asking`.
`bodies` is what is sent, `values` what is answered, both as the OpenAPI document has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import APIRouter


def routers() -> list[APIRouter]:
    """The routers of REST, in the order of the OpenAPI document."""
    from cofire.server.rest import (
        admin,
        answering,
        atamaia,
        deletion,
        learning,
        memories,
        moving,
        own,
        recalling,
        sessions,
        sleep,
    )

    modules = (
        memories, recalling, answering, learning, sessions, sleep, deletion, moving, own, admin,
        atamaia,
    )  # fmt: skip
    return [module.router for module in modules]

"""Who asks, and how much there is."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from cofire.errors import CofireError
from cofire.plain import fields_of
from cofire.server.access import Caller, Place, Where
from cofire.server.actions import Action
from cofire.server.answers import Json, json_bytes
from cofire.server.keys import key_id
from cofire.server.rest import examples, values
from cofire.server.rest.asking import Asked, answers
from cofire.server.rest.numbers import identity_number
from cofire.types import Stats

router = APIRouter(
    prefix="/v1", tags=["About"], generate_unique_id_function=lambda route: route.name
)


@router.get(
    "/me",
    response_model=values.Me,
    **answers(examples.ME, description="Who asks."),
)
async def me(asked: Asked) -> Response:
    """Who asks, as the server knows them: what the key may do, and whose memories it may name."""
    return Json(json_bytes(_about(asked.caller, asked.where)))


def _about(caller: Caller, where: Where) -> dict[str, Any]:
    try:
        place: Place | None = caller.place(where)
    except CofireError:  # it has to name a user, or may name none
        place = None
    return {
        "name": caller.name,
        "tenant": caller.tenant,
        "identity": None if place is None else place.identity,
        "user": None if place is None else place.user,
        "identities": caller.identities,
        "users": caller.users,
        "projects": caller.projects,
        "scopes": sorted(caller.scopes),
        "key": None if caller.key is None else key_id(caller.key),
        "identity_number": None if place is None else identity_number(place),
    }


@router.get(
    "/stats",
    response_model=values.Stats,
    **answers(examples.STATS, description="Counts, by space."),
)
async def stats(asked: Asked) -> Response:
    """Counts of these memories: the agent's own space and those of the projects that the request
    names."""

    def shape(found: Stats) -> dict[str, Any]:
        shown = {
            name: value
            for name, value in fields_of(found).items()
            if name not in {"store_bytes", "graph_bytes"}  # they are everybody's
        }
        return shown | {"items": found.items, "links": found.links}

    return await asked.read(Action.STATS, lambda memory: memory.stats(), shape)

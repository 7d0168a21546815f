"""Whether the server lives, and whether it can work: asked without a key, and told nothing else."""

from __future__ import annotations

from time import monotonic

import anyio
import anyio.to_thread
from fastapi import APIRouter, Response

from cofire.errors import StoreError
from cofire.server.service import Service

PATIENCE = 1.0
"""Seconds that the store has to answer."""
FRESH = 0.5
"""Seconds for which one answer of the store stands for all that are asked for."""
NOBODY = bytes(16)


class Readiness:
    """Whether the store answers; asked at most twice a second, and on a thread of its own, so that
    verbs that wait for something else do not hold it up."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._limiter: anyio.CapacityLimiter | None = None
        self._until = 0.0
        self._ready = False

    async def ready(self) -> bool:
        if monotonic() >= self._until:
            self._ready = await self._asked()
            self._until = monotonic() + FRESH
        return self._ready

    async def _asked(self) -> bool:
        if self._limiter is None:  # it belongs to the running event loop
            self._limiter = anyio.CapacityLimiter(2)
        with anyio.move_on_after(PATIENCE):
            return await anyio.to_thread.run_sync(
                self._answers, abandon_on_cancel=True, limiter=self._limiter
            )
        return False

    def _answers(self) -> bool:
        try:
            self._service.memories.store.find_key(0, NOBODY)  # there is none: it costs one look
        except StoreError:
            return False
        return True


def health_routes(service: Service) -> APIRouter:
    """`/livez`: the process answers. `/readyz`: it takes requests, and the store answers."""
    readiness = Readiness(service)
    routes = APIRouter(include_in_schema=False)

    async def live() -> Response:
        return Response("ok\n", media_type="text/plain")

    async def ready() -> Response:
        if not await readiness.ready():
            return Response("not ready\n", 503, media_type="text/plain")
        return Response("ok\n", media_type="text/plain")

    routes.add_api_route("/livez", live, methods=["GET", "HEAD"])
    routes.add_api_route("/readyz", ready, methods=["GET", "HEAD"])
    return routes

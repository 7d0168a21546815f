"""A server of the tests' own: the application behind a real uvicorn, on a thread, on loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import APIRouter

from cofire.memories import Memories
from cofire.models import Embedder
from cofire.server.access import Caller, local_caller
from cofire.server.app import HttpOptions, create_app
from cofire.server.authentication import Authenticator
from cofire.server.connections import HEAD_BYTES, Deadlines
from cofire.server.limits import Limits
from cofire.server.model_turns import ModelTurns
from cofire.server.service import Service, Witness

HASHING = "hashing:64"


class Running:
    """A server that answers at `url`."""

    def __init__(self, url: str, service: Service, app: Any, server: uvicorn.Server) -> None:
        self.url = url
        self.service = service
        self.app = app
        self._server = server

    @property
    def memories(self) -> Memories:
        return self.service.memories

    def stop(self) -> None:
        """Begin to stop, as on a signal."""
        self._server.should_exit = True


@contextmanager
def running_server(
    store: str | Path,
    *,
    local: Caller | None = None,
    keys: bool = False,
    limits: Limits | None = None,
    embedder: Embedder | str = HASHING,
    witnesses: Sequence[Witness] = (),
    routers: Sequence[APIRouter] | None = None,
    options: HttpOptions | None = None,
    threads: int = 4,
    waiting: int = 256,
    models: ModelTurns | None = None,
    stop_seconds: int = 10,
    **more: Any,
) -> Iterator[Running]:
    """A server of `store` (a file or URL), stopped gracefully afterwards. Without `keys` it asks
    for none, and whoever asks is `local` (default: they may do everything); keys are made with
    `cofire.server.keys` in `Running.memories.store`. `more` goes to `create_app`."""
    with Memories.open(store, embedder=embedder) as memories:
        service = Service(
            memories, witnesses=tuple(witnesses), threads=threads, waiting=waiting, models=models
        )
        authenticator = Authenticator(
            memories.store, local=None if keys else local or local_caller(), limits=limits
        )
        app = create_app(
            service, authenticator, options=options, limits=limits, routers=routers, **more
        )
        try:
            with answering(app, stop_seconds) as (url, server):
                yield Running(url, service, app, server)
        finally:
            service.close()
            authenticator.close()


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """The address at which an application answers, behind uvicorn on a thread."""
    with answering(app) as (url, _):
        yield url


class Prompt(uvicorn.Server):
    """A server that looks every 10 ms, not 100, whether it is to stop: hundreds are stopped."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await asyncio.sleep(0.01)


@contextmanager
def answering(app: Any, stop_seconds: int = 10) -> Iterator[tuple[str, uvicorn.Server]]:
    """As `listening`, with the server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            app, http=Deadlines, ws="none", log_config=None, access_log=False, lifespan="on",
            timeout_graceful_shutdown=stop_seconds, h11_max_incomplete_event_size=HEAD_BYTES,
        )  # fmt: skip
        server = Prompt(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            while not server.started and thread.is_alive():
                threading.Event().wait(0.005)
            assert server.started, "the application did not start"
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", server
        finally:
            server.should_exit = True
            thread.join()

"""Cofire over MCP for tests: over HTTP on loopback, behind the real middleware."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cofire.memories import Memories
from cofire.models import Embedder
from cofire.server.access import Caller, local_caller
from cofire.server.app import create_app
from cofire.server.authentication import Authenticator
from cofire.server.mcp.catalogue import tools_for
from cofire.server.mcp.http import mcp_app
from cofire.server.service import Service
from serving import HASHING, listening


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that answers MCP at `url`."""

    url: str
    service: Service


@contextmanager
def mcp_server(
    store: str | Path,
    *,
    local: Caller | None = None,
    keys: bool = False,
    embedder: Embedder | str = HASHING,
    compat: bool = False,
) -> Iterator[Serving]:
    """A server of a store (a file or URL); the parameters are those of `serving.running_server`."""
    with Memories.open(store, embedder=embedder) as memories:
        service = Service(memories)
        authenticator = Authenticator(
            memories.store, local=None if keys else local or local_caller()
        )
        mcp = mcp_app(service, tools=tools_for(compat=compat), teaches=not compat)
        app = create_app(service, authenticator, routers=(), mounts=(("/mcp", mcp),))
        try:
            with listening(app) as url:
                yield Serving(url=f"{url}/mcp", service=service)
        finally:
            authenticator.close()

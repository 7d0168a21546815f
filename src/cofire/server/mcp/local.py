"""One agent's MCP server on this machine: its own process, one client, no key."""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cofire.server.access import Caller, Where, local_caller
from cofire.server.mcp.opening import Opened, OpeningService
from cofire.server.mcp.wire import Wire

if TYPE_CHECKING:
    from cofire.models import Embedder
    from cofire.server.mcp.protocol import Connection, Context
    from cofire.server.warming import WarmingEmbedder
    from cofire.settings import Settings

INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPlan:
    """What the command line chose. `embedder`: the name of one, or one of the caller's own, which
    is loaded in the background as any other."""

    store: str | None = None
    embedder: str | Embedder | None = None
    vectors: bool = True
    tenant: str = "default"
    identity: str | None = None
    user: str | None = None
    projects: tuple[str, ...] = ()
    compat: bool = False

    @property
    def caller(self) -> Caller:
        """Whoever started it, who may do everything with the memories it is for."""
        return replace(
            local_caller(self.tenant),
            identities=None if self.identity is None else (self.identity,),
            users=None if self.user is None else (self.user,),
            projects=self.projects,
        )

    @property
    def where(self) -> Where:
        """The memories it is for."""
        return Where(identity=self.identity, user=self.user, projects=self.projects)


def serve_local(plan: LocalPlan, wire: Wire) -> int:
    """Answer over `wire` until its other end is closed, or a signal comes; returns the exit code.
    What is buffered is written then. Raises ConfigurationError, StoreError."""
    from cofire.settings import load_settings

    named = plan.embedder if isinstance(plan.embedder, str) else None
    settings = load_settings(store=plan.store, embedder=named)
    log_to_standard_error(settings.log_level)
    opening = OpeningService(lambda: opened(plan, settings))
    try:
        ended = _answer(plan, opening, wire)
    finally:
        opening.close()
    return INTERRUPTED if ended == signal.SIGINT else 0


def _answer(plan: LocalPlan, opening: OpeningService, wire: Wire) -> int | None:
    from mcp.server.context import CallNext, HandlerResult

    from cofire.server.mcp.catalogue import tools_for
    from cofire.server.mcp.protocol import Connection, build_server
    from cofire.server.mcp.stdio import serve

    async def connects(context: Context) -> Connection:
        del context
        service = await opening.service()
        return Connection(service=service, caller=plan.caller, where=plan.where)

    async def begins(ctx: Context, call_next: CallNext) -> HandlerResult:
        # Not before the first answer, which the client waits for: imports go one after the other.
        try:
            return await call_next(ctx)
        finally:
            opening.begin()

    tools = tools_for(compat=plan.compat)
    server = build_server(tools, connects, teaches=not plan.compat, operator=True)
    server.middleware.append(begins)
    return serve(server, wire)


def opened(plan: LocalPlan, settings: Settings) -> Opened:
    """The service, with an embedding model that is still being loaded. Raises
    ConfigurationError, EmbeddingMismatchError, StoreError."""
    from cofire.memories import Memories
    from cofire.server.auditing import AuditTrail
    from cofire.server.service import Service
    from cofire.server.warming import warm_in_background
    from cofire.server.worker_thread import WorkerThread

    with ExitStack() as closing:
        embedder = _warming(plan, settings)
        memories = Memories.open(
            settings.store, vectors=embedder is not None, embedder=embedder, settings=settings
        )
        closing.callback(memories.close)
        trail = AuditTrail(memories.store, days=settings.audit_days, reads=settings.audit_reads)
        closing.callback(trail.close)
        place = plan.caller.place(plan.where)
        memory = memories.of(place.identity, place.user, place.projects, tenant=place.tenant)
        service = Service(memories, witnesses=(trail,), threads=settings.server_threads)
        closing.callback(service.close)
        if embedder is not None:
            warm_in_background(embedder, memory.embed_missing)
        if not memories.store.shared and (plan.embedder is None or isinstance(plan.embedder, str)):
            # PostgreSQL's stores have workers of their own (`cofire worker`), and a model that is
            # an object cannot be given to the process that does the work.
            worker = WorkerThread(memories, settings, vectors=plan.vectors)
            closing.callback(worker.stop)
            worker.start()
        return Opened(service=service, closing=closing.pop_all())


def _warming(plan: LocalPlan, settings: Settings) -> WarmingEmbedder | None:
    from cofire.models import make_embedder
    from cofire.server.warming import WarmingEmbedder

    if not plan.vectors:
        return None
    given = plan.embedder
    inner = make_embedder(settings) if given is None or isinstance(given, str) else given
    return WarmingEmbedder(inner)


def log_to_standard_error(level: str) -> None:
    """Standard output carries the protocol; clients keep what comes on standard error."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")
    logging.getLogger("cofire").setLevel(level.upper())

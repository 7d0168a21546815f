"""`cofire serve`: what it is made of, and running it in one process or several."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import anyio.to_thread
import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from starlette.middleware import Middleware
from starlette.types import ASGIApp
from uvicorn.supervisors.multiprocess import Multiprocess

from cofire.errors import ConfigurationError, EmbeddingError, UnauthorizedError
from cofire.logs import JsonLines, get_logger
from cofire.memories import Memories
from cofire.server.access import Caller
from cofire.server.app import Around, HttpOptions, create_app
from cofire.server.auditing import AuditTrail
from cofire.server.authentication import Authenticator
from cofire.server.connections import HEAD_BYTES, Deadlines
from cofire.server.limits import Limits
from cofire.server.metrics import Metrics
from cofire.server.middleware import LOOPBACK, MEGABYTE
from cofire.server.service import Service, Witness
from cofire.server.tokens import make_verifier
from cofire.server.worker import WorkerMeter
from cofire.server.worker_pace import Pace
from cofire.server.worker_thread import WorkerThread
from cofire.settings import Settings
from cofire.store.serving_records import Queue

CONNECTIONS = 512
"""Open connections of one process; further ones are answered with 503."""
START_SECONDS = 60
"""How long a process of several may take to import and to open the store before it counts as hung
and is killed: on a busy machine far longer than uvicorn's 5, with which it would never start."""
IDLE_SECONDS = 75
"""How long a connection may wait for its next request: longer than proxies keep theirs (60), which
would otherwise send one into a connection that is being closed."""
SWITCH = 0.001
"""Seconds for which one thread may keep the interpreter from others (Python's default: 0.005)."""
ENDED = frozenset({-signal.SIGTERM, -signal.SIGINT})
"""Exit codes of a process of several that ended in order: uvicorn raises the signal again."""
SHARED_METRICS = "PROMETHEUS_MULTIPROC_DIR"

_log = get_logger("cofire.serve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What every process of a server is made of. `caller`: who asks where no key is wanted.
    `rest` False: MCP only. `compat`: MCP has the tools of the official memory server."""

    settings: Settings
    caller: Caller
    vectors: bool = True
    rest: bool = True
    compat: bool = False


def serve(plan: Plan) -> None:
    """Listen until a signal ends it: what has begun is finished, then the store is closed. A
    second signal ends it at once, which loses nothing that was acknowledged. Raises
    ConfigurationError, and what `Memories.open` does."""
    settings = plan.settings
    require_safe(settings)
    log_lines(settings.log_level)
    with _listener(settings) as listener, _opened(plan) as memories:
        if settings.server_workers > 1:
            _serve_many(plan, listener, memories)
            return
        metrics = Metrics()
        service, app = assemble(
            plan, memories, metrics, (partial(_working, plan, memories, metrics),)
        )
        _told(listener, settings)
        _prefer_the_loop()
        Stoppable(_config(app, settings)).run(sockets=[listener])
        if service.running:  # a verb did not end in time, and holds the store
            _log.warning("ended while verbs were at work", count=service.running)
            _end(1)


def assemble(
    plan: Plan, memories: Memories, metrics: Metrics, around: Sequence[Around] = ()
) -> tuple[Service, FastAPI]:
    """The service of one process, and its application, which is entered within `around`. Takes
    over nothing. Raises ConfigurationError."""
    settings = plan.settings
    trail = AuditTrail(memories.store, days=settings.audit_days, reads=settings.audit_reads)
    limits = Limits(
        rate=settings.rate_limit, burst=settings.rate_burst, failures=settings.failed_attempts
    )
    verifier = make_verifier(settings)
    authenticator = Authenticator(
        memories.store,
        verifiers=() if verifier is None else (verifier,),
        local=plan.caller if settings.server_auth == "none" else None,
        limits=limits,
        refused=trail.refused,
    )
    spans = _spans(settings)
    witnesses: tuple[Witness, ...] = (metrics, *spans.witnesses, trail)  # a trail's error is last
    service = Service(memories, witnesses=witnesses, threads=settings.server_threads)
    service.models.model()  # a server whose model cannot be used says so at once

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        memories.watch_recalls(spans.watcher(metrics))
        try:
            yield
        finally:
            memories.watch_recalls(None)
            await anyio.to_thread.run_sync(service.close)
            await anyio.to_thread.run_sync(authenticator.close)
            await anyio.to_thread.run_sync(trail.close)
            spans.close()

    app = create_app(
        service,
        authenticator,
        options=http_options(settings),
        limits=limits,
        meter=metrics,
        routers=None if plan.rest else (),
        mounts=(("/mcp", _mcp(plan, service)),),
        around=(*around, running, partial(metrics.watching, service, _queue(plan, memories))),
        open_paths=("/metrics",),
        outermost=spans.middleware,
    )
    app.include_router(_metrics_route(metrics, settings))
    return service, app


def _mcp(plan: Plan, service: Service) -> ASGIApp:
    from cofire.server.mcp.catalogue import tools_for
    from cofire.server.mcp.http import mcp_app

    keyless = plan.settings.server_auth == "none"
    return mcp_app(
        service,
        tools=tools_for(compat=plan.compat),
        teaches=not plan.compat,
        projects=(plan.caller.projects or ()) if keyless else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spans:
    """What tracing adds; nothing where it is not wanted."""

    provider: Any = None

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        if self.provider is None:
            return ()
        from cofire.server.tracing import VerbSpans

        return (VerbSpans(self.provider),)

    @property
    def middleware(self) -> tuple[Middleware, ...]:
        if self.provider is None:
            return ()
        from cofire.server.tracing import RequestSpans

        return (Middleware(RequestSpans, provider=self.provider),)

    def watcher(self, metrics: Metrics) -> Callable[[Mapping[str, float]], None]:
        if self.provider is None:
            return metrics.recalled
        from cofire.server.tracing import recalled

        def both(timings: Mapping[str, float]) -> None:
            metrics.recalled(timings)
            recalled(timings)

        return both

    def close(self) -> None:
        if self.provider is not None:
            self.provider.shutdown()


def _spans(settings: Settings) -> _Spans:
    if not settings.server_tracing:
        return _Spans()
    from cofire.server.tracing import make_provider

    return _Spans(provider=make_provider())


def http_options(settings: Settings) -> HttpOptions:
    """How the application is reached by these settings."""
    return HttpOptions(
        hosts=(*sorted(LOOPBACK), settings.server_host, *_listed(settings.server_hosts)),
        origins=_listed(settings.server_origins),
        body_bytes=int(settings.server_body_mb * MEGABYTE),
        bulk_bytes=int(settings.server_bulk_mb * MEGABYTE),
    )


def require_safe(settings: Settings) -> None:
    """Raises ConfigurationError where others could use a server that asks for no key, or where
    it is not said by which names it is called."""
    host = settings.server_host
    if settings.server_auth == "none" and "*" in _listed(settings.server_hosts):
        raise ConfigurationError(
            "this server asks for no key, and with COFIRE_SERVER_HOSTS=* any web page could use it "
            "under a name of its own (DNS rebinding): name its hosts, or add --auth keys"
        )
    if _is_loopback(host):
        return
    if settings.server_auth == "none":
        raise ConfigurationError(
            f"{host} can be reached by others, and this server asks for no key: add --auth keys "
            "(`cofire keys create` makes one), or listen on 127.0.0.1"
        )
    if host in {"0.0.0.0", "::"} and not _listed(settings.server_hosts):  # noqa: S104
        raise ConfigurationError(
            f"{host} means every address of this machine: set COFIRE_SERVER_HOSTS to the names "
            "that clients call it by (* for any)"
        )


def log_lines(level: str) -> None:
    """The log of Cofire and of the server: JSON lines on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("cofire").setLevel(level.upper())
    logging.getLogger("cofire.serve").setLevel(logging.INFO)


class Stoppable(uvicorn.Server):
    """One signal ends it in order, the second at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            _end(128 + sig)
        self.should_exit = True


class Workers(Multiprocess):
    """Several processes at one listener, started again when they die. One signal ends them in
    order, the second at once."""

    failed = False

    def join_all(self) -> None:
        for process in self.processes:
            while process.process.is_alive():
                process.process.join(0.1)
                if self.signal_queue:
                    for one in self.processes:
                        one.process.kill()
            self.failed = self.failed or process.exitcode not in {0, *ENDED}


def worker_app(plan: Plan) -> FastAPI:
    """The application of one process of several, with a store of its own. Raises what
    `Memories.open` does."""
    log_lines(plan.settings.log_level)
    memories = _opened(plan)

    @asynccontextmanager
    async def closing() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(memories.close)

    _prefer_the_loop()
    return assemble(plan, memories, Metrics(), (closing,))[1]


def _told(listener: socket.socket, settings: Settings) -> None:
    url = _address(settings.server_host, listener.getsockname()[1])
    _log.info("listening", url=url, auth=settings.server_auth, pid=os.getpid())


@asynccontextmanager
async def _working(
    plan: Plan, memories: Memories, meter: WorkerMeter | None
) -> AsyncIterator[None]:
    """Background consolidation meanwhile, where the store is this server's alone."""
    worker = _worker(plan, memories, meter)
    try:
        yield
    finally:
        if worker is not None:
            await anyio.to_thread.run_sync(worker.stop)


def _worker(plan: Plan, memories: Memories, meter: WorkerMeter | None) -> WorkerThread | None:
    """PostgreSQL's stores have workers of their own (`cofire worker`)."""
    if memories.store.shared:
        return None
    worker = WorkerThread(memories, plan.settings, vectors=plan.vectors, meter=meter)
    worker.start()
    return worker


def _queue(plan: Plan, memories: Memories) -> Callable[[], Queue]:
    pace = Pace.of(plan.settings)

    def queue() -> Queue:
        now = time.time_ns() // 1_000
        return memories.store.queue(now, every=pace.every_us, idle=pace.idle_us)

    return queue


def _prefer_the_loop() -> None:
    """The event loop is one thread among those of the verbs, and has to have the interpreter soon
    when there is something to do: it waits this long for each that has it."""
    sys.setswitchinterval(SWITCH)


def _serve_many(plan: Plan, listener: socket.socket, memories: Memories) -> None:
    """`memories` are this process's, which only looks after the others and consolidates."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="cofire-metrics-"))
        os.environ[SHARED_METRICS] = folder
        config = _config(partial(worker_app, plan), plan.settings)
        config.factory = True
        config.workers = plan.settings.server_workers
        worker = _worker(plan, memories, None)
        if worker is not None:
            stack.callback(worker.stop)
        _told(listener, plan.settings)
        workers = Workers(config, [listener])
        workers.run()
        if workers.failed:
            raise ConfigurationError("a process of the server failed; the log says why")


def _config(app: Any, settings: Settings) -> uvicorn.Config:
    proxies = _listed(settings.server_proxies)
    return uvicorn.Config(
        app,
        http=Deadlines,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies) or None,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_worker_healthcheck=START_SECONDS,
        timeout_graceful_shutdown=settings.server_stop_seconds,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )


def _opened(plan: Plan) -> Memories:
    memories = Memories.open(plan.settings.store, vectors=plan.vectors, settings=plan.settings)
    with ExitStack() as opening:
        opening.callback(memories.close)
        try:
            memories.warm()
        except EmbeddingError as error:  # recalls go by words until it answers
            _log.warning("the embedding model cannot be used yet", error=type(error).__name__)
        opening.pop_all()
    return memories


def _listener(settings: Settings) -> socket.socket:
    host, port = settings.server_host, settings.server_port
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as exc:
        raise ConfigurationError(
            f"cannot listen on {_address(host, port)}: {exc.strerror}; choose another --port"
        ) from exc


def _metrics_route(metrics: Metrics, settings: Settings) -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    token = settings.server_metrics_token

    async def numbers(request: Request) -> Response:
        if token is not None:
            given = request.headers.get("authorization", "")
            wanted = f"Bearer {token.get_secret_value()}"
            if not hmac.compare_digest(given.encode(), wanted.encode()):
                raise UnauthorizedError("/metrics wants the token of COFIRE_SERVER_METRICS_TOKEN")
        text, kind = await anyio.to_thread.run_sync(metrics.text)
        return Response(text, headers={"content-type": kind})

    if token is not None or settings.server_auth == "none":
        routes.add_api_route("/metrics", numbers, methods=["GET"])
    return routes


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listed(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _end(code: int) -> None:
    """Without waiting for anybody: threads that hang would be waited for otherwise."""
    sys.stderr.flush()
    os._exit(code)

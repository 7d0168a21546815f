"""The application: REST's routes, MCP beside them, health and metrics, behind one middleware."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

import cofire
from cofire.server.health import health_routes
from cofire.server.middleware import (
    LOOPBACK,
    MEGABYTE,
    OPEN,
    Addresses,
    Admits,
    Answers,
    Authenticates,
    Bodies,
    Callers,
    Meter,
)
from cofire.server.problems import MEDIA_TYPE, SCHEMA, problem_of
from cofire.server.service import Service

OPENAPI = "/openapi.json"
BULK = ("/v1/import",)
"""Addresses that take a file, streamed."""

Around = Callable[[], AbstractAsyncContextManager[None]]
"""What is entered before the first request and left after the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How the server is reached. `hosts`: its names, without port; `origins`: of pages that may
    use it (CORS); bytes of a body, and of one that is streamed; `seconds`: that a body, or the
    next piece of one that is streamed, is waited for."""

    hosts: tuple[str, ...] = tuple(sorted(LOOPBACK))
    origins: tuple[str, ...] = ()
    body_bytes: int = 10 * MEGABYTE
    bulk_bytes: int = 1_000 * MEGABYTE
    seconds: float = 30.0


def create_app(
    service: Service,
    authenticator: Authenticates,
    *,
    options: HttpOptions | None = None,
    limits: Admits | None = None,
    meter: Meter | None = None,
    routers: Sequence[APIRouter] | None = None,
    mounts: Sequence[tuple[str, ASGIApp]] = (),
    around: Sequence[Around] = (),
    open_paths: Sequence[str] = (),
    outermost: Sequence[Middleware] = (),
) -> FastAPI:
    """The application. `routers` (None: Cofire's own) answer REST; `mounts` are applications by
    the path that they answer below, such as MCP's; `around` is entered while it runs, in this
    order; `open_paths` are asked without a key; `outermost` sees requests first. Takes
    over nothing."""

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for one in around:
                await stack.enter_async_context(one())
            yield

    chosen = options or HttpOptions()
    app = FastAPI(
        title="Cofire",
        version=cofire.__version__,
        summary="Long-term memory for LLM agents that learns from use.",
        docs_url=None,  # they load their scripts from elsewhere
        redoc_url=None,
        openapi_url=None,  # see `_describe`
        lifespan=running,
        # Its own spans have query strings and the texts of errors in them; see `tracing`.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        middleware=[
            *outermost,
            *_middleware(chosen, authenticator, limits, meter, open_paths),
        ],
        exception_handlers={
            RequestValidationError: _answer_problem,
            HTTPException: _answer_problem,
        },
    )
    app.state.service = service
    included = [health_routes(service), *(_own_routers() if routers is None else routers)]
    for router in included:
        app.include_router(router)
    _describe(app, included)
    for path, mounted in mounts:
        # A mount answers below its path: to the path itself it redirects, which few clients follow.
        app.router.routes.append(Route(path, mounted))
        app.mount(path, mounted)
    return app


def _own_routers() -> Sequence[APIRouter]:
    from cofire.server.rest import routers

    made: Sequence[APIRouter] = routers()
    return made


def _middleware(
    options: HttpOptions,
    authenticator: Authenticates,
    limits: Admits | None,
    meter: Meter | None,
    open_paths: Sequence[str],
) -> list[Middleware]:
    """From the outside in. Browsers ask what they may (CORS) without a key."""
    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(options.origins),
        allow_methods=["*"],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "If-Match", "Mcp-*"],
        expose_headers=["ETag", "X-Request-Id", "Retry-After", "Mcp-Session-Id"],
    )
    return [
        Middleware(Answers, meter=meter),
        Middleware(Addresses, hosts=options.hosts, origins=options.origins),
        *([cors] if options.origins else []),
        Middleware(
            Callers,
            authenticator=authenticator,
            limits=limits,
            open_paths={*OPEN, OPENAPI, *open_paths},
        ),
        Middleware(
            Bodies,
            most=options.body_bytes,
            bulk=BULK,
            most_bulk=options.bulk_bytes,
            seconds=options.seconds,
            json_below=("/v1/", "/api/"),
        ),
    ]


async def _answer_problem(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if problem.status == HTTPStatus.METHOD_NOT_ALLOWED:
        allow = _methods(request.app, request.url.path)
        problem = replace(problem, headers={"allow": ", ".join(allow)})
    body = problem.body(request.scope["state"]["request"])
    response = Response(body, problem.status)
    response.raw_headers = problem.raw_headers(len(body))
    return response


def _share_problems(document: dict[str, Any]) -> None:
    """Problems are the same in every route: each is described once and referred to."""
    shared = document["components"].setdefault("responses", {})
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                if MEDIA_TYPE in answer.get("content", {}):
                    shared[f"Problem{status}"] = answer
                    operation["responses"][status] = {
                        "$ref": f"#/components/responses/Problem{status}"
                    }


def _restore_examples(document: dict[str, Any], routers: Sequence[APIRouter]) -> None:
    """The framework leaves out what is null, which in an example says something."""
    for route in (route for router in routers for route in router.routes):
        if not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for status, answer in route.responses.items():
            for media, content in answer.get("content", {}).items():
                for method in route.methods or ():
                    shown = document["paths"][route.path_format][method.lower()]["responses"]
                    if "example" in content and "content" in shown[str(status)]:
                        shown[str(status)]["content"][media]["example"] = content["example"]


def _methods(app: FastAPI, path: str) -> list[str]:
    """The methods that an address takes; the framework names those of one of its routes."""
    steps = path.split("/")
    found = {
        method.upper()
        for template, methods in app.openapi()["paths"].items()
        if len(parts := template.split("/")) == len(steps)
        and all(part == step or "{" in part for part, step in zip(parts, steps, strict=True))
        for method in methods
    }
    return sorted(found)


def _describe(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """The OpenAPI document, with the schema of problems in place of the framework's, made once."""
    document: list[bytes] = []
    plain = app.openapi

    def described() -> dict[str, Any]:
        made = plain()
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = dict(SCHEMA)
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemes = made["components"].setdefault("securitySchemes", {})
        schemes["key"] = {"type": "http", "scheme": "bearer", "description": "A key of Cofire."}
        made.setdefault("security", [{"key": []}])
        _share_problems(made)
        _restore_examples(made, routers)
        return made

    async def openapi() -> Response:
        if not document:
            document.append(json.dumps(described(), ensure_ascii=False).encode())
        return Response(document[0], media_type="application/json")

    app.openapi = described  # type: ignore[method-assign]
    app.add_api_route(OPENAPI, openapi, include_in_schema=False)

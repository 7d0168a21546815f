"""MCP over HTTP (the "streamable HTTP" transport), without sessions: several processes may serve
one client.

Every request is answered by itself, in JSON. Who asks was found out by the middleware before
(`scope["state"]["caller"]`); whose memories are meant stands in the address
(`/mcp?identity=…&user=…&project=…`), as far as the caller may name them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from cofire.errors import InputError
from cofire.server.access import Where
from cofire.server.mcp.catalogue import TOOLS
from cofire.server.mcp.protocol import Connection, Context, build_server
from cofire.server.mcp.tools import Tool
from cofire.server.problems import Problem
from cofire.server.service import Service

NAMES = ("identity", "user", "project")
"""What an address may say."""
MOST_BYTES = 1 << 40
"""Of a body, for the SDK: the middleware bounds them before."""

_ONLY_POST = Problem(
    status=405,
    kind="method-not-allowed",
    detail="MCP is asked by POST here: there are no sessions to open or to end",
    headers={"Allow": "POST"},
)


def mcp_app(
    service: Service,
    *,
    tools: Sequence[Tool] = TOOLS,
    teaches: bool = True,
    projects: tuple[str, ...] = (),
) -> ASGIApp:
    """The application, to be mounted behind the middleware. `projects` are meant where an address
    names none. Takes over nothing."""
    return McpApp(service, tools, teaches=teaches, projects=projects)


class McpApp:
    """See `mcp_app`."""

    def __init__(
        self, service: Service, tools: Sequence[Tool], *, teaches: bool, projects: tuple[str, ...]
    ) -> None:
        self._service, self._projects = service, projects
        self._server = build_server(tools, self._connection, teaches=teaches)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            body = _ONLY_POST.body(scope["state"]["request"])
            headers = _ONLY_POST.raw_headers(len(body))
            await send({"type": "http.response.start", "status": 405, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        # One for each request: it may run only once, and what it keeps is for sessions.
        manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=MOST_BYTES
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    async def _connection(self, context: Context) -> Connection:
        request = context.request
        if not isinstance(request, Request):
            raise TypeError("a request over HTTP has come without its HTTP request")
        named = request.query_params
        for name in named:
            if name not in NAMES:  # a name that is mistyped would mean all memories of an identity
                raise InputError(
                    f"the address has {name[:80]!r}, which says nothing here; there are "
                    f"{', '.join(NAMES)}"
                )
            if name != "project" and len(named.getlist(name)) > 1:
                raise InputError(f"the address has {name} more than once; which is meant?")
        return Connection(
            service=self._service,
            caller=request.scope["state"]["caller"],
            where=Where(
                identity=named.get("identity"),
                user=named.get("user"),
                projects=tuple(named.getlist("project")) or self._projects,
            ),
            request=request.scope["state"]["request"],
        )

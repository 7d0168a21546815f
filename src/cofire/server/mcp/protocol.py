"""The server of the official SDK, made of tables of tools.

The SDK's low-level server is used, because its tools made of functions have schemas that strict
clients refuse (anyOf with null, $defs), and answers to wrong arguments that no model can act on.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import cofire
from cofire.errors import CofireError, InputError, NotFoundError
from cofire.server.access import Caller, Where
from cofire.server.actions import Action
from cofire.server.mcp import guidance
from cofire.server.mcp.failures import told, unexpected
from cofire.server.mcp.fields import checked
from cofire.server.mcp.rendering import LIST_CHARACTERS, guarded, shortened
from cofire.server.mcp.tools import Call, Tool, named
from cofire.types import Item, Page

if TYPE_CHECKING:
    from cofire.memory import Memory
    from cofire.server.service import Service

NAME = "cofire"
SCHEME = "memory://"
LISTED = 50
"""Resources of a page."""
OUTSIDE = "From outside"
"""Title of a resource that is not trusted, whose own may say anything."""

Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Who asks over a connection, and by which service. `request`: the request's id, where it has
    one."""

    service: Service
    caller: Caller
    where: Where
    request: str | None = None


Connects = Callable[[Context], Awaitable[Connection]]
"""Whose connection a request came over. Raises CofireError."""


def build_server(
    tools: Sequence[Tool], connects: Connects, *, teaches: bool = True, operator: bool = False
) -> Server[Any]:
    """A server with these tools. `teaches`: it also has the prompt and tells on connecting what
    the tools are for. `operator`: whoever asks runs it themselves, and may see what the errors of
    the store and of the settings say."""
    handlers = Handlers(tools, connects, operator=operator)
    server: Server[Any] = Server(
        NAME,
        version=cofire.__version__,
        title="Cofire memory",
        instructions=guidance.INSTRUCTIONS if teaches else None,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts if teaches else None,
        on_get_prompt=handlers.get_prompt if teaches else None,
    )
    # Its spans have the ids of memories in them; `server.tracing` makes those that may be kept.
    server.middleware.clear()
    return server


def described(tool: Tool) -> types.Tool:
    """A tool as clients see it."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.about,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads_only,
            destructive_hint=None if tool.reads_only else tool.destroys,
            idempotent_hint=None if tool.reads_only else tool.repeatable,
            open_world_hint=False,
        ),
    )


class Handlers:
    """What answers the requests of clients."""

    def __init__(
        self, tools: Sequence[Tool], connects: Connects, *, operator: bool = False
    ) -> None:
        self._operator = operator
        self._tools = named(tools)
        self._connects = connects
        self._described = [described(tool) for tool in tools]

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=self._described)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Whatever goes wrong in a tool is its answer, which the model reads; only a tool that
        does not exist is an error of the protocol."""
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"there is no tool {params.name[:64]!r}; "
                f"there are {', '.join(self._tools)}",
            )
        request = secrets.token_hex(8)
        try:
            given = checked(tool.fields, params.arguments or {})
            connection = await self._connects(context)
            request = connection.request or request
            answer = await tool.body(_call(connection, request), given)
        except CofireError as error:
            return _failed(f"{tool.name}: {told(error, request, operator=self._operator)}")
        except Exception as error:  # noqa: BLE001  (a client waits for an answer, whatever it is)
            return _failed(f"{tool.name}: {unexpected(error, request)}")
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=answer
        )

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The newest memories, a page at a time."""
        cursor = None if params is None else params.cursor

        def verb(memory: Memory) -> Page:
            return memory.list(limit=LISTED, after=cursor)

        page = await self._run(context, Action.LIST, verb, count=len)
        return types.ListResourcesResult(
            resources=[_resource(item) for item in page], next_cursor=page.next
        )

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        del context, params
        template = types.ResourceTemplate(
            name="memory",
            title="A memory",
            uri_template=SCHEME + "{id}",
            description="One memory, whole, by its id.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        if not uri.startswith(SCHEME):
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"resources here are {SCHEME}ID, with a memory's id",
                data={"uri": uri},
            )

        def verb(memory: Memory) -> Item:
            return memory.get(uri.removeprefix(SCHEME).strip("/"))

        item = await self._run(context, Action.GET, verb, count=lambda _: 1)
        text = guarded(item.content, untrusted=item.untrusted)
        content = types.TextResourceContents(uri=params.uri, text=text, mime_type="text/plain")
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        del context, params
        prompt = types.Prompt(
            name=guidance.PROMPT,
            title=guidance.PROMPT_TITLE,
            description=guidance.PROMPT_ABOUT,
            arguments=[
                types.PromptArgument(name="task", description="What you are about to work on.")
            ],
        )
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        del context
        if params.name != guidance.PROMPT:
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"there is no prompt {params.name[:64]!r}; there is {guidance.PROMPT}",
            )
        task = (params.arguments or {}).get("task", "").strip()
        text = f"{guidance.TEACHING}\n\n{guidance.FOCUS}{task}" if task else guidance.TEACHING
        message = types.PromptMessage(
            role="user", content=types.TextContent(type="text", text=text)
        )
        return types.GetPromptResult(description=guidance.PROMPT_ABOUT, messages=[message])

    async def _run(
        self,
        context: Context,
        action: Action,
        verb: Callable[[Memory], Any],
        *,
        count: Callable[[Any], int],
    ) -> Any:
        """A verb outside tools, where what goes wrong is an error of the protocol."""
        request = secrets.token_hex(8)
        try:
            connection = await self._connects(context)
            request = connection.request or request
            return await _call(connection, request).run(action, verb, count=count)
        except (InputError, NotFoundError) as error:
            raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from error
        except CofireError as error:
            text = told(error, request, operator=self._operator)
            raise MCPError(code=FAILED, message=text) from error
        except Exception as error:
            raise MCPError(code=FAILED, message=unexpected(error, request)) from error


FAILED = -32000
"""Code of an error of the server's that is none of the protocol's own."""


def _call(connection: Connection, request: str) -> Call:
    return Call(
        service=connection.service,
        caller=connection.caller,
        where=connection.where,
        request=request,
    )


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def _resource(item: Item) -> types.Resource:
    text = shortened(" ".join(item.content.split()), 80)[0]
    about = shortened(item.content, LIST_CHARACTERS)[0]
    return types.Resource(
        uri=SCHEME + item.id,
        name=item.id,
        title=OUTSIDE if item.untrusted else item.title or text,
        description=guarded(about, untrusted=item.untrusted),
        mime_type="text/plain",
    )

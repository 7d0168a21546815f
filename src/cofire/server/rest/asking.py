"""One request of a route, from its parameters to its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar, get_origin
from weakref import WeakKeyDictionary

from fastapi import Depends, Header, Query, Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query as QueryParameter
from fastapi.routing import APIRoute

from cofire.errors import InputError
from cofire.memory import Memory
from cofire.plain import plain
from cofire.server.access import Caller, Place, Where
from cofire.server.actions import Action
from cofire.server.answers import Json, json_bytes
from cofire.server.dependencies import Identity, Projects, User
from cofire.server.once import Once, once
from cofire.server.problems import responses
from cofire.server.rest.values import MOST
from cofire.server.service import Service

R = TypeVar("R")

REPLAYED = "Idempotent-Replayed"
SURFACE = "rest"

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=255,
        description="Sent again with the same key within a day, the request is not done again; "
        f"the answer then has the header `{REPLAYED}: true`.",
    ),
]
Into = Annotated[
    str | None,
    Query(description="The project to write to, in place of the agent's own memories."),
]
Limit = Annotated[int, Query(ge=1, le=MOST, description="At most so many.")]
After = Annotated[str | None, Query(max_length=200, description="The former page's `next`.")]


def as_it_is(value: Any) -> Any:
    """The value."""
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who asks what of which memories, by which request."""

    service: Service
    caller: Caller
    where: Where
    request: str
    http: Request

    async def read(
        self,
        action: Action,
        verb: Callable[[Memory], R],
        shape: Callable[[R], Any] = as_it_is,
        *,
        count: Callable[[R], int] | None = None,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Response:
        """The answer that `shape` makes of what `verb` gives, on the verb's thread."""
        made: list[bytes] = []

        def call(memory: Memory) -> R:
            result = verb(memory)
            made.append(json_bytes(shape(result)))
            return result

        await self.ask(action, call, count=count)
        return Json(made[0], status_code=status, headers=headers)

    async def write(
        self,
        action: Action,
        verb: Callable[[Memory], R],
        shape: Callable[[R], Any] = as_it_is,
        *,
        key: str | None,
        keep: Callable[[Any], Any] = lambda answer: answer,
        again: Callable[[Memory, Any], Any] = lambda _, kept: kept,
        count: Callable[[R], int] | None = None,
        status: int = 200,
        headers: Callable[[Any], dict[str, str]] | None = None,
    ) -> Response:
        """As `read`, once for all requests with this `key`. `keep` is what is kept of an answer,
        which is no content, and `again` makes the answer of that; `headers` are those of an
        answer."""
        if key is None:
            made: list[Any] = []
            await self.ask(action, lambda memory: _shaped(verb(memory), shape, made), count=count)
            given = {} if headers is None else headers(made[0])
            return Json(json_bytes(made[0]), status_code=status, headers=given)
        asked = await self._once(key)
        results: list[R] = []

        def call(memory: Memory) -> Any:
            def work() -> Any:
                results.append(verb(memory))
                return plain(shape(results[0]))

            return self.service.requests.perform(
                self.caller, asked, work, keep=keep, again=lambda kept: again(memory, kept)
            )

        done = await self.ask(
            action, call, count=lambda _: count(results[0]) if count and results else 0
        )
        given = {} if headers is None else headers(done.answer)
        if done.again:
            given = {**given, REPLAYED: "true"}
        return Json(json_bytes(done.answer), status_code=status, headers=given)

    async def ask(
        self,
        action: Action,
        verb: Callable[[Memory], R],
        *,
        count: Callable[[R], int] | None = None,
    ) -> R:
        """What `verb` gives."""
        return await self.service.run(
            self.caller, action, self.where, verb,
            surface=SURFACE, request=self.request, count=count,
        )  # fmt: skip

    async def about(self, action: Action, work: Callable[[Place], R]) -> R:
        """What `work` gives, which is no memory's."""
        return await self.service.about(
            self.caller, action, self.where, work, surface=SURFACE, request=self.request
        )

    def into(self, project: str | None) -> Asking:
        """The same, with the project that is to be written to among those it is about."""
        if project is None or project in self.where.projects:
            return self
        return replace(self, where=replace(self.where, projects=(*self.where.projects, project)))

    async def _once(self, key: str) -> Once:
        url = self.http.url
        return once(
            key,
            self.http.method.encode(),
            url.path.encode(),
            url.query.encode(),
            (self.http.headers.get("if-match") or "").encode("latin-1"),
            await self.http.body(),
        )


def _shaped(result: R, shape: Callable[[R], Any], made: list[Any]) -> R:
    made.append(plain(shape(result)))
    return result


async def _asking(
    http: Request, project: Projects, identity: Identity = None, user: User = None
) -> Asking:
    # One dependency with the whole: for each that is nested, the framework works as long as for
    # the route itself.
    known = _known(http.scope.get("route"))
    for name in http.query_params:
        if name not in known:
            raise InputError(
                f"there is no parameter {name[:80]!r} here; there are {', '.join(sorted(known))}"
            )
        if not known[name] and len(http.query_params.getlist(name)) > 1:
            raise InputError(f"{name} is given more than once; which is meant?")
    state = http.scope["state"]
    return Asking(
        service=http.scope["app"].state.service,
        caller=state["caller"],
        where=Where(identity=identity, user=user, projects=tuple(project)),
        request=state["request"],
        http=http,
    )


Asked = Annotated[Asking, Depends(_asking)]


_KNOWN: WeakKeyDictionary[Callable[..., Any], dict[str, bool]] = WeakKeyDictionary()
"""By endpoint: to find them takes longer than most routes do."""


def _known(route: Any) -> dict[str, bool]:
    """A route's query parameters by name, and whether they may be repeated."""
    if not isinstance(route, APIRoute):
        return {}
    known = _KNOWN.get(route.endpoint)
    if known is None:
        known = _KNOWN[route.endpoint] = {
            field.alias: get_origin(field.field_info.annotation) is list
            for field in get_flat_params(route.dependant)
            if isinstance(field.field_info, QueryParameter)
        }
    return known


def answers(
    example: Any,
    *statuses: int,
    status: int = 200,
    description: str = "Done.",
    headers: dict[str, Any] | None = None,
    also: dict[int, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A route's answer with an example, and the problems it may end with; `also` are answers that
    are neither."""
    answer: dict[str, Any] = {
        "description": description,
        "content": {"application/json": {"example": plain(example)}},
    }
    if headers is not None:
        answer["headers"] = headers
    return {
        "status_code": status,
        "responses": {status: answer, **(also or {}), **responses(*statuses)},
    }


def page(found: Sequence[Any], limit: int, after: str | None) -> tuple[Sequence[Any], str | None]:
    """One page of what a verb gives as a whole; `after` is how many came before. Raises
    InputError."""
    start = 0
    if after is not None:
        if not (after.isascii() and after.isdigit() and len(after) < 16):
            raise InputError("that is not where a page ended; pass the former page's `next`")
        start = int(after)
    rest = start + limit
    return found[start:rest], str(rest) if rest < len(found) else None


def paged(limit: int, after: str | None) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """Makes a page of all that there is."""

    def shape(found: Sequence[Any]) -> dict[str, Any]:
        items, following = page(found, limit, after)
        return {"items": list(items), "next": following}

    return shape


def given(**values: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in values.items() if value is not None}

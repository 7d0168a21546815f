"""What every request passes before a route or a tool sees it, REST and MCP alike, as plain ASGI.

From the outside in: `Answers` (ids, headers, problems, the log), `Addresses` (hosts and origins,
against DNS rebinding), `Callers` (authentication and rates), `Bodies` (sizes and time).
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from time import perf_counter
from typing import Protocol
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cofire.errors import ForbiddenError
from cofire.logs import get_logger, told_error
from cofire.server.access import Caller
from cofire.server.problems import STOPPING, Problem, problem_of

_log = get_logger("cofire.server")

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""What is taken over as the id of a request; others get one of the server's."""
OPEN = frozenset({"/livez", "/readyz"})
"""Asked by whoever runs the server, by any name and without a key: they tell nothing else."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Those that are counted by name; anybody may invent others."""
LOGGED = 200
"""Characters of an address in the log, at most: whoever has no key may not fill the disk either."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MEGABYTE = 1_000_000
SINGLE = frozenset({b"authorization", b"content-type", b"content-encoding", b"origin"})
"""Headers that stand once: of two, a proxy may have looked at the other one. (HTTP's own, such as
Host, are h11's business.)"""
_SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)


class Authenticates(Protocol):
    """Who is behind an Authorization header (`authentication.Authenticator`)."""

    async def caller(self, authorization: str | None, address: str = "") -> Caller:
        """Raises UnauthorizedError, LimitedError, StoreError."""
        ...


class Admits(Protocol):
    """How often somebody may ask (`limits.Limits`)."""

    def admit(self, caller: Caller) -> None:
        """Raises LimitedError."""


class Meter(Protocol):
    """Who is told of every answer."""

    def begun(self) -> None: ...

    def answered(self, method: str, route: str, status: int, seconds: float) -> None: ...


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of this name (lower case)."""
    found: bytes | None = next((value for key, value in scope["headers"] if key == name), None)
    return None if found is None else found.decode("latin-1")


class Answers:
    """Outermost: gives every request an id and every answer its headers, turns errors into
    problems, and writes the log, which has paths and never query strings, headers or texts."""

    def __init__(self, app: ASGIApp, *, meter: Meter | None = None, patience: float = 60.0) -> None:
        """`patience`: seconds that one piece of a streamed answer waits for its reader."""
        self._app = app
        self._meter = meter
        self._patience = patience
        # No system call for each: it would let go of the interpreter, and wait to get it back.
        own = secrets.token_hex(6)
        self._names = (f"{own}-{number:x}" for number in count(1))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        named = header(scope, b"x-request-id")
        name = named if named and REQUEST_ID.fullmatch(named) else next(self._names)
        scope.setdefault("state", {})["request"] = name
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _completed(message.get("headers", ()), name)
                await send(message)
            elif message.get("more_body"):
                async with asyncio.timeout(self._patience):
                    await send(message)
            else:
                await send(message)

        if self._meter is not None:
            self._meter.begun()
        try:
            await self._app(scope, receive, answer)
        except asyncio.CancelledError:  # the server has waited for its end long enough
            if not status:
                await send_problem(STOPPING, scope, answer)
            raise
        except Exception as error:  # noqa: BLE001  (whatever it is, somebody waits for an answer)
            if status:  # too late for another answer: the connection ends, which tells as much
                _tell(error, name)
                raise AnswerBrokenError from None
            await send_problem(_told(error, name), scope, answer)
        finally:
            self._done(scope, status, perf_counter() - started, name)

    def _done(self, scope: Scope, status: int, seconds: float, name: str) -> None:
        route = getattr(scope.get("route"), "path", None) or _mount(scope)
        if self._meter is not None:
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._meter.answered(method, route, status, seconds)
        _log.info(
            "answered", method=scope["method"][:20], path=scope["path"][:LOGGED], status=status,
            ms=round(1e3 * seconds, 1), request=name,
        )  # fmt: skip


class AnswerBrokenError(Exception):
    """An answer that had begun could not be finished."""


def _mount(scope: Scope) -> str:
    """What an address that is no route counts as; never the address itself, of which there are
    as many as anybody likes."""
    return "/mcp" if scope["path"].rstrip("/") == "/mcp" else "other"


def _completed(given: Sequence[tuple[bytes, bytes]], name: str) -> list[tuple[bytes, bytes]]:
    has = {key for key, _ in given}
    return [
        *given,
        (b"x-request-id", name.encode()),
        *((key, value) for key, value in _SECURITY if key not in has),
    ]


def _told(error: Exception, name: str) -> Problem:
    problem = problem_of(error)
    if problem.status >= 500 and problem.kind != "overloaded":
        _tell(error, name)
    return problem


def _tell(error: Exception, name: str) -> None:
    _log.error("failed", **told_error(error), request=name)


async def send_problem(problem: Problem, scope: Scope, send: Send) -> None:
    """Answer with a problem."""
    body = problem.body(scope.get("state", {}).get("request"))
    headers = problem.raw_headers(len(body))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Addresses:
    """Refuses requests under a name that is not this server's (a page whose own name was made to
    mean this machine sends that name), those of pages of other origins (browsers send no Origin
    where a page only embeds or opens something, but Sec-Fetch-Site), and those that can be read in
    two ways."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str] = LOOPBACK,
        origins: Collection[str] = (),
    ) -> None:
        """`hosts`: names without port ("*": any). `origins`: as browsers send them."""
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN:
            _require_clear(scope)
            host = header(scope, b"host") or ""
            if "*" not in self._hosts and _host_name(host) not in self._hosts:
                raise HTTPException(
                    421,
                    "this server has another name; COFIRE_SERVER_HOSTS lists them",
                )
            origin = header(scope, b"origin")
            elsewhere = header(scope, b"sec-fetch-site") in {"cross-site", "same-site"}
            if elsewhere if origin is None else not self._permits(origin.lower(), host.lower()):
                raise ForbiddenError(
                    "pages of this origin may not use this server; its operator may let them by "
                    "COFIRE_SERVER_ORIGINS"
                )
        await self._app(scope, receive, send)

    def _permits(self, origin: str, host: str) -> bool:
        return origin in self._origins or (
            origin.startswith(("http://", "https://")) and origin.partition("://")[2] == host
        )


def _require_clear(scope: Scope) -> None:
    """Raises HTTPException for what another server before this one may have understood
    differently."""
    names = [name for name, _ in scope["headers"]]
    if any(names.count(name) > 1 for name in SINGLE):
        raise HTTPException(400, "a header stands twice that says one thing")
    if b"content-length" in names and b"transfer-encoding" in names:
        raise HTTPException(
            400, "the body's length is said in two ways", headers={"connection": "close"}
        )


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:  # brackets that do not match
        return None


class Callers:
    """Finds out who asks, and how often: `scope["state"]["caller"]`."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticator: Authenticates,
        limits: Admits | None = None,
        open_paths: Collection[str] = OPEN,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._limits = limits
        self._open = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._open:
            client = scope.get("client")
            caller = await self._authenticator.caller(
                header(scope, b"authorization"), client[0] if client else ""
            )
            if self._limits is not None:
                self._limits.admit(caller)
            scope["state"]["caller"] = caller
        await self._app(scope, receive, send)


class Bodies:
    """Reads bodies before the routes do: no more than `most` bytes, within `seconds`. Those of
    the paths in `bulk` are handed on as they come: `most_bulk` bytes altogether, and `seconds`
    between two pieces. The others below `json_below` must say that they are JSON."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        most: int = 10 * MEGABYTE,
        bulk: Collection[str] = (),
        most_bulk: int = 1_000 * MEGABYTE,
        seconds: float = 30.0,
        json_below: tuple[str, ...] = (),
    ) -> None:
        self._app = app
        self._most = most
        self._bulk = frozenset(bulk)
        self._most_bulk = most_bulk
        self._seconds = seconds
        self._json_below = json_below

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        if b"content-length" in headers or b"transfer-encoding" in headers:
            if headers.get(b"content-encoding", b"identity").lower() != b"identity":
                raise HTTPException(415, "bodies are taken as they are, without Content-Encoding")
            bulk = scope["path"] in self._bulk
            if not bulk and scope["path"].startswith(self._json_below):
                _require_json(headers)
            most = self._most_bulk if bulk else self._most
            if int(headers.get(b"content-length", b"0")) > most:
                await self._discard(receive)
                raise _too_large(most)
            receive = self._streamed(receive) if bulk else await self._whole(receive)
        await self._app(scope, receive, send)

    async def _whole(self, receive: Receive) -> Receive:
        """The body, read; what gives it to the application, once."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":  # the client has gone
                        break
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._most or not message.get("more_body"):
                        break
        except TimeoutError:
            raise _too_slow(self._seconds) from None
        if size > self._most:
            await self._discard(receive)
            raise _too_large(self._most)
        if message["type"] == "http.request":
            message = {"type": "http.request", "body": b"".join(parts), "more_body": False}
        first: Message | None = message

        async def given() -> Message:
            nonlocal first
            if first is not None:
                once, first = first, None
                return once
            return await receive()

        return given

    def _streamed(self, receive: Receive) -> Receive:
        size = 0
        more = True

        async def given() -> Message:
            nonlocal size, more
            if not more:
                return await receive()
            try:
                async with asyncio.timeout(self._seconds):
                    message = await receive()
            except TimeoutError:
                raise _too_slow(self._seconds) from None
            size += len(message.get("body", b""))
            more = bool(message.get("more_body"))
            if size > self._most_bulk:
                raise _too_large(self._most_bulk)
            return message

        return given

    async def _discard(self, receive: Receive) -> None:
        """Read on for a moment: a client that is still sending would not see the answer."""
        try:
            async with asyncio.timeout(1.0):
                while (await receive()).get("more_body"):
                    pass
        except TimeoutError:
            return


def _require_json(headers: Mapping[bytes, bytes]) -> None:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if headers.get(b"content-length") != b"0" and kind != b"application/json":
        raise HTTPException(
            415, "the body must be JSON, and say so by 'Content-Type: application/json'"
        )


def _too_large(most: int) -> HTTPException:
    return HTTPException(
        413, f"the body has more than {most:,} bytes", headers={"connection": "close"}
    )


def _too_slow(seconds: float) -> HTTPException:
    return HTTPException(
        408, f"the body did not arrive within {seconds:g} seconds", headers={"connection": "close"}
    )

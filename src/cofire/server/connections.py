"""HTTP connections that cannot be held open by doing nothing: uvicorn's, with deadlines."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from cofire.server.problems import Problem

HEAD_SECONDS = 10.0
"""How long the head of a request may take to arrive, from the connection or its first byte on."""
FLUSH_SECONDS = 60.0
"""How long a client may take to read what is left of an answer when its connection is to end."""
HEAD_BYTES = 32_768
"""Of the head of a request, at most."""


class Joined:
    """A transport that sends what is written in one turn of the event loop together: the head of
    an answer and its body. Each sending lets go of the interpreter, which then has to be waited
    for while verbs are at work."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def flush(self) -> None:
        """Send what was written."""
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Deadlines(H11Protocol):
    """HTTP/1.1 by h11. A request's head arrives in time or the connection ends; an answer that
    nobody reads is given up; what is no HTTP is answered with a problem."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
        # Otherwise a second piece of an answer waits until the client confirms the first, 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget_head()
        elif self._head is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self.loop.call_later(FLUSH_SECONDS, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """In place of plain text; h11 knows which status fits."""
        error = sys.exc_info()[1]
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        if status not in {400, 431, 501}:
            status = 400
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            problem = Problem(status=status, kind="malformed", detail=msg)
            body = problem.body()
            head = [*problem.raw_headers(len(body)), (b"connection", b"close")]
            for event in (
                h11.Response(status_code=status, headers=head),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _await_head(self) -> None:
        self._forget_head()
        self._head = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _too_slow(self) -> None:
        self._head = None
        if not self.transport.is_closing():
            self.transport.abort()

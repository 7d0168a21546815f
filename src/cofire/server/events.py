"""Server-sent events: an answer that comes in parts, as browsers' EventSource and others read it
(WHATWG HTML, section 9.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = 15.0
"""Seconds without an event after which a comment is sent: proxies end what says nothing for a
minute."""
_COMMENT = b": waiting\n\n"
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would keep it until it is whole
}

Tell = Callable[[bytes], None]


def event(name: str, data: bytes) -> bytes:
    """One event, whose data is JSON in one line."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


class EventStream(Response):
    """The events that `work` tells. Before the first of them nothing is sent, so what goes wrong
    until then is answered by its status; later it is what `failed` makes of it. A client that goes
    away cancels the work, and so does a server that has waited for its end long enough."""

    media_type = MEDIA_TYPE

    def __init__(
        self,
        work: Callable[[Tell], Awaitable[None]],
        failed: Callable[[BaseException], bytes],
        *,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._work, self._failed, self._heartbeat = work, failed, heartbeat
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        events: asyncio.Queue[bytes | None] = asyncio.Queue()
        work = asyncio.ensure_future(self._work(events.put_nowait))
        work.add_done_callback(lambda _: events.put_nowait(None))
        gone = asyncio.create_task(_gone(receive))
        gone.add_done_callback(lambda _: work.cancel())
        try:
            while (told := await self._next(events)) is not None:
                await self._send(send, told)
            if not work.cancelled():
                error = work.exception()
                if error is not None and not self._begun:
                    raise error
                await self._end(send, error)
        except asyncio.CancelledError as stopped:
            if self._begun and not gone.done():
                await self._end(send, stopped)
            raise
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _next(self, events: asyncio.Queue[bytes | None]) -> bytes | None:
        """The next event, or a comment; None at the end."""
        if not self._begun:
            return await events.get()
        try:
            async with asyncio.timeout(self._heartbeat):
                return await events.get()
        except TimeoutError:
            return _COMMENT

    async def _send(self, send: Send, told: bytes) -> None:
        if not self._begun:
            self._begun = True
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
        await send({"type": "http.response.body", "body": told, "more_body": True})

    async def _end(self, send: Send, error: BaseException | None) -> None:
        last = b"" if error is None else self._failed(error)
        await send({"type": "http.response.body", "body": last, "more_body": False})


async def _gone(receive: Receive) -> None:
    """Until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass

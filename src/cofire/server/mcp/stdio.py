"""MCP over standard input and output: one message a line, one client, this process.

The SDK's own transport ignores lines that are no messages, loses the answers to what a client asked
before it closed its end, and cannot be interrupted while it waits for a line. So the lines are read
and written here; the SDK gets messages.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from types import FrameType
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from cofire.server.mcp.wire import Wire

MOST_LINE = 64 << 20
"""Bytes of a line; of a longer one nothing is kept."""
PIECE = 1 << 16
DRAIN = 5.0
"""Seconds that calls under way may still take when the client has closed its end."""

Message = SessionMessage | Exception


class BadLineError(Exception):
    """A line that is no message. `id` is that of the request it may have been meant as."""

    def __init__(self, code: int, message: str, id: str | int | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.id = code, message, id


def serve(server: Server[Any], wire: Wire) -> int | None:
    """Answer until the client closes its end, or a signal comes; returns the signal. What was
    begun may end; what was asked before the end is answered. A second Ctrl-C ends it at once."""

    async def run() -> int | None:
        return await _Serving(server, wire).run()

    return asyncio.run(run())


class _Serving:
    def __init__(self, server: Server[Any], wire: Wire) -> None:
        self._server, self._wire = server, wire
        self._pending: set[str | int] = set()
        self._idle = anyio.Event()
        self._writing = anyio.Lock()
        self._scope = anyio.CancelScope()
        self._signal: int | None = None

    async def run(self) -> int | None:
        inward, read = anyio.create_memory_object_stream[Message](0)
        write, outward = anyio.create_memory_object_stream[SessionMessage](0)
        restore = self._catch_signals()
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._write_messages, outward)
                    tasks.start_soon(self._read_messages, inward)
                    await self._server.run(
                        read, write, self._server.create_initialization_options()
                    )
        finally:
            restore()
        return self._signal

    # Reading

    async def _read_messages(self, inward: MemoryObjectSendStream[Message]) -> None:
        lines, arriving = anyio.create_memory_object_stream[bytes | None](0)
        loop = asyncio.get_running_loop()
        threading.Thread(
            target=_read_lines, args=(self._wire.reading, loop, lines), daemon=True,
            name="cofire-stdin",
        ).start()  # fmt: skip
        async with inward:
            async for line in arriving:
                try:
                    message = read_message(line)
                except BadLineError as error:
                    await self._write_line(_error_line(error))
                    continue
                self._note(message)
                await inward.send(SessionMessage(message))
            await self._drained()

    def _note(self, message: types.JSONRPCMessage) -> None:
        """Which requests wait for an answer."""
        if isinstance(message, types.JSONRPCRequest):
            self._pending.add(message.id)
        elif (
            isinstance(message, types.JSONRPCNotification)
            and message.method == "notifications/cancelled"
        ):
            named = (message.params or {}).get("requestId")
            if isinstance(named, str | int):
                self._answered(named)

    def _answered(self, id: str | int | None) -> None:
        if id is not None:
            self._pending.discard(id)
        if not self._pending:
            self._idle.set()

    async def _drained(self) -> None:
        """The client has closed its end: what it asked before is still answered."""
        with anyio.move_on_after(DRAIN):
            while self._pending:
                self._idle = anyio.Event()
                await self._idle.wait()

    # Writing

    async def _write_messages(self, outward: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with outward:
            async for sent in outward:
                message = sent.message
                content = message.model_dump(mode="json", by_alias=True, exclude_unset=True)
                await self._write_line(content)
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                    self._answered(message.id)

    async def _write_line(self, content: dict[str, Any]) -> None:
        """In ASCII: neither a code page nor a separator of lines that only Unicode knows can
        break it."""
        line = json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        async with self._writing:
            try:
                await anyio.to_thread.run_sync(_write_all, self._wire.writing, line)
            except OSError:  # nobody reads any more
                self._scope.cancel()

    # Signals

    def _catch_signals(self) -> Callable[[], None]:
        """Ctrl-C and SIGTERM end it in order; a second Ctrl-C at once."""
        loop = asyncio.get_running_loop()
        former: dict[int, Any] = {}

        def restore() -> None:
            for number, handler in former.items():
                signal.signal(number, handler)

        def caught(number: int, frame: FrameType | None) -> None:
            del frame
            if self._signal == number == signal.SIGINT:
                os._exit(128 + number)  # somebody has no patience: threads would be waited for
            # Clients send one kind soon after the other, which must not cut the first one short.
            self._signal = self._signal or number
            loop.call_soon_threadsafe(self._scope.cancel)

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                former[number] = signal.signal(number, caught)
        return restore


def _read_lines(
    descriptor: int, loop: asyncio.AbstractEventLoop, lines: MemoryObjectSendStream[bytes | None]
) -> None:
    """On a thread of its own, which nobody waits for: a read cannot be interrupted. Without
    buffers of Python's, whose locks would be missed when the process ends."""
    for line in split_lines(lambda: os.read(descriptor, PIECE)):
        if loop.is_closed():
            return
        try:
            asyncio.run_coroutine_threadsafe(lines.send(line), loop).result()
        except (CancelledError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the server has ended
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(lines.close)


def split_lines(read: Callable[[], bytes], most: int = MOST_LINE) -> Iterator[bytes | None]:
    """Lines of what `read` gives until it gives nothing (or fails, as a closed end does), without
    their ends; empty ones are left out. None for a line that is longer than `most` bytes."""
    kept: list[bytes] = []
    size = 0
    while True:
        try:
            piece = read()
        except OSError:
            piece = b""
        if not piece:
            break
        *ended, rest = piece.split(b"\n")
        for part in ended:
            whole = b"".join((*kept, part)) if size + len(part) <= most else None
            kept, size = [], 0
            if whole is None or whole.strip():
                yield whole
        size += len(rest)
        if size <= most:
            kept.append(rest)
        else:
            kept.clear()
    last = b"".join(kept)
    if last.strip():
        yield last


def read_message(line: bytes | None) -> types.JSONRPCMessage:
    """The message of a line. Raises BadLineError."""
    if line is None:
        raise BadLineError(types.PARSE_ERROR, f"a message has at most {MOST_LINE:,} bytes")
    try:
        content = json.loads(line.decode("utf-8-sig"), parse_constant=_no_constant)
    except UnicodeDecodeError as exc:
        raise BadLineError(types.PARSE_ERROR, f"not UTF-8 at byte {exc.start}") from exc
    except RecursionError as exc:
        raise BadLineError(types.PARSE_ERROR, "nested too deeply") from exc
    except ValueError as exc:
        raise BadLineError(types.PARSE_ERROR, f"not JSON: {exc}") from exc
    if not isinstance(content, dict):
        wanted = "batches are not served" if isinstance(content, list) else "it must be an object"
        raise BadLineError(types.INVALID_REQUEST, f"not a message: {wanted}")
    id = content.get("id")
    known = id if isinstance(id, str | int) and not isinstance(id, bool) else None
    wrong = BadLineError(
        types.INVALID_REQUEST,
        "not a message of JSON-RPC 2.0: look at jsonrpc, id, method and params",
        known,
    )
    if "id" in content and known is None and "error" not in content:
        raise wrong  # the SDK would take it for a notification, and nobody would be told
    try:
        return types.jsonrpc_message_adapter.validate_python(content, by_name=False)
    except ValidationError as exc:
        raise wrong from exc


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _error_line(error: BadLineError) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": error.id,
        "error": {"code": error.code, "message": error.message},
    }


def _write_all(descriptor: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]

"""Everything in and out, as lines of JSON (NDJSON)."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, Annotated, Any, ClassVar

import anyio.to_thread
from fastapi import APIRouter, Query, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from cofire.errors import FormatError, InputError
from cofire.exchange import STREAM
from cofire.interchange import Format, ImportReport
from cofire.interchange.detect import detect_start
from cofire.memory import Memory
from cofire.server.access import Scope
from cofire.server.actions import Action
from cofire.server.answers import json_bytes
from cofire.server.problems import problem_of, responses
from cofire.server.rest import bodies, examples
from cofire.server.rest.asking import Asked, Asking, Into

router = APIRouter(
    prefix="/v1", tags=["Moving"], generate_unique_id_function=lambda route: route.name
)

NDJSON = "application/x-ndjson"
TAKEN = (NDJSON, "application/jsonl", "application/json-lines", "application/octet-stream")
PIECE = 1 << 18
"""Bytes that are read or written at once."""
START = 1 << 16
BODY = "body"
"""What reports call the file that was sent."""

_REPORT = {"type": "report", **json.loads(json_bytes(examples.IMPORTED))}
_LINES: dict[str, Any] = {
    NDJSON: {
        "schema": {
            "type": "string",
            "description": 'Lines of JSON: {"type": "progress", "done": 1000} now and then, and at '
            'the end {"type": "report", …} (ImportReport) or, if it could not go on, '
            '{"type": "problem", …} (Problem).',
        },
        "example": '{"type": "progress", "done": 1000}\n' + json.dumps(_REPORT) + "\n",
    }
}
_SENT: dict[str, Any] = {
    NDJSON: {
        "schema": {
            "type": "string",
            "description": "One message a line (docs/how-to/import-conversations.md), or Cofire's "
            "own export.",
        },
        "example": '{"content": "Ada rows.", "time": "2026-05-08T19:30:00Z"}\n',
    }
}


@router.post(
    "/import",
    response_class=StreamingResponse,
    responses={200: {"description": "Progress and a report.", "content": _LINES}, **responses(502)},
    openapi_extra={"requestBody": {"required": True, "content": _SENT}},
)
async def import_memories(
    asked: Asked,
    request: Request,
    format: Annotated[
        bodies.ImportFormat | None,
        Query(description="jsonl (messages) or cofire (its own export). Default: seen by itself."),
    ] = None,
    into: Into = None,
) -> Response:
    """Remember a file of lines of JSON, of any length that the server takes.

    A line that cannot be used is reported with its number, and the rest goes on. Importing again
    adds nothing, so an import that broke off is simply sent again. Cofire's own export is verified
    as a whole before any of it is stored, and takes the scope admin as well: it brings feedback in
    the names of others, and what was made of it. The answer begins when the file has arrived: lines
    of progress, then the report. Problems that are seen before the first thousand memories are
    stored are answered by their status, later ones by a last line of type problem.
    """
    if _media_type(request) not in TAKEN:
        raise HTTPException(415, f"send {NDJSON}")
    # A file without a name: nothing of it is left behind, however this process ends.
    with ExitStack() as unless_taken:
        file = unless_taken.enter_context(tempfile.TemporaryFile())
        await _receive(request, file)
        work = _Import(asked.into(into), file, format, into)
        unless_taken.pop_all()
    await work.started()
    return StreamingResponse(work.lines(), media_type=NDJSON)


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _receive(request: Request, file: IO[bytes]) -> None:
    """Puts the body into a file: whoever sends slowly holds no thread and no lock meanwhile."""
    waiting = bytearray()
    async for piece in request.stream():
        waiting += piece
        if len(waiting) >= PIECE:
            await anyio.to_thread.run_sync(file.write, bytes(waiting))
            waiting.clear()
    await anyio.to_thread.run_sync(file.write, bytes(waiting))


class _Import:
    """An import at work, and what it has to tell. It goes on if nobody reads that, and closes its
    file when it is done."""

    _at_work: ClassVar[set[asyncio.Task[ImportReport]]] = set()

    def __init__(
        self,
        asked: Asking,
        file: IO[bytes],
        format: Format | None,
        into: str | None,
    ) -> None:
        self._asked, self._file, self._format, self._into = asked, file, format, into
        self._loop = asyncio.get_running_loop()
        self._told = asyncio.Event()
        self._done = self._sent = 0
        self._task = asyncio.create_task(self._run())
        self._at_work.add(self._task)
        self._task.add_done_callback(self._ended)

    async def started(self) -> None:
        """Until there is progress or an end. Raises what it ended with."""
        await self._told.wait()
        if self._task.done():
            self._task.result()

    async def lines(self) -> AsyncIterator[bytes]:
        """Progress, whenever there is some, and how it ended."""
        while not self._task.done():
            await self._told.wait()
            self._told.clear()
            if self._sent < self._done and not self._task.done():
                self._sent = self._done
                yield _line({"type": "progress", "done": self._done})
        error = self._task.exception()
        if error is None:
            yield _line({"type": "report", **json.loads(json_bytes(self._task.result()))})
        elif isinstance(error, Exception):
            yield self._problem(error)
        else:
            raise error

    async def _run(self) -> ImportReport:
        try:
            return await self._asked.ask(
                Action.IMPORT, self._verb, count=lambda report: report.imported + report.updated
            )
        finally:
            await anyio.to_thread.run_sync(self._file.close)

    def _ended(self, task: asyncio.Task[ImportReport]) -> None:
        self._at_work.discard(task)
        self._told.set()
        if not task.cancelled():
            task.exception()  # it is told, or nobody is left who could be

    def _verb(self, memory: Memory) -> ImportReport:
        chosen = self._format or _format(self._file)
        if chosen is Format.COFIRE:  # it says who gave feedback, what was learned and distilled
            self._asked.caller.require(Scope.ADMIN)
        self._file.seek(0)
        try:
            report = memory.import_(
                self._file, format=chosen, project=self._into, progress=self._progress
            )
        except (FormatError, InputError) as error:
            raise type(error)(_named(str(error))) from error
        problems = [
            replace(one, where=_named(one.where), reason=_named(one.reason))
            for one in report.problems
        ]
        return replace(report, source=BODY, problems=problems)

    def _progress(self, done: int, _: int | None) -> None:
        self._loop.call_soon_threadsafe(self._tell, done)

    def _tell(self, done: int) -> None:
        self._done = done
        self._told.set()

    def _problem(self, error: Exception) -> bytes:
        problem = json.loads(problem_of(error).body(self._asked.request))
        return _line({**problem, "problem": problem["type"], "type": "problem"})


def _named(text: str) -> str:
    """Whoever sent it calls it no standard input."""
    return text.replace(STREAM, BODY)


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _format(file: IO[bytes]) -> Format:
    """Cofire's own export, or messages."""
    file.seek(0)
    own = detect_start(file.read(START)) is Format.COFIRE
    return Format.COFIRE if own else Format.JSONL


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Cofire's own format, versioned and complete.",
            "content": {NDJSON: {"schema": {"type": "string"}}},
            "headers": {"Content-Length": {"schema": {"type": "integer"}}},
        },
        **responses(),
    },
)
async def export_memories(asked: Asked) -> Response:
    """Everything in these memories (the agent's own space and those of the projects that the
    request names) as lines of JSON, vectors and history included: what `POST /v1/import` and
    `cofire import` read. It is complete before the first byte is sent; `Content-Length` says how
    much there is to come."""

    def verb(memory: Memory) -> tuple[IO[bytes], int]:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is sent
        try:
            counts = memory.export(file)
        except BaseException:
            file.close()
            raise
        return file, counts.get("item", 0)

    file, _ = await asked.ask(Action.EXPORT, verb, count=lambda made: made[1])
    length = file.seek(0, 2)
    file.seek(0)
    return StreamingResponse(
        _pieces(file), media_type=NDJSON, headers={"Content-Length": str(length)}
    )


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await anyio.to_thread.run_sync(file.read, PIECE):
            yield piece

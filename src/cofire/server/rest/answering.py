"""Answers from what is remembered, whole or as they are written."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from cofire.answering.pending import PendingAnswer
from cofire.answers import Answer, AnswerOptions
from cofire.logs import get_logger, told_error
from cofire.memory import Memory
from cofire.plain import answer_shape
from cofire.server import answering
from cofire.server.actions import Action
from cofire.server.answers import Json, json_bytes
from cofire.server.events import HEARTBEAT, MEDIA_TYPE, EventStream, Tell, event
from cofire.server.parts import Parts
from cofire.server.problems import STOPPING, problem_of
from cofire.server.rest import bodies, examples, values
from cofire.server.rest.asking import SURFACE, Asked, Asking, answers

router = APIRouter(
    prefix="/v1", tags=["Answers"], generate_unique_id_function=lambda route: route.name
)

_log = get_logger(__name__)

NOT_OPTIONS = {"question", "model", "context", "stream"}
"""What a body says besides how to answer."""

_DESCRIBED = answers(examples.ANSWER, 502, description="The answer, or that there is none.")
_DESCRIBED["responses"][200]["content"][MEDIA_TYPE] = {
    "schema": {
        "type": "object",
        "description": "Each event. Comments between them keep the connection alive.",
        "required": ["event", "data"],
        "properties": {
            "event": {
                "type": "string",
                "enum": ["context", "text", "answer", "error"],
                "description": "context: what was recalled; text: a piece of `marked`; answer: the "
                "whole, as in JSON, at the end; error: a Problem in its place.",
            },
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "description": "JSON in one line.",
            },
        },
    },
    "example": "".join(
        event(name, json.dumps(data).encode()).decode()
        for name, data in (
            ("context", examples.ANSWER_CONTEXT),
            ("text", {"text": "At 9:15 [1]."}),
        )
    ),
}


@router.post("/answer", response_model=values.AnswerToQuestion, **_DESCRIBED)
async def answer(body: bodies.AnswerQuestion, asked: Asked, request: Request) -> Response:
    """Answer a question from what is remembered, with its sources, or say that it is not there.

    The model is the one that the server is set up with; a caller can only do without it (`model`
    "none"): the answer is then a memory's own sentence, and `extractive`. So it is on a server
    without a model. What is cited gains by it where the key may write (`learn`). Give feedback on
    `recall`. With `Accept: text/event-stream`, or `stream`, it is told while it is written. Where
    too many wait for the model it is a 429, where that fails a 502, with `retryable`.
    """
    # The body's other fields are named as the options are; a test compares them.
    options: AnswerOptions = body.model_dump(exclude=NOT_OPTIONS)  # type: ignore[assignment]
    question = answering.Asking(
        question=body.question, options=options, extractive=body.model == "none"
    )

    def shape(memory: Memory, made: Answer) -> bytes:
        del memory
        return json_bytes(answer_shape(made, context=body.context))

    parts = await Parts.begin(
        asked.service, asked.caller, Action.ANSWER, asked.where,
        surface=SURFACE, request=asked.request,
    )  # fmt: skip
    if not (_streamed(request) if body.stream is None else body.stream):
        return Json(await answering.answer(parts, question, shape))

    async def work(tell: Tell) -> None:
        def told(part: PendingAnswer | str) -> None:
            tell(_context(part) if isinstance(part, PendingAnswer) else _text(part))

        whole = await answering.answer(parts, question, shape, told)
        tell(event("answer", whole))

    return EventStream(work, lambda error: _failed(error, asked), heartbeat=HEARTBEAT)


def _streamed(request: Request) -> bool:
    """Whether events are what the client accepts, and not JSON."""
    accepts = request.headers.get("accept", "")
    kinds = {one.partition(";")[0].strip().lower() for one in accepts.split(",")}
    return MEDIA_TYPE in kinds and "application/json" not in kinds


def _context(pending: PendingAnswer) -> bytes:
    """What was recalled: without texts, which the answer has of what it cites."""
    recall, context = pending.prepared.recall, pending.context
    entries = [
        {
            "label": entry.label,
            "id": entry.id,
            "section": entry.section,
            "time": entry.time,
            "speaker": entry.speaker,
            "untrusted": entry.untrusted,
        }
        for entry in context.entries
    ]
    told: dict[str, Any] = {
        "recall": recall.id,
        "confidence": recall.confidence,
        "tokens": context.tokens,
        "entries": entries,
    }
    return event("context", json_bytes(told))


def _text(piece: str) -> bytes:
    return event("text", json_bytes({"text": piece}))


def _failed(error: BaseException, asked: Asking) -> bytes:
    if not isinstance(error, Exception):  # it was cancelled
        return event("error", STOPPING.body(asked.request))
    problem = problem_of(error)
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("failed", **told_error(error), request=asked.request)
    return event("error", problem.body(asked.request))

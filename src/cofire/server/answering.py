"""An answer, from whoever asks for it to the model and back: REST and MCP alike.

In three parts, as `cofire.answering` has them. Recalling, and what the answer teaches, are verbs on
threads of the gate; the model is waited for in between, in one of its turns.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from cofire.answering.pending import PendingAnswer
from cofire.answers import Answer, AnswerOptions
from cofire.memory import Memory
from cofire.models import Generated
from cofire.server.access import Caller, Scope
from cofire.server.parts import Parts
from cofire.server.service import who_of

R = TypeVar("R")

Told = Callable[[PendingAnswer | str], None]
"""Who is told of an answer under way, on the event loop: first of what was recalled, then of the
pieces of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question. `extractive`: no model is asked; else the server's own, if it has one: nobody
    who asks can name another."""

    question: str
    options: AnswerOptions
    extractive: bool = False


async def answer(
    parts: Parts, asking: Asking, shape: Callable[[Memory, Answer], R], told: Told | None = None
) -> R:
    """What `shape` makes of the answer, on a thread. The witnesses are told once, before this
    returns. Who is cancelled stops the model at its next piece, if it is told piece by piece.
    Raises ForbiddenError, LimitedError, and what `Memory.answering` and its answer do."""
    try:
        return await _answer(parts, asking, shape, told)
    except asyncio.CancelledError:
        parts.abandon()
        raise
    except Exception as error:
        await parts.fail(error)
        raise


async def _answer(
    parts: Parts, asking: Asking, shape: Callable[[Memory, Answer], R], told: Told | None
) -> R:
    models = parts.service.models
    options = _permitted(parts.caller, asking.options)

    def finish(memory: Memory, pending: PendingAnswer, generated: Generated | None) -> _Done[R]:
        made = pending.finish(generated)
        shaped = shape(memory, made)
        learned = made.learned is not None and made.learned.counted
        parts.done(made, count=len(made.citations), changed=learned)
        return _Done(made.marked, shaped)

    def begin(memory: Memory) -> tuple[PendingAnswer, _Done[R] | None]:
        model = None if asking.extractive else models.model()
        pending = memory.answering(asking.question, model=model or "none", **options)
        due = pending.prepared.request is not None
        return pending, None if due else finish(memory, pending, None)

    pending, done = await parts.run(begin)
    if done is not None:
        if told is not None:
            told(pending)
            told(done.text)
        return done.shaped
    async with models.turn(who_of(parts.caller)) as turn:
        if told is None:
            generated = await turn.run(lambda _: pending.generate())
        else:
            told(pending)
            generated = await turn.run(_Writing(pending, told))
    return (await parts.run(lambda memory: finish(memory, pending, generated))).shaped


@dataclass(frozen=True, slots=True)
class _Done(Generic[R]):
    """An answer's text with its marks, and what was made of it."""

    text: str
    shaped: R


def _permitted(caller: Caller, options: AnswerOptions) -> AnswerOptions:
    """The options as this caller may have them: what an answer cites gains by it only if they may
    write. Raises ForbiddenError for who insists."""
    given = options.copy()
    given["by"] = caller.name
    if given.get("learn"):
        caller.require(Scope.WRITE)
    elif Scope.WRITE not in caller.scopes:
        given["learn"] = False
    return given


class _Writing:
    """The work of a turn whose pieces are told as they are written."""

    def __init__(self, pending: PendingAnswer, told: Told) -> None:
        self._pending, self._told = pending, told
        self._loop = asyncio.get_running_loop()

    def __call__(self, stopped: threading.Event) -> Generated | None:
        with closing(self._pending.written()) as pieces:
            while not stopped.is_set():
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    generated: Generated | None = end.value
                    return generated
                with suppress(RuntimeError):  # the server has ended
                    self._loop.call_soon_threadsafe(self._told, piece)
        return None

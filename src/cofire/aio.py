"""`AsyncMemory`: the verbs of `Memory`, each in a thread, so that the event loop never waits.

Made from `Memory`'s own methods (`_threaded`), with their signatures and documentation: there is
one implementation.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, overload

from cofire.answering.pending import PendingAnswer
from cofire.answers import Answer, AnswerOptions, Context
from cofire.memory import Memory
from cofire.models import Generator

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 8
"""Verbs of one `AsyncMemory` that run at once; further ones queue. A pool of its own, so that
slow embedding never starves the loop's default executor."""


class _Threaded(Generic[P, R]):
    """A method of `Memory` as a coroutine function of `AsyncMemory`."""

    def __init__(self, verb: Callable[Concatenate[Memory, P], R]) -> None:
        self._verb = verb
        self.__doc__ = verb.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(
        self, instance: AsyncMemory, owner: type[Any]
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(
        self, instance: AsyncMemory | None, owner: type[Any]
    ) -> Self | Callable[P, Coroutine[Any, Any, R]]:
        if instance is None:
            return self
        verb = self._verb

        @functools.wraps(verb)
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return await instance._run(functools.partial(verb, instance._memory, *args, **kwargs))

        return call


class _Closing:
    """What `async with` closes."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """To be said by each."""
        raise NotImplementedError


class AsyncPendingAnswer(_Closing):
    """`PendingAnswer` for asyncio, which `AsyncMemory.answering` gives: iterate over it with
    `async for`, then await `answer()`. `async with` closes it."""

    def __init__(self, memory: AsyncMemory, pending: PendingAnswer) -> None:
        """For `AsyncMemory.answering`; takes over `pending` and closes it."""
        self._memory = memory
        self._pending = pending
        self._turn = threading.Lock()

    @property
    def context(self) -> Context:
        """What the model is given."""
        return self._pending.context

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        piece = await self._in_turn(lambda: next(iter(self._pending), None))
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def answer(self) -> Answer:
        """The whole answer; what is left of it is waited for. Raises as `Memory.answer` does."""
        return await self._in_turn(lambda: self._pending.answer)

    async def close(self) -> None:
        """Stop the model, after the piece it is at; closing again does nothing."""
        await self._in_turn(self._pending.close)

    async def _in_turn(self, call: Callable[[], R]) -> R:
        """A call that was cancelled still runs in its thread: the next one waits for it there."""

        def in_turn() -> R:
            with self._turn:
                return call()

        return await self._memory._run(in_turn)


class AsyncMemory(_Closing):
    """`Memory` for asyncio: `async with await AsyncMemory.open(...) as memory`."""

    def __init__(self, memory: Memory) -> None:
        """Takes over `memory` and closes it."""
        self._memory = memory
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="cofire")

    @classmethod
    async def open(cls, *args: Any, **kwargs: Any) -> Self:
        """As `Memory.open`."""
        return cls(await asyncio.to_thread(Memory.open, *args, **kwargs))

    async def _run(self, call: Callable[[], R]) -> R:
        try:
            running = self._pool.submit(call)
        except RuntimeError:  # it is closed, which the memory itself says best
            return await asyncio.to_thread(call)
        return await asyncio.wrap_future(running)

    async def close(self) -> None:
        """Finish what is running, then close the memory; closing again does nothing."""
        await asyncio.to_thread(self._pool.shutdown)
        await asyncio.to_thread(self._memory.close)

    async def answering(
        self,
        question: str,
        *,
        model: Generator | str | None = None,
        **options: Unpack[AnswerOptions],
    ) -> AsyncPendingAnswer:
        pending = await self._run(lambda: self._memory.answering(question, model=model, **options))
        return AsyncPendingAnswer(self, pending)

    answering.__doc__ = Memory.answering.__doc__
    remember = _Threaded(Memory.remember)
    recall = _Threaded(Memory.recall)
    answer = _Threaded(Memory.answer)
    candidates = _Threaded(Memory.candidates)
    count_tokens = _Threaded(Memory.count_tokens)
    similarity = _Threaded(Memory.similarity)
    feedback = _Threaded(Memory.feedback)
    opened = _Threaded(Memory.opened)
    cited = _Threaded(Memory.cited)
    strengthen = _Threaded(Memory.strengthen)
    strengths = _Threaded(Memory.strengths)
    why = _Threaded(Memory.why)
    proposals = _Threaded(Memory.proposals)
    replay = _Threaded(Memory.replay)
    learn_by = _Threaded(Memory.learn_by)
    consolidate = _Threaded(Memory.consolidate)
    records = _Threaded(Memory.records)
    quarantine = _Threaded(Memory.quarantine)
    shapes = _Threaded(Memory.shapes)
    hydrate = _Threaded(Memory.hydrate)
    checkpoint = _Threaded(Memory.checkpoint)
    threads = _Threaded(Memory.threads)
    advance = _Threaded(Memory.advance)
    conclude = _Threaded(Memory.conclude)
    archive = _Threaded(Memory.archive)
    unarchive = _Threaded(Memory.unarchive)
    reports = _Threaded(Memory.reports)
    get = _Threaded(Memory.get)
    list = _Threaded(Memory.list)
    update = _Threaded(Memory.update)
    history = _Threaded(Memory.history)
    forget = _Threaded(Memory.forget)
    receipts = _Threaded(Memory.receipts)
    verify = _Threaded(Memory.verify)
    forget_vectors = _Threaded(Memory.forget_vectors)
    link = _Threaded(Memory.link)
    unlink = _Threaded(Memory.unlink)
    links = _Threaded(Memory.links)
    stats = _Threaded(Memory.stats)
    export = _Threaded(Memory.export)
    import_ = _Threaded(Memory.import_)
    backup = _Threaded(Memory.backup)
    restore = _Threaded(Memory.restore)
    scrub = _Threaded(Memory.scrub)
    rotate_key = _Threaded(Memory.rotate_key)
    reembed = _Threaded(Memory.reembed)
    embed_missing = _Threaded(Memory.embed_missing)
    check = _Threaded(Memory.check)

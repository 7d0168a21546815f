"""The gate: whoever asks, by whatever protocol, asks `Service.run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from cofire.errors import AccessError, CofireError, LimitedError
from cofire.graph.freed_memory import give_back_freed_memory
from cofire.memories import Memories
from cofire.memory import Memory
from cofire.server.access import DEFAULT_IDENTITY, Caller, Place, Scope, Where
from cofire.server.actions import LONG, NEEDS, Action
from cofire.server.keys import FOREIGN
from cofire.server.model_turns import ModelTurns, models_of
from cofire.server.once import Requests

R = TypeVar("R")

THREADS = 4
"""Verbs that run at once in one process. More than a few only contend for the interpreter, which
the event loop needs as well."""
WAITING = 256
"""Verbs that may wait for their turn; further ones are refused at once, with a time to wait."""
LEFT_TO_OTHERS = 4
"""One caller's verbs take all of this but one part: of four threads three, of 260 places 195. So
long ones (ten megabytes to remember) do not stop everybody else."""
LONG_WAIT = 5.0
"""Seconds after which somebody may try again whose verb may take long and was refused: such verbs
do not wait for their turn, which nobody could say when it comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it is measured and audited. `surface` is rest, mcp or worker; `request` the
    id by which its caller knows it."""

    caller: Caller
    action: Action
    place: Place | None
    surface: str
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How a request ended: `outcome` is ok, denied or error, `code` the class of the error,
    `count` how many memories it was about, `seconds` how long it took. `changed`: it changed
    something, though its action as such only reads."""

    outcome: str
    code: str | None
    count: int
    seconds: float
    changed: bool = False


class Witness(Protocol):
    """Who is told of every request: the audit trail, metrics, spans. `told` runs on the thread of
    the verb, before the caller is answered; what it raises is the caller's error."""

    def told(self, asked: Asked, answered: Answered, result: object) -> None: ...


_Who = tuple[str, str, bytes]


@dataclass(slots=True)
class _Share:
    """What one caller's verbs have of the server: `count` are at work or wait, `limiter` are the
    threads that they may have at once."""

    limiter: anyio.CapacityLimiter
    count: int = field(default=0)


class Service:
    """Memories for callers. One for each process; safe in one event loop with many threads."""

    def __init__(
        self,
        memories: Memories,
        *,
        witnesses: tuple[Witness, ...] = (),
        threads: int = THREADS,
        waiting: int = WAITING,
        models: ModelTurns | None = None,
    ) -> None:
        """Does not take over `memories`. `models`: the language model that answers, and its turns
        (default: by the settings of the memories)."""
        self.memories = memories
        self.models = models or models_of(memories.settings)
        self.requests = Requests(memories.store)
        self._witnesses = witnesses
        self._threads = threads
        self._most = threads + waiting
        self._running = 0
        self._shares: dict[_Who, _Share] = {}
        self._long: list[_Who | None] = []
        self._limiter: anyio.CapacityLimiter | None = None

    @property
    def running(self) -> int:
        """Verbs at work, or waiting for their turn."""
        return self._running

    async def run(
        self,
        caller: Caller,
        action: Action,
        where: Where,
        verb: Callable[[Memory], R],
        *,
        surface: str,
        request: str | None = None,
        count: Callable[[R], int] | None = None,
    ) -> R:
        """What `verb` gives, called on a thread with the memory that `where` names, if the caller
        may do `action` there. A caller who goes away does not stop a verb that has begun: what it
        wrote stays. Raises ForbiddenError, LimitedError, InputError, and whatever the verb does."""

        def work(place: Place) -> R:
            return verb(self.memory(caller, place))

        return await self.about(
            caller, action, where, work, surface=surface, request=request, count=count
        )

    async def about(
        self,
        caller: Caller,
        action: Action,
        where: Where,
        work: Callable[[Place], R],
        *,
        surface: str,
        request: str | None = None,
        count: Callable[[R], int] | None = None,
    ) -> R:
        """As `run`, for what is no memory's verb (keys, the audit trail, jobs): `work` is given
        the place only."""
        started = perf_counter()
        asked, place = await self.permitted(caller, action, where, surface, request)

        def whole() -> R:
            try:
                result = work(place)
                counted = 0 if count is None else count(result)
            except Exception as error:
                self.tell(asked, failed(error, started), None)
                raise
            finally:
                if action in LONG:  # what it needed once is of no use to those that follow
                    give_back_freed_memory()
            seconds = perf_counter() - started
            answered = Answered(outcome="ok", code=None, count=counted, seconds=seconds)
            self.tell(asked, answered, result)
            return result

        with self._long_turn(caller, action):
            return await self.threaded(caller, whole)

    async def permitted(
        self, caller: Caller, action: Action, where: Where, surface: str, request: str | None
    ) -> tuple[Asked, Place]:
        """The request as it is told of, and the place that it is about. Raises ForbiddenError,
        LimitedError, InputError."""
        started = perf_counter()
        try:
            caller.require(NEEDS[action])
            place = caller.place(where)
        except CofireError as error:
            answered = failed(error, started)
            refused = Asked(
                caller=caller, action=action, place=None, surface=surface, request=request
            )
            await self.threaded(caller, lambda: self.tell(refused, answered, None))
            raise
        asked = Asked(caller=caller, action=action, place=place, surface=surface, request=request)
        return asked, place

    def memory(self, caller: Caller, place: Place) -> Memory:
        """The memory of a place. Who may only read makes no spaces by naming whom they like."""
        return self.memories.of(
            place.identity, place.user, place.projects,
            tenant=place.tenant, create=not caller.scopes <= {Scope.READ},
        )  # fmt: skip

    async def identities(self, caller: Caller) -> tuple[str, ...]:
        """The identities that a caller may name: their own, or all that their tenant has. Raises
        StoreError, LimitedError."""
        if caller.identities is not None:
            return caller.identities

        def found() -> tuple[str, ...]:
            spaces = self.memories.store.spaces(caller.tenant)
            names = [space.ref.identity for space in spaces if space.ref.identity is not None]
            return tuple(dict.fromkeys((DEFAULT_IDENTITY, *names)))

        return await self.threaded(caller, found)

    def close(self) -> None:
        """Stop what waits for a language model, and let go of it."""
        self.models.close()

    def tell(self, asked: Asked, answered: Answered, result: object) -> None:
        """Tell the witnesses. Raises what they raise."""
        for witness in self._witnesses:
            witness.told(asked, answered, result)

    async def threaded(self, caller: Caller, call: Callable[[], R], *, admitted: bool = False) -> R:
        """What `call` gives, on a thread. `admitted`: it belongs to something that was let in
        before, and is not refused. Raises LimitedError."""
        with self._turn(caller, admitted=admitted) as share:
            if self._limiter is None:  # it belongs to the running event loop
                self._limiter = anyio.CapacityLimiter(self._threads)
            if share is None:
                return await anyio.to_thread.run_sync(call, limiter=self._limiter)
            async with share.limiter:
                return await anyio.to_thread.run_sync(call, limiter=self._limiter)

    @contextmanager
    def _turn(self, caller: Caller, *, admitted: bool) -> Iterator[_Share | None]:
        """A place for a verb, and of those of its caller. Raises LimitedError."""
        if self._running >= self._most and not admitted:
            raise LimitedError(
                f"{self._running} requests are being worked on or wait, which is as many as this "
                "server takes; try again in a second",
                retry_after=1.0,
                overloaded=True,
            )
        with self._part_of(caller, admitted=admitted) as share:
            self._running += 1
            try:
                yield share
            finally:
                self._running -= 1

    @contextmanager
    def _part_of(self, caller: Caller, *, admitted: bool) -> Iterator[_Share | None]:
        """What a caller's verbs share; None for who asks without a key, for there are no others.
        Raises LimitedError."""
        who = who_of(caller)
        if who is None:
            yield None
            return
        share = self._shares.get(who)
        if share is None:
            threads = max(1, self._threads - self._threads // LEFT_TO_OTHERS)
            share = self._shares[who] = _Share(anyio.CapacityLimiter(threads))
        most = max(1, self._most - self._most // LEFT_TO_OTHERS)
        if share.count >= most and not admitted:
            raise LimitedError(
                f"{share.count} requests of {caller.name!r} are being worked on or wait, which is "
                "as many as this server takes of one key; try again in a second",
                retry_after=1.0,
            )
        share.count += 1
        try:
            yield share
        finally:
            share.count -= 1
            if not share.count:
                del self._shares[who]

    @contextmanager
    def _long_turn(self, caller: Caller, action: Action) -> Iterator[None]:
        """A place for a verb that may take long, so that the others always find threads. Raises
        LimitedError."""
        if action not in LONG:
            yield
            return
        who = who_of(caller)
        if who is not None and who in self._long:
            raise LimitedError(
                f"something that takes long is being done for {caller.name!r}; this server does "
                f"one at a time for each key: try again in {LONG_WAIT:.0f} seconds",
                retry_after=LONG_WAIT,
            )
        if len(self._long) >= max(1, self._threads // 2):
            raise LimitedError(
                f"{len(self._long)} requests that take long are being worked on, which is as many "
                f"as this server takes; try again in {LONG_WAIT:.0f} seconds",
                retry_after=LONG_WAIT,
                overloaded=True,
            )
        self._long.append(who)
        try:
            yield
        finally:
            self._long.remove(who)


def who_of(caller: Caller) -> _Who | None:
    """Whose share of the server a request takes; None for who asks without a key."""
    if caller.key is None and not caller.name.startswith(FOREIGN):
        return None
    return caller.tenant, caller.name, caller.key or b""


def failed(error: Exception, started: float) -> Answered:
    return Answered(
        outcome="denied" if isinstance(error, AccessError) else "error",
        code=type(error).__name__,
        count=0,
        seconds=perf_counter() - started,
    )

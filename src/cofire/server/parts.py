"""Requests that are done in parts: the gate, for what waits in between."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Self, TypeVar

from cofire.memory import Memory
from cofire.server.access import Caller, Place, Where
from cofire.server.actions import Action
from cofire.server.service import Answered, Asked, Service, failed

R = TypeVar("R")

ABANDONED = "Abandoned"
"""The code of what ended because nobody waited for it any more."""


class Parts:
    """A request that is done in parts, between which something else is waited for that needs no
    thread (a language model). The witnesses are told of it once, when it ends: by `done`, `fail` or
    `abandon`."""

    def __init__(self, service: Service, asked: Asked, place: Place) -> None:
        """For `Parts.begin`."""
        self.service = service
        self.asked = asked
        self._place, self._started = place, perf_counter()
        self._begun = self._told = False

    @classmethod
    async def begin(
        cls,
        service: Service,
        caller: Caller,
        action: Action,
        where: Where,
        *,
        surface: str,
        request: str | None = None,
    ) -> Self:
        """A request, if the caller may do `action` there. Raises ForbiddenError, LimitedError,
        InputError."""
        asked, place = await service.permitted(caller, action, where, surface, request)
        return cls(service, asked, place)

    @property
    def caller(self) -> Caller:
        """Who asks."""
        return self.asked.caller

    async def run(self, verb: Callable[[Memory], R]) -> R:
        """One part. Raises LimitedError if it is the first, and what the verb does."""
        admitted, self._begun = self._begun, True

        def call() -> R:
            return verb(self.service.memory(self.caller, self._place))

        return await self.service.threaded(self.caller, call, admitted=admitted)

    def done(self, result: object, *, count: int, changed: bool) -> None:
        """It has ended well: called in its last part, on the thread, so that the witnesses are told
        before anybody is answered. Raises what they do."""
        seconds = perf_counter() - self._started
        answered = Answered(outcome="ok", code=None, count=count, seconds=seconds, changed=changed)
        self._tell(answered, result)

    async def fail(self, error: Exception) -> None:
        """It has failed. Raises what the witnesses do."""
        answered = failed(error, self._started)
        await self.service.threaded(self.caller, lambda: self._tell(answered, None), admitted=True)

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        seconds = perf_counter() - self._started
        # What only reads and was not denied is told without the store: no thread is needed.
        self._tell(Answered(outcome="error", code=ABANDONED, count=0, seconds=seconds), None)

    def _tell(self, answered: Answered, result: object) -> None:
        if not self._told:
            self._told = True
            self.service.tell(self.asked, answered, result)

"""Turns of the language model that answers: so many wait for it at once, on threads that nothing
else needs.

A model may take minutes. Whoever waits for it holds neither a verb's thread nor the event loop,
only a turn; who gets none in time is told when to come again, while everything else goes on.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar, cast

from cofire.errors import GenerationError, LimitedError
from cofire.models import Generator, make_generator

if TYPE_CHECKING:
    from cofire.settings import Settings

R = TypeVar("R")

TURNS = 8
"""Answers that wait for a model at once in one process."""
SECONDS = 120.0
"""How long a model may take over one answer."""
PATIENCE = 10.0
"""Seconds that a turn is waited for."""
AGAIN = 5.0
"""Seconds after which somebody may try again who got none."""
WAITING = 4
"""Answers that may wait for a turn, for each turn that there is."""
LEFT_TO_OTHERS = 4
"""One caller's answers take all turns but one in so many, and so of the places to wait."""

Work = Callable[[threading.Event], R]
"""What is done in a turn. The event says that nobody waits for it any more."""


class Turn:
    """One turn. It is over when its work is: work that cannot be stopped keeps it."""

    def __init__(self, models: ModelTurns, who: Hashable) -> None:
        self._models, self._who = models, who
        self.begun = False

    async def run(self, work: Work[R]) -> R:
        """What `work` gives. Raises what it raises, and GenerationError where it takes too long."""
        return await self._models._run(self, self._who, work)


class ModelTurns:
    """The model that answers, made once for all, and turns of it. For one event loop."""

    def __init__(
        self,
        make: Callable[[], Generator | None],
        *,
        turns: int = TURNS,
        seconds: float = SECONDS,
        patience: float = PATIENCE,
    ) -> None:
        """`make` makes the model that the settings choose, and is called when it is first asked
        for (`model`); None: there is none."""
        self._make = make
        self._made: tuple[Generator | None] | None = None
        self._making = threading.Lock()
        self._most, self._seconds, self._patience = turns, seconds, patience
        self._taken: list[Hashable] = []
        self._waiters: deque[tuple[Hashable, asyncio.Future[None]]] = deque()
        self._working: set[threading.Event] = set()

    @property
    def running(self) -> int:
        """Turns that are taken."""
        return len(self._taken)

    @property
    def waiting(self) -> int:
        """Answers that wait for a turn."""
        return len(self._waiters)

    def model(self) -> Generator | None:
        """The model; None where there is none. Raises ConfigurationError."""
        with self._making:
            if self._made is None:
                self._made = (self._make(),)
            return self._made[0]

    def close(self) -> None:
        """Tell all work to stop, and let go of the model."""
        for stopped in tuple(self._working):
            stopped.set()
        with self._making:
            if self._made is not None and self._made[0] is not None:
                self._made[0].close()

    @asynccontextmanager
    async def turn(self, who: Hashable) -> AsyncIterator[Turn]:
        """A turn for `who` (None: somebody among whom nobody is told apart). Raises
        LimitedError."""
        await self._take(who)
        turn = Turn(self, who)
        try:
            yield turn
        finally:
            if not turn.begun:
                self._give_back(who)

    # Turns

    async def _take(self, who: Hashable) -> None:
        if self._free(who):
            self._taken.append(who)
            return
        most = WAITING * self._most
        waits = [waiter for waiter, _ in self._waiters]
        if len(waits) >= most or (who is not None and waits.count(who) >= _share(most)):
            raise self._full()
        given = asyncio.get_running_loop().create_future()
        self._waiters.append((who, given))
        try:
            async with asyncio.timeout(self._patience):
                await given
        except BaseException as error:
            if given.done() and not given.cancelled():  # too late to be of use
                self._give_back(who)
            if isinstance(error, TimeoutError):
                raise self._full() from None
            raise
        finally:
            with suppress(ValueError):
                self._waiters.remove((who, given))

    def _free(self, who: Hashable) -> bool:
        if len(self._taken) >= self._most:
            return False
        return who is None or self._taken.count(who) < _share(self._most)

    def _give_back(self, who: Hashable) -> None:
        """To the first who waits and may have it."""
        self._taken.remove(who)
        for waiter, given in self._waiters:
            if not given.done() and self._free(waiter):
                self._taken.append(waiter)
                given.set_result(None)
                return

    def _full(self) -> LimitedError:
        # 429 and not 503, with or without a key: the rest of the server is as well as ever, and
        # what stands before it must not take it for overloaded.
        return LimitedError(
            f"{self.running} answers wait for the language model, which is as many as this server "
            f"takes, or takes of one key; try again in {AGAIN:.0f} seconds",
            retry_after=AGAIN,
        )

    # Work

    async def _run(self, turn: Turn, who: Hashable, work: Work[R]) -> R:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[R] = loop.create_future()
        stopped = threading.Event()

        def ended(result: R | None, error: BaseException | None) -> None:
            self._working.discard(stopped)
            self._give_back(who)
            if done.done():
                return  # nobody waits any more
            if error is None:
                done.set_result(cast("R", result))  # without an error it is one
            else:
                done.set_exception(error)

        def call() -> None:
            result: R | None = None
            raised: BaseException | None = None
            try:
                result = work(stopped)
            except BaseException as error:  # noqa: BLE001  (whoever waits is told, whatever it is)
                raised = error
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(ended, result, raised)

        # Not a pool's: its threads would be waited for when the process ends, however long a model
        # takes, and to start one costs nothing beside what it then waits for.
        thread = threading.Thread(target=call, name="cofire-model", daemon=True)
        thread.start()
        turn.begun = True
        self._working.add(stopped)
        try:
            async with asyncio.timeout(self._seconds):
                return await done
        except TimeoutError:
            raise GenerationError(
                f"the language model took longer than {self._seconds:g} seconds; try again later",
                retryable=True,
            ) from None
        finally:
            stopped.set()


def models_of(settings: Settings) -> ModelTurns:
    """The model and its turns by the settings."""

    def make() -> Generator | None:
        return make_generator(settings, settings.answer_model or None)

    return ModelTurns(make, turns=settings.server_answers, seconds=settings.server_answer_seconds)


def _share(most: int) -> int:
    """How many of so many one caller may have."""
    return max(1, most - most // LEFT_TO_OTHERS)

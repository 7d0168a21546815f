"""Calls of a language model within the limits of its endpoint and of one's purse.

All threads of a run go through one `Pacer`. Limits per minute hold in every window of sixty
seconds, the first included. When the endpoint asks for a pause, everybody waits: what other threads
would have been told is not found out call by call.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from cofire.consolidation.budgets import Budget
from cofire.consolidation.fencing import estimated_tokens
from cofire.errors import ConfigurationError, GenerationError, PromptTooLongError
from cofire.models.generator import Generated, Generation, Generator

MINUTE = 60.0
FIRST_PAUSE = 1.0
"""Seconds before another attempt where the endpoint asks for none; doubled after each."""
LONGEST_PAUSE = 60.0
"""That pause at most, in seconds."""
LONGEST_WAIT = 300.0
"""An endpoint that asks for a longer pause (seconds) has no more for today: the run stops."""
FAILURES = 10
"""Calls in a row that fail, after which there is no use in going on."""


class StoppedError(Exception):
    """No more calls are to be made, and why; what is kept stays."""


class Stop:
    """Whether a run is to end, and why; the first reason counts. Shared by all its threads."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._mutex = threading.Lock()
        self.reason = ""
        self.error: Exception | None = None

    @property
    def ended(self) -> bool:
        """Whether it is to end."""
        return self._event.is_set()

    def because(self, reason: str, error: Exception | None = None) -> None:
        with self._mutex:
            if not self._event.is_set():
                self.reason, self.error = reason, error
            self._event.set()

    def check(self) -> None:
        """Raises StoppedError where it is to end."""
        if self._event.is_set():
            raise StoppedError(self.reason)

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until it is to end. Raises StoppedError."""
        self._event.wait(seconds)
        self.check()


@dataclass(slots=True)
class _Call:
    """When it was let go, in seconds of the clock, and the tokens it counts for."""

    time: float
    tokens: int


class Pacer:
    """At most `requests` and `tokens` (sent and received) a minute; None: no limit.

    `clock` gives seconds that never go back, `wait` sleeps so many.
    """

    def __init__(
        self,
        *,
        requests: int | None = None,
        tokens: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._wait = wait
        self._calls: deque[_Call] = deque()
        self._until = 0.0
        self._mutex = threading.Lock()

    def acquire(self, tokens: int) -> _Call:
        """Wait until a call that may take `tokens` is within the limits, and count it. One that is
        larger than the limit of a minute has a minute of its own."""
        while True:
            with self._mutex:
                now = self._clock()
                seconds = self._due_in(now, tokens)
                if seconds <= 0.0:
                    call = _Call(now, tokens)
                    self._calls.append(call)
                    return call
            self._wait(seconds)

    def settle(self, call: _Call, tokens: int) -> None:
        """The call took so many tokens, in place of what it might have taken."""
        with self._mutex:
            call.tokens = tokens

    def pause(self, seconds: float) -> None:
        """Nobody sends anything for so long."""
        with self._mutex:
            self._until = max(self._until, self._clock() + seconds)

    def _due_in(self, now: float, tokens: int) -> float:
        """Seconds until a call would be within the limits, if nobody else made one; 0: now."""
        while self._calls and self._calls[0].time <= now - MINUTE:
            self._calls.popleft()
        due = self._until
        if self._requests is not None and len(self._calls) >= self._requests:
            due = max(due, self._calls[-self._requests].time + MINUTE)
        if self._tokens is not None:
            room = self._tokens - tokens
            used = 0
            for call in reversed(self._calls):
                used += call.tokens
                if used > max(room, 0):
                    due = max(due, call.time + MINUTE)
                    break
        return max(0.0, due - now)


class PacedGenerator:
    """`inner` within the limits of `pacer` and `budget`, until `stop`.

    A call that fails in passing is made again, `attempts` times in all, after the pause that the
    endpoint asks for (everybody's pause), or one that doubles. `inner` is to make one attempt per
    call. Raises GenerationError for a question that cannot be answered, StoppedError where the
    whole run has to end: the key is refused, the budget is used up, `FAILURES` calls failed in a
    row, or the endpoint asks for more than `LONGEST_WAIT`.
    """

    def __init__(
        self,
        inner: Generator,
        *,
        pacer: Pacer,
        budget: Budget,
        stop: Stop,
        attempts: int = 4,
        failures: int = FAILURES,
    ) -> None:
        self._inner = inner
        self._pacer = pacer
        self._budget = budget
        self._stop = stop
        self._attempts = attempts
        self._most_failures = failures
        self._failures = 0
        self._mutex = threading.Lock()

    @property
    def name(self) -> str:
        return self._inner.name

    def generate(self, request: Generation, /) -> Generated:
        pause = FIRST_PAUSE
        made = 0
        while True:
            try:
                reply = self._once(request)
            except PromptTooLongError:
                self._succeeded()  # the endpoint is there, and says so
                raise
            except GenerationError as exc:
                made += max(1, exc.attempts)
                last = made >= self._attempts or not exc.retryable
                self._failed(exc, last)
                if last:
                    raise
                self._pacer.pause(self._asked(exc, pause))
                pause = min(LONGEST_PAUSE, 2.0 * pause)
            else:
                self._succeeded()
                return replace(reply, attempts=reply.attempts + made)

    def close(self) -> None:
        self._inner.close()

    def _once(self, request: Generation) -> Generated:
        self._stop.check()
        sent = estimated_tokens(request.system) + estimated_tokens(request.user)
        call = self._pacer.acquire(sent + request.max_tokens)
        self._stop.check()
        held = self._budget.hold(sent, request.max_tokens)
        if held is None:
            self._pacer.settle(call, 0)
            self._stop.because("the budget is used up")
            raise StoppedError(self._stop.reason)
        reply: Generated | None = None
        try:
            reply = self._inner.generate(request)
        except ConfigurationError as exc:
            self._stop.because(str(exc), exc)
            raise StoppedError(str(exc)) from exc
        finally:
            taken = self._budget.settle(held, reply)
            self._pacer.settle(call, taken.input_tokens + taken.output_tokens)
        return reply

    def _asked(self, error: GenerationError, pause: float) -> float:
        """Seconds that everybody is to wait. Raises StoppedError where that is too long."""
        if error.retry_after is None:
            return pause
        if error.retry_after > LONGEST_WAIT:
            self._stop.because(f"{error}. Run the same command again then", error)
            raise StoppedError(self._stop.reason) from error
        return error.retry_after

    def _succeeded(self) -> None:
        with self._mutex:
            self._failures = 0

    def _failed(self, error: GenerationError, last: bool) -> None:
        """Counts a call whose attempts are used up."""
        if not last:
            return
        with self._mutex:
            self._failures += 1
            many = self._failures >= self._most_failures
        if many:
            self._stop.because(
                f"{self._most_failures} calls failed in a row, the last: {error}", error
            )

"""A language model that says what a test tells it to say."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from cofire.models.generator import Generated, Generation

Reply = str | Generated | BaseException | Callable[[Generation], "str | Generated"]
"""A text, a whole answer, an exception to raise, or a function of the request that gives one of
the first two (or raises)."""


class ScriptedGenerator:
    """Answers each request with the next of `replies`; after the last, with `then`, or by failing
    the test where there is none.

    `requests` are those it was given, in order. Before it answers, it sleeps `delay` seconds and
    calls `wait` with the request: a test can hold a call there, and change the store meanwhile. Of
    a text, tokens are counted as words. May be called from several threads; a reply goes to one.
    """

    def __init__(
        self,
        replies: Iterable[Reply] = (),
        *,
        then: Reply | None = None,
        name: str = "scripted",
        delay: float = 0.0,
        wait: Callable[[Generation], object] | None = None,
    ) -> None:
        self.name = name
        self.requests: list[Generation] = []
        self.closed = 0
        self._replies = list(replies)
        self._then = then
        self._delay = delay
        self._wait = wait
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """How many replies have not been used."""
        with self._lock:
            return len(self._replies)

    def generate(self, request: Generation, /) -> Generated:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            reply = self._replies.pop(0) if self._replies else self._then
        if self._delay:
            time.sleep(self._delay)
        if self._wait is not None:
            self._wait(request)
        if reply is None:
            raise AssertionError(f"the script has no reply to request {number}")
        if isinstance(reply, BaseException):
            raise reply
        answer = reply(request) if callable(reply) else reply
        if isinstance(answer, Generated):
            return answer
        return Generated(
            text=answer,
            input_tokens=len(request.system.split()) + len(request.user.split()),
            output_tokens=len(answer.split()),
        )

    def stream(self, request: Generation, /) -> Iterator[str | Generated]:
        """The same answer word by word, each with the space before it."""
        answer = self.generate(request)
        yield from re.findall(r"\s*\S+|\s+", answer.text)
        yield answer

    def close(self) -> None:
        self.closed += 1

"""A server that speaks OpenAI's protocol: one client, bounded attempts, errors that say what to do.

What the embedder and the generator share. Exceptions of the `openai` package end here; the three
that leave `Endpoint.send` are for the other modules of this package to translate.
"""

from __future__ import annotations

import email.utils
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from cofire.errors import ConfigurationError
from cofire.models.forking import renew_after_fork

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

R = TypeVar("R")

_TOO_LONG = re.compile(r"too (long|large|many tokens)|context|maximum|max_|length|exceed", re.I)

_abandoned: list[object] = []
"""Clients inherited over a fork: closing one would end connections that the parent uses."""


class RefusedError(Exception):
    """The server answered with a failure. `wait`: seconds it asks to wait, None if it does not;
    `passing`: another attempt may succeed; `too_long`: it says that the input is."""

    def __init__(
        self, status: int, reason: str, *, code: str | None, wait: float | None, attempts: int
    ) -> None:
        asked = f" and asks to wait {wait:g} s" if wait else ""
        super().__init__(f"answers HTTP {status}{asked}: {reason}")
        self.status = status
        self.reason = reason
        self.code = code
        self.wait = wait
        self.attempts = attempts

    @property
    def passing(self) -> bool:
        return _passing(self.status)

    @property
    def too_long(self) -> bool:
        return self.status == 413 or (
            self.status in {400, 422} and _TOO_LONG.search(self.reason) is not None
        )


class UnansweredError(Exception):
    """No usable answer came: a time-out, a refused connection, a failure of the client, or a body
    that is no answer. `passing`: another attempt may succeed."""

    def __init__(self, reason: str, *, passing: bool = True, attempts: int = 1) -> None:
        super().__init__(reason)
        self.passing = passing
        self.attempts = attempts


class UnusableBodyError(Exception):
    """Raised by what reads a body, where asking again may bring another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How often to ask (`most` ≥ 1) and how long to pause before asking again: `first` seconds,
    twice as many each time, never more than `longest`. A server that asks for a longer pause is
    not waited for. `jitter` gives what part of a pause is taken, in (0, 1]."""

    most: int
    first: float
    longest: float
    jitter: Callable[[], float] = lambda: 1.0

    def pause(self, attempt: int) -> float:
        """Seconds after failed attempt number `attempt` (from 1)."""
        return float(min(self.longest, self.first * 2.0 ** (attempt - 1)) * self.jitter())


class Endpoint:
    """The server at `base_url`. `key_setting` is the variable that holds its key and `where` says
    what is asked of it, for messages. `timeout` is in seconds, per attempt and without an answer.
    `proxies`: whether it is asked through those that the environment names.
    """

    def __init__(
        self,
        where: str,
        *,
        base_url: str,
        api_key: str | None,
        key_setting: str,
        timeout: float,
        attempts: Attempts,
        proxies: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.where = f"{where} at {base_url}"
        self._base_url = base_url
        self._api_key = api_key
        self._key_setting = key_setting
        self._timeout = timeout
        self._attempts = attempts
        self._proxies = proxies
        self._sleep = sleep
        self._client: OpenAI | None = None
        self._lock = threading.Lock()
        renew_after_fork(self)

    def send(
        self, request: Callable[[OpenAI], R], *, timeout: float | None = None
    ) -> tuple[R, int]:
        """What `request` gives when called with the client, and the number of attempts it took.

        A time-out, a refused connection, 408, 429, 5xx and UnusableBodyError are tried again.
        `timeout` is what `request` uses, for messages. Raises RefusedError, UnansweredError, or
        ConfigurationError where the key is refused.
        """
        import openai

        for attempt in range(1, self._attempts.most + 1):
            last = attempt == self._attempts.most
            try:
                return request(self._connected()), attempt
            except openai.APIStatusError as exc:
                wait = self._wait_or_raise(exc, attempt, last)
            except openai.APIConnectionError as exc:
                if last:
                    late = isinstance(exc, openai.APITimeoutError)
                    kind = "did not answer" if late else "cannot be reached"
                    times = f"{attempt} time" + ("s" if attempt > 1 else "")
                    tried = f"tried {times}, time-out {timeout or self._timeout:g} s"
                    raise UnansweredError(f"{kind} ({tried})", attempts=attempt) from exc
                wait = self._attempts.pause(attempt)
            except openai.OpenAIError as exc:
                reason = f"failed: {self.redacted(str(exc))}"
                raise UnansweredError(reason, passing=False, attempts=attempt) from exc
            except UnusableBodyError as exc:
                if last:
                    raise UnansweredError(self.redacted(str(exc)), attempts=attempt) from exc
                wait = self._attempts.pause(attempt)
            self._sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        """End the connections; they are made anew when needed."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None

    def renew_after_fork(self) -> None:
        self._lock = threading.Lock()
        if self._client is not None:
            _abandoned.append(self._client)
            self._client = None

    def _wait_or_raise(self, refusal: APIStatusError, attempt: int, last: bool) -> float:
        """Seconds to wait before another attempt; raises where there is none."""
        status = refusal.status_code
        if status in {401, 403}:
            raise ConfigurationError(
                f"{self.where} refuses the key (HTTP {status}); set {self._key_setting}"
            ) from refusal
        wait = _asked_pause(refusal.response.headers) if _passing(status) else None
        if not _passing(status) or last or (wait or 0.0) > self._attempts.longest:
            raise RefusedError(
                status,
                self.redacted(refusal.message)[:500],
                code=refusal.code,
                wait=wait,
                attempts=attempt,
            ) from refusal
        return self._attempts.pause(attempt) if wait is None else wait

    def redacted(self, message: str) -> str:
        """What a server says, without the key if it repeats that."""
        return message.replace(self._api_key, "***") if self._api_key else message

    def _connected(self) -> OpenAI:
        with self._lock:
            if self._client is None:
                import openai

                # The own retry replaces the client's; an endpoint without keys still needs a word.
                self._client = openai.OpenAI(
                    api_key=self._api_key or "none",
                    base_url=self._base_url,
                    timeout=self._timeout,
                    max_retries=0,
                    http_client=None
                    if self._proxies
                    else openai.DefaultHttpxClient(trust_env=False),
                )
            return self._client


class Quiet:
    """How long a server may tell nothing of use: `seconds`, whatever bytes it sends meanwhile."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def over(self) -> bool:
        """Whether it has lasted too long."""
        return time.monotonic() > self._until

    def broken_by(self, parts: Iterable[R]) -> Iterator[R]:
        """The parts of an answer, after each of which it begins anew; the time that whoever takes
        them needs does not count."""
        for part in parts:
            yield part
            self._until = time.monotonic() + self.seconds


def received(chunks: Iterable[bytes], quiet: Quiet) -> Iterator[bytes]:
    """`chunks` of a body as they come. Raises UnusableBodyError where the connection breaks, brings
    nothing within the time-out that the request has set, or nothing of use (`quiet`)."""
    # `openai` lets these through, and came with either of two clients over the years.
    clients = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    try:
        for chunk in chunks:
            if quiet.over:
                raise UnusableBodyError(f"tells nothing of an answer for {quiet.seconds:g} s")
            yield chunk
    except tuple(client.TimeoutException for client in clients) as exc:
        raise UnusableBodyError(f"tells nothing for {quiet.seconds:g} s") from exc
    except tuple(client.HTTPError for client in clients) as exc:
        raise UnusableBodyError("breaks the connection") from exc


def _passing(status: int) -> bool:
    return status in {408, 429} or status >= 500


def _asked_pause(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asks to wait (`retry-after-ms`, `Retry-After` as number or date)."""
    for header, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(header, "")
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        return seconds if 0.0 <= seconds < float("inf") else None
    try:
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())

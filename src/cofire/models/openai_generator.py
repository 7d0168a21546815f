"""Language models behind any address that speaks OpenAI's `POST /chat/completions`."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from cofire.errors import GenerationError, PromptTooLongError
from cofire.models.generator import Generated, Generation
from cofire.models.openai_answers import read_completion, read_stream, whole_body
from cofire.models.openai_endpoint import (
    Attempts,
    Endpoint,
    Quiet,
    RefusedError,
    UnansweredError,
    UnusableBodyError,
    received,
)

if TYPE_CHECKING:
    from openai import OpenAI

R = TypeVar("R")

FIRST_PAUSE = 1.0
"""Seconds before the second attempt where the server asks for none; doubled after each."""

LONGEST_PAUSE = 60.0
"""A server that asks for a longer pause (seconds) is not waited for: rate limits are per minute."""

_FILTERED = frozenset({"content_filter", "content_policy_violation"})
_PARAMETER = re.compile(
    r"max_(completion_)?tokens|response_format|json_schema|temperature|stream_options|seed"
)
_INPUT = re.compile(
    r"context.(length|window|size)|prompt is|messages? (is|are|result)|too long", re.I
)
_SEED = re.compile(r"\bseed\b", re.I)
_USAGE = re.compile(r"stream_options|include_usage", re.I)
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What of the protocol an endpoint takes: the way to ask for JSON, the name of the bound on
    the answer's length, and whether there is a temperature, a seed, a stream, and at the end of a
    stream a count of its tokens."""

    form: Literal["json_schema", "json_object", "none"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    seed: bool = True
    stream: bool = True
    usage: bool = True

    def simpler(
        self, refusal: RefusedError, request: Generation, *, streaming: bool
    ) -> _Dialect | None:
        """What to try after `refusal`; None: the refusal is about something else."""
        reason = refusal.reason
        if refusal.status not in {400, 404, 415, 422, 501}:
            return None
        if "max_completion_tokens" in reason and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if (simpler := self._without(reason, request, streaming)) is not None:
            return simpler
        if refusal.status == 404 or request.schema is None or self.form == "none":
            return None
        # Servers word this in too many ways to tell it from other refusals, so it is found out.
        return replace(self, form="json_object" if self.form == "json_schema" else "none")

    def _without(self, reason: str, request: Generation, streaming: bool) -> _Dialect | None:
        """Without the option that `reason` names, if it was sent and can be left out."""
        if "temperature" in reason and self.temperature:
            return replace(self, temperature=False)
        if _SEED.search(reason) and self.seed and request.seed is not None:
            return replace(self, seed=False)
        if not streaming or not self.stream or "stream" not in reason.lower():
            return None
        if self.usage and _USAGE.search(reason):
            return replace(self, usage=False)
        return replace(self, stream=False)


@dataclass(frozen=True, slots=True)
class _Stream:
    """An answer that is being told, and the connection it comes by."""

    parts: Iterable[str | Generated]
    connection: ExitStack = field(default_factory=ExitStack)


class OpenAIGenerator:
    """A chat model behind an OpenAI-compatible address.

    `timeout` is in seconds, per attempt: within it a whole answer is there, and of a stream the
    next piece, whatever else the endpoint sends to keep the connection alive. A time-out, a refused
    connection, 429, 5xx and a body that is no answer are tried again, `retries` times, after pauses
    that double; a pause that the server asks for is kept if it is at most a minute. `max_tokens`
    bounds every answer, whatever the request allows. A schema is sent as `response_format`; where
    the endpoint refuses that, JSON is asked for without one, then in words only, and what worked is
    remembered; so is it with the temperature, the seed and streams. The address is not part of
    `name`. `proxies`: whether it is asked through those that the environment names. `extra`
    gives what this endpoint takes in a request's body beside the protocol.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        timeout: float = 120.0,
        retries: int = 3,
        max_tokens: int = 4096,
        proxies: bool = True,
        extra: Callable[[Generation], Mapping[str, Any]] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = f"openai:{model}"
        self._model = model
        self._timeout = timeout
        self._max_tokens = max_tokens
        self._extra = extra
        self._dialect = _Dialect()
        self._endpoint = Endpoint(
            f"The language model {model!r}",
            base_url=base_url,
            api_key=api_key,
            key_setting="COFIRE_GENERATOR_API_KEY",
            timeout=timeout,
            attempts=Attempts(
                most=retries + 1, first=FIRST_PAUSE, longest=LONGEST_PAUSE, jitter=_half_to_whole
            ),
            proxies=proxies,
            sleep=sleep,
        )

    def generate(self, request: Generation, /) -> Generated:
        started = time.monotonic()
        filtered = Generated(text="", finish="filter")
        generated, attempts = self._understood(request, self._sent, filtered)
        return replace(generated, seconds=time.monotonic() - started, attempts=attempts)

    def stream(self, request: Generation, /) -> Iterator[str | Generated]:
        """As StreamingGenerator says; asked again only while nothing has been told."""
        started = time.monotonic()
        filtered = _Stream([Generated(text="", finish="filter")])
        stream, attempts = self._understood(request, self._begun, filtered, streaming=True)
        with stream.connection:
            try:
                for part in stream.parts:
                    if isinstance(part, Generated):
                        seconds = time.monotonic() - started
                        yield replace(part, seconds=seconds, attempts=attempts)
                    else:
                        yield part
            except UnusableBodyError as exc:
                raise GenerationError(
                    f"{self._where} broke off in the middle of its answer: it "
                    f"{self._endpoint.redacted(str(exc))}; try again later",
                    retryable=True,
                    attempts=attempts,
                ) from exc

    def close(self) -> None:
        self._endpoint.close()

    @property
    def _where(self) -> str:
        return self._endpoint.where

    def _understood(
        self,
        request: Generation,
        send: Callable[[Generation, _Dialect], tuple[R, int]],
        filtered: R,
        *,
        streaming: bool = False,
    ) -> tuple[R, int]:
        """What `send` gives, after as many simplifications as the endpoint needs, and how often it
        was asked; `filtered` where its filter stops the prompt."""
        dialect = self._dialect
        spent = 0
        refused: RefusedError | None = None
        while True:
            try:
                answer, attempts = send(request, dialect)
            except UnansweredError as exc:
                raise GenerationError(
                    f"{self._where} {exc}; try again later",
                    retryable=exc.passing,
                    attempts=spent + exc.attempts,
                ) from exc
            except RefusedError as exc:
                refused = refused or exc
                spent += exc.attempts
                if exc.code in _FILTERED:
                    return filtered, spent
                simpler = dialect.simpler(exc, request, streaming=streaming)
                if simpler is None or _too_long(exc):
                    told = exc if exc.passing or _too_long(exc) else refused
                    raise self._refusal(told, spent) from exc
                dialect = simpler
            else:
                self._dialect = dialect
                return answer, spent + attempts

    def _sent(self, request: Generation, dialect: _Dialect) -> tuple[Generated, int]:
        timeout = request.timeout or self._timeout
        body = self._body(request, dialect)

        def create(client: OpenAI) -> Generated:
            quiet = Quiet(timeout)
            sent = client.chat.completions.with_streaming_response.create(**body, timeout=timeout)
            with sent as response:
                return read_completion(whole_body(received(response.iter_bytes(), quiet)))

        return self._endpoint.send(create, timeout=timeout)

    def _begun(self, request: Generation, dialect: _Dialect) -> tuple[_Stream, int]:
        """A stream whose first part has come: until then it may be asked for again."""
        if not dialect.stream:
            whole, attempts = self._sent(request, dialect)
            return _Stream([whole.text, whole] if whole.text else [whole]), attempts
        timeout = request.timeout or self._timeout
        body = {**self._body(request, dialect), "stream": True}
        if dialect.usage:
            body["stream_options"] = {"include_usage": True}

        def create(client: OpenAI) -> _Stream:
            sent = client.chat.completions.with_streaming_response.create(**body, timeout=timeout)
            with ExitStack() as connection:
                response = connection.enter_context(sent)
                quiet = Quiet(timeout)
                parts = quiet.broken_by(read_stream(received(response.iter_bytes(), quiet)))
                first = next(parts)
                return _Stream(chain([first], parts), connection.pop_all())

        return self._endpoint.send(create, timeout=timeout)

    def _body(self, request: Generation, dialect: _Dialect) -> dict[str, Any]:
        system = request.system
        body: dict[str, Any] = {"model": self._model}
        body[dialect.limit] = min(request.max_tokens, self._max_tokens)
        if dialect.temperature:
            body["temperature"] = request.temperature
        if dialect.seed and request.seed is not None:
            body["seed"] = request.seed
        if request.schema is not None and dialect.form == "json_schema":
            schema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.schema is not None:
            described = json.dumps(request.schema, ensure_ascii=False)
            system = f"{system}\n\nAnswer with JSON that fits this JSON Schema:\n{described}"
            if dialect.form == "json_object":
                body["response_format"] = {"type": "json_object"}
        if self._extra is not None:
            body["extra_body"] = dict(self._extra(request))
        roles = (("system", system), ("user", request.user))
        body["messages"] = [
            {"role": role, "content": _LONE_SURROGATE.sub("\ufffd", text)} for role, text in roles
        ]
        return body

    def _refusal(self, refusal: RefusedError, attempts: int) -> GenerationError:
        if _too_long(refusal):
            return PromptTooLongError(
                f"{self._where} {refusal}. Give it less text at once, or a model with more room",
                attempts=attempts,
            )
        advice = "try again later" if refusal.passing else "see COFIRE_GENERATOR and its address"
        return GenerationError(
            f"{self._where} {refusal}; {advice}",
            retryable=refusal.passing,
            retry_after=refusal.wait,
            attempts=attempts,
        )


def _too_long(refusal: RefusedError) -> bool:
    """Whether it is the input that is too long; a refused parameter is called so, too."""
    if not refusal.too_long:
        return False
    return _INPUT.search(refusal.reason) is not None or _PARAMETER.search(refusal.reason) is None


def _half_to_whole() -> float:
    return 0.5 + random.random() / 2  # noqa: S311 - spreads retries, guards nothing

"""Language models behind any address that speaks OpenAI's `POST /chat/completions`."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from cofire.errors import GenerationError, PromptTooLongError
from cofire.models.generator import Finish, Generated, Generation
from cofire.models.openai_endpoint import (
    Attempts,
    Endpoint,
    RefusedError,
    UnansweredError,
    UnusableBodyError,
)

if TYPE_CHECKING:
    from openai import OpenAI

FIRST_PAUSE = 1.0
"""Seconds before the second attempt where the server asks for none; doubled after each."""

LONGEST_PAUSE = 60.0
"""A server that asks for a longer pause (seconds) is not waited for: rate limits are per minute."""

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filter",
}
_FILTERED = frozenset({"content_filter", "content_policy_violation"})
_PARAMETER = re.compile(r"max_(completion_)?tokens|response_format|json_schema|temperature")
_INPUT = re.compile(
    r"context.(length|window|size)|prompt is|messages? (is|are|result)|too long", re.I
)
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What of the protocol an endpoint takes: the way to ask for JSON, the name of the bound on
    the answer's length, and whether there is a temperature."""

    form: Literal["json_schema", "json_object", "none"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True

    def simpler(self, refusal: RefusedError, has_schema: bool) -> _Dialect | None:
        """What to try after `refusal`; None: the refusal is about something else."""
        reason = refusal.reason
        if refusal.status not in {400, 404, 415, 422, 501}:
            return None
        if "max_completion_tokens" in reason and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "temperature" in reason and self.temperature:
            return replace(self, temperature=False)
        if refusal.status == 404 or not has_schema or self.form == "none":
            return None
        # Servers word this in too many ways to tell it from other refusals, so it is found out.
        return replace(self, form="json_object" if self.form == "json_schema" else "none")


class OpenAIGenerator:
    """A chat model behind an OpenAI-compatible address.

    `timeout` is in seconds, per attempt and without an answer. A time-out, a refused connection,
    429, 5xx and a body that is no answer are tried again, `retries` times, after pauses that
    double; a pause that the server asks for is kept if it is at most a minute. `max_tokens` bounds
    every answer, whatever the request allows. A schema is sent as `response_format`; where the
    endpoint refuses that, JSON is asked for without one, then in words only, and what worked is
    remembered. The address is not part of `name`.
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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = f"openai:{model}"
        self._model = model
        self._timeout = timeout
        self._max_tokens = max_tokens
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
            sleep=sleep,
        )

    def generate(self, request: Generation, /) -> Generated:
        started = time.monotonic()
        try:
            generated, attempts = self._understood(request)
        except UnansweredError as exc:
            raise GenerationError(
                f"{self._where} {exc}; try again later",
                retryable=exc.passing,
                attempts=exc.attempts,
            ) from exc
        return replace(generated, seconds=time.monotonic() - started, attempts=attempts)

    def close(self) -> None:
        self._endpoint.close()

    @property
    def _where(self) -> str:
        return self._endpoint.where

    def _understood(self, request: Generation) -> tuple[Generated, int]:
        """The answer, after as many simplifications as the endpoint needs."""
        dialect = self._dialect
        spent = 0
        refused: RefusedError | None = None
        while True:
            try:
                generated, attempts = self._sent(request, dialect)
            except RefusedError as exc:
                refused = refused or exc
                spent += exc.attempts
                if exc.code in _FILTERED:
                    return Generated(text="", finish="filter"), spent
                simpler = None if _too_long(exc) else dialect.simpler(exc, bool(request.schema))
                if simpler is None:
                    told = exc if exc.passing or _too_long(exc) else refused
                    raise self._refusal(told, spent) from exc
                dialect = simpler
            else:
                self._dialect = dialect
                return generated, spent + attempts

    def _sent(self, request: Generation, dialect: _Dialect) -> tuple[Generated, int]:
        timeout = request.timeout or self._timeout
        body = self._body(request, dialect)

        def create(client: OpenAI) -> Generated:
            answer = client.chat.completions.with_raw_response.create(**body, timeout=timeout)
            return _read(answer.content)

        return self._endpoint.send(create, timeout=timeout)

    def _body(self, request: Generation, dialect: _Dialect) -> dict[str, Any]:
        system = request.system
        body: dict[str, Any] = {"model": self._model}
        body[dialect.limit] = min(request.max_tokens, self._max_tokens)
        if dialect.temperature:
            body["temperature"] = request.temperature
        if request.schema is not None and dialect.form == "json_schema":
            schema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.schema is not None:
            described = json.dumps(request.schema, ensure_ascii=False)
            system = f"{system}\n\nAnswer with JSON that fits this JSON Schema:\n{described}"
            if dialect.form == "json_object":
                body["response_format"] = {"type": "json_object"}
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


def _read(body: bytes) -> Generated:
    """The answer in the body of a completion. Raises UnusableBodyError where there is none."""
    try:
        answer = json.loads(body)
        choice = answer["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as exc:
        start = body[:80].decode("utf-8", "replace")
        raise UnusableBodyError(f"answers something that is no completion: {start!r}") from exc
    finish = choice.get("finish_reason")
    usage = answer.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    refused = isinstance(refusal, str) and bool(refusal)
    return Generated(
        text=refusal if refused else content if isinstance(content, str) else "",
        finish="refusal" if refused else _FINISHES.get(str(finish), "other"),
        input_tokens=_count(counts.get("prompt_tokens")),
        output_tokens=_count(counts.get("completion_tokens")),
    )


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0

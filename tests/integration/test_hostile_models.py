"""Endpoints that never end an answer, send too much of one, or repeat the key."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from cofire.errors import GenerationError
from cofire.models import openai_answers
from cofire.models.generator import Generation
from cofire.models.openai_endpoint import UnusableBodyError
from cofire.models.openai_generator import OpenAIGenerator
from endpoint import Answer, Endpoint, Script, delta, event, says, streams
from endpoint import endpoint as endpoint  # noqa: PLC0414 - a fixture

ASKED = Generation(system="Be exact.", user="Hello")


def drips(part: bytes, *first: bytes) -> Script:
    """Keeps the connection alive and never comes to an end."""

    def parts() -> Iterator[bytes]:
        yield from first
        for _ in itertools.count():
            time.sleep(0.05)
            yield part

    def script(body: dict[str, Any]) -> Answer:
        return 200, {"Content-Type": "text/event-stream"}, parts()

    return script


def ask(endpoint: Endpoint, *, stream: bool, **options: Any) -> list[object]:
    values = {"timeout": 0.3, "retries": 0, **options}
    model = OpenAIGenerator("chat-x", base_url=endpoint.url, **values)
    with closing(model):
        return list(model.stream(ASKED)) if stream else [model.generate(ASKED)]


@pytest.mark.parametrize(
    ("script", "stream"),
    [
        (drips(b" "), False),
        (drips(b"\n"), True),
        (drips(b": alive\n\n"), True),
        (drips(b" ", b"data: {"), True),
        (drips(event({"choices": []}), delta(role="assistant")), True),
        (drips(b": alive\n\n", delta(content="Hi")), True),
    ],
    ids=["blanks", "lines", "comments", "one line", "empty events", "after a piece"],
)
def test_what_says_nothing_of_use_is_not_waited_for(
    endpoint: Endpoint, script: Script, stream: bool
) -> None:
    endpoint.scripts = [script]
    started = time.monotonic()
    with pytest.raises(GenerationError, match=r"tells nothing of an answer for 0\.3 s"):
        ask(endpoint, stream=stream)
    assert time.monotonic() - started < 3.0
    assert endpoint.left.wait(3.0)  # the connection is not kept


def test_whoever_reads_slowly_is_not_taken_for_a_silent_endpoint(endpoint: Endpoint) -> None:
    endpoint.scripts = [streams(delta(content="Hi "), delta(content="you"), delta("stop"))]
    with closing(OpenAIGenerator("chat-x", base_url=endpoint.url, timeout=0.2)) as model:
        told = []
        for part in model.stream(ASKED):
            told.append(part)
            time.sleep(0.3)
    assert told[:2] == ["Hi ", "you"]


@pytest.mark.parametrize(
    ("script", "stream", "bound"),
    [
        (says(b"x" * 50_000), False, "40,000"),
        (says(b"{\n" + b"x\n" * 25_000), True, "40,000"),
        (streams(*[b": " + b"x" * 999 + b"\n"] * 120), True, "100,000"),
        (streams(*[delta(content="x" * 999)] * 120), True, "100,000"),
    ],
    ids=["a body", "a body for a stream", "comments", "text"],
)
def test_no_answer_fills_the_memory(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, script: Script, stream: bool, bound: str
) -> None:
    monkeypatch.setattr(openai_answers, "LONGEST_EVENT", 40_000)
    monkeypatch.setattr(openai_answers, "LONGEST_STREAM", 100_000)
    endpoint.scripts = [script]
    with pytest.raises(GenerationError, match=f"tells more than {bound} bytes"):
        ask(endpoint, stream=stream, timeout=5.0)


def test_a_long_line_in_small_pieces_takes_no_longer() -> None:
    chunks = itertools.chain([b'data: {"x": "'], itertools.repeat(b"x" * 500))
    started = time.monotonic()
    with pytest.raises(UnusableBodyError, match="in one line"):
        list(openai_answers.read_stream(chunks))
    assert time.monotonic() - started < 5.0  # it was minutes


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_that_an_endpoint_repeats_is_not_told(endpoint: Endpoint, stream: bool) -> None:
    error = event({"error": {"message": "no such key: sk-secret"}})
    for script in (says(b"sk-secret?"), streams(error), streams(delta(content="Hi"), error)):
        endpoint.scripts = [script]
        with pytest.raises(GenerationError) as caught:
            ask(endpoint, stream=stream, api_key="sk-secret", timeout=5.0)
        assert "sk-secret" not in str(caught.value)

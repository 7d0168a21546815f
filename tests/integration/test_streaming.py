"""Answers piece by piece, from real servers on 127.0.0.1 that keep to the protocol, or do not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cofire.errors import ConfigurationError, GenerationError, PromptTooLongError
from cofire.models.generator import Generated, Generation
from cofire.models.openai_generator import OpenAIGenerator
from cofire.models.streaming import StreamingGenerator, streamed
from cofire.models.verifying import VerifiedGenerator
from endpoint import (
    DONE,
    Endpoint,
    Script,
    chats_without,
    completes,
    delta,
    event,
    fails,
    says,
    streams,
    usage,
)
from endpoint import endpoint as endpoint  # noqa: PLC0414 - a fixture

ASKED = Generation(system="Be exact.", user="Hello", seed=7)
END = delta("stop")
HI = (delta(role="assistant", content=None), delta(content="Hi "), delta(content="you"))
HELLO = streams(*HI, END, usage(7, 2), DONE)

Make = Callable[..., OpenAIGenerator]


@pytest.fixture
def make(endpoint: Endpoint) -> Iterator[Make]:
    made: list[OpenAIGenerator] = []

    def build(**options: Any) -> OpenAIGenerator:
        values: dict[str, Any] = {"base_url": endpoint.url, "timeout": 5.0, "sleep": lambda s: None}
        made.append(OpenAIGenerator("chat-x", **{**values, **options}))
        return made[-1]

    yield build
    for generator in made:
        generator.close()


def whole(parts: list[str | Generated]) -> tuple[list[str], Generated]:
    """The pieces, and the answer that is the last part."""
    *pieces, last = parts
    assert isinstance(last, Generated)
    texts = [piece for piece in pieces if isinstance(piece, str)]
    assert len(texts) == len(pieces)
    assert "".join(texts) == last.text
    return texts, last


def test_what_is_sent_and_what_comes_back(endpoint: Endpoint, make: Make) -> None:
    endpoint.scripts = [HELLO]
    generator: StreamingGenerator = make(api_key="sk-test")
    pieces, answer = whole(list(streamed(VerifiedGenerator(generator), ASKED)))
    assert pieces == ["Hi ", "you"]
    assert (answer.finish, answer.input_tokens, answer.output_tokens) == ("stop", 7, 2)
    assert answer.attempts == 1
    assert 0 < answer.seconds < 5
    (request,) = endpoint.requests
    assert endpoint.keys == ["Bearer sk-test"]
    assert request["stream"] is True
    assert request["stream_options"] == {"include_usage": True}
    assert (request["seed"], request["temperature"]) == (7, 0)
    endpoint.scripts = [completes("Hi")]
    generator.generate(ASKED)
    assert endpoint.requests[1]["seed"] == 7
    assert "stream" not in endpoint.requests[1]
    generator.generate(Generation(system="", user="x"))
    assert "seed" not in endpoint.requests[2]


def test_pieces_come_before_the_answer_is_whole(endpoint: Endpoint, make: Make) -> None:
    go = threading.Event()

    def later() -> Iterator[bytes]:
        assert go.wait(5)
        yield delta("stop", content="you")

    endpoint.scripts = [streams(delta(content="Hi "), then=later)]
    parts = make().stream(ASKED)
    assert next(parts) == "Hi "
    go.set()
    assert next(parts) == "you"
    assert isinstance(next(parts), Generated)


TOLD: dict[str, tuple[Script, list[str], str, int]] = {
    "no done": (streams(*HI, END), ["Hi ", "you"], "stop", 0),
    "no done but usage": (streams(*HI, END, usage(1, 3)), ["Hi ", "you"], "stop", 3),
    "no finish": (streams(*HI, DONE), ["Hi ", "you"], "other", 0),
    "length": (streams(delta("length", content="Hi"), DONE), ["Hi"], "length", 0),
    "nothing": (streams(END, DONE), [], "stop", 0),
    "no texts": (
        streams(delta(content=""), delta(content=None), delta(content=[1]), END),
        [],
        "stop",
        0,
    ),
    "refusal": (
        streams(delta(refusal="I "), delta("stop", refusal="can't."), DONE),
        ["I ", "can't."],
        "refusal",
        0,
    ),
    "filter": (streams(delta(content="Hi"), delta("content_filter"), DONE), ["Hi"], "filter", 0),
    "odd events": (
        streams(event({}), event({"choices": None}), event({"choices": [7]}), *HI, END),
        ["Hi ", "you"],
        "stop",
        0,
    ),
    "odd choice": (
        streams(event({"choices": [{"delta": None, "finish_reason": ""}]}), *HI, END),
        ["Hi ", "you"],
        "stop",
        0,
    ),
    "odd usage": (
        streams(delta(content="Hi"), event({"choices": [], "usage": "odd"}), END),
        ["Hi"],
        "stop",
        0,
    ),
    "comments": (
        streams(b": ping\n\n", b"event: chunk\nid: 1\nretry: 5\n", *HI, END),
        ["Hi ", "you"],
        "stop",
        0,
    ),
    "marks and line ends": (
        streams(b"\xef\xbb\xbf", delta(content="a\u2028b\x85c"), END),
        ["a\u2028b\x85c"],
        "stop",
        0,
    ),
    "crlf": (
        streams(*(part.replace(b"\n", b"\r\n") for part in (*HI, END))),
        ["Hi ", "you"],
        "stop",
        0,
    ),
    "no empty lines": (
        streams(*(part[:-1] for part in (*HI, END, DONE))),
        ["Hi ", "you"],
        "stop",
        0,
    ),
    "one part": (streams(b"".join((*HI, END, DONE))[:-2]), ["Hi ", "you"], "stop", 0),
    "bytes": (
        streams(*(bytes([byte]) for byte in b"".join((delta(content="Größe 🛶"), END)))),
        ["Größe 🛶"],
        "stop",
        0,
    ),
    "several lines": (
        streams(b'data: {"choices": [{"delta":\ndata: {"content": "Hi"}}]}\n\n', END),
        ["Hi"],
        "stop",
        0,
    ),
    "garbage at the end": (streams(*HI, END, b"data: {garbage\n\n"), ["Hi ", "you"], "stop", 0),
    "no stream": (completes("Hi you", usage={"completion_tokens": 2}), ["Hi you"], "stop", 2),
    "no stream, empty": (completes("", "length"), [], "length", 0),
}
"""Name → a server, and the pieces, the end and the tokens of the answer that it tells."""


@pytest.mark.parametrize("name", TOLD)
def test_how_servers_tell_an_answer(endpoint: Endpoint, make: Make, name: str) -> None:
    script, pieces, finish, tokens = TOLD[name]
    endpoint.scripts = [script]
    told, answer = whole(list(make(retries=0).stream(ASKED)))
    assert (told, answer.finish, answer.output_tokens) == (pieces, finish, tokens)
    assert len(endpoint.requests) == 1


def broken() -> Iterator[bytes]:
    raise ConnectionResetError
    yield b""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (fails(503, "busy"), "HTTP 503"),
        (streams(), "no completion"),
        (streams(HI[0]), "ends the connection before its answer"),
        (streams(b"data: {garbage\n\n", *HI, END), "no part of an answer: '{garbage"),
        (streams(b"data: [1]\n\n", *HI, END), "no part of an answer: '\\[1\\]"),
        (streams(event({"error": {"message": "overloaded"}})), "error: .*overloaded"),
        (streams(then=broken), "breaks the connection"),
        (says(b"<html>502</html>"), "no completion: '<html>"),
    ],
)
def test_until_something_is_told_it_is_asked_again(
    endpoint: Endpoint, make: Make, script: Script, said: str
) -> None:
    endpoint.scripts = [script, HELLO]
    pieces, answer = whole(list(make().stream(ASKED)))
    assert (pieces, answer.attempts) == (["Hi ", "you"], 2)
    endpoint.scripts = [script]
    with pytest.raises(GenerationError, match=said) as caught:
        list(make(retries=0).stream(ASKED))
    assert caught.value.retryable


def slow() -> Iterator[bytes]:
    time.sleep(0.6)
    yield END


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (streams(*HI), "ends the connection before its answer"),
        (streams(*HI, then=broken), "breaks the connection"),
        (streams(*HI, b"data: {garbage\n\n", END), "no part of an answer"),
        (streams(*HI, event({"error": "out of memory"}), END), "error: out of memory"),
        (streams(*HI, then=slow), r"tells nothing for 0\.2 s"),
    ],
)
def test_what_breaks_in_the_middle_is_said(
    endpoint: Endpoint, make: Make, script: Script, said: str
) -> None:
    endpoint.scripts = [script]
    parts = make(timeout=0.2).stream(ASKED)
    assert [next(parts), next(parts)] == ["Hi ", "you"]
    with pytest.raises(
        GenerationError, match=f"in the middle of its answer: it .*{said}"
    ) as caught:
        next(parts)
    assert (caught.value.retryable, caught.value.attempts) == (True, 1)
    assert len(endpoint.requests) == 1


def test_to_stop_reading_ends_the_request(endpoint: Endpoint, make: Make) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(10_000):
            yield delta(content="more and more " * 100)
            time.sleep(0.001)

    endpoint.scripts = [streams(then=endless)]
    parts = streamed(VerifiedGenerator(make()), ASKED)
    assert next(parts)
    assert not endpoint.left.is_set()
    parts.close()
    assert endpoint.left.wait(5)


def test_what_an_endpoint_refuses_is_left_out_from_then_on(endpoint: Endpoint, make: Make) -> None:
    refused = {"seed": "Unknown parameter: 'seed'.", "stream_options": "stream_options: forbidden"}
    endpoint.scripts = [chats_without(refused, HELLO)]
    generator = make()
    assert [whole(list(generator.stream(ASKED)))[1].attempts for _ in range(2)] == [3, 1]
    assert endpoint.requests[-1]["stream"] is True
    endpoint.requests.clear()
    endpoint.scripts = [chats_without({'"stream"': "Streaming is off here"}, completes("Hi"))]
    generator = make()
    for attempts in (2, 1):
        pieces, answer = whole(list(generator.stream(ASKED)))
        assert (pieces, answer.attempts) == (["Hi"], attempts)
    assert ["stream" in request for request in endpoint.requests] == [True, False, False]


def test_refusals_are_those_of_whole_answers(endpoint: Endpoint, make: Make) -> None:
    endpoint.scripts = [fails(401, "Incorrect key")]
    with pytest.raises(ConfigurationError, match="COFIRE_GENERATOR_API_KEY"):
        list(make().stream(ASKED))
    endpoint.scripts = [fails(400, "your prompt is too long: 9000 tokens")]
    with pytest.raises(PromptTooLongError):
        list(make().stream(ASKED))
    body = b'{"error": {"message": "The prompt was filtered.", "code": "content_filter"}}'
    endpoint.scripts = [lambda request: (400, {}, body)]
    assert whole(list(make().stream(ASKED)))[1].finish == "filter"
    endpoint.close()
    with pytest.raises(GenerationError, match="cannot be reached"):
        list(make(retries=0).stream(ASKED))


def test_one_that_is_never_read_asks_nothing(endpoint: Endpoint, make: Make) -> None:
    make().stream(ASKED)
    assert endpoint.requests == []

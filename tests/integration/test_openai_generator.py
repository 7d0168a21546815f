"""The OpenAI-compatible generator against a real server on 127.0.0.1."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cofire.consolidation.asking import ask
from cofire.consolidation.budgets import Budget
from cofire.consolidation.prompts import load
from cofire.errors import ConfigurationError, GenerationError, PromptTooLongError
from cofire.models.generator import Generation
from cofire.models.openai_generator import FIRST_PAUSE, LONGEST_PAUSE, OpenAIGenerator
from endpoint import Answer, Endpoint, Script, chats_without, completes, fails, says
from endpoint import endpoint as endpoint  # noqa: PLC0414 - a fixture
from scripts_of_models import GOOD, TURNS

SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
ASKED = Generation(system="Be exact.", user="Hello", schema=SCHEMA, schema_name="greeting")
ODD = {"prompt_tokens": None, "completion_tokens": -1}
HELLO = completes("Hi", usage={"prompt_tokens": 7, "completion_tokens": 2})

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


def test_what_is_sent_and_what_comes_back(endpoint: Endpoint, make: Make) -> None:
    endpoint.scripts = [HELLO]
    generator = make(api_key="sk-test", max_tokens=100)
    assert generator.name == "openai:chat-x"
    answer = generator.generate(ASKED)
    assert (answer.text, answer.finish) == ("Hi", "stop")
    assert (answer.input_tokens, answer.output_tokens, answer.attempts) == (7, 2, 1)
    assert 0 < answer.seconds < 5
    (request,) = endpoint.requests
    assert request["path"] == "/v1/chat/completions"
    assert endpoint.keys == ["Bearer sk-test"]
    assert (request["model"], request["max_tokens"], request["temperature"]) == ("chat-x", 100, 0)
    assert request["messages"] == [
        {"role": "system", "content": "Be exact."},
        {"role": "user", "content": "Hello"},
    ]
    assert request["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "greeting", "schema": SCHEMA, "strict": True},
    }
    generator.generate(Generation(system="", user="cut \ud83d emoji", max_tokens=9))
    free = endpoint.requests[1]
    assert "response_format" not in free
    assert free["max_tokens"] == 9
    assert free["messages"][1]["content"] == "cut \ufffd emoji"


@pytest.mark.parametrize(
    ("script", "text", "finish"),
    [
        (completes("a", "length"), "a", "length"),
        (completes("a", "max_tokens"), "a", "length"),
        (completes("a", "content_filter"), "a", "filter"),
        (completes("a", "tool_calls"), "a", "other"),
        (completes("a", None), "a", "other"),
        (completes(None, "stop"), "", "stop"),
        (completes(None, "stop", refusal="I can't."), "I can't.", "refusal"),
        (completes("", "length", usage=ODD), "", "length"),
        (completes("a", usage=[1]), "a", "stop"),
    ],
)  # fmt: skip
def test_how_an_answer_ends(
    endpoint: Endpoint, make: Make, script: Script, text: str, finish: str
) -> None:
    endpoint.scripts = [script]
    answer = make().generate(ASKED)
    assert (answer.text, answer.finish, answer.input_tokens, answer.output_tokens) == (
        text, finish, 0, 0,
    )  # fmt: skip


def test_a_rate_limit_is_waited_for_as_it_asks(endpoint: Endpoint, make: Make) -> None:
    pauses: list[float] = []
    endpoint.scripts = [fails(429, retry_after="7"), fails(429, retry_after_ms="250"), HELLO]
    answer = make(sleep=pauses.append).generate(ASKED)
    assert (answer.text, answer.attempts, pauses) == ("Hi", 3, [7.0, 0.25])


def test_a_rate_limit_is_really_waited_for(endpoint: Endpoint, make: Make) -> None:
    endpoint.scripts = [fails(429, retry_after="0.4"), HELLO]
    started = time.monotonic()
    answer = make(sleep=time.sleep).generate(ASKED)
    assert time.monotonic() - started >= 0.4
    assert answer.seconds >= 0.4


def test_pauses_double_and_vary(endpoint: Endpoint, make: Make) -> None:
    pauses: list[float] = []
    endpoint.scripts = [fails(500), fails(502), fails(503, retry_after="soon"), HELLO]
    assert make(sleep=pauses.append).generate(ASKED).attempts == 4
    for number, pause in enumerate(pauses):
        assert FIRST_PAUSE * 2**number / 2 <= pause <= FIRST_PAUSE * 2**number


@pytest.mark.parametrize(
    ("script", "requests", "said"),
    [
        (fails(429, "slow down"), 4, "HTTP 429: .*slow down"),
        (fails(429, retry_after=str(LONGEST_PAUSE + 1)), 1, "asks to wait 61 s"),
        (fails(500, "on fire"), 4, "HTTP 500: .*on fire"),
        (says(b"<html>502 Bad Gateway</html>"), 4, "no completion: '<html>"),
        (says(b"\xff\xfe"), 4, "no completion"),
        (says(b'{"choices": []}'), 4, "no completion"),
        (says(b'{"choices": [{"message": "Hi"}]}'), 4, "no completion"),
        (says(b'{"choices": [{"message": null}]}'), 4, "no completion"),
        (says(b'{"error": {"message": "overloaded"}}'), 4, "no completion.*overloaded"),
        (says(b"[" * 100_000), 4, "no completion"),
        (says(b""), 4, "no completion"),
    ],
)
def test_failures_that_may_pass(
    endpoint: Endpoint, make: Make, script: Script, requests: int, said: str
) -> None:
    endpoint.scripts = [script]
    with pytest.raises(GenerationError, match=said) as caught:
        make(retries=3).generate(ASKED)
    assert caught.value.retryable
    assert caught.value.retry_after == (61.0 if "wait" in said else None)
    assert len(endpoint.requests) == caught.value.attempts == requests


def test_failures_that_stay(endpoint: Endpoint, make: Make) -> None:
    endpoint.scripts = [fails(404, "no such model chat-x, sk-secret-value")]
    with pytest.raises(GenerationError, match=r"HTTP 404: .*no such model") as caught:
        make(api_key="sk-secret-value").generate(ASKED)
    assert not caught.value.retryable
    assert "secret-value" not in str(caught.value)
    assert len(endpoint.requests) == 1
    endpoint.scripts = [fails(401, "Incorrect key: sk-secret-value")]
    with pytest.raises(ConfigurationError, match="COFIRE_GENERATOR_API_KEY") as refused:
        make(api_key="sk-secret-value").generate(ASKED)
    assert "secret-value" not in str(refused.value)


def test_a_time_out_is_per_attempt_and_per_request(endpoint: Endpoint, make: Make) -> None:
    release = threading.Event()

    def slow(body: dict[str, Any]) -> Answer:
        release.wait(10)
        return HELLO(body)

    endpoint.scripts = [slow, HELLO]
    generator = make(timeout=0.3, retries=1)
    assert generator.generate(ASKED).attempts == 2
    endpoint.scripts = [slow]
    with pytest.raises(GenerationError, match=r"did not answer \(tried 2 times, time-out 0\.2 s\)"):
        generator.generate(Generation(system="", user="x", timeout=0.2))
    release.set()
    endpoint.close()
    with pytest.raises(GenerationError, match=r"cannot be reached \(tried 1 time,") as caught:
        make(retries=0).generate(ASKED)
    assert caught.value.retryable


def test_a_schema_that_is_refused_is_said_in_words_from_then_on(
    endpoint: Endpoint, make: Make
) -> None:
    refused = {"json_schema": "'response_format.type' must be 'json_object'"}
    endpoint.scripts = [chats_without(refused, HELLO)]
    generator = make()
    assert generator.generate(ASKED).attempts == 2
    assert [request["response_format"]["type"] for request in endpoint.requests] == [
        "json_schema", "json_object",
    ]  # fmt: skip
    assert json.dumps(SCHEMA) in endpoint.requests[1]["messages"][0]["content"]
    assert generator.generate(ASKED).attempts == 1
    assert endpoint.requests[2]["response_format"] == {"type": "json_object"}

    endpoint.requests.clear()
    endpoint.scripts = [chats_without({"response_format": "Extra inputs are not permitted"}, HELLO)]
    bare = make()
    assert [bare.generate(ASKED).attempts for _ in range(2)] == [3, 1]
    assert "response_format" not in endpoint.requests[3]
    assert json.dumps(SCHEMA) in endpoint.requests[3]["messages"][0]["content"]


def test_a_refusal_of_something_else_changes_nothing(endpoint: Endpoint, make: Make) -> None:
    endpoint.scripts = [fails(400, "the first reason"), fails(400, "another"), HELLO, HELLO]
    generator = make()
    assert generator.generate(ASKED).text == "Hi"  # found out by trying, in words only
    endpoint.requests.clear()
    endpoint.scripts = [fails(400, "the first reason"), fails(400, "another")]
    with pytest.raises(GenerationError, match="the first reason"):
        make().generate(ASKED)
    assert len(endpoint.requests) == 3
    other = make()
    with pytest.raises(GenerationError):
        other.generate(ASKED)
    endpoint.scripts = [HELLO]
    other.generate(ASKED)
    assert endpoint.requests[-1]["response_format"]["type"] == "json_schema"  # nothing was learned


def test_newer_names_of_parameters(endpoint: Endpoint, make: Make) -> None:
    refused = {
        '"max_tokens"': "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        '"temperature"': "Unsupported value: 'temperature' does not support 0 with this model.",
    }
    endpoint.scripts = [chats_without(refused, HELLO)]
    generator = make()
    assert [generator.generate(ASKED).attempts for _ in range(2)] == [3, 1]
    last = endpoint.requests[-1]
    assert last["max_completion_tokens"] == 1024
    assert "temperature" not in last
    assert last["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your messages have 9000",
        "the request exceeds the available context size (2048 tokens), try increasing it",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
def test_a_prompt_that_is_too_long(endpoint: Endpoint, make: Make, message: str) -> None:
    endpoint.scripts = [fails(400, message)]
    with pytest.raises(PromptTooLongError, match="less text at once"):
        make().generate(ASKED)
    assert len(endpoint.requests) == 1


def test_what_names_the_schema_is_not_too_long(endpoint: Endpoint, make: Make) -> None:
    message = "Invalid schema for response_format 'x': In context=(), 'maxLength' is not permitted."
    endpoint.scripts = [chats_without({"json_schema": message}, HELLO)]
    assert make().generate(ASKED).text == "Hi"


def test_a_filter_of_the_prompt_is_an_answer(endpoint: Endpoint, make: Make) -> None:
    body = {"error": {"message": "The prompt was filtered.", "code": "content_filter"}}
    endpoint.scripts = [lambda request: (400, {}, json.dumps(body).encode())]
    answer = make().generate(ASKED)
    assert (answer.text, answer.finish) == ("", "filter")
    assert len(endpoint.requests) == 1


def test_many_threads_share_a_generator(endpoint: Endpoint, make: Make) -> None:
    endpoint.scripts = [chats_without({"json_schema": "no schemas"}, HELLO)]
    generator = make()
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(generator.generate(ASKED).text))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["Hi"] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_asks_by_itself(endpoint: Endpoint, make: Make) -> None:
    endpoint.scripts = [HELLO]
    generator = make()
    generator.generate(ASKED)
    child = os.fork()
    if not child:
        try:
            os._exit(0 if generator.generate(ASKED).text == "Hi" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert generator.generate(ASKED).text == "Hi"


def test_asking_over_the_wire(endpoint: Endpoint, make: Make) -> None:
    """From turns to drafts: a limit, a cut answer, a refused schema, prose and then JSON."""
    endpoint.scripts = [
        fails(400, "unknown field response_format"),
        fails(429, retry_after="0"),
        completes(GOOD[:40], "length"),
        completes("<think>Which turn?</think>\n```json\n" + GOOD + "\n```"),
        completes("I found nothing."),
        completes('{"records": []}'),
    ]
    result = ask(make(), load("distil"), TURNS, Budget(calls=10, tokens=50_000))
    assert [draft.content for draft in result.drafts] == ["Robin owns a canoe."]
    assert (result.calls, result.failures) == (4, {"cut": 1, "prose": 1})
    assert (result.unanswered, result.stopped) == ((), None)
    endpoint.scripts = [fails(503, "down")]
    result = ask(make(retries=1), load("distil"), TURNS, Budget())
    assert result.stopped == "error"
    assert result.error is not None
    assert result.error.retryable
    assert result.unanswered == ("T1", "T2")

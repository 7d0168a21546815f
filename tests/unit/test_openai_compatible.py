"""The OpenAI-compatible embedder against a real server on 127.0.0.1."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cofire.errors import ConfigurationError, EmbeddingError, EmbeddingMismatchError
from cofire.models.openai_compatible import LONGEST_PAUSE, PAUSE, OpenAICompatible
from endpoint import Answer, Endpoint, Script, direction, fails, gives, listed, says, vectors
from endpoint import endpoint as endpoint  # noqa: PLC0414 - a fixture


@pytest.fixture
def make(endpoint: Endpoint) -> Iterator[Callable[..., OpenAICompatible]]:
    made: list[OpenAICompatible] = []

    def build(**options: Any) -> OpenAICompatible:
        values: dict[str, Any] = {"base_url": endpoint.url, "dimension": 3, "timeout": 5.0}
        made.append(OpenAICompatible("embed-x", **{**values, **options}))
        return made[-1]

    yield build
    for embedder in made:
        embedder.close()


Make = Callable[..., OpenAICompatible]


def unit(text: str) -> list[float]:
    vector = direction(text)
    norm = sum(value * value for value in vector) ** 0.5
    return [value / norm for value in vector]


def test_vectors_come_back_in_order_in_batches(endpoint: Endpoint, make: Make) -> None:
    embedder = make(batch=2, api_key="sk-test", passage_prefix="p: ", query_prefix="q: ")
    texts = ["alpha", "be", "", "gamma ray", "   ", "d"]
    embedded = embedder.embed_passages(texts)
    assert embedded.ok.tolist() == [True, True, False, True, False, True]
    for row in np.flatnonzero(embedded.ok):
        np.testing.assert_allclose(embedded.vectors[row], unit(f"p: {texts[row]}"), atol=1e-6)
    assert [request["input"] for request in endpoint.requests] == [
        ["p: alpha", "p: be"],
        ["p: gamma ray", "p: d"],
    ]
    assert endpoint.requests[0]["path"] == "/v1/embeddings"
    assert endpoint.requests[0]["model"] == "embed-x"
    assert "dimensions" not in endpoint.requests[0]
    assert endpoint.keys[0] == "Bearer sk-test"
    vector, ok = embedder.embed_query("beta")
    assert ok
    np.testing.assert_allclose(vector, unit("q: beta"), atol=1e-6)


def test_dimension_is_learned_or_known(endpoint: Endpoint, make: Make) -> None:
    embedder = make(dimension=None)
    assert embedder.name == "openai:embed-x:3"
    assert len(endpoint.requests) == 1
    assert make(passage_prefix="p: ").name.startswith("openai:embed-x:3+")
    assert make(query_prefix="q: ").name == "openai:embed-x:3"
    small = OpenAICompatible("text-embedding-3-small", base_url=endpoint.url)
    assert small.dimension == 1536
    assert len(endpoint.requests) == 1


def test_shorter_vectors_are_asked_of_models_that_can(endpoint: Endpoint) -> None:
    embedder = OpenAICompatible("text-embedding-3-small", base_url=endpoint.url, dimension=3)
    embedder.embed_query("x")
    embedder.close()
    assert endpoint.requests[0]["dimensions"] == 3


def test_base64(endpoint: Endpoint, make: Make) -> None:
    raw = base64.b64encode(np.array([3, 4, 0], dtype="<f4").tobytes()).decode()
    endpoint.scripts = [gives(raw)]
    vector, ok = make(encoding="base64").embed_query("x")
    assert ok
    np.testing.assert_allclose(vector, [0.6, 0.8, 0.0], atol=1e-6)
    assert endpoint.requests[0]["encoding_format"] == "base64"


@pytest.mark.parametrize(
    ("first", "pause"),
    [
        (fails(429), PAUSE),
        (fails(429, retry_after="2"), 2.0),
        (fails(429, retry_after="2", retry_after_ms="250"), 0.25),
        (fails(503, retry_after="-4"), PAUSE),
        (fails(503, retry_after="soon"), PAUSE),
        (fails(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), 0.0),
        (fails(500), PAUSE),
        (fails(502), PAUSE),
    ],
)
def test_passing_failures_are_tried_once_more(
    endpoint: Endpoint, make: Make, first: Script, pause: float
) -> None:
    pauses: list[float] = []
    endpoint.scripts = [first, vectors]
    _, ok = make(sleep=pauses.append).embed_query("x")
    assert ok
    assert len(endpoint.requests) == 2
    assert pauses == [pytest.approx(pause)]


@pytest.mark.parametrize(
    ("script", "requests", "said"),
    [
        (fails(429), 2, "HTTP 429"),
        (fails(500, "on fire"), 2, "HTTP 500: .*on fire"),
        (fails(429, retry_after=str(LONGEST_PAUSE + 1)), 1, "asks to wait 11 s"),
        (fails(404, "no such model"), 1, "no such model"),
        (fails(400, "input is not text"), 1, "input is not text"),
        (says(b"<html>not json</html>"), 1, "no embedding: '<html>"),
        (says(b"\xff\xfe"), 1, "no embedding"),
        (says(b"[]"), 1, "no embedding"),
        (says(b'{"data": {"0": 1}}'), 1, "no list of embeddings"),
        (says(b'{"data": [1, 2]}'), 1, "no list of embeddings"),
        (says(b"[" * 100_000), 1, "no embedding"),
        (gives([1, 2, 3]), 1, "gives 1 vectors for 2 texts"),
        (gives([1, 2, 3], [1, 2, 3], [1, 2, 3]), 1, "gives 3 vectors for 2 texts"),
        (gives([1, 2], [3, 4]), 1, "length 2, expected 3; set COFIRE_EMBEDDING_DIMENSION"),
        (lambda body: listed([{"index": 0, "embedding": [1, 2, 3]}] * 2), 1, "numbers its 2"),
        (lambda body: listed([{"index": 5, "embedding": [1, 2, 3]}] * 2), 1, "numbers its 2"),
    ],
)
def test_lasting_failures_are_embedding_errors(
    endpoint: Endpoint, make: Make, script: Script, requests: int, said: str
) -> None:
    endpoint.scripts = [script]
    with pytest.raises(EmbeddingError, match=said):
        make(sleep=lambda seconds: None).embed_passages(["x", "y"])
    assert len(endpoint.requests) == requests


def test_refused_key_is_a_configuration_error(endpoint: Endpoint, make: Make) -> None:
    endpoint.scripts = [fails(401, "Incorrect key: sk-secret-value")]
    with pytest.raises(ConfigurationError, match="COFIRE_EMBEDDING_API_KEY") as caught:
        make(api_key="sk-secret-value").embed_query("x")
    assert "secret-value" not in str(caught.value)
    endpoint.scripts = [fails(404, "no model for sk-secret-value")]
    with pytest.raises(EmbeddingError) as echoed:
        make(api_key="sk-secret-value").embed_query("x")
    assert "secret-value" not in str(echoed.value)


def test_time_out(endpoint: Endpoint, make: Make) -> None:
    release = threading.Event()

    def slow(body: dict[str, Any]) -> Answer:
        release.wait(10)
        return vectors(body)

    endpoint.scripts = [slow, vectors]
    embedder = make(timeout=0.3, sleep=lambda seconds: None)
    started = time.monotonic()
    _, ok = embedder.embed_query("x")
    assert ok
    assert time.monotonic() - started < 5
    endpoint.scripts = [slow]
    with pytest.raises(EmbeddingError, match=r"did not answer \(tried 2 times, time-out 0\.3 s\)"):
        embedder.embed_query("x")
    release.set()


def test_nobody_listens(endpoint: Endpoint, make: Make) -> None:
    endpoint.close()
    with pytest.raises(EmbeddingError, match="cannot be reached"):
        make(sleep=lambda seconds: None).embed_query("x")


def test_bad_vectors_are_flagged(endpoint: Endpoint, make: Make) -> None:
    bad: list[object] = [
        [0, 0, 0],
        ["NaN", 0, 1],
        [float("inf"), 0, 0],
        [float("nan"), 1, 1],
        [1, 2],
        [[1], [2], [3]],
        {"a": 1},
        None,
        "@@@",
        ["x", 0, 0],
    ]
    endpoint.scripts = [gives([3, 4, 0], *bad)]
    embedded = make().embed_passages(["good", *("bad" for _ in bad)])
    assert embedded.ok.tolist() == [True] + [False] * len(bad)
    assert not embedded.vectors[1:].any()
    endpoint.scripts = [gives(None)]
    assert not make().embed_query("bad")[1]


def test_too_long_a_batch_is_halved_then_its_texts(endpoint: Endpoint, make: Make) -> None:
    def at_most(characters: int) -> Script:
        def script(body: dict[str, Any]) -> Answer:
            if sum(len(text) for text in body["input"]) > characters:
                return fails(400, "This model's maximum context length is exceeded")(body)
            return vectors(body)

        return script

    endpoint.scripts = [at_most(10)]
    embedded = make().embed_passages(["aaaa", "bbbb", "cccc", "dddd" * 5])
    assert embedded.ok.all()
    np.testing.assert_allclose(embedded.vectors[3], unit("dddd" * 2 + "dd"), atol=1e-6)
    endpoint.requests.clear()
    endpoint.scripts = [fails(413)]
    with pytest.raises(EmbeddingError, match="too long"):
        make().embed_query("x" * 1000)
    assert len(endpoint.requests) == 6


def test_long_texts_are_cut_before_they_are_sent(endpoint: Endpoint, make: Make) -> None:
    embedder = make(max_tokens=5)
    embedder.embed_query("one two three four five six seven eight")
    embedder.embed_query("cut \ud83d emoji")
    assert endpoint.requests[0]["input"] == ["one two three four five"]
    assert endpoint.requests[1]["input"] == ["cut \ufffd emoji"]
    assert embedder.count_tokens("one two") == len(embedder.token_offsets("one two")) == 2


def test_the_dimension_of_its_own_vectors_is_taken_from_the_store(
    make: Callable[..., OpenAICompatible], endpoint: Endpoint
) -> None:
    known = make(dimension=None, stored=("openai:embed-x:3", 3))
    assert (known.name, known.dimension) == ("openai:embed-x:3", 3)
    assert endpoint.requests == []
    assert known.embed_query("kiln")[1]
    marked = make(dimension=None, passage_prefix="p: ").name
    assert make(dimension=None, passage_prefix="p: ", stored=(marked, 3)).name == marked
    for foreign in (("openai:embed-y:5", 5), ("minilm@1", 5), (marked, 3)):
        assert make(dimension=None, stored=foreign).dimension == 3  # asked


def test_another_model_under_the_stored_name_is_told_apart(
    make: Callable[..., OpenAICompatible],
) -> None:
    other = make(dimension=None, stored=("openai:embed-x:5", 5))
    for _ in range(2):
        with pytest.raises(EmbeddingMismatchError, match=r"length 3, .* have 5.*Run `cofire reemb"):
            other.embed_passages(["kiln"])

"""The cache of vectors: bounded, shared, and emptied by deletion."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cofire.errors import EmbeddingError
from cofire.models.caching import ENTRY_OVERHEAD, CachingEmbedder
from cofire.models.embedder import Embedded, Vector
from cofire.models.hashing import HashingEmbedder

ENTRY = 16 * 4 + ENTRY_OVERHEAD


class Counting:
    """Counts what it is asked; can be held or made to fail."""

    name = "counting"
    dimension = 16
    max_tokens = 512

    def __init__(self) -> None:
        self.hashing = HashingEmbedder(16)
        self.queries: list[str] = []
        self.passages: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = threading.Event()
        self.failing = False

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        self.queries.append(text)
        self.asked.set()
        assert self.may_answer.wait(10)
        if self.failing:
            raise EmbeddingError("no answer")
        return self.hashing.embed_query(text)

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        self.passages.extend(texts)
        return self.hashing.embed_passages(texts)

    def count_tokens(self, text: str, /) -> int:
        return self.hashing.count_tokens(text)

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return self.hashing.token_offsets(text)

    def close(self) -> None:
        """Nothing to let go of."""


def test_queries_and_passages_are_kept_apart() -> None:
    inner = Counting()
    cache = CachingEmbedder(inner, max_bytes=1_000_000)
    first, ok = cache.embed_query("kiln")
    again, _ = cache.embed_query("kiln")
    assert ok
    assert np.array_equal(first, again)
    assert inner.queries == ["kiln"]
    rows = cache.embed_passages(["clay", "glaze", "clay", "   "])
    cache.embed_passages(["glaze", "clay"])
    assert rows.ok.tolist() == [True, True, True, False]
    assert inner.passages == ["clay", "glaze", "   "]
    cache.embed_passages(["   "])
    assert inner.passages[3:] == ["   "], "an unusable vector is not kept"


def test_what_it_gives_cannot_be_changed() -> None:
    cache = CachingEmbedder(Counting(), max_bytes=1_000_000)
    vector, _ = cache.embed_query("kiln")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 9.0
    rows = cache.embed_passages(["clay"])
    rows.vectors[0, 0] = 9.0
    assert cache.embed_passages(["clay"]).vectors[0, 0] != 9.0


def test_size_is_bounded_and_the_oldest_goes_first() -> None:
    inner = Counting()
    cache = CachingEmbedder(inner, max_bytes=2 * 3 * ENTRY)
    for text in ("a", "b", "c"):
        cache.embed_query(text)
    cache.embed_query("a")
    cache.embed_query("d")
    assert cache.cached_bytes == 3 * ENTRY
    inner.queries.clear()
    for text in ("a", "c", "d", "b"):
        cache.embed_query(text)
    assert inner.queries == ["b"]


def test_no_bytes_means_no_cache() -> None:
    inner = Counting()
    cache = CachingEmbedder(inner, max_bytes=0)
    cache.embed_query("a")
    cache.embed_query("a")
    assert inner.queries == ["a", "a"]
    assert cache.cached_bytes == 0


def test_forget_and_clear() -> None:
    inner = Counting()
    cache = CachingEmbedder(inner, max_bytes=1_000_000)
    cache.embed_query("secret")
    cache.embed_query("other")
    cache.embed_passages(["secret"])
    cache.forget(["secret", "unknown", "\ud83d"])
    assert cache.cached_bytes == ENTRY
    cache.clear()
    assert cache.cached_bytes == 0


def test_forget_covers_what_is_being_computed() -> None:
    inner = Counting()
    cache = CachingEmbedder(inner, max_bytes=1_000_000)
    inner.may_answer.clear()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(cache.embed_query, "secret")
        assert inner.asked.wait(10)
        cache.forget(["secret"])
        inner.may_answer.set()
        assert asked.result()[1]
    assert cache.cached_bytes == 0


def test_equal_questions_at_once_are_computed_once() -> None:
    inner = Counting()
    cache = CachingEmbedder(inner, max_bytes=1_000_000)
    inner.may_answer.clear()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(cache.embed_query, "kiln") for _ in range(8)]
        assert inner.asked.wait(10)
        inner.may_answer.set()
        vectors = [future.result()[0] for future in asked]
    assert inner.queries == ["kiln"]
    assert all(np.array_equal(vector, vectors[0]) for vector in vectors)


def test_failure_reaches_everybody_who_waits_and_is_not_kept() -> None:
    inner = Counting()
    inner.failing = True
    inner.may_answer.clear()
    cache = CachingEmbedder(inner, max_bytes=1_000_000)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(cache.embed_query, "kiln") for _ in range(4)]
        assert inner.asked.wait(10)
        inner.may_answer.set()
        errors = [future.exception() for future in asked]
    assert all(isinstance(error, EmbeddingError) for error in errors)
    inner.failing = False
    assert cache.embed_query("kiln")[1]


def test_prefix_and_model_are_part_of_the_key() -> None:
    inner = Counting()
    plain = CachingEmbedder(inner, max_bytes=1_000_000)
    prefixed = CachingEmbedder(inner, max_bytes=1_000_000, query_prefix="query: ")
    assert plain._key("query", "x") != prefixed._key("query", "x")
    assert plain._key("passage", "x") == prefixed._key("passage", "x")
    assert plain._key("query", "x") != plain._key("passage", "x")
    assert plain._key("query", "x")[0] == inner.name
    assert (plain.dimension, plain.max_tokens) == (16, inner.max_tokens)
    assert plain.count_tokens("a b") == len(plain.token_offsets("a b")) == 2

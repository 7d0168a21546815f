"""Embedders that misbehave on purpose, behind the same seam as the real ones.

They count a token per word, and derive a text's vector from its words, so that equal texts are
equal and texts that share words are similar.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cofire.errors import CofireError, EmbeddingError
from cofire.models.embedder import Embedded, Vector, normalised

_WORD = re.compile(r"\w+|[^\w\s]")


class StubEmbedder:
    """Vectors from a map, else from the words; `calls` are the texts it was given."""

    max_tokens = 512

    def __init__(
        self,
        vectors: Mapping[str, Sequence[float]] | None = None,
        *,
        dimension: int = 8,
        name: str = "stub",
        reverse: bool = False,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.calls: list[str] = []
        self.closed = 0
        self._vectors = dict(vectors or {})
        self._reverse = reverse

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        self.calls += texts
        return normalised(self.raw(texts))

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        embedded = self.embed_passages([text])
        return embedded.vectors[0], bool(embedded.ok[0])

    def raw(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """What the model itself says, before anything is checked."""
        rows = np.zeros((len(texts), self.dimension))
        for row, text in enumerate(texts):
            rows[row] = self._vectors[text] if text in self._vectors else self._hashed(text)
        return rows[:, ::-1] if self._reverse else rows

    def _hashed(self, text: str) -> NDArray[np.float64]:
        vector = np.full(self.dimension, 0.01)
        for word in _WORD.findall(text.casefold()):
            digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
            vector[int.from_bytes(digest, "little") % self.dimension] += 1.0
        return vector

    def count_tokens(self, text: str, /) -> int:
        return sum(1 for _ in _WORD.finditer(text))

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(text)]

    def close(self) -> None:
        self.closed += 1


class FailingEmbedder(StubEmbedder):
    """Raises `error` while `failing`."""

    failing = True
    error: CofireError = EmbeddingError("the endpoint is down")

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        if self.failing:
            raise self.error
        return super().embed_passages(texts)


class StoppingEmbedder(StubEmbedder):
    """Raises EmbeddingError after `budget` texts."""

    budget = 1_000_000

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        if len(texts) > self.budget:
            raise EmbeddingError("the quota is used up")
        self.budget -= len(texts)
        return super().embed_passages(texts)


class SlowEmbedder(StubEmbedder):
    """Blocks its thread for `delay` seconds a call; `running` is how many do so now."""

    delay = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            time.sleep(self.delay)
            return super().embed_passages(texts)
        finally:
            with self._lock:
                self.running -= 1


class LyingEmbedder(StubEmbedder):
    """Breaks the protocol: calls whatever it has usable, and may have another length."""

    def __init__(
        self, vectors: Mapping[str, Sequence[float]], *, dimension: int = 3, width: int = 3
    ) -> None:
        super().__init__(vectors, dimension=dimension, name="lying")
        self._width = width

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        rows = self.raw(texts)[:, : self._width].astype(np.float32)
        return Embedded(vectors=rows, ok=np.ones(len(texts), np.bool_))

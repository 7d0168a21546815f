"""A deterministic embedder for tests: hashed words and character n-grams, nothing to load."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cofire.models.embedder import Embedded, Vector, normalised

MAX_TOKENS = 512
NGRAM = 3
NGRAM_WEIGHT = 0.4
"""Share of an n-gram beside a whole word: related forms are near, equal words nearer."""

# One ideograph or kana; up to 12 letters or digits of any script; or one other visible character.
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|\w{1,12}|[^\w\s]")


class HashingEmbedder:
    """Vectors of length `dimension` (≥ 1) from signed feature hashing (Weinberger et al., 2009).

    Texts that share words or parts of words are similar; equal texts are equal on every machine.
    """

    max_tokens = MAX_TOKENS

    def __init__(self, dimension: int) -> None:
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1, not {dimension}")
        self.dimension = dimension
        self.name = f"hashing-v1:{dimension}"

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float64)
        for row, text in enumerate(texts):
            vectors[row] = self._vector(text)
        return normalised(vectors)

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        embedded = self.embed_passages([text])
        return embedded.vectors[0], bool(embedded.ok[0])

    def count_tokens(self, text: str, /) -> int:
        return sum(1 for _ in _TOKEN.finditer(text))

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return [match.span() for match in _TOKEN.finditer(text)]

    def close(self) -> None:
        """Nothing to let go of."""

    def _vector(self, text: str) -> NDArray[np.float64]:
        weights = _features(text)
        vector = np.zeros(self.dimension, dtype=np.float64)
        if not weights:
            return vector
        hashes = np.array([_hash(feature) for feature in weights], dtype=np.uint64)
        slots = (hashes >> np.uint64(1)) % np.uint64(self.dimension)
        signs = np.where(hashes & np.uint64(1), 1.0, -1.0)
        values = np.sqrt(np.array(list(weights.values()), dtype=np.float64))
        np.add.at(vector, slots.astype(np.intp), signs * values)
        if not vector.any():
            # Features of opposite sign met in every slot (likely only in tiny dimensions).
            np.add.at(vector, slots.astype(np.intp), values)
        return vector


def _features(text: str) -> dict[str, float]:
    """Weight of every word and character n-gram of the first `MAX_TOKENS` tokens."""
    spans = []
    for match in _TOKEN.finditer(text):
        spans.append(match.group())
        if len(spans) == MAX_TOKENS:
            break
    weights: Counter[str] = Counter()
    words: dict[str, float] = {}
    weights.update(unicodedata.normalize("NFKC", token).casefold() for token in spans)
    for word, count in weights.items():
        words[f"w{word}"] = words.get(f"w{word}", 0.0) + count
        framed = f"<{word}>"
        for at in range(len(framed) - NGRAM + 1):
            gram = f"g{framed[at : at + NGRAM]}"
            words[gram] = words.get(gram, 0.0) + NGRAM_WEIGHT**2 * count
    return words


@lru_cache(maxsize=65_536)
def _hash(feature: str) -> int:
    raw = feature.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")

"""The seam for embedding: what every embedder offers, and what counts as a usable vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]

SMALLEST_NORM = 1e-12
"""A vector shorter than this has no direction and counts as zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Vectors of some passages: `vectors` float32 (n, dimension), L2-normalised; `ok` bool (n,).

    Where `ok` is False the embedder gave nothing usable (zero, NaN, infinite, wrong length, or
    a text without a single wordpiece) and the row is all zeros: not to be stored or compared.
    """

    vectors: NDArray[np.float32]
    ok: NDArray[np.bool_]


class Embedder(Protocol):
    """Turns texts into vectors. Implementations may be called from several threads at once."""

    @property
    def name(self) -> str:
        """The identity of the vectors, version or hash included: two embedders with equal names
        give equal passage vectors, and vectors of different names must never be compared."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    @property
    def max_tokens(self) -> int:
        """Texts are cut after this many tokens, special tokens included."""

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        """Vectors of texts to remember, in their order. A vector does not depend on what else
        is in the batch. Raises EmbeddingError or ConfigurationError."""

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        """The vector of a question, float32 (dimension,), and whether it is usable.
        Raises EmbeddingError or ConfigurationError."""

    def count_tokens(self, text: str, /) -> int:
        """Number of tokens of a text of any length, without special tokens and uncut."""

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        """Where each of those tokens starts and ends, in characters of `text`."""

    def close(self) -> None:
        """Let go of sessions and connections; the embedder may be used again afterwards."""


def normalised(vectors: NDArray[np.floating]) -> Embedded:
    """L2-normalise rows (n, dimension); rows that are zero or not finite become `ok` = False.

    Norms are taken in float64: a float32 component of 1e30 is finite, but its square is not.
    """
    wide = np.asarray(vectors, dtype=np.float64)
    finite = np.logical_and.reduce(np.isfinite(wide), axis=1)
    wide = np.where(finite[:, None], wide, 0.0)
    largest = np.max(np.abs(wide), axis=1, initial=0.0)
    safe = np.where(largest > 0.0, largest, 1.0)
    norms = safe * np.linalg.norm(wide / safe[:, None], axis=1)
    ok = np.logical_and(finite, norms >= SMALLEST_NORM)
    scale = np.where(ok, norms, 1.0)
    rows = np.where(ok[:, None], wide / scale[:, None], 0.0).astype(np.float32)
    return Embedded(vectors=rows, ok=ok)

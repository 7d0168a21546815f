"""An embedder of somebody else's, held to what the seam promises.

A caller may pass any object as embedder. What it raises and what it returns are checked here, once,
so that nothing behind the seam ever meets a vector of the wrong length, NaN, or an exception that
is not Cofire's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from cofire.errors import CofireError, EmbeddingError
from cofire.models.embedder import Embedded, Embedder, Vector, normalised

R = TypeVar("R")


class VerifiedEmbedder:
    """`inner`, its vectors checked and normalised, its exceptions made EmbeddingError."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    @property
    def inner(self) -> Embedder:
        """The embedder that does the work."""
        return self._inner

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    @property
    def max_tokens(self) -> int:
        return self._inner.max_tokens

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        given = self._asked(lambda: self._inner.embed_passages(texts))
        return self._verified(given.vectors, given.ok, len(texts))

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        vector, ok = self._asked(lambda: self._inner.embed_query(text))
        checked = self._verified(np.asarray(vector)[None], np.array([ok]), 1)
        return checked.vectors[0], bool(checked.ok[0])

    def count_tokens(self, text: str, /) -> int:
        return self._inner.count_tokens(text)

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return self._inner.token_offsets(text)

    def clear(self) -> None:
        """Empty the inner embedder's cache, if it has one."""
        clear = getattr(self._inner, "clear", None)
        if clear is not None:
            clear()

    def close(self) -> None:
        self._inner.close()

    def _asked(self, call: Callable[[], R]) -> R:
        try:
            return call()
        except CofireError:
            raise
        except Exception as exc:  # foreign code: anything may come out of it
            raise EmbeddingError(f"the embedder {self.name} failed: {exc!r}") from exc

    def _verified(self, vectors: Any, ok: Any, count: int) -> Embedded:
        rows = np.asarray(vectors)
        if rows.shape != (count, self.dimension):
            raise EmbeddingError(
                f"the embedder {self.name} gave vectors of shape {rows.shape} for {count} texts; "
                f"({count}, {self.dimension}) was due"
            )
        checked = normalised(rows)
        usable = checked.ok & np.asarray(ok, np.bool_)
        return Embedded(vectors=np.where(usable[:, None], checked.vectors, 0.0), ok=usable)

"""A bounded cache of vectors in front of any embedder."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Literal

import numpy as np

from cofire.errors import CofireError, EmbeddingError
from cofire.models.embedder import Embedded, Embedder, Vector
from cofire.models.forking import renew_after_fork

ENTRY_OVERHEAD = 400
"""Bytes an entry costs beside its vector: key, array header, the dictionary's node."""

_KeyKind = Literal["query", "passage"]
_Key = tuple[str, _KeyKind, str, bytes]


class CachingEmbedder:
    """Remembers usable vectors of questions and passages, least recently used go first.

    `max_bytes` bounds both together (half each, so that an import cannot push out the
    questions); 0 caches nothing. Only a hash of a text is kept, never the text. Equal questions
    asked at the same time are computed once. The prefixes are those the inner embedder puts
    before questions and passages.
    """

    def __init__(
        self,
        inner: Embedder,
        *,
        max_bytes: int,
        query_prefix: str = "",
        passage_prefix: str = "",
    ) -> None:
        self._inner = inner
        self._prefix: dict[_KeyKind, str] = {"query": query_prefix, "passage": passage_prefix}
        self._kept: dict[_KeyKind, _Bounded] = {
            "query": _Bounded(max_bytes // 2),
            "passage": _Bounded(max_bytes // 2),
        }
        self._asked: dict[_Key, Future[tuple[Vector, bool]]] = {}
        self._generation = 0
        self._lock = threading.Lock()
        renew_after_fork(self)

    @property
    def inner(self) -> Embedder:
        """The embedder that is asked for what is not in the cache."""
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

    @property
    def cached_bytes(self) -> int:
        """Bytes held now."""
        with self._lock:
            return sum(kept.bytes for kept in self._kept.values())

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        key = self._key("query", text)
        with self._lock:
            vector = self._kept["query"].get(key)
            if vector is not None:
                return vector, True
            asked = self._asked.get(key)
            mine: Future[tuple[Vector, bool]] = Future()
            generation = self._generation
            if asked is None:
                self._asked[key] = mine
        if asked is not None:
            return asked.result()
        try:
            vector, ok = self._inner.embed_query(text)
            vector = _frozen(vector)
        except BaseException as exc:
            with self._lock:
                self._asked.pop(key, None)
            # An interrupt is meant for this thread only; the others wait for a vector.
            ours = isinstance(exc, CofireError)
            mine.set_exception(exc if ours else EmbeddingError(f"The embedder failed: {exc!r}"))
            raise
        with self._lock:
            self._asked.pop(key, None)
            if ok and generation == self._generation:
                self._kept["query"].put(key, vector)
        mine.set_result((vector, ok))
        return vector, ok

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        keys = [self._key("passage", text) for text in texts]
        kept = self._kept["passage"]
        known: dict[_Key, Vector] = {}
        missing: dict[_Key, str] = {}
        with self._lock:
            generation = self._generation
            for key, text in zip(keys, texts, strict=True):
                vector = kept.get(key)
                if vector is None:
                    missing[key] = text
                else:
                    known[key] = vector
        if missing:
            fresh = self._inner.embed_passages(list(missing.values()))
            rows = zip(missing, fresh.vectors, fresh.ok, strict=True)
            usable = {key: _frozen(vector) for key, vector, ok in rows if ok}
            known.update(usable)
            with self._lock:
                if generation == self._generation:
                    for key, vector in usable.items():
                        kept.put(key, vector)
        vectors = np.zeros((len(texts), self._inner.dimension), dtype=np.float32)
        ok = np.zeros(len(texts), dtype=np.bool_)
        for row, key in enumerate(keys):
            if key in known:
                vectors[row] = known[key]
                ok[row] = True
        return Embedded(vectors=vectors, ok=ok)

    def count_tokens(self, text: str, /) -> int:
        return self._inner.count_tokens(text)

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return self._inner.token_offsets(text)

    def forget(self, texts: Sequence[str], /) -> None:
        """Drop the vectors of these texts, as questions and as passages; what is being computed
        at this moment is not kept either."""
        with self._lock:
            self._generation += 1
            for kind, kept in self._kept.items():
                for text in texts:
                    kept.drop(self._key(kind, text))

    def clear(self) -> None:
        """Drop everything, and what the embedder itself keeps of texts; what is being computed at
        this moment is not kept either."""
        with self._lock:
            self._generation += 1
            for kept in self._kept.values():
                kept.clear()
        clear = getattr(self._inner, "clear", None)
        if clear is not None:
            clear()

    def close(self) -> None:
        self.clear()
        self._inner.close()

    def renew_after_fork(self) -> None:
        # What other threads of the parent were computing will never arrive in this process.
        self._lock = threading.Lock()
        self._asked = {}

    def _key(self, kind: _KeyKind, text: str) -> _Key:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return (self._inner.name, kind, self._prefix[kind], digest)


class _Bounded:
    """A least-recently-used map of vectors whose sizes stay within `max_bytes` together."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[_Key, Vector] = OrderedDict()
        self.bytes = 0

    def get(self, key: _Key) -> Vector | None:
        vector = self._entries.get(key)
        if vector is not None:
            self._entries.move_to_end(key)
        return vector

    def put(self, key: _Key, vector: Vector) -> None:
        self.drop(key)
        self._entries[key] = vector
        self.bytes += vector.nbytes + ENTRY_OVERHEAD
        while self.bytes > self._max_bytes and self._entries:
            self.drop(next(iter(self._entries)))

    def drop(self, key: _Key) -> None:
        vector = self._entries.pop(key, None)
        if vector is not None:
            self.bytes -= vector.nbytes + ENTRY_OVERHEAD

    def clear(self) -> None:
        self._entries.clear()
        self.bytes = 0


def _frozen(vector: Vector) -> Vector:
    """A copy that owns its memory (a view would keep its whole batch alive), not writable."""
    copy = np.array(vector, dtype=np.float32)
    copy.setflags(write=False)
    return copy

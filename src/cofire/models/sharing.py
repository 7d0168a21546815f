"""One embedder for all its users in a process.

A loaded model takes some 95 MB and a thread, so a server with a memory for each of its users must
not load it for each. Whoever opens the same embedder holds the same one, its cache of vectors
included; it is closed when the last holder closes.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence

from cofire.models.embedder import Embedded, Embedder, Vector
from cofire.models.forking import renew_after_fork


class SharedEmbedder:
    """One holder's share of the embedder that is known as `key` in this process. `make` makes it
    for the first holder.

    Closing gives the share back; using it afterwards takes another. A share that is dropped
    without being closed counts no longer.
    """

    def __init__(self, key: Hashable, make: Callable[[], Embedder]) -> None:
        self._key = key
        self._make = make
        self._held: _Held | None = None
        _pool.take(self)

    @property
    def inner(self) -> Embedder:
        """The embedder that is shared."""
        held = self._held
        return held.embedder if held is not None else _pool.take(self)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def max_tokens(self) -> int:
        return self.inner.max_tokens

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        return self.inner.embed_passages(texts)

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        return self.inner.embed_query(text)

    def count_tokens(self, text: str, /) -> int:
        return self.inner.count_tokens(text)

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return self.inner.token_offsets(text)

    def clear(self) -> None:
        """Empty its cache for every holder: nobody may find in it what one of them forgot."""
        clear = getattr(self.inner, "clear", None)
        if clear is not None:
            clear()

    def close(self) -> None:
        _pool.give_back(self)


class _Held:
    """An embedder and its holders."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.holders: weakref.WeakSet[SharedEmbedder] = weakref.WeakSet()


class _Pool:
    """What this process holds. Weak: what nobody holds any more is gone even if nobody closed."""

    def __init__(self) -> None:
        self._by_key: weakref.WeakValueDictionary[Hashable, _Held] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()  # to make one embedder may take a share of another
        renew_after_fork(self)

    def renew_after_fork(self) -> None:
        self._lock = threading.RLock()

    def take(self, share: SharedEmbedder) -> Embedder:
        with self._lock:
            held = share._held or self._by_key.get(share._key)
            if held is None:
                held = self._by_key[share._key] = _Held(share._make())
            held.holders.add(share)
            share._held = held
            return held.embedder

    def give_back(self, share: SharedEmbedder) -> None:
        with self._lock:
            held, share._held = share._held, None
            if held is None:
                return
            held.holders.discard(share)
            if held.holders:
                return
            if self._by_key.get(share._key) is held:
                del self._by_key[share._key]
        held.embedder.close()


_pool = _Pool()

"""An embedding model that is loaded in the background while the server already answers.

Clients of MCP give a server up that has not answered `initialize` within some seconds, and loading
a model may take longer. Until it is there, embedding fails at once with an EmbeddingError, which
the library knows what to do about: what is remembered is stored and found by its words, a recall
goes by words. Afterwards `Memory.embed_missing` gives the vectors that are missing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal

from cofire.errors import CofireError, ConfigurationError, EmbeddingError
from cofire.logs import get_logger
from cofire.models import Embedded, Embedder, Vector
from cofire.models.verifying import VerifiedEmbedder
from cofire.server.mcp.notes import LOADING

log = get_logger(__name__)

WARM = "warm"
"""What is embedded to load it."""

State = Literal["loading", "ready", "failed"]


class WarmingEmbedder:
    """`inner`, from the moment on when `warm` has loaded it. Wordpieces are counted before, too:
    that needs no model."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = VerifiedEmbedder(inner)
        self._settled = threading.Event()
        self.failure: str | None = None

    @property
    def state(self) -> State:
        """Whether it can be used. A model that failed is tried again by every call."""
        if not self._settled.is_set():
            return "loading"
        return "ready" if self.failure is None else "failed"

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
        self._require()
        return self._inner.embed_passages(texts)

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        self._require()
        return self._inner.embed_query(text)

    def count_tokens(self, text: str, /) -> int:
        return self._inner.count_tokens(text)

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return self._inner.token_offsets(text)

    def clear(self) -> None:
        """Empty the inner embedder's cache, if it has one."""
        self._inner.clear()

    def close(self) -> None:
        self._inner.close()

    def warm(self) -> None:
        """Load the model, which may take long. One that cannot be loaded is logged, once."""
        try:
            self._inner.embed_passages([WARM])
        except (EmbeddingError, ConfigurationError) as error:
            self.failure = str(error)
            log.warning(
                "the embedding model cannot be used; memories are stored and found by their words "
                "until it can",
                reason=self.failure,
            )
        finally:
            self._settled.set()

    def _require(self) -> None:
        if not self._settled.is_set():
            raise EmbeddingError(LOADING)


def warm_in_background(embedder: WarmingEmbedder, then: Callable[[], object]) -> threading.Thread:
    """Load the model on a thread that holds no process up, and then call `then` (which gives the
    vectors that are missing): what that raises is logged."""

    def work() -> None:
        embedder.warm()
        if embedder.state != "ready":
            return
        try:
            then()
        except CofireError as error:
            log.warning("vectors that are missing could not be made", reason=str(error))

    thread = threading.Thread(target=work, name="cofire-warming", daemon=True)
    thread.start()
    return thread

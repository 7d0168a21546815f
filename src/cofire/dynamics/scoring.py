"""Scores of one cue against many memories: BM25, cosine on float16, normalisations.

Everything here is elementwise or a float64 sum, so a score does not depend on where its memory
lies in an array, on the number of BLAS threads, or on the processor (`ranking.round_scores` takes
away what is left of float64 noise).
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofire.dynamics.arrays import F16, F32, F64, U8, Floats, Rows

_SHIFT = 2.0**112
_CHUNK = 2048  # rows per block: 3 MB of float32 at 384 dimensions stays in the cache
_BLOCK = 128  # the same for `dot_products`, of float64 and what it is made from: 690 kB


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25:
    """Constants of BM25: `k1` ≥ 0 (saturation of term counts), `b` in [0, 1] (length).

    Raises:
        ValueError: a constant is out of its range.
    """

    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0.0):
            raise ValueError(f"BM25 k1 must be a finite number ≥ 0, got {self.k1}")
        if not 0.0 <= self.b <= 1.0:
            raise ValueError(f"BM25 b must be in [0, 1], got {self.b}")


def inverse_document_frequency(documents: int, frequency: int) -> float:
    """ln(1 + (N - n + ½) / (n + ½)): positive for every n ≤ N (Robertson & Zaragoza 2009, with
    Lucene's 1 + inside the logarithm, so that a word in most documents never counts against)."""
    return math.log1p((documents - frequency + 0.5) / (frequency + 0.5))


def length_norms(lengths: F32, average: float, constants: Bm25) -> F32:
    """k1 · (1 - b + b · length / average): the part of BM25 that depends on the document alone.

    `lengths` are in terms; an `average` ≤ 0 (no documents) leaves length out of account.
    """
    k1, b = constants.k1, constants.b
    if average <= 0.0:
        return np.full(len(lengths), k1, np.float32)
    norms = lengths * np.float32(k1 * b / average)
    norms += np.float32(k1 * (1.0 - b))
    return norms


def bm25_term(counts: U8 | F32, norms: F32, idf: float | F64, constants: Bm25) -> F32:
    """idf · c · (k1 + 1) / (c + norm): what one term adds to the documents that contain it.

    `counts` (≥ 1) and `norms` (see `length_norms`) are of those documents. `idf` may be an array
    beside them: the occurrences of several terms in one call.
    """
    frequencies = counts.astype(np.float32)
    gains = frequencies + norms
    np.divide(frequencies, gains, out=gains)
    gains *= np.asarray(idf * (constants.k1 + 1.0), np.float32)
    return gains


def bm25_reference(
    documents: list[dict[str, int]], lengths: list[int], query: list[str], constants: Bm25
) -> list[float]:
    """BM25 as the textbook has it, for tests and readers: term counts and lengths per document."""
    average = sum(lengths) / len(lengths) if lengths else 0.0
    scores = [0.0] * len(documents)
    for term in query:
        frequency = sum(term in document for document in documents)
        idf = inverse_document_frequency(len(documents), frequency)
        for index, document in enumerate(documents):
            count = document.get(term, 0)
            if count:
                relative = lengths[index] / average if average > 0 else 0.0
                norm = constants.k1 * (1 - constants.b + constants.b * relative)
                scores[index] += idf * count * (constants.k1 + 1) / (count + norm)
    return scores


def widen(stored: F16) -> F32:
    """float16 → float32, exactly, for finite values; about five times as fast as `astype`.

    NumPy converts float16 one by one. The bits of a float16, moved 13 places up, read as a float32
    that is 2^-112 of the value; multiplying by 2^112 is exact, subnormal numbers included.
    """
    values = _shifted(stored, np.empty(stored.shape, np.int32))
    values *= np.float32(_SHIFT)
    return values


def _shifted(stored: F16, bits: NDArray[np.int32]) -> F32:
    """`stored` / 2^112 as float32, in the memory of `bits`."""
    bits[...] = stored.view(np.int16)
    bits <<= 13
    bits &= np.int32(-0x70002000)  # clears the copies of the sign bit: 0x8FFFE000
    return bits.view(np.float32)


class _Scratch(threading.local):
    """Blocks of `_BLOCK` rows in each form that `dot_products` needs, kept by thread: fresh memory
    costs more than what is computed in it."""

    def __init__(self) -> None:
        self._width = -1

    def blocks(self, width: int) -> tuple[F16, NDArray[np.int32], F64]:
        if width != self._width:
            shape = (_BLOCK, width)
            self._blocks = (
                np.empty(shape, np.float16),
                np.empty(shape, np.int32),
                np.empty(shape, np.float64),
            )
            self._width = width
        return self._blocks


_scratch = _Scratch()


def dot_products(stored: F16, vector: F64, rows: Rows | None = None) -> F64:
    """Dot product of every row of `stored` (n, d), or of `rows` of it, with `vector` (d,), summed
    in float64.

    float32 sums differ in their last bits with the block of rows they are computed in; float64
    leaves nothing of that after rounding to 1e-6.
    """
    count = len(stored) if rows is None else len(rows)
    products = np.empty(count, np.float64)
    scaled = vector * _SHIFT
    halves, bits, wide = _scratch.blocks(stored.shape[1])
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        size = stop - start
        if rows is None:
            block = stored[start:stop]
        else:
            block = halves[:size]
            stored.take(rows[start:stop], axis=0, out=block, mode="clip")
        wide[:size] = _shifted(block, bits[:size])
        # Row by row: a matrix product would wake BLAS's threads, see `graph.vectors`.
        np.vecdot(wide[:size], scaled, out=products[start:stop])
    return products


def cosine(stored: F16, vector: Floats) -> F64:
    """Cosine of every row of `stored` (n, d) to `vector` (d,), in [-1, 1]; 0 for zero rows."""
    query = unit(vector)
    if query is None:
        return np.zeros(len(stored), np.float64)
    norms = np.empty(len(stored), np.float64)
    for start in range(0, len(stored), _CHUNK):
        block = widen(stored[start : start + _CHUNK]).astype(np.float64)
        norms[start : start + _CHUNK] = np.sqrt(np.einsum("ij,ij->i", block, block))
    dots = dot_products(stored, query)
    return np.clip(np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0.0), -1.0, 1.0)


def unit(vector: Floats) -> F64 | None:
    """`vector` at length 1 in float64; None if it is zero or not finite (it points nowhere)."""
    wide = np.asarray(vector, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.sqrt(wide @ wide))
    if not math.isfinite(norm) or norm == 0.0:
        return None
    return wide / norm


def divide_by_maximum(scores: Floats) -> F64:
    """Scores / their maximum, so that the best is 1; all 0 if none is positive."""
    wide = np.asarray(scores, np.float64)
    top = float(wide.max()) if wide.size else 0.0
    return wide / top if top > 0.0 else np.zeros_like(wide)


def minmax(scores: Floats) -> F64:
    """(score - min) / (max - min), in [0, 1]; all 0 if they are equal."""
    wide = np.asarray(scores, np.float64)
    if not wide.size:
        return wide.copy()
    low, high = float(wide.min()), float(wide.max())
    return (wide - low) / (high - low) if high > low else np.zeros_like(wide)


def standardise(scores: Floats) -> F64:
    """(score - mean) / standard deviation; all 0 if they are equal."""
    wide = np.asarray(scores, np.float64)
    if not wide.size:
        return wide.copy()
    deviation = float(wide.std())
    return (wide - wide.mean()) / deviation if deviation > 0.0 else np.zeros_like(wide)


def saturate(scores: Floats, half: float) -> F64:
    """score / (score + half) for scores ≥ 0: in [0, 1), ½ at `half`, whatever else was found.

    Raises:
        ValueError: `half` is not positive.
    """
    if not half > 0.0:
        raise ValueError(f"the score that maps to ½ must be positive, got {half}")
    wide = np.maximum(np.asarray(scores, np.float64), 0.0)
    return wide / (wide + half)


def unit_cosine(scores: Floats) -> F64:
    """(cos + 1) / 2: HeLa-Mem's map of a cosine to [0, 1]."""
    return (np.asarray(scores, np.float64) + 1.0) / 2.0

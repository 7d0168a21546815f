"""Dense similarity over one space's vectors, without an index.

Vectors are kept as stored: float16 of unit length. A scan for candidates runs on a float32 matrix
(`scan`): the vectors themselves while they are few, or their PCA projection to 96 dimensions. The
candidates' similarities are then computed anew in float64 from the float16 values, so a similarity
never depends on which scan found it, and ranks are reproducible to 1e-6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F16, F32, F64, U64, Bool, Floats, Rows
from cofire.dynamics.ranking import best_positions, order, round_scores
from cofire.dynamics.scoring import dot_products, unit, widen

PROJECTED = 96
"""Dimensions of the coarse scan."""
COARSE_FROM = 4096
"""Rows from which a projection is used, if there is one: below, the exact scan is as fast."""
EXACT_BYTES = 16 * 2**20
"""Largest float32 copy of the vectors kept for exact scans."""
SCAN_FEW = 1024
"""A filter that leaves no more rows than this is scanned exactly, row by row."""
RESCORE_MIN, RESCORE_FACTOR = 300, 2
"""The coarse scan passes on this many candidates, or this many times what was asked for."""

_MARGIN = 4e-6  # above twice the error of a float32 dot product of unit vectors
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Projection:
    """Orthonormal rows (dimensions, dimension) float32 and the version they are stored under."""

    matrix: F32
    version: int

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.dtype != np.float32:
            raise ValueError("a projection is a float32 matrix (dimensions, dimension)")
        if not np.isfinite(self.matrix).all():
            raise ValueError("a projection must be finite")


def fit_projection(vectors: F16 | F32, dimensions: int = PROJECTED) -> F32:
    """The `dimensions` directions in which `vectors` (n, d) vary most, as rows, float32.

    Principal components of the covariance. The mean need not be kept: x·q differs from
    (Px)·(Pq) by the same amount for every x of equal error, and constants do not rank. Signs are
    fixed (the largest coefficient of each direction is positive), so equal vectors give equal
    projections. Rows that are zero or not finite are left out. Use a sample of some ten thousand.

    Raises:
        ValueError: there are fewer usable vectors than `dimensions`.
    """
    wide: F32 = vectors.astype(np.float32)
    usable = np.isfinite(wide).all(axis=1) & wide.any(axis=1)
    wide = wide[usable]
    dimensions = min(dimensions, wide.shape[1])
    if len(wide) < dimensions:
        raise ValueError(f"{len(wide)} vectors are too few for {dimensions} directions")
    mean = wide.mean(axis=0, dtype=np.float64)
    centred = wide.astype(np.float64) - mean
    covariance = centred.T @ centred / len(wide)
    _, directions = np.linalg.eigh(covariance)  # ascending
    rows = np.ascontiguousarray(directions[:, ::-1].T[:dimensions])
    peaks = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
    rows *= np.where(peaks < 0, -1.0, 1.0)[:, None]
    return rows.astype(np.float32)


def unpacked(stored: bytes) -> F32:
    """One vector as the store keeps it (float16, little-endian), for arithmetic."""
    return np.frombuffer(stored, "<f2").astype(np.float32)


def usable_rows(stored: F16) -> Bool:
    """Rows that are finite and not zero: only these point somewhere."""
    magnitude = (stored.view(np.uint16) & np.uint16(0x7FFF)).max(axis=1, initial=0)
    usable: Bool = (magnitude > 0) & (magnitude < 0x7C00)
    return usable


def scan_rows(stored: F16, projection: F32 | None) -> F32:
    """What the scan sees of `stored` (n, d): itself in float32, or its projection."""
    if projection is None:
        return widen(stored)
    out = np.empty((len(stored), len(projection)), np.float32)
    for start in range(0, len(stored), _CHUNK):
        block = widen(stored[start : start + _CHUNK])
        np.dot(block, projection.T, out=out[start : start + _CHUNK])
    return out


@dataclass(frozen=True, slots=True)
class DenseView:
    """What a dense search needs of a snapshot. `scan` is None where neither fits in memory."""

    stored: F16
    scan: F32 | None
    projection: F32 | None
    usable: Bool | None
    """Rows that may rank (live, with a vector); None if all may."""
    high: U64
    low: U64

    def similarity(self, rows: Rows, unit_query: F64) -> F64:
        """Cosine of `rows` to a query of unit length, rounded to 1e-6; 0 without a vector."""
        return round_scores(dot_products(self.stored, unit_query, rows))

    def search(self, unit_query: F64, mask: Bool | None, top: int) -> tuple[Rows, F64, Rows, F64]:
        """The `top` rows most similar to a query of unit length, best first, and their cosines;
        then the other rows whose cosines were computed on the way, in any order, and these."""
        allowed = _both(self.usable, mask)
        if allowed is not None:
            count = int(np.count_nonzero(allowed))
            if count <= max(SCAN_FEW, top):
                return self._ranked(np.flatnonzero(allowed), unit_query, top)
        scores = self._scan(unit_query)
        if allowed is not None:
            np.copyto(scores, -np.inf, where=~allowed)
        if self.projection is not None and self.scan is not None:
            rows = best_positions(scores, max(RESCORE_MIN, RESCORE_FACTOR * top))
        else:
            kept = best_positions(scores, top)
            rows = kept
            if len(kept):
                rows = np.flatnonzero(scores >= scores[kept].min() - np.float32(_MARGIN))
        return self._ranked(rows, unit_query, top)

    def _ranked(self, rows: Rows, unit_query: F64, top: int) -> tuple[Rows, F64, Rows, F64]:
        scores = self.similarity(rows, unit_query)
        ranked = order(scores, self.high[rows], self.low[rows])
        rows, scores = rows[ranked], scores[ranked]
        return rows[:top], scores[:top], rows[top:], scores[top:]

    def _scan(self, unit_query: F64) -> F32:
        query: F32 = unit_query.astype(np.float32)
        if self.scan is not None:
            if self.projection is not None:
                query = np.vecdot(self.projection, query)
            # A dot product for each row and not one matrix product: that is as fast at these
            # sizes, and BLAS would share the product among threads, which on a busy machine wait
            # for each other ten times longer than one of them takes.
            scanned: F32 = np.vecdot(self.scan, query)
            return scanned
        scores = np.empty(len(self.stored), np.float32)
        for start in range(0, len(scores), _CHUNK):
            block = widen(self.stored[start : start + _CHUNK])
            np.dot(block, query, out=scores[start : start + _CHUNK])
        return scores


def _both(one: Bool | None, other: Bool | None) -> Bool | None:
    if one is None:
        return other
    if other is None:
        return one
    both: Bool = one & other
    return both


def as_unit(vector: Floats, dimension: int) -> F64 | None:
    """The query at unit length in float64; None if it is zero or not finite.

    Raises:
        ValueError: it has another dimension.
    """
    if np.shape(vector) != (dimension,):
        raise ValueError(
            f"the query has shape {np.shape(vector)}, the space {dimension} dimensions"
        )
    return unit(vector)

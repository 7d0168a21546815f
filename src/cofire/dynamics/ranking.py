"""Order that is the same everywhere: rounded scores, ties broken by the memories' own ids.

A rank must not depend on the row a memory happens to lie in (copies, rebuilds and compaction move
rows), so every choice of "the best k" goes through `top_k` with the ids as keys.
"""

from __future__ import annotations

import math

import numpy as np

from cofire.dynamics.arrays import F64, U64, Floats, Indices, Rows

SCALE = 1e6
"""Scores are compared after rounding to 1 / SCALE."""

_STRIDE = 16
_SAMPLED_FROM = 2048  # below, one partition is as fast as a guess


def round_scores(scores: Floats) -> F64:
    """Scores in float64 rounded to 1e-6 (half to even), with -0.0 made 0.0."""
    rounded = np.asarray(scores, np.float64) * SCALE
    np.rint(rounded, out=rounded)
    rounded /= SCALE
    rounded += 0.0
    return rounded


def split_uids(uids: list[bytes]) -> tuple[U64, U64]:
    """16-byte ids → (high, low) unsigned words that order as the bytes do."""
    words = np.frombuffer(b"".join(uids), ">u8").astype(np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])


def best_positions(scores: Floats, count: int) -> Rows:
    """Positions of the `count` highest scores and of all that tie with the last of them, ascending.

    Equals `flatnonzero(scores >= partition(scores)[-count])`, with a guess of the threshold from
    every 16th score in place of the full partition; where the guess was too high it is dropped, so
    the result never depends on it. Scores must not be NaN; -inf means "never".
    """
    size = len(scores)
    if count <= 0 or size == 0:
        return np.empty(0, np.intp)
    kept: Rows | None = None
    if size >= _SAMPLED_FROM and count <= size // _STRIDE:
        sample = scores[::_STRIDE]
        rank = count // _STRIDE
        rank += 8 + 3 * math.isqrt(rank)
        if rank < len(sample):
            guess = np.partition(sample, len(sample) - rank)[len(sample) - rank]
            if guess > -np.inf:
                kept = np.flatnonzero(scores >= guess)
                if len(kept) < count:
                    kept = None
    elif count < size:
        threshold = np.partition(scores, size - count)[size - count]
        if threshold > -np.inf:
            return np.flatnonzero(scores >= threshold)
    if kept is None:
        kept = np.flatnonzero(scores > -np.inf)
    if len(kept) <= count:
        return kept
    values = scores[kept]
    threshold = np.partition(values, len(values) - count)[len(values) - count]
    chosen: Rows = kept[values >= threshold]
    return chosen


def order(scores: Floats, high: U64, low: U64) -> Rows:
    """Positions by falling score, ties by rising (high, low)."""
    ranked: Rows = np.lexsort((low, high, -scores))
    return ranked


def top_k(scores: Floats, high: U64, low: U64, count: int, rows: Indices | None = None) -> Rows:
    """The `count` best by (score falling, id rising), best first.

    `scores` are of all rows (or of `rows`, if given) and already rounded where that matters;
    `high`, `low` are the id words of *all* rows. Entries of -inf are never returned. Gives row
    numbers.
    """
    kept = best_positions(scores, count)
    chosen = kept if rows is None else np.asarray(rows, np.intp)[kept]
    ranked = order(scores[kept], high[chosen], low[chosen])[:count]
    return chosen[ranked]


def best(
    scores: Floats, high: U64, low: U64, count: int, rows: Indices | None = None
) -> tuple[Rows, F64]:
    """As `top_k` over raw scores of all rows (or of `rows`, if given): rounds them first, and
    gives the rounded scores.

    Only the candidates are rounded: rounding keeps order, so what could tie with the last of the
    best lies within one unit of rounding below it.
    """
    kept = best_positions(scores, count)
    if not len(kept):
        return kept, np.empty(0, np.float64)
    floor = np.asarray(float(scores[kept].min()) - 1.0 / SCALE, scores.dtype)
    kept = np.flatnonzero(scores >= np.nextafter(floor, np.asarray(-np.inf, scores.dtype)))
    rounded = round_scores(scores[kept])
    chosen = kept if rows is None else np.asarray(rows, np.intp)[kept]
    ranked = order(rounded, high[chosen], low[chosen])[:count]
    return chosen[ranked], rounded[ranked]

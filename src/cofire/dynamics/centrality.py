"""PageRank: how central a memory is in its graph, whatever the question.

`centrality_reference` has a readable twin, and both pass the same tests.
"""

from __future__ import annotations

import math

import numpy as np

from cofire.dynamics.arrays import F64, I32, I64, Bool, Floats

DAMPING = 0.85
"""Share of rank that follows links (Brin & Page 1998; Synapse names no other)."""


def pagerank(
    offsets: I64,
    targets: I32 | I64,
    weights: Floats | None = None,
    *,
    damping: float = DAMPING,
    tolerance: float = 1e-8,
    start: Floats | None = None,
) -> F64:
    """PageRank (n,) of the nodes of a directed graph: ≥ 0, sums to 1.

        r_i = (1 - d) / n + d · ( Σ_{j→i} r_j · w_ji / Σ_k w_jk  +  Σ_{dangling j} r_j / n )

    Power iteration (Brin & Page 1998) until two rounds differ by less than `tolerance` in all.
    Every round shrinks the difference by d, so it always ends: after ln(tolerance / 2) / ln d
    rounds at the most (118 by default).

    Edges of node j are `offsets[j]` to `offsets[j + 1]` of `targets` and `weights`, as in
    `edges.Csr`; weights are ≥ 0, None: all 1. A node without outgoing weight is dangling: its rank
    goes to all nodes alike. `start` (n,) ≥ 0 of positive sum is where to begin, such as the ranks
    before a few links changed, with 1 / n for new nodes; it saves rounds and changes nothing
    beyond the tolerance.

    Raises:
        ValueError: shapes differ, a weight or start is negative or not finite, a target is no
            node, or a constant is out of range: `damping` in [0, 1), `tolerance` > 0.
    """
    size = len(offsets) - 1
    if not 0.0 <= damping < 1.0:
        raise ValueError(f"damping must be in [0, 1), got {damping}")
    if not (math.isfinite(tolerance) and tolerance > 0.0):
        raise ValueError(f"tolerance must be a positive number, got {tolerance}")
    if size < 1:
        return np.empty(0, np.float64)
    if len(targets) and (int(targets.min()) < 0 or int(targets.max()) >= size):
        raise ValueError(f"targets must be nodes of the graph, 0 to {size - 1}")
    rank = _started(size, start)
    share, dangling = _shares(offsets, _checked_weights(targets, weights))
    share *= damping
    origins = np.repeat(np.arange(size), np.diff(offsets))
    # The rounds after which the difference is below the tolerance whatever the graph.
    rounds = math.ceil(math.log(tolerance / 2.0) / math.log(damping)) if damping > 0.0 else 0
    for _ in range(max(1, rounds)):
        everywhere = (1.0 - damping + damping * float(rank[dangling].sum())) / size
        arrived = np.bincount(targets, share * rank[origins], minlength=size)
        following = arrived.astype(np.float64, copy=False) + everywhere
        difference = float(np.abs(following - rank).sum())
        rank = following
        if difference < tolerance:
            break
    return _normal(rank)


def _started(size: int, start: Floats | None) -> F64:
    if start is None:
        return np.full(size, 1.0 / size)
    rank = np.asarray(start, np.float64)
    if rank.shape != (size,):
        raise ValueError(f"start has shape {rank.shape}, the graph {size} nodes")
    total = float(rank.sum())
    if not (math.isfinite(total) and total > 0.0) or (rank < 0.0).any():
        raise ValueError("start must be finite, not negative, and of positive sum")
    return _normal(rank)


def _normal(rank: F64) -> F64:
    normal: F64 = rank / rank.sum()
    return normal


def _checked_weights(targets: I32 | I64, weights: Floats | None) -> F64:
    if weights is None:
        return np.ones(len(targets), np.float64)
    if weights.shape != targets.shape:
        raise ValueError(f"{len(targets)} targets have {len(weights)} weights")
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        raise ValueError("weights must be finite and not negative")
    return weights.astype(np.float64)


def _shares(offsets: I64, weights: F64) -> tuple[F64, Bool]:
    """(share of its origin's rank that each edge carries, nodes without outgoing weight)."""
    degrees = np.diff(offsets)
    if int(offsets[-1]) != len(weights) or (degrees < 0).any() or offsets[0] != 0:
        raise ValueError("offsets must rise from 0 to the number of edges")
    size = len(degrees)
    # The heaviest edge of a node counts as 1, so that tiny weights do not vanish in the sum.
    origins = np.repeat(np.arange(size), degrees)
    heaviest = np.zeros(size, np.float64)
    np.maximum.at(heaviest, origins, weights)
    relative = weights / np.where(heaviest > 0.0, heaviest, 1.0)[origins]
    total = np.bincount(origins, relative, minlength=size).astype(np.float64, copy=False)
    dangling = total == 0.0
    total[dangling] = 1.0
    return relative / total[origins], dangling

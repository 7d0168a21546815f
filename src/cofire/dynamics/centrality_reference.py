"""The mechanism of `centrality`, written to be read: one edge at a time, many rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def pagerank(
    size: int,
    edges: Mapping[int, Sequence[tuple[int, float]]],
    damping: float = 0.85,
    rounds: int = 200,
) -> list[float]:
    """`centrality.pagerank`, for {node: (target, weight) of the edges that leave it}."""
    rank = [1.0 / size] * size
    for _ in range(rounds):
        following = [(1.0 - damping) / size] * size
        for node in range(size):
            leaving = edges.get(node, ())
            total = sum(weight for _, weight in leaving)
            if total > 0.0:
                for target, weight in leaving:
                    following[target] += damping * rank[node] * weight / total
            else:
                for target in range(size):
                    following[target] += damping * rank[node] / size
        rank = following
    return rank

"""Hubs and what belongs to them: where a memory is worth distilling.

A hub is a memory that use has tied to many others. HeLa-Mem (eq. 2) sums what its links carry:

    D(v) = Σ_u w_uv        v is a hub if D(v) > δ

The rival, which no paper has measured it against, only counts how often a memory was used. Either
gives one number per memory; what follows is the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cofire.dynamics.arrays import F64, I64, Floats


class Cluster(NamedTuple):
    """A hub and its strongest neighbours, strongest first; `members` begins with the hub."""

    hub: int
    density: float
    members: tuple[int, ...]


def density(source: I64, target: I64, strength: Floats, size: int) -> F64:
    """D (size,): what the links (m,) from `source` to `target` carry at both their ends. A link of
    a node to itself counts once."""
    amount = np.asarray(strength, np.float64)
    inward = np.where(source == target, 0.0, amount)
    total = np.bincount(source, amount, minlength=size).astype(np.float64)
    total += np.bincount(target, inward, minlength=size)
    return total


def frequency(items: I64, size: int) -> F64:
    """How often each of `size` nodes occurs among `items`: the rival of `density`."""
    return np.bincount(items, minlength=size).astype(np.float64)


def hubs(score: F64, least: float) -> I64:
    """Nodes whose score is above `least` (δ), the highest first, of equal ones the lower number."""
    found = np.flatnonzero(score > least)
    return found[np.lexsort((found, -score[found]))].astype(np.int64)


def clusters(
    source: I64, target: I64, strength: Floats, score: F64, *, least: float, neighbours: int
) -> list[Cluster]:
    """The clusters of the graph with these links (m,), those of the highest score first.

    Every hub of `score` (n,) above `least` takes its `neighbours` strongest neighbours with it. A
    hub that a higher one took makes no cluster of its own, so that what belongs together is
    distilled once; other nodes may be in several. Of several links between two nodes the strongest
    counts.
    """
    amount = np.asarray(strength, np.float64)
    origin = np.concatenate([source, target])
    other = np.concatenate([target, source])
    amount = np.concatenate([amount, amount])
    order = np.lexsort((other, -amount, origin))
    order = order[(origin != other)[order] & (amount[order] > 0.0)]
    starts = np.searchsorted(origin[order], np.arange(len(score) + 1))
    taken: set[int] = set()
    found = []
    for hub in hubs(score, least).tolist():
        if hub in taken:
            continue
        near = dict.fromkeys(other[order[starts[hub] : starts[hub + 1]]].tolist())
        members = (hub, *list(near)[:neighbours])
        taken.update(members)
        found.append(Cluster(hub, float(score[hub]), members))
    return found

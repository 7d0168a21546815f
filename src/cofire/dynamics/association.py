"""Spreading among the candidates of a recall, as pure functions: over steps in time, and over what
memories have in common.

Both take the strongest single giver, never a sum over many weak ones, and neither can lower what a
memory has itself: spreading never demotes a direct hit.

A concept (a person, a place, a title, a topic) links all memories that mention it, as a hub of
theirs. Activation goes seed → concept → memory, and what a concept passes on is divided by its fan
(the number of memories it leads to, ACT-R; Synapse eq. 2): a name in every turn says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F64, I32, I64, U64, distinct


def spread_over_steps(
    activation: F64, neighbours: Mapping[int, I32], shares: Mapping[int, float]
) -> F64:
    """Activation (t, c) of c nodes in t respects, after each node was given its share of what the
    nodes so many steps away have:

        a'_i = max(a_i, max over steps s of shares[s] · a_(the node s steps from i))

    `neighbours[s]` (c,) are the nodes s steps away, -1 for none; shares lie in [0, 1].
    """
    padded = np.concatenate([activation, np.zeros((len(activation), 1))], axis=1)
    spread = activation.copy()
    for step, share in shares.items():
        given = padded.take(neighbours[step], axis=1)
        given *= share
        np.maximum(spread, given, out=spread)
    return spread


FAN = 0.5
"""Exponent of the fan effect: what a concept gives is divided by fan ** FAN."""


@dataclass(frozen=True, slots=True)
class SharedConcepts:
    """Mentions of the concepts that seeds name: mention i says that candidate `at[i]` names
    concept `concept[i]` (0 …). Per concept: `best` and `second` energy of the seeds that name it,
    `seed` who has the best, `fan` how many candidates name it. What a concept gives is divided by
    fan ** `exponent`."""

    at: I64
    concept: I64
    best: F64
    second: F64
    seed: I64
    fan: F64
    exponent: float

    @classmethod
    def of(cls, at: I64, concepts: U64, energy: F64, exponent: float = FAN) -> SharedConcepts:
        """`at` (m,) candidates, `concepts` (m,) hashes, `energy` (c,) ≥ 0 of the candidates;
        those above 0 are seeds. `exponent` ≥ 0: 1 is the full fan effect, 0 none."""
        mentioned = energy[at]
        named = distinct(concepts[mentioned > 0.0])
        count = len(named)
        if not count:
            none = np.empty(0, np.int64)
            nothing = np.empty(0, np.float64)
            return cls(none, none, nothing, nothing, none, nothing, exponent)
        concept = np.minimum(named.searchsorted(concepts), count - 1)
        kept = named[concept] == concepts
        at, concept, mentioned = at[kept], concept[kept], mentioned[kept]
        fan = np.bincount(concept, minlength=count).astype(np.float64)
        # Strongest seed per concept: in order of concept, then falling energy, the first of each.
        ranked = np.lexsort((at, -mentioned, concept))
        first = np.cumsum(fan).astype(np.int64) - fan.astype(np.int64)
        follows = np.minimum(first + 1, len(ranked) - 1)
        second = np.where(fan > 1.0, mentioned[ranked[follows]], 0.0)
        best, seed = mentioned[ranked[first]], at[ranked[first]]
        return cls(at, concept, best, second, seed, fan, exponent)

    def activation(self, count: int) -> F64:
        """What arrives at each of `count` candidates, (count,): Σ over its concepts of the
        strongest other seed's energy / fan ** exponent. A seed never feeds itself."""
        return np.bincount(self.at, self._gifts(), minlength=count).astype(np.float64)

    def _gifts(self) -> F64:
        own = self.seed[self.concept] == self.at
        energy = np.where(own, self.second[self.concept], self.best[self.concept])
        return energy / self.fan[self.concept] ** self.exponent

    def sources(self, candidate: int) -> list[tuple[int, float]]:
        """(seed, activation) of the concepts whose strongest seed is another candidate."""
        mine = np.flatnonzero(self.at == candidate)
        gifts = self._gifts()[mine]
        seeds = self.seed[self.concept[mine]]
        return [
            (int(seed), float(gift))
            for seed, gift in zip(seeds, gifts, strict=True)
            if seed != candidate
        ]

"""Where to draw the nodes of a graph."""

from __future__ import annotations

import numpy as np

from cofire.dynamics.arrays import F64

STEPS = 300


def spring_layout(strength: F64, *, steps: int = STEPS, seed: int = 0) -> F64:
    """Positions (n, 2) in [-1, 1] by force: nodes push each other away, links pull their ends
    together, and all are drawn a little to the middle, which keeps parts that no link joins in
    sight (Fruchterman and Reingold, 1991; O(n²) a step).

    `strength` (n, n) ≥ 0 is symmetric. The same graph gets the same layout.
    """
    count = len(strength)
    if count < 2:
        return np.zeros((count, 2), np.float64)
    generator = np.random.default_rng(seed)
    place = generator.uniform(-1.0, 1.0, (count, 2))
    ideal = 1.6 / np.sqrt(count)
    top = float(strength.max())
    pull = np.sqrt(strength / top) if top > 0.0 else strength
    for step in range(steps):
        apart = place[:, None, :] - place[None, :, :]
        distance = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 1e-3)
        force = ideal**2 / distance**2 - pull * distance / ideal
        np.fill_diagonal(force, 0.0)
        moved = (apart * force[..., None]).sum(axis=1) - 0.6 * place
        length = np.maximum(np.hypot(moved[:, 0], moved[:, 1]), 1e-9)
        heat = 0.15 * (1.0 - step / steps) + 0.002
        place += moved / length[:, None] * np.minimum(length, heat)[:, None]
    place -= (place.max(axis=0) + place.min(axis=0)) / 2.0
    placed: F64 = place / max(float(np.abs(place).max()), 1e-9)
    return placed

"""What fades and what stays: rules of forgetting as pure functions over arrays of memories.

Nothing here deletes: the rules say whose importance falls, what is archived (reversibly) and which
links go. `retention_reference` has readable twins, and both pass the same tests. Times are µs since
1970 (UTC), strengths in [0, 1] and as of now (decay taken off), importance 1 to 10; (n,) is one
value a memory.

A memory that is *kept* (`kept`) is never touched by any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F64, I64, Bool, Floats, Rows
from cofire.dynamics.plasticity import DAY_US

KEEP_IMPORTANCE = 8
"""Importance from which on a memory is kept as if it were pinned. Ours: Atamaia pins only."""


def kept(pinned: Bool, importance: I64, *, least: int = KEEP_IMPORTANCE) -> Bool:
    """Which memories (n,) nothing may take away: pinned ones (Atamaia, section 4.2), and those that
    somebody gave an importance of `least` or more (11: none). The papers would let an importance of
    10 fall to 1 in nine months of silence; what matters once a year would be lost."""
    return pinned | (importance >= least)


# -- Atamaia's staircase -------------------------------------------------------------------------


def steps_due(last: I64, since: int, until: int, step_days: float) -> I64:
    """How many steps (n,) of the staircase fall between two runs: a memory is due one whenever
    another `step_days` have passed since it was last accessed, or stored if it never was (`last`).

        ⌊(until - last) / step⌋⁺ - ⌊(since - last) / step⌋⁺      ⌊x⌋⁺ = max(0, ⌊x⌋)

    So runs at any times add up: those from a to b and from b to c are those from a to c, and one
    late run does what a run every night would have done. (An access between two runs leaves only
    its time; what was due before it is then forgiven.) Atamaia, section 4.4, takes 1 off at every
    run after 30 days without access, so that running hourly would take all within ten hours.

    Raises:
        ValueError: `step_days` is not above 0.
    """
    step = _positive("step_days", step_days) * DAY_US
    passed_now = np.maximum(np.floor_divide(until - last, step), 0)
    passed_then = np.maximum(np.floor_divide(since - last, step), 0)
    due: I64 = np.maximum(passed_now - passed_then, 0).astype(np.int64)
    return due


def lowered(
    importance: I64, due: I64, exempt: Bool, strength: Floats, *, protect_strength: float
) -> I64:
    """Importance (n,) after `due` steps down: max(1, importance - due), Atamaia's staircase with
    its floor (section 4.4). `exempt` ones stay, and so do those whose links add up to
    `protect_strength` or more (`strength`, ≥ 0): what others lean on is important still."""
    stays = exempt | (strength >= protect_strength)
    return np.where(stays, importance, np.maximum(1, importance - due)).astype(np.int64)


def archivable(importance: I64, uses: I64, age: I64, exempt: Bool, *, archive_days: float) -> Bool:
    """Atamaia's archival rule (section 4.4): importance 1, never accessed (`uses` 0), `age` (µs
    since it was stored) above `archive_days`, not `exempt`."""
    old = age > _positive("archive_days", archive_days) * DAY_US
    found: Bool = (importance <= 1) & (uses == 0) & old & ~exempt
    return found


# -- HeLa-Mem's adaptive forgetting --------------------------------------------------------------


def forgettable(
    strength: Floats,
    unchanged: I64,
    unused: I64,
    exempt: Bool,
    *,
    idle_strength: float,
    idle_days: float,
) -> Bool:
    """HeLa-Mem's adaptive forgetting (arXiv 2604.16839, section 3.3): a memory goes only if all
    three hold.

        Σ_j w_vj < δ_prune (`idle_strength`)
        none of its links changed for longer than δ_age (`unchanged` µs, of one without links since
            it was stored)
        no recent access (`unused` µs since the last, or since it was stored)

    The paper gives neither δ; both times are `idle_days` here.
    """
    idle = _positive("idle_days", idle_days) * DAY_US
    found: Bool = (strength < idle_strength) & (unchanged > idle) & (unused > idle) & ~exempt
    return found


# -- Links ---------------------------------------------------------------------------------------


def prunable(strength: Floats, unused: I64, *, below: float, idle_days: float) -> Bool:
    """Which links (m,) go: Atamaia, section 4.4: strength under `below` (0.1) and no co-activation
    for longer than `idle_days` (60; `unused` in µs). `strength` is what is left of it now: links
    that only ever grow from 0.5, as the paper's, never get there."""
    found: Bool = (strength < below) & (unused > _positive("idle_days", idle_days) * DAY_US)
    return found


def beyond(targets: I64, strength: Floats, sources: I64, *, most: int) -> Bool:
    """Which links (m,) are more than `most` lead to one memory: Synapse, section 3.1 (K = 15
    incoming edges). At every target the strongest stay; of equals those of the lower source.

    Raises:
        ValueError: `most` is below 1.
    """
    if most < 1:
        raise ValueError(f"most must be ≥ 1, got {most}")
    order = np.lexsort((sources, -np.asarray(strength, np.float64), targets))
    ordered = targets[order]
    place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    gone = np.zeros(len(order), np.bool_)
    gone[order[place >= most]] = True
    return gone


# -- The size of the active graph ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionShares:
    """What counts how much for staying in the active graph; ≥ 0, together 1. Ours: importance is
    somebody's word, links and use are evidence, and what a text tells decides between the rest."""

    importance: float = 0.35
    strength: float = 0.25
    use: float = 0.25
    information: float = 0.15

    def __post_init__(self) -> None:
        shares = (self.importance, self.strength, self.use, self.information)
        if min(shares) < 0.0 or abs(sum(shares) - 1.0) > 1e-9:
            raise ValueError(f"shares must be ≥ 0 and add up to 1, got {shares}")


RETENTION_SHARES = RetentionShares()
USE_HALF_LIFE_DAYS = 90.0
"""Days in which a use counts half for staying. Shorter than a link's: it is the lesser evidence."""


def retention_score(
    importance: I64,
    strength: Floats,
    uses: I64,
    unused: I64,
    information: Floats,
    *,
    shares: RetentionShares = RETENTION_SHARES,
) -> F64:
    """How much speaks for keeping each memory (n,) active, in [0, 1].

        importance     (importance - 1) / 9
        strength       s / (1 + s)                                s ≥ 0: sum of its links
        use            1 - 1 / (1 + uses · 2^(-unused / 90 d))    unused: µs since the last
        information    in [0, 1]: what the text tells

    It never falls where one of them rises (`unused`: falls). Synapse (section 3.1) says that the
    active graph has 10,000 nodes at most, and of what goes only that it was dormant.
    """
    recent = np.exp2(-np.maximum(unused, 0) / (USE_HALF_LIFE_DAYS * DAY_US))
    used = uses * recent
    score: F64 = (
        shares.importance * (np.clip(importance, 1, 10) - 1) / 9.0
        + shares.strength * strength / (1.0 + strength)
        + shares.use * used / (1.0 + used)
        + shares.information * information
    )
    return score


def surplus(score: F64, dormant: Bool, stored: I64, size: I64, exempt: Bool, *, over: int) -> Rows:
    """Which memories leave the active graph so that it shrinks by `over` rows: indices, the first
    to go first.

    Dormant ones go before others, then by score, the lowest first; of equals the oldest (`stored`).
    `size` (n,) ≥ 1 is how many rows each takes; as many go as are needed and no more. `exempt`
    ones never go, even if the graph then stays too large.
    """
    if over <= 0:
        return np.empty(0, np.intp)
    candidates = np.flatnonzero(~exempt)
    order = candidates[np.lexsort((stored[candidates], score[candidates], ~dormant[candidates]))]
    freed = np.cumsum(size[order])
    needed = int(np.searchsorted(freed, over)) + 1
    return order[:needed].astype(np.intp)


def _positive(name: str, value: float) -> float:
    if not (np.isfinite(value) and value > 0.0):
        raise ValueError(f"{name} must be a positive number, got {value}")
    return value

"""The rules of `retention`, written to be read: one memory or link at a time.

They define what the fast versions must compute; tests run both on the same values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cofire.dynamics.plasticity import DAY_US
from cofire.dynamics.retention import (
    KEEP_IMPORTANCE,
    RETENTION_SHARES,
    USE_HALF_LIFE_DAYS,
    RetentionShares,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A memory as the rules see it. `strength`: sum of its links now; `stored`, `accessed`,
    `changed`: µs when it was stored, last accessed (None: never), when its links last changed
    (None: it has none); `size`: rows it takes."""

    importance: int = 5
    pinned: bool = False
    uses: int = 0
    strength: float = 0.0
    information: float = 1.0
    stored: int = 0
    accessed: int | None = None
    changed: int | None = None
    size: int = 1

    @property
    def kept(self) -> bool:
        return self.pinned or self.importance >= KEEP_IMPORTANCE

    @property
    def last(self) -> int:
        return self.stored if self.accessed is None else self.accessed


def walked_down(
    memory: Remembered, runs: Sequence[int], *, step_days: float, protect_strength: float
) -> int:
    """Importance after runs at these times (µs, rising), one step for each multiple of the step
    that was passed since the run before."""
    importance = memory.importance
    since = 0
    for now in runs:
        passed = 1
        while memory.last + passed * step_days * DAY_US <= now:
            due = memory.last + passed * step_days * DAY_US > since
            kept = memory.kept or memory.strength >= protect_strength
            if due and not kept and importance > 1:
                importance -= 1
            passed += 1
        since = now
    return importance


def is_archivable(memory: Remembered, now: int, *, archive_days: float) -> bool:
    """Importance 1, never accessed, old, not kept."""
    if memory.kept or memory.importance > 1 or memory.uses > 0:
        return False
    return now - memory.stored > archive_days * DAY_US


def is_forgettable(memory: Remembered, now: int, *, idle_strength: float, idle_days: float) -> bool:
    """Weakly linked, its links unchanged for long, not accessed for long, not kept."""
    idle = idle_days * DAY_US
    changed = memory.stored if memory.changed is None else memory.changed
    if memory.kept or memory.strength >= idle_strength:
        return False
    return now - changed > idle and now - memory.last > idle


def is_prunable(strength: float, unused: int, *, below: float, idle_days: float) -> bool:
    """Weak and long unused."""
    return strength < below and unused > idle_days * DAY_US


def too_many(links: Sequence[tuple[int, int, float]], *, most: int) -> set[tuple[int, int]]:
    """Of links (source, target, strength), the pairs that go: at every target all but the `most`
    strongest."""
    gone: set[tuple[int, int]] = set()
    for target in {target for _, target, _ in links}:
        coming = [(-strength, source) for source, end, strength in links if end == target]
        gone |= {(source, target) for _, source in sorted(coming)[most:]}
    return gone


def score_of(memory: Remembered, now: int, shares: RetentionShares = RETENTION_SHARES) -> float:
    """How much speaks for keeping it active."""
    half_lives = max(0, now - memory.last) / (USE_HALF_LIFE_DAYS * DAY_US)
    used = memory.uses * math.exp2(-half_lives)
    return (
        shares.importance * (memory.importance - 1) / 9.0
        + shares.strength * (1.0 - 1.0 / (1.0 + memory.strength))
        + shares.use * (1.0 - 1.0 / (1.0 + used))
        + shares.information * memory.information
    )


def to_go(
    memories: Sequence[Remembered], now: int, dormant: Sequence[bool], *, over: int
) -> list[int]:
    """Indices of those that leave so that `over` rows are freed, the first to go first."""
    waiting = [index for index, memory in enumerate(memories) if not memory.kept]
    waiting.sort(
        key=lambda i: (not dormant[i], round(score_of(memories[i], now), 9), memories[i].stored, i)
    )
    gone: list[int] = []
    for index in waiting:
        if over <= 0:
            break
        gone.append(index)
        over -= memories[index].size
    return gone

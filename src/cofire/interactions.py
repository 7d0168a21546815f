"""What was used lately in which conversation."""

from __future__ import annotations

from collections import OrderedDict, deque
from threading import Lock

from cofire.dynamics.plasticity import coactivation_window
from cofire.store.records import SpaceInfo

RECENT = 10
"""Interactions of one conversation that are looked back on (Atamaia's signal 2)."""
KEPT = 1_000
"""Conversations whose last uses are kept in mind."""

Uses = deque[tuple[int, frozenset[int]]]


class Interactions:
    """What was used lately in which conversation, so that uses soon after each other count as
    together. Kept in this process only: it is a hint, not a memory. Safe between threads."""

    def __init__(self) -> None:
        self._uses: OrderedDict[tuple[int, int, str, str], Uses] = OrderedDict()
        self._lock = Lock()

    def together(
        self, space: SpaceInfo, interaction: str, principal: str, time: int, used: frozenset[int]
    ) -> frozenset[int]:
        """What was used within the window before `time`, besides `used`; `used` is noted."""
        key = (space.tenant_id, space.space_id, interaction, principal)
        with self._lock:
            uses = self._uses.setdefault(key, deque(maxlen=RECENT))
            self._uses.move_to_end(key)
            while len(self._uses) > KEPT:
                self._uses.popitem(last=False)
            window = coactivation_window([*(then for then, _ in uses), time])
            near = [numbers for then, numbers in uses if 0 <= time - then <= window]
            uses.append((time, used))
        return frozenset().union(*near) - used

"""The process's active graphs, refreshed by one thread at a time and evicted by size.

The rule for threads: `get` returns a snapshot, which never changes. One thread per space refreshes
(the others wait for it, and then find its result); a reader keeps the snapshot it got for as long
as it likes, even after its eviction. A refresh that fails leaves the old snapshot in place.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from cofire.graph.active import ActiveGraph

BUDGET = 1 << 30
"""Bytes of graphs kept, by default."""

Refresh = Callable[[ActiveGraph | None], ActiveGraph]
"""From the snapshot held (None: none) to the newest."""


class _Slot:
    """One space: its snapshot, and the lock of who refreshes it."""

    __slots__ = ("dropped", "graph", "lock", "nbytes")

    def __init__(self) -> None:
        self.graph: ActiveGraph | None = None
        self.lock = threading.Lock()
        self.nbytes = 0
        self.dropped = False


class GraphCache:
    """Active graphs by key, least recently used first to go when `budget` bytes are passed.

    The graph asked for last is always kept, even if it alone is larger than the budget.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        if budget < 0:
            raise ValueError(f"the budget must be ≥ 0 bytes, got {budget}")
        self.budget = budget
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._lock = threading.Lock()
        self._process = os.getpid()

    def get(self, key: Hashable, revision: int, refresh: Refresh) -> ActiveGraph:
        """The snapshot at `revision`, or the newest, if that has moved on meanwhile.

        Calls `refresh` with the snapshot held, if that is absent or at any other revision (a
        higher one, too: a backup may have been restored), outside the cache's own lock. Whatever
        it raises reaches the caller.
        """
        while True:
            slot = self._slot(key)
            graph = slot.graph
            if graph is not None and graph.revision == revision:
                return graph
            with slot.lock:
                if slot.dropped:  # discarded while we waited: its content must not come back
                    continue
                graph = slot.graph
                if graph is None or graph.revision != revision:
                    graph = refresh(graph)
                    self._publish(key, slot, graph)
                return graph

    def _slot(self, key: Hashable) -> _Slot:
        self._after_fork()
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot()
            self._slots.move_to_end(key)
            return slot

    def _publish(self, key: Hashable, slot: _Slot, graph: ActiveGraph) -> None:
        size = graph.nbytes
        with self._lock:
            if slot.dropped:
                return
            slot.graph, slot.nbytes = graph, size
            total = sum(other.nbytes for other in self._slots.values())
            for other_key in list(self._slots):
                if total <= self.budget:
                    break
                if other_key != key:
                    evicted = self._slots.pop(other_key)
                    evicted.dropped = True
                    total -= evicted.nbytes

    def peek(self, key: Hashable) -> ActiveGraph | None:
        """The snapshot held, as it is."""
        self._after_fork()
        with self._lock:
            slot = self._slots.get(key)
            return None if slot is None else slot.graph

    def discard(self, key: Hashable) -> None:
        """Let go of a graph; a refresh under way will not bring it back."""
        self._after_fork()
        with self._lock:
            slot = self._slots.pop(key, None)
            if slot is not None:
                slot.dropped = True

    def clear(self) -> None:
        """Let go of every graph."""
        self._after_fork()
        with self._lock:
            for slot in self._slots.values():
                slot.dropped = True
            self._slots.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of the graphs held."""
        with self._lock:
            return sum(slot.nbytes for slot in self._slots.values())

    def __len__(self) -> int:
        return len(self._slots)

    def _after_fork(self) -> None:
        """In a forked child: locks may be held by threads that do not exist here. The snapshots
        are whole (they never change) and are kept."""
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        self._lock = threading.Lock()
        for slot in self._slots.values():
            slot.lock = threading.Lock()

"""How much room a token budget leaves for what a recall returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Room:
    """Wordpieces that are left of a budget (None: there is none). `fence`: what the fence around
    what is not trusted takes, which is paid for with the first line in it."""

    left: int | None
    fence: int

    def take(self, cost: int, *, untrusted: bool = False) -> bool:
        """Takes a line of so many wordpieces if it fits whole."""
        if self.left is None:
            return True
        whole = cost + self.fence if untrusted else cost
        if whole > self.left:
            return False
        self.left -= whole
        if untrusted:
            self.fence = 0
        return True

    @property
    def full(self) -> bool:
        """Whether nothing more fits."""
        return self.left is not None and self.left <= 0

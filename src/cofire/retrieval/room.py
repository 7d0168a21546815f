"""How much room a token budget leaves for what a recall returns."""

from __future__ import annotations

from dataclasses import dataclass

CHARACTERS = 16
"""Characters of a text that no wordpiece stands for more of. In texts that say something it is four
or five; but a word of any length that the model does not know is one, and blanks are none."""


def cost_of(tokens: int, text: str) -> int:
    """What a text of so many wordpieces takes of a budget."""
    return max(tokens, len(text) // CHARACTERS)


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

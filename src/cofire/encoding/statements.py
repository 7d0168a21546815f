"""What a turn tells, apart from what it asks: the text that is embedded.

"I graduated in March. Any advice on a desk?" is remembered for the first sentence; the second
draws its vector towards desks (cosine to "When did I graduate?" 0.44 whole, 0.70 told). So the
sentences that ask are left out of what is embedded, unless there are no others. They stay in the
memory and in its words.
"""

from __future__ import annotations

import re

_ENDS = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？؟।])\s*|\n+")
_ASKS = ("?", "？", "؟")


def statements(text: str) -> str:
    """The sentences of `text` that do not end in a question mark; all of it if every one does."""
    if not any(mark in text for mark in _ASKS):
        return text
    parts = [part.strip() for part in _ENDS.split(text)]
    told = [part for part in parts if part and not part.rstrip("\"'”’)»]").endswith(_ASKS)]
    return " ".join(told) or text

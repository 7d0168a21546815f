"""Whether somebody asks something."""

from __future__ import annotations

import re

_ASKING = re.compile("[?\uff1f\u061f\u055e\u2e2e]")
_OPENS = re.compile(
    r"\W*(?:(?:who|whose|whom|what|when|where|which|why|how)(?:'s)?\b"
    r"(?!\s+(?:i|you|we|he|she|it|they|my|your|our|his|her|their|the|an?)\b)"
    r"|(?:tell|remind) (?:me|us)\b"
    r"|(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have)\s+"
    r"(?:i|you|we|he|she|it|they)\b)",
    re.I,
)


def opens_as_question(text: str) -> bool:
    """Whether it begins as English questions do, whatever its end."""
    return _OPENS.match(text) is not None


def asks(text: str) -> bool:
    """Whether a turn asks something: it has a question mark, or opens as English questions do."""
    return _ASKING.search(text) is not None or opens_as_question(text)

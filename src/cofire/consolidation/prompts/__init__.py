"""What language models are asked of turns. Records keep the name and version of the prompt that
made them ("distil@2")."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from cofire.models.prompt_files import Prompt, read_prompt

PLACES = ("mark", "turns")
"""The fence, and the fenced turns."""


@cache
def load(name: str) -> Prompt:
    """The prompt "distil" or "concepts"."""
    return read_prompt(files(__name__), name, PLACES)

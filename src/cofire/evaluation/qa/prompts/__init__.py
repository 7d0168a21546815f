"""What a judge is asked of an answer. Results keep the name and version of the prompt
("judge@1")."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from cofire.models.prompt_files import Prompt, read_prompt

PLACES = ("mark", "fenced")
"""The fence, and what stands in it."""

NAMES = (
    "judge",
    "judge-date",
    "judge-interval",
    "judge-update",
    "judge-preference",
    "judge-abstention",
)


@cache
def load(name: str) -> Prompt:
    """One of `NAMES`; all have the schema of "judge"."""
    return read_prompt(files(__name__), name, PLACES, schema="judge")

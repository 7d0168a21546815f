"""Deleting a whole space, confirmed as a caller who was asked would."""

from __future__ import annotations

from cofire import Memory
from cofire.errors import ConfirmationNeededError
from cofire.types import Deletion


def forget_all(memory: Memory, project: str | None = None) -> Deletion:
    """All of the memory's own space, or of the project's."""
    try:
        return memory.forget(everything=True, project=project)
    except ConfirmationNeededError as asked:
        return memory.forget(everything=True, project=project, confirm=asked.token)

"""Warnings of the library as notes for a model: only what it can do something about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

LOADING = "the embedding model is still being loaded"
"""What embedding fails with until then (`warming`)."""
WAITING = "The embedding model is still loading: by words now, by meaning in a moment"
BY_WORDS = "Without the embedding model: by words only"


def model_notes(warnings: Iterable[str]) -> Iterator[str]:
    """The warnings as notes. Why a model cannot be used is the operator's business; the log says
    it, and `memory_stats`."""
    for warning in dict.fromkeys(warnings):
        if LOADING in warning:
            yield WAITING
        elif "embedding" in warning and "failed" in warning:
            yield BY_WORDS
        else:
            yield warning

"""Vectors of what was remembered while the model could not be reached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cofire import Memory
from cofire.errors import ConfigurationError, EmbeddingError
from cofire.memories import Memories
from cofire.models import Embedded
from cofire.models.hashing import HashingEmbedder
from cofire.server.mcp.notes import LOADING
from cofire.server.warming import WarmingEmbedder


class Away(HashingEmbedder):
    """A model that cannot be reached at first."""

    here = False

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        if not self.here:
            raise EmbeddingError("nobody answers")
        return super().embed_passages(texts)


def test_what_is_missing_is_made_up_for_in_a_memory_that_is_one_of_many(tmp_path: Path) -> None:
    model = Away(64)
    with Memories.open(tmp_path / "memory.db", embedder=model) as memories:
        memory, other = memories.of("one", projects="shared"), memories.of("other")
        assert "nobody answers" in memory.remember(["A heron.", "An otter."]).warnings[0]
        memory.remember("A shared newt.", project="shared")
        other.remember("A toad.")
        with pytest.raises(EmbeddingError):
            memory.embed_missing()
        model.here = True
        assert memory.embed_missing() == 3
        assert memory.embed_missing() == 0
        assert all(space.pending == 0 for space in memory.stats().spaces)
        assert other.stats().spaces[0].pending == 1
        assert memory.recall("heron").warnings == ()


def test_without_vectors_there_are_none_to_make(tmp_path: Path) -> None:
    with (
        Memory.open(tmp_path / "memory.db", vectors=False) as memory,
        pytest.raises(ConfigurationError),
    ):
        memory.embed_missing()


def test_a_model_is_used_from_the_moment_on_when_it_is_loaded() -> None:
    model = Away(64)
    warming = WarmingEmbedder(model)
    assert (warming.state, warming.name, warming.dimension) == ("loading", model.name, 64)
    assert warming.count_tokens("a heron") == 2
    for ask in (lambda: warming.embed_query("x"), lambda: warming.embed_passages(["x"])):
        with pytest.raises(EmbeddingError, match=LOADING):
            ask()
    warming.warm()
    assert (warming.state, warming.failure) == ("failed", "nobody answers")
    model.here = True
    assert warming.embed_passages(["a heron"]).ok[0]  # tried again by every call

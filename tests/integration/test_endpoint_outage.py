"""An embedding server that is down: what it made stays usable by words, and is told apart from
what another model made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cofire import Memory
from cofire.errors import EmbeddingError, EmbeddingMismatchError
from cofire.models.embedder import Embedded
from cofire.settings import Settings, load_settings
from endpoint import Endpoint, fails, gives, vectors
from endpoint import endpoint as endpoint  # noqa: PLC0414 - a fixture
from fakes import StubEmbedder

DOWN = fails(500, "on fire", retry_after="0")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


def remote(endpoint: Endpoint, **given: Any) -> Settings:
    options: dict[str, Any] = {"embedder": "openai:embed-x", "embedding_timeout": 5, **given}
    return load_settings(embedding_base_url=endpoint.url, **options)


def test_a_known_store_opens_while_the_endpoint_is_down(path: Path, endpoint: Endpoint) -> None:
    settings = remote(endpoint)
    with Memory.open(path, settings=settings) as memory:
        memory.remember(["The kiln fires on Tuesday", "Soup for dinner"])
    endpoint.scripts = [DOWN]
    asked = len(endpoint.requests)
    with Memory.open(path, settings=settings) as memory:
        assert len(endpoint.requests) == asked  # opening asks nobody
        recall = memory.recall("kiln")
        assert [hit.content for hit in recall] == ["The kiln fires on Tuesday"]
        assert "on fire" in recall.warnings[0]
        receipt = memory.remember("The kiln is hot")
        assert "on fire" in receipt.warnings[0]
        assert memory.update(receipt.id, content="The kiln is cold").version == 2
        assert memory.list().items[0].id == receipt.id
        endpoint.scripts = [vectors]
        assert memory.recall("kiln").warnings == ()
        assert memory.reembed() == 1
        assert memory.check() == []


def test_a_new_store_goes_by_words_while_the_endpoint_is_down(
    path: Path, endpoint: Endpoint
) -> None:
    endpoint.scripts = [DOWN]
    with Memory.open(path, settings=remote(endpoint)) as memory:
        receipt = memory.remember("The kiln fires on Tuesday")
        assert "on fire" in receipt.warnings[0]
        recall = memory.recall("kiln")
        assert recall.ids == (receipt.id,)
        assert "on fire" in recall.warnings[0]
        assert memory.count_tokens("the kiln") == 3
    with Memory.open(path, settings=remote(endpoint)) as memory:  # still no model in the store
        assert memory.recall("kiln").ids == (receipt.id,)
        endpoint.scripts = [vectors]
        assert memory.reembed() == 1
        assert memory.recall("kiln").warnings == ()
        assert memory.stats().spaces[0].embedding_model == "openai:embed-x:3"


@pytest.mark.parametrize(
    "other", [{"embedder": "openai:embed-y"}, {"embedding_passage_prefix": "passage: "}], ids=str
)
def test_another_model_is_refused_even_while_the_endpoint_is_down(
    path: Path, endpoint: Endpoint, other: dict[str, Any]
) -> None:
    with Memory.open(path, settings=remote(endpoint)) as memory:
        memory.remember("The kiln fires on Tuesday")
    endpoint.scripts = [DOWN]
    with pytest.raises(EmbeddingMismatchError, match=r"embed-x:3 .*on fire.*Run `cofire reembed`"):
        Memory.open(path, settings=remote(endpoint, **other))
    with Memory.open(path, settings=remote(endpoint, **other), vectors=False) as memory:
        assert len(memory.recall("kiln")) == 1


def test_a_server_that_changed_its_model_is_found_out_before_anything_is_stored(
    path: Path, endpoint: Endpoint
) -> None:
    with Memory.open(path, settings=remote(endpoint)) as memory:
        memory.remember("The kiln fires on Tuesday")
    endpoint.scripts = [gives([1, 2, 3, 4, 5])]
    with Memory.open(path, settings=remote(endpoint)) as memory:
        for call in (lambda: memory.recall("kiln"), lambda: memory.remember("The kiln is hot")):
            with pytest.raises(EmbeddingMismatchError, match="another model answers to this name"):
                call()
        assert memory.stats().items == 1
    with Memory.open(path, settings=remote(endpoint), vectors=False) as memory:
        assert memory.reembed() == 1
        assert memory.stats().spaces[0].dimension == 5
        assert memory.check() == []


class Shy(StubEmbedder):
    """Does not tell its dimension while it is down."""

    down = False

    @property
    def dimension(self) -> int:
        if self.down:
            raise EmbeddingError("the endpoint is down")
        return 8

    @dimension.setter
    def dimension(self, value: int) -> None:
        """Always 8."""

    def embed_passages(self, texts: Any, /) -> Embedded:
        if self.down:
            raise EmbeddingError("the endpoint is down")
        return super().embed_passages(texts)


def test_an_embedder_of_ones_own_may_be_down_too(path: Path) -> None:
    embedder = Shy(name="A")
    with Memory.open(path, embedder=embedder) as memory:
        memory.remember("The kiln fires on Tuesday")
    embedder.down = True
    with Memory.open(path, embedder=embedder) as memory:
        recall = memory.recall("kiln")
        assert len(recall) == 1
        assert "the endpoint is down" in recall.warnings[0]
        assert "the endpoint is down" in memory.remember("The kiln is hot").warnings[0]
        embedder.down = False
        assert memory.recall("kiln").warnings == ()
        assert memory.reembed() == 1
        assert memory.check() == []
    other = Shy(name="B")
    other.down = True
    with pytest.raises(EmbeddingMismatchError, match=r"made by A .* now is B"):
        Memory.open(path, embedder=other)

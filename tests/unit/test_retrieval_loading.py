"""From the store to the active graph: sidecars, the projection, other processes, restored files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from cofire.errors import EmbeddingError, EmbeddingMismatchError
from cofire.graph.active import ActiveGraph
from cofire.graph.vectors import PROJECTED, fit_projection
from cofire.memory import Memory
from cofire.models import Embedded, Vector
from cofire.models.hashing import HashingEmbedder
from cofire.retrieval import loading
from cofire.retrieval.loading import Graphs
from cofire.store import Store, open_store
from cofire.store.records import Changes, SpaceInfo
from cofire.types import SpaceRef

WORDS = "kiln glaze Bremen ferry Ines pottery lamp cue sister theatre".split()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sidecars and projections for stores that a test can make quickly."""
    monkeypatch.setattr(loading, "SIDECAR_FROM", 20)
    monkeypatch.setattr(loading, "COARSE_FROM", 150)


def opened(path: Path) -> Memory:
    return Memory.open(path, embedder=HashingEmbedder(128))


def texts(count: int, first: int = 0) -> list[str]:
    return [
        f"{WORDS[n % 10]} beside {WORDS[n // 10 % 10]}, {WORDS[n // 7 % 10]} number {n}"
        for n in range(first, first + count)
    ]


def sidecar(path: Path) -> Path:
    found = list(path.parent.glob(f"{path.name}-graph-*"))
    assert len(found) == 1
    return found[0]


def since_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The revisions from which changes are asked for from now on: 0 is everything."""
    asked: list[int] = []
    changes = Store.changes

    def counted(self: Store, space: SpaceInfo, since: int) -> Changes:
        asked.append(since)
        return changes(self, space, since)

    monkeypatch.setattr(Store, "changes", counted)
    return asked


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "m.db"
    with opened(place) as memory:
        memory.remember(texts(60))
        memory.recall("kiln")
    yield place


def answers(path: Path) -> list[tuple[str, float]]:
    with opened(path) as memory:
        return [(hit.id, hit.score) for hit in memory.recall("kiln and the ferry", 20)]


def test_opening_reads_the_sidecar_and_only_what_is_newer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sidecar(path).exists()
    asked = since_of(monkeypatch)
    from_sidecar = answers(path)
    assert asked
    assert 0 not in asked
    sidecar(path).unlink()
    asked.clear()
    assert answers(path) == from_sidecar
    assert 0 in asked


def test_a_few_new_memories_do_not_make_the_sidecar_be_written_again(path: Path) -> None:
    written = sidecar(path).stat().st_mtime_ns
    with opened(path) as memory:
        memory.remember("one more")
        memory.recall("kiln")
    assert sidecar(path).stat().st_mtime_ns == written
    with opened(path) as memory:
        memory.remember(texts(20, 100))
        memory.recall("kiln")
    assert sidecar(path).stat().st_mtime_ns != written


def test_what_was_written_after_the_sidecar_is_found(path: Path) -> None:
    with opened(path) as memory:
        new = memory.remember("A zeppelin over the harbour").ids[0]
    with opened(path) as memory:
        assert memory.recall("zeppelin", 1).ids == (new,)


def test_a_damaged_sidecar_is_not_trusted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers(path)
    file = sidecar(path)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content))
    asked = since_of(monkeypatch)
    assert answers(path) == expected
    assert 0 in asked


def test_forgetting_deletes_the_sidecar(path: Path) -> None:
    with opened(path) as memory:
        memory.forget([memory.recall("kiln", 1).ids[0]])
        assert not list(path.parent.glob(f"{path.name}-graph-*"))


def test_a_restored_backup_makes_every_sidecar_old(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The revision leaps ahead of all that was seen, so what the sidecar holds from before is never
    mixed with what the backup holds, however much is written after."""
    with opened(path) as memory:
        memory.backup(tmp_path / "backup")
        memory.remember(texts(30, 200))
        memory.recall("kiln")
    kept, place = tmp_path / "kept", sidecar(path)
    shutil.copy(place, kept)
    with opened(path) as memory:
        memory.restore(tmp_path / "backup")
        memory.remember([f"after the restore {n}" for n in range(70)])
    # A process that never closed properly may write its old sidecar only now.
    shutil.copy(kept, place)
    asked = since_of(monkeypatch)
    with opened(path) as memory:
        found = memory.recall("number 215", 40)
        assert not any("number 215" in hit.content for hit in found)
        assert memory.recall("after the restore 66", 1)[0].content == "after the restore 66"
        assert memory.check() == []
    assert asked


def test_an_older_copy_put_in_the_stores_place_by_hand_is_noticed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as memory:
        memory.backup(tmp_path / "copy")
        memory.remember(texts(30, 200))
        memory.recall("kiln")  # its sidecar, written on closing, holds these
    shutil.copy(tmp_path / "copy", path)
    for leftover in ("-wal", "-shm"):
        Path(f"{path}{leftover}").unlink(missing_ok=True)
    with opened(path) as memory:
        for number in range(40):  # past the revision of the sidecar, with the same numbers
            memory.remember(f"written anew {number}")
    asked = since_of(monkeypatch)
    with opened(path) as memory:
        assert memory.recall("written anew 7", 1)[0].content == "written anew 7"
        assert memory.check() == []
    assert 0 in asked


@contextmanager
def graph_of(path: Path) -> Iterator[ActiveGraph]:
    """The active graph as a process of its own would have it."""
    with open_store(path) as store:
        space = store.space(SpaceRef(identity="default"), create=False)
        assert space is not None
        yield Graphs(store, HashingEmbedder(128), 1 << 30).get(space)


def test_the_projection_is_fitted_once_and_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as memory:
        memory.remember(texts(200, 300))
    with graph_of(path) as first:
        assert first.projection is not None
        assert first.projection.matrix.shape == (PROJECTED, 128)
    monkeypatch.setattr(loading, "fit_projection", _other_projection)
    with graph_of(path) as second:
        assert second.projection is not None
        assert np.array_equal(first.projection.matrix, second.projection.matrix)
        assert second.projection.version == first.projection.version


def test_a_projection_that_another_process_fitted_first_is_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as memory:
        memory.remember(texts(200, 300))

    def overtaken(vectors: np.ndarray) -> np.ndarray:
        """While this process fits, another keeps its own projection."""
        monkeypatch.setattr(loading, "fit_projection", _other_projection)
        with graph_of(path):
            pass
        return fit_projection(vectors)

    monkeypatch.setattr(loading, "fit_projection", overtaken)
    with graph_of(path) as graph:
        assert graph.projection is not None
        assert np.array_equal(graph.projection.matrix, np.eye(128, dtype=np.float32)[:PROJECTED])


def _other_projection(vectors: np.ndarray) -> np.ndarray:
    return np.eye(vectors.shape[1], dtype=np.float32)[:PROJECTED]


def test_two_memories_see_each_others_writes(path: Path) -> None:
    with opened(path) as one, opened(path) as other:
        other.recall("kiln")
        new = one.remember("A zeppelin over the harbour").ids[0]
        assert other.recall("zeppelin", 1).ids == (new,)
        one.forget([new])
        assert new not in other.recall("zeppelin", 5).ids


class AnsweringLater:
    """A server of unknown dimension that refuses every question until it is `up`."""

    max_tokens = 512

    def __init__(self, dimension: int) -> None:
        self._inner = HashingEmbedder(dimension)
        self.up = False

    def _asked(self) -> HashingEmbedder:
        if not self.up:
            raise EmbeddingError("the key was refused")
        return self._inner

    @property
    def name(self) -> str:
        return self._asked().name

    @property
    def dimension(self) -> int:
        return self._asked().dimension

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        return self._asked().embed_passages(texts)

    def embed_query(self, text: str, /) -> tuple[Vector, bool]:
        return self._asked().embed_query(text)

    def count_tokens(self, text: str, /) -> int:
        return self._inner.count_tokens(text)

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return self._inner.token_offsets(text)

    def close(self) -> None:
        pass


def test_a_model_that_cannot_tell_its_dimension_leaves_the_words(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", vectors=False) as memory:
        memory.remember(texts(30))
    embedder = AnsweringLater(128)
    with Memory.open(tmp_path / "m.db", embedder=embedder) as memory:
        recall = memory.recall("kiln", 3)
        assert "kiln" in recall[0].content
        assert any("the key was refused" in warning for warning in recall.warnings)
        memory.remember("The kiln has cooled down.")
        assert len(memory.recall("cooled", 3)) == 1
        embedder.up = True
        assert memory.recall("cooled", 3).warnings == ()
        memory.remember("A ferry was late.")
        late = memory.recall("ferry late", 3, explain=True)
        assert late[0].content == "A ferry was late."
        assert late.trace is not None
        assert "dense" in late.trace.items[0].anchors


def test_vectors_are_not_compared_with_those_of_a_model_that_could_not_be_asked(
    path: Path,
) -> None:
    embedder = AnsweringLater(64)
    with open_store(path) as store:
        space = store.space(SpaceRef(identity="default"), create=False)
        assert space is not None
        graphs = Graphs(store, embedder, 1 << 30)
        graph = graphs.get(space)
        assert graph.dimension == 128
        embedder.up = True
        with pytest.raises(EmbeddingMismatchError):
            graphs.fitting([space], [graph], 64)

"""One memory used by several threads while it moves to another model: nobody notices."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofire import AsyncMemory, Memory
from cofire.errors import CofireError, EmbeddingError, InputError
from cofire.models.embedder import Embedded
from fakes import StubEmbedder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


class Others:
    """Threads that do something over and over; what they met is kept."""

    def __init__(self, *verbs: Callable[[], object]) -> None:
        self.errors: list[BaseException] = []
        self.done = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(verb,)) for verb in verbs]

    def _run(self, verb: Callable[[], object]) -> None:
        while not self._stop.is_set():
            try:
                verb()
            except Exception as exc:  # noqa: BLE001 - whatever it is, the test is to show it
                self.errors.append(exc)
                return
            self.done += 1

    def __enter__(self) -> Others:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in self._threads)


def test_threads_go_on_while_the_memory_is_reembedded(path: Path, tmp_path: Path) -> None:
    note = tmp_path / "notes" / "a.md"
    note.parent.mkdir()
    rounds = iter(range(100_000))

    def edit_and_import() -> None:
        note.write_text(f"The boat was painted {next(rounds)} times.")
        memory.import_(note.parent)

    with Memory.open(path, projects="p", embedder="hashing:64") as memory:
        memory.remember([f"boat {number} in the harbour" for number in range(600)])
        memory.remember("a shared boat", project="p")
        changed = memory.remember("the boat to change").id
        verbs = (
            lambda: memory.recall("boat in the harbour"),
            lambda: memory.remember("another boat"),
            lambda: memory.remember("another shared boat", project="p"),
            lambda: memory.update(changed, content=f"boat {time.monotonic()}"),
            lambda: memory.candidates("boat"),
            edit_and_import,
        )
        with Others(*verbs) as others:
            for name in ("hashing:32", "hashing:64", "hashing:32"):
                before = others.done
                assert memory.reembed(name) > 600
                while others.done < before + 20 and not others.errors:
                    time.sleep(0.005)
        assert others.errors == []
        assert [(space.dimension, space.pending) for space in memory.stats().spaces] == [
            (32, 0)
        ] * 2
        assert memory.recall("boat", profile="dense").warnings == ()
        assert memory.check() == []


def test_no_vector_of_the_former_model_is_kept_as_the_others(path: Path) -> None:
    # Both have the same dimension, so that nothing but the model's name tells their vectors apart.
    axis = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    former = StubEmbedder(axis, dimension=2, name="A")
    turned = StubEmbedder(axis, dimension=2, name="B", reverse=True)
    with Memory.open(path, embedder=former) as memory:
        memory.remember("a")
        with Others(lambda: memory.remember("a"), lambda: memory.recall("a")) as others:
            memory.reembed(turned)
            wanted = others.done + 20
            while others.done < wanted and not others.errors:
                time.sleep(0.001)
        assert others.errors == []
        space = memory._workings.spaces.own
        numbers = [item.number & 0xFFFFFFFF for item in memory.list(limit=10_000)]
        vectors = memory._workings.store.vectors(space, numbers)
        assert len(vectors) == len(numbers)
        found = {tuple(np.frombuffer(one, "<f2").tolist()) for one in vectors.values()}
        assert found == {(0.0, 1.0)}


@pytest.mark.parametrize("moving", [True, False])
def test_what_changes_while_it_is_embedded_gets_the_vector_of_its_new_text(
    path: Path, *, moving: bool
) -> None:
    class Slow(StubEmbedder):
        """While it embeds the old text, somebody else changes it."""

        def embed_passages(self, texts: Sequence[str], /) -> Embedded:
            if "old" in texts:
                other.update(changed, content="new")
            return super().embed_passages(texts)

    axis = {"old": [1.0, 0.0], "new": [0.0, 1.0], "kept": [0.6, 0.8]}
    slow = Slow(axis, dimension=2, name="B")
    former = StubEmbedder(axis, dimension=2, name="A" if moving else "B", reverse=moving)
    with Memory.open(path, embedder=former, vectors=moving) as other:
        changed, kept = other.remember(["old", "kept"]).ids
        with Memory.open(path, embedder=slow, vectors=not moving) as memory:
            assert memory.reembed(slow) == 2
            assert memory.stats().spaces[0].pending == 0
            located = [memory._workings.spaces.locate(id) for id in (changed, kept)]
            vectors = memory._workings.store.vectors(
                located[0][0], [number for _, number in located]
            )
            found = [np.frombuffer(vectors[number], "<f2").tolist() for _, number in located]
            assert found[0] == [0.0, 1.0]
            assert found[1] == pytest.approx([0.6, 0.8], abs=1e-3)
            assert slow.calls.count("old") == slow.calls.count("new") == 1
            assert memory.check() == []


def test_a_reembedding_that_fails_leaves_the_others_alone(path: Path) -> None:
    class Down(StubEmbedder):
        def embed_passages(self, texts: object, /) -> Embedded:
            raise EmbeddingError("the endpoint is down")

    down = Down(name="B")
    with Memory.open(path, embedder=StubEmbedder(name="A")) as memory:
        memory.remember(["a boat", "a dock"])
        with Others(lambda: memory.recall("boat"), lambda: memory.remember("x")) as others:
            for _ in range(5):
                with pytest.raises(EmbeddingError):
                    memory.reembed(down)
        assert others.errors == []
        assert down.closed == 5
        assert memory.stats().spaces[0].embedding_model == "A"
        assert memory.check() == []


def test_two_reembeddings_at_once_end_with_one_of_them(path: Path) -> None:
    with Memory.open(path, embedder="hashing:16") as memory:
        memory.remember([f"boat {number}" for number in range(300)])
        errors: list[CofireError] = []

        def move(name: str) -> None:
            try:
                memory.reembed(name)
            except CofireError as exc:
                errors.append(exc)

        threads = [threading.Thread(target=move, args=(f"hashing:{n}",)) for n in (8, 24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        assert memory.recall("boat", profile="dense").warnings == ()
        assert memory.remember("one more boat").warnings == ()
        assert memory.check() == []
        assert memory.stats().spaces[0].dimension in {8, 24}


def test_a_hook_that_reembeds_is_refused_instead_of_hanging(path: Path) -> None:
    def hook(text: str) -> str:
        if text == "now":
            memory.reembed("hashing:8")
        return text

    with Memory.open(path, embedder="hashing:16", redact=hook) as memory:
        with pytest.raises(InputError, match="from within another call"):
            memory.remember("now")
        assert memory.reembed("hashing:8") == 0


async def _together(path: Path) -> None:
    async with await AsyncMemory.open(path, embedder="hashing:16") as memory:
        await memory.remember([f"boat {number}" for number in range(300)])
        calls: list[Coroutine[Any, Any, object]]
        calls = [memory.recall("boat") for _ in range(20)] + [memory.reembed("hashing:8")]
        calls += [memory.remember(f"dock {number}") for number in range(20)]
        await asyncio.gather(*calls)
        assert await memory.check() == []


def test_reembedding_beside_other_coroutines(path: Path) -> None:
    asyncio.run(_together(path))

"""Kind g of the case bank: another model, bad vectors, few among many; and i-02, i-06, where an
embedder is slow or down."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cofire import AsyncMemory, Memory
from cofire.errors import (
    CofireError,
    ConfigurationError,
    EmbeddingError,
    EmbeddingMismatchError,
    MissingExtraError,
)
from cofire.models.minilm import MiniLM
from cofire.retrieval.profiles import PROFILES
from cofire.types import Receipt
from fakes import FailingEmbedder, LyingEmbedder, SlowEmbedder, StoppingEmbedder, StubEmbedder

KILN = ["The kiln fires on Tuesday", "The kiln is electric", "Bring the bowls on Monday"]
OTHERS: dict[str, Callable[[], StubEmbedder]] = {
    "name": lambda: StubEmbedder(name="B"),
    "dimension": lambda: StubEmbedder(name="A", dimension=5),
    "both": lambda: StubEmbedder(name="B", dimension=16),
    "axes": lambda: StubEmbedder(name="B", reverse=True),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


def made_with_a(path: Path, texts: list[str] | None = None) -> None:
    with Memory.open(path, embedder=StubEmbedder(name="A")) as memory:
        memory.remember(texts or KILN)


# g-01, g-02: another model


@pytest.mark.parametrize("other", OTHERS)
def test_another_model_is_refused_with_the_way_out(path: Path, other: str) -> None:
    made_with_a(path)
    before = path.read_bytes()
    model = OTHERS[other]()
    with pytest.raises(EmbeddingMismatchError) as caught:
        Memory.open(path, embedder=model)
    told = str(caught.value)
    for part in ("A (8 dimensions)", f"{model.name} ({model.dimension})", "cofire reembed"):
        assert part in told
    assert path.read_bytes() == before  # nothing is deleted
    with Memory.open(path, embedder=StubEmbedder(name="A")) as memory:
        assert len(memory.recall("kiln", profile="dense")) == 3


@pytest.mark.parametrize("other", OTHERS)
def test_words_find_meanwhile_and_reembedding_mends_it(path: Path, other: str) -> None:
    made_with_a(path)
    with Memory.open(path, embedder=OTHERS[other](), vectors=False) as memory:
        recall = memory.recall("kiln")
        assert {hit.content for hit in recall} == set(KILN[:2])
        assert any("vectors are off" in warning for warning in recall.warnings)
        memory.remember("The kiln is hot")
        assert len(memory.recall("kiln")) == 3
        assert memory.stats().spaces[0].pending == 1
        told: list[tuple[int, int | None]] = []
        assert memory.reembed(progress=lambda done, total: told.append((done, total))) == 4
        assert told[-1][0] == 4
        assert memory.recall("kiln").warnings == ()
        best = memory.recall("The kiln fires on Tuesday", profile="dense")[0]
        assert (best.content, round(best.score, 2)) == (KILN[0], 1.0)
        assert memory.reembed() == 0
        assert memory.check() == []
    with Memory.open(path, embedder=OTHERS[other]()) as memory:
        assert len(memory.recall("kiln", profile="dense")) == 4
        model = memory.stats().spaces[0].embedding_model
        assert model == OTHERS[other]().name
    with pytest.raises(EmbeddingMismatchError):
        Memory.open(path, embedder=StubEmbedder(name="A"))


def test_no_question_vector_outlives_its_model(path: Path) -> None:
    axes = {"alpha": [1, 0, 0, 0], "beta": [0, 0, 0, 1]}
    forward = StubEmbedder(axes, dimension=4, name="A")
    with Memory.open(path, embedder=forward) as memory:
        memory.remember(["alpha", "beta"])
        for _ in range(2):
            assert memory.recall("alpha", 1, profile="dense")[0].score == 1.0
        memory.reembed(StubEmbedder(axes, dimension=4, name="B", reverse=True))
        for query in axes:
            assert [hit.content for hit in memory.recall(query, 1, profile="dense")] == [query]
            assert memory.recall(query, 1, profile="dense")[0].score == 1.0
        assert forward.closed == 1


def test_who_still_has_the_former_model_open_is_told(path: Path) -> None:
    made_with_a(path)
    with (
        Memory.open(path, embedder=StubEmbedder(name="A")) as late,
        Memory.open(path, embedder=StubEmbedder(name="B"), vectors=False) as mover,
    ):
        assert late.recall("kiln")
        id = late.list().items[0].id
        mover.reembed()
        for attempt in (
            lambda: late.recall("kiln"),
            lambda: late.remember("one more"),
            lambda: late.update(id, title="x"),
        ):
            with pytest.raises(EmbeddingMismatchError, match=r"(?i)open .* again"):
                attempt()
        assert mover.stats().items == 3
        assert mover.check() == []


def test_an_interrupted_reembedding_goes_on(path: Path) -> None:
    made_with_a(path, [f"note number {index}" for index in range(1000)])
    model = StoppingEmbedder(name="B")
    model.budget = 600
    with Memory.open(path, embedder=model, vectors=False) as memory:
        with pytest.raises(EmbeddingError, match="quota"):
            memory.reembed()
        assert len(memory.recall("number", k=10)) == 10
    with Memory.open(path, embedder=StubEmbedder(name="A")) as memory:  # still in use
        assert len(memory.recall("note number 7", profile="dense", k=10)) == 10
        memory.remember("written meanwhile")
        assert memory.check() == []
    model = StoppingEmbedder(name="B")
    with Memory.open(path, embedder=model, vectors=False) as memory:
        made = memory.reembed()
        assert 1001 - 600 <= made <= 1001 - 256
        assert len(model.calls) == made
        assert (memory.stats().spaces[0].pending, memory.check()) == (0, [])
        assert memory.recall("written meanwhile", 1, profile="dense")[0].score > 0.9


def test_every_space_moves_and_none_mixes(path: Path) -> None:
    for user in ("ada", "bo"):
        with Memory.open(path, user=user, projects=["p"], embedder=StubEmbedder(name="A")) as one:
            one.remember(f"{user} has a kiln")
            one.remember(f"{user} shares a kiln", project="p")
    with Memory.open(path, user="ada", embedder=StubEmbedder(name="B"), vectors=False) as memory:
        assert memory.reembed() == 4
    for user in ("ada", "bo"):
        with Memory.open(path, user=user, projects=["p"], embedder=StubEmbedder(name="B")) as one:
            assert len(one.recall("kiln", profile="dense")) == 3
            assert one.check() == []


# g-03: vectors that are none

INF, NAN = math.inf, math.nan
BAD: dict[str, list[float]] = {
    "zero one": [0, 0, 0], "nan one": [NAN, 0, 1], "inf one": [INF, 0, 0],
    "minus inf": [0, -INF, INF], "tiny": [1e-30, 0, 0],
}  # fmt: skip
GOOD: dict[str, list[float]] = {"good": [1, 0, 0], "near": [0.9, 0.1, 0], "huge": [1e30, -1e30, 0]}


@pytest.mark.parametrize("kind", [StubEmbedder, LyingEmbedder])
def test_bad_vectors_are_never_compared(path: Path, kind: type[StubEmbedder]) -> None:
    with Memory.open(path, embedder=kind(BAD | GOOD, dimension=3)) as memory:
        receipt = memory.remember([*BAD, *GOOD])
        assert any("5 of 8 texts got no usable vector" in warning for warning in receipt.warnings)
        assert memory.stats().spaces[0].pending == len(BAD)
        embedded = [item.embedded for item in memory.list(newest_first=False)]
        assert embedded == [False] * len(BAD) + [True] * len(GOOD)
        top = memory.recall("good", k=2, profile="dense")
        assert [hit.content for hit in top] == ["good", "near"]
        assert {hit.content for hit in memory.recall("good", k=50, profile="dense")} == set(GOOD)
        for query in BAD:
            for profile in ("cofire", "dense", "lexical"):
                recall = memory.recall(query, profile=profile, explain=True)
                json.dumps([hit.score for hit in recall], allow_nan=False)
                if profile != "dense":
                    assert recall[0].content == query
                if profile != "lexical":
                    assert any("words only" in warning for warning in recall.warnings)
        assert memory.check() == []
        assert memory.reembed() == 0  # tried again, and again nothing usable
        assert memory.similarity("good", ["near"]) > 0.9


def test_a_bad_vector_is_mended_by_a_better_model(path: Path) -> None:
    with Memory.open(path, embedder=StubEmbedder(BAD, dimension=3)) as memory:
        memory.remember(list(BAD))
    with Memory.open(path, embedder=StubEmbedder(dimension=3)) as memory:
        assert memory.reembed() == len(BAD)
        assert memory.stats().spaces[0].pending == 0
        assert len(memory.recall("zero one", k=9, profile="dense")) == len(BAD)


@pytest.mark.parametrize("width", [2, 0])
def test_vectors_of_another_length_than_promised(path: Path, width: int) -> None:
    embedder = LyingEmbedder(GOOD, width=width)
    with Memory.open(path, embedder=embedder) as memory:
        receipt = memory.remember("good")
        assert "shape" in receipt.warnings[0]
        recall = memory.recall("good")
        assert recall.ids == (receipt.id,)
        assert "shape" in recall.warnings[0]
        with pytest.raises(EmbeddingError, match="shape"):
            memory.reembed()
        assert memory.check() == []


def test_an_embedder_may_raise_anything(path: Path) -> None:
    class Broken(StubEmbedder):
        def raw(self, texts: object) -> object:  # type: ignore[override]
            raise RuntimeError("cuda went away")

    with Memory.open(path, embedder=Broken()) as memory:
        receipt = memory.remember("kept all the same")
        assert "cuda went away" in receipt.warnings[0]
        assert memory.recall("kept").ids == (receipt.id,)
        with pytest.raises(EmbeddingError, match="cuda went away"):
            memory.reembed()


# g-05: few among many


def test_a_small_space_and_a_small_tag_are_found_among_many(path: Path) -> None:
    with Memory.open(path, tenant="big", embedder="hashing:64") as big:
        big.remember([f"noise {index}" for index in range(5000)])
        big.remember("needle", tags=["rare"], speaker="Ada", metadata={"n": 1})
        for profile in ("dense", "cofire"):
            for filters in ({"tags": "rare"}, {"speakers": "Ada"}, {"metadata": {"n": 1}}):
                found = big.recall("noise 17", 5, profile=profile, **filters)
                assert [hit.content for hit in found] == ["needle"]
    with Memory.open(path, tenant="small", embedder="hashing:64") as small:
        small.remember("needle")
        for profile in ("dense", "cofire"):
            found = small.recall("noise 17", 5, profile=profile)
            assert [hit.content for hit in found] == ["needle"]


@pytest.mark.parametrize("k", [10, 100, 5_000, 10**9])
@pytest.mark.parametrize("profile", ["dense", "cofire", "lexical"])
def test_k_larger_than_everything(path: Path, k: int, profile: str) -> None:
    with Memory.open(path, embedder="hashing:64") as memory:
        memory.remember([f"noise {index}" for index in range(100)])
        assert len(memory.recall("noise", k, profile=profile)) == min(k, 100)


@pytest.mark.parametrize("name", ["dense", "cofire", "lexical"])
def test_k_beyond_the_depth_of_a_profile(path: Path, name: str) -> None:
    profile = replace(PROFILES[name], cutoff=None)
    with Memory.open(path, embedder="hashing:64") as memory:
        memory.remember([f"noise {index}" for index in range(1000)])
        assert len(memory.recall("noise", 1000, profile=profile)) == 1000


# i-06: the embedder is down when something is written


@pytest.mark.parametrize(
    "error",
    [
        EmbeddingError("the endpoint is down"),
        ConfigurationError("the endpoint is down and refuses the key; set another"),
        MissingExtraError("the endpoint is down; pip install it"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_could_not_be_embedded_is_found_by_its_words(path: Path, error: CofireError) -> None:
    embedder = FailingEmbedder()
    embedder.error = error
    with Memory.open(path, embedder=embedder) as memory:
        receipt = memory.remember(["first thing", "second thing"])
        assert receipt.created == (True, True)
        assert "the endpoint is down" in receipt.warnings[0]
        recall = memory.recall("first")
        assert recall.ids == (receipt.ids[0],)
        assert "the endpoint is down" in recall.warnings[0]
        assert memory.update(receipt.ids[1], content="second thing changed").version == 2
        assert not memory.get(receipt.ids[0]).embedded
        with pytest.raises(type(error)):
            memory.reembed()
        embedder.failing = False
        assert memory.reembed() == 2
        assert memory.get(receipt.ids[0]).embedded
        assert set(memory.recall("thing", profile="dense").ids) == set(receipt.ids)
        assert (memory.recall("first").warnings, memory.check()) == ((), [])


def test_a_missing_model_is_told_once_and_words_go_on(path: Path) -> None:
    with Memory.open(path, embedder=MiniLM(weights=path / "missing.onnx")) as memory:
        receipt = memory.remember(["first thing", "the first text " * 300])
        assert receipt.created == (True, True)
        (warning,) = receipt.warnings
        assert "cannot be read" in warning
        assert "pip install" in warning
        assert "cofire reembed" in warning
        recall = memory.recall("first thing")
        assert recall.ids[0] == receipt.ids[0]
        assert "pip install" in recall.warnings[0]
        assert memory.stats().spaces[0].pending > 2
        assert memory.check() == []


def test_an_import_says_what_it_could_not_embed(path: Path, tmp_path: Path) -> None:
    embedder = FailingEmbedder()
    embedder.error = ConfigurationError("the key is refused; set another")
    (tmp_path / "notes").mkdir()
    note = tmp_path / "notes" / "a.md"
    lines = tmp_path / "m.jsonl"
    lines.write_text('{"content": "a message"}\n')
    note.write_text("a note")
    with Memory.open(path, embedder=embedder) as memory:
        for source in (note.parent, lines):
            report = memory.import_(source)
            assert (report.imported, report.noted) == (1, 1)
            assert "the key is refused; set another" in str(report.problems[0])
        note.write_text("another note")
        report = memory.import_(note.parent)
        assert (report.updated, report.noted) == (1, 1)
        memory.export(tmp_path / "all.jsonl")
    with Memory.open(tmp_path / "other.db", embedder=embedder) as memory:
        report = memory.import_(tmp_path / "all.jsonl")
        assert (report.imported, report.noted) == (2, 1)
        assert len(memory.recall("note message")) == 2


def test_a_model_that_cannot_tell_its_dimension_yet(path: Path) -> None:
    class Shy(FailingEmbedder):
        """Learns its dimension, and with it its name, from the first answer."""

        @property
        def name(self) -> str:
            return f"shy:{self.dimension}"

        @name.setter
        def name(self, value: str) -> None: ...

        @property
        def dimension(self) -> int:
            if self.failing:
                raise self.error
            return 8

        @dimension.setter
        def dimension(self, value: int) -> None: ...

    embedder = Shy()
    embedder.error = ConfigurationError("HTTP 401: set the key")
    with Memory.open(path, embedder=embedder) as memory:
        receipt = memory.remember("first thing")
        assert "set the key" in receipt.warnings[0]
        embedder.failing = False
        assert memory.reembed() == 1
        assert memory.recall("first", profile="dense").ids == receipt.ids


def test_another_model_is_never_only_a_warning(path: Path) -> None:
    embedder = FailingEmbedder()
    embedder.error = EmbeddingMismatchError("another model answers there")
    with Memory.open(path, embedder=embedder) as memory:
        for call in (lambda: memory.remember("x"), lambda: memory.recall("x")):
            with pytest.raises(EmbeddingMismatchError):
                call()
        assert memory.stats().items == 0


# i-02: a slow embedder stops nobody else


def test_the_event_loop_runs_while_embedding_blocks(path: Path) -> None:
    embedder = SlowEmbedder()

    async def main() -> tuple[float, list[Receipt], int]:
        worst = 0.0
        done = asyncio.Event()

        async def watch() -> None:
            nonlocal worst
            while not done.is_set():
                asked = time.perf_counter()
                await asyncio.sleep(0.005)
                worst = max(worst, time.perf_counter() - asked - 0.005)

        async with await AsyncMemory.open(path, embedder=embedder) as memory:
            watcher = asyncio.create_task(watch())
            started = time.perf_counter()
            adding = [asyncio.create_task(memory.remember("slow one")) for _ in range(4)]
            await asyncio.sleep(0.1)
            # What needs no embedding answers meanwhile.
            assert (await memory.stats()).items == 0
            assert len(await memory.list()) == 0
            quick = time.perf_counter() - started
            assert quick < embedder.delay
            receipts = await asyncio.gather(*adding)
            assert time.perf_counter() - started < 4 * embedder.delay
            done.set()
            await watcher
            items = (await memory.stats()).items
        return worst, list(receipts), items

    worst, receipts, items = asyncio.run(main())
    assert worst < 0.2
    assert len({receipt.id for receipt in receipts}) == items == 4
    assert embedder.most == 4


def test_a_cancelled_caller_leaves_no_stuck_worker(path: Path) -> None:
    embedder = SlowEmbedder()
    embedder.delay = 0.1

    async def main() -> int:
        async with await AsyncMemory.open(path, embedder=embedder) as memory:
            for _ in range(3):
                tasks = [asyncio.create_task(memory.remember("slow one")) for _ in range(12)]
                await asyncio.sleep(0.05)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            last = await asyncio.wait_for(memory.remember("after all"), timeout=20)
            assert last.created == (True,)
            assert [hit.id for hit in await memory.recall("after", 1)] == [last.id]
            return (await memory.stats()).items

    assert asyncio.run(main()) >= 1
    assert embedder.running == 0
    with Memory.open(path, embedder=StubEmbedder()) as memory:
        assert memory.check() == []

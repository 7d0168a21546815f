"""One embedder for all its users in a process: shared, closed by the last, and emptied by any."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cofire import Memory
from cofire.models import make_embedder
from cofire.models.caching import CachingEmbedder
from cofire.models.minilm import MiniLM
from cofire.models.sharing import SharedEmbedder
from cofire.settings import load_settings
from fakes import StubEmbedder


class Made:
    """Makes stub embedders and remembers them."""

    def __init__(self) -> None:
        self.embedders: list[StubEmbedder] = []

    def __call__(self) -> CachingEmbedder:
        self.embedders.append(StubEmbedder())
        return CachingEmbedder(self.embedders[-1], max_bytes=100_000)


def test_the_last_holder_closes_it() -> None:
    made = Made()
    first, second = SharedEmbedder("a", made), SharedEmbedder("a", made)
    other = SharedEmbedder("b", made)
    assert first.inner is second.inner
    assert other.inner is not first.inner
    stub = made.embedders[0]
    first.close()
    first.close()
    assert stub.closed == 0
    assert second.embed_query("kiln")[1]
    second.close()
    assert (stub.closed, made.embedders[1].closed) == (1, 0)
    other.close()


def test_one_that_is_used_after_closing_is_held_again() -> None:
    made = Made()
    share = SharedEmbedder("a", made)
    share.close()
    assert share.embed_query("kiln")[1]
    assert len(made.embedders) == 2
    another = SharedEmbedder("a", made)
    assert another.inner is share.inner
    share.close()
    assert made.embedders[1].closed == 0
    another.close()
    assert made.embedders[1].closed == 1


def test_a_share_that_is_dropped_counts_no_longer() -> None:
    made = Made()
    dropped, kept = SharedEmbedder("a", made), SharedEmbedder("a", made)
    del dropped
    gc.collect()
    kept.close()
    assert made.embedders[0].closed == 1


def test_what_one_embeds_another_has_and_what_one_clears_is_gone() -> None:
    made = Made()
    first, second = SharedEmbedder("a", made), SharedEmbedder("a", made)
    first.embed_query("secret")
    second.embed_query("secret")
    assert made.embedders[0].calls == ["secret"]
    second.clear()
    first.embed_query("secret")
    assert made.embedders[0].calls == ["secret"] * 2
    first.close()
    second.close()


def test_threads_that_open_and_close_share_one_at_a_time() -> None:
    made = Made()
    kept = SharedEmbedder("a", made)

    def use(number: int) -> bool:
        share = SharedEmbedder("a", made)
        try:
            return share.inner is kept.inner and share.embed_query(f"note {number}")[1]
        finally:
            share.close()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(200)))
    assert (len(made.embedders), made.embedders[0].closed) == (1, 0)
    kept.close()
    assert made.embedders[0].closed == 1


def test_equal_choices_are_one_embedder_and_others_are_not() -> None:
    settings = load_settings(embedder="hashing:16")
    first, second = make_embedder(settings), make_embedder(load_settings(embedder="hashing:16"))
    others = [
        make_embedder(load_settings(embedder="hashing:17")),
        make_embedder(load_settings(embedder="hashing:16", embedding_cache_mb=1)),
    ]
    inner = [one.inner for one in (first, second, *others) if isinstance(one, SharedEmbedder)]
    assert inner[0] is inner[1]
    assert len(set(map(id, inner))) == 3
    for one in (first, second, *others):
        one.close()


def bare(embedder: object) -> object:
    """The embedder behind shares and caches."""
    while isinstance(embedder, SharedEmbedder | CachingEmbedder):
        embedder = embedder.inner
    return embedder


def test_caches_of_different_sizes_share_the_local_model() -> None:
    models = [
        make_embedder(load_settings(embedder="minilm", threads=1, embedding_cache_mb=size))
        for size in (1, 2)
    ]
    more = make_embedder(load_settings(embedder="minilm", threads=2))
    assert isinstance(bare(models[0]), MiniLM)
    assert bare(models[0]) is bare(models[1])
    assert bare(models[0]) is not bare(more)
    for one in (*models, more):
        one.close()


def test_the_memories_of_a_process_use_one_session(tmp_path: Path) -> None:
    settings = load_settings(embedder="minilm", threads=1)
    users = [
        Memory.open(tmp_path / "m.db", user=f"u{number}", settings=settings) for number in range(3)
    ]
    model = make_embedder(settings)
    minilm = bare(model)
    assert isinstance(minilm, MiniLM)
    model.close()
    for memory in users:
        memory.remember("The kiln fires on Tuesday")
        assert memory.recall("kiln").warnings == ()
    session = minilm._session
    assert session is not None
    for memory in users[:2]:
        memory.close()
        assert minilm._session is session
    assert users[2].recall("When is the kiln fired?")
    users[2].close()
    assert minilm._session is None


def test_forgetting_empties_the_cache_that_others_share(tmp_path: Path) -> None:
    settings = load_settings(embedder="hashing:16")
    with (
        Memory.open(tmp_path / "m.db", user="ada", settings=settings) as ada,
        Memory.open(tmp_path / "m.db", user="bo", settings=settings) as bo,
    ):
        share = make_embedder(settings)
        assert isinstance(share, SharedEmbedder)
        cache = share.inner
        assert isinstance(cache, CachingEmbedder)
        id = ada.remember("the code is 4711").id
        bo.recall("the code is 4711")
        assert cache.cached_bytes > 0
        ada.forget(id)
        assert cache.cached_bytes == 0
        share.close()


def test_forgetting_drops_the_words_that_are_kept_for_counting(tmp_path: Path) -> None:
    model = make_embedder(load_settings(embedder="minilm"))
    with Memory.open(tmp_path / "m.db", embedder="minilm", vectors=False) as memory:
        id = memory.remember("xyzzy" * 5).id
        minilm = bare(model)
        assert isinstance(minilm, MiniLM)
        assert "xyzzy" * 5 in minilm._pieces._sizes
        memory.forget(id)
        assert "xyzzy" * 5 not in minilm._pieces._sizes
    model.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_forked_child_has_its_own() -> None:
    code = (
        "import os\n"
        "from cofire.models import make_embedder, sharing\n"
        "from cofire.settings import load_settings\n"
        "settings = load_settings(embedder='minilm', threads=1)\n"
        "model = make_embedder(settings)\n"
        "model.embed_query('kiln')\n"
        "sharing._pool._lock.acquire()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    model.close()\n"
        "    another = make_embedder(settings)\n"
        "    os._exit(0 if another.embed_query('kiln')[1] else 1)\n"
        "sharing._pool._lock.release()\n"
        "_, status = os.waitpid(child, 0)\n"
        "assert model.embed_query('bowl')[1]\n"
        "raise SystemExit(os.waitstatus_to_exitcode(status))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr

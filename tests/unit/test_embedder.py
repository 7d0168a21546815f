"""Vectors are normalised or flagged, whatever an embedder gives."""

from __future__ import annotations

import numpy as np
import pytest

from cofire.models.embedder import normalised
from cofire.models.hashing import HashingEmbedder


@pytest.mark.filterwarnings("error")
def test_bad_rows_are_flagged_and_zero() -> None:
    rows = np.array(
        [[0, 0, 0], [np.nan, 0, 1], [np.inf, 0, 0], [-np.inf, 1, 1], [3, 4, 0], [1e300, 1e300, 0]],
        dtype=np.float64,
    )
    embedded = normalised(rows)
    assert embedded.ok.tolist() == [False, False, False, False, True, True]
    assert embedded.vectors.dtype == np.float32
    assert not embedded.vectors[:4].any()
    np.testing.assert_allclose(embedded.vectors[4], [0.6, 0.8, 0.0], atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(embedded.vectors[5]), 1.0, atol=1e-6)


def test_no_rows() -> None:
    embedded = normalised(np.zeros((0, 4)))
    assert embedded.vectors.shape == (0, 4)
    assert embedded.ok.shape == (0,)


def test_hashing_is_the_same_on_every_machine() -> None:
    vector, ok = HashingEmbedder(8).embed_query("The kiln fires on Tuesday")
    assert ok
    again = HashingEmbedder(8).embed_passages(["x", "The kiln fires on Tuesday"]).vectors[1]
    assert np.array_equal(vector, again)
    expected = [0.2601, 0.3468, 0.2601, 0.2601, 0.1734, -0.1734, 0.7804, -0.0867]
    np.testing.assert_allclose(vector, expected, atol=1e-4)


def test_hashing_brings_related_texts_together() -> None:
    embedder = HashingEmbedder(256)
    query, _ = embedder.embed_query("when is the kiln fired")
    rows = embedder.embed_passages(["The kiln fires on Tuesday", "Soup for dinner"]).vectors
    assert rows[0] @ query > 0.3 > rows[1] @ query


@pytest.mark.parametrize("dimension", [1, 2, 384])
@pytest.mark.parametrize("text", ["a", "図書館", "caf\u00e9", "\ud83d", "x" * 1000, "😀"])
def test_hashing_embeds_any_visible_text(dimension: int, text: str) -> None:
    _, ok = HashingEmbedder(dimension).embed_query(text)
    assert ok


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_hashing_flags_blank_text(text: str) -> None:
    _, ok = HashingEmbedder(16).embed_query(text)
    assert not ok


def test_hashing_tokens() -> None:
    embedder = HashingEmbedder(16)
    text = "Ein Überraschungsgast, 図書館!"
    offsets = embedder.token_offsets(text)
    assert embedder.count_tokens(text) == len(offsets)
    assert [text[start:end] for start, end in offsets] == [
        "Ein",
        "Überraschung",
        "sgast",
        ",",
        "図",
        "書",
        "館",
        "!",
    ]


def test_hashing_refuses_no_dimension() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        HashingEmbedder(0)

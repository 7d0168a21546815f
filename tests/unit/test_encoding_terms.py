"""Hashes and blobs."""

from __future__ import annotations

import numpy as np
import pytest

from cofire.encoding.terms import (
    canonical_json,
    facet,
    pack_facets,
    pack_terms,
    term_hash,
    unpack_facets,
    unpack_terms,
)
from cofire.errors import InputError


def test_a_hash_is_fixed_for_ever() -> None:
    # BLAKE2b("gato", 8 bytes) little-endian: stored in every database, must never change.
    assert term_hash("gato") == 0x9F55EDC5323C0023
    assert term_hash("gato") != term_hash("gata")


def test_blobs_hold_sorted_unique_hashes_and_saturated_counts() -> None:
    blob = pack_terms(["b", "a", "b", *["c"] * 300])
    hashes, counts = unpack_terms(blob)
    assert len(blob) == 27
    assert hashes.dtype == np.uint64
    assert list(hashes) == sorted(map(term_hash, "abc"))
    assert dict(zip(hashes.tolist(), counts.tolist(), strict=True)) == {
        term_hash("a"): 1,
        term_hash("b"): 2,
        term_hash("c"): 255,
    }
    assert pack_terms({"a": 1, "b": 2, "c": 300}) == blob


def test_nothing_packs_to_nothing() -> None:
    assert pack_terms([]) == b""
    hashes, counts = unpack_terms(b"")
    assert len(hashes) == len(counts) == 0
    assert len(unpack_facets(pack_facets([]))) == 0


def test_damaged_blobs_are_refused() -> None:
    with pytest.raises(InputError, match="damaged"):
        unpack_terms(b"12345")
    with pytest.raises(InputError, match="damaged"):
        unpack_facets(b"12345")


def test_facets_are_literal() -> None:
    names = [facet("tag", "foo_bar"), facet("tag", "fooXbar"), facet("tag", "%")]
    assert len(unpack_facets(pack_facets([*names, names[0]]))) == 3


def test_canonical_json_gives_equal_values_one_spelling() -> None:
    assert canonical_json({"b": 1.0, "a": [True, None]}) == '{"a":[true,null],"b":1}'
    assert canonical_json(1) == canonical_json(1.0)
    assert canonical_json(1) != canonical_json("1")
    assert canonical_json(1) != canonical_json(True)

"""Concepts without a model: names and their spellings, words and their kin."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.consolidation.concepts import (
    Heard,
    Kin,
    Word,
    kin,
    most_said,
    named,
    same_name,
    stands_in,
    words,
)
from cofire.consolidation.drafts import Turn


def turn(content: str, number: int) -> Turn:
    return Turn(
        number=number, version=1, label=f"T{number}", content=content,
        time=datetime(2024, 5, 1, tzinfo=UTC), language="en",
    )  # fmt: skip


def test_spellings_of_a_name_are_aliases_of_the_most_frequent() -> None:
    turns = [
        turn("I met Zoë in Paris.", 1),
        turn("Then Zoe\u0308 and I went to PARIS again.", 2),
        turn("We love Paris.", 3),
    ]
    drafts = {same_name(draft.name): draft for draft in named(turns)}
    paris = drafts["paris"]
    assert (paris.name, paris.aliases, paris.labels) == ("Paris", ("PARIS",), ("T1", "T2", "T3"))
    assert drafts["zoë"].labels == ("T1", "T2")


def test_names_are_equal_up_to_case_width_of_space_and_composition() -> None:
    assert same_name("ZOE\u0308  May") == same_name("zoë may")
    assert same_name("Zoe") != same_name("Zoë")


def test_words_have_their_most_frequent_spelling() -> None:
    found = words([("Hiking is fun. I hiked.", "en"), ("We go hiking.", "en")])
    assert [(word.spelling, word.memories) for word in found if word.term == "hike"] == [
        ("hiking", 2)
    ]


VECTORS = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]], np.float32)


def test_words_lead_to_the_words_most_like_them() -> None:
    assert kin(VECTORS, most=1, least=0.5) == [
        Kin(0, 1, 0.8),
        Kin(1, 2, 0.96),
        Kin(2, 1, 0.96),
        Kin(3, 2, 0.8),
    ]


def test_known_words_lead_to_new_ones_that_beat_their_weakest() -> None:
    found = kin(VECTORS, first=3, floor=np.array([0.0, 0.7, 0.7]), most=2, least=0.5)
    assert found == [Kin(3, 2, 0.8), Kin(3, 1, 0.6), Kin(2, 3, 0.8)]


def test_words_without_vectors_have_no_kin() -> None:
    assert kin(np.zeros((3, 4), np.float32)) == []
    assert kin(np.zeros((0, 4), np.float32)) == []


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 4), st.integers(0, 999))
def test_new_words_are_linked_alike_however_many_are_known(
    size: int, first: int, most: int, seed: int
) -> None:
    vectors = np.random.default_rng(seed).normal(size=(size, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first = min(first, size)
    every = {(one.source, one.target): one.cosine for one in kin(vectors, most=most, least=0.2)}
    some = kin(vectors, first=first, most=most, least=0.2)
    for one in some:
        assert one.source != one.target
        assert 0.2 <= one.cosine <= 1.0
        assert max(one.source, one.target) >= first
    fresh = {(one.source, one.target): one.cosine for one in some if one.source >= first}
    assert fresh == pytest.approx({pair: c for pair, c in every.items() if pair[0] >= first})


def test_of_too_many_words_the_most_said_are_kept() -> None:
    found = [Word("a", "a", 1), Word("b", "b", 3), Word("c", "c", 1), Word("d", "d", 2)]
    assert [word.term for word in most_said(found, 3)] == ["a", "b", "d"]
    assert most_said(found, 4) == found
    assert not most_said(found, 0) and not most_said(found, -1)


NAMES = st.sampled_from(
    ["Ada", "ADA", "New York", "New", "O\u2019Neil", "#one", "C++", "Boeing 737", "\u6771\u4eac",
     "\u6771\u4eacAda", "Stra\u00dfe 9", "QRV", "x.y", "Zo\u00eb"]
)  # fmt: skip
GAPS = st.sampled_from(["", " ", "-", "'", ", ", ". ", "\u3001", "x", "_", "\u0301"])


@given(st.lists(st.lists(st.tuples(NAMES, GAPS), max_size=5), max_size=4), NAMES)
def test_a_name_is_sought_wherever_it_may_stand(
    parts: list[list[tuple[str, str]]], name: str
) -> None:
    texts = ["We saw " + "".join(a + b for a, b in text) for text in parts]
    places = Heard.of(texts).places(name)
    every = [place for place, text in enumerate(texts) if stands_in(text, name)]
    assert [place for place in places if stands_in(texts[place], name)] == every

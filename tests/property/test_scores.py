"""Scores of answers: what holds of any two texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.evaluation.qa.scores import (
    bleu1,
    is_refusal,
    locomo_f1,
    normalised,
    refuses,
    token_f1,
)
from cofire.interchange.locomo import CATEGORIES

WORDS = (
    "a an the and not mentioned no information available skies studies enjoyed Oslo 1,200 3.5 "
    "don't cannot U.S. e\u0301 dog’s — 北京 ; , . \" ' \u0000 \ud800 \u200d"
).split(" ")
anything = st.characters(codec=None)  # surrogates and control characters too
texts = st.one_of(
    st.text(anything, max_size=40),
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=12).map("".join),
)
groups = st.sampled_from([*CATEGORIES.values(), "temporal-reasoning"])


@given(texts, texts, groups)
def test_scores_are_shares(prediction: str, gold: str, group: str) -> None:
    assert 0.0 <= token_f1(prediction, gold) <= 1.0
    assert 0.0 <= locomo_f1(prediction, group, gold) <= 1.0
    assert 0.0 <= bleu1(prediction, gold) <= 1.0


@given(texts, texts)
def test_token_f1_is_symmetric(one: str, other: str) -> None:
    assert token_f1(one, other) == token_f1(other, one)


@given(texts)
def test_a_text_agrees_with_itself(text: str) -> None:
    assert token_f1(text, text) == (1.0 if normalised(text) else 0.0)
    assert bleu1(text, text) == (1.0 if text.split() else 0.0)


@given(st.permutations(WORDS), st.permutations(WORDS), texts)
def test_order_does_not_matter(said: list[str], again: list[str], gold: str) -> None:
    assert token_f1(" ".join(said), gold) == token_f1(" ".join(again), gold)


@given(texts, texts)
def test_one_part_is_plain(prediction: str, gold: str) -> None:
    prediction, gold = prediction.replace(",", ""), gold.replace(",", "").replace(";", "")
    plain = token_f1(prediction, gold)
    assert locomo_f1(prediction, "multi-hop", gold) == plain
    assert locomo_f1(prediction, "open-domain", gold) == plain
    assert locomo_f1(prediction, "single-hop", gold) == plain


@given(texts, texts)
def test_more_parts_never_score_less(prediction: str, gold: str) -> None:
    more = f"{prediction}, tea"
    assert locomo_f1(more, "multi-hop", gold) >= locomo_f1(prediction, "multi-hop", gold)


@given(texts)
def test_refusals_have_no_case(text: str) -> None:
    lowered = text.lower()
    assert is_refusal(text) == is_refusal(lowered)
    assert refuses(text) == refuses(lowered)
    assert locomo_f1(text, "adversarial", None) == float(is_refusal(text))


@pytest.mark.parametrize(
    "part", ["the ", "i don't have ", "not mentioned in the ", "relevant ", "no specific ", "1"]
)
def test_long_texts_are_scored_too(part: str) -> None:
    long = part * (20_000 // len(part))
    assert token_f1(long, long) in (0.0, 1.0)
    assert bleu1(long, "tea") == 0.0
    assert not refuses(long)

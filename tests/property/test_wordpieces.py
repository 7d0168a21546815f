"""Counting by words gives what the tokenizer counts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.models.wordpiece import WordPieces

PIECES = WordPieces()
ascii_text = st.text(st.characters(min_codepoint=0, max_codepoint=127), max_size=300)
words = st.lists(
    st.sampled_from(["I've", "don't", "unbelievably", "POL-358", "a_b", "x" * 120, "[CLS]", "50%"])
).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(st.one_of(ascii_text, words, st.text(max_size=60)))
def test_counts_agree(text: str) -> None:
    assert PIECES.count(text) == PIECES.count_exactly(text)

"""Splitting long texts."""

from __future__ import annotations

import re
import time

import pytest

from cofire.encoding.segments import split


def words(text: str) -> list[tuple[int, int]]:
    """A tokeniser like WordPiece: words, each Han character and punctuation mark by itself."""
    return [match.span() for match in re.finditer(r"[\u4e00-\u9fff]|[^\W_]+|[^\w\s]", text)]


def characters(text: str) -> list[tuple[int, int]]:
    """A tokeniser of one token a character."""
    return [(at, at + 1) for at, char in enumerate(text) if not char.isspace()]


def pieces(text: str, limit: int = 200) -> list[str]:
    spans = split(text, words, limit)
    assert "".join(text[start:end] for start, end in spans) == text
    return [text[start:end] for start, end in spans]


def test_a_short_text_is_one_piece_and_an_empty_one_none() -> None:
    assert pieces("Hello world.") == ["Hello world."]
    assert pieces("") == []
    assert pieces("   \n ") == ["   \n "]


def test_cuts_prefer_paragraphs_then_sentences_then_clauses_then_words() -> None:
    sentence = "one two three four five six seven eight nine. "
    paragraphs = [sentence * 10 + "\n\n"] * 4
    assert pieces("".join(paragraphs), 120) == paragraphs
    assert all(piece.endswith(". ") for piece in pieces(sentence * 100))
    assert all(piece.endswith(", ") for piece in pieces("one two three four, " * 100))
    assert all(piece.endswith("word ") for piece in pieces("word " * 1_000))
    assert all(piece.endswith("。") for piece in pieces("他决定明天去图书馆。" * 100))


def test_pieces_are_nearly_equal_and_within_the_limit() -> None:
    sizes = [len(words(piece)) for piece in pieces("word " * 1_001)]
    assert max(sizes) <= 200
    assert min(sizes) >= 0.6 * max(sizes)


def test_a_megabyte_without_spaces_is_cut_by_characters() -> None:
    begin = time.perf_counter()
    found = pieces("x" * 1_000_000)
    assert time.perf_counter() - begin < 10
    assert max(map(len, found)) <= 2_000
    assert len(found) < 2_000


def test_a_megabyte_of_words_takes_linear_time() -> None:
    begin = time.perf_counter()
    found = pieces("слово " * 90_000)
    assert time.perf_counter() - begin < 10
    assert len(found) < 1_000


def test_marks_and_joined_emoji_stay_together() -> None:
    for unit in ("e\u0301", "👨\u200d👩\u200d👧", "👍🏽"):
        text = unit * 600
        for start, end in split(text, characters, 50):
            assert not re.match("[\u0301\u200d🏽]", text[start:end])
            assert text[end - 1] != "\u200d"


def test_odd_offsets_of_a_tokeniser_do_no_harm() -> None:
    text = "alpha beta " * 300

    def odd(part: str) -> list[tuple[int, int]]:
        return [(0, 0), *words(part), (3, 9), (len(part), len(part) + 5), (0, 0)]

    spans = split(text, odd)
    assert "".join(text[start:end] for start, end in spans) == text


def test_a_limit_below_two_is_refused() -> None:
    with pytest.raises(ValueError, match="wordpieces"):
        split("a b c", words, 1)

"""Text that is wrapped while it comes: nothing of it is lost, and no line is too long."""

from __future__ import annotations

import contextlib
import io
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cofire.cli.flowing import Flow, show_pieces, taken_otherwise
from cofire.cli.output import columns, visible

TEXT = st.text(st.sampled_from("abcdefgh,. \n\r\t[1]é猫字\x1b\u202e"), max_size=200)


def shown(pieces: list[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert show_pieces(pieces) == "".join(pieces)
    return out.getvalue()


@given(TEXT, st.lists(st.integers(0, 200)))
def test_however_it_is_cut_it_is_shown_the_same(text: str, cuts: list[int]) -> None:
    places = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert shown(pieces) == shown([text])


@given(TEXT)
def test_nothing_is_lost_and_no_line_is_too_long(text: str) -> None:
    out = shown([text])
    bare = "".join(visible(part) for part in text.replace("\r\n", "\n").split())
    assert "".join(out.split()) == bare
    for line in out.split("\n"):
        assert columns(line) <= 80 or " " not in line


@given(st.lists(st.sampled_from(["a", "word", "猫猫", "\n"])))
def test_nothing_that_a_terminal_acts_upon(words: list[str]) -> None:
    assert "\x1b" not in shown([*words, "\x1b[2J"])


def test_a_word_that_no_line_holds_does_not_wait_for_its_end() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        flow = Flow()
        flow.feed("x" * 200)
        assert "x" * 200 in out.getvalue()
        flow.end()


def test_spaces_are_no_other_text() -> None:
    assert not taken_otherwise("a  b\n", "a b")
    assert taken_otherwise("<think>so</think> a b", "a b")

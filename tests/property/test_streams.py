"""Streams of servers, whatever they send and wherever the network cuts it."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cofire.models.generator import Generated
from cofire.models.openai_answers import read_stream
from cofire.models.openai_endpoint import UnusableBodyError

PIECES = st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8))
CUTS = st.lists(st.integers(0, 2_000), max_size=12)


def cut(body: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(body), *(place % (len(body) + 1) for place in cuts)})
    return [body[start:end] for start, end in pairwise(places)]


@given(pieces=PIECES, cuts=CUTS, end=st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r", b"\n"]))
def test_cuts_change_nothing(pieces: list[str], cuts: list[int], end: bytes) -> None:
    told = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    events = [*told, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    lines = [b"data: " + json.dumps(event, ensure_ascii=False).encode() for event in events]
    body = b"".join(line + end for line in lines)
    *parts, last = read_stream(cut(body, cuts))
    assert parts == [piece for piece in pieces if piece]
    assert last == Generated(text="".join(pieces))


EVENT = st.one_of(
    st.binary(max_size=20),
    st.builds(
        lambda value: b"data: " + json.dumps(value).encode(),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=3),
            lambda inner: st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(["choices", "delta", "content", "refusal", "usage", "message",
                    "finish_reason", "error", "prompt_tokens"]),
                inner,
                max_size=3,
            ),
        ),
    ),
)  # fmt: skip


@given(events=st.lists(EVENT, max_size=6), cuts=CUTS)
def test_whatever_comes_is_an_answer_or_refused(events: list[bytes], cuts: list[int]) -> None:
    try:
        *pieces, last = read_stream(cut(b"\n\n".join(events), cuts))
    except UnusableBodyError:
        return
    assert isinstance(last, Generated)
    assert "".join(str(piece) for piece in pieces) == last.text
    assert all(pieces)

"""Lines of a client as messages: what is none is told apart, and costs nobody else anything."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.server.mcp.stdio import BadLineError, read_message, split_lines

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def lines_of(pieces: list[bytes], most: int = 100) -> list[bytes | None]:
    left = [*pieces, b""]
    return list(split_lines(lambda: left.pop(0), most))


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.data())
def test_lines_do_not_depend_on_how_they_arrive(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert lines_of([piece for piece in pieces if piece]) == [one for one in lines if one.strip()]


def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_read() -> None:
    assert lines_of([b"x" * 80, b"x" * 80, b"x\n" + PING + b"\n"]) == [None, PING]
    assert lines_of([b"x" * 101 + b"\n", PING]) == [None, PING]


def test_the_last_line_needs_no_end() -> None:
    assert lines_of([PING + b"\r\n\r\n\n" + PING]) == [PING + b"\r", PING]


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b'{"broken json', -32700, None),
        (b"\xff\xfe{}", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', -32700, None),
        (b"[" * 200_000, -32700, None),
        (None, -32700, None),
        (b"[" + PING + b"]", -32600, None),
        (b"5", -32600, None),
        (b'{"id":7}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":"a","method":5}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":[]}', -32600, 8),
    ],
)
def test_what_is_no_message_is_refused(line: bytes | None, code: int, id: str | int | None) -> None:
    with pytest.raises(BadLineError) as caught:
        read_message(line)
    assert (caught.value.code, caught.value.id) == (code, id)


@given(st.text())
def test_any_text_arrives_as_it_was_sent(text: str) -> None:
    sent = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"text": text}}
    for ascii in (True, False):
        line = json.dumps(sent, ensure_ascii=ascii).encode("utf-8", "surrogatepass")
        try:
            message = read_message(line)
        except BadLineError:
            assert not ascii  # half a character, which UTF-8 does not have
            assert any("\ud800" <= one <= "\udfff" for one in text)
        else:
            assert message.model_dump()["params"] == {"text": text}

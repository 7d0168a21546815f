"""Pieces of answers: of generators that have them, and of others; what is told in the wrong way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cofire.errors import GenerationError, PromptTooLongError
from cofire.models.generator import Generated, Generation
from cofire.models.openai_answers import LONGEST_EVENT, read_stream
from cofire.models.openai_endpoint import UnusableBodyError
from cofire.models.streaming import StreamingGenerator, streamed
from cofire.models.verifying import VerifiedGenerator
from cofire.testing import ScriptedGenerator

ASKED = Generation(system="Be brief.", user="Who owns it?")
ROBIN = Generated(text="Robin does")


class Whole:
    """A generator of somebody else's that has no pieces."""

    name = "whole"
    stream: Any = None

    def __init__(self, text: str) -> None:
        self._text = text

    def generate(self, request: Generation, /) -> Generated:
        return Generated(text=self._text)

    def close(self) -> None:
        """It holds nothing."""


class Telling(Whole):
    """One that tells `parts`, raising those that are errors, and remembers being closed."""

    def __init__(self, *parts: Any) -> None:
        super().__init__("")
        self._parts = parts
        self.ended = False
        self.stream = self._told

    def _told(self, request: Generation) -> Iterator[Any]:
        try:
            for part in self._parts:
                if isinstance(part, Exception):
                    raise part
                yield part
        finally:
            self.ended = True


def test_one_without_pieces_tells_its_answer_at_once() -> None:
    for generator in (Whole("Robin does"), VerifiedGenerator(Whole("Robin does"))):
        assert list(streamed(generator, ASKED)) == ["Robin does", ROBIN]
        assert list(streamed(Whole(""), ASKED)) == [Generated(text="")]


def test_the_scripted_generator_tells_words() -> None:
    scripted: StreamingGenerator = ScriptedGenerator(["Robin  does.\n", "", "\n"])
    *pieces, last = streamed(scripted, ASKED)
    assert pieces == ["Robin", "  does.", "\n"]
    assert isinstance(last, Generated)
    assert (last.text, last.output_tokens) == ("Robin  does.\n", 2)
    assert [len(list(scripted.stream(ASKED))) for _ in range(2)] == [1, 2]
    failing = ScriptedGenerator([GenerationError("down", retryable=True)])
    with pytest.raises(GenerationError, match="down"):
        next(failing.stream(ASKED))


def test_somebody_elses_stream_is_passed_on() -> None:
    inner = Telling("Robin", "", " does", ROBIN, "more")
    assert list(VerifiedGenerator(inner).stream(ASKED)) == ["Robin", " does", ROBIN]
    assert inner.ended
    assert list(VerifiedGenerator(Telling(ROBIN)).stream(ASKED)) == ["Robin does", ROBIN]


def test_to_stop_reading_closes_somebody_elses_stream() -> None:
    inner = Telling("Robin", " does", ROBIN)
    parts = streamed(VerifiedGenerator(inner), ASKED)
    assert next(parts) == "Robin"
    assert not inner.ended
    parts.close()
    assert inner.ended


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (["Robin", RuntimeError("boom")], r"whole failed \(RuntimeError\)"),
        (["Robin"], "gave NoneType; its `stream` must end with"),
        (["Robin", b" does", ROBIN], "gave bytes"),
        (["Robin", Generated(text=None)], "with a text"),  # type: ignore[arg-type]
        (["Robin does", Generated(text="Robin does", finish="x")], "finished by 'x'"),  # type: ignore[arg-type]
        (["Robin ", ROBIN], "streamed 6 characters and says that its answer is 10 others"),
    ],
    ids=["raises", "no end", "bytes", "no text", "finish", "another text"],
)
def test_what_breaks_the_seam_is_a_generation_error(parts: list[Any], said: str) -> None:
    told = VerifiedGenerator(Telling(*parts)).stream(ASKED)
    assert next(told) == parts[0]
    with pytest.raises(GenerationError, match=said) as caught:
        list(told)
    assert not caught.value.retryable
    with pytest.raises(PromptTooLongError):
        next(VerifiedGenerator(Telling(PromptTooLongError("too long"))).stream(ASKED))


def test_a_server_that_never_ends_a_line_or_an_event_fills_no_memory() -> None:
    def endless(part: bytes) -> Iterator[bytes]:
        yield b"data: "
        while True:
            yield part

    with pytest.raises(UnusableBodyError, match="10,000,000 bytes in one line"):
        list(read_stream(endless(b"x" * (LONGEST_EVENT // 4))))
    with pytest.raises(UnusableBodyError, match="10,000,000 bytes in one event"):
        list(read_stream(endless(b"x" * (LONGEST_EVENT // 4) + b"\ndata: ")))


def test_a_deep_event_is_no_part_of_an_answer() -> None:
    with pytest.raises(UnusableBodyError, match="no part"):
        list(read_stream([b"data: " + b"[" * 100_000 + b"\n\n"]))

"""Answers as they are written: pieces of text, and last of all the whole."""

from __future__ import annotations

from collections.abc import Generator as Parts
from collections.abc import Iterator
from typing import Protocol

from cofire.models.generator import Generated, Generation, Generator


class StreamingGenerator(Generator, Protocol):
    """A generator that tells what it writes while it writes."""

    def stream(self, request: Generation, /) -> Iterator[str | Generated]:
        """Pieces of the answer, none of them empty, and last a Generated whose text is all of them
        together. Raises as `generate` does, also in the middle. To close the iterator early ends
        the request."""


def streamed(generator: Generator, request: Generation) -> Parts[str | Generated, None, None]:
    """As `StreamingGenerator.stream`; of a generator that has no `stream`, the whole text is the
    only piece."""
    stream = getattr(generator, "stream", None)
    if callable(stream):
        yield from stream(request)
    else:
        whole = generator.generate(request)
        if whole.text:
            yield whole.text
        yield whole

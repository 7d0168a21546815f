"""What a server that speaks OpenAI's protocol answers: whole completions, and streams of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from cofire.models.generator import Finish, Generated
from cofire.models.openai_endpoint import UnusableBodyError

LONGEST_EVENT = 10_000_000
"""Bytes of a completion, or of one event of a stream, at most: a server that never ends one fills
no memory."""
LONGEST_STREAM = 64_000_000
"""Bytes of a whole stream at most: an event has some 300 for each token."""

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filter",
}
_FIELD = re.compile(rb"(data|event|id|retry)?:")
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")


def read_completion(body: bytes) -> Generated:
    """The answer in the body of a completion. Raises UnusableBodyError where there is none."""
    try:
        answer = json.loads(body)
        choice = answer["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as exc:
        start = body[:80].decode("utf-8", "replace")
        raise UnusableBodyError(f"answers something that is no completion: {start!r}") from exc
    refused = isinstance(refusal, str) and bool(refusal)
    return _generated(
        refusal if refused else content if isinstance(content, str) else "",
        finish=choice.get("finish_reason"),
        refused=refused,
        usage=answer.get("usage"),
    )


def whole_body(chunks: Iterable[bytes]) -> bytes:
    """A body that comes in parts. Raises UnusableBodyError for one that is too long for an answer,
    and what `chunks` raise."""
    return _joined([], chunks, b"")


def _joined(first: list[bytes], rest: Iterable[bytes], between: bytes) -> bytes:
    parts, length = first, sum(map(len, first))
    for part in rest:
        parts.append(part)
        length += len(part) + len(between)
        if length > LONGEST_EVENT:
            raise UnusableBodyError(f"tells more than {LONGEST_EVENT:,} bytes")
    return between.join(parts)


def read_stream(chunks: Iterable[bytes]) -> Iterator[str | Generated]:
    """The pieces of the answer that `chunks` of bytes tell as server-sent events, and the whole of
    it last; of a server that knows no streams, its completion.

    Raises UnusableBodyError where the answer ends before the server says that it does, where it
    tells what is no part of an answer, and what `chunks` raise. Once the server has said how the
    answer ended, the answer is whole: then nothing but the count of its tokens can be missing.
    """
    lines = _lines(_bounded(chunks))
    first = next((line for line in lines if line.strip()), b"").removeprefix(b"\xef\xbb\xbf")
    if _FIELD.match(first) is None:
        whole = read_completion(_joined([first], lines, b"\n"))
        if whole.text:
            yield whole.text
        yield whole
        return
    answer = _Growing()
    try:
        for event in _events(chain([first], lines)):
            piece = answer.take(event)
            if piece:
                yield piece
    except UnusableBodyError:
        if not answer.finish:
            raise
    yield answer.whole()


class _Growing:
    """An answer, as far as it was told. `finish`: how it ended; None while it does not."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self._pieces: list[str] = []
        self._refused = False
        self._usage: object = None

    def take(self, event: dict[str, Any]) -> str:
        """The text that an event brings."""
        if event.get("error"):
            raise UnusableBodyError(f"tells of an error: {str(event['error'])[:300]}")
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        finish = choice.get("finish_reason")
        self.finish = str(finish) if finish else self.finish
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return ""
        texts = [
            text for name in ("content", "refusal") if isinstance(text := delta.get(name), str)
        ]
        self._refused = self._refused or bool(delta.get("refusal"))
        self._pieces += texts
        return "".join(texts)

    def whole(self) -> Generated:
        text = "".join(self._pieces)
        return _generated(text, finish=self.finish, refused=self._refused, usage=self._usage)


def _generated(text: str, *, finish: object, refused: bool, usage: object) -> Generated:
    counts = usage if isinstance(usage, dict) else {}
    return Generated(
        text=text,
        finish="refusal" if refused else _FINISHES.get(str(finish), "other"),
        input_tokens=_count(counts.get("prompt_tokens")),
        output_tokens=_count(counts.get("completion_tokens")),
    )


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _bounded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    length = 0
    for chunk in chunks:
        length += len(chunk)
        if length > LONGEST_STREAM:
            raise UnusableBodyError(f"tells more than {LONGEST_STREAM:,} bytes")
        yield chunk


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends: line feed, carriage return, or both; no others, because a text
    may hold what Unicode calls the end of a line."""
    begun: list[bytes] = []  # of a line: joined once, however many chunks it comes in
    length = 0
    for chunk in chunks:
        # What a carriage return ends may go on with the line feed that belongs to it.
        cut = begun.pop() if begun and begun[-1].endswith(b"\r") else b""
        *whole, rest = _LINE_END.split(cut + chunk)
        if whole:
            yield b"".join([*begun, whole[0]])
            yield from whole[1:]
            begun, length = [], 0
        else:
            length -= len(cut)
        begun.append(rest)
        length += len(rest)
        if length > LONGEST_EVENT:
            raise UnusableBodyError(f"tells more than {LONGEST_EVENT:,} bytes in one line")
    yield b"".join(begun).removesuffix(b"\r")


def _events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The objects that events tell, up to "[DONE]". An event of several lines ends where they make
    an object together, so that a server may leave out the empty line between events."""
    told: list[bytes] = []
    for line in lines:
        name, _, value = line.partition(b":")
        if name == b"data" and value.strip() == b"[DONE]":
            return
        if name == b"data" and value.strip():
            told.append(value)
            event = _object(told)
            if event is not None:
                yield event
                told.clear()
        elif told and not line:
            break
    if told:
        start = b"\n".join(told)[:80].decode("utf-8", "replace").strip()
        raise UnusableBodyError(f"tells something that is no part of an answer: {start!r}")
    raise UnusableBodyError("ends the connection before its answer")


def _object(lines: list[bytes]) -> dict[str, Any] | None:
    if sum(map(len, lines)) > LONGEST_EVENT:
        raise UnusableBodyError(f"tells more than {LONGEST_EVENT:,} bytes in one event")
    try:
        event = json.loads(b"\n".join(lines))
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None

"""Turns as data in a prompt: a fence that nothing inside can close, and room that is kept to.

Each turn is one line of JSON, so that a line break in it is no line break of the prompt. The line
that opens and closes the block is made from the block's own digest and stands nowhere in it. What
chat templates read as a control token ("<|im_end|>", "[INST]") is written with an escape of JSON,
because many servers would obey it wherever it stands.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from cofire.consolidation.drafts import Turn
from cofire.consolidation.quoting import sentences
from cofire.types import Kind

_ESCAPED = re.compile(
    r"<(?=[|/\uff5c]?[A-Za-z|_\uff5c\u2581])"  # <|end|>, </s>, <start_of_turn>, <think>
    r"|\[(?=/?[A-Z_]{2,}\])"  # [INST], [/INST], [TOOL_CALLS]
    r"|[\x7f-\x9f\u2028\u2029]"  # line breaks that JSON leaves as they are, and controls
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKENS_PER_ASCII = 0.32
"""Tokens for each ASCII character, on the safe side: English has some 0.23, code more."""


class Fenced(NamedTuple):
    """Data as they stand in a prompt: `mark` begins the first and the last line of `text`."""

    mark: str
    text: str


def estimated_tokens(text: str) -> int:
    """About how many tokens a model makes of a text, rather too many than too few: no tokeniser of
    somebody else's model is at hand."""
    ascii_characters = len(text.encode("ascii", "ignore"))
    return int(ascii_characters * _TOKENS_PER_ASCII) + len(text) - ascii_characters + 1


def fenced(turns: Sequence[Turn], most_tokens: int) -> Fenced:
    """The turns, one JSON line each, with at most about `most_tokens` tokens of text in each: what
    is longer is cut between sentences, and the line says how many are left out."""
    return fenced_lines([_line(turn, most_tokens) for turn in turns], "TURNS")


def fenced_lines(lines: Sequence[str], word: str) -> Fenced:
    """Lines of `json_line` between two that begin with the word and digits."""
    block = "\n".join(lines)
    mark = _mark(block, word)
    return Fenced(mark, f"{mark} begin\n{block}\n{mark} end")


def _mark(block: str, word: str) -> str:
    digest = hashlib.sha256(block.encode()).hexdigest()
    while (mark := f"{word}-{digest[:12]}") in block:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return mark


def _line(turn: Turn, most_tokens: int) -> str:
    text, left_out = shortened(turn.content, most_tokens)
    values: dict[str, Any] = {"turn": turn.label, "date": _said(turn)}
    if turn.speaker is not None:
        values["speaker"] = turn.speaker
    if turn.role is not None:
        values["role"] = turn.role
    if turn.kind is not Kind.EPISODE:
        values["kind"] = str(turn.kind)
    if turn.untrusted:
        values["untrusted"] = True
    if turn.event_times:
        values["times"] = [_span(turn, *hull) for hull in turn.event_times]
    values["text"] = text
    if left_out:
        values["sentences_left_out"] = left_out
    return json_line(values)


def json_line(values: Mapping[str, Any]) -> str:
    """JSON on one line, without a line break or a control token that a server would obey."""
    plain = _LONE_SURROGATE.sub("\ufffd", json.dumps(values, ensure_ascii=False))
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", plain)


def shortened(text: str, most_tokens: int) -> tuple[str, int]:
    """The first whole sentences of `text` that have at most about `most_tokens` tokens together,
    verbatim, and how many sentences are left out. A sentence too long for itself is passed over
    as long as none is taken."""
    if estimated_tokens(text) <= most_tokens:
        return text, 0
    bounds = sentences(text)
    first = last = None
    for start, end in bounds:
        if estimated_tokens(text[start if first is None else first : end]) <= most_tokens:
            first = start if first is None else first
            last = end
        elif first is not None:
            break
    if first is None or last is None:
        return "", len(bounds)
    kept = sum(1 for start, end in bounds if first <= start and end <= last)
    return text[first:last], len(bounds) - kept


def _local(turn: Turn, moment: datetime) -> datetime:
    """As the speaker's clock shows it; at the ends of the calendar as it is."""
    try:
        return moment.astimezone(timezone(timedelta(minutes=turn.offset or 0)))
    except (OverflowError, ValueError):
        return moment


def _said(turn: Turn) -> str:
    return _local(turn, turn.time).strftime("%Y-%m-%d %H:%M, %A")


def _span(turn: Turn, start: datetime, end: datetime) -> str:
    """A hull as its first and last day."""
    first = _local(turn, start).date().isoformat()
    last = _local(turn, end - timedelta(microseconds=1)).date().isoformat()
    return first if first == last else f"{first} to {last}"

"""The JSON in a language model's answer: found by rules, mended where that is safe, else refused.

Around the JSON there may be reasoning, prose and a code fence. What is refused, with a word for
why: nothing there ("empty"), reasoning alone ("thinking"), an answer that is cut off anywhere
("cut"), two JSON values, of which nobody can say which is meant ("ambiguous"), prose, a page or a
refusal without JSON ("prose"), a broken escape, which would leave broken words ("escape"), and
what even mending does not make JSON ("malformed", "nested", "long").

json-repair is asked only for a single value whose brackets close, and of moderate length: it would
complete what is cut off, join what stands apart, and take minutes for what is long. A text in
single quotes with an apostrophe in it counts as cut: where it ends can only be guessed.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

LONGEST = 400_000
"""Characters: longer answers are refused unread."""

LONGEST_MENDED = 20_000
"""Characters: longer JSON must be valid as it is; mending takes quadratic time."""

_THINKING: Final = r"think|thinking|thought|reasoning|reflection"
_OPENED = re.compile(rf"\s*<?(?:{_THINKING})>", re.IGNORECASE)
_CLOSED = re.compile(rf"</(?:{_THINKING})>", re.IGNORECASE)
_FENCE = re.compile(r"```[ \t]*([\w+-]*)[ \t]*\r?\n?(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_BAD_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})")
_BEFORE_STRING = frozenset("{[,:")
_AFTER_STRING = frozenset("}],:")
_PAIRS = {"}": "{", "]": "["}


class UnreadableError(Exception):
    """There is no JSON to be used in an answer; its text is one of the words above."""


def extract(text: str) -> Any:
    """The one JSON value in a model's answer. Raises UnreadableError, and nothing else."""
    if len(text) > LONGEST:
        raise UnreadableError("long")
    whole = text.strip()
    if not whole:
        raise UnreadableError("empty")
    valid, value = _loaded(whole)
    if valid:
        return _container(value)
    answer = _without_thinking(whole)
    found = _values(_without_fence(answer))
    if not found:
        raise UnreadableError("prose")
    if len(found) > 1:
        raise UnreadableError("ambiguous")
    return found[0]


def _container(value: Any) -> Any:
    if value is None:
        raise UnreadableError("empty")
    if not isinstance(value, dict | list):
        raise UnreadableError("prose")
    return value


def _loaded(text: str) -> tuple[bool, Any]:
    """Whether it is valid JSON as it stands, and the value."""
    try:
        return True, json.loads(text)
    except ValueError:  # also a whole number with more digits than Python reads
        return False, None
    except RecursionError:
        raise UnreadableError("nested") from None


def _without_thinking(text: str) -> str:
    """What follows the reasoning, which stands before the answer: in a block, in one whose opening
    tag is broken or missing, or in one that never ends."""
    while not text.startswith(("{", "[", "```")):
        closed = _CLOSED.search(text)
        if closed is None:
            if _OPENED.match(text):
                raise UnreadableError("thinking")
            break
        text = text[closed.end() :].lstrip()
        if not text:
            raise UnreadableError("thinking")
    return text


def _without_fence(text: str) -> str:
    """What stands in the code fence, if there is one with JSON in it before any other JSON."""
    if "```" not in text.partition("{")[0]:
        return text
    blocks = [match[2] for match in _FENCE.finditer(text) if "{" in match[2] or "[" in match[2]]
    if len(blocks) > 1:
        raise UnreadableError("ambiguous")
    return blocks[0] if blocks else text


def _values(text: str) -> list[Any]:
    """The JSON objects and lists in a text, those within others left out."""
    found: list[Any] = []
    at = 0
    while at < len(text):
        start = min((place for place in (text.find("{", at), text.find("[", at)) if place >= 0),
                    default=-1)  # fmt: skip
        if start < 0:
            break
        end = _end(text, start)
        if end is None:
            raise UnreadableError("cut")
        piece = text[start:end]
        if _is_json(piece):
            found.append(_read(piece))
        at = end
    return found


def _is_json(piece: str) -> bool:
    """Whether bracketed words are meant as JSON: not "[1]" or "{maybe}" in prose."""
    inside = piece[1:-1].strip()
    return (
        not inside or '"' in inside or "{" in inside or re.search(r"'\s*[:,}\]]", piece) is not None
    )


def _end(text: str, start: int) -> int | None:
    """One past the bracket that closes the one at `start`; None: none does, so the text is cut off
    (or its quotation marks are in such disorder that nothing in it can be trusted)."""
    opened: list[str] = []
    quote = ""
    at = start
    while at < len(text):
        letter = text[at]
        if quote:
            if letter == "\\":
                at += 1
            elif letter == quote:
                if quote == "'" and _next(text, at) not in _AFTER_STRING:
                    return None  # an apostrophe: mending would cut or join words there
                quote = ""
        elif letter == '"' or (letter == "'" and _last(text, at) in _BEFORE_STRING):
            quote = letter
        elif letter in "{[":
            opened.append(letter)
        elif letter in "}]":
            if opened.pop() != _PAIRS[letter]:
                return None
            if not opened:
                return at + 1
        at += 1
    return None


def _next(text: str, at: int) -> str:
    """The first character after `at` that is no white space."""
    at += 1
    while at < len(text) and text[at].isspace():
        at += 1
    return text[at : at + 1]


def _last(text: str, at: int) -> str:
    """The last character before `at` that is no white space."""
    at -= 1
    while at >= 0 and text[at].isspace():
        at -= 1
    return text[at] if at >= 0 else ""


def _read(piece: str) -> Any:
    """The value of a piece whose brackets close."""
    valid, value = _loaded(piece)
    if valid:
        return value
    if _BAD_ESCAPE.search(piece):
        raise UnreadableError("escape")
    if len(piece) > LONGEST_MENDED:
        raise UnreadableError("long")
    try:
        value = _mended(piece)
    except RecursionError:
        raise UnreadableError("nested") from None
    except Exception as exc:  # foreign code: whatever it stumbles over, the answer is at fault
        raise UnreadableError("malformed") from exc
    if not isinstance(value, dict | list):
        raise UnreadableError("malformed")
    return value


def _mended(piece: str) -> Any:
    import json_repair

    return json_repair.loads(piece, skip_json_loads=True)

"""A judge's reply → its verdict, or why there is none. No text raises.

JSON as the prompt asks for it is found and mended as the replies of a consolidation are
(`consolidation.extracting`). Of a reply without JSON a verdict is taken only where it is the whole
reply, its first word or its last line, and only if these do not contradict each other: a verdict
somewhere in a sentence may be a quotation of the answer that is judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cofire.consolidation.extracting import LONGEST, UnreadableError, extract
from cofire.models.generator import Finish

WHY = 300
"""Characters of a reason that are kept."""

_YES = frozenset({"right", "correct", "yes", "true", "1", "accurate"})
_NO = frozenset({"wrong", "incorrect", "no", "false", "0", "inaccurate"})
_WORDS = "|".join(sorted(_YES | _NO, key=len, reverse=True))
_OPENERS = "yes|no|correct|incorrect|wrong|true|false"  # not "Right, let me see", nor "1. It says"
_KEYS = ("right", "correct", "is_right", "is_correct", "verdict", "label", "judgement", "judgment")
_REASONS = ("why", "reason", "reasoning", "explanation")
_SAID = r"(?:the )?(?:answer|reply|verdict|final answer|label)\s*(?:is|:|=)\s*"
_KEY = rf"[\"']?(?:{'|'.join(_KEYS)})[\"']?\s*[:=]\s*"
_ALONE = re.compile(rf"(?:{_KEY}|{_SAID})?(not\s+)?({_WORDS})", re.IGNORECASE)
_FIRST = re.compile(
    rf"(?:{_SAID})?(not\s+)?({_OPENERS})(?=\s*[.,;:!\n\u2013\u2014-])", re.IGNORECASE
)
_AROUND = " \t\r\n*_`#>\"'.!()[]{}"
_CUT = re.compile(rf"\s*(?:```\w*\s*)?\{{\s*\"(?:{'|'.join(_KEYS)})\"\s*:\s*(true|false)\s*,")
_THOUGHT = re.compile(r".*</(?:think|thinking|thought|reasoning|reflection)>", re.I | re.S)
_THINKING = re.compile(r"\s*<?(?:think|thinking|thought|reasoning|reflection)>", re.I)


class Verdict(NamedTuple):
    """`right`: None where the reply is unusable, and `unusable` then says why: a word of
    `extracting`, "refusal", "shape" (JSON without a verdict) or "ambiguous"."""

    right: bool | None
    why: str = ""
    unusable: str = ""


def read_verdict(text: str, finish: Finish = "stop") -> Verdict:
    """What a reply says. Of one that was cut off, only a verdict that came first is taken."""
    if finish in {"refusal", "filter"}:
        return Verdict(None, unusable="refusal")
    try:
        return _of_value(extract(text))
    except UnreadableError as exc:
        reason = str(exc)
    if reason == "cut" and (match := _CUT.match(text)):
        return Verdict(match[1] == "true")
    if finish == "length":
        return Verdict(None, unusable="cut")
    return _of_words(text) if reason == "prose" else Verdict(None, unusable=reason)


def _of_value(value: Any) -> Verdict:
    """The verdict in JSON: an object, or a list of one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping):
        return Verdict(None, unusable="shape")
    given = {str(key).strip().casefold(): item for key, item in value.items()}
    found = {_truth(given[key]) for key in _KEYS if key in given}
    if len(found) != 1 or None in found:
        return Verdict(None, unusable="ambiguous" if len(found) > 1 else "shape")
    reasons = [given[key] for key in _REASONS if isinstance(given.get(key), str)]
    return Verdict(found.pop(), why=_short(reasons[0]) if reasons else "")


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip(_AROUND).casefold() if isinstance(value, str | int) else ""
    if word in _YES or word in _NO:
        return word in _YES
    return False if word in {"not right", "not correct"} else None


def _of_words(text: str) -> Verdict:
    """The verdict of a reply without JSON."""
    said = _THOUGHT.sub("", text[:LONGEST]).strip(_AROUND)
    if not said:
        return Verdict(None, unusable="thinking" if _THOUGHT.match(text) else "empty")
    if _THINKING.match(text) and not _THOUGHT.match(text):
        return Verdict(None, unusable="thinking")
    lines = [bare for line in said.splitlines() if (bare := line.strip(_AROUND))]
    matches = [_ALONE.fullmatch(lines[0]) or _FIRST.match(said), _ALONE.fullmatch(lines[-1])]
    found = {(match[2].casefold() in _YES) is not bool(match[1]) for match in matches if match}
    if len(found) != 1:
        return Verdict(None, unusable="ambiguous" if found else "prose")
    return Verdict(found.pop(), why=_short(said))


def _short(text: str) -> str:
    """A reason on one line, without what cannot be written to a file."""
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= WHY else line[: WHY - 1].rstrip() + "…"

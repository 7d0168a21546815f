"""What stands around a sentence and takes from it that its speaker means it: quotation marks over
several sentences, code, a block quote, a task ("translate this"), a joke, or that it is taken back.

Only the turn itself is read: a game that was agreed on in an earlier turn is not seen.
"""

from __future__ import annotations

import re

from cofire.encoding.text import aligned

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_MARKS = re.compile('["\u201c\u201d\u201e\u00ab\u00bb]')
_OPENING, _CLOSING = frozenset("\u201c\u201e\u00ab"), frozenset("\u201d\u00bb")
_TASK = re.compile(
    r"\b(?:translat\w*|draft\w*|proofread\w*|paraphras\w*|rewrit\w*|rephras\w*|summari[sz]\w*|"
    r"pretend\w*|imagine|suppose|role[- ]?play\w*|act as|letters?|e-?mail (?:to|from|for)|forms?|"
    r"poems?|lyrics|song text|quot\w+|novel|fiction\w*|story|stories|screenplay|script|dialogue|"
    r"interviewee|interview(?:er|ed)|transcript|example sentences?|cover letter|cv|resume|"
    r"r\u00e9sum\u00e9|character|persona|following|in the voice of|write (?:me )?(?:a|an|the))\b",
    re.IGNORECASE,
)
_STRICT_TASK = re.compile(
    r"\b(?:(?:please |can you |could you )?translate\b|let's (?:role[- ]?play|pretend)|"
    r"role[- ]?play\b|pretend (?:that |to be |you)|act as (?:a|an|if)\b|in my novel\b|"
    r"(?:proofread|rephrase|paraphrase)\b)",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:just kidding|only kidding|kidding|joking|jk|scratch that|strike that|i was lying|i lied|"
    r"i am lying|i'm lying|i mean|no wait|correction|i take (?:that|it) back|not true|"
    r"made (?:that|it) up|not really|psych)\b|(?:^|[.!?\u2026]\s+)not!|\(not\)",
    re.IGNORECASE,
)
_STRICT_TAKEN_BACK = re.compile(
    r"\b(?:just kidding|only kidding|jk|scratch that|strike that|i was lying|i lied|"
    r"i take (?:that|it) back|made (?:that|it) up)\b|(?:^|[.!?\u2026]\s+)not!",
    re.IGNORECASE,
)
_LAUGH = r"(?:(?:ha){2,}h?|(?:he){2,}|lol|lmao|rofl|just kidding|only kidding|kidding|joking|jk)"
_LAUGHED = re.compile(rf"\b{_LAUGH}\W*$", re.IGNORECASE)
_LAUGHS = re.compile(rf"^\W*{_LAUGH}\b", re.IGNORECASE)
_VOICE = re.compile(r"^\s*(?:[-*\u2013] )?(?:[A-Z][\w'.-]*(?: [A-Z][\w'.-]*){0,2}|[QA]) ?: ")
_NEXT = 24


def quoted(text: str, start: int) -> bool:
    """Whether the sentence at `start` of a turn stands in quotation marks opened before it, in
    fenced code or in a block quote."""
    before = text[:start]
    if len(_FENCE.findall(before)) % 2:
        return True
    line = before[before.rfind("\n") + 1 :] + text[start : start + 1]
    if line.lstrip().startswith((">", "```", "~~~")):
        return True
    depth = 0
    for mark in _MARKS.findall(before):
        if mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth = max(depth - 1, 0)
        else:
            depth = 0 if depth else 1
    return depth > 0


def joked(text: str, start: int, end: int) -> bool:
    """Whether a sentence of a turn ends in laughter, or is laughed off or denied just after."""
    sentence = aligned(text[start:end]).rstrip("\"'\u201d)*_ ")
    after = aligned(text[end : end + _NEXT])
    return bool(_LAUGHED.search(sentence) or _denied_after(after))


def _denied_after(after: str) -> bool:
    return bool(_LAUGHS.match(after) or re.match(r"\W*not!", after, re.IGNORECASE))


def unmeant(text: str, start: int, end: int) -> bool:
    """Whether a sentence of a turn is surely not its speaker's own: after a task such as
    "translate" in an earlier sentence of the turn, before a retraction, or as a joke."""
    if joked(text, start, end):
        return True
    task = _STRICT_TASK.search(aligned(text[:start]))
    return task is not None or _STRICT_TAKEN_BACK.search(aligned(text[start:])) is not None


def doubtful(text: str) -> bool:
    """Whether a turn as a whole might not speak for its speaker: it sets or names a task with
    words, takes something back, or has several speakers. For rules that abstain in doubt."""
    plain = aligned(text)
    if _TASK.search(plain) or _TAKEN_BACK.search(plain):
        return True
    lines = plain.splitlines()
    return any(_VOICE.match(line) or line.rstrip().endswith(":") for line in lines)

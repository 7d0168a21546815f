"""What a sentence says that somebody means to do, or has done at last: few English patterns, which
abstain when in doubt.

Nothing is inferred from what is asked, supposed, denied, reported or done at once ("I'm going to
grab a coffee now"), nor from an intention without an object ("I'm going to sleep").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cofire.consolidation.drafts import Turn
from cofire.consolidation.framing import doubtful, joked, quoted
from cofire.consolidation.quoting import sentences
from cofire.consolidation.tokens import is_question
from cofire.consolidation.wording import is_past
from cofire.encoding.analysis import analyse
from cofire.encoding.text import aligned
from cofire.types import Kind

LONGEST = 200
"""Characters: longer sentences say several things at once and are left alone."""
MOST_PER_TURN = 3
"""Intentions read from one turn, at most."""
COVERED = 0.5
"""Part of what was to be done that a completion must name, and part of its own words that must be
about it."""

_DOUBT = re.compile(
    r"\b(?:if|unless|would|could|might|(?-i:may)|maybe|perhaps|probably|possibly|wish|hope|hoping|imagine|"
    r"suppose|says?|said|thinks?|thought|told|heard|almost|nearly|should|dream|pretend|kidding|"
    r"joking|lol|guess|unsure|was|were|never|eventually|someday|one day)\b"
    r"|[\"\u201c\u201d\u00ab\u00bb]",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|no|never|cannot|nothing|without)\b|n't\b", re.IGNORECASE)
_AT_ONCE = re.compile(
    r"\b(?:right now|now|in a (?:sec|second|minute|moment|bit)|real quick|brb|for a bit)\b",
    re.IGNORECASE,
)
_LEAD = (
    r"(?:(?:hi|hey|hello|well|so|oh|ok|okay|yes|yeah|and|but|also|actually|by the way|btw|anyway|"
    r"this year|next year|this weekend|next week|tomorrow|today),? ){0,3}"
)
_ADVERB = r"(?:(?:still|really|definitely|finally|also|already|just) )?"
_DO = r"(?P<action>[a-z][\w'-]*(?: .+?)?)[.!\u2026 ]*"
_I_AM = r"i(?:'m| am)"
_I_HAVE = r"(?:i|we)(?:'ve| have)?"


def _patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_LEAD + text, re.IGNORECASE) for text in texts)


_GOALS = _patterns(
    rf"{_I_AM} {_ADVERB}going to {_DO}",
    rf"{_I_AM} {_ADVERB}gonna {_DO}",
    rf"{_I_AM} {_ADVERB}(?:planning|determined) to {_DO}",
    rf"i {_ADVERB}(?:plan|intend|aim) to {_DO}",
    rf"i(?:'ve| have) {_ADVERB}decided to {_DO}",
    rf"my (?:goal|plan|aim|resolution)(?: for (?:this|next) \w+)? is to {_DO}",
)
_THREADS = _patterns(
    rf"(?:please )?remind me to {_DO}",
    rf"(?:please )?don't let me forget to {_DO}",
    rf"(?:i|we) still (?:need|have) to {_DO}",
    rf"(?:i|we)(?:'ve| have) still got to {_DO}",
    rf"to[- ]?do ?[:\u2013-] ?{_DO}",
)
_DONE = _patterns(
    rf"{_I_HAVE} (?:finally |just |already |now )?(?:finished|completed|did|wrapped up|sorted out|"
    rf"took care of|taken care of|done with|ticked off) {_DO}",
    r"(?P<action>(?:the|my|our) .+?) (?:is|are) (?:finally |now |all )?"
    r"(?:done|finished|completed?)[.!\u2026 ]*",
    rf"done ?[:\u2013-] ?{_DO}",
)
_DID = _patterns(
    rf"{_I_HAVE} (?:finally|just|already) (?P<action>(?P<verb>[a-z]+) .+?)[.!\u2026 ]*"
)

_NO_ACTION = frozenset(
    """the a an my our your his her its their this that these those me you him them it us be have
    miss need love stay try become like hate say tell assume guess bet die cry sleep go see look
    keep let school bed work church college town university home court""".split()
)
"""First words after "going to" that begin no undertaking, or go somewhere."""
_VAGUE = frozenset({"it", "this", "that", "them", "these", "those", "so", "something", "some"})
"""Objects that say nothing without what was said before."""
_WHEN = frozenset(
    analyse(
        "today tomorrow tonight morning afternoon evening night day days week weeks weekend month "
        "months year years soon later next monday tuesday wednesday thursday friday saturday "
        "sunday january february march april june july august september october november december "
        "spring summer autumn fall winter time once again",
        "en",
    ).terms
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undertaking:
    """What is to be done: the first term of it (`verb`) and the others, times left out."""

    verb: str
    about: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intention:
    """Characters `start` to `end` of a turn say that its speaker means to do something: a goal, or
    a thread, which is something that waits to be done."""

    kind: Kind
    start: int
    end: int
    what: Undertaking


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Characters `start` to `end` of a turn say that something was done: its `terms`, the first
    of which is the `verb` (None: "finished", "did" and the like, which go with whatever)."""

    start: int
    end: int
    verb: str | None
    terms: frozenset[str]


def intention_of(sentence: str) -> tuple[Kind, Undertaking] | None:
    """What a sentence says that its speaker means to do; None in doubt. Never raises."""
    text = _readable(sentence)
    if text is None:
        return None
    for kind, patterns in ((Kind.THREAD, _THREADS), (Kind.GOAL, _GOALS)):
        for pattern in patterns:
            match = pattern.fullmatch(text)
            if match is not None:
                what = _undertaking(match["action"])
                return None if what is None else (kind, what)
    return None


def completion_of(sentence: str) -> tuple[str | None, frozenset[str]] | None:
    """What a sentence says that was done: its verb, if it is a telling one, and its terms. None in
    doubt. Never raises."""
    text = _readable(sentence)
    if text is None or _DENIED.search(text):
        return None
    for pattern in _DONE:
        match = pattern.fullmatch(text)
        if match is not None:
            terms = _terms(match["action"])
            return (None, frozenset(terms)) if terms else None
    for pattern in _DID:
        match = pattern.fullmatch(text)
        if match is not None and is_past(match["verb"].lower()):
            terms = _terms(match["action"])
            return (terms[0], frozenset(terms)) if len(terms) > 1 else None
    return None


def _readable(sentence: str) -> str | None:
    text = " ".join(aligned(sentence).split())
    if len(text) > LONGEST or is_question(text) or _DOUBT.search(text):
        return None
    return text


def _undertaking(action: str) -> Undertaking | None:
    first, *rest = action.lower().split(maxsplit=2)
    if first in _NO_ACTION or (rest and rest[0] in _VAGUE):
        return None
    if _DENIED.search(action) or _AT_ONCE.search(action):
        return None
    terms = _terms(action)
    about = frozenset(terms[1:])
    return Undertaking(verb=terms[0], about=about) if about else None


def _terms(text: str) -> tuple[str, ...]:
    return tuple(term for term in analyse(text, "en").terms if term not in _WHEN)


def intentions(turn: Turn) -> tuple[Intention, ...]:
    """What the speaker of a turn means to do, in order. Nothing from turns that are not trusted,
    not English, or an assistant's: that offers more than it intends."""
    if not _speaks_of_itself(turn):
        return ()
    found = []
    for start, end in _own_sentences(turn):
        read = intention_of(turn.content[start:end])
        if read is not None:
            found.append(Intention(kind=read[0], start=start, end=end, what=read[1]))
    return tuple(found[:MOST_PER_TURN])


def completions(turn: Turn) -> tuple[Completion, ...]:
    """What the speaker of a turn says was done, in order."""
    if not _speaks_of_itself(turn):
        return ()
    found = []
    for start, end in _own_sentences(turn):
        read = completion_of(turn.content[start:end])
        if read is not None:
            found.append(Completion(start=start, end=end, verb=read[0], terms=read[1]))
    return tuple(found)


def _own_sentences(turn: Turn) -> list[tuple[int, int]]:
    """The sentences that the speaker says for themselves and means (`framing`)."""
    text = turn.content
    return [
        (start, end)
        for start, end in sentences(text)
        if not (quoted(text, start) or joked(text, start, end))
    ]


def _speaks_of_itself(turn: Turn) -> bool:
    return (
        not turn.untrusted
        and turn.language in (None, "en")
        and (turn.role or "").casefold() not in ("assistant", "system", "tool")
        and not doubtful(turn.content)
    )


def completes(done: Completion, what: Undertaking) -> float:
    """How far a completion is of an undertaking, in [0, 1]: the part of its object that is named; 0
    unless that and the part of the completion that is about it are both at least `COVERED`, and the
    verb, where it tells, is the same."""
    if done.verb is not None and done.verb != what.verb:
        return 0.0
    named = len(what.about & done.terms) / len(what.about)
    own = len(done.terms & (what.about | {what.verb})) / len(done.terms)
    return named if min(named, own) >= COVERED else 0.0

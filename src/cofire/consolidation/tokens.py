"""English words as they stand in a sentence: contractions spelled out, names told from words that
merely begin one, questions from statements.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cofire.consolidation import wording as w
from cofire.encoding.concepts import concepts
from cofire.encoding.english import CONTRACTIONS, IRREGULAR
from cofire.encoding.names import COMMON_OPENERS, OPENER_ENDINGS, VERBS_AFTER_NAMES
from cofire.encoding.stopwords import stop_words
from cofire.encoding.text import aligned, fold

_TOKEN = re.compile(r"[^\W_]+(?:['&@.-][^\W_]+)*|[\"\u201c\u201d\u201e\u00ab\u00bb]")
QUOTES = frozenset('"\u201c\u201d\u201e\u00ab\u00bb')
"""Marks around what is quoted."""


class Token(NamedTuple):
    """A word, lower case, as it was written, its place, the marks before it, and whether it is a
    name or part of one."""

    word: str
    text: str
    start: int
    gap: str
    name: bool


def names_of(text: str) -> frozenset[str]:
    """The stems by which somebody called `text` is recognised."""
    return frozenset(
        w.stem(word) for word in re.findall(r"[^\W_]+", fold(aligned(text))) if word not in _SMALL
    )


_SMALL = frozenset(["the", "a", "an", "of", "and", "s", "my", "our"])


def tokens_of(text: str, known: frozenset[str] = frozenset()) -> list[Token]:
    """The words of `text` with contractions spelled out (don't → do, not). `known` are stems that
    name somebody even where they begin a sentence."""
    text = aligned(text)
    names = [(one.start, one.end) for one in concepts(text, "en") if one.sort in _NAMES]
    found: list[Token] = []
    last = 0
    matches = list(_TOKEN.finditer(text))
    for index, match in enumerate(matches):
        gap = text[last : match.start()]
        last = match.end()
        after = fold(matches[index + 1].group()) if index + 1 < len(matches) else ""
        initial = not found or any(mark in gap for mark in ".!?\n")
        for number, word in enumerate(_spelled_out(match.group(), text[last : last + 12])):
            low = fold(word)
            capital = word[:1].isupper() and low not in stop_words("en") and not number
            name = capital and (
                not initial
                or w.stem(low) in known
                or (
                    not _opens(low)
                    and (
                        _is_verb(after) or any(first <= match.start() < end for first, end in names)
                    )
                )
            )
            found.append(Token(low, word, match.start(), "" if number else gap, name))
    return found


def _opens(word: str) -> bool:
    """Whether a sentence may begin with the word although it names nobody."""
    return (
        word in COMMON_OPENERS
        or word in w.ELLIPTICAL
        or word in w.KIN
        or word.endswith(OPENER_ENDINGS)
    )


def _is_verb(word: str) -> bool:
    """Whether the word after a capital looks like the verb of a sentence about somebody."""
    return (
        w.is_past(word)
        or word in IRREGULAR
        or word in w.PARTICIPLES
        or word in VERBS_AFTER_NAMES
        or (word.endswith("s") and not word.endswith("ss") and word not in stop_words("en"))
    )


_NAMES = frozenset({"name", "acronym", "handle"})


def _spelled_out(word: str, rest: str) -> tuple[str, ...]:  # noqa: PLR0911 - one return per form
    """A word without its apostrophe; `rest` is what follows it, to tell "is" from possession."""
    low = word.lower()
    if low in CONTRACTIONS:
        return CONTRACTIONS[low]
    if "'" not in word:
        return ("can", "not") if low == "cannot" else (word,)
    head, _, tail = word.rpartition("'")
    tail = tail.lower()
    if low.endswith("n't"):
        return word[:-3], "not"
    if tail in _ENDINGS:
        return head, _ENDINGS[tail]
    if tail == "s":
        if head.lower() in _BEFORE_IS or _AFTER_IS.match(rest):
            return head, "has" if rest.startswith(" been ") else "is"
        return head, "'s"
    return (word,)


_ENDINGS = {"m": "am", "re": "are", "ve": "have", "ll": "will", "d": "would"}
_BEFORE_IS = frozenset(["he", "she", "it", "that", "there", "here", "what", "who", "where"])
_AFTER_IS = re.compile(r" (?:been|a|an|the|not|so|very|going|always|really|in|at|my|just|got) ")


_TAG = re.compile(
    r",?\s(?:huh|right|eh|yeah|you know|no|hey|(?:is|are|was|were|do|does|did|have|has|can|would)"
    r"n't (?:it|he|she|they|you|we|i)|don't you think)\?+$",
    re.IGNORECASE,
)


def is_question(sentence: str) -> bool:
    """Whether a sentence asks: a tag after a statement ("cool, huh?") asks nothing."""
    bare = aligned(sentence).rstrip("\"'\u201d)*_ ")
    return bare.endswith("?") and not _TAG.search(bare)


def without_titles(tokens: list[Token]) -> list[Token]:
    """The tokens without quotation marks around titles and single words: what somebody says has a
    pronoun in it."""
    marks = [place for place, token in enumerate(tokens) if token.word in QUOTES]
    dropped = set(marks[2 * (len(marks) // 2) :])
    for first, last in zip(marks[::2], marks[1::2], strict=False):
        if not {token.word for token in tokens[first:last]} & _PRONOUNS:
            dropped |= {first, last}
    return [token for place, token in enumerate(tokens) if place not in dropped]


_PRONOUNS = w.FIRST | w.PLURAL_FIRST | w.SECOND | w.NOMINATIVES

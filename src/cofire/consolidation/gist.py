"""Extractive gists: sentences of memories, verbatim, that stand for more than themselves.

Nothing is worded anew. A gist is found where its memories are not, for two reasons:

    exchange   "Where do you practise?" "In the park, mostly." An answer leaves out what the
               question said. Its gist is the question asked last before it and the answer.
    core       a turn that greets, tells and asks is like nothing in particular. Its gist is the
               one sentence that is most like the whole.

Several memories (a cluster) have a gist, too: their most central sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cofire.consolidation.drafts import Span, Turn
from cofire.consolidation.quoting import sentences
from cofire.dynamics.arrays import I64, Floats

_ASKS = ("?", "？", "؟")
_CLOSING = "\"'”’)»]"


class Gist(NamedTuple):
    """`text` to be embedded, made of the sentences at `spans`; it stands for memory `number`."""

    number: int
    text: str
    spans: tuple[Span, ...]


class Sentence(NamedTuple):
    """Characters `start` to `end` of a turn; `asks`: it ends in a question mark."""

    start: int
    end: int
    text: str
    asks: bool


def sentences_of(turn: Turn) -> list[Sentence]:
    """The sentences of a turn, in order."""
    found = []
    for start, end in sentences(turn.content):
        text = turn.content[start:end]
        found.append(Sentence(start, end, text, text.rstrip(_CLOSING).endswith(_ASKS)))
    return found


def told(turn: Turn) -> list[Sentence]:
    """The sentences of a turn that tell something: those that do not ask, all if every one does."""
    every = sentences_of(turn)
    return [one for one in every if not one.asks] or every


def exchange(turn: Turn, before: Turn | None) -> Gist | None:
    """What `turn` tells, after the last question of the turn `before` it; None if that asked
    nothing, was said by the same speaker, or `turn` tells nothing."""
    if before is None or (turn.speaker is not None and turn.speaker == before.speaker):
        return None
    asked = [one for one in sentences_of(before) if one.asks]
    answers = [one for one in sentences_of(turn) if not one.asks]
    if not asked or not answers:
        return None
    question = asked[-1]
    return Gist(
        turn.number,
        " ".join([question.text, *(one.text for one in answers)]),
        (_span(before, question), *(_span(turn, one) for one in answers)),
    )


def core(turn: Turn, told: Sequence[Sentence], central: int) -> Gist:
    """The gist of a turn that is its sentence `central`."""
    sentence = told[central]
    return Gist(turn.number, sentence.text, (_span(turn, sentence),))


def central(vectors: Floats, most: int = 1, whole: Floats | None = None) -> I64:
    """Positions of the `most` central of sentences, in the order of the text.

    `vectors` (s, d) of unit length; central is what is most like `whole` (d,), by default their
    sum. Of equally central ones the earlier. Zero vectors are the last to be chosen.
    """
    wide = np.asarray(vectors, np.float64)
    middle = wide.sum(axis=0) if whole is None else np.asarray(whole, np.float64)
    likeness = np.where(wide.any(axis=1), np.round(wide @ middle, 6), -np.inf)
    order = np.lexsort((np.arange(len(wide)), -likeness))
    return np.sort(order[:most]).astype(np.int64)


def _span(turn: Turn, sentence: Sentence) -> Span:
    return Span(number=turn.number, version=turn.version, start=sentence.start, end=sentence.end)

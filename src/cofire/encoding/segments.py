"""Long texts in pieces that the embedding model can read whole.

The pieces cover the text exactly. Cuts fall at the best boundary near where pieces of equal size
would end: paragraph, sentence, clause, word, and inside a word only where there is nothing else.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from cofire.encoding.characters import IGNORABLE, MARKS, SKIN, VOICING

Offsets = Callable[[str], Sequence[tuple[int, int]]]
"""A tokeniser: text → (start, end) characters of its wordpieces, special tokens left out."""

LIMIT = 200
"""Wordpieces of a segment at most."""

FILL = 0.85
"""Segments are planned this full, so that there is room to move a cut to a better boundary."""

LONG_PIECE = 100
"""Characters: WordPiece gives up on longer words and makes them one unknown token. Such a token
counts as one wordpiece for each ten characters, so that a megabyte without spaces is cut too."""

_ATOM = 1_000  # characters into which an unknown token is cut; each stays unknown, so one token

_SENTENCE = frozenset(".!?…。！？｡।؟۔።។॥︒")
_CLAUSE = frozenset(",;:，、；：،؛—–")
_CLOSING = frozenset("\"'”’»)]}」』）】》")
_JOINS = re.compile(f"[{MARKS}{IGNORABLE}{VOICING}{SKIN}]")
_PARAGRAPH, _LINE, _SENTENCE_END, _CLAUSE_END, _WORD, _INSIDE, _NEVER = 6, 5, 4, 3, 2, 1, 0
_REACH = 40  # characters of white space or closing marks looked at on either side of a cut


def split(text: str, offsets: Offsets, limit: int = LIMIT) -> list[tuple[int, int]]:
    """`text` as (start, end) pieces of at most `limit` wordpieces each, in order, without gaps:
    joined they are the text. One piece where it fits; no piece for an empty text.

    `offsets` is called once for the text, and once more for a piece that had to be cut inside
    a word. Time is linear in the length of the text. Raises `ValueError` where `limit` < 2.
    """
    if limit < 2:
        raise ValueError(f"a segment needs room for 2 wordpieces, not {limit}")
    if not text:
        return []
    starts, weights = _atoms(offsets(text), len(text))
    total = weights[-1]
    if total <= limit:
        return [(0, len(text))]
    cuts = [0]
    inside = []
    first = 0
    while total - weights[first] > limit:
        first, rank = _next_cut(text, starts, weights, first, limit)
        inside.append(rank <= _INSIDE)
        cuts.append(starts[first])
    cuts.append(len(text))
    inside.append(False)
    pieces = []
    for number, (start, end) in enumerate(pairwise(cuts)):
        cut_word = inside[number] or (number > 0 and inside[number - 1])
        pieces.extend(_verified(text, start, end, offsets, limit) if cut_word else [(start, end)])
    return pieces


def _atoms(spans: Sequence[tuple[int, int]], size: int) -> tuple[list[int], list[int]]:
    """Where the smallest pieces start, and the weight of all pieces before each (one longer):
    `weights[i]` wordpieces lie before `starts[i]`, `weights[-1]` is their sum."""
    starts: list[int] = []
    weights = [0]
    done = 0
    for start, end in spans:
        begin, stop = max(start, done), min(end, size)
        if stop <= begin:
            continue
        done = stop
        length = stop - begin
        if length <= LONG_PIECE:
            starts.append(begin)
            weights.append(weights[-1] + 1)
            continue
        count = -(-length // _ATOM)
        for part in range(count):
            at, to = (begin + length * n // count for n in (part, part + 1))
            starts.append(at)
            weights.append(weights[-1] + -(-(to - at) // 10))
    return starts, weights


def _next_cut(
    text: str, starts: list[int], weights: list[int], first: int, limit: int
) -> tuple[int, int]:
    """The atom before which to end the piece that begins with atom `first`, and the boundary's
    rank: the best within reach, then the nearest to an even share of what is left."""
    rest = weights[-1] - weights[first]
    share = rest / -(-rest // max(int(limit * FILL), 1))
    base = weights[first]
    low = bisect.bisect_left(weights, base + share * 0.6, first + 1)
    high = bisect.bisect_right(weights, base + min(limit, share * 1.4), first + 1) - 1
    low, high = max(low, first + 1), min(high, len(starts) - 1)
    if high < low:
        return min(first + 1, len(starts) - 1), _INSIDE
    best, best_key = low, (-1.0, 0.0)
    for atom in range(low, high + 1):
        rank = _rank(text, starts[atom])
        key = (float(rank), -abs(weights[atom] - base - share))
        if key > best_key:
            best, best_key = atom, key
    return best, int(best_key[0])


def _rank(text: str, cut: int) -> int:
    """How good a boundary lies before character `cut`."""
    if _JOINS.match(text, cut) or text[cut - 1] == "\u200d":
        return _NEVER
    before = text[max(0, cut - _REACH) : cut]
    bare = before.rstrip()
    gap = before[len(bare) :]
    if gap:
        breaks = gap.replace("\r\n", "\n").count("\n")
        if breaks:
            return _PARAGRAPH if breaks > 1 else _LINE
    while bare and bare[-1] in _CLOSING:
        bare = bare[:-1]
    last = bare[-1:]
    if last in _SENTENCE and (gap or not last.isascii()):
        return _SENTENCE_END
    if last in _CLAUSE and (gap or not last.isascii()):
        return _CLAUSE_END
    return _WORD if gap else _INSIDE


def _verified(
    text: str, start: int, end: int, offsets: Offsets, limit: int
) -> list[tuple[int, int]]:
    """A piece cut inside a word: its wordpieces may be others, and more, than they were in the
    whole text. Halved until each fits."""
    if end - start < 2 or len(offsets(text[start:end])) <= limit:
        return [(start, end)]
    middle = (start + end) // 2
    for cut in range(middle, min(middle + _REACH, end - 1)):
        if _rank(text, cut) > _NEVER:
            middle = cut
            break
    return [
        *_verified(text, start, middle, offsets, limit),
        *_verified(text, middle, end, offsets, limit),
    ]

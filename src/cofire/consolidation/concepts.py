"""Concepts without a language model: who and what is named, and which words are akin.

Names come from capitals, quotation marks and the like (`encoding.concepts`); spellings that are
the same name once case, white space and composition are taken away are aliases of one concept.
Vectors are asked last (`may_be_one`): those of short names and acronyms tell little.

The words of a space are concepts, too: somebody who asks for "activities" means the hiking and
the pottery that were told of. What is akin is told by the vectors of single words. They are
compared while nobody waits, and kept as links from word to word, so that a recall follows links
and embeds nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cofire.consolidation.drafts import ConceptDraft, Turn
from cofire.dynamics.arrays import F64, Floats
from cofire.encoding.analysis import analyse
from cofire.encoding.concepts import concepts
from cofire.encoding.stopwords import stop_words
from cofire.encoding.text import aligned, fold

KIN = 10
"""Words that one word is linked to."""
LEAST_KIN = 0.4
"""Cosine from which two words are akin."""
SAME_NAME = 0.92
"""Cosine from which two names may be of one concept (Synapse)."""
MENTIONS = 60
"""Mentions that a concept's record rests on: the latest."""
MOST_NAMES = 12
"""Names of one concept."""
_WORD = re.compile(r"\w+")
_DIGITS = re.compile(r"\d+")
_BEGINS = re.compile(r"(?:^|[.!?\u2026:\u3002\uff01\uff1f])[\W_]*$")
_UNSPACED_FROM = "\u2e80"
"""From this character on scripts are (mostly) written without spaces."""


class Word(NamedTuple):
    """A term of a space: its most frequent spelling, and in how many memories it is."""

    term: str
    spelling: str
    memories: int


class Kin(NamedTuple):
    """Word `source` leads to word `target` (positions) with a cosine in (0, 1]."""

    source: int
    target: int
    cosine: float


def named(turns: Sequence[Turn]) -> list[ConceptDraft]:
    """Who and what is named in `turns`, in the order of first mention."""
    spellings: dict[str, Counter[str]] = {}
    labels: dict[str, list[str]] = {}
    for turn in turns:
        for concept in concepts(turn.content, turn.language):
            key = same_name(concept.name)
            spellings.setdefault(key, Counter())[concept.name] += 1
            own = labels.setdefault(key, [])
            if turn.label not in own:
                own.append(turn.label)
    drafts = []
    for key, found in spellings.items():
        name, *aliases = sorted(found, key=lambda spelling: (-found[spelling], spelling))
        drafts.append(ConceptDraft(name=name, aliases=tuple(aliases), labels=tuple(labels[key])))
    return drafts


def same_name(name: str) -> str:
    """What is equal for two spellings of one name: NFC, case folded, single spaces, plain
    apostrophes, no full width."""
    return unicodedata.normalize("NFC", _plain(name).casefold())


class Mentioned(NamedTuple):
    """What turns say of one concept: its `names` as they write them, the most frequent first, and
    the `numbers` of the turns, ascending."""

    names: tuple[str, ...]
    numbers: tuple[int, ...]


def mentioned(names: Iterable[str], turns: Iterable[Turn]) -> Mentioned | None:
    """Which of `turns` mention a concept by any of its names, and how; None: none does.

    Of more than `MENTIONS` the latest are kept, and for each name that only others have the latest
    of those: no name is kept that no kept mention bears out.
    """
    wanted = {same_name(name): name for name in names}
    found: Counter[str] = Counter()
    by_turn: dict[int, set[str]] = {}
    for turn in sorted(turns, key=lambda turn: turn.number, reverse=True):
        here = [spelling for name in wanted.values() for spelling in spelled(turn.content, name)]
        if here:
            found.update(here)
            by_turn[turn.number] = set(here)
    if not found:
        return None
    best = sorted(found, key=lambda spelling: (-found[spelling], spelling))[:MOST_NAMES]
    kept = list(by_turn)[:MENTIONS]
    covered = set[str]().union(*(by_turn[number] for number in kept))
    for spelling in best:
        if spelling not in covered:
            kept.append(next(number for number, own in by_turn.items() if spelling in own))
            covered |= by_turn[kept[-1]]
    return Mentioned(tuple(best), tuple(sorted(set(kept))))


def spelled(text: str, name: str) -> list[str]:
    """The spellings of a name in a text, one for each place, with plain apostrophes, in NFC and
    with single spaces. Small letters are the name only if it has none but those, or if it can
    hardly be anything else (`is_distinct`): "Hope" is somebody, "hope" is not."""
    small = name.islower() or is_distinct(name)
    found = _pattern(name).findall(_plain(text))
    return [spelling for spelling in found if small or not spelling.islower()]


def stands_in(text: str, name: str) -> bool:
    """Whether a known name stands in a text beyond doubt: it is distinct, or has a capital where no
    sentence begins ("Hope you are well" does not speak of Hope)."""
    if is_distinct(name):
        return bool(spelled(text, name))
    plain = _plain(text)
    return any(
        not match[0].islower()
        and not _BEGINS.search(plain, max(0, match.start() - 12), match.start())
        for match in _pattern(name).finditer(plain)
    )


def is_distinct(name: str) -> bool:
    """Whether a name is known in whatever case: it has several words, a digit or a mark, or is an
    acronym that is no common word (QRV, not IT)."""
    if any(not letter.isalpha() for letter in name):
        return True
    return is_acronym(name) and len(name) > 2 and fold(name) not in stop_words("en")


def is_acronym(name: str) -> bool:
    """Whether a name is all capitals."""
    return len(name) > 1 and name.isupper()


def may_be_one(one: str, other: str) -> bool:
    """Whether two names are alike enough in letters for their vectors to say that they are of one
    concept: the same but for accents, or the words of one are among the other's. Never acronyms,
    nor names with different digits: their vectors are alike by accident."""
    if is_acronym(one) or is_acronym(other) or not same_digits(one, other):
        return False
    words, others = set(fold(one).split()), set(fold(other).split())
    return bool(words and others) and (words <= others or others <= words)


def same_digits(one: str, other: str) -> bool:
    """Whether two names have the same numbers in them: Boeing 737 is not Boeing 747."""
    return _DIGITS.findall(one) == _DIGITS.findall(other)


@dataclass(frozen=True, slots=True)
class Heard:
    """Texts by their words, so that a name is sought in those only that can have it. `folded`: the
    texts as `same_name` has them; `having`: by word the places of the texts that have it."""

    folded: list[str]
    having: dict[str, list[int]]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Heard:
        folded = [same_name(text) for text in texts]
        having: dict[str, list[int]] = {}
        for place, text in enumerate(folded):
            for word in set(_WORD.findall(text)):
                having.setdefault(word, []).append(place)
        return cls(folded, having)

    def places(self, name: str) -> list[int]:
        """Of the texts that a name may stand in (`stands_in`)."""
        key, word = _sought(name)
        among = range(len(self.folded)) if word is None else self.having.get(word, ())
        return [place for place in among if key in self.folded[place]]


@lru_cache(maxsize=1 << 15)
def _sought(name: str) -> tuple[str, str | None]:
    """A name folded, and its first word; None where words do not show in writing."""
    key = same_name(name)
    ends = {*key[:1], *key[-1:], *_plain(name)[:1], *_plain(name)[-1:]}
    first = _WORD.match(key)
    spaced = first is not None and all(letter < _UNSPACED_FROM for letter in ends)
    return key, first[0] if first is not None and spaced else None


@lru_cache(maxsize=1 << 12)
def _pattern(name: str) -> re.Pattern[str]:
    plain = _plain(name)
    before = r"(?<!\w)" if plain[:1] < _UNSPACED_FROM else ""
    after = r"(?!\w)" if plain[-1:] < _UNSPACED_FROM else ""
    return re.compile(f"{before}{re.escape(plain)}{after}", re.IGNORECASE)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", aligned(text)).split())


def words(texts: Iterable[tuple[str, str | None]]) -> list[Word]:
    """The terms of texts (with their languages), ascending; stop words and own-language doubles
    ("es|gat") are left out."""
    spellings: dict[str, Counter[str]] = {}
    memories: Counter[str] = Counter()
    for text, language in texts:
        here = set()
        for token in analyse(text, language).tokens:
            if "|" not in token.term:
                here.add(token.term)
                spelling = text[token.start : token.end].lower()
                spellings.setdefault(token.term, Counter())[spelling] += 1
        memories.update(here)
    return [
        Word(term, min(found, key=lambda spelling: (-found[spelling], spelling)), memories[term])
        for term, found in sorted(spellings.items())
    ]


def most_said(found: Sequence[Word], most: int) -> list[Word]:
    """At most so many of the words, those in the most memories, in the order given."""
    if len(found) <= most:
        return list(found)
    kept = set(sorted(found, key=lambda word: (-word.memories, word.term))[: max(most, 0)])
    return [word for word in found if word in kept]


def kin(
    vectors: Floats,
    *,
    first: int = 0,
    floor: F64 | None = None,
    most: int = KIN,
    least: float = LEAST_KIN,
) -> list[Kin]:
    """What new words, those at positions from `first` on, are akin to, and what is akin to them.

    Every new word leads to the `most` words that are most like it, of a cosine of at least
    `least`. A known word leads to a new one that is more like it than `floor` (first,) says (the
    cosine of the weakest of the links it has, 0 while it has fewer than `most`). `vectors` (v, d)
    of unit length, zero where a word has none. Cosines are rounded to 1e-6, ties go by position.
    O((v - first) · v · d), in blocks.
    """
    wide = np.asarray(vectors, np.float32)
    found = []
    back: dict[int, list[tuple[float, int]]] = {}
    for start in range(first, len(wide), _BLOCK):
        cosines = np.round((wide[start : start + _BLOCK] @ wide.T).astype(np.float64), 6)
        for place, row in enumerate(np.minimum(cosines, 1.0), start):
            row[place] = -1.0
            near = np.flatnonzero(row >= least)
            best = near[np.lexsort((near, -row[near]))][:most]
            found += [Kin(place, int(other), float(row[other])) for other in best]
            known = near[near < first]
            if floor is not None:
                known = known[row[known] > floor[known]]
            for other in known.tolist():
                back.setdefault(other, []).append((-float(row[other]), place))
    for known_word, others in sorted(back.items()):
        found += [Kin(known_word, other, -cosine) for cosine, other in sorted(others)[:most]]
    return found


_BLOCK = 512

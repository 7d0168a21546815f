"""A chunk → its terms.

A chunk of letters may hold connectors (POL-358, foo_bar, C:\\temp\\x, don't, 20.04): it gives its
parts and, as one more term, the whole, spelled without hyphens, underscores and dots between
letters, so that e-mail meets email and foo_bar meets fooBar; between digits connectors stay
(20.04 is not 2004).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from cofire.encoding.characters import EMOJI, FLAG, IGNORABLE, MARKS, UNSPACED, VOICING
from cofire.encoding.chunks import Sort
from cofire.encoding.english import CONTRACTIONS, ELISIONS, SUFFIXES
from cofire.encoding.stems import default_language, default_stem, fits, own_stem
from cofire.encoding.stopwords import stop_words
from cofire.encoding.text import fold, lower

MAX_WORD = 64
"""Characters of one term; longer words (hashes, blobs) give one term for each so many."""
MAX_WHOLE = 128
"""Characters of an identifier that is also kept whole (URLs, paths)."""
MAX_PARTS = 16
"""Parts of an identifier that is also kept whole."""
CACHED = 48
"""Characters up to which a chunk's terms are remembered."""

Piece = tuple[str, int, int]
"""(term, start, end), characters within the chunk."""


class Expansion(NamedTuple):
    """The terms of a chunk. `stopped` are its stop words; `length` is how many words the kept
    ones count for. A `Lexicon` adds its `marks` and how many `words` they were read from."""

    kept: tuple[Piece, ...]
    stopped: tuple[Piece, ...]
    length: int
    terms: tuple[str, ...]
    marks: int = 0
    words: int = 0


def _expansion(kept: Iterable[Piece], stopped: Iterable[Piece], length: int) -> Expansion:
    pieces = tuple(kept)
    terms = tuple([term for term, _, _ in pieces])
    return Expansion(pieces, tuple(stopped), length if terms else 0, terms)


_UNIT = re.compile(f"[{UNSPACED}][{MARKS}{VOICING}{IGNORABLE}]*")
_PICTOGRAPH = re.compile(f"[{FLAG}]{{2}}|[{EMOJI}]")
_EMOJI_NOISE = re.compile("\ufe0f")
_GENDER = frozenset("\u2640\u2642")
_PART = re.compile(r"[^-_.@/\\&:,#%+]+")
_HARD = re.compile(r"[@/\\:]")
_SOFT = re.compile(r"[^@/\\:]+")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_CAMEL = re.compile("[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_NUMBERED = re.compile("[0-9]+|[^0-9]+")
_MAX_CAMEL = 4  # more parts than this are a hash or a key, not a name
_ORDINAL = frozenset({"st", "nd", "rd", "th"})

_JOSA = (
    "으로", "에서", "에게", "한테", "까지", "부터", "하고", "처럼", "보다", "이나", "이랑",
    "은", "는", "이", "가", "을", "를", "의", "에", "와", "과", "도", "로", "만", "랑", "나",
)  # fmt: skip


def expand(sort: int, chunk: str, language: str | None, extra: tuple[str, ...]) -> Expansion:
    """The terms of a chunk of a text in `language`; `extra` are the languages whose own terms
    are wanted beside the default ones."""
    if sort == Sort.WORD:
        return _word_chunk(chunk, language, extra)
    if sort == Sort.RUN:
        return _run(chunk)
    if sort == Sort.HANGUL:
        return _hangul(chunk)
    return _emoji(chunk)


expand_cached = lru_cache(maxsize=1 << 15)(expand)
"""`expand`, remembered: for chunks of at most `CACHED` characters."""


def long_terms(
    sort: int, chunk: str, language: str | None, extra: tuple[str, ...]
) -> tuple[tuple[str, ...], int]:
    """The kept terms and the length of `expand`, for chunks of any size (a paragraph of Chinese,
    a megabyte of base64), in linear time, without a place for every character and without
    filling the memory of words."""
    if sort == Sort.RUN:
        units = [_unit(unit) for unit in _UNIT.findall(chunk)]
        stops = _particles()
        terms = [unit for unit in units if unit not in stops]
        terms.extend(map(str.__add__, units, units[1:]))
        return tuple(terms), (len(units) + 1) // 2 if terms else 0
    if sort == Sort.WORD and len(parts := _PART.findall(chunk)) > MAX_PARTS:
        terms, length = [], 0
        for part in parts:
            found = (expand_cached if len(part) <= CACHED else expand)(sort, part, language, extra)
            terms.extend(found.terms)
            length += found.length
        return tuple(terms), length
    expansion = expand(sort, chunk, language, extra)
    return expansion.terms, expansion.length


@cache
def _particles() -> frozenset[str]:
    return stop_words("ja") | stop_words("zh")


_unit = lru_cache(maxsize=1 << 13)(fold)


class _Word(NamedTuple):
    """A word within a chunk: folded, lower-cased with accents, and where; `weak` words (what an
    apostrophe shortened) count as stop words."""

    folded: str
    lowered: str
    start: int
    end: int
    weak: bool = False


def _word_chunk(chunk: str, language: str | None, extra: tuple[str, ...]) -> Expansion:
    parts = [(part.group(), part.start()) for part in _PART.finditer(chunk)]
    if len(parts) > MAX_PARTS:
        return _long_chunk(parts, language, extra)
    words: list[_Word] = []
    if not _THOUSANDS.fullmatch(chunk):
        for part, start in parts:
            words.extend(_words(part, start))
    if len(parts) > 1:
        words.extend(_wholes(chunk))
    elif chunk[0] in "#@" or chunk[-1] in "%+#":
        mark = fold(chunk)
        words.append(_Word(mark, mark, 0, len(chunk)))
    return _terms(words, language, extra)


def _long_chunk(
    parts: list[tuple[str, int]], language: str | None, extra: tuple[str, ...]
) -> Expansion:
    """Only the parts; each counts as a word."""
    kept: list[Piece] = []
    stopped: list[Piece] = []
    length = 0
    for part, start in parts:
        found = (expand_cached if len(part) <= CACHED else expand)(0, part, language, extra)
        kept.extend((term, start + begin, start + end) for term, begin, end in found.kept)
        stopped.extend((term, start + begin, start + end) for term, begin, end in found.stopped)
        length += found.length
    return _expansion(kept, stopped, length)


def _wholes(chunk: str) -> Iterator[_Word]:
    """The identifier as one word, and what lies between its slashes and colons where that has
    parts of its own: example.com of https://example.com/a."""
    spans = [(0, len(chunk))]
    if _HARD.search(chunk):
        spans.extend(
            match.span() for match in _SOFT.finditer(chunk) if len(_PART.findall(match[0])) > 1
        )
    for start, end in spans:
        whole = _whole(chunk[start:end])
        if len(whole) <= MAX_WHOLE:
            yield _Word(whole, whole, start, end)


def _whole(chunk: str) -> str:
    """The identifier as one term (see the module's text)."""
    folded = fold(chunk.lstrip("#@").rstrip("%+#"))
    if _THOUSANDS.fullmatch(folded):
        return folded.replace(",", "")
    folded = re.sub(r"'|_+", "", folded)
    return re.sub(r"(?<![0-9])[-.]|[-.](?![0-9])", "", folded)


def _words(part: str, start: int) -> list[_Word]:
    """The words of a part without connectors other than apostrophes."""
    end = start + len(part)
    folded = fold(part)
    if not folded:
        return []
    if len(folded) > MAX_WORD:
        return _slices(part, folded, start)
    split = CONTRACTIONS.get(folded)
    if split is not None:
        return [_Word(word, word, start, end) for word in split]
    if "'" in folded:
        return _apostrophe(part, folded, start)
    word = _Word(folded, lower(part), start, end)
    if not (folded.isalpha() and part.islower()):
        return [word, *_camel(part, folded, start)]
    return [word]


def _exact(part: str, folded: str) -> bool:
    """Whether folding went character by character, so that places in `folded` are places in
    `part`; ß or a separate accent shift them."""
    if part.isascii():
        return True
    units = [_unit(char) for char in part]
    return all(len(unit) == 1 for unit in units) and "".join(units) == folded


def _slices(part: str, folded: str, start: int) -> list[_Word]:
    """A word too long to be one, in pieces; with their places where folding kept the length."""
    exact = _exact(part, folded)
    end = start + len(part)
    return [
        _Word(
            piece := folded[at : at + MAX_WORD],
            piece,
            start + at if exact else start,
            start + at + len(piece) if exact else end,
        )
        for at in range(0, len(folded), MAX_WORD)
    ]


def _apostrophe(part: str, folded: str, start: int) -> list[_Word]:
    """Contractions, possessives, elisions, names: John's, hasn't, l'ami, O'Brien, o'clock."""
    end = start + len(part)
    head, _, tail = folded.rpartition("'")
    cut = start + max(part.rfind("'"), 0)
    if default_language(folded) != "en":  # a letter of the word: Ukrainian п'ять
        joined = folded.replace("'", "")
        return [_Word(joined, lower(part).replace("'", ""), start, end)] if joined else []
    if tail == "t" and head.endswith("n"):
        return [_Word(head[:-1], head[:-1], start, cut), _Word("not", "not", cut - 1, end)]
    if tail in SUFFIXES and head:
        base = head.replace("'", "")
        rest = [_Word(word, word, cut, end, weak=True) for word in SUFFIXES[tail]]
        return [_Word(base, base, start, cut), *rest] if base else rest
    if head in ELISIONS and tail:
        return [
            _Word(head, head, start, cut, weak=True),
            _Word(tail, lower(part).rpartition("'")[2], cut + 1, end),
        ]
    words = [_Word(piece, piece, start, end) for piece in folded.split("'") if len(piece) > 1]
    joined = folded.replace("'", "")
    return [*words, _Word(joined, joined, start, end)] if joined else words


def _camel(part: str, folded: str, start: int) -> list[_Word]:
    """The parts of fooBar, HTTPServer, covid19, 5pm, 1990s; none where there is one only or too
    many, none of a single letter."""
    exact = _exact(part, folded)
    found = list(_CAMEL.finditer(part) if part.isascii() else _NUMBERED.finditer(folded))
    if not 1 < len(found) <= _MAX_CAMEL or not all(match[0][0].isalnum() for match in found):
        return []
    words = []
    for match in found:
        word = match.group().lower()
        if word in _ORDINAL or (len(word) == 1 and not word.isdecimal()):
            continue
        place = (
            (start + match.start(), start + match.end()) if exact else (start, start + len(part))
        )
        words.append(_Word(word, word, *place))
    return words


def _terms(words: list[_Word], language: str | None, extra: tuple[str, ...]) -> Expansion:
    kept: dict[str, Piece] = {}
    stopped: dict[str, Piece] = {}
    for word in words:
        default = default_language(word.folded)
        mine = language if language and fits(language, default) else default
        is_stop = word.weak or (mine is not None and word.folded in stop_words(mine))
        target = stopped if is_stop else kept
        term = word.folded if is_stop else default_stem(word.folded)
        target.setdefault(term, (term, word.start, word.end))
        if is_stop:
            continue
        for other in extra:
            if other != default and fits(other, default):
                own = own_stem(word.lowered, other)
                if own is not None:
                    kept.setdefault(own, (own, word.start, word.end))
    return _expansion(kept.values(), stopped.values(), 1)


def _run(chunk: str) -> Expansion:
    """Characters (with their vowel signs) and pairs of them. Particles such as 的 and は count as
    stop words by themselves and stay in the pairs."""
    units = [(_unit(unit.group()), unit.start(), unit.end()) for unit in _UNIT.finditer(chunk)]
    stops = _particles()
    kept = [unit for unit in units if unit[0] not in stops]
    kept.extend((first[0] + second[0], first[1], second[2]) for first, second in pairwise(units))
    kept.sort(key=lambda piece: piece[1:])
    stopped = tuple(unit for unit in units if unit[0] in stops)
    return _expansion(kept, stopped, (len(units) + 1) // 2)


def _hangul(chunk: str) -> Expansion:
    """The word, its pairs of syllables, and a one-syllable stem before a particle (책 of 책을)."""
    word = fold(chunk)
    end = len(chunk)
    if word in stop_words("ko"):
        return _expansion((), ((word, 0, end),), 0)
    if len(word) > MAX_WORD:
        terms = [word[at : at + MAX_WORD] for at in range(0, len(word), MAX_WORD)]
    else:
        terms = [word]
    # Offsets are those of the syllables where the text is composed, else of the word.
    aligned = _exact(chunk, word)
    pieces = {term: (term, 0, end) for term in terms}
    for at in range(len(word) - 1):
        pair = word[at : at + 2]
        pieces.setdefault(pair, (pair, at, at + 2) if aligned else (pair, 0, end))
    for particle in _JOSA:
        if word.endswith(particle) and len(word) > len(particle):
            bare = word[: -len(particle)]
            pieces.setdefault(bare, (bare, 0, len(bare) if aligned else end))
            break
    return _expansion(pieces.values(), (), 1)


def _emoji(chunk: str) -> Expansion:
    """The emoji as written (without its variation selector) and, where it is a sequence, each
    pictograph in it: a family is found as a family and by its members."""
    whole = _EMOJI_NOISE.sub("", chunk)
    pieces = {whole: (whole, 0, len(chunk))}
    for match in _PICTOGRAPH.finditer(chunk):
        base = match.group()
        if base not in _GENDER:
            pieces.setdefault(base, (base, match.start(), match.end()))
    return _expansion(pieces.values(), (), 1)

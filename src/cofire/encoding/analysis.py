"""Text → terms: what lexical recall, concept links and keywords compare.

How a query and a text agree although a query is often too short to tell its language:

- Every word gives one *default term*, made in a way that depends on its script alone: Latin words
  are stemmed as English, Cyrillic as Russian, Greek, Arabic, Devanagari, Armenian and Tamil as
  themselves, all others are kept folded. Query and text therefore always meet here.
- A text recognised as another language of that script (Spanish, Ukrainian …) also gives each
  word's *own-language term*, written "es|gat", so that it never meets another language's stem.
  A query gives it for the language it is recognised as and, where it is not, for each of the
  `languages` that the caller knows the store to hold.

Stop words go by the text's language (in doubt the script's: English for Latin), but a text of
nothing else keeps them all. Scripts without spaces give characters and pairs of characters;
Hangul words also give their pairs of syllables; identifiers are found whole and by their parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cofire.encoding.chunks import Part, chunks
from cofire.encoding.expansion import (
    CACHED,
    Expansion,
    Piece,
    expand,
    expand_cached,
    long_terms,
)
from cofire.encoding.language import MAX_CHARS, from_words, script_of
from cofire.encoding.lexicon import lexicon_of
from cofire.encoding.terms import pack_terms
from cofire.encoding.text import aligned

MAX_WORDS = 400
"""Only so many chunks are looked at to tell the language."""

VERSION = 1
"""Rises whenever the same text would give other terms: stored terms must then be made again."""


class Token(NamedTuple):
    """One occurrence of a term at characters `start` to `end` of the text."""

    term: str
    start: int
    end: int


class Analysis(NamedTuple):
    """What a text consists of.

    `language` is the ISO 639-1 code given or detected, None where unsure. `terms` come in the
    order of the chunks of the text, repetitions included. `length` counts words, not terms: a
    word that gives several terms counts once, two characters without spaces count as one; BM25
    divides by it. `marks` and `words` are those of all word chunks (see `marks`): of an ASCII
    text the whole, since none of its words or digits is outside of a chunk or goes beyond one.
    `tokens` are made when asked for, from `parts`, what was `found` of each, and `extra`.
    """

    language: str | None
    terms: tuple[str, ...]
    length: int
    marks: int
    words: int
    parts: list[Part]
    found: list[Expansion]
    extra: tuple[str, ...]
    only_stop_words: bool

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The terms with their places in the text; the same terms as `terms`."""
        return tuple([Token(*place) for place in self.places])

    @property
    def places(self) -> list[tuple[str, int, int]]:
        """`tokens` as plain tuples: quicker, for each memory that is stored."""
        return [
            (term, offset + start, offset + end)
            for offset, pieces in self.placed
            for term, start, end in pieces
        ]

    @property
    def placed(self) -> list[tuple[int, tuple[Piece, ...]]]:
        """Chunks that have terms: where each begins, and its terms with places within it."""
        placed = []
        for (sort, chunk, offset), expansion in zip(self.parts, self.found, strict=True):
            if len(chunk) > CACHED:
                expansion = expand(sort, chunk, self.language, self.extra)  # noqa: PLW2901
            pieces = expansion.stopped if self.only_stop_words else expansion.kept
            if pieces:
                placed.append((offset, pieces))
        return placed

    def pack(self) -> bytes:
        """The terms with their counts as the store keeps them (`terms.pack_terms`)."""
        return pack_terms(self.terms)


def analyse(text: str, language: str | None = None, *, languages: Sequence[str] = ()) -> Analysis:
    """The terms of `text`, with offsets into it.

    `language` (ISO 639-1) overrides detection. `languages` are those the store holds, for a
    query whose own language cannot be told. Never raises on sanitised text.
    """
    prepared = aligned(text)
    parts = chunks(prepared)
    if language is None:
        language = _language(prepared, parts)
    extra = (language,) if language else tuple(sorted(set(languages)))
    lexicon = lexicon_of(language, extra)
    found = [
        lexicon[chunk] if sort == 0 else _unspaced(sort, chunk, language, extra)
        for sort, chunk, _ in parts
    ]
    terms: list[str] = []
    length = marks = words = 0
    for _, _, size, own, mark, count in found:
        terms += own
        length += size
        marks |= mark
        words += count
    only_stop_words = bool(parts) and not terms
    analysis = Analysis(
        language, tuple(terms), length, marks, words, parts, found, extra, only_stop_words
    )
    if only_stop_words:
        stopped = tuple(token.term for token in analysis.tokens)
        return analysis._replace(terms=stopped, length=len(stopped))
    return analysis


def _unspaced(sort: int, chunk: str, language: str | None, extra: tuple[str, ...]) -> Expansion:
    """The terms of a chunk that is no word; of a long one without their places."""
    if len(chunk) <= CACHED:
        return expand_cached(sort, chunk, language, extra)
    terms, length = long_terms(sort, chunk, language, extra)
    return Expansion((), (), length, terms)


def _language(text: str, parts: list[Part]) -> str | None:
    """`language.detect` on the chunks at hand, cheaper than cutting the text twice."""
    script = None if text.isascii() else script_of(text[:MAX_CHARS])
    return from_words([chunk for _, chunk, _ in parts[:MAX_WORDS]], script)

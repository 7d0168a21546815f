"""All that is known of a word chunk, worked out once: its terms and its marks.

The same few thousand words make up most of what is ever said, so that a look-up takes the place of
stemming, of stop words, and of what `marks` tells.
"""

from __future__ import annotations

from functools import lru_cache

from cofire.encoding.chunks import Sort
from cofire.encoding.expansion import CACHED, Expansion, expand_cached, long_terms
from cofire.encoding.expressions import may_name_a_time
from cofire.encoding.marks import DATING, figures, word_marks, words_of

_MOST_KNOWN = 1 << 14


class Lexicon(dict[str, Expansion]):
    """Word chunk → its terms, with its marks, for one kind of text. Chunks of more than `CACHED`
    characters are not kept, and are without the places of their terms."""

    def __init__(self, language: str | None, extra: tuple[str, ...]) -> None:
        super().__init__()
        self._language = language
        self._extra = extra

    def __missing__(self, chunk: str) -> Expansion:
        words = words_of(chunk)
        marks = word_marks(words) | figures(chunk)
        if may_name_a_time(chunk):
            marks |= DATING
        if len(chunk) > CACHED:
            terms, length = long_terms(Sort.WORD, chunk, self._language, self._extra)
            return Expansion((), (), length, terms, marks, len(words))
        known = expand_cached(int(Sort.WORD), chunk, self._language, self._extra)
        if len(self) >= _MOST_KNOWN:
            self.clear()
        found = self[chunk] = known._replace(marks=marks, words=len(words))
        return found


lexicon_of = lru_cache(maxsize=32)(Lexicon)
"""The table for texts of a language with the own-language terms of `extra`."""

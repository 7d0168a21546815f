"""Words → stems, by script and by language. Stemmers are loaded when first used."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Protocol

from cofire.encoding.english import IRREGULAR
from cofire.encoding.text import fold

_SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian",
    "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali",
    "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip

# Script → the language whose stemmer every word of the script passes through. Hebrew, Georgian
# and others have none: their words stay as they are.
_DEFAULTS: tuple[tuple[int, int, str], ...] = (
    (0x0000, 0x02AF, "en"),
    (0x0370, 0x03FF, "el"),
    (0x0400, 0x052F, "ru"),
    (0x0530, 0x058F, "hy"),
    (0x0600, 0x06FF, "ar"),
    (0x0900, 0x097F, "hi"),
    (0x0B80, 0x0BFF, "ta"),
    (0x1E00, 0x1EFF, "en"),
    (0x1F00, 0x1FFF, "el"),
)
_NOT_LATIN = {
    "ar": "ar", "fa": "ar", "ur": "ar", "el": "el", "hi": "hi", "mr": "hi", "ne": "hi", "hy": "hy",
    "ru": "ru", "uk": "ru", "be": "ru", "bg": "ru", "mk": "ru", "sr": "ru", "ta": "ta", "he": "he",
}  # fmt: skip

MAX_STEMMED = 40
"""Characters: longer "words" are no words, and are kept as they are."""


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - Snowball's name


_local = threading.local()


def _stemmer(language: str) -> _Stemmer:
    """This thread's stemmer: Snowball's objects hold the word they work on. Without a cache of
    their own: stems are kept here."""
    held: dict[str, _Stemmer] = _local.__dict__
    if language not in held:
        from Stemmer import Stemmer

        held[language] = Stemmer(_SNOWBALL[language], 0)
    return held[language]


def default_language(word: str) -> str | None:
    """The language that stands for the script of a folded word; None where there is none."""
    if word.isascii():
        return "en"
    code = ord(word[0])
    for first, last, language in _DEFAULTS:
        if code <= last:
            return language if code >= first else None
    return None


def fits(language: str, word_default: str | None) -> bool:
    """Whether a word of the script that `word_default` stands for can be in `language`."""
    return _NOT_LATIN.get(language, "en") == word_default


@lru_cache(maxsize=1 << 15)
def default_stem(word: str) -> str:
    """The default term of a folded word: by its script alone, so alike in query and text.
    English irregular forms become their base (went → go, children → child)."""
    if len(word) > MAX_STEMMED:
        return word
    language = default_language(word)
    if language is None:
        return word
    if language != "en":
        return fold(_stemmer(language).stemWord(word)) or word
    if not word.isalpha():
        return word
    return _english(word)


def _english(word: str) -> str:
    base = IRREGULAR.get(word)
    stem = _stemmer("en").stemWord(base or word)
    if base is None and stem in IRREGULAR:  # moms → mom, films → film → movie
        stem = _stemmer("en").stemWord(IRREGULAR[stem])
    return stem


@lru_cache(maxsize=1 << 15)
def own_stem(word: str, language: str) -> str | None:
    """The term of a lower-cased word (accents kept: Snowball needs them) in a language that is
    not its script's default: "es|gat". None where the language has no stemmer."""
    if language not in _SNOWBALL or len(word) > MAX_STEMMED:
        return None
    return f"{language}|{fold(_stemmer(language).stemWord(word)) or fold(word)}"

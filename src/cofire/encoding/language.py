"""Which language a text is in: by script, by function words, by letters of its own.

No model and no state: the same text always gives the same answer, and None where the evidence
is thin. Chat lines take some ten microseconds.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from cofire.encoding.characters import IGNORABLE, MARKS
from cofire.encoding.stopwords import WORDS
from cofire.encoding.text import aligned, fold, lower

# Letters that only some languages use, with what one of them is worth in function words.
_LETTERS: dict[str, str] = {
    "ñ": "es", "¿": "es", "¡": "es", "ß": "de", "ä": "de fi sv", "ö": "de sv fi tr hu",
    "ü": "de tr hu", "å": "sv no da", "ø": "no da", "æ": "no da", "ã": "pt", "õ": "pt",
    "ê": "fr pt", "è": "fr it", "ù": "fr it", "ò": "it ca", "ì": "it", "œ": "fr", "û": "fr",
    "î": "fr ro", "ł": "pl", "ą": "pl", "ę": "pl", "ś": "pl", "ż": "pl", "ź": "pl", "ć": "pl",
    "ń": "pl", "ě": "cs", "ř": "cs", "ů": "cs", "ő": "hu", "ű": "hu", "ğ": "tr", "ş": "tr",
    "ı": "tr", "ș": "ro", "ț": "ro", "ă": "ro", "ї": "uk", "є": "uk", "ґ": "uk", "і": "uk",
    "ы": "ru", "э": "ru", "ё": "ru", "ъ": "ru", "پ": "fa ur", "چ": "fa ur", "ژ": "fa", "گ": "fa ur",
    "ٹ": "ur", "ڈ": "ur", "ڑ": "ur", "ں": "ur", "ے": "ur", "ہ": "ur",
}  # fmt: skip
_LETTER_WEIGHT = 0.5
_SPECIAL = re.compile(f"[{''.join(_LETTERS)}]")

# Scripts: where one decides alone, its language; where not, the languages that share it.
_SCRIPTS: tuple[tuple[str, str, str], ...] = (
    ("kana", "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f", "ja"),
    ("hangul", "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af", "ko"),
    ("han", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af", "zh"),
    ("cyrillic", "\u0400-\u052f", ""),
    ("arabic", "\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc", ""),
    ("devanagari", "\u0900-\u097f", ""),
    ("hebrew", "\u0590-\u05ff", "he"),
    ("greek", "\u0370-\u03ff\u1f00-\u1fff", "el"),
    ("thai", "\u0e00-\u0e7f", "th"),
    ("lao", "\u0e80-\u0eff", "lo"),
    ("khmer", "\u1780-\u17ff", "km"),
    ("burmese", "\u1000-\u109f", "my"),
    ("armenian", "\u0530-\u058f", "hy"),
    ("georgian", "\u10a0-\u10ff", "ka"),
    ("bengali", "\u0980-\u09ff", "bn"),
    ("gurmukhi", "\u0a00-\u0a7f", "pa"),
    ("gujarati", "\u0a80-\u0aff", "gu"),
    ("tamil", "\u0b80-\u0bff", "ta"),
    ("telugu", "\u0c00-\u0c7f", "te"),
    ("kannada", "\u0c80-\u0cff", "kn"),
    ("malayalam", "\u0d00-\u0d7f", "ml"),
    ("sinhala", "\u0d80-\u0dff", "si"),
    ("amharic", "\u1200-\u137f", "am"),
)
_SHARED = {
    "cyrillic": frozenset({"ru", "uk"}),
    "arabic": frozenset({"ar", "fa", "ur"}),
    "devanagari": frozenset({"hi", "mr", "ne"}),
}
_BY_SCRIPT = re.compile("|".join(f"(?P<{name}>[{chars}]+)" for name, chars, _ in _SCRIPTS))
# One class for all of them: looking for it is fast, where trying every script at every letter of
# a Latin text is not.
_NOT_LATIN = re.compile(f"[{''.join(chars for _, chars, _ in _SCRIPTS)}]+")
_ALONE = {name: code for name, _, code in _SCRIPTS if code}
_DENSE = frozenset({"kana", "hangul", "han"})  # one character says about as much as three letters
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_WORD = re.compile(f"[^\\W_]+(?:[{MARKS}{IGNORABLE}]+[^\\W_]*)*(?:'[^\\W_]+)?")
_ASCII_WORD = re.compile("[A-Za-z0-9]+(?:'[A-Za-z]+)?")

MIN_SCORE = 0.9
"""Least evidence for an answer: one word that only this language has, nearly."""
MIN_RATIO = 1.5
"""How much more evidence than the next language's is needed."""
_STRIDE = 12  # words after which it is worth seeing whether the answer is already clear
_CLEAR = 2.0
MAX_CHARS = 4_000
"""Only so much of a text is looked at."""

Vote = tuple[str, float]
"""A language and how much a word speaks for it."""


@cache
def _votes() -> dict[str, tuple[Vote, ...]]:
    """Function word (as `lower` gives it, and unaccented) → languages with the word's weight:
    1 for a word of one language, less the more languages share it."""
    owners: dict[str, dict[str, float]] = {}
    for language, words in WORDS.items():
        if language in {"zh", "ja", "ko"}:
            continue
        for word in words.split():
            if len(word) > 1 or not word.isascii():
                owners.setdefault(lower(word), {})[language] = 1.0
    for language, words in WORDS.items():
        for word in words.split():
            if (bare := fold(word)) != word and bare not in owners and len(bare) > 1:
                owners.setdefault(bare, {}).setdefault(language, 0.5)
    for word in _ENGLISH_ONLY:
        owners.setdefault(word, {})["en"] = 1.0
    # One letter is a word in so many languages that it says little even where only one list
    # has it.
    return {
        word: tuple(
            (language, worth * (0.4 if len(word) == 1 else 1.0) / len(shared))
            for language, worth in sorted(shared.items())
        )
        for word, shared in owners.items()
    }


_ENGLISH_ONLY = (
    "i'm", "it's", "that's", "don't", "i've", "you're", "i'll", "we're", "what's", "didn't",
    "can't", "i'd", "let's", "he's", "she's", "they're", "isn't", "doesn't", "won't", "there's",
)  # fmt: skip


def detect(text: str) -> str | None:
    """The ISO 639-1 code of the language that `text` is mostly in, or None where unsure."""
    text = text[:MAX_CHARS]
    if text.isascii():
        return from_words(_ASCII_WORD.findall(text), None)
    text = aligned(text)
    return from_words(_WORD.findall(text), script_of(text))


def script_of(text: str) -> str | None:
    """The script (a name of `_SCRIPTS`) that outweighs Latin and all others; None is Latin."""
    if text.isascii() or not _NOT_LATIN.search(text):
        return None
    text = unicodedata.normalize("NFC", text.casefold())  # neither form nor case decides
    weights: dict[str, int] = {}
    for run in _NOT_LATIN.finditer(text):
        for match in _BY_SCRIPT.finditer(text, run.start(), run.end()):
            name = match.lastgroup or ""
            length = match.end() - match.start()
            weights[name] = weights.get(name, 0) + (3 * length if name in _DENSE else length)
    if not weights:
        return None
    if "kana" in weights and weights.get("han", 0) <= 12 * weights["kana"]:
        # Japanese text is part Han; even a little kana tells it from Chinese.
        weights["kana"] += weights.pop("han", 0)
    best = max(weights, key=lambda name: (weights[name], name))
    return best if weights[best] * 2 > len(_LATIN.findall(text)) else None


def from_words(words: list[str], script: str | None) -> str | None:
    """The language of words in a script (None: Latin)."""
    if script in _ALONE:
        return _ALONE[script]
    if script is not None and script not in _SHARED:
        return None
    scores: dict[str, float] = {}
    cast: list[Vote] = []
    for start in range(0, len(words), _STRIDE):
        heard = words[start : start + _STRIDE]
        new = [vote for word in heard for vote in _word_votes[word]]
        for language, weight in new:
            scores[language] = scores.get(language, 0.0) + weight
        cast += new
        seen = start + len(heard)
        if len(heard) == _STRIDE and (sure := _decide(scores, cast, seen, script, _CLEAR)):
            return sure
    return _decide(scores, cast, len(words), script, 1.0)


class _WordVotes(dict[str, tuple[Vote, ...]]):
    """Word as written → its votes: few words are met for the first time."""

    def __missing__(self, word: str) -> tuple[Vote, ...]:
        lowered = lower(word)
        found = _votes().get(lowered, ())
        if not lowered.isascii():
            found += _letter_votes(lowered)
        if len(word) <= _KEPT_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = found
        return found


_KEPT_WORD = 48  # letters
_MOST_WORDS = 1 << 15
_word_votes = _WordVotes()


def _decide(
    scores: dict[str, float], cast: list[Vote], seen: int, script: str | None, factor: float
) -> str | None:
    """The language with enough evidence (`factor` times that), more than any other, in enough
    of the words `seen`."""
    if script is not None:
        scores = {name: score for name, score in scores.items() if name in _SHARED[script]}
    if not scores:
        return None
    best = max(scores, key=scores.__getitem__)
    score = scores[best]
    if score < factor * MIN_SCORE:
        return None
    hits = [language for language, _ in cast].count(best)
    if hits * 8 < seen:
        return None
    if hits == 1 and seen > 1 and best != "en":
        return None  # one word may be a name or a loan; English is the default anyway
    others = [other for name, other in scores.items() if name != best]
    return best if not others or score >= factor * MIN_RATIO * max(others) else None


def _letter_votes(word: str) -> tuple[Vote, ...]:
    return tuple(
        (language, _LETTER_WEIGHT / len(languages))
        for letter in sorted(set(_SPECIAL.findall(word)))
        for languages in [_LETTERS[letter].split()]
        for language in languages
    )

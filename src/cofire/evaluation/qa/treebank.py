"""Words as the papers' BLEU counts them: the tokens of NLTK's `word_tokenize` (Penn Treebank's
conventions), for lower-cased text.

NLTK finds the ends of sentences with a trained model (Punkt); here a period, "?" or "!" before
white space ends one, unless the period follows an abbreviation, an initial or a number. Only the
tokens of periods depend on it.
"""

from __future__ import annotations

import re

# Those of Punkt's that chats use; it takes "ok." for one too.
_ABBREVIATIONS = frozenset(
    "adm aug ave bros co col corp dec dr feb fri gen inc jan jr lt ltd maj messrs mr mrs ms nov "
    "oct ok prof rep sen sep sept sr st tues vs wed".split()
)
# Possessive, and begun once: a row of dots takes no longer than any other text.
_END = re.compile(r"(?<![.?!])(?P<mark>[.?!]++)[\"')\]}»”’]*+\s+")

# What parts words and is a token itself. The first alternatives are white space and quotes that
# open; the period is a sentence's last.
_PARTING = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<opening>(?<![^\s(\[{<])(?:"|''))
    | (?P<closing>"|'')
    | (?P<mark>
        `+ | \.{2,} | --
        | [;@#$%&?!*()\[\]{}<>«»“”‘’„\u2012-\u2015]
        | [:,](?!\d)
        | (?<=[^.])\.(?=[\])}>"'»”’\s]*\Z)
        | (?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)
      )
    """,
    re.VERBOSE,
)
# Where a word of two parts is cut: don't → do n't, anna's → anna 's, cannot → can not.
_CUT = re.compile(
    r"(?<=[^'])(?='(?:s|m|d|ll|re|ve)?\Z) | (?<=[^'])(?=n't\Z)"
    r"| (?<=\bcan)(?=not\b) | (?<=\bd)(?='ye\b) | (?<=\bgim)(?=me\b) | (?<=\bgon)(?=na\b)"
    r"| (?<=\bgot)(?=ta\b) | (?<=\blem)(?=me\b) | (?<=\bmore)(?='n\b) | (?<=\bwan)(?=na\Z)",
    re.VERBOSE,
)


def words(text: str) -> list[str]:
    """The tokens of a lower-cased text; marks are tokens, double quotes become `` and ''."""
    return [token for sentence in _sentences(text) for token in _tokens(sentence)]


def _sentences(text: str) -> list[str]:
    found, start = [], 0
    for end in _END.finditer(text):
        if end["mark"] != "." or _ends(text[start : end.start()]):
            found.append(text[start : end.end()])
            start = end.end()
    return [*found, text[start:]]


def _ends(before: str) -> bool:
    """Whether a period after this text ends a sentence."""
    last = before.split()[-1:]
    word = last[0].lstrip("\"'([{«“‘") if last else ""
    inside = "." in word  # p.m, e.g
    return not (inside or word in _ABBREVIATIONS or len(word) == 1 or word[-1:].isdigit())


def _tokens(sentence: str) -> list[str]:
    found, start = [], 0
    for mark in _PARTING.finditer(sentence):
        found += _parts(sentence[start : mark.start()])
        start = mark.end()
        if mark.lastgroup != "space":
            found.append({"opening": "``", "closing": "''"}.get(mark.lastgroup or "", mark[0]))
    return found + _parts(sentence[start:])


def _parts(word: str) -> list[str]:
    return [part for part in _CUT.split(word) if part]

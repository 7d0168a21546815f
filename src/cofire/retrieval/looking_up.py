"""What a question is looked up by in a space that the database's indexes serve."""

from __future__ import annotations

import numpy as np

from cofire.encoding.analysis import analyse
from cofire.encoding.terms import term_hash
from cofire.encoding.text import fold
from cofire.retrieval.question import Asked
from cofire.store.large_spaces import Sought
from cofire.types import Filters

MOST_WORDS = 24
"""Words of a question that are looked up: the longest, which are mostly the rarest."""
LEAST_STEM = 4
"""Characters of a stem from which on every word that begins with it is looked up, too."""


def sought(asked: Asked, filters: Filters) -> Sought:
    """The question's vector and words, as the store looks them up."""
    vector = None if asked.vector is None else np.asarray(asked.vector).astype("<f2").tobytes()
    words = lookups(asked.question.text)
    return Sought(vector=vector, words=tuple(words), terms=tuple(words.values()), filters=filters)


def lookups(text: str) -> dict[str, tuple[int, ...]]:
    """The words of a question that are no stop words, each as a tsquery: the word as it is or
    what begins with its stem, since the database's index holds words as they were written; and
    the hashed terms it stands for."""
    found: dict[str, tuple[str, list[int]]] = {}
    for term, start, end in analyse(text).tokens:
        word, stem = fold(text[start:end]), term.rpartition("|")[2]
        query = " & ".join(map(_quoted, word.split()))
        if len(stem) >= LEAST_STEM and stem.isalnum():
            query = f"{query} | {_quoted(stem)}:*" if query else f"{_quoted(stem)}:*"
        if query:
            found.setdefault(word, (query, []))[1].append(term_hash(term))
    chosen = sorted(found, key=len, reverse=True)[:MOST_WORDS]
    return {found[word][0]: tuple(found[word][1]) for word in chosen}


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("'", "''").replace("\0", "")
    return f"'{escaped}'"

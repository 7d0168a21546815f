"""What a question asks for, beyond its words: about whom, about which time, for what sort of thing.

The names of the people who speak in a memory are in nearly every question about it and in hardly
any of their own turns: people say "I". Left in, a name draws the question's vector towards turns
that merely address that person. So it is taken out of what is embedded and matched, "I" is put in
its place, and it becomes a term of its own: who was asked about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from datetime import datetime

from cofire.dynamics.arrays import F32
from cofire.encoding.analysis import analyse
from cofire.encoding.expressions import asks_when, query_range
from cofire.encoding.terms import facet, term_hash
from cofire.encoding.text import fold
from cofire.types import to_micros

_WORD = re.compile(r"[^\W\d_]+(?:[-][^\W\d_]+)*")
_POSSESSIVE = re.compile(r"(?:['’]s\b|(?<=s)['’](?=\s|$))")
_ASKS_NAME = re.compile(
    r"^\W*(?:who|whom|whose|where|which)\b|\b(?:what|which)\s+(?:\w+\s+){0,2}"
    r"(?:names?|titles?|city|cities|country|countries|states?|places?|books?|movies?|films?|songs?"
    r"|bands?|games?|company|brand)\b|\bcalled\b|\bnamed\b",
    re.IGNORECASE,
)
_FORMAL = frozenset(
    {
        "according", "mention", "mentioned", "mentions", "describe", "described", "describes",
        "say", "says", "said", "tell", "tells", "told", "consider", "considered", "kind", "type",
        "sort", "would", "likely",
    }
)  # fmt: skip
"""Words of the asking, not of what is asked for."""

KnownNames = Callable[[Sequence[int]], Container[int]]
"""Those of facet hashes that are names of somebody who speaks in the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, read. `terms` and `words` are its distinct terms as hashes and as text;
    `embedded` is the text to embed; `names` are facet hashes of the speakers it names, in order;
    `range` is the preferred time in µs since 1970 (half-open); `asks_when` and `asks_name` tell
    what sort of answer it wants."""

    text: str
    terms: tuple[int, ...]
    words: tuple[str, ...]
    embedded: str
    names: tuple[int, ...]
    range: tuple[int, int] | None
    asks_when: bool
    asks_name: bool


def read_question(
    text: str,
    now: datetime,
    *,
    known_names: KnownNames,
    languages: Sequence[str] = (),
    take_names_out: bool = True,
) -> Question:
    """`text` (sanitised) as a `Question`; relative times count from `now`."""
    names: list[int] = []
    embedded = matched = text
    if take_names_out:
        embedded, matched, names = _without_names(text, known_names)
    analysis = analyse(matched, languages=languages)
    terms = list(dict.fromkeys(analysis.terms))
    informative = [term for term in terms if term not in _FORMAL]
    words = tuple(informative or terms)
    when = query_range(text, now)
    return Question(
        text=text,
        terms=tuple(term_hash(word) for word in words),
        words=words,
        embedded=embedded,
        names=tuple(dict.fromkeys(names)),
        range=None if when is None else (to_micros(when[0]), to_micros(when[1])),
        asks_when=asks_when(text),
        asks_name=_ASKS_NAME.search(text) is not None,
    )


def _without_names(text: str, known_names: KnownNames) -> tuple[str, str, list[int]]:
    """(text with "I" and "my" for speakers' names, text without them, the names' hashes)."""
    words = list(_WORD.finditer(text))
    hashes = [term_hash(facet("name", fold(word.group()))) for word in words]
    known = known_names(hashes)
    names: list[int] = []
    spoken: list[str] = []
    matched: list[str] = []
    at = 0
    for word, name in zip(words, hashes, strict=True):
        if word.start() < at or name not in known:
            continue
        possessive = _POSSESSIVE.match(text, word.end())
        end = possessive.end() if possessive else word.end()
        names.append(name)
        spoken += [text[at : word.start()], "my" if possessive else "I"]
        matched += [text[at : word.start()], " "]
        at = end
    if not names:
        return text, text, []
    bare = "".join([*matched, text[at:]])
    if not any(character.isalnum() for character in bare):
        return text, text, names
    return "".join([*spoken, text[at:]]), bare, names


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with its vector (float32 (dimension,)); None: recall by words only. `now` is the
    moment (µs) up to which learned links have decayed."""

    question: Question
    vector: F32 | None
    now: int = 0

    @property
    def names(self) -> tuple[int, ...]:
        """Facet hashes of the speakers it names."""
        return self.question.names

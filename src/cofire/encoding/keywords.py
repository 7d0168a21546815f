"""The most telling words and phrases of a text, from names, position, repetition and length."""

from __future__ import annotations

import math
from collections import Counter
from operator import itemgetter

from cofire.encoding.analysis import Analysis, analyse
from cofire.encoding.concepts import MAX_CHARS, Concept, concepts
from cofire.encoding.text import aligned


def keywords(
    text: str,
    k: int = 8,
    *,
    analysis: Analysis | None = None,
    found: tuple[Concept, ...] | None = None,
) -> tuple[str, ...]:
    """Up to `k` telling words and phrases of `text`, best first: names as written, other words
    in lower case. `analysis` and `found` (its concepts) save making them again.

    In the manner of YAKE and RAKE: a word counts for its length (long words are rare), its
    repetition and digits, a name more than any word; a phrase of adjacent content words counts
    for the sum of its words, dampened; nothing is said twice.
    """
    text = aligned(text[:MAX_CHARS])
    if analysis is None:
        analysis = analyse(text)
    if found is None:
        found = concepts(text, analysis.language)
    names = {}
    named = []
    for concept in found:
        if concept.sort != "topic":
            names[concept.start, concept.end] = concept.name
            score = -3.0 - math.log1p(len(concept.name))
            named.append((score, concept.start, concept.end, 0))
    scored = _phrases(text, analysis)
    # By their first field alone, which is fast and the same: they come in the order of the others.
    scored.sort(key=_SCORE)
    if named:
        scored += named
        scored.sort()
    in_lower_case = text.lower() if text.isascii() else ""
    chosen: list[str] = []
    covered = bytearray(len(text) + 1)
    said: set[str] = set()
    for _, start, end, plain in scored:
        if covered.find(1, start, end) >= 0:
            continue
        if plain:
            phrase = lowered = in_lower_case[start:end] or text[start:end].lower()
        else:
            phrase = names[start, end]
            lowered = phrase.lower()
        if lowered in said:
            continue
        covered[start:end] = b"\x01" * (end - start)
        said.add(lowered)
        chosen.append(phrase)
        if len(chosen) == k:
            break
    return tuple(chosen)


def _phrases(text: str, analysis: Analysis) -> list[tuple[float, int, int, int]]:
    """(-score, start, end, 1) of content words and of two or three side by side."""
    words = _weighed(analysis, len(text))
    words += [_NOWHERE, _NOWHERE]
    phrases = []
    for (start, end, weight), (begin, second, more), (after, third, most) in zip(
        words, words[1:], words[2:], strict=False
    ):
        phrases.append((-weight, start, end, 1))
        if begin == end + 1 and text[end] == " ":
            both = weight + more
            phrases.append((-both / _DAMPING[0], start, second, 1))
            if after == second + 1 and text[second] == " ":
                phrases.append((-(both + most) / _DAMPING[1], start, third, 1))
    return phrases


def _weighed(analysis: Analysis, size: int) -> list[tuple[int, int, float]]:
    """(start, end, weight) of the content words within the first `size` characters."""
    terms = analysis.terms
    counts = Counter(terms) if len(set(terms)) < len(terms) else None
    words: list[tuple[int, int, float]] = []
    last = -1
    for offset, pieces in analysis.placed:
        for term, first, stop in pieces:
            start, end = offset + first, offset + stop
            if end > size:
                return words
            if start >= last:  # parts and own-language terms of a word come after it
                last = end
                weight = _LENGTHS[end - start] if end - start < 12 else 2.0
                if counts is not None and (count := counts[term]) > 1:
                    weight *= 1.0 + 0.5 * math.log(count)
                words.append((start, end, weight))
    return words


_SCORE = itemgetter(0)
_NOWHERE = (-1, -1, 0.0)
"""Stands after the last word: it follows nothing."""
_LENGTHS = tuple(length / 6 for length in range(12))
"""What a word of so many characters counts."""
_DAMPING = (2**0.6, 3**0.6)
"""What the sums of two and of three words are divided by."""

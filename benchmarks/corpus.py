"""The texts and the vectors that every side of a benchmark gets.

Texts are turns of conversations: one to three English sentences of the demo's conversation, in
which one or two words are replaced from a vocabulary of made-up nouns and names whose frequencies
fall like Zipf's, so that a store of any size has frequent and rare words, names, dates and sessions
as a real one has. Vectors are sums of a fixed random direction for each word, weighted down where a
word is short: texts that share words are near each other. Nothing is loaded and nothing is random
from run to run.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from importlib import resources
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from cofire.models.embedder import Embedded
from cofire.types import Message

DIMENSION = 384
SESSION = 20
"""Turns of a session."""
BEGINNING = datetime(2024, 1, 1, 8, tzinfo=UTC)
SPEAKERS = ("Nora", "Juno")
SHARED_TOPIC = 0.5
"""How often a turn's made-up word is one of its session's, rather than any."""
_VOCABULARY = 20_000
_SYLLABLES = (
    *("ka", "ro", "mi", "ten", "sul", "va", "per", "lin", "dor", "eth"),
    *("qua", "zim", "bo", "gra", "nel", "fi", "sto", "wen", "hul", "tra"),
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[a-z]{5,}")
_TOKEN = re.compile(r"\w{1,12}|[^\w\s]")


def sentences() -> list[str]:
    """The sentences of the demo's conversation."""
    text = (resources.files("cofire.cli") / "data" / "demo.jsonl").read_text(encoding="utf-8")
    contents = [json.loads(line)["content"] for line in text.splitlines()]
    return [found for content in contents for found in _SENTENCE.split(content) if found]


def messages(count: int, seed: int = 1) -> list[Message]:
    """So many turns, in sessions of `SESSION`, two speakers in turn, one minute apart."""
    rng = random.Random(seed)
    source = sentences()
    words = vocabulary()
    weights = list(accumulate(1.0 / rank for rank in range(1, len(words) + 1)))
    found = []
    topics: list[str] = []
    for index in range(count):
        if index % SESSION == 0:
            topics = rng.choices(words, cum_weights=weights, k=6)
        parts = []
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            from_topic = rng.random() < SHARED_TOPIC
            new = rng.choice(topics) if from_topic else rng.choices(words, cum_weights=weights)[0]
            parts.append(_replaced(rng, rng.choice(source), new))
        session = index // SESSION
        found.append(
            Message(
                content=" ".join(parts),
                speaker=SPEAKERS[index % 2],
                session=f"session {session}",
                time=BEGINNING + timedelta(days=session / 8, minutes=index % SESSION),
            )
        )
    return found


def questions(remembered: Sequence[Message], count: int, seed: int = 2) -> list[str]:
    """Questions whose words come from the turns: "What did Nora say about … and …?"."""
    rng = random.Random(seed)
    asked = []
    for message in rng.sample(remembered, count):
        words = sorted(set(re.findall(r"\w{4,}", message.content))) or ["that"]
        chosen = rng.sample(words, min(len(words), rng.randint(2, 5)))
        asked.append(f"What did {message.speaker} say about {' and '.join(chosen)}?")
    return asked


def vocabulary() -> list[str]:
    """Made-up words; every fourth is a name."""
    rng = random.Random(0)
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        word = "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4)))
        words[word.capitalize() if len(words) % 4 == 0 else word] = None
    return list(words)


def _replaced(rng: random.Random, sentence: str, word: str) -> str:
    """One of the sentence's longer words replaced."""
    places = list(_WORD.finditer(sentence))
    if not places:
        return f"{sentence} {word}"
    place = rng.choice(places)
    return sentence[: place.start()] + word + sentence[place.end() :]


class ConstantTimeEmbedder:
    """A look-up for every text that `prepare` was given: embedding costs every side the same,
    next to nothing. Satisfies `cofire.models.Embedder`."""

    name = f"benchmark-words-v1:{DIMENSION}"
    dimension = DIMENSION
    max_tokens = 512

    def __init__(self) -> None:
        self._known: dict[str, NDArray[np.float32]] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Compute the vectors now, before anything is timed."""
        for text in texts:
            self.vector(text)

    def vector(self, text: str) -> NDArray[np.float32]:
        """Unit length, (DIMENSION,)."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = _vector(text)
        return found

    def embed_passages(self, texts: Sequence[str], /) -> Embedded:
        vectors = np.array([self.vector(text) for text in texts]).reshape(-1, DIMENSION)
        return Embedded(vectors=vectors, ok=np.ones(len(texts), np.bool_))

    def embed_query(self, text: str, /) -> tuple[NDArray[np.float32], bool]:
        return self.vector(text), True

    def count_tokens(self, text: str, /) -> int:
        return len(_TOKEN.findall(text))

    def token_offsets(self, text: str, /) -> list[tuple[int, int]]:
        return [match.span() for match in _TOKEN.finditer(text)]

    def close(self) -> None:
        """Nothing to let go of."""


def _vector(text: str) -> NDArray[np.float32]:
    total = np.full(DIMENSION, 1e-3, np.float32)
    for word in re.findall(r"\w+", text.lower()):
        total += min(len(word), 8) / 8 * _direction(word)
    return total / np.float32(np.linalg.norm(total))


@lru_cache(maxsize=1 << 16)
def _direction(word: str) -> NDArray[np.float32]:
    """The word's direction: Gaussian, seeded by its hash."""
    seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)

"""MiniLM's wordpieces: the unit in which Cofire measures texts, whatever embeds them.

The tokenizer's rules are package data, so counting needs neither the model nor a network.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from importlib import resources
from typing import TYPE_CHECKING

from cofire.errors import ConfigurationError
from cofire.models.forking import renew_after_fork

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CHUNK = 20_000
"""Characters tokenized at once: an encoding costs hundreds of bytes a token."""

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
# Printable ASCII without "[" and "]": no special token is in it and nothing of it is dropped, so
# its wordpieces are those of its words and of its punctuation marks, one by one.
_PLAIN = re.compile(r"[\t\n\r -Z\\^-~]*+")
_UNITS = re.compile(r"[A-Za-z0-9]+|[!-/:-@\\^-`{-~]")
_KEPT_WORD = 48  # letters; longer ones are seldom met again
_MOST_WORDS = 1 << 15
# Where the tokenizer itself always separates, so that a text cut there yields the same pieces.
_BOUNDARY = re.compile("[ \\n\\r\\t\u3400-\u4dbf\u4e00-\u9fff]")


_SPACES = re.compile("[ \\n\\r\\t]+")


class _Sizes(dict[str, int]):
    """Word, mark, or what stands between spaces → its wordpieces, kept for the next time."""

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, unit: str) -> int:
        size = self._count(unit)
        if len(unit) <= _KEPT_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[unit] = size
        return size


class WordPieces:
    """Counts and places wordpieces of texts of any size; loads its rules at the first use."""

    def __init__(self) -> None:
        self._tokenizer: Tokenizer | None = None
        self._sizes = _Sizes(self.count_exactly)
        self._lock = threading.Lock()
        renew_after_fork(self)

    def renew_after_fork(self) -> None:
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Drop the words that are kept: they may be of a text that was forgotten."""
        self._sizes.clear()

    def count(self, text: str) -> int:
        """Number of wordpieces, without special tokens."""
        if len(text) > CHUNK:
            return self.count_exactly(text)
        if text.isascii() and _PLAIN.fullmatch(text):
            units = _UNITS.findall(text)
        else:
            units = [unit for unit in _SPACES.split(text) if unit]
            if max(map(len, units), default=0) > _KEPT_WORD:  # it would be counted every time
                return self.count_exactly(text)
        return sum(map(self._sizes.__getitem__, units))

    def count_exactly(self, text: str) -> int:
        """The same by the tokenizer itself, whatever the text."""
        tokenizer = self._loaded()
        return sum(
            len(tokenizer.encode(chunk, add_special_tokens=False)) for _, chunk in _chunks(text)
        )

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Start and end of every wordpiece, in characters of `text`."""
        tokenizer = self._loaded()
        return [
            (base + start, base + end)
            for base, chunk in _chunks(text)
            for start, end in tokenizer.encode(chunk, add_special_tokens=False).offsets
        ]

    def first_ids(self, text: str, limit: int) -> list[int]:
        """Vocabulary ids of the first `limit` wordpieces, without special tokens."""
        tokenizer = self._loaded()
        ids: list[int] = []
        for _, chunk in _chunks(text):
            ids.extend(tokenizer.encode(chunk, add_special_tokens=False).ids)
            if len(ids) >= limit:
                break
        return ids[:limit]

    def _loaded(self) -> Tokenizer:
        if self._tokenizer is None:
            with self._lock:
                if self._tokenizer is None:
                    self._tokenizer = _load_tokenizer()
        return self._tokenizer


def _load_tokenizer() -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as exc:
        raise ConfigurationError(
            "The package `tokenizers` cannot be imported; install it with "
            "`pip install --force-reinstall cofire`"
        ) from exc
    rules = resources.files("cofire.models") / "data" / "minilm-tokenizer.json"
    try:
        tokenizer = Tokenizer.from_str(rules.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigurationError(
            f"The tokenizer rules {rules} cannot be read ({exc}); "
            "reinstall Cofire: `pip install --force-reinstall cofire`"
        ) from exc
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """(offset, piece) of a text, cut only where no wordpiece can be cut.

    A lone surrogate, which no tokenizer takes, counts as U+FFFD (one character as well).
    """
    clean = _LONE_SURROGATE.sub("\ufffd", text)
    start = 0
    while len(clean) - start > CHUNK:
        cut = _BOUNDARY.search(clean, start + CHUNK)
        if cut is None:
            break
        yield start, clean[start : cut.start()]
        start = cut.start()
    yield start, clean[start:]

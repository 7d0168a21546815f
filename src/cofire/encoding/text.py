"""Text as it is kept (`sanitise`) and text as it is compared (`fold`).

What is stored is the caller's text, byte for byte, except for the two things no store can hold:
lone surrogates and NUL. What is compared is folded: case, width, accents, apostrophes and
invisible characters do not decide whether two words are the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from cofire.encoding.characters import IGNORABLE
from cofire.errors import InputError

MAX_DEPTH = 100
"""How deep metadata may be nested; deeper is refused rather than overflowing the stack."""

_SURROGATE = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
_IGNORABLE = re.compile(f"[{IGNORABLE}]")

_FULL_WIDTH = re.compile("[\uff01-\uff5e]")
_TO_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_APOSTROPHE = re.compile("[\u2018\u2019\u201b\u02bc\u00b4\u1ffd\u2032\u055a\ua78c]")

# Latin, Greek and digits lose their marks: é and e are one letter to somebody who types fast.
# Elsewhere a mark changes the word (vowel signs of Hindi and Thai, dakuten, й) and stays.
_ACCENTED = re.compile(
    "([0-9a-z\u00df-\u02af\u0370-\u03ff\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff])"
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]+"
)
# Stress marks of Cyrillic teaching texts, Hebrew points, Arabic vowel signs and tatweel are
# optional in writing.
_OPTIONAL = re.compile(
    "(?<=[\u0400-\u052f])[\u0300\u0301]+"
    "|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]"
    "|[\u0610-\u061a\u0640\u064b-\u0652\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
_UNDECOMPOSED = str.maketrans(
    {
        "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ŧ": "t", "ŋ": "n",
        "æ": "ae", "œ": "oe", "þ": "th", "ǿ": "o", "ƒ": "f", "ё": "е",
        "أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا",
    }
)  # fmt: skip
_DECIMAL = re.compile("[^\\D0-9]")


def sanitise(text: str) -> str:
    """`text` without what cannot be stored: a lone surrogate becomes U+FFFD (a high and a low
    one side by side become the character they encode), NUL goes. All else is kept unchanged."""
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    return _SURROGATE.sub(_mend, text) if _SURROGATE.search(text) else text


def _mend(match: re.Match[str]) -> str:
    units = match.group()
    if len(units) == 1:
        return "\ufffd"
    return chr(0x10000 + ((ord(units[0]) - 0xD800) << 10) + ord(units[1]) - 0xDC00)


def sanitise_value(value: Any, *, depth: int = MAX_DEPTH) -> Any:
    """`value` (JSON-like: mappings, lists, tuples, scalars) with every text in it sanitised,
    keys included. Nothing is changed in place.

    Raises `InputError` where it is nested deeper than `depth`.
    """
    if isinstance(value, str):
        return sanitise(value)
    if isinstance(value, Mapping | list | tuple):
        if depth <= 0:
            raise InputError(
                f"metadata is nested deeper than {MAX_DEPTH} levels; flatten it before storing it"
            )
        if isinstance(value, Mapping):
            return {
                sanitise_value(key, depth=depth - 1): sanitise_value(item, depth=depth - 1)
                for key, item in value.items()
            }
        items = [sanitise_value(item, depth=depth - 1) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def aligned(text: str) -> str:
    """`text` with full-width ASCII and apostrophe variants replaced one for one, so that every
    offset into it is an offset into the original."""
    if text.isascii():
        return text
    for variant in set(_APOSTROPHE.findall(text)):
        text = text.replace(variant, "'")  # much faster than `translate` for the one or two
    return text.translate(_TO_ASCII) if _FULL_WIDTH.search(text) else text


def lower(text: str) -> str:
    """`text` in compatibility form and without case, accents kept: what stemmers expect."""
    if text.isascii():
        return text.lower()
    text = _IGNORABLE.sub("", aligned(text))
    text = unicodedata.normalize("NFKC", text).casefold()
    text = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", text)


def fold(text: str) -> str:
    """`text` for comparison: width and compatibility forms (NFKC), case, Latin and Greek
    accents, optional marks, apostrophe variants, digit scripts and invisible characters folded.
    Marks that make words (Indic and Thai vowel signs, dakuten, й) stay; Hangul stays composed.
    """
    if text.isascii():
        return text.lower()
    text = lower(text)
    if text.isascii():
        return text
    text = unicodedata.normalize("NFD", text)
    text = _ACCENTED.sub(r"\1", text)
    text = unicodedata.normalize("NFC", _OPTIONAL.sub("", text)).translate(_UNDECOMPOSED)
    return _DECIMAL.sub(_ascii_digit, text)


def _ascii_digit(match: re.Match[str]) -> str:
    return str(unicodedata.decimal(match.group()))

"""Taking the fields of a JSON object one by one, each checked for what it must be."""

from __future__ import annotations

import base64
import binascii
import math
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from cofire.encoding.text import sanitise
from cofire.errors import FormatError
from cofire.types import to_micros

T = TypeVar("T")


class Fields:
    """The fields of one JSON object, each taken once and checked; FormatError names it."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._left = dict(value)

    def maybe(self, name: str, take: Callable[[str], T]) -> T | None:
        """The field if it is there and not null."""
        if self._left.get(name) is None:
            self._left.pop(name, None)
            return None
        return take(name)

    def text(self, name: str) -> str:
        return storable(self._typed(name, str, "a text"), name)

    def name(self, name: str, most: int) -> str:
        """A text of 1 to `most` characters."""
        value = self.text(name)
        if not 1 <= len(value) <= most:
            raise FormatError(f"{name!r} must have 1 to {most:,} characters, not {len(value):,}")
        return value

    def integer(self, name: str) -> int:
        value = self._typed(name, int, "a whole number")
        if isinstance(value, bool) or not -(2**63) <= value < 2**63:
            raise FormatError(f"{name!r} must be a whole number of 64 bits")
        return value

    def natural(self, name: str) -> int:
        value = self.integer(name)
        if value < 0:
            raise FormatError(f"{name!r} must not be negative")
        return value

    def within(self, name: str, least: int, most: int) -> int:
        """A whole number in [least, most]."""
        value = self.integer(name)
        if not least <= value <= most:
            raise FormatError(f"{name!r} must be from {least} to {most}, not {value}")
        return value

    def number(self, name: str) -> float:
        value = self._left.pop(name, None)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FormatError(f"{name!r} must be a number")
        return finite(value, name)

    def share(self, name: str) -> float:
        """A number in [0, 1]."""
        value = self.number(name)
        if not 0.0 <= value <= 1.0:
            raise FormatError(f"{name!r} must be from 0 to 1, not {value:g}")
        return value

    def flag(self, name: str) -> bool:
        value = self._left.pop(name, False)
        if not isinstance(value, bool):
            raise FormatError(f"{name!r} must be true or false")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        return self._typed(name, dict, "an object")

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._typed(name, list, "a list of texts")
        if not all(isinstance(value, str) for value in values):
            raise FormatError(f"{name!r} must be a list of texts")
        return tuple(storable(value, name) for value in values)

    def parts(self, name: str) -> tuple[Fields, ...]:
        values = self._typed(name, list, "a list of objects")
        if not all(isinstance(value, dict) for value in values):
            raise FormatError(f"{name!r} must be a list of objects")
        return tuple(Fields(value) for value in values)

    def choice(self, name: str, allowed: Mapping[str, int]) -> str:
        value = self.text(name)
        if value not in allowed:
            raise FormatError(f"{name!r} must be one of {', '.join(allowed)}")
        return value

    def moment(self, name: str) -> int:
        """Microseconds since 1970 UTC."""
        value = self.text(name)
        try:
            return to_micros(datetime.fromisoformat(value))
        except (ValueError, OverflowError) as exc:
            raise FormatError(f"{name!r} must be a time in ISO 8601, not {value[:40]!r}") from exc

    def uid(self, name: str) -> bytes:
        try:
            return uuid.UUID(self.text(name)).bytes
        except ValueError as exc:
            raise FormatError(f"{name!r} must be a UUID") from exc

    def vector(self, name: str) -> bytes:
        """Little-endian float16 bytes."""
        try:
            raw = base64.b64decode(self.text(name), validate=True)
        except (ValueError, binascii.Error) as exc:
            raise FormatError(f"{name!r} must be base64") from exc
        if len(raw) % 2:
            raise FormatError(f"{name!r} must hold 16-bit numbers")
        return raw

    def credits(self, name: str) -> tuple[tuple[int, float], ...]:
        """Pairs of an item's number and its credit."""
        values = self._typed(name, list, "a list of pairs")
        for value in values:
            pair = isinstance(value, list) and len(value) == 2 and type(value[0]) is int
            if not pair or type(value[1]) not in {int, float}:
                raise FormatError(f"{name!r} must be a list of pairs of number and credit")
        return tuple((number, finite(credit, name)) for number, credit in values)

    def number_pairs(self, name: str) -> tuple[tuple[int, int], ...]:
        """Pairs of numbers of items."""
        values = self._typed(name, list, "a list of pairs")
        for value in values:
            if not (isinstance(value, list) and [type(part) for part in value] == [int, int]):
                raise FormatError(f"{name!r} must be a list of pairs of numbers")
        return tuple((number, other) for number, other in values)

    def quota(self, name: str) -> tuple[tuple[str, float], ...]:
        """Pairs of a principal and how far they moved a link."""
        values = self._typed(name, list, "a list of pairs")
        for value in values:
            pair = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
            if not pair or type(value[1]) not in {int, float}:
                raise FormatError(f"{name!r} must be a list of pairs of principal and movement")
        return tuple((storable(who, name), finite(moved, name)) for who, moved in values)

    def hash64(self, name: str) -> int:
        """A hash of 64 bits, as 16 hexadecimal digits."""
        value = self.text(name)
        if len(value) != 16 or any(digit not in "0123456789abcdef" for digit in value):
            raise FormatError(f"{name!r} must be 16 hexadecimal digits")
        return int(value, 16)

    def nothing_left(self) -> None:
        """Refuse fields that this version does not know, rather than lose them."""
        if self._left:
            raise FormatError(f"unknown fields: {', '.join(sorted(self._left))[:200]}")

    def _typed(self, name: str, kind: type[T], said: str) -> T:
        value = self._left.pop(name, None)
        if not isinstance(value, kind):
            raise FormatError(f"{name!r} must be {said}")
        return value


def finite(value: float, name: str) -> float:
    try:
        wide = float(value)
    except OverflowError:  # a whole number may have any length
        wide = math.inf
    if not math.isfinite(wide):
        raise FormatError(f"{name!r} must be a finite number")
    return wide


def storable(text: str, name: str) -> str:
    """The text, if a store can hold it as it is."""
    if sanitise(text) != text:
        raise FormatError(f"{name!r} has a NUL or a lone surrogate, which no store can hold")
    return text

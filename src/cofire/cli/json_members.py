"""Putting a member into a JSON file of somebody else's, and taking it out again.

Everything else stays as it is, character for character: order, indentation, line ends, and the
comments and trailing commas that editors allow in their settings. What is no JSON even so is
refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cofire.errors import FormatError

_TRIVIA = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_LITERAL = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_DEEPEST = 200
BOM = "\ufeff"
"""What some editors put before a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value at `start` to `end` of a text, and what it says. `members` if it is an object."""

    start: int
    end: int
    said: Any
    members: tuple[Member, ...] | None = None

    def member(self, key: str) -> Member | None:
        """The member of that name. Raises FormatError where there are two."""
        found = [one for one in self.members or () if one.key == key]
        if len(found) > 1:
            raise FormatError(f"{key!r} stands twice in one object; remove one of them")
        return found[0] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of an object: its key begins at `start`."""

    key: str
    start: int
    value: Value


def read(text: str) -> Value | None:
    """The value of a text with comments and trailing commas; None if there is none. Raises
    FormatError with the line."""
    reader = _Reader(text)
    at = reader.trivia(1 if text.startswith(BOM) else 0)
    if at == len(text):
        return None
    value = reader.value(at, 0)
    end = reader.trivia(value.end)
    if end != len(text):
        raise reader.wrong(end, "nothing but comments may follow the value")
    return value


def with_member(text: str, path: Sequence[str], said: Any) -> str:
    """The text with this member, in objects that are made if need be. Raises FormatError."""
    root = read(text)
    newline = _newline(text)
    if root is None:
        whole: Any = said
        for key in reversed(path):
            whole = {key: whole}
        made = json.dumps(whole, indent=2, ensure_ascii=False).replace("\n", newline)
        before = text.rstrip()
        return before + (newline if before.lstrip(BOM) else "") + made + newline
    unit = _unit(text, root)
    inner, key, at = root, path[0], 0
    while True:
        if inner.members is None:
            where = ".".join(path[:at]) or "the file"
            raise FormatError(f"{where} is not an object, so nothing can be added to it")
        member = inner.member(key)
        if member is None:
            for name in reversed(path[at + 1 :]):
                said = {name: said}
            return _inserted(text, inner, key, said, unit)
        if at == len(path) - 1:
            if member.value.said == said:
                return text
            new = _rendered(said, unit, _margin(text, member.start), newline)
            return text[: member.value.start] + new + text[member.value.end :]
        inner, at = member.value, at + 1
        key = path[at]


def without_member(text: str, path: Sequence[str]) -> str:
    """The text without this member; as it is if there is none. Raises FormatError."""
    inner = read(text)
    for key in path[:-1]:
        member = None if inner is None or inner.members is None else inner.member(key)
        inner = None if member is None else member.value
    member = None if inner is None or inner.members is None else inner.member(path[-1])
    if inner is None or inner.members is None or member is None:
        return text
    place = inner.members.index(member)
    last = place == len(inner.members) - 1
    start, end = member.start, member.value.end
    while start > inner.start + 1 and text[start - 1] in " \t\r\n":
        start -= 1
    comma = _comma(text, end, inner.end)
    if comma is not None:
        end = comma + 1
    text = text[:start] + text[end:]
    if len(inner.members) == 1:
        close = inner.end - (end - start) - 1
        if not text[inner.start + 1 : close].strip():
            text = text[: inner.start + 1] + text[close:]
    elif last and comma is None:
        before = inner.members[place - 1].value.end
        former = _comma(text, before, inner.end)
        if former is not None:
            text = text[:former] + text[former + 1 :]
    return text


def _inserted(text: str, inner: Value, key: str, said: Any, unit: str) -> str:
    members = inner.members or ()
    newline = _newline(text)
    name = json.dumps(key, ensure_ascii=False)
    if members and "\n" not in text[inner.start : members[0].start]:
        new = f", {name}: {json.dumps(said, ensure_ascii=False)}"  # on one line, as the others
        at = members[-1].value.end
        return text[:at] + new + text[at:]
    outer = _margin(text, inner.start)
    margin = _margin(text, members[0].start) if members else outer + unit
    new = f"{newline}{margin}{name}: {_rendered(said, unit, margin, newline)}"
    if not members:
        inside = text[inner.start + 1 : inner.end - 1].rstrip()
        return text[: inner.start + 1] + inside + new + newline + outer + text[inner.end - 1 :]
    end = members[-1].value.end
    comma = _comma(text, end, inner.end)
    at = end if comma is None else comma + 1
    for comment in _COMMENT.finditer(text, at, inner.end - 1):
        at = comment.end()  # which belongs to the member before
    return text[:end] + ("," if comma is None else "") + text[end:at] + new + text[at:]


def _rendered(said: Any, unit: str, margin: str, newline: str) -> str:
    lines = json.dumps(said, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline}{margin}".join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str, root: Value) -> str:
    """What the file indents by."""
    for member in root.members or ():
        if "\n" in text[root.start : member.start]:
            return _margin(text, member.start) or "  "
    return "  "


def _margin(text: str, at: int) -> str:
    """The white space that the line at a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _comma(text: str, at: int, end: int) -> int | None:
    """Where the comma behind a value is, if there is one."""
    match = _TRIVIA.match(text, at, end)
    behind = match.end() if match else at
    return behind if text[behind : behind + 1] == "," else None


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def wrong(self, at: int, reason: str) -> FormatError:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return FormatError(f"it is no JSON: {reason}, at line {line}, column {column}")

    def trivia(self, at: int) -> int:
        match = _TRIVIA.match(self._text, at)
        return match.end() if match else at

    def value(self, at: int, depth: int) -> Value:
        if depth > _DEEPEST:
            raise self.wrong(at, "it is nested too deeply")
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        if first == '"':
            said, end = self._string(at)
            return Value(start=at, end=end, said=said)
        match = _LITERAL.match(self._text, at)
        if match is None:
            raise self.wrong(at, f"no value begins with {first!r}" if first else "it breaks off")
        try:
            return Value(start=at, end=match.end(), said=json.loads(match.group()))
        except ValueError as exc:
            raise self.wrong(at, f"{match.group()[:20]!r} is no number") from exc

    def _object(self, at: int, depth: int) -> Value:
        start, members = at, []
        at = self.trivia(at + 1)
        while self._text[at : at + 1] != "}":
            begun = at
            if self._text[at : at + 1] != '"':
                raise self.wrong(at, "a name in double quotes, or }, is missing")
            key, at = self._string(at)
            at = self.trivia(at)
            if self._text[at : at + 1] != ":":
                raise self.wrong(at, "a colon is missing")
            value = self.value(self.trivia(at + 1), depth + 1)
            members.append(Member(key=key, start=begun, value=value))
            at = self._behind(value.end, "}")
        said = {member.key: member.value.said for member in members}
        return Value(start=start, end=at + 1, said=said, members=tuple(members))

    def _array(self, at: int, depth: int) -> Value:
        start, said = at, []
        at = self.trivia(at + 1)
        while self._text[at : at + 1] != "]":
            value = self.value(at, depth + 1)
            said.append(value.said)
            at = self._behind(value.end, "]")
        return Value(start=start, end=at + 1, said=said)

    def _behind(self, at: int, closing: str) -> int:
        at = self.trivia(at)
        if self._text[at : at + 1] == ",":
            return self.trivia(at + 1)
        if self._text[at : at + 1] != closing:
            raise self.wrong(at, f"a comma or {closing} is missing")
        return at

    def _string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self._text, at)
        if match is None:
            raise self.wrong(at, "a text in double quotes breaks off")
        try:
            return json.loads(match.group()), match.end()
        except ValueError as exc:
            raise self.wrong(at, "a text in double quotes has a wrong escape") from exc

"""The arguments of a tool: one table for the JSON schema that clients read and for the checks.

The schemas keep to what the strictest clients accept: a top level of type object with properties,
no anyOf, oneOf, allOf, $ref or null types, and items for every array. Claude Code drops a tool
whose schema has more at its top level, and some versions all tools of the server, without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cofire.errors import InputError

Type = Literal["string", "integer", "number", "boolean", "array"]

SHOWN = 40
"""Characters of a wrong value that an error repeats."""

_NAMES: Mapping[str, str] = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list of texts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One argument. `about` is for the model that calls: what it is for, and its default.
    `choices` are the texts it may be. `least` and `most` bound a number. `items` are the fields of
    the objects in an array; without them it is an array of texts. `clears`: an empty text is a
    value of its own; elsewhere an optional text that is empty counts as not given, because models
    write one for what they have nothing to say about, as they write null."""

    name: str
    type: Type = "string"
    about: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    items: tuple[Field, ...] = ()
    clears: bool = False

    def schema(self) -> dict[str, Any]:
        """This argument as JSON schema."""
        schema: dict[str, Any] = {"type": self.type}
        if self.about:
            schema["description"] = self.about
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.least is not None:
            schema["minimum"] = self.least
        if self.most is not None:
            schema["maximum"] = self.most
        if self.type == "array":
            schema["items"] = object_schema(self.items) if self.items else {"type": "string"}
        return schema


def object_schema(fields: Sequence[Field]) -> dict[str, Any]:
    """An object with these fields and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: field.schema() for field in fields},
        "additionalProperties": False,
    }
    required = [field.name for field in fields if field.required]
    if required:
        schema["required"] = required
    return schema


def checked(fields: Sequence[Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that say something. Raises InputError that names everything that is wrong at
    once, so that a model needs one more call and not one for each."""
    values, wrong = _read(fields, given, "")
    if wrong:
        raise InputError("; ".join(wrong))
    return values


def _read(
    fields: Sequence[Field], given: Mapping[str, Any], within: str
) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for field in fields:
        value = given.get(field.name)
        if value is None or (value == "" and not field.required and not field.clears):
            if field.required:
                wrong.append(f"`{within}{field.name}` is missing: it is {_wanted(field)}")
            continue
        try:
            values[field.name] = _value(field, value, within)
        except _WrongError as error:
            wrong += error.reasons
    known = {field.name for field in fields}
    for name in sorted(map(str, given.keys() - known)):
        there = f"there are {', '.join(sorted(known))}" if known else "there are none"
        wrong.append(f"there is no argument `{within}{name[:SHOWN]}`; {there}")
    return values, wrong


class _WrongError(Exception):
    """What is wrong with one argument."""

    def __init__(self, reasons: Iterable[str]) -> None:
        super().__init__()
        self.reasons = tuple(reasons)


def _value(field: Field, value: Any, within: str) -> Any:
    name = f"{within}{field.name}"
    if field.type == "array":
        return _list(field, value, name)
    fits = _fits(field, value)
    if not fits:
        raise _WrongError([f"`{name}` must be {_wanted(field)}, not {_shown(value)}"])
    return int(value) if field.type == "integer" else value


def _fits(field: Field, value: Any) -> bool:
    if field.type == "string":
        return isinstance(value, str) and (not field.choices or value in field.choices)
    if field.type == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if field.type == "integer" and value != value // 1:  # 5.0 is a whole number in JSON schema
        return False
    above = field.least is None or value >= field.least
    return above and (field.most is None or value <= field.most)


def _list(field: Field, value: Any, name: str) -> list[Any]:
    if isinstance(value, str):
        # Claude Code has sent lists as the JSON that stands for them; no model can mend that.
        value = _parsed(value)
    if not isinstance(value, list):
        raise _WrongError([f"`{name}` must be {_wanted(field)}, not {_shown(value)}"])
    if not field.items:
        wrong = [
            f"`{name}[{place}]` must be a text, not {_shown(one)}"
            for place, one in enumerate(value)
            if not isinstance(one, str)
        ]
        if wrong:
            raise _WrongError(wrong[:3])
        return value
    read: list[Any] = []
    wrong = []
    for place, one in enumerate(value):
        if not isinstance(one, dict):
            wrong.append(f"`{name}[{place}]` must be an object, not {_shown(one)}")
            continue
        values, reasons = _read(field.items, one, f"{name}[{place}].")
        read.append(values)
        wrong += reasons
    if wrong:
        raise _WrongError(wrong[:5])
    return read


def _parsed(text: str) -> Any:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return read if isinstance(read, list) else text


def _wanted(field: Field) -> str:
    if field.choices:
        return f"one of {', '.join(field.choices)}"
    name = _NAMES[field.type] if not field.items else "a list of objects"
    if field.least is not None and field.most is not None:
        return f"{name} from {field.least:g} to {field.most:g}"
    return name


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value[:SHOWN]!r}{'…' if len(value) > SHOWN else ''}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value!r}"[:SHOWN]
    return {"list": "a list", "dict": "an object", "NoneType": "null"}[type(value).__name__]

"""Write docs/reference/api.md from the code; `--check` only says if it is stale."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, is_typeddict

from cofire import (
    AsyncMemory,
    Memories,
    Memory,
    answers,
    errors,
    interchange,
    models,
    settings,
    types,
)
from cofire.aio import AsyncPendingAnswer
from cofire.answering.pending import PendingAnswer
from cofire.retrieval import profiles
from cofire.store.records import Finding

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "api.md"
WIDTH = 96

BEGINNING = """\
# Python API

<!-- Made by scripts/make_api_reference.py from the code; change that, then run it. -->

The names on this page are public: from version 1.0 on they change by the rules of semantic
versioning. Everything else may change at any time.

```python
from cofire import AsyncMemory, Memories, Memory, __version__
from cofire.errors import CofireError
from cofire.types import Filters, Item, Kind, Message, Recall, Receipt
```

Ids are UUIDv7 texts. Times that come out are aware `datetime` values in UTC; what may go in is
said under `TimeLike`. Values are frozen and take keyword arguments only. Every error that Cofire
raises on purpose is a [`CofireError`](errors-and-exit-codes.md).

- [Memory](#memory)
- [AsyncMemory](#asyncmemory)
- [Memories](#memories)
- [Values](#values)
- [Answers](#answers)
- [Functions and constants](#functions-and-constants)
- [Errors](#errors)
- [Imports and their reports](#imports-and-their-reports)
- [Embedders](#embedders)
- [Profiles](#profiles)
- [Settings](#settings)
- [For back ends](#for-back-ends)
"""

SPECIAL = {
    "TimeLike": types.TimeLike,
    "INTERNAL_KINDS": types.INTERNAL_KINDS,
    "CONDUCTS": types.CONDUCTS,
}
"""Names of `cofire.types` that are neither classes nor functions."""


def reference() -> str:
    """The whole page."""
    return "\n".join(parts()) + "\n"


def parts() -> Iterator[str]:
    yield BEGINNING
    yield "## Memory\n"
    yield text_of(Memory)
    for name, method in methods(Memory):
        yield from verb("Memory", name, method)
    yield "## AsyncMemory\n"
    yield text_of(AsyncMemory)
    yield (
        "Each verb takes the arguments of the verb of `Memory` with its name and is awaited.\n"
        "See [how to use it](../how-to/use-from-asyncio.md).\n"
    )
    for name, _ in members(AsyncMemory):
        yield f"- `AsyncMemory.{name}`"
    yield "\n## Memories\n"
    yield text_of(Memories)
    for name, method in methods(Memories):
        yield from verb("Memories", name, method)
    yield "\n## Values\n"
    yield "From `cofire.types`.\n"
    for cls in defined(types, inspect.isclass):
        yield from value(cls)
    yield "## Answers\n"
    yield "From `cofire.answers`.\n"
    for cls in defined(answers, inspect.isclass):
        yield from value(cls)
    yield "From `cofire.answering.pending`:\n"
    yield from value(PendingAnswer)
    yield "From `cofire.aio`:\n"
    yield from value(AsyncPendingAnswer)
    yield "## Functions and constants\n"
    yield "From `cofire.types`.\n"
    for function in defined(types, inspect.isfunction):
        yield f"- `{function.__name__}{signature(function)}`: {flat(function)}"
    documented = strings_after(types)
    for name in SPECIAL:
        yield f"- `{name}`: {documented[name]}"
    yield "\n## Errors\n"
    yield (
        "From `cofire.errors`. [Errors and exit codes](errors-and-exit-codes.md) says when each\n"
        "is raised.\n"
    )
    for cls in defined(errors, inspect.isclass):
        above = ", ".join(f"`{base.__name__}`" for base in cls.__bases__)
        yield f"- `{cls.__name__}` ({above}): {flat(cls)}"
    yield "\n## Imports and their reports\n"
    yield "From `cofire.interchange`.\n"
    for name in interchange.__all__:
        member = getattr(interchange, name)
        yield from value(member) if inspect.isclass(member) else function_part(member)
    yield "## Embedders\n"
    yield "From `cofire.models`. An object of your own with these members is an embedder.\n"
    yield from value(models.Embedded)
    yield from protocol(models.Embedder)
    yield from function_part(models.make_embedder)
    yield "## Profiles\n"
    yield (
        "From `cofire.retrieval.profiles`. `PROFILES` maps names to the built-in ones.\n"
        "Constants and the set of terms may change with any version; see\n"
        "[how recall works](../explanation/how-recall-works.md).\n"
    )
    yield from value(profiles.Profile)
    yield from function_part(profiles.profile_named)
    yield "## Settings\n"
    yield "From `cofire.settings`; each field of `Settings` is [explained](settings.md).\n"
    for name in ("load_settings", "config_path", "default_store"):
        yield from function_part(getattr(settings, name))
    yield "## For back ends\n"
    yield "From `cofire.store.records`:\n"
    yield from value(Finding)
    yield (
        "`cofire.testing.StoreConformance` is the set of tests that any store must pass. Its\n"
        "module says how to run it on one of your own."
    )


def members(cls: type) -> list[tuple[str, Any]]:
    """Public members of a class in the order of its source, then those of Cofire's classes that it
    is made of."""
    parts = [part for part in cls.__mro__ if part.__module__.partition(".")[0] == "cofire"]
    found = {name: member for part in reversed(parts) for name, member in vars(part).items()}
    names = dict.fromkeys(name for part in parts for name in vars(part))
    return [(name, found[name]) for name in names if not name.startswith("_")]


def methods(cls: type) -> list[tuple[str, Any]]:
    return [(name, getattr(cls, name)) for name, member in members(cls) if callable_member(member)]


def callable_member(member: Any) -> bool:
    return isinstance(member, classmethod | staticmethod) or inspect.isfunction(member)


def defined(module: ModuleType, kind: Any) -> list[Any]:
    """Public members that a module defines itself, in the order of its source."""
    return [
        member
        for name, member in vars(module).items()
        if not name.startswith("_") and kind(member) and member.__module__ == module.__name__
    ]


def verb(owner: str, name: str, method: Any) -> Iterator[str]:
    yield f"### {owner}.{name}\n"
    yield fenced(name, method)
    yield text_of(method)


def function_part(function: Any) -> Iterator[str]:
    yield f"### `{function.__name__}`\n"
    yield fenced(function.__name__, function)
    yield text_of(function)


def value(cls: type) -> Iterator[str]:
    """A class with its fields and properties, or its values."""
    yield f"### `{cls.__name__}`\n"
    if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):
        yield text_of(cls)
    if issubclass(cls, enum.Enum):
        yield ", ".join(f"`{member.value}`" for member in cls) + ".\n"
        return
    if is_typeddict(cls):
        yield "| field | type |"
        yield "|---|---|"
        for name, kind in cls.__annotations__.items():
            shown = unquoted(getattr(kind, "__forward_arg__", str(kind))).replace("|", "\\|")
            yield f"| `{name}` | `{shown}` |"
        yield ""
        return
    if dataclasses.is_dataclass(cls):
        yield "| field | type | default |"
        yield "|---|---|---|"
        for field in dataclasses.fields(cls):
            kind = str(field.type).replace("|", "\\|")
            yield f"| `{field.name}` | `{kind}` | {default(field)} |"
        yield ""
    more = [
        (name, member.fget if isinstance(member, property) else member, member)
        for name, member in members(cls)
        if isinstance(member, property) or inspect.isfunction(member)
    ]
    for name, function, member in more:
        shown = name if isinstance(member, property) else name + signature(function)
        what = flat(function)
        yield f"- `{shown}`" + (f": {what}" if what else "")
    if more:
        yield ""


def protocol(cls: type) -> Iterator[str]:
    yield f"### `{cls.__name__}`\n"
    yield text_of(cls)
    for name, member in members(cls):
        function = member.fget if isinstance(member, property) else member
        shown = name if isinstance(member, property) else name + signature(function)
        yield f"- `{shown}`: {flat(function)}"
    yield ""


def default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        shown = field.default
        return f"`{shown.value!r}`" if isinstance(shown, enum.Enum) else f"`{shown!r}`"
    if field.default_factory is dataclasses.MISSING:
        return "required"
    return "built in" if field.default_factory() else "empty"


def signature(function: Any) -> str:
    """Parameters and result on one line, as they are written."""
    found = inspect.signature(function)
    kept = [one for one in found.parameters.values() if one.name != "self"]
    return unquoted(str(found.replace(parameters=kept)))


def fenced(name: str, function: Any) -> str:
    """A signature, one parameter a line where it is long."""
    found = inspect.signature(function)
    given = [one for one in found.parameters.values() if one.name not in {"self", "cls"}]
    line = name + unquoted(str(found.replace(parameters=given)))
    if len(line) > WIDTH:
        rows = []
        star = False
        for one in given:
            if one.kind is one.KEYWORD_ONLY and not star:
                rows.append("    *,")
                star = True
            rows.append("    " + unquoted(str(one)) + ",")
        result = unquoted(str(found.return_annotation))
        line = f"{name}(\n" + "\n".join(rows) + f"\n) -> {result}"
    return f"```text\n{line}\n```\n"


def unquoted(text: str) -> str:
    """`x: 'str | None' = None` → `x: str | None = None`."""
    text = re.sub(r"<\w+\.\w+: ('\w+')>", r"\1", text)
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


def text_of(thing: Any) -> str:
    """A docstring as it stands."""
    return (inspect.getdoc(thing) or "") + "\n"


def flat(thing: Any) -> str:
    """A docstring in one line."""
    return " ".join((thing.__doc__ or "").split())


def strings_after(module: ModuleType) -> dict[str, str]:
    """What is written under the constants of a module."""
    source = inspect.getsource(module)
    found = re.findall(r'^(\w+) = .*?\n"""(.*?)"""', source, re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()) for name, text in found}


def main() -> int:
    text = reference()
    if "--check" in sys.argv[1:]:
        current = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print("current" if current else f"{TARGET.name} is stale: run python {sys.argv[0]}")
        return 0 if current else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

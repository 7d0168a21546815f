"""Write docs/reference/mcp.md from the tools themselves; `--check` only says if it is stale."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cofire.server.actions import NEEDS
from cofire.server.mcp import guidance
from cofire.server.mcp.catalogue import TOOLS
from cofire.server.mcp.fields import Field
from cofire.server.mcp.graph_tools import GRAPH_TOOLS
from cofire.server.mcp.tools import Tool

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "mcp.md"

BEGINNING = """\
# Tools over MCP

<!-- Made by scripts/make_mcp_reference.py from the tools; change those, then run it. -->

What `cofire mcp` and `cofire serve` (under `/mcp`) offer over the Model Context Protocol;
[how to use it](../how-to/use-over-mcp.md).

## What holds for all

- Arguments that are null count as not given, and so do optional texts that are empty. Wrong types
  and unknown arguments are refused, all of them in one answer that names each.
- An answer is an object, as structured content and as the same JSON in a text. What is empty is
  left out of it.
- What goes wrong in a tool is an answer with `isError` that says what to do, never an error of the
  protocol. A tool or resource that does not exist is one (-32602).
- Texts between `[untrusted …]` marks come from tools or web pages. `context` stands between
  `[memory …]` marks: what lies between them is not remembered again
  ([poisoning](../explanation/poisoning.md)).
- Tokens are counted in wordpieces of MiniLM, for the whole answer but JSON's own marks.
- The principal of feedback is the key's name; without keys it is `local`.

## Resources and prompt

- `memory://ID`: one memory, whole, as text. The list of resources has the newest first, fifty a
  page.
- The prompt `{prompt}` (argument `task`, optional) teaches an agent when to recall, how to cite,
  and to give feedback.

"""


def reference() -> str:
    """The whole page."""
    parts = [BEGINNING.format(prompt=guidance.PROMPT), "## Cofire's tools\n"]
    parts += [section for tool in TOOLS for section in _sections(tool)]
    parts.append(
        "## The official memory server's tools\n\n"
        "With `cofire mcp --compat`, in place of the others. Entities, observations and relations\n"
        "are memories (tag `knowledge-graph`), which every other surface recalls as well.\n"
    )
    parts += [section for tool in GRAPH_TOOLS for section in _sections(tool)]
    return "\n".join(parts).rstrip() + "\n"


def _sections(tool: Tool) -> Iterator[str]:
    about, _, example = tool.about.partition("\nExample: ")
    traits = ["reads only" if tool.reads_only else "writes"]
    traits += ["destructive"] if tool.destroys else []
    traits += ["idempotent"] if tool.repeatable and not tool.reads_only else []
    scopes = " and ".join(dict.fromkeys(NEEDS[action].value for action in tool.actions))
    yield f"### {tool.name}\n"
    yield f"{about}\n"
    yield f"Needs the scope `{scopes}`; {', '.join(traits)}.\n"
    if tool.fields:
        yield "| argument | type | |\n|---|---|---|"
        yield from _rows(tool.fields, "")
        yield ""
    yield f"Answers with {', '.join(f'`{name}`' for name in tool.answer)}.\n"
    if example:
        yield f"```json\n{example}\n```\n"


def _rows(fields: Sequence[Field], within: str) -> Iterator[str]:
    for field in fields:
        kind = {"array": "objects" if field.items else "texts", "string": "text"}.get(
            field.type, field.type
        )
        if field.least is not None:
            most = "" if field.most is None else f" to {field.most:,g}"
            kind += f", {field.least:,g}{most or ' or more'}"
        about = field.about
        if field.choices:
            about = f"One of {', '.join(field.choices)}. {about}"
        needed = "**required.** " if field.required else ""
        yield f"| `{within}{field.name}` | {kind} | {needed}{about} |"
        yield from _rows(field.items, f"{within}{field.name}[].")


def main() -> int:
    """Write the page, or compare it."""
    page = reference()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.read_text(encoding="utf-8") == page else 1
    TARGET.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

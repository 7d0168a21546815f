"""Write docs/reference/cli.md from the commands themselves; `--check` only says if it is stale."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from cofire.cli.app import build
from cofire.cli.options import COMMON, EVERYWHERE

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
WIDTH = 80

BEGINNING = """\
# Command line

<!-- Made by scripts/make_cli_reference.py from the commands; change those, then run it. -->

`cofire COMMAND --help` says the same as this page. The options under
[every command](#options-of-every-command) may stand before or after the command.

## Output

- Results go to standard output, remarks, progress and errors to standard error.
- `--json` prints one JSON document and nothing else; `list --all --json` prints one memory a line
  (JSON lines). Times are ISO 8601 in UTC. Errors are
  `{"error": {"type": …, "message": …, "exit_code": …}}` on standard error.
- Output is UTF-8 whatever the locale. Colours and progress bars appear on a terminal only, and
  colours not with `NO_COLOR`. In a pipe the texts of memories are not wrapped.
- Texts of memories are data: control characters and marks that change the direction of text are
  shown as escapes such as `\\x1b` and `\\u202e`.

## Exit codes

| code | meaning |
|---|---|
| 0 | success; finding nothing is one |
| 1 | failure; also: a problem found by `doctor`, no usable record in `import`, "no" to a question |
| 2 | usage: an option or a value cannot be used |
| 3 | not found: no such memory, store or file |
| 4 | configuration: settings, embedding model or version do not fit the store |
| 5 | the store cannot be opened or written, or another process held it too long |
| 130 | interrupted with Ctrl-C; what was stored before stays, nothing is half-written |
| 141 | the reader of a pipe went away |

## Environment

`COFIRE_STORE` and `COFIRE_EMBEDDER` are what `--store` and `--embedder` override; every other
setting has a `COFIRE_` variable too. `COFIRE_DEBUG=1` shows where an error came from.
"""


def walk(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Every command that does something, with a context of its own."""
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        below = typer.Context(
            inner, info_name=name, parent=context, terminal_width=WIDTH, **inner.context_settings
        )
        if hasattr(inner, "list_commands"):
            yield from walk(inner, below)
        else:
            yield inner, below


def commands() -> Iterator[tuple[Any, Any]]:
    """Every command of the application."""
    root = typer.main.get_command(build())
    return walk(root, typer.Context(root, info_name="cofire", terminal_width=WIDTH))


def reference() -> str:
    """The whole page."""
    found = list(commands())
    parts = [BEGINNING, "## Commands\n"]
    parts.append("\n".join(f"- {_link(context)}: {_first(command)}" for command, context in found))
    for command, context in found:
        parts.append(f"\n### {context.command_path}\n")
        parts.append(f"```text\n{_own_part(command.get_help(context))}\n```")
    parts.append(f"\n## {EVERYWHERE}\n")
    parts.append(f"```text\n{_common(found)}\n```\n")
    return "\n".join(parts)


def _link(context: Any) -> str:
    return f"[`{context.command_path}`](#{context.command_path.replace(' ', '-')})"


def _first(command: Any) -> str:
    return str(command.get_short_help_str(200))


def _own_part(text: str) -> str:
    """A help text without the options of every command, but with a word about which it takes."""
    before, _, rest = text.rstrip().partition(f"{EVERYWHERE}:\n")
    section, _, after = rest.partition("\n\n")
    names = [line.split()[0] for line in section.splitlines() if line.startswith("  --")]
    taken = "all" if len(names) == len(COMMON) else ", ".join(names)
    return f"{before}{EVERYWHERE}: {taken}\n\n{after}".rstrip()


def _common(found: list[tuple[Any, Any]]) -> str:
    (text,) = (
        command.get_help(context) for command, context in found if context.info_name == "recall"
    )
    section = text.partition(f"{EVERYWHERE}:\n")[2].partition("\n\n")[0]
    return str(section).rstrip()


def main() -> int:
    text = reference()
    if "--check" in sys.argv[1:]:
        current = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print("current" if current else f"{TARGET} is stale: run python {sys.argv[0]}")
        return 0 if current else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

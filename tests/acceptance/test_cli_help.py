"""Every command has help, examples that parse, a JSON form and a place in the reference."""

from __future__ import annotations

import json
import re
import resource
import runpy
import shlex
import subprocess
import sys
from typing import Any

import pytest
from cofire_process import SOURCES, Cofire

SCRIPT = runpy.run_path(str(SOURCES.parent / "scripts" / "make_cli_reference.py"))

HEAVY = {
    "numpy", "sqlalchemy", "alembic", "pydantic", "pydantic_settings", "onnxruntime", "tokenizers",
    "dateparser", "Stemmer", "openai", "rich", "structlog", "matplotlib",
    "cryptography", "psycopg",
}  # fmt: skip
EVERY = list(SCRIPT["commands"]())
PATHS = [context.command_path for _, context in EVERY]


def test_all_commands_are_there() -> None:
    assert [path.removeprefix("cofire ") for path in PATHS] == [
        "demo", "remember", "import", "recall", "ask", "chat", "hydrate", "checkpoint", "threads",
        "advance", "conclude", "feedback", "strengthen", "why", "strengths", "proposals", "replay",
        "learn-by",
        "consolidate", "reports", "records", "quarantine", "shapes", "archive", "unarchive", "list",
        "show", "history", "stats", "update", "forget", "receipts", "export", "backup", "restore",
        "reembed", "scrub", "rotate-key", "serve", "mcp", "install", "worker", "audit", "doctor",
        "jobs list", "jobs retry", "db upgrade", "db check", "db distribute", "db copy",
        "keys create", "keys list", "keys revoke",
        "evaluate locomo", "evaluate longmemeval", "evaluate choices", "evaluate verifier",
        "evaluate judge", "evaluate compare",
        "plot learning", "plot strengths", "plot graph", "plot trace",
    ]  # fmt: skip


@pytest.mark.parametrize("command", [one for one, _ in EVERY], ids=PATHS)
def test_every_option_is_explained(command: Any) -> None:
    assert command.help.strip()
    assert command.epilog
    for parameter in command.params:
        assert parameter.help, f"{parameter.name} has no help"
    assert any("--json" in parameter.opts for parameter in command.params)


@pytest.mark.parametrize("at", range(len(EVERY)), ids=PATHS)
def test_every_example_is_understood(at: int) -> None:
    command, context = EVERY[at]
    for example in command.epilog.splitlines():
        call = next(part for part in re.split(r" \| | > ", example) if part.startswith("cofire "))
        words = shlex.split(call)
        depth = len(context.command_path.split())
        assert " ".join(words[:depth]) == context.command_path, example
        command.make_context(context.info_name, words[depth:], parent=context.parent)


def test_the_reference_is_current() -> None:
    page = SCRIPT["TARGET"].read_text(encoding="utf-8")
    assert page == SCRIPT["reference"](), "run python scripts/make_cli_reference.py"
    for path in PATHS:
        assert f"### {path}\n" in page


@pytest.mark.parametrize("path", ["cofire", *PATHS])
def test_help_is_plain_and_quick_and_imports_nothing_heavy(cofire: Cofire, path: str) -> None:
    words = [*path.split()[1:], "--help"]
    script = f"""
import json, sys
from cofire.cli import main
code = main({words!r})
print(json.dumps([code, sorted(set(sys.modules))]))
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", script], env=cofire.env, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text, _, last = done.stdout.rstrip().rpartition("\n")
    code, modules = json.loads(last)
    assert code == 0
    # Typer itself reads the values before a command's name with pydantic (0.08 s).
    own = {"pydantic"} if path != "cofire" else set()
    assert not (HEAVY - own) & set(modules)
    assert f"Usage: {path}" in text
    assert "Examples:" in text
    assert "\x1b" not in text
    # Processor time, because the wall clock also measures what else this machine does.
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.5


def test_help_fits_into_80_columns() -> None:
    for command, context in EVERY:
        text = command.get_help(context).partition("Examples:")[0]
        assert max(map(len, text.splitlines())) <= 80, context.command_path


def test_without_arguments_it_explains_itself(cofire: Cofire) -> None:
    assert cofire.ok().out == cofire.ok("--help").out
    assert "locomo" in cofire.ok("evaluate").out


def test_version(cofire: Cofire) -> None:
    from cofire import __version__

    assert cofire.ok("--version").out == f"cofire {__version__}\n"

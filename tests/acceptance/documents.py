"""Running what a document shows: its Python, its command lines, its SQL, and their output.

A document is run from top to bottom in one empty folder with one Python namespace. In its fences

    python               is executed; a fence `output` right after it is what it prints
    console, sh          are command lines ("$ " before each in a console); what stands below a
                         command is its output, and `$ echo $?` shows an exit code other than 0
    sql                  is run, read only, against the store that COFIRE_STORE names, on
                         PostgreSQL as a superuser
    json, jsonl, toml    must be what they say; any fence with `file=NAME` is written to that file
    text                 is only read

In an output "..." stands for anything (alone in a line: for any lines, or none), and an id for
some id: the one met there is put in its place for the rest of the document.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from forked_interpreter import run_python

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 120
"""Seconds a command may take on a loaded machine."""

_FENCE = re.compile(r"```(?P<info>[^`]*)")
_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b")
_ANYTHING = r"[\s\S]*?"
_RUN = frozenset({"cofire", "python", "echo", "cat", "curl", "gzip", "ls", "jq", "printf"})
"""Programs a document may run, besides `make` and `pip`, which are only looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fence of a document, `line` its first line of content."""

    path: Path
    line: int
    language: str
    file: str | None
    text: str

    @property
    def where(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def blocks(path: Path) -> Iterator[Block]:
    """The fences of a document, in order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    opened: tuple[int, str] | None = None
    for number, line in enumerate(lines, start=1):
        if opened is None:
            match = _FENCE.fullmatch(line.strip())
            opened = (number, match["info"]) if match else None
        elif line.strip() == "```":
            start, info = opened
            language, _, rest = info.partition(" ")
            file = rest.removeprefix("file=") if rest.startswith("file=") else None
            text = textwrap.dedent("\n".join(lines[start : number - 1]))
            yield Block(path=path, line=start + 1, language=language, file=file, text=text)
            opened = None
    assert opened is None, f"{path}: the fence of line {opened[0] if opened else 0} has no end"


@dataclass(slots=True)
class Session:
    """A document being run in `folder`; `replaced` are texts that stand for others here, `reader`
    is the URL for reading a PostgreSQL store."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    replaced: dict[str, str] = field(default_factory=dict)
    reader: str = ""
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str = ""
    ran: int = 0

    def run(self, path: Path) -> None:
        """Everything the document shows."""
        for block in blocks(path):
            if block.file is not None:
                (self.folder / block.file).write_text(block.text + "\n", encoding="utf-8")
            _RUNNERS[block.language](self, block)

    def actual(self, text: str) -> str:
        """A text of the document as it has to be here."""
        for shown, real in self.replaced.items():
            text = text.replace(shown, real)
        return text

    def compare(self, expected: str, printed: str, where: str) -> None:
        """Whether an output is what the document shows; learns the ids in it."""
        pattern = ""
        ids: list[str] = []
        for part in re.split(rf"(\.\.\.|{_ID.pattern})", expected.strip()):
            if part == "...":
                pattern += _ANYTHING
            elif _ID.fullmatch(part) and part not in self.replaced:
                if part in ids:
                    pattern += rf"(?P=id{ids.index(part)})"
                else:
                    pattern += rf"(?P<id{len(ids)}>{_ID.pattern})"
                    ids.append(part)
            else:
                pattern += re.escape(self.actual(part))
        pattern = pattern.replace(f"\\\n{_ANYTHING}\\\n", f"\\\n(?:{_ANYTHING}\\\n)?")
        found = re.fullmatch(pattern, printed.strip())
        assert found, f"{where}: shown\n{expected.strip()}\n--- but printed\n{printed.strip()}"
        for index, shown in enumerate(ids):
            self.replaced[shown] = found[f"id{index}"]

    # What the fences are

    def python(self, block: Block) -> None:
        source = "\n" * (block.line - 1) + self.actual(block.text)
        code = compile(source, str(block.path), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, self.namespace)  # noqa: S102 - our own documents
        self.printed = printed.getvalue()
        self.ran += 1

    def output(self, block: Block) -> None:
        self.compare(block.text, self.printed, block.where)

    def console(self, block: Block) -> None:
        code = 0
        for line, command, shown in _commands(block):
            where = f"{block.path.relative_to(ROOT)}:{line}"
            if command == "echo $?":
                assert str(code) == shown.strip(), f"{where}: exit code {code}, not {shown}"
                code = 0
                continue
            assert code == 0, f"{where}: the command before ended with {code}:\n{self.printed}"
            code = self._command(self.actual(command), where)
            if shown.strip():
                self.compare(shown, self.printed, where)
        assert code == 0, f"{block.where}: the last command ended with {code}:\n{self.printed}"

    def _command(self, command: str, where: str) -> int:
        """Run one command line; its exit code."""
        first, _, rest = command.partition(" ")
        if first == "export":
            name, _, value = rest.partition("=")
            self.monkeypatch.setenv(name, value.strip("'\""))
            return 0
        if first == "unset":
            self.monkeypatch.delenv(rest)
            return 0
        self.ran += 1
        if first == "make":
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{rest.split()[0]}:", makefile, re.MULTILINE), f"{where}: {command}"
            return 0
        if first == "pip":
            project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
            assert rest in {"install .", f"install {project['project']['name']}"}, where
            return 0
        unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "''", command)
        words = [part.split() for part in re.split(r"\||&&", unquoted)]
        programs = {next(one for one in part if "=" not in one) for part in words}
        assert programs <= _RUN, f"{where}: {programs - _RUN} may not be run by a document"
        arguments = plain_arguments(command)
        # The README is run as its readers run it; forking what others show takes half the time.
        if arguments is None or where.startswith("README.md"):
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=TIMEOUT, check=False,
            )  # fmt: skip
        else:
            done = run_python(
                ["-m", "cofire", *arguments], cwd=self.folder, env=os.environ, timeout=TIMEOUT,
                merged=True,
            )  # fmt: skip
        self.printed = done.stdout.decode("utf-8")
        return done.returncode

    def sql(self, block: Block) -> None:
        connection = self._reading(os.environ["COFIRE_STORE"])
        try:
            rows = [
                "|".join("" if value is None else str(value) for value in row)
                for statement in block.text.split(";")
                if statement.strip()
                for row in connection.execute(statement)
            ]
        finally:
            connection.close()
        self.printed = "\n".join(rows)
        self.ran += 1

    def _reading(self, store: str) -> Any:
        """A connection to the store that changes nothing."""
        if not store.startswith("postgresql://"):
            return sqlite3.connect(f"file:{self.folder / store}?mode=ro", uri=True)
        import psycopg

        connection = psycopg.connect(self.reader)
        connection.read_only = True
        return connection

    def read(self, block: Block) -> None:
        """Nothing to run: it only has to be what it says it is."""
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "jsonl":
            for line in block.text.splitlines():
                json.loads(line)
        elif block.language == "toml":
            tomllib.loads(block.text)


_RUNNERS = {
    "python": Session.python,
    "output": Session.output,
    "console": Session.console,
    "sh": Session.console,
    "sql": Session.sql,
    "json": Session.read,
    "jsonl": Session.read,
    "toml": Session.read,
    "markdown": Session.read,
    "text": Session.read,
}


def plain_arguments(command: str) -> list[str] | None:
    """The arguments of a command line that is `cofire` alone; None if it needs a shell."""
    unquoted = re.sub(r"""'[^']*'|"[^"$`\\!]*\"""", "", command)
    if not command.startswith("cofire ") or re.search(r"[|&;<>()$`*?~{}!\\]", unquoted):
        return None
    return shlex.split(command)[1:]


def _commands(block: Block) -> Iterator[tuple[int, str, str]]:
    """(line, command, output shown) of a console; every line of an `sh` fence is a command."""
    lines = block.text.splitlines()
    if block.language == "sh":
        lines = [f"$ {line}" for line in lines if line.strip() and not line.startswith("#")]
    start, command = block.line, ""
    shown: list[str] = []
    going_on = False
    for number, line in enumerate(lines, start=block.line):
        if going_on:
            command += " " + line.strip().removesuffix("\\").strip()
            going_on = line.endswith("\\")
        elif line.startswith("$ "):
            if command:
                yield start, command, "\n".join(shown)
            start, shown = number, []
            going_on = line.endswith("\\")
            command = line.removeprefix("$ ").removesuffix("\\").strip()
        else:
            assert command, f"{block.where}: an output without a command"
            shown.append(line)
    if command:
        yield start, command, "\n".join(shown)


def clean_environment(folder: Path, embedder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which nothing of this machine's shows: no store, no settings of its own."""
    for name in list(os.environ):
        if name.startswith(("COFIRE_", "XDG_")):
            monkeypatch.delenv(name)
    programs = str(Path(sys.executable).parent)
    for name, value in {
        "HOME": str(folder / "home"),
        "PATH": programs + os.pathsep + os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
        "COFIRE_STORE": "memory.db",
        "COFIRE_EMBEDDER": embedder,
        "OMP_NUM_THREADS": "1",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
    }.items():
        monkeypatch.setenv(name, value)
    (folder / "home").mkdir()
    monkeypatch.chdir(folder)

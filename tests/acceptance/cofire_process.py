"""The real command, as a process of its own, in a place of its own.

`Cofire.run` forks that process from one that has imported Cofire (see `forked_interpreter`): the
same `python -m cofire …` without the second that imports take. Tests of start-up, imports,
terminals, signals and interpreter options start a new interpreter with `Cofire.command`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forked_interpreter import run_python

SOURCES = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document that it is."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error that `--json` prints."""
        return json.loads(self.err)["error"]


class Cofire:
    """Runs `cofire` with a store, settings and home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "memory.db"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("COFIRE_", "XDG_")) and name not in {"NO_COLOR", "FORCE_COLOR"}
        }
        self.env = kept | {
            "HOME": str(folder),
            "PYTHONPATH": str(SOURCES),
            "OMP_NUM_THREADS": "1",
            "COFIRE_STORE": str(self.store),
            "COFIRE_CONFIG": str(folder / "config.toml"),
            "COFIRE_EMBEDDER": "hashing:64",
        }

    def command(self, *arguments: str) -> list[str]:
        """What starts it in a new interpreter."""
        return [sys.executable, "-m", "cofire", *arguments]

    def run(
        self, *arguments: str, stdin: str | bytes = "", env: Mapping[str, str] | None = None
    ) -> Done:
        """Run to the end, whatever it is."""
        done = run_python(
            ["-m", "cofire", *arguments],
            cwd=self.folder,
            env={**self.env, **(env or {})},
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            timeout=300,
        )
        return Done(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    def ok(self, *arguments: str, stdin: str | bytes = "") -> Done:
        """Run, and insist on success."""
        done = self.run(*arguments, stdin=stdin)
        assert done.code == 0, done
        return done

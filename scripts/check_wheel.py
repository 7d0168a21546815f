"""Build the wheel, install it into an empty virtual environment and use it from there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

USE = """
from cofire import Memory
with Memory.open("wheel.db") as memory:
    memory.remember("The shed key is in the blue tin.", speaker="Ada")
    memory.remember("The ferry leaves at nine.", speaker="Ben")
    hit = memory.recall("Where is the key to the shed?", k=1)[0]
    assert hit.content == "The shed key is in the blue tin.", hit
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside the checkout's import path; its output, or exit with it."""
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, "-m", "build", "--outdir", work, ROOT, cwd=work)
        (wheel,) = work.glob("*.whl")
        venv.create(work / "env", with_pip=True)
        python = work / "env" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", wheel, cwd=work)
        run(python, "-c", USE, cwd=work)
        demo = run(work / "env" / "bin" / "cofire", "demo", cwd=work)
        print(f"{wheel.name}: built, installed and used; demo printed {len(demo)} characters")


if __name__ == "__main__":
    main()

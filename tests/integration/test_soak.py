"""A short run of `benchmarks.soak`: processes use the same spaces, and workers are killed.

It waits more than it works (calls are a fifth of a second apart), so that tests beside it do not
starve."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postgres_fixtures import require_postgres

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0 if os.environ.get("CI") else 30.0
NOTHING = ("errors", "missing", "twice", "changed", "undead", "findings")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the server needs Unix sockets")
def test_nothing_acknowledged_is_lost_and_no_error_reaches_a_caller(tmp_path: Path) -> None:
    require_postgres()
    told = tmp_path / "soak.json"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "benchmarks.soak", "--minutes", str(SECONDS / 60),
         "--clients", "2", "--pause", "0.2", "--hours-per-second", "6", "--json", told],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS + 240,
        check=False,
    )  # fmt: skip
    assert told.exists(), done.stderr
    outcome: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    assert {name: outcome[name] for name in NOTHING} == {name: [] for name in NOTHING}
    assert outcome["mended"] == 0
    assert [kill["held_a_claim"] for kill in outcome["kills"]] == [True, True]
    assert outcome["consolidations"]["done"] > 0
    for verb in ("remember", "recall", "feedback", "update", "look"):
        assert outcome["calls"][verb] > 0
    assert done.returncode == 0, done.stdout

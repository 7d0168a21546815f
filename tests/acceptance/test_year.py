"""The year that `benchmarks.year` simulates, shortened: sixty days, everything six times faster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("year")
    figures, picture = folder / "year.json", folder / "year.svg"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "benchmarks.year", "--short", "--arm", "default",
         "--json", figures, "--plot", picture],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000
    results: dict[str, Any] = json.loads(figures.read_text(encoding="utf-8"))
    return {**results["arms"]["default"], "most": results["most"]}


def test_the_active_graph_stays_within_its_size(arm: dict[str, Any]) -> None:
    assert max(arm["active"]) <= arm["most"]
    assert arm["stored"][-1] > 2 * arm["most"]


def test_a_night_costs_the_same_once_the_graph_is_full(arm: dict[str, Any]) -> None:
    assert arm["summary"]["farthest week from that"] <= 0.2


def test_what_is_asked_for_is_still_found_and_what_is_important_never_lost(
    arm: dict[str, Any],
) -> None:
    kept = arm["summary"]["kept at the end"]
    assert kept["asked"] >= 0.9
    assert kept["important"] == 1.0
    assert arm["summary"]["important facts lost"] == 0

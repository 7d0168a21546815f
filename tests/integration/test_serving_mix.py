"""A short run of `benchmarks.serving_mix`: clients do everything at once over HTTP.

It waits more than it works (calls are a tenth of a second apart), so that tests beside it do not
starve; both stores have their run at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from postgres_fixtures import require_postgres

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30.0 if os.environ.get("CI") else 10.0
"""Of each store: a minute in CI."""
STORES = ("sqlite", "postgres")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the server needs Unix sockets")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """Where a run of each store told what it found, and what it complained of."""
    folder = tmp_path_factory.mktemp("mix")
    with ThreadPoolExecutor() as pool:
        return dict(zip(STORES, pool.map(lambda store: run(store, folder), STORES), strict=True))


def run(store: str, folder: Path) -> tuple[Path, str]:
    told = folder / f"{store}.json"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "benchmarks.serving_mix", "--store", store,
         "--minutes", str(SECONDS / 60), "--clients", "4", "--pause", "0.1",
         "--embedder", "hashing:64", "--json", told],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS + 180,
        check=False,
    )  # fmt: skip
    return told, done.stderr


@pytest.mark.parametrize("store", STORES)
def test_nothing_acknowledged_is_lost_and_no_error_is_answered(
    runs: dict[str, tuple[Path, str]], store: str
) -> None:
    if store == "postgres":
        require_postgres()
    told, complaints = runs[store]
    assert told.exists(), complaints
    outcome: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    assert outcome["calls"]["remember"] > 0
    assert {name: outcome[name] for name in ("errors", "missing", "log", "exit code")} == {
        "errors": [], "missing": [], "log": [], "exit code": 0,
    }  # fmt: skip

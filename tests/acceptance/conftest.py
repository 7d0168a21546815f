"""What every acceptance test may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from cofire_process import Cofire


@pytest.fixture
def cofire(tmp_path: Path) -> Cofire:
    """The command, with a store and a home of its own."""
    return Cofire(tmp_path)

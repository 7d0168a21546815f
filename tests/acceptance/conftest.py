"""What every acceptance test may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cofire_process import Cofire

from forked_interpreter import close_shared


@pytest.fixture(autouse=True, scope="session")
def shared_interpreters() -> Iterator[None]:
    """What `run_python` starts ends with the session."""
    yield
    close_shared()


@pytest.fixture
def cofire(tmp_path: Path) -> Cofire:
    """The command, with a store and a home of its own."""
    return Cofire(tmp_path)

"""What every test gets or may ask for; see `guards` and `postgres_fixtures`.

mypy leaves this file out: it takes one `conftest` only.
"""

from collections.abc import Iterator

import pytest

from forked_interpreter import close_shared
from guards import no_network, no_settings
from postgres_fixtures import own_server, postgres_database, postgres_server, postgres_store

__all__ = [
    "no_network",
    "no_settings",
    "own_server",
    "postgres_database",
    "postgres_server",
    "postgres_store",
    "shared_interpreters",
]


@pytest.fixture(autouse=True, scope="session")
def shared_interpreters() -> Iterator[None]:
    """What `run_python` and `start_python` share ends with the session."""
    yield
    close_shared()

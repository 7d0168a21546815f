"""Giving freed memory back asks the C library, where that can."""

from __future__ import annotations

import ctypes

import pytest

from cofire.graph import freed_memory


def test_what_was_freed_is_given_back() -> None:
    freed_memory.give_back_freed_memory()


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def __init__(self, name: str | None) -> None:
            del name

    monkeypatch.setattr(ctypes, "CDLL", Other)
    freed_memory._trim.cache_clear()
    try:
        freed_memory.give_back_freed_memory()
        assert freed_memory._trim() is None
    finally:
        freed_memory._trim.cache_clear()

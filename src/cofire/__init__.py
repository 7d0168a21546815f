"""Cofire: long-term memory for LLM agents that learns from use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["AsyncMemory", "Memories", "Memory", "__version__"]

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cofire.aio import AsyncMemory
    from cofire.memories import Memories
    from cofire.memory import Memory

_LAZY = {
    "Memory": "cofire.memory",
    "AsyncMemory": "cofire.aio",
    "Memories": "cofire.memories",
}


def __getattr__(name: str) -> Any:
    """The classes are imported when first used: starting up stays fast."""
    if name not in _LAZY:
        raise AttributeError(f"module 'cofire' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))

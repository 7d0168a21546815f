"""Freed memory: kept in the process where the C library gives it back too eagerly, and given back
where it keeps too much."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

KEPT = 16 << 20
"""Bytes: about what a recall over 100,000 memories uses and lets go of, several times over."""


def keep_freed_memory() -> None:
    """Make the allocator keep freed blocks of up to `KEPT` bytes for the next call.

    A recall works in arrays of some hundred kilobytes, made and dropped. glibc maps each of them
    anew from the system, page fault by page fault, until it has seen a larger block freed: from
    then on it keeps what is smaller. So one is freed here, never touched, which costs nothing.
    Fresh pages took a third of a recall's time. Other C libraries are not affected.
    """
    np.empty(KEPT, np.uint8)


def give_back_freed_memory() -> None:
    """Give the system what was freed and is kept, after something that needed much once.

    glibc keeps an arena of memory for each thread, and of each what was freed below what is still
    in use: a server whose threads consolidate a space now and then would keep what each of them
    ever needed. Other C libraries are not affected. It takes some milliseconds.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # no glibc
        return None

"""Keeping freed memory in the process, where the C library gives it back too eagerly."""

from __future__ import annotations

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

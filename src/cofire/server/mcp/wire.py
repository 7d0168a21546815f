"""Standard input and output, taken out of everybody's reach: they carry the protocol.

A library that prints, a warning, a child process: one stray line on standard output ends a client's
connection. So before anything else is imported the two are moved to descriptors that nobody knows,
standard output becomes standard error, and standard input is empty.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The descriptors that the protocol is read from and written to, as bytes."""

    reading: int
    writing: int


def claim() -> Wire:
    """Take them. What was printed before and not yet written goes to standard error as well."""
    wire = Wire(reading=_moved(0), writing=_moved(1))
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    return wire


def _moved(descriptor: int) -> int:
    """A copy that no child inherits and that carries bytes as they are."""
    copy = os.dup(descriptor)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(copy, os.O_BINARY)
    return copy

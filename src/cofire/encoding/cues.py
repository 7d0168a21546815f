"""A question that got a useful answer, as a memory of kind "cue".

A cue is found again by its vector and by whom it asks about. It has no terms: it is no document,
and must not change what a word is worth in its space.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import numpy as np

from cofire.dynamics.arrays import F32
from cofire.encoding.terms import asked_about
from cofire.ids import new_uuid7
from cofire.store.records import NewItem
from cofire.types import Kind, to_micros


class AskedLike(Protocol):
    """A question as recall reads it: its vector, and the hashes of the people it names."""

    @property
    def vector(self) -> F32 | None: ...
    @property
    def names(self) -> tuple[int, ...]: ...


def cue_item(query: str, asked: AskedLike, tokens: int, now: datetime) -> NewItem:
    """The cue to store. Raises ValueError for a question without a vector."""
    if asked.vector is None:
        raise ValueError("a cue needs a vector to be found again by")
    time = to_micros(now)
    about = sorted({asked_about(name) for name in asked.names or (None,)})
    return NewItem(
        uid=new_uuid7().bytes,
        kind=Kind.CUE.value,
        content=query,
        time=time,
        recorded=time,
        tokens=tokens,
        facets=np.array(about, "<u8").tobytes(),
        vector=np.asarray(asked.vector, "<f2").tobytes(),
    )

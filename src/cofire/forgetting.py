"""Deleting memories and spaces, and everything that this process keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from cofire.store.records import SpaceInfo
from cofire.types import to_micros
from cofire.visible import open_space
from cofire.workings import Workings


def forget(workings: Workings, ids: Sequence[str]) -> int:
    """Delete memories, in each space as one transaction. Raises NotFoundError, and then nothing
    is deleted."""
    places = [workings.spaces.locate(id) for id in dict.fromkeys(ids)]
    workings.log.flush()
    gone = 0
    for space in {space.space_id: space for space, _ in places}.values():
        numbers = [number for place, number in places if place.space_id == space.space_id]
        gone += workings.store.forget(space, numbers)
        workings.recaller.forget(space)
    forget_vectors(workings)
    return gone


def forget_everything(workings: Workings, project: str | None) -> int:
    """Delete a whole space; an empty one of the same name takes its place."""
    return workings.spaces.lasting(lambda: _forget_space(workings, workings.spaces.target(project)))


def _forget_space(workings: Workings, space: SpaceInfo) -> int:
    workings.log.flush()
    count = workings.store.counts(space).items
    workings.store.forget_space(space)
    workings.recaller.forget(space)
    forget_vectors(workings)
    workings.spaces.put(open_space(workings.store, space.ref, to_micros(datetime.now(UTC))))
    return count


def forget_vectors(workings: Workings) -> None:
    """Empty the embedder's cache, if it has one."""
    clear = getattr(workings.embedder, "clear", None)
    if clear is not None:
        clear()

"""What an active graph gets from a store, with named rows."""

from __future__ import annotations

from dataclasses import dataclass

from cofire.store import Store
from cofire.store.records import GraphLink, GraphRow, SpaceInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Changes with named rows."""

    revision: int
    rebuild: bool
    rows: list[GraphRow]
    links: list[GraphLink]
    removed_items: list[int]
    removed_links: list[tuple[int, int]]


def seen(store: Store, space: SpaceInfo, since: int) -> Seen:
    """What changed since, with named rows."""
    changes = store.changes(space, since)
    rows, links = changes.named()
    return Seen(
        revision=changes.revision,
        rebuild=changes.rebuild,
        rows=rows,
        links=links,
        removed_items=changes.removed_items,
        removed_links=changes.removed_links,
    )

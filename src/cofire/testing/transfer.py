"""Whole spaces: iterated and copied."""

from __future__ import annotations

from typing import Any

from cofire.store import Store
from cofire.store.records import Amendment, LinkRow, NewSegment, SpaceInfo
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import an_item, fill, make_space


class TransferTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_a_copy_can_be_made_of_what_iterates(self, store: Store, space: SpaceInfo) -> None:
        fill(store, space)
        store.update(space, 1, an_item("one, changed", session="s", time=10), now=77)
        other = make_space(store, "copy")
        copy_space(store, space, other)
        for iterate in (store.iterate_items, store.iterate_links, store.iterate_versions):
            one = [row._replace(**zeroed(row)) for row in iterate(space)]
            two = [row._replace(**zeroed(row)) for row in iterate(other)]
            assert [shown(row) for row in one] == [shown(row) for row in two]
        assert [row.number for row in store.iterate_items(space, last=2)] == [1, 2]
        assert [row.number for row in store.iterate_items(space, segments=True)] == [1, 2, 3, 4, 5]

    def test_iteration_goes_past_a_page(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item(session="s") for _ in range(1_203)])
        assert [row.number for row in store.iterate_items(space)] == list(range(1, 1_204))
        assert len(list(store.iterate_links(space))) == 1_202


def copy_space(store: Store, space: SpaceInfo, other: SpaceInfo) -> None:
    """Copies items, history, counts and links by the verbs an import uses."""
    numbers: dict[int, int] = {}
    history = list(store.iterate_versions(space))
    for row in store.iterate_items(space):
        segments = [
            part for part in store.iterate_items(space, segments=True) if part.parent == row.number
        ]
        item = an_item(
            row.content,
            uid=row.uid, kind=row.kind, title=row.title, session=row.session, time=row.time,
            recorded=row.recorded, tags=row.tags, metadata=row.metadata, pending=row.pending,
            segments=tuple(
                NewSegment(uid=part.uid, start=part.start, end=part.end) for part in segments
            ),
        )  # fmt: skip
        (number,) = store.append(other, [item], link_sessions=False).numbers
        numbers[row.number] = number
        numbers.update({part.number: number + 1 + index for index, part in enumerate(segments)})
        store.amend(
            other,
            [
                Amendment(
                    number=number,
                    updated=row.updated,
                    version=row.version,
                    access_count=row.access_count,
                    last_accessed=row.last_accessed,
                    history=tuple(found for found in history if found.number == row.number),
                )
            ],
        )
    links = [
        link._replace(source=numbers[link.source], target=numbers[link.target])
        for link in store.iterate_links(space)
    ]
    store.put_links(other, links)
    store.put_links(other, links)


def zeroed(row: Any) -> dict[str, Any]:
    """What differs between copies on purpose."""
    return {"revision": 0} if isinstance(row, LinkRow) or hasattr(row, "revision") else {}


def shown(row: Any) -> dict[str, Any]:
    """A row as names and values, for readable differences."""
    values: dict[str, Any] = row._asdict()
    return values

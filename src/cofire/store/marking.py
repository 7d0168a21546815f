"""Giving memories other metadata, and nothing else: their text and vector stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, update

from cofire.store.reading import fetch
from cofire.store.records import SpaceInfo, canonical_json
from cofire.store.rows import ATTRIBUTE_COLUMNS, attribute_hashes
from cofire.store.schema import attributes, items
from cofire.store.session import Query, Session, row_change
from cofire.store.writing import ADD_ATTRIBUTE, take_turn

SET_METADATA = row_change(items, "metadata")
# Segments are filtered by what their whole has.
SET_FACETS = Query(
    lambda _: (
        update(items)
        .where(
            items.c.tenant == bindparam("in_tenant"),
            items.c.space == bindparam("in_space"),
            (items.c.number == bindparam("at_number")) | (items.c.parent == bindparam("of_number")),
        )
        .values(facets=bindparam("new_facets"), revision=bindparam("new_revision"))
    )
)
CLEAR_ATTRIBUTES = Query(
    lambda flavour: delete(attributes).where(
        attributes.c.tenant == bindparam("tenant"),
        attributes.c.space == bindparam("space"),
        attributes.c.number.in_(flavour.members("numbers")),
    )
)


class Marked(NamedTuple):
    """Other metadata for a memory as it was read at `revision` (`ItemRow.revision`), with the
    facets it has by them (packed, see `NewItem.facets`)."""

    number: int
    revision: int
    metadata: Mapping[str, Any]
    facets: bytes


def mark(session: Session, space: SpaceInfo, wanted: Sequence[Marked]) -> int:
    """Gives memories other metadata; returns how many. What was changed, archived or deleted since
    it was read is passed over."""
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    there = {row.number: row for row in fetch(session, space, [one.number for one in wanted])}
    done = [
        one
        for one in wanted
        if one.number in there
        and there[one.number].revision == one.revision
        and there[one.number].archived is None
    ]
    session.run(CLEAR_ATTRIBUTES, numbers=session.pack([one.number for one in done]), **here)
    for one in done:
        at = {"in_tenant": turn.tenant, "in_space": turn.space, "at_number": one.number}
        metadata = canonical_json(dict(one.metadata)) if one.metadata else "{}"
        session.run(SET_METADATA, new_metadata=metadata, **at)
        session.run(
            SET_FACETS,
            of_number=one.number,
            new_facets=one.facets,
            new_revision=turn.revision,
            **at,
        )
        rows = [(*here.values(), label, one.number) for label in attribute_hashes(one.metadata)]
        session.many(ADD_ATTRIBUTE, rows, ATTRIBUTE_COLUMNS)
    return len(done)

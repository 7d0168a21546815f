"""Giving concepts other names, and nothing else: what they rest on and lead to stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, update

from cofire.store.deriving import DERIVED_BY_NUMBER, STATE_OF, subject_hash
from cofire.store.marking import CLEAR_ATTRIBUTES
from cofire.store.records import SpaceInfo, canonical_json
from cofire.store.rows import ATTRIBUTE_COLUMNS, attribute_hashes
from cofire.store.schema import derived, items
from cofire.store.session import Query, Session, row_change
from cofire.store.writing import ADD_ATTRIBUTE, Turn, take_turn

SET_NAME = row_change(items, "content", "metadata", "revision")
SET_SUBJECT = Query(
    lambda _: (
        update(derived)
        .where(
            derived.c.tenant == bindparam("in_tenant"),
            derived.c.space == bindparam("in_space"),
            derived.c.number == bindparam("at_number"),
        )
        .values(
            subject=bindparam("new_subject"),
            subject_hash=bindparam("new_hash"),
            maker=bindparam("new_maker"),
            prompt=bindparam("new_prompt"),
        )
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Respelled:
    """Other names for the concept `number`, the main one first, and who found them. `said`:
    (number, version) of the memories that they were read in."""

    number: int
    names: tuple[str, ...]
    maker: str
    prompt: str | None
    said: tuple[tuple[int, int], ...]


def respell(session: Session, space: SpaceInfo, wanted: Sequence[Respelled]) -> int:
    """Gives concepts other names; returns how many. Passed over is what is gone, and names read in
    a memory that was edited or deleted since: they may be what was to be forgotten."""
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    packed = session.pack([one.number for one in wanted])
    there = {row[0] for row in session.all(DERIVED_BY_NUMBER, numbers=packed, **here)}
    said = session.pack(sorted({number for one in wanted for number, _ in one.said}))
    versions = {row[0]: row[1] for row in session.all(STATE_OF, numbers=said, **here)}
    done = [
        one
        for one in wanted
        if one.number in there
        and all(versions.get(number) == version for number, version in one.said)
    ]
    session.run(CLEAR_ATTRIBUTES, numbers=session.pack([one.number for one in done]), **here)
    for one in done:
        _set(session, turn, one)
    return len(done)


def named(names: Sequence[str]) -> dict[str, list[str]]:
    """The metadata of a concept with these names, the main one first."""
    return {"aliases": list(names[1:])} if len(names) > 1 else {}


def _set(session: Session, turn: Turn, one: Respelled) -> None:
    at = {"in_tenant": turn.tenant, "in_space": turn.space, "at_number": one.number}
    metadata = named(one.names)
    session.run(
        SET_NAME,
        new_content=one.names[0],
        new_metadata=canonical_json(metadata) if metadata else "{}",
        new_revision=turn.revision,
        **at,
    )
    session.run(
        SET_SUBJECT,
        new_subject=one.names[0],
        new_hash=subject_hash(one.names[0]),
        new_maker=one.maker,
        new_prompt=one.prompt,
        **at,
    )
    rows = [(turn.tenant, turn.space, label, one.number) for label in attribute_hashes(metadata)]
    session.many(ADD_ATTRIBUTE, rows, ATTRIBUTE_COLUMNS)

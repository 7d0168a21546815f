"""Concepts as they are stored: what turns make of them, and what is to be done for the store to
say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cofire.consolidation.abstracting import ABSTRACTION
from cofire.consolidation.concepts import mentioned
from cofire.consolidation.drafts import Turn
from cofire.consolidation.night import Night
from cofire.consolidation.turns import read_turns, trusted
from cofire.ids import new_uuid7
from cofire.store.planning import Plan, Restated
from cofire.store.records import DerivedRow, NewDerived, NewItem
from cofire.store.respelling import Respelled, named
from cofire.types import Kind, LinkType

EXTRACTIVE = "extractive"
"""Maker of what rules found."""


@dataclass(slots=True, eq=False)
class Concept:
    """A concept in the picture: `row` as stored (None: new). `names`: all of them, the main one
    first. `turns`: numbers of those that mention it. `changed`: there is something to be done."""

    row: DerivedRow | None
    names: list[str]
    turns: set[int]
    maker: str = EXTRACTIVE
    prompt: str | None = None
    changed: bool = False

    @property
    def number(self) -> int | None:
        return None if self.row is None else self.row.item.number


@dataclass(frozen=True, slots=True)
class State:
    """What a concept is by the turns that mention it; `said`: (number, version) of them."""

    names: tuple[str, ...]
    said: tuple[tuple[int, int], ...]


def state_of(names: Sequence[str], turns: Iterable[Turn]) -> State | None:
    among = {turn.number: turn for turn in turns}
    found = mentioned(names, among.values())
    if found is None:
        return None
    return State(found.names, tuple((n, among[n].version) for n in found.numbers))


@dataclass(slots=True)
class Changes:
    """Parts of a plan for concepts that are stored."""

    restated: list[Restated] = field(default_factory=list)
    respelled: list[Respelled] = field(default_factory=list)
    pruned: list[tuple[int, int]] = field(default_factory=list)
    retired: list[int] = field(default_factory=list)

    def plan(self) -> Plan:
        return Plan(
            restated=tuple(self.restated),
            respelled=tuple(self.respelled),
            pruned=tuple(self.pruned),
            retired=tuple(self.retired),
        )


def change(
    night: Night,
    row: DerivedRow,
    state: State | None,
    made: tuple[str, str | None],
    changes: Changes,
) -> None:
    """Adds what makes a stored concept as it should be."""
    number = row.item.number
    if state is None:
        changes.retired.append(number)
        return
    numbers = tuple(n for n, _ in state.said)
    if numbers != tuple(source.source for source in row.sources) or row.state != "current":
        wanted = set(_led_to(night, numbers))
        changes.restated.append(
            Restated(
                number=number,
                sources=_sources(state),
                confidence=None,
                links=_links(sorted(wanted)),
            )
        )
        changes.pruned += [
            (number, link.target)
            for link in night.store.links(night.space, number)
            if link.source == number
            and link.type == LinkType.ABSTRACTION.value
            and link.target not in wanted
        ]
    if state.names != tuple(stored(row).names) or made != (row.maker, row.prompt):
        changes.respelled.append(
            Respelled(
                number=number, names=state.names, maker=made[0], prompt=made[1], said=state.said
            )
        )


def _led_to(night: Night, numbers: Sequence[int]) -> Sequence[int]:
    """The mentions that a concept leads to: the latest."""
    return numbers[-night.rule.links_per_item :]


def _links(numbers: Iterable[int]) -> tuple[tuple[int, str, float], ...]:
    return tuple((number, LinkType.ABSTRACTION.value, ABSTRACTION) for number in numbers)


def _sources(state: State) -> tuple[tuple[int, int, int, int], ...]:
    return tuple((number, 0, 0, 0) for number, _ in state.said)


def filed(night: Night, fresh: Sequence[tuple[Concept, State]]) -> tuple[NewDerived, ...]:
    """New concepts as they are stored."""
    if not fresh:
        return ()
    first = night.store.fetch(night.space, sorted({state.said[0][0] for _, state in fresh}))
    times = {row.number: row.time for row in first}
    return tuple(
        NewDerived(
            item=NewItem(
                uid=new_uuid7().bytes,
                content=state.names[0],
                time=times.get(state.said[0][0], night.now),
                recorded=night.now,
                kind=Kind.CONCEPT.value,
                metadata=named(state.names),
            ),
            maker=concept.maker,
            prompt=concept.prompt,
            subject=state.names[0],
            sources=_sources(state),
            links=_links(_led_to(night, [number for number, _ in state.said])),
        )
        for concept, state in fresh
    )


def stored(row: DerivedRow) -> Concept:
    names = [row.item.content, *map(str, row.item.metadata.get("aliases", ()))]
    turns = {source.source for source in row.sources}
    return Concept(row, names, turns, row.maker, row.prompt)


# -- When mentions are edited or deleted ---------------------------------------------------------


def still_named(night: Night, one: DerivedRow) -> Plan:
    """What becomes of a stale concept: it is called what the turns call it that are left. Relations
    to concepts that none of them mentions with it go."""
    concept = stored(one)
    turns = trusted(read_turns(night.store, night.space, sorted(concept.turns)))
    state = state_of(concept.names, turns)
    changes = Changes()
    change(night, one, state, (one.maker, one.prompt), changes)
    if state is not None:
        changes.pruned += _unrelated(night, one, {number for number, _ in state.said})
    return changes.plan()


def _unrelated(night: Night, one: DerivedRow, said: set[int]) -> list[tuple[int, int]]:
    number = one.item.number
    related = [
        link
        for link in night.store.links(night.space, number)
        if link.type == LinkType.RELATED.value
    ]
    others = sorted({link.source + link.target - number for link in related})
    rows = night.store.derived(night.space, others) if others else []
    apart = {
        row.item.number for row in rows if not any(source.source in said for source in row.sources)
    }
    return [
        (link.source, link.target)
        for link in related
        if link.source + link.target - number in apart
    ]

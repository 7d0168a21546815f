"""What follows for derived memories when what they rest on is deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sqlalchemy import bindparam, delete, select

from cofire.store.deriving import DERIVED_BY_NUMBER, SOURCES_OF, STATE_OF, resting_on
from cofire.store.ledger import unread
from cofire.store.records import KIND_CODES, STATES, StepRow
from cofire.store.schema import items, versions
from cofire.store.session import Query, Session
from cofire.store.telling import names_of, only_said_by, quotes, terms_by_whole, unsaid
from cofire.types import Kind

TEXTS = Query(
    lambda flavour: select(
        items.c.number, items.c.title, items.c.content, items.c.kind, items.c.metadata
    ).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.number.in_(flavour.members("numbers")),
    )
)
REMOVE_VERSIONS = Query(
    lambda flavour: delete(versions).where(
        versions.c.tenant == bindparam("tenant"),
        versions.c.space == bindparam("space"),
        versions.c.number.in_(flavour.members("numbers")),
    )
)


KINDS = Query(
    lambda flavour: select(items.c.number, items.c.kind).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.number.in_(flavour.members("numbers")),
    )
)
_CONCEPT = KIND_CODES[Kind.CONCEPT.value]
_RECORDS = frozenset(
    KIND_CODES[kind.value]
    for kind in (Kind.FACT, Kind.TRAIT, Kind.PERSONA, Kind.PROCEDURE, Kind.CONCEPT)
)
_READ_BY = {_CONCEPT: "concepts"}
"""By kind the step that reads what such a record rests on, where its maker does not tell."""


@dataclass(frozen=True, slots=True)
class _Resting:
    """A derived memory: its state, (source, version) of what it rests on, and (source, start, end)
    of the words that it cites."""

    state: str
    sources: list[tuple[int, int]] = field(default_factory=list)
    spans: list[tuple[int, int, int]] = field(default_factory=list)


def left_without(
    session: Session, here: Mapping[str, int], gone: Collection[int], *, thorough: bool
) -> tuple[set[int], set[int]]:
    """What follows for derived memories if these go: those that go too (and what rests on them,
    and so on), and those that lose a part of what they rest on and stay.

    One goes if nothing is left that it rests on. If `thorough`, because what goes must not be
    known any more, it goes as well if it repeats what goes: if it quotes it, has a word that
    nobody else said, was made of a former text of it, or is in quarantine, where its words were
    never checked against what is left.
    """
    named = set(gone)
    lost, doubtful = set[int](), set[int]()
    front = set(gone)
    while front:
        resting = _resting(session, here, resting_on(session, here, front))
        leaving = named | lost
        open_ = {number: one for number, one in resting.items() if number not in leaving}
        fresh = {
            number
            for number, one in open_.items()
            if all(source in leaving for source, _ in one.sources)
        }
        if thorough:
            left = {number: one for number, one in open_.items() if number not in fresh}
            fresh |= _repeating(session, here, left, leaving)
        doubtful |= open_.keys()
        lost |= fresh
        front = fresh
    return lost, doubtful - lost


def unread_evidence(
    session: Session,
    here: Mapping[str, int],
    lost: Collection[int],
    gone: Collection[int],
    *,
    now: int,
) -> list[StepRow]:
    """Notes for the ledger that what is left of the evidence of lost records is to be read again:
    a record whose words must go says nothing of those who said the same in other words."""
    if not lost:
        return []
    packed = session.pack(sorted(lost))
    kinds: dict[int, int] = dict(session.all(KINDS, numbers=packed, **here))
    makers = {row[0]: row[1] for row in session.all(DERIVED_BY_NUMBER, numbers=packed, **here)}
    notes = {
        unread(source, makers[number], now=now, step=_READ_BY.get(kinds[number]))
        for number, source, _, _, _ in session.all(SOURCES_OF, numbers=packed, **here)
        if source not in gone and number in makers and kinds.get(number) in _RECORDS
    }
    return sorted(notes)


def forget_former_texts(
    session: Session, here: Mapping[str, int], numbers: Collection[int]
) -> None:
    """Deletes the history of derived memories: what an older text quoted nobody can tell."""
    session.run(REMOVE_VERSIONS, numbers=session.pack(sorted(numbers)), **here)


def _resting(
    session: Session, here: Mapping[str, int], numbers: Collection[int]
) -> dict[int, _Resting]:
    packed = session.pack(sorted(numbers))
    found = {
        row[0]: _Resting(STATES[row[3]])
        for row in session.all(DERIVED_BY_NUMBER, numbers=packed, **here)
    }
    for number, source, version, start, end in session.all(SOURCES_OF, numbers=packed, **here):
        if number in found:
            found[number].sources.append((source, version))
            found[number].spans.append((source, start, end))
    return found


def _repeating(
    session: Session,
    here: Mapping[str, int],
    among: Mapping[int, _Resting],
    leaving: Collection[int],
) -> set[int]:
    """Of derived memories that keep a source, those that repeat what goes."""
    if not among:
        return set()
    ends = {source for one in among.values() for source, _ in one.sources}
    packed = session.pack(sorted(ends | among.keys()))
    current = {row[0]: row[1] for row in session.all(STATE_OF, numbers=packed, **here)}
    rows = session.all(TEXTS, numbers=packed, **here)
    texts = {row[0]: f"{row[1] or ''}\n{row[2] or ''}" for row in rows}
    contents = {row[0]: row[2] or "" for row in rows}
    names = {row[0]: names_of(row[2] or "", row[4]) for row in rows if row[3] == _CONCEPT}
    found = set[int]()
    for number, one in among.items():
        going = [source for source, _ in one.sources if source in leaving]
        staying = [source for source, _ in one.sources if source not in leaving]
        former = any(
            source in leaving and version not in (0, current.get(source))
            for source, version in one.sources
        )
        cited = any(
            words and words in contents.get(number, "")
            for words in (
                contents.get(source, "")[start:end]
                for source, start, end in one.spans
                if source in leaving
            )
        )
        left = [texts[source] for source in staying if source in texts]
        repeats = (
            unsaid(names[number], left)
            if number in names
            else quotes(
                texts.get(number, ""), [texts[source] for source in going if source in texts], left
            )
        )
        if former or cited or one.state == "quarantined" or repeats:
            found.add(number)
    return found | _telling(session, here, among.keys() - found, ends, leaving)


def _telling(
    session: Session,
    here: Mapping[str, int],
    among: Collection[int],
    ends: Collection[int],
    leaving: Collection[int],
) -> set[int]:
    """Those with a word that, of all memories, only what goes said."""
    going = [number for number in ends if number in leaving]
    said = set[int]().union(*terms_by_whole(session, here, going).values())
    shared = {
        number: words & said for number, words in terms_by_whole(session, here, among).items()
    }
    words = only_said_by(session, here, set[int]().union(*shared.values()), leaving)
    return {number for number, own in shared.items() if own & words}

"""What consolidation made of memories: filing, finding, ending and reopening it.

Every function runs inside one transaction. A derived memory is a row of `items` with one of
`derived` beside it; what it rests on are rows of `sources`. Its item is archived, and so out of
the active graph, for as long as it is not trusted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from sqlalchemy import bindparam, delete, func, insert, select, update

from cofire.store.reading import fetch
from cofire.store.records import (
    DERIVED_SIGNAL,
    LINK_CODES,
    STATE_CODES,
    STATES,
    DerivedFields,
    DerivedRow,
    NewDerived,
    NewItem,
    SourceRow,
    SpaceInfo,
    canonical_json,
)
from cofire.store.rows import (
    ATTRIBUTE_COLUMNS,
    ITEM_COLUMNS,
    LINK_COLUMNS,
    TAG_COLUMNS,
    VECTOR_COLUMNS,
    attribute_rows,
    label_hash,
    tag_rows,
    whole_row,
)
from cofire.store.schema import derived, items, links, sources
from cofire.store.session import Query, Row, Session, row_change
from cofire.store.strengths import make_room
from cofire.store.writing import (
    ADD_ATTRIBUTE,
    ADD_ITEM,
    ADD_LINK,
    ADD_TAG,
    ADD_VECTOR,
    Turn,
    plain_link,
    take_turn,
    vector_row,
)
from cofire.types import LinkType

_SUPERSEDES = LINK_CODES[LinkType.SUPERSEDES.value]
ADD_DERIVED = Query(lambda _: insert(derived))
DERIVED_COLUMNS = tuple(column.name for column in derived.columns)
ADD_SOURCE = Query(lambda _: insert(sources))
SOURCE_COLUMNS = tuple(column.name for column in sources.columns)
STATE_OF = Query(
    lambda flavour: select(items.c.number, items.c.version, items.c.archived).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        # A sum, or SQLite takes the index by time and reads the whole space for a few numbers.
        items.c.parent + 0 == 0,
        items.c.number.in_(flavour.members("numbers")),
    )
)
_DERIVED = (
    derived.c.number,
    derived.c.maker,
    derived.c.prompt,
    derived.c.state,
    derived.c.subject,
    derived.c.slot,
    derived.c.value,
    derived.c.single,
    derived.c.reasons,
    derived.c.closed,
)
ALL_DERIVED = Query(
    lambda _: (
        select(*_DERIVED)
        .where(derived.c.tenant == bindparam("tenant"), derived.c.space == bindparam("space"))
        .order_by(derived.c.number)
    )
)
DERIVED_BY_NUMBER = Query(
    lambda flavour: (
        select(*_DERIVED)
        .where(
            derived.c.tenant == bindparam("tenant"),
            derived.c.space == bindparam("space"),
            derived.c.number.in_(flavour.members("numbers")),
        )
        .order_by(derived.c.number)
    )
)
DERIVED_PAGE = Query(
    lambda _: (
        select(*_DERIVED)
        .where(
            derived.c.tenant == bindparam("tenant"),
            derived.c.space == bindparam("space"),
            derived.c.number > bindparam("after"),
            derived.c.number <= bindparam("last"),
        )
        .order_by(derived.c.number)
        .limit(bindparam("row_limit"))
    )
)
MARK_DERIVED = Query(
    lambda _: (
        update(items)
        .where(
            items.c.tenant == bindparam("in_tenant"),
            items.c.space == bindparam("in_space"),
            items.c.number == bindparam("at_number"),
        )
        .values(signals=items.c.signals.op("|")(DERIVED_SIGNAL), revision=bindparam("new_revision"))
    )
)
OF_SUBJECTS = Query(
    lambda flavour: select(derived.c.number).where(
        derived.c.tenant == bindparam("tenant"),
        derived.c.space == bindparam("space"),
        derived.c.subject_hash.in_(flavour.members("hashes")),
    )
)
CLOSED_AFTER = Query(
    lambda _: select(derived.c.number).where(
        derived.c.tenant == bindparam("tenant"),
        derived.c.space == bindparam("space"),
        derived.c.closed > bindparam("moment"),
    )
)
SOURCES_OF = Query(
    lambda flavour: (
        select(
            sources.c.number,
            sources.c.source,
            sources.c.version,
            sources.c.start,
            sources.c.end,
        )
        .where(
            sources.c.tenant == bindparam("tenant"),
            sources.c.space == bindparam("space"),
            sources.c.number.in_(flavour.members("numbers")),
        )
        .order_by(sources.c.number, sources.c.source, sources.c.start)
    )
)
RESTING_ON = Query(
    lambda flavour: (
        select(sources.c.number, sources.c.source)
        .where(
            sources.c.tenant == bindparam("tenant"),
            sources.c.space == bindparam("space"),
            sources.c.source.in_(flavour.members("numbers")),
        )
        .distinct()
    )
)
REMOVE_SOURCES = Query(
    lambda flavour: delete(sources).where(
        sources.c.tenant == bindparam("tenant"),
        sources.c.space == bindparam("space"),
        sources.c.number.in_(flavour.members("numbers")),
    )
)
REMOVE_SOURCES_ON = Query(
    lambda flavour: delete(sources).where(
        sources.c.tenant == bindparam("tenant"),
        sources.c.space == bindparam("space"),
        sources.c.source.in_(flavour.members("numbers")),
    )
)
SET_STATE = row_change(derived, "state", "reasons")
EDITED = Query(
    lambda _: (
        update(derived)
        .where(
            derived.c.tenant == bindparam("in_tenant"),
            derived.c.space == bindparam("in_space"),
            derived.c.number == bindparam("at_number"),
        )
        .values(maker="edited")
    )
)
# When the sources of a derived memory expire; NULL if one of them never does.
EXPIRIES = Query(
    lambda flavour: (
        select(
            sources.c.number,
            func.count(),
            func.count(items.c.expires),
            func.max(items.c.expires),
        )
        .select_from(
            sources.join(
                items,
                (items.c.tenant == sources.c.tenant)
                & (items.c.space == sources.c.space)
                & (items.c.number == sources.c.source),
            )
        )
        .where(
            sources.c.tenant == bindparam("tenant"),
            sources.c.space == bindparam("space"),
            sources.c.number.in_(flavour.members("numbers")),
        )
        .group_by(sources.c.number)
    )
)
SET_EXPIRES = row_change(items, "expires", "revision")
SET_EXPIRES_COLUMNS = ("new_revision", "new_expires", "in_tenant", "in_space", "at_number")
SET_CLOSED = row_change(derived, "closed")
SET_VALID_TO = row_change(items, "valid_to", "revision")
SET_VALIDITY = row_change(items, "valid_from", "valid_to", "revision")
SET_TRUST = row_change(items, "archived", "confidence", "revision")
# Of each superseded number, who supersedes it and from when they hold; the trusted ones.
SUPERSEDERS = Query(
    lambda flavour: (
        select(links.c.target, links.c.source, items.c.valid_from, items.c.time)
        .select_from(
            links.join(
                items,
                (items.c.tenant == links.c.tenant)
                & (items.c.space == links.c.space)
                & (items.c.number == links.c.source),
            ).join(
                derived,
                (derived.c.tenant == links.c.tenant)
                & (derived.c.space == links.c.space)
                & (derived.c.number == links.c.source)
                & (derived.c.state == STATE_CODES["current"]),
            )
        )
        .where(
            links.c.tenant == bindparam("tenant"),
            links.c.space == bindparam("space"),
            links.c.type == _SUPERSEDES,
            links.c.target.in_(flavour.members("numbers")),
        )
    )
)
SUPERSEDED = Query(
    lambda flavour: (
        select(links.c.target)
        .where(
            links.c.tenant == bindparam("tenant"),
            links.c.space == bindparam("space"),
            links.c.type == _SUPERSEDES,
            links.c.source.in_(flavour.members("numbers")),
        )
        .distinct()
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """What filing did, in the order given: the numbers (None: a source was edited, archived or
    deleted meanwhile, so it was left out) and the space's revision."""

    numbers: tuple[int | None, ...]
    revision: int

    @property
    def skipped(self) -> int:
        return self.numbers.count(None)


def file_derived(
    session: Session, space: SpaceInfo, new: Sequence[NewDerived], *, now: int
) -> Filed:
    """Stores what was derived, with its sources, links and supersessions, as one transaction.

    What rests on a version that is no longer the current one is left out, and so is what
    supersedes something that is gone. `now` is when links and ends of validity were recorded.
    Raises NotFoundError if the space is gone, InputError as `append` does.
    """
    turn = take_turn(session, space, len(new))
    versions = _versions(session, turn, new)
    numbers = [
        turn.first + place if _holds(one, versions) else None for place, one in enumerate(new)
    ]
    _file(
        session,
        turn,
        {number: one for number, one in zip(numbers, new, strict=True) if number is not None},
        now,
    )
    return Filed(numbers=tuple(numbers), revision=turn.revision)


def _versions(session: Session, turn: Turn, new: Sequence[NewDerived]) -> dict[int, int]:
    """The current version of every source and end that is named."""
    wanted = {source[0] for one in new for source in one.sources}
    wanted |= {other for one in new for other, _, _ in one.links}
    wanted |= {former for one in new for former, _ in one.supersedes}
    here = {"tenant": turn.tenant, "space": turn.space}
    rows = session.all(STATE_OF, numbers=session.pack(sorted(wanted)), **here)
    return {number: version for number, version, _ in rows}


def _holds(one: NewDerived, versions: Mapping[int, int]) -> bool:
    current = all(
        source in versions and version in (0, versions[source])
        for source, version, _, _ in one.sources
    )
    return (
        current
        and all(other in versions for other, _, _ in one.links)
        and all(former in versions for former, _ in one.supersedes)
    )


def _file(session: Session, turn: Turn, new: Mapping[int, NewDerived], now: int) -> None:
    """Table by table: on a server, each statement that is waited for costs more than its rows."""
    made = {number: _item(one, now) for number, one in new.items()}
    keys = {number: (turn.tenant, turn.space, number) for number in new}
    session.many(
        ADD_ITEM,
        [whole_row(*keys[number], turn.revision, item) for number, item in made.items()],
        ITEM_COLUMNS,
    )
    session.many(
        ADD_VECTOR,
        [
            vector_row(turn, number, item.vector)
            for number, item in made.items()
            if item.vector is not None
        ],
        VECTOR_COLUMNS,
    )
    tags = [row for number, item in made.items() for row in tag_rows(*keys[number], item)]
    session.many(ADD_TAG, tags, TAG_COLUMNS)
    attributes = [
        row for number, item in made.items() for row in attribute_rows(*keys[number], item)
    ]
    session.many(ADD_ATTRIBUTE, attributes, ATTRIBUTE_COLUMNS)
    session.many(
        ADD_DERIVED,
        [(*keys[number], *_derived_row(one)) for number, one in new.items()],
        DERIVED_COLUMNS,
    )
    _add_sources(session, turn, {number: one.sources for number, one in new.items()})
    _expire(session, turn, {number: made[number].expires for number in new if new[number].sources})
    for one in new.values():
        for former, valid_to in one.supersedes:
            end_validity(session, turn, former, valid_to, now=now)
    links = [row for number, one in new.items() for row in _link_rows(turn, number, one, now)]
    session.many(ADD_LINK, links, LINK_COLUMNS)


def _item(one: NewDerived, now: int) -> NewItem:
    return replace(
        one.item,
        signals=one.item.signals | DERIVED_SIGNAL,
        archived=None if one.state == "current" else now,
    )


def _link_rows(turn: Turn, number: int, one: NewDerived, now: int) -> list[Row]:
    wanted = {(number, other): (kind, strength) for other, kind, strength in one.links}
    ends = LinkType.SUPERSEDES.value
    wanted |= {(number, former): (ends, 1.0) for former, _ in one.supersedes}
    return [
        plain_link(turn, *pair, LINK_CODES[kind], strength=strength, created=now)
        for pair, (kind, strength) in sorted(wanted.items())
    ]


def _derived_row(one: NewDerived | DerivedFields) -> Row:
    return (
        one.maker,
        one.prompt,
        STATE_CODES[one.state],
        one.subject,
        subject_hash(one.subject),
        one.slot,
        label_hash("slot", one.slot),
        one.value,
        int(one.single),
        canonical_json(one.reasons) if one.reasons else "[]",
        one.closed,
    )


def subject_hash(subject: str) -> int:
    """The stored hash of whom or what a record is about, alike for every way to write it."""
    return label_hash("subject", subject.casefold().strip() or None)


def _add_sources(
    session: Session, turn: Turn, spans: Mapping[int, Iterable[tuple[int, int, int, int]]]
) -> None:
    rows = {
        (turn.tenant, turn.space, number, source, start): (end, version)
        for number, its in spans.items()
        for source, version, start, end in its
    }
    session.many(ADD_SOURCE, [(*key, *rest) for key, rest in sorted(rows.items())], SOURCE_COLUMNS)


def set_sources(
    session: Session,
    space: SpaceInfo,
    number: int,
    spans: Sequence[tuple[int, int, int, int]],
    *,
    state: str,
    confidence: float | None,
    reasons: Sequence[str] = (),
    links_to: Sequence[tuple[int, str, float]] = (),
    now: int,
) -> int:
    """Gives a derived memory other sources, a state and a confidence; returns the revision.

    What is not "current" is archived at `now`; what a quarantined one had ended holds again.
    New links to `links_to` are added where there is room. Sources that are gone or were edited
    since are left out. Raises NotFoundError.
    """
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    packed = session.pack(sorted({span[0] for span in spans} | {end for end, _, _ in links_to}))
    versions = {row[0]: row[1] for row in session.all(STATE_OF, numbers=packed, **here)}
    session.run(REMOVE_SOURCES, numbers=session.pack([number]), **here)
    there = [span for span in spans if span[0] in versions]  # 0 means whichever version there is
    _add_sources(
        session, turn, {number: [span for span in there if span[1] in (0, versions[span[0]])]}
    )
    if spans:
        expire_with_sources(session, turn, [number])
    set_state(session, turn, number, state, confidence=confidence, reasons=reasons, archived_at=now)
    if state == "quarantined":
        reopen(session, turn, superseded_by(session, turn, [number]), now=now)
    ends = {(number, end): (kind, strength) for end, kind, strength in links_to if end in versions}
    room = make_room(session, turn, ends)
    session.many(
        ADD_LINK,
        [
            plain_link(turn, *pair, LINK_CODES[ends[pair][0]], strength=ends[pair][1], created=now)
            for pair in sorted(room)
        ],
        LINK_COLUMNS,
    )
    return turn.revision


def expire_with_sources(session: Session, turn: Turn, numbers: Iterable[int]) -> None:
    """A derived memory expires with the last of what it rests on."""
    expiries = _expiries(session, turn, numbers)
    _set_expires(session, turn, expiries)


def _expire(session: Session, turn: Turn, before: Mapping[int, int | None]) -> None:
    """As `expire_with_sources`; `before` is what each has. Most need no change."""
    expiries = _expiries(session, turn, before)
    _set_expires(
        session, turn, {number: end for number, end in expiries.items() if end != before[number]}
    )


def _expiries(session: Session, turn: Turn, numbers: Iterable[int]) -> dict[int, int | None]:
    """When each expires (µs): with the last of its sources, if all of them do."""
    found: dict[int, int | None] = dict.fromkeys(numbers)
    here = {"tenant": turn.tenant, "space": turn.space, "numbers": session.pack(sorted(found))}
    for number, count, ending, last in session.all(EXPIRIES, **here):
        found[number] = last if count == ending else None
    return found


def _set_expires(session: Session, turn: Turn, expiries: Mapping[int, int | None]) -> None:
    session.many(
        SET_EXPIRES,
        [(turn.revision, end, turn.tenant, turn.space, number) for number, end in expiries.items()],
        SET_EXPIRES_COLUMNS,
    )


def set_state(
    session: Session,
    turn: Turn,
    number: int,
    state: str,
    *,
    confidence: float | None,
    reasons: Sequence[str] = (),
    archived_at: int,
) -> None:
    """Trusts a derived memory or not; what is not current is out of the active graph."""
    key = {"in_tenant": turn.tenant, "in_space": turn.space, "at_number": number}
    session.run(
        SET_STATE,
        new_state=STATE_CODES[state],
        new_reasons=canonical_json(tuple(reasons)) if reasons else "[]",
        **key,
    )
    session.run(
        SET_TRUST,
        new_archived=None if state == "current" else archived_at,
        new_confidence=confidence,
        new_revision=turn.revision,
        **key,
    )


def edited(session: Session, turn: Turn, number: int) -> bool:
    """Notes that somebody changed a derived memory by hand; whether it is one."""
    key = {"in_tenant": turn.tenant, "in_space": turn.space, "at_number": number}
    return session.run(EDITED, **key) > 0


def end_validity(
    session: Session, turn: Turn, number: int, valid_to: int | None, *, now: int
) -> None:
    """A fact holds until `valid_to` (µs), as is known from `now` on; None: it holds again."""
    key = {"in_tenant": turn.tenant, "in_space": turn.space, "at_number": number}
    session.run(SET_VALID_TO, new_valid_to=valid_to, new_revision=turn.revision, **key)
    session.run(SET_CLOSED, new_closed=None if valid_to is None else now, **key)


def set_validity(
    session: Session,
    turn: Turn,
    number: int,
    valid_from: int | None,
    valid_to: int | None,
    *,
    now: int,
) -> None:
    """From when until when (µs) a derived memory holds, as is known from `now` on."""
    key = {"in_tenant": turn.tenant, "in_space": turn.space, "at_number": number}
    session.run(
        SET_VALIDITY,
        new_valid_from=valid_from,
        new_valid_to=valid_to,
        new_revision=turn.revision,
        **key,
    )
    session.run(SET_CLOSED, new_closed=None if valid_to is None else now, **key)


def join(
    session: Session, turn: Turn, wanted: Iterable[tuple[int, int, str, float]], *, now: int
) -> None:
    """Adds links (source, target, type, strength) where there is room. What is gone is passed
    over, and so is a link from a memory to itself."""
    links_by_pair = {
        (source, target): (kind, strength)
        for source, target, kind, strength in wanted
        if source != target
    }
    here = {"tenant": turn.tenant, "space": turn.space}
    ends = session.pack(sorted({end for pair in links_by_pair for end in pair}))
    there = {row[0] for row in session.all(STATE_OF, numbers=ends, **here)}
    room = make_room(session, turn, [pair for pair in links_by_pair if there.issuperset(pair)])
    session.many(
        ADD_LINK,
        [
            plain_link(
                turn,
                *pair,
                LINK_CODES[links_by_pair[pair][0]],
                strength=links_by_pair[pair][1],
                created=now,
            )
            for pair in sorted(room)
        ],
        LINK_COLUMNS,
    )


def superseded_by(session: Session, turn: Turn, numbers: Collection[int]) -> list[int]:
    """The memories that any of these supersede."""
    here = {"tenant": turn.tenant, "space": turn.space}
    return [
        row[0] for row in session.all(SUPERSEDED, numbers=session.pack(sorted(numbers)), **here)
    ]


def reopen(session: Session, turn: Turn, numbers: Collection[int], *, now: int) -> list[int]:
    """Of derived memories that others ended, gives each the end that what is left says: the
    earliest of those who still supersede it, or none. Returns those that hold again."""
    here = {"tenant": turn.tenant, "space": turn.space}
    packed = session.pack(sorted(numbers))
    ended = {
        row[0]
        for row in session.all(DERIVED_BY_NUMBER, numbers=packed, **here)
        if row[9] is not None
    }
    left: dict[int, int] = {}
    for former, _, valid_from, time in session.all(SUPERSEDERS, numbers=packed, **here):
        since = time if valid_from is None else valid_from
        left[former] = min(since, left.get(former, since))
    for number in sorted(ended):
        end_validity(session, turn, number, left.get(number), now=now)
    return sorted(ended - left.keys())


def resting_on(
    session: Session, here: Mapping[str, int], numbers: Collection[int]
) -> dict[int, set[int]]:
    """The derived memories that rest on any of these, each with which of them."""
    found: dict[int, set[int]] = {}
    for number, source in session.all(RESTING_ON, numbers=session.pack(sorted(numbers)), **here):
        found.setdefault(number, set()).add(source)
    return found


def make_stale(
    session: Session, turn: Turn, numbers: Collection[int], reason: str, *, now: int
) -> None:
    """Takes current derived memories out of recall until they are verified anew."""
    here = {"tenant": turn.tenant, "space": turn.space}
    for row in session.all(DERIVED_BY_NUMBER, numbers=session.pack(sorted(numbers)), **here):
        if STATES[row[3]] == "current":
            set_state(
                session, turn, row[0], "stale", confidence=None, reasons=(reason,), archived_at=now
            )


def read_derived(
    session: Session, space: SpaceInfo, numbers: Sequence[int] | None = None
) -> list[DerivedRow]:
    """Derived memories by number (None: all), with their items and sources."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    if numbers is None:
        rows = session.all(ALL_DERIVED, **here)
    else:
        rows = session.all(DERIVED_BY_NUMBER, numbers=session.pack(sorted(numbers)), **here)
    found = [row[0] for row in rows]
    spans = session.all(SOURCES_OF, numbers=session.pack(found), **here)
    by_number = {
        number: tuple(SourceRow._make(row) for row in group)
        for number, group in groupby(spans, key=itemgetter(0))
    }
    by_item = {row.number: row for row in fetch(session, space, found)}
    return [_derived(row, by_item, by_number) for row in rows if row[0] in by_item]


def _derived(
    row: Row, by_item: Mapping[int, object], by_number: Mapping[int, object]
) -> DerivedRow:
    number, maker, prompt, state, subject, slot, value, single, reasons, closed = row
    return DerivedRow(
        by_item[number],  # type: ignore[arg-type]
        maker,
        prompt,
        STATES[state],
        subject,
        slot,
        value,
        single != 0,
        tuple(json.loads(reasons)),
        closed,
        by_number.get(number, ()),  # type: ignore[arg-type]
    )


def derived_page(
    session: Session, here: Mapping[str, int], *, after: int, last: int, limit: int
) -> list[DerivedFields]:
    """Up to `limit` derived memories with numbers in (after, last], without their items."""
    rows = session.all(DERIVED_PAGE, after=after, last=last, row_limit=limit, **here)
    spans: dict[int, list[SourceRow]] = {row[0]: [] for row in rows}
    for span in session.all(SOURCES_OF, numbers=session.pack(list(spans)), **here):
        spans[span[0]].append(SourceRow._make(span))
    return [
        DerivedFields._make(
            (
                *row[:3],
                STATES[row[3]],
                *row[4:7],
                row[7] != 0,
                tuple(json.loads(row[8])),
                row[9],
                tuple(spans[row[0]]),
            )
        )
        for row in rows
    ]


def put_derived(session: Session, space: SpaceInfo, rows: Sequence[DerivedFields]) -> int:
    """Says of items that are there how they were made, for an import; returns the revision. Those
    of which it is known, or that are not there, are passed over, and so are sources that are not.
    """
    turn = take_turn(session, space)
    here = {"tenant": turn.tenant, "space": turn.space}
    wanted = {row.number: row for row in rows}
    named = wanted.keys() | {source.source for row in rows for source in row.sources}
    there = {row[0] for row in session.all(STATE_OF, numbers=session.pack(sorted(named)), **here)}
    packed = session.pack(sorted(wanted))
    known = {row[0] for row in session.all(DERIVED_BY_NUMBER, numbers=packed, **here)}
    for number in sorted(wanted.keys() & there - known):
        row = wanted[number]
        key = (turn.tenant, turn.space, number)
        session.many(ADD_DERIVED, [(*key, *_derived_row(row))], DERIVED_COLUMNS)
        spans = [(one.source, one.version, one.start, one.end) for one in row.sources]
        _add_sources(session, turn, {number: [span for span in spans if span[0] in there]})
        session.run(
            MARK_DERIVED,
            in_tenant=turn.tenant,
            in_space=turn.space,
            at_number=number,
            new_revision=turn.revision,
        )
    return turn.revision


def derived_of_subjects(
    session: Session, space: SpaceInfo, subjects: Collection[str]
) -> list[DerivedRow]:
    """The derived memories about any of these, whatever their state."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    hashes = session.pack(sorted({subject_hash(subject) for subject in subjects}))
    return read_derived(
        session, space, [row[0] for row in session.all(OF_SUBJECTS, hashes=hashes, **here)]
    )

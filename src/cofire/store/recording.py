"""What use leaves behind: recall records, access counts, the learning log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import bindparam, delete, insert, select

from cofire.dynamics.plasticity import SIGNALS
from cofire.errors import InputError
from cofire.store.events import LEARNING, add_events
from cofire.store.forgetting import WHOLES
from cofire.store.records import HYDRATION, EventRecord, RecallHit, RecallRecord, SpaceInfo
from cofire.store.rules import SETTINGS
from cofire.store.schema import accesses, recall_items, recalls
from cofire.store.session import Query, Row, Session
from cofire.store.writing import take_turn

RECALLS_BETWEEN = Query(
    lambda _: select(recalls.c.uid).where(
        recalls.c.tenant == bindparam("tenant"),
        recalls.c.space == bindparam("space"),
        recalls.c.uid >= bindparam("first"),
        recalls.c.uid <= bindparam("last"),
    )
)
ADD_RECALL = Query(lambda _: insert(recalls))
RECALL_COLUMNS = tuple(column.name for column in recalls.columns)
ADD_HIT = Query(lambda _: insert(recall_items))
HIT_COLUMNS = tuple(column.name for column in recall_items.columns)
COUNTED = Query(
    lambda flavour: select(
        accesses.c.number, accesses.c.access_count, accesses.c.last_accessed
    ).where(
        accesses.c.tenant == bindparam("tenant"),
        accesses.c.space == bindparam("space"),
        accesses.c.number.in_(flavour.members("numbers")),
    )
)
UNCOUNT = Query(
    lambda flavour: delete(accesses).where(
        accesses.c.tenant == bindparam("tenant"),
        accesses.c.space == bindparam("space"),
        accesses.c.number.in_(flavour.members("numbers")),
    )
)
ADD_COUNT = Query(lambda _: insert(accesses))
COUNT_COLUMNS = tuple(column.name for column in accesses.columns)
OLD_HITS = Query(
    lambda _: delete(recall_items).where(
        recall_items.c.tenant == bindparam("tenant"),
        recall_items.c.space == bindparam("space"),
        recall_items.c.recall < bindparam("oldest"),
    )
)
OLD_RECALLS = Query(
    lambda _: delete(recalls).where(
        recalls.c.tenant == bindparam("tenant"),
        recalls.c.space == bindparam("space"),
        recalls.c.uid < bindparam("oldest"),
    )
)
READ_RECALL = Query(
    lambda _: select(
        recalls.c.uid, recalls.c.query, recalls.c.time, recalls.c.profile, recalls.c.principal
    ).where(
        recalls.c.tenant == bindparam("tenant"),
        recalls.c.space == bindparam("space"),
        recalls.c.uid == bindparam("uid"),
    )
)
READ_HITS = Query(
    lambda _: (
        select(
            recall_items.c.number,
            recall_items.c.position,
            recall_items.c.score,
            recall_items.c.linked,
            recall_items.c.via,
        )
        .where(
            recall_items.c.tenant == bindparam("tenant"),
            recall_items.c.space == bindparam("space"),
            recall_items.c.recall == bindparam("uid"),
        )
        .order_by(recall_items.c.position, recall_items.c.number)
    )
)


def record_recalls(
    session: Session, batch: Sequence[tuple[SpaceInfo, RecallRecord]], *, count_use: bool
) -> list[tuple[SpaceInfo, RecallRecord]]:
    """Keeps recall records and (`count_use`) counts their hits as accesses; revisions stay.

    The records were buffered, and deletion beats every buffer: memories forgotten since are left
    out, and a record of which nothing is left, or whose space is gone, is not kept. A record that
    is kept already is passed over. Returns those that were kept, their spaces with the settings
    they have now.
    """
    by_space: dict[tuple[int, int], tuple[SpaceInfo, list[RecallRecord]]] = {}
    for space, record in batch:
        key = (space.tenant_id, space.space_id)
        by_space.setdefault(key, (space, []))[1].append(record)
    kept: list[tuple[SpaceInfo, RecallRecord]] = []
    for (tenant, number), (space, records) in by_space.items():
        here = {"tenant": tenant, "space": number}
        row = session.one(SETTINGS, **here)
        if row is not None:
            now = replace(space, settings=json.loads(row[0]))
            kept += [(now, record) for record in _record(session, here, records, count_use)]
    return kept


def _record(
    session: Session, here: dict[str, int], batch: Sequence[RecallRecord], count_use: bool
) -> list[RecallRecord]:
    wanted = sorted({hit.number for record in batch for hit in record.hits})
    found = session.all(WHOLES, numbers=session.pack(wanted), **here)
    wholes = {number: parent or number for number, parent in found}
    # What was buffered together was asked within a second or two, and uids are in order of time:
    # one look at that stretch tells which are kept already, where a look for each took a round
    # trip for each.
    uids = [record.uid for record in batch]
    stored = session.all(RECALLS_BETWEEN, first=min(uids), last=max(uids), **here)
    known = {bytes(row[0]) for row in stored}
    kept: dict[bytes, Row] = {}
    hits: list[Row] = []
    used: Counter[int] = Counter()
    last: dict[int, int] = {}
    for record in batch:
        left = {hit.number: hit for hit in record.hits if hit.number in wholes}
        if record.uid in known or (record.hits and not left):
            continue
        known.add(record.uid)
        own = (record.uid, record.time, record.profile, record.principal, record.query)
        kept[record.uid] = (*here.values(), *own)
        for hit in left.values():
            row = (record.uid, hit.number, hit.position, float(hit.score), int(hit.linked), hit.via)
            hits.append((*here.values(), *row))
        if record.profile == HYDRATION:  # to be shown because one is new, or pinned, is no use
            continue
        for number in {wholes[number] for number in left}:
            used[number] += 1
            last[number] = max(record.time, last.get(number, record.time))
    session.many(ADD_RECALL, list(kept.values()), RECALL_COLUMNS)
    session.many(ADD_HIT, hits, HIT_COLUMNS)
    if count_use:
        _count(session, here, used, last)
    return [record for record in batch if record.uid in kept]


def record_access(session: Session, space: SpaceInfo, numbers: Sequence[int], time: int) -> None:
    """Counts one access of each memory at `time`. Unknown numbers are passed over."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    found = session.all(WHOLES, numbers=session.pack(numbers), **here)
    wholes = {parent or number for number, parent in found}
    _count(session, here, Counter(wholes), dict.fromkeys(wholes, time))


def _count(
    session: Session, here: dict[str, int], used: Counter[int], last: dict[int, int]
) -> None:
    if not used:
        return
    packed = session.pack(sorted(used))
    former = {
        number: (count, latest)
        for number, count, latest in session.all(COUNTED, numbers=packed, **here)
    }
    session.run(UNCOUNT, numbers=packed, **here)
    rows = []
    for number, more in used.items():
        count, latest = former.get(number, (0, last[number]))
        rows.append((*here.values(), number, count + more, max(latest, last[number])))
    session.many(ADD_COUNT, rows, COUNT_COLUMNS)


def set_access(session: Session, space: SpaceInfo, counts: Sequence[tuple[int, int, int]]) -> None:
    """Sets (number, access count, last accessed) outright, for an import."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    session.run(UNCOUNT, numbers=session.pack([row[0] for row in counts]), **here)
    session.many(ADD_COUNT, [(*here.values(), *row) for row in counts], COUNT_COLUMNS)


def purge_recalls(session: Session, space: SpaceInfo, before: int) -> int:
    """Deletes recall records made before `before` (µs) by the clock that is in their uids, whatever
    time their callers gave; returns how many."""
    oldest = max(0, before // 1_000).to_bytes(6, "big")  # a UUIDv7 begins with its milliseconds
    here = {"tenant": space.tenant_id, "space": space.space_id, "oldest": oldest}
    session.run(OLD_HITS, **here)
    return session.run(OLD_RECALLS, **here)


def recall_record(session: Session, space: SpaceInfo, uid: bytes) -> RecallRecord | None:
    """One recall record."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    row = session.one(READ_RECALL, uid=uid, **here)
    return None if row is None else recall_from_row(session, space, row)


def recall_from_row(session: Session, space: SpaceInfo, row: Row) -> RecallRecord:
    uid, query, time, profile, principal = row
    hits = session.all(READ_HITS, tenant=space.tenant_id, space=space.space_id, uid=uid)
    return RecallRecord(
        uid=uid,
        query=query,
        time=time,
        profile=profile,
        principal=principal,
        hits=tuple(RecallHit(hit[0], hit[1], hit[2], hit[3] != 0, hit[4]) for hit in hits),
    )


def append_events(session: Session, space: SpaceInfo, new: Sequence[EventRecord]) -> int:
    """Appends to the learning log as it is, giving sequence numbers; returns the last one.

    For what was logged elsewhere: links do not move until the log is replayed. Memories that do
    not exist are left out. Raises InputError for evidence that no event can hold.
    """
    turn = take_turn(session, space)
    for event in new:
        if event.type in LEARNING:
            check_evidence(event.items, event.outcome, event.signal)
    wanted = sorted({number for event in new for number, _ in event.items})
    here = {"tenant": turn.tenant, "space": turn.space}
    found = session.all(WHOLES, numbers=session.pack(wanted), **here)
    known = {number for number, parent in found if not parent}
    return add_events(session, turn, [_among(event, known) for event in new])


def _among(event: EventRecord, known: Collection[int]) -> EventRecord:
    """The event without the memories that are not known; its cue may be gone."""
    return replace(
        event,
        items=tuple(item for item in event.items if item[0] in known or item[0] == event.cue),
        via=tuple(
            part
            for part in event.via
            if part[0] in known and (part[1] in known or part[1] == event.cue)
        ),
        principal=event.principal or None,
    )


def check_evidence(
    items: Sequence[tuple[int, float]], outcome: float | None, signal: str | None
) -> None:
    """Raises InputError unless an event can say this."""
    if signal not in SIGNALS:
        raise InputError(f"unknown signal {signal!r}; it is one of {', '.join(SIGNALS)}")
    if outcome is not None and not -1.0 <= outcome <= 1.0:
        raise InputError(f"an outcome lies in [-1, 1], not {outcome}")
    for number, credit in items:
        if not -1.0 <= credit <= 1.0:
            raise InputError(f"the credit of memory {number} lies in [-1, 1], not {credit}")
    if len({number for number, _ in items}) < len(items):
        raise InputError("a memory has two credits in one event")

"""Learning from use: what an agent says of a recall becomes evidence in the log of its space.

Only outcomes teach. A recall teaches nothing, unless a space has chosen a rule by which it does;
saying which of its memories were used does: they are linked with each other and with the question,
which is kept as a cue. See docs/explanation/how-learning-works.md.
"""

from __future__ import annotations

import re
import time as clock
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime

from cofire import views
from cofire.dynamics.plasticity import Rule, current
from cofire.encoding.cues import cue_item
from cofire.encoding.text import fold
from cofire.errors import InputError, NotFoundError
from cofire.retrieval.opening import learned_neighbours, scope
from cofire.store.cues import NewCue
from cofire.store.learning import Learned as Stored
from cofire.store.learning import NewEvent
from cofire.store.records import HYDRATION, RecallHit, RecallRecord, SpaceInfo, text_hash
from cofire.types import (
    HEADINGS,
    Evidence,
    Hydration,
    Learned,
    Proposal,
    Recall,
    Strength,
    from_micros,
    to_micros,
)
from cofire.workings import Workings

PATIENCE = 2.0
"""Seconds that feedback waits for another process to write the recall it speaks of."""
RECENT_MS = 60_000
"""Milliseconds since a recall was made, by whichever clock, within which it is waited for."""
POLL = 0.02
AWAKENED = 15
"""Links of a memory that came up by chance and was used, which get a signal: as many as may lead to
it by the default rule (K)."""
_CITED = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)

Here = tuple[SpaceInfo, RecallRecord]


def feedback(
    workings: Workings,
    recall: Recall | Hydration | str,
    *,
    credits: Mapping[str, float],
    outcome: float,
    by: str | None,
    signal: str,
    interaction: str | None,
    now: datetime,
) -> Learned:
    """See `Memory.feedback`. `credits` by memory id, in [-1, 1]."""
    uid = _recall_id(recall)
    records = _records(workings, uid)
    places = _places(workings, records)
    unknown = [id for id in credits if id not in places]
    if unknown:
        raise InputError(
            f"recall {uid} did not return {', '.join(unknown[:3])}; give feedback on what it "
            "returned, or use `strengthen` for two memories that belong together"
        )
    stored: list[tuple[SpaceInfo, Stored]] = []
    known: list[dict[int, str]] = []
    for index, (space, record) in enumerate(records):
        items = {
            number: credits[id]
            for id, (at, number) in places.items()
            if at == index and id in credits
        }
        if items:
            learned, cue = _learn(
                workings, space, record, items,
                outcome=outcome, by=by, signal=signal, interaction=interaction, now=now,
            )  # fmt: skip
            stored.append((space, learned))
            ids = {number: id for id, (at, number) in places.items() if at == index}
            if cue is not None and cue.merge_into is None and learned.cue is not None:
                ids[learned.cue] = views.public_id(cue.item.uid)
            known.append(ids)
            awake = _awakened(
                workings, space, record, items, outcome=outcome, by=by, now=to_micros(now)
            )
            stored += [(space, one) for one in awake]
            known += [{}] * len(awake)
    return _told(workings, stored, known)


def strengthen(workings: Workings, a: str, b: str, *, by: str | None, now: datetime) -> Learned:
    """See `Memory.strengthen`."""
    (space, one), (other_space, other) = workings.spaces.end(a), workings.spaces.end(b)
    if space.space_id != other_space.space_id:
        raise InputError(
            "the two memories are in different spaces; links and learning never cross spaces"
        )
    if one == other:
        raise InputError("a memory cannot be strengthened with itself")
    event = NewEvent(
        items=((one, 1.0), (other, 1.0)),
        signal="explicit",
        time=to_micros(now),
        type="strengthen",
        principal=by,
    )
    learned = workings.store.learn(
        space, event, workings.store.rule(space), trusted=by in workings.trusted, now=event.time
    )
    return _told(workings, [(space, learned)], [{one: a, other: b}])


def returned(workings: Workings, recall: Recall | str) -> tuple[str, ...]:
    """The ids of what a recall, or the one of this id, returned, in its order; what was deleted
    since leaves an empty text in its place. Raises NotFoundError, InputError."""
    if isinstance(recall, Recall):
        return recall.ids
    records = _records(workings, _recall_id(recall))
    ids = {place: id for id, place in _places(workings, records).items()}
    found = {
        hit.position: ids.get((index, hit.number), "")
        for index, (_, record) in enumerate(records)
        for hit in record.hits
    }
    return tuple(found.get(place, "") for place in range(max(found, default=-1) + 1))


def cited_ids(ids: Sequence[str], answer: str) -> tuple[str, ...]:
    """The memories that an answer cites of those that a recall returned, in the answer's order: as
    `[1]`, `[2, 3]` by place in the recall, or by id."""
    found: list[str] = []
    for match in _CITED.finditer(answer):
        for part in match.group(1).split(","):
            place = int(part)
            if 1 <= place <= len(ids):
                found.append(ids[place - 1])
    found += [match.group().lower() for match in _ID.finditer(answer)]
    known = {id for id in ids if id}
    return tuple(dict.fromkeys(id for id in found if id in known))


def _recall_id(recall: Recall | Hydration | str) -> uuid.UUID:
    given = recall.id if isinstance(recall, Recall | Hydration) else recall
    try:
        return uuid.UUID(str(given))
    except ValueError as exc:
        raise InputError(f"{given!r} is no recall's id; it is `Recall.id`") from exc


def _records(workings: Workings, uid: uuid.UUID) -> list[Here]:
    """The recall's records, one per space it found something in. One that another process made
    may not be written yet."""
    workings.log.flush()
    found = _stored_records(workings, uid)
    if not found and _recent(uid):
        # A forged id looks as recent as one may like: of the threads that serve many, few wait.
        with workings.opened.patient() as may_wait:
            deadline = clock.monotonic() + (PATIENCE if may_wait else 0.0)
            while not found and clock.monotonic() < deadline:
                clock.sleep(POLL)
                found = _stored_records(workings, uid)
    if not found:
        raise NotFoundError(
            f"there is no record of recall {uid}; feedback is possible for 30 days after a "
            "recall, by whoever sees the same spaces, while what it returned is remembered"
        )
    return found


def _stored_records(workings: Workings, uid: uuid.UUID) -> list[Here]:
    found = []
    for space in workings.spaces.all():
        record = workings.store.recall_record(space, uid.bytes)
        if record is not None:
            found.append((space, record))
    return found


def _recent(uid: uuid.UUID) -> bool:
    """Whether a recall of this id may still be on its way: the id says when it was made. Whoever
    asks for what never was shall not keep a thread waiting."""
    made = uid.int >> 80 if uid.version == 7 else 0
    return abs(clock.time() * 1000 - made) < RECENT_MS


def _places(workings: Workings, records: Sequence[Here]) -> dict[str, tuple[int, int]]:
    """By memory id: the record it is in and its number there; of several segments the best."""
    places: dict[str, tuple[int, int]] = {}
    for index, (space, record) in enumerate(records):
        numbers = [hit.number for hit in record.hits]
        uids = workings.recaller.wholes(space, numbers)
        for number in numbers:
            if number in uids:
                places.setdefault(views.public_id(uids[number]), (index, number))
    return places


def _learn(
    workings: Workings,
    space: SpaceInfo,
    record: RecallRecord,
    items: Mapping[int, float],
    *,
    outcome: float,
    by: str | None,
    signal: str,
    interaction: str | None,
    now: datetime,
) -> tuple[Stored, NewCue | None]:
    time = to_micros(now)
    event = NewEvent(
        items=tuple(items.items()),
        signal=signal,
        time=time,
        outcome=outcome,
        principal=by,
        recall=record.uid,
        question=_question(record),
        via={hit.number: hit.via for hit in record.hits if hit.via and hit.number in items},
    )
    rule = workings.store.rule(space)
    trusted = by in workings.trusted
    with workings.embedding.shared():  # a cue's vector is of the model that the space has
        asked = rule.most_cues and _about_the_question(record, items)
        cue = _cue(workings, space, record.query, now) if asked else None
        learned = workings.store.learn(space, event, rule, trusted=trusted, cue=cue, now=time)
    used = frozenset(number for number, credit in items.items() if credit > 0.0)
    if interaction is not None and used and outcome > 0.0:
        earlier = workings.interactions.together(space, interaction, by or "", time, used)
        if earlier:
            together = NewEvent(
                items=tuple((number, 1.0) for number in sorted(used | earlier)),
                signal="background",
                time=time,
                outcome=outcome,
                principal=by,
                recall=record.uid,
            )
            workings.store.learn(space, together, rule, trusted=trusted, now=time)
    return learned, cue


def _question(record: RecallRecord) -> int:
    """What evidence is about: the same about the same question counts once. An opening context
    without a cue is a question of its own."""
    return text_hash(fold(record.query) if record.query.strip() else record.uid.hex())


def _section(hit: RecallHit) -> str:
    """Of a hit of an opening context: the section it was in."""
    return _SECTIONS[int(hit.score)]


_SECTIONS = tuple(HEADINGS)


def _about_the_question(record: RecallRecord, items: Mapping[int, float]) -> bool:
    """Whether feedback says what answers the question. Of an opening context only what was brought
    by its cue does; the rest would have been there whatever the cue."""
    if record.profile != HYDRATION:
        return True
    return all(_section(hit) == "relevant" for hit in record.hits if items.get(hit.number, 0.0) > 0)


def _awakened(
    workings: Workings,
    space: SpaceInfo,
    record: RecallRecord,
    items: Mapping[int, float],
    *,
    outcome: float,
    by: str | None,
    now: int,
) -> list[Stored]:
    """What follows where a memory that came up by chance was used: its strongest `AWAKENED` learned
    links each get a background signal (Atamaia, section 6.4: "all Hebbian links"), so that old
    memories that turn out to matter are kept from fading. Caps and trust are those of feedback."""
    used = [
        hit.number
        for hit in record.hits
        if items.get(hit.number, 0.0) > 0.0 and _section(hit) == "involuntary"
    ] if record.profile == HYDRATION and outcome > 0.0 else []  # fmt: skip
    if not used:
        return []
    rule = workings.store.rule(space)
    within = scope(workings.recaller.graph(space), now, rule.half_life_days)
    pairs = {
        (min(number, other), max(number, other))
        for number in used
        for other in learned_neighbours(within, number, AWAKENED)
    }
    return [
        workings.store.learn(
            space,
            NewEvent(
                items=((one, 1.0), (other, 1.0)),
                signal="background",
                time=now,
                outcome=outcome,
                principal=by,
                recall=record.uid,
                question=_question(record),
            ),
            rule, trusted=by in workings.trusted, now=now,
        )
        for one, other in sorted(pairs)
    ]  # fmt: skip


def _cue(workings: Workings, space: SpaceInfo, query: str, now: datetime) -> NewCue | None:
    """The question as a cue; None where it has no vector to be found again by."""
    asked = workings.recaller.asked(workings.spaces.all(), query, now)
    if asked.vector is None:
        return None
    known = workings.recaller.cue_like(space, asked)
    tokens = workings.embedder.count_tokens(query)
    return NewCue(item=cue_item(query, asked, tokens, now), merge_into=known)


def _told(
    workings: Workings,
    stored: Sequence[tuple[SpaceInfo, Stored]],
    known: Sequence[Mapping[int, str]],
) -> Learned:
    """What the caller is told; `known` are ids that need not be asked for, by number."""
    links = []
    counted = False
    for (space, learned), here in zip(stored, known, strict=True):
        counted = counted or learned.seq is not None
        ends = {end for link in learned.changed for end in link[:2]}
        ids = {**here, **_ids(workings, space, sorted(ends - here.keys()))}
        links += [
            Strength(a=ids[one], b=ids[other], strength=strength)
            for one, other, strength in learned.changed
            if one in ids and other in ids
        ]
    return Learned(
        counted=counted,
        links=tuple(links),
        evicted=sum(len(learned.evicted) for _, learned in stored),
    )


def _ids(workings: Workings, space: SpaceInfo, numbers: Sequence[int]) -> dict[int, str]:
    if not numbers:
        return {}
    rows = workings.store.fetch(space, sorted(set(numbers)))
    return {row.number: views.public_id(row.uid) for row in rows}


def strengths(workings: Workings, *, as_of: datetime | None, now: datetime) -> tuple[Strength, ...]:
    """See `Memory.strengths`."""
    until = None if as_of is None else to_micros(as_of)
    at = to_micros(now) if until is None else until
    found = []
    workings.log.flush()  # a rule may learn from recalls that are not written yet
    for space in workings.spaces.all():
        rule = workings.store.rule(space)
        states = workings.store.fold(space, up_to_time=until)
        ids = _ids(workings, space, [end for pair in states for end in pair])
        found += [
            Strength(
                a=ids[one],
                b=ids[other],
                strength=current(rule, state, at),
                coactivations=state.coactivations,
                rejections=state.rejections,
            )
            for (one, other), state in states.items()
            if one in ids and other in ids
        ]
    return tuple(sorted(found, key=lambda link: (-link.strength, link.a, link.b)))


def why(workings: Workings, a: str, b: str) -> tuple[Evidence, ...]:
    """See `Memory.why`."""
    (space, one), (other_space, other) = workings.spaces.end(a), workings.spaces.end(b)
    if space.space_id != other_space.space_id:
        return ()
    workings.log.flush()
    found = []
    for movement in workings.store.why(space, one, other):
        event = movement.event
        record = None
        if event.recall is not None:
            record = workings.store.recall_record(space, event.recall)
        found.append(
            Evidence(
                sequence=event.seq,
                time=from_micros(event.time),
                type=event.type,
                signal=event.signal,
                by=event.principal,
                outcome=event.outcome,
                recall=None if event.recall is None else str(uuid.UUID(bytes=event.recall)),
                question=None if record is None else record.query,
                movement=movement.movement,
                strength=movement.strength,
            )
        )
    return tuple(found)


def proposals(workings: Workings, least: int) -> tuple[Proposal, ...]:
    """See `Memory.proposals`."""
    found = []
    for space in workings.spaces.all():
        rows = workings.store.proposals(space, least)
        ids = _ids(workings, space, [end for row in rows for end in row[:2]])
        found += [
            Proposal(a=ids[row.source], b=ids[row.target], rejections=row.rejections)
            for row in rows
            if row.source in ids and row.target in ids
        ]
    return tuple(sorted(found, key=lambda one: (-one.rejections, one.a, one.b)))


def replay(workings: Workings) -> int:
    """See `Memory.replay`."""
    workings.log.flush()
    return sum(workings.store.replay(space) for space in workings.spaces.all())


def learn_by(workings: Workings, rule: Rule, project: str | None) -> int:
    """See `Memory.learn_by`."""
    workings.log.flush()  # what was recalled until now is the former rule's
    spaces = workings.spaces
    return spaces.lasting(lambda: workings.store.replay(spaces.target(project), rule))

"""Learning from use: one piece of evidence becomes an event, and moves the links it speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import bindparam, select, update

from cofire.dynamics.plasticity import Rule
from cofire.errors import InputError
from cofire.store.cues import NewCue, evict_cues, keep_cue
from cofire.store.events import (
    COUNT_EVIDENCE,
    LEARNING,
    add_events,
    asked_before,
    ends_of_cues,
)
from cofire.store.folding import Fold, Move, Pair
from cofire.store.forgetting import prune_tombstones
from cofire.store.recording import check_evidence
from cofire.store.records import UNTRUSTED_SIGNAL, EventRecord, SpaceInfo
from cofire.store.redaction import CUES_AMONG
from cofire.store.rules import require_rule
from cofire.store.schema import items, spaces
from cofire.store.session import Query, Session
from cofire.store.settling import eviction_event
from cofire.store.strengths import ASSOCIATION, CUE_KIND, places, write_strengths
from cofire.store.writing import Turn, take_turn
from cofire.types import Kind

PRUNE_EVERY = 256
"""Writes between two looks, by a space that evicts links, whether it keeps too many tombstones."""

KINDS_AMONG = Query(
    lambda flavour: select(
        items.c.number, items.c.parent, items.c.kind, items.c.signals.op("&")(UNTRUSTED_SIGNAL)
    ).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.number.in_(flavour.members("numbers")),
    )
)
VOUCHING = frozenset({"used", "explicit"})
"""Signals by which somebody who is trusted says that what is not trusted was of use."""
UNTAKE_TURN = Query(
    lambda _: (
        update(spaces)
        .where(spaces.c.tenant == bindparam("in_tenant"), spaces.c.id == bindparam("in_space"))
        .values(revision=bindparam("former_revision"), last_number=bindparam("former_number"))
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """Evidence about memories that were together in one recall, or that somebody named together.

    items: distinct (number, credit in [-1, 1]): used above 0, rejected below. type: "feedback" or
    "strengthen". signal: one of `plasticity.SIGNALS`. outcome in [-1, 1]; None: 1. question: the
    hash (`text_hash`) of what was asked; the same evidence by the same principal counts once for
    it; None: it counts at every call. via: for an item that only one link brought, the number of
    the memory or cue at its other end. time: µs.
    """

    items: tuple[tuple[int, float], ...]
    signal: str
    time: int
    type: str = "feedback"
    outcome: float | None = None
    principal: str | None = None
    recall: bytes | None = None
    question: int | None = None
    via: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What `learn` did. `seq` is None if it had all been counted before; then nothing changed.

    changed: (source, target, strength) of the links that moved. evicted: the pairs whose link
    went because an item had too many. cue: the number of the question's cue, if it has one.
    evicted_cues: those that went because there were too many.
    """

    seq: int | None
    changed: tuple[tuple[int, int, float], ...]
    evicted: tuple[Pair, ...]
    cue: int | None
    revision: int
    evicted_cues: tuple[int, ...] = ()


def learn(
    session: Session,
    space: SpaceInfo,
    event: NewEvent,
    rule: Rule,
    *,
    trusted: bool = False,
    cue: NewCue | None = None,
    now: int,
) -> Learned:
    """Appends a piece of evidence to the log and moves the links that it speaks of.

    Segments stand for their wholes; memories that do not exist any more, and cues among the
    items, are passed over. What was counted before is not counted again, and if that is all, no
    event is appended and the revision stays. A new cue is stored only if a memory answered it.
    An item that gets more links than the rule's K loses the weakest; beyond `most_cues` the cue
    that was used longest ago goes; both are events of their own. What is not trusted earns nothing
    by having been cited, opened, retrieved or near: only if a `trusted` principal says that it was
    used (`VOUCHING`). The event does not name what earned nothing, so that the log stays all there
    is to know. `now` (µs) is when new rows are
    made.

    Raises InputError for impossible evidence, NotFoundError if the space is gone, and
    ConfigurationError if it learns by another rule.
    """
    _require_evidence(event, cue)
    turn = take_turn(session, space, 0 if cue is None else 1)
    require_rule(session, space, rule)
    here = {"tenant": turn.tenant, "space": turn.space}
    record = _as_record(session, turn, event, cue, rule, trusted=trusted)
    fold = Fold(rule)
    _count_what_was(session, here, fold, record)
    moves = fold.fresh(record)
    new_cue = cue is not None and record.cue == turn.first
    if record.cue is not None and not _answered(moves, record.cue, new=new_cue):
        record = replace(record, cue=None, via=_vias(record, None))
        moves = [move for move in moves if not move.cue]
    if not moves:
        untake(session, turn)
        kept = None if new_cue else record.cue
        return Learned(seq=None, changed=(), evicted=(), cue=kept, revision=turn.revision - 1)
    if cue is not None:
        keep_cue(session, turn, cue.item, record, now)
    changed, seq = _move(session, turn, fold, record, moves, now=now)
    gone = evict_cues(session, turn, rule, record) if new_cue and record.cue is not None else ()
    if fold.evictions and turn.revision % PRUNE_EVERY == 0:
        prune_tombstones(session, turn)
    return Learned(
        seq=seq,
        changed=tuple(changed),
        evicted=tuple(eviction.pair for eviction in fold.evictions),
        cue=record.cue,
        revision=turn.revision,
        evicted_cues=gone,
    )


def _require_evidence(event: NewEvent, cue: NewCue | None) -> None:
    if event.type not in LEARNING:
        raise InputError(f"an event to learn from is one of {sorted(LEARNING)}, not {event.type!r}")
    check_evidence(event.items, event.outcome, event.signal)
    if cue is not None and (cue.item.kind != Kind.CUE.value or cue.item.segments):
        raise InputError(f"a question is kept as one memory of kind {Kind.CUE.value!r}")


def _as_record(
    session: Session,
    turn: Turn,
    event: NewEvent,
    cue: NewCue | None,
    rule: Rule,
    *,
    trusted: bool,
) -> EventRecord:
    """The event of the memories that there are; with the number that the cue has or would get."""
    merge_into = None if cue is None else cue.merge_into
    wanted = {number for number, _ in event.items} | set(event.via.values())
    if merge_into is not None:
        wanted.add(merge_into)
    rows = session.all(
        KINDS_AMONG,
        tenant=turn.tenant,
        space=turn.space,
        numbers=session.pack(sorted(wanted)),
    )
    wholes = {number: parent or number for number, parent, kind, _ in rows if kind != CUE_KIND}
    cues = {number for number, _, kind, _ in rows if kind == CUE_KIND}
    outside = {number for number, _, _, marked in rows if marked}
    if trusted and event.signal in VOUCHING:
        outside = set()
    rewards = event.outcome is None or event.outcome > 0.0
    credit: dict[int, float] = {}
    for number, own in event.items:
        whole = wholes.get(number)
        if number in outside and own > 0.0 and rewards:
            continue
        if whole is not None and abs(own) > abs(credit.get(whole, 0.0)):
            credit[whole] = own
    via = {
        wholes[number]: wholes.get(origin, origin)
        for number, origin in event.via.items()
        if number in wholes
    }
    own_cue = None
    if cue is not None and rule.most_cues > 0:
        own_cue = merge_into if merge_into in cues else turn.first
    record = EventRecord(
        recall=event.recall,
        type=event.type,
        items=tuple(sorted((whole, float(own)) for whole, own in credit.items())),
        outcome=None if event.outcome is None else float(event.outcome),
        signal=event.signal,
        principal=event.principal or None,
        time=event.time,
        question=event.question,
        cue=own_cue,
        trusted=trusted,
        via=tuple(sorted(via.items())),
    )
    return replace(record, via=_vias(record, own_cue))


def _vias(record: EventRecord, cue: int | None) -> tuple[tuple[int, int], ...]:
    """Of the event's via what matters: ways from another of its items, or from its cue."""
    known = {number for number, _ in record.items}
    return tuple(
        part for part in record.via if part[0] in known and (part[1] in known or part[1] == cue)
    )


def _count_what_was(
    session: Session, here: dict[str, int], fold: Fold, record: EventRecord
) -> None:
    """Lets the fold know what this principal said about this question before."""
    if record.question is None:
        return
    former = asked_before(session, here, record.question, record.principal)
    cues = {event.cue for event in former if event.cue is not None} - {record.cue}
    if cues:
        living = session.all(CUES_AMONG, numbers=session.pack(sorted(cues)), **here)
        gone = cues - {row[0] for row in living}
        former += ends_of_cues(session, here, gone) if gone else []
    for event in sorted(former, key=lambda event: event.seq):
        if event.type in LEARNING:
            fold.fresh(event)
        elif event.cue is not None:
            fold.dead.add(event.cue)


def _answered(moves: Sequence[Move], cue: int, *, new: bool) -> bool:
    """Whether the event says anything of the cue; of a new one, that a memory answered it."""
    return any(move.pair[0] == cue and (move.credit > 0.0 or not new) for move in moves if move.cue)


def untake(session: Session, turn: Turn) -> None:
    """Gives the turn back: nothing was written."""
    session.run(
        UNTAKE_TURN,
        in_tenant=turn.tenant,
        in_space=turn.space,
        former_revision=turn.revision - 1,
        former_number=turn.first - 1,
    )


def _move(
    session: Session,
    turn: Turn,
    fold: Fold,
    record: EventRecord,
    moves: Sequence[Move],
    *,
    now: int,
) -> tuple[list[tuple[int, int, float]], int]:
    """Moves the links and appends the event with the evictions it caused; returns what was
    written and the event's sequence number."""
    here = {"tenant": turn.tenant, "space": turn.space}
    cues = () if record.cue is None else (record.cue,)
    found = places(session, here, {*(number for number, _ in record.items), *cues})
    for pair, held in found.held.items():
        fold.start(pair, held.state, cue=held.type == ASSOCIATION)
    fold.blocked = frozenset(
        move.pair
        for move in moves
        if move.pair not in found.held and found.free(move.pair, cue=move.cue) is None
    )
    if fold.rule.kind == "hela_mem":
        fold.tick = session.all(COUNT_EVIDENCE, **here)[0][0]
    fold.move(record, moves)
    touched = {move.pair for move in moves} | {gone.pair for gone in fold.evictions}
    wanted = {pair: fold.states.get(pair) for pair in sorted(touched)}
    changed = write_strengths(session, turn, wanted, found, cues=cues, created=now)
    told = [eviction_event(gone) for gone in fold.evictions]
    last = add_events(session, turn, [record, *told])
    return changed, last - len(told)

"""Bringing stored strengths and the log together: whole spaces, and the links a change concerns.

A link's strength depends on its own events alone, but for one thing: an item that ever had more
than K learned links lost some, and which ones depended on the strengths of the others. So the links
to look at after a change are those concerned, those of every such item among their ends, and so on
through the ends of those.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from cofire.dynamics.plasticity import LinkState, Rule
from cofire.store.events import (
    ALL_EVENTS,
    ALL_EVICTED,
    ALL_TO_FOLD,
    LEARNING,
    REPEATED,
    add_events,
    ends_of_cues,
    events_about,
    events_by_seq,
    events_from_rows,
    read_together,
    remove_events,
    seqs_about,
)
from cofire.store.folding import (
    Eviction,
    Fold,
    Group,
    Movement,
    Pair,
    moves_of,
    ordered,
    taken_link,
)
from cofire.store.records import EventRecord
from cofire.store.rows import unsigned
from cofire.store.session import Row, Session
from cofire.store.strengths import (
    Places,
    blocked_pairs,
    learned_links,
    places,
    write_strengths,
)
from cofire.store.writing import Turn

PORTION = 1_000
"""Events read at a time."""
WIDE = 3_000
"""Events from which on the whole log is folded instead of a part found link by link."""
TOLERANCE = 1e-9
"""By how much strengths may differ between machines: 2 ** x is the C library's."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses Python's search for cycles: a fold makes a million objects and not one cycle, and
    looking through them over and over takes as long as the fold."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@dataclass(slots=True)
class Folded:
    """A fold that is done, and what the log said of evictions of the pairs followed."""

    fold: Fold
    pairs: frozenset[Pair] | None  # None: everything, and what the log said was not read
    evicted: list[EventRecord] = field(default_factory=list)
    cues: set[int] = field(default_factory=set)
    idle: list[EventRecord] = field(default_factory=list)


@collector_paused()
def fold_space(
    session: Session,
    here: dict[str, int],
    rule: Rule,
    *,
    up_to_time: int | None = None,
    up_to_seq: int | None = None,
    watched: Pair | None = None,
    looked_at: Collection[int] = (),
    reporting: bool = True,
) -> Folded:
    """Folds a space's whole log, a portion of events at a time.

    `looked_at` are events of which to tell whether they bore no evidence (`idle`).
    """
    blocked = blocked_pairs(session, here)
    groups = frozenset(_group(row) for row in session.all(REPEATED, **here))
    fold = Fold(rule, blocked=blocked, repeated=groups, watched=watched, reporting=reporting)
    folded = Folded(fold, None)
    wanted = ALL_TO_FOLD if watched is None else ALL_EVENTS
    for rows in session.portions(wanted, PORTION, **here):
        for event in events_from_rows(rows):
            if up_to_seq is not None and event.seq > up_to_seq:
                continue
            if up_to_time is None or event.time <= up_to_time:
                _take(folded, event, looked_at)
    return folded


def _group(row: Row) -> Group:
    return (unsigned(row[0]), row[1] or "", row[2] or "")


def _take(folded: Folded, event: EventRecord, looked_at: Collection[int]) -> None:
    fresh = folded.fold.take(event)
    if event.cue is not None:
        folded.cues.add(event.cue)
    if event.type == "evict" and folded.pairs is not None:
        folded.evicted.append(event)
    if not fresh and event.seq in looked_at and event.type in LEARNING:
        folded.idle.append(event)


def fold_pairs(
    session: Session,
    here: dict[str, int],
    rule: Rule,
    pairs: Iterable[Pair],
    *,
    watched: Pair | None = None,
    looked_at: Collection[int] = (),
) -> Folded:
    """Folds the events of some pairs, and of what the fate of their links hangs on."""
    if rule.kind == "hela_mem":  # every event of the space moves every link
        return fold_space(session, here, rule, watched=watched, looked_at=looked_at)
    scope = _scope(session, here, rule, frozenset(pairs))
    if scope is None:
        return fold_space(session, here, rule, watched=watched, looked_at=looked_at)
    found = places(session, here, {end for pair in scope.pairs for end in pair})
    cues = {event.cue for event in scope.events.values() if event.cue is not None}
    blocked = {pair for pair in scope.pairs if found.free(pair, cue=pair[0] in cues) is None}
    fold = Fold(rule, blocked=blocked - found.held.keys(), only=scope.pairs, watched=watched)
    folded = Folded(fold, frozenset(scope.pairs))
    for seq in sorted(scope.events):
        _take(folded, scope.events[seq], looked_at)
    return folded


@dataclass(slots=True)
class _Scope:
    """Pairs to follow and the events to follow them through."""

    pairs: set[Pair]
    events: dict[int, EventRecord]


def _scope(
    session: Session, here: dict[str, int], rule: Rule, pairs: Iterable[Pair]
) -> _Scope | None:
    """What to follow to be exact about these pairs; None if that is so much that reading the whole
    log once is cheaper."""
    scope = _Scope(set(pairs), {})
    known: set[int] = set()
    ahead = {end for pair in scope.pairs for end in pair}
    while ahead:
        seqs = seqs_about(session, here, ahead, WIDE + 1)
        if len(scope.events.keys() | set(seqs)) > WIDE:
            return None
        scope.events.update(events_by_seq(session, here, seqs))
        known |= ahead
        crowded = _crowded(scope, rule, ahead)
        scope.pairs.update(*crowded)
        ahead = {end for own in crowded for pair in own for end in pair} - known
    cues = {event.cue for event in scope.events.values() if event.cue is not None} - known
    if cues:  # the end of a cue makes its evidence count anew
        scope.events.update((end.seq, end) for end in ends_of_cues(session, here, cues))
    return scope


def _crowded(scope: _Scope, rule: Rule, ends: Collection[int]) -> list[set[Pair]]:
    """The pairs of each of the ends that may have, or may have had, more links than it may."""
    links: dict[int, set[Pair]] = {end: set() for end in ends}
    crowded: set[int] = set()
    for event in scope.events.values():
        pairs = [pair for pair, _, _ in moves_of(rule, event)]
        if event.type == "evict":
            taken = taken_link(event)
            pairs = [] if taken is None else [taken]
            crowded.update(*pairs)
        for pair in pairs:
            for end in pair:
                if end in links:
                    links[end].add(pair)
    most = rule.links_per_item
    if most is None:
        return []
    return [own for end, own in links.items() if len(own) > most or end in crowded]


def settle(
    session: Session,
    turn: Turn,
    rule: Rule,
    pairs: Iterable[Pair],
    *,
    rewritten: Collection[int] = (),
) -> None:
    """Makes the strengths of these pairs, and of all that hangs on them, what the log says.

    Of the events `rewritten`, those that bear no evidence any more are deleted.
    """
    pairs = frozenset(pairs)
    if not pairs and not rewritten and rule.kind != "hela_mem":
        return
    here = {"tenant": turn.tenant, "space": turn.space}
    folded = fold_pairs(session, here, rule, pairs, looked_at=rewritten)
    if folded.idle:
        remove_events(session, turn, folded.idle)
        if rule.kind == "hela_mem":  # their ticks are undone, too
            folded = fold_pairs(session, here, rule, pairs)
    write_fold(session, turn, folded)


@collector_paused()
def write_fold(session: Session, turn: Turn, folded: Folded, tolerance: float = 0.0) -> int:
    """Writes what was folded where it differs from what is stored; returns how many differed."""
    here = {"tenant": turn.tenant, "space": turn.space}
    states = folded.fold.states
    if folded.pairs is None:
        held = learned_links(session, here)
        found = Places(held, set())
        wanted = {pair: states.get(pair) for pair in held.keys() | states.keys()}
    else:
        found = places(session, here, {end for pair in folded.pairs for end in pair})
        wanted = {pair: states.get(pair) for pair in folded.pairs}
    different = {
        pair: state
        for pair, state in wanted.items()
        if differs(found.held[pair].state if pair in found.held else None, state, tolerance)
    }
    if folded.pairs is None and different:
        ends = {end for pair in different for end in pair}
        found = Places(found.held, places(session, here, ends).taken)
    write_strengths(session, turn, different, found, cues=folded.cues)
    _report_evictions(session, turn, folded)
    return len(different)


def differs(one: LinkState | None, other: LinkState | None, tolerance: float = TOLERANCE) -> bool:
    """Whether two states of a link differ by more than rounding."""
    if one is None or other is None or tolerance == 0.0:
        return one != other
    return (
        abs(one.strength - other.strength) > tolerance
        or one._replace(strength=0.0, moved=()) != other._replace(strength=0.0, moved=())
        or [name for name, _ in one.moved] != [name for name, _ in other.moved]
        or any(
            abs(mine[1] - its[1]) > tolerance
            for mine, its in zip(one.moved, other.moved, strict=True)
        )
    )


def _report_evictions(session: Session, turn: Turn, folded: Folded) -> None:
    """Makes the log tell of the evictions that there were, and of no others."""
    happened = Counter([(gone.pair, gone.event.time) for gone in folded.fold.evictions])
    untrue = []
    for seq, pair, time in _told(session, turn, folded):
        if happened[pair, time] > 0:
            happened[pair, time] -= 1
        else:
            untrue.append(seq)
    here = {"tenant": turn.tenant, "space": turn.space}
    remove_events(session, turn, events_by_seq(session, here, untrue).values())
    new = []
    for gone in reversed(folded.fold.evictions):
        if happened[gone.pair, gone.event.time] > 0:
            happened[gone.pair, gone.event.time] -= 1
            new.append(eviction_event(gone))
    if new:
        named = {number for event in new for number, _ in event.items}
        add_events(session, turn, new[::-1], named - folded.fold.dead)


def _told(session: Session, turn: Turn, folded: Folded) -> Iterator[tuple[int, Pair, int]]:
    """What the log says of evictions, oldest first: (sequence number, pair, time)."""
    if folded.pairs is None:
        here = {"tenant": turn.tenant, "space": turn.space}
        for rows in session.portions(ALL_EVICTED, PORTION, **here):
            ends = read_together([row[1] for row in rows])
            for (seq, _, time, cue), ((one, _), (other, _), *_) in zip(rows, ends, strict=True):
                yield seq, ordered(one, other, cue), time
        return
    for event in folded.evicted:
        pair = taken_link(event)
        if pair in folded.pairs:
            yield event.seq, pair, event.time


def eviction_event(gone: Eviction) -> EventRecord:
    """What the log says of an eviction."""
    return EventRecord(
        recall=gone.event.recall,
        type="evict",
        items=tuple((number, 0.0) for number in (*gone.pair, *gone.causes)),
        outcome=None,
        signal=None,
        principal=gone.event.principal,
        time=gone.event.time,
        cue=gone.pair[0] if gone.cue else None,
    )


def differences(
    session: Session, here: dict[str, int], rule: Rule
) -> Iterator[tuple[Pair, LinkState | None, LinkState | None]]:
    """Every pair whose stored state is not what the log says: (pair, stored, folded)."""
    states = fold_space(session, here, rule, reporting=False).fold.states
    held = learned_links(session, here)
    for pair in sorted(held.keys() | states.keys()):
        stored = held[pair].state if pair in held else None
        if differs(stored, states.get(pair)):
            yield pair, stored, states.get(pair)


def history_of(
    session: Session, here: dict[str, int], rule: Rule, pair: Pair
) -> Sequence[Movement]:
    """The events that moved a pair, oldest first. Evictions are taken from what the log tells of
    them: to derive them anew would mean to follow every link of both ends."""
    if rule.kind == "hela_mem":
        return fold_space(session, here, rule, watched=pair).fold.history
    found = events_about(session, here, pair)
    cause = {
        event.seq: max(
            (
                other.seq
                for other in found.values()
                if other.seq < event.seq and other.time == event.time and other.type in LEARNING
            ),
            default=event.seq,
        )
        for event in found.values()
        if event.type == "evict" and taken_link(event) == pair
    }
    fold = Fold(rule, only={pair}, watched=pair, told=True)
    for seq in sorted(found, key=lambda seq: (cause.get(seq, seq), seq)):
        fold.take(found[seq])
    return fold.history

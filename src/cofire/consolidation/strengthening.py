"""The steps that let use count once more: what was used soon after each other, what was used today,
and what is so alike that it may belong together. They only add events to the learning log, so what
they did can be replayed, explained and undone like any feedback.

Only outcomes teach here. Where a rule counts mere co-retrieval (the papers' do), that is learned
when a recall is recorded (`store.rehearsal`), and not once more at night.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from cofire.consolidation.night import HOUR_US, Night, Work
from cofire.dynamics.arrays import F32, I64, U64, Bool, Rows
from cofire.dynamics.plasticity import SECOND_US, Rule, coactivation_window
from cofire.encoding.signals import Signal
from cofire.graph.active import ActiveGraph
from cofire.store.folding import Pair, moves_of
from cofire.store.learning import NewEvent
from cofire.store.planning import Applied, Plan
from cofire.store.records import KIND_CODES, EventRecord, StepRow
from cofire.types import VISIBLE_KINDS

OUTCOMES = frozenset({"used", "cited", "opened"})
"""Signals of what became of a recall. The others come from rules, or name no recall."""
CONFIRMING = OUTCOMES | {"explicit"}
LOOK_BACK = 500
"""Events before the new ones in which the last interactions are sought."""
PORTION = 200
"""Events appended in one transaction: others can write in between."""
LIKENESSES = 3
"""Candidate links of a new memory, at most."""
BLOCK = 256
"""New memories compared with all others at a time."""
MOST_COMPARED = 4_096
"""New memories compared in one run: the rest waits for the next."""

Working = Generator[Work, Applied, None]


@dataclass(frozen=True, slots=True)
class Use:
    """What one event says was used, with what outcome in (0, 1]."""

    event: EventRecord
    used: frozenset[int]
    outcome: float


# -- What was used soon after each other ---------------------------------------------------------


def window(night: Night, row: StepRow) -> Working:
    """Looks back on the last interactions (Atamaia's signal 2: the last 10): memories that were
    used in different recalls of one stretch of interaction, and that no event has joined yet, get
    one background signal together.

    A stretch is what one principal did within `plasticity.coactivation_window`, which follows the
    pace of the turns and uses until then.
    """
    fresh = night.store.events_after(night.space, row.seq)
    if not _worth_noting(fresh, OUTCOMES):
        return
    earlier = night.store.events_after(night.space, max(0, row.seq - LOOK_BACK), limit=LOOK_BACK)
    uses = [*_uses(event for event in earlier if event.seq <= row.seq), *_uses(fresh)]
    looked_back = Stretches(
        turns=_turns(night.graph()),
        most=night.rule.interactions,
        rule=night.store.rule(night.space),
    )
    found = looked_back.soon_after(uses, row.seq)
    events = [_background(pair, use, night.now) for pair, use in _unjoined(night, found).items()]
    for start in range(0, len(events), PORTION):
        yield Work(plan=Plan(events=tuple(events[start : start + PORTION])), row=row, last=False)
    yield Work(plan=Plan(), row=row._replace(seq=fresh[-1].seq))


def _worth_noting(fresh: Sequence[EventRecord], signals: Collection[str]) -> bool:
    """Whether there is evidence among the new events, or so many others that it is time to note
    that they were seen. Else nothing is written, so that a night without news changes nothing."""
    return len(fresh) > LOOK_BACK or any(event.signal in signals for event in fresh)


def _uses(events: Iterable[EventRecord]) -> list[Use]:
    """The events that tell of an outcome."""
    found = []
    for event in events:
        outcome = 1.0 if event.outcome is None else event.outcome
        told = event.type == "feedback" and event.signal in OUTCOMES and event.recall is not None
        used = frozenset(number for number, credit in event.items if credit > 0.0)
        if told and used and outcome > 0.0:
            found.append(Use(event, used, outcome))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretches:
    """Which uses belong to one stretch of interaction. turns: µs of every turn, rising. most: how
    many interactions are looked back on. rule: says how wide a window is."""

    turns: I64
    most: int
    rule: Rule

    def soon_after(self, uses: Sequence[Use], after: int) -> dict[Pair, Use]:
        """The pairs that uses within one stretch join, each with the use that went worse. At least
        one of the two came after sequence number `after`."""
        by_principal: dict[str | None, list[Use]] = defaultdict(list)
        for use in sorted(uses, key=lambda use: (use.event.time, use.event.seq)):
            by_principal[use.event.principal].append(use)
        found: dict[Pair, Use] = {}
        for own in by_principal.values():
            for place, later in enumerate(own):
                earlier = own[max(0, place - self.most + 1) : place]
                width = self._width([*(use.event.time for use in earlier), later.event.time])
                for former in earlier:
                    fresh = max(former.event.seq, later.event.seq) > after
                    near = later.event.time - former.event.time <= width
                    if fresh and near and former.event.recall != later.event.recall:
                        _join(found, former, later)
        return found

    def _width(self, times: Sequence[int]) -> int:
        """The window at the last of the uses at these times: the turns of the day before it, as
        many as are looked back on, tell the pace better than a few uses do."""
        now = times[-1]
        end = int(np.searchsorted(self.turns, now, side="right"))
        last = self.turns[max(0, end - self.most) : end]
        recent = last[last >= now - int(self.rule.window_most_seconds * SECOND_US)]
        return coactivation_window([*times, *recent.tolist()], self.rule)


def _join(found: dict[Pair, Use], former: Use, later: Use) -> None:
    weaker = later if later.outcome <= former.outcome else former
    for one, other in product(former.used, later.used):
        if one != other:
            found.setdefault((min(one, other), max(one, other)), weaker)


def _turns(graph: ActiveGraph) -> I64:
    """µs of the active memories that were said, rising."""
    times: I64 = np.sort(graph.column("time")[_said(graph)].astype(np.int64))
    return times


def _unjoined(night: Night, found: dict[Pair, Use]) -> dict[Pair, Use]:
    """Those pairs that no event in the log names together."""
    if not found:
        return found
    named = {number for pair in found for number in pair}
    joined: set[Pair] = set()
    for event in night.store.events_naming(night.space, named):
        numbers = sorted(number for number, _ in event.items if number in named)
        joined.update(
            (one, other) for place, one in enumerate(numbers) for other in numbers[place + 1 :]
        )
    return {pair: use for pair, use in sorted(found.items()) if pair not in joined}


def _background(pair: Pair, use: Use, now: int) -> NewEvent:
    return NewEvent(
        items=((pair[0], 1.0), (pair[1], 1.0)),
        signal="background",
        time=now,
        outcome=use.outcome,
        principal=use.event.principal,
        recall=use.event.recall,
    )


# -- What was used today -------------------------------------------------------------------------


def strengthen(night: Night, row: StepRow) -> Working:
    """Links that outcomes co-activated in the last 24 hours and that are below 0.95 get one
    background signal (Atamaia, section 4.4).

    Each outcome counts in one run only, and what rules did in the night before is no outcome: a
    link that is not used again gets no second signal.
    """
    fresh = night.store.events_after(night.space, row.seq)
    if not _worth_noting(fresh, CONFIRMING):
        return
    since = night.now - int(night.rule.strengthen_hours * HOUR_US)
    rule = night.store.rule(night.space)
    pairs = {
        move.pair
        for event in fresh
        if event.signal in CONFIRMING and since <= event.time <= night.now
        for move in moves_of(rule, event)
        if not move.cue and move.credit > 0.0
    }
    numbers = {number for pair in pairs for number in pair}
    held = night.store.strengths_of(night.space, numbers, now=night.now) if pairs else {}
    events = tuple(
        NewEvent(items=((one, 1.0), (other, 1.0)), signal="background", time=night.now)
        for one, other in sorted(pairs)
        if 0.0 < held.get((one, other), 0.0) < night.rule.strengthen_below
    )
    yield Work(plan=Plan(events=events), row=row._replace(seq=fresh[-1].seq))


# -- What is alike -------------------------------------------------------------------------------


def candidates(night: Night, row: StepRow) -> Working:
    """New memories that are very similar to others without a link to them become candidates
    (Atamaia, section 3.7): a weak signal in the log, which use confirms and pruning takes away.
    A pair is proposed once, when the later of the two is new (`StepRow.seq` is its number)."""
    graph = night.graph()
    if night.store.rule(night.space).alpha["similar"] == 0.0:
        return
    rows = _comparable(graph)
    number = graph.column("number")[rows].astype(np.int64)
    order = np.argsort(number)
    rows, number = rows[order], number[order]
    new = np.flatnonzero(number > row.seq)[:MOST_COMPARED]
    if not len(new):
        return
    vectors: F32 = graph.column("vector")[rows].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    linked = _linked(graph)
    for start in range(0, len(new), BLOCK):
        block = new[start : start + BLOCK]
        pairs = _alike(vectors, number, block, linked, night.rule.similar)
        events = tuple(
            NewEvent(items=((one, 1.0), (other, 1.0)), signal="similar", time=night.now)
            for one, other in pairs
        )
        row = row._replace(seq=int(number[block[-1]]))
        yield Work(plan=Plan(events=events), row=row, last=start + BLOCK >= len(new))


def _comparable(graph: ActiveGraph) -> Rows:
    """What was said, with a vector, and more than politeness; not what comes from outside, which
    could liken itself to anything."""
    polite = (graph.column("signals") & np.uint32(int(Signal.PLEASANTRY))) != 0
    comparable = _said(graph) & graph.column("has_vector") & ~polite
    if graph.has_untrusted:
        comparable &= ~graph.untrusted
    return np.flatnonzero(comparable)


def _said(graph: ActiveGraph) -> Bool:
    """Whole memories that were told, not derived: those are like what they rest on, and linked to
    it."""
    visible = np.array([KIND_CODES[kind.value] for kind in VISIBLE_KINDS], np.uint8)
    chosen: Bool = (
        (graph.column("parent") == 0) & np.isin(graph.column("kind"), visible) & ~graph.derived
    )
    return chosen if graph.live is None else chosen & graph.live


def _alike(
    vectors: F32, number: I64, block: Rows, linked: U64, least: float
) -> list[tuple[int, int]]:
    """(lower number, higher number) of each memory of the block and those before it that it is most
    similar to: at least `least`, no link between them, at most `LIKENESSES`. `vectors` (n, d) of
    unit length, `number` (n,) ascending."""
    found = []
    for own, similar in zip(block.tolist(), vectors[block] @ vectors.T, strict=True):
        near = np.flatnonzero(similar[:own] >= least)
        keys = _key(number[near], number[own])
        near = near[~np.isin(keys, linked)]
        best = near[np.lexsort((number[near], -similar[near]))][:LIKENESSES]
        found += [(int(number[other]), int(number[own])) for other in sorted(best.tolist())]
    return found


def _linked(graph: ActiveGraph) -> U64:
    """Keys of the pairs that any link joins, in whatever direction; turns that follow each other
    are among them."""
    source, target, *_ = graph.links.arrays(graph.numbers.array)
    return _key(np.minimum(source, target), np.maximum(source, target))


def _key(lower: I64, higher: I64 | np.int64) -> U64:
    key: U64 = lower.astype(np.uint64) << np.uint64(32) | np.uint64(higher)  # numbers < 2^31
    return key

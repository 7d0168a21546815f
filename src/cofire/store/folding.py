"""The fold: what a sequence of events makes of the strengths of links. No database here.

The same code folds an event that happens now, the events of a few links, and the whole log; so
what is stored is what the log says.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from cofire.dynamics.credit import cue_credits, pair_credits
from cofire.dynamics.plasticity import DAY_US, LinkState, Rule, apply, cue_rule, current
from cofire.store.events import LEARNING
from cofire.store.records import EventRecord

Pair = tuple[int, int]
"""What a strength belongs to: two memories, the lower number first; or a cue and a memory."""

Ranked = tuple[float, Pair]
"""A link that counts towards the rule's K: the least is the weakest, of equals the first pair."""

Group = tuple[int, str, str]
"""Question, principal and signal: among the events of a group a pair counts once for each sign."""


class Move(NamedTuple):
    """What an event says of one pair. `cue`: the pair's first number is a cue."""

    pair: Pair
    cue: bool
    credit: float


class Eviction(NamedTuple):
    """A link that went because the item `end` had too many, when the links `came` had come."""

    pair: Pair
    event: EventRecord
    cue: bool
    end: int
    came: Sequence[Pair]

    @property
    def causes(self) -> tuple[int, ...]:
        """The other ends of the links that had come to the item, ascending."""
        others = (pair for pair in self.came if self.end in pair and pair != self.pair)
        return tuple(sorted({number for pair in others for number in pair} - {self.end}))


class Movement(NamedTuple):
    """What an event did to a link: by how much its strength moved, and where to."""

    event: EventRecord
    movement: float
    strength: float


def group_of(event: EventRecord) -> Group | None:
    """The group within which the event's evidence counts once; None if every event counts."""
    if event.question is None:
        return None
    return (event.question, event.principal or "", event.signal or "")


def taken_link(event: EventRecord) -> Pair | None:
    """The link that an "evict" or "prune" event took away; None if it took a whole cue."""
    if len(event.items) < 2:
        return None
    return ordered(event.items[0][0], event.items[1][0], event.cue)


def ordered(one: int, other: int, cue: int | None) -> Pair:
    """Two ends as a pair."""
    return (one, other) if one < other or one == cue else (other, one)


def moves_of(rule: Rule, event: EventRecord) -> list[Move]:
    """What the event says of every pair, by credits and outcome alone; pairs ascending, then the
    cue's. A link that alone brought its other end earns nothing positive, and an event whose
    credits or outcome are impossible (appending refuses those) says nothing.
    """
    if event.type not in LEARNING or rule.alpha.get(event.signal or "", 0.0) == 0.0:
        return []
    outcome = 1.0 if event.outcome is None else event.outcome
    via = dict(event.via)
    try:
        moves = [
            Move((i, j), False, c) for i, j, c in pair_credits(event.items, via, outcome=outcome)
        ]
        if event.cue is not None and rule.cue_alpha > 0.0:
            cue = event.cue
            moves += [
                Move((cue, number), True, credit)
                for number, credit in cue_credits(event.items, rule.cue_fan, outcome=outcome)
                if credit < 0.0 or via.get(number) != cue
            ]
    except ValueError:
        return []  # to forget what a damaged log speaks of must still be possible
    return moves


@dataclass(slots=True)
class Counted:
    """The evidence of a group that counts no more: pairs by sign, and items of a cue by sign."""

    pairs: set[tuple[Pair, bool]]
    cues: dict[tuple[int, bool], int]


class Fold:
    """Strengths while events are taken one after another, in the order of the log.

    `blocked` pairs have no place among the links and are passed over. `only` these pairs are
    followed (None: all); to be exact, they must include every pair of an item that ever had more
    than the rule's K. `repeated` are the groups of which there is more than one event (None: any
    may be). `told`: links go when an event says so, not when an item has too many. The movements of
    the pair `watched` are kept as `history`, evictions unless not `reporting`.
    """

    def __init__(
        self,
        rule: Rule,
        *,
        blocked: Set[Pair] = frozenset(),
        only: Set[Pair] | None = None,
        repeated: Collection[Group] | None = None,
        watched: Pair | None = None,
        told: bool = False,
        reporting: bool = True,
    ) -> None:
        self.rule: Final = rule
        self.states: dict[Pair, LinkState] = {}
        self.evictions: list[Eviction] = []
        self.history: list[Movement] = []
        self.dead: set[int] = set()
        self.tick = 0
        self._cue_rule = cue_rule(rule)
        self.blocked = blocked
        self._only = only
        self._repeated = repeated
        self._watched = watched
        self._told = told
        self._reporting = reporting
        self._lost = 0.0  # what the pair watched had when it was last evicted
        self._counted: dict[Group, Counted] = {}
        self._ranked: dict[Pair, Ranked] = {}
        self._links_at: defaultdict[int, set[Ranked]] = defaultdict(set)
        self._of_cue: dict[int, set[Pair]] = {}

    def start(self, pair: Pair, state: LinkState, *, cue: bool) -> None:
        """Gives a pair the state that earlier events left it in."""
        if cue:
            self._of_cue.setdefault(pair[0], set()).add(pair)
        self._set(pair, state)

    def take(self, event: EventRecord) -> int:
        """One event. Returns how much of it was evidence that had not been counted before."""
        if event.type in LEARNING:
            return self._learn(event)
        if event.type == "prune":
            self._take_away(event)
        elif event.type == "evict":
            self._evict_cue(event)
        return 0

    def fresh(self, event: EventRecord) -> list[Move]:
        """The moves of an event that were not counted before; they are from now on."""
        moves = moves_of(self.rule, event)
        group = group_of(event)
        if group is None or (self._repeated is not None and group not in self._repeated):
            return moves
        counted = self._counted.get(group)
        if counted is None:
            counted = self._counted[group] = Counted(set(), {})
        found = []
        for move in moves:
            positive = move.credit > 0.0
            if move.cue:
                # What a cue that is gone has learned counts again.
                former = counted.cues.get((move.pair[1], positive))
                if former is None or former in self.dead:
                    counted.cues[move.pair[1], positive] = move.pair[0]
                    found.append(move)
            elif (move.pair, positive) not in counted.pairs:
                counted.pairs.add((move.pair, positive))
                found.append(move)
        return found

    def _learn(self, event: EventRecord) -> int:
        moves = self.fresh(event)
        self.move(event, moves)
        return len(moves)

    def move(self, event: EventRecord, moves: Collection[Move]) -> None:
        """Moves the strengths of pairs, then evicts what is too much."""
        if self.rule.kind == "hela_mem":
            self.tick += 1  # no other rule's clock ticks
        came: list[Pair] = []
        for pair, cue, credit in moves:
            if (self._only is not None and pair not in self._only) or pair in self.blocked:
                continue
            former = self.states.get(pair)
            if cue and former is None:
                if credit < 0.0:
                    continue  # a question that was never answered by it
                self._of_cue.setdefault(pair[0], set()).add(pair)
            state = apply(
                self._cue_rule if cue else self.rule,
                former,
                credit,
                event.signal or "",
                event.time,
                principal=event.principal,
                trusted=event.trusted,
                tick=self.tick,
            )
            if self._set(pair, state):
                came.append(pair)
            if pair == self._watched:
                before = 0.0 if former is None else self._now(former, event.time)
                self.history.append(Movement(event, state.strength - before, state.strength))
        if came and self.rule.links_per_item is not None and not self._told:
            self._evict(event, came, self.rule.links_per_item)

    def _now(self, state: LinkState, time: int) -> float:
        return current(self.rule, state, time, self.tick)

    def _set(self, pair: Pair, state: LinkState) -> bool:
        """Sets a state; whether the link now counts towards the K of its ends and did not before:
        one of no strength does not."""
        self.states[pair] = state
        if self.rule.links_per_item is None:
            return False
        former = self._ranked.pop(pair, None)
        one, other = self._links_at[pair[0]], self._links_at[pair[1]]
        if former is not None:
            one.discard(former)
            other.discard(former)
        if state.strength <= 0.0:
            return False
        ranked = self._ranked[pair] = (self._rank(state), pair)
        one.add(ranked)
        other.add(ranked)
        return former is None

    def _drop(self, pair: Pair) -> LinkState | None:
        state = self.states.pop(pair, None)
        ranked = self._ranked.pop(pair, None)
        if ranked is not None:
            self._links_at[pair[0]].discard(ranked)
            self._links_at[pair[1]].discard(ranked)
        if pair[0] in self._of_cue:
            self._of_cue[pair[0]].discard(pair)
        return state

    def _evict(self, event: EventRecord, came: Sequence[Pair], most: int) -> None:
        """At every end of a new link that has too many, the weakest go: new ones not excepted, so
        that what is new and weak displaces nothing that is established."""
        for end in sorted({end for pair in came for end in pair}):
            links = self._links_at[end]
            while len(links) > most:
                # Least strength once time is past all their last changes.
                _, pair = min(links)
                if self._reporting:
                    cue = pair in self._of_cue.get(pair[0], ())
                    self.evictions.append(Eviction(pair, event, cue, end, came))
                if pair == self._watched:
                    self._lost = self._now(self.states[pair], event.time)
                self._drop(pair)

    def _rank(self, state: LinkState) -> float:
        """Orders links by their strength at any later time, without a power for each link each
        time: log2 S(t) = log2 S + last / h - t / h, and as much for the retention per tick."""
        rank = math.log2(state.strength)
        if self.rule.half_life_days is not None:
            rank += state.last / (self.rule.half_life_days * DAY_US)
        if self.rule.kind == "hela_mem" and self.rule.retention > 0.0:
            rank -= state.tick * math.log2(self.rule.retention)
        return rank

    def _take_away(self, event: EventRecord) -> None:
        pair = taken_link(event)
        state = None if pair is None else self._drop(pair)
        if state is not None and pair == self._watched:
            self.history.append(Movement(event, -self._now(state, event.time), 0.0))

    def _evict_cue(self, event: EventRecord) -> None:
        """A cue's end. That of a single link only reports what the event before it did."""
        pair = taken_link(event)
        if pair is not None:
            if self._told:
                self._take_away(event)
            elif pair == self._watched:
                self.history.append(Movement(event, -self._lost, 0.0))
        elif event.cue is not None:
            self.dead.add(event.cue)
            for link in self._of_cue.pop(event.cue, set()):
                state = self._drop(link)
                if state is not None and link == self._watched:
                    self.history.append(Movement(event, -self._now(state, event.time), 0.0))

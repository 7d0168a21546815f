"""Which memories a session opens with: scans over the columns of one space's graph.

Each function gives rows, best first, of what `Scope` lets through; none walks the whole graph. What
is chosen at random is chosen by a hash of the memory's own id, so that it does not depend on where
its row lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F32, F64, I32, I64, U64, Bool, Rows
from cofire.dynamics.plasticity import DAY_US
from cofire.dynamics.ranking import best_positions
from cofire.encoding.signals import Signal
from cofire.encoding.terms import canonical_json, facet, term_hash
from cofire.graph.active import ActiveGraph
from cofire.graph.masks import RowFilter, row_mask
from cofire.graph.snapshot import MINUTE
from cofire.lifecycle import CHECKPOINT, STATE
from cofire.store.records import KIND_CODES, LINK_CODES
from cofire.types import INTERNAL_KINDS, Kind, LinkType, ThreadState

STRONG = 0.7
"""Strength above which a link brings its other end along (Atamaia, section 6.1)."""
OLD_DAYS = 30.0
"""Days after which a memory may come up by chance. Ours: the paper says "old"."""
FLOOR = 0.1
"""Weight of a memory without links where one is drawn by strength: it may come up as well."""

_HIDDEN = tuple(KIND_CODES[kind.value] for kind in INTERNAL_KINDS)
_SAID = (KIND_CODES[Kind.EPISODE.value], KIND_CODES[Kind.TOOL_EVENT.value])
_PERSONA = (KIND_CODES[Kind.PERSONA.value], KIND_CODES[Kind.TRAIT.value])
_WORKING = (KIND_CODES[Kind.GOAL.value], KIND_CODES[Kind.THREAD.value])
_LEARNED = LINK_CODES[LinkType.COACTIVATION.value]
_MADE = tuple(
    LINK_CODES[kind.value]
    for kind in (
        LinkType.RELATED,
        LinkType.SUPPORTS,
        LinkType.CAUSES,
        LinkType.EVOLVES_TO,
        LinkType.ANNOTATES,
    )
)
"""Links that people make. Those of order, evidence and abstraction are made by rule: every turn
has them."""


def _facet(name: str, value: object) -> int:
    return term_hash(facet("meta", name, canonical_json(value)))


_ENDED = tuple(_facet(STATE, state.value) for state in (ThreadState.CLOSED, ThreadState.STALE))
_CHECKPOINT = _facet(CHECKPOINT, True)


@dataclass(frozen=True, slots=True)
class Scope:
    """One space at `now` (µs): its graph, and the mask of whole memories that are neither expired
    nor ended nor of Cofire's own making kinds. half_life_days: that of its learning rule."""

    graph: ActiveGraph
    now: int
    half_life_days: float | None
    mask: Bool

    def newest(self, chosen: Bool, most: int) -> Rows:
        """The latest rows of a mask, newest first; of equals the later number."""
        rows = np.flatnonzero(chosen)
        time = self.graph.column("time")[rows]
        if len(rows) > most:
            latest = np.partition(time, len(rows) - most)[len(rows) - most]
            rows, time = rows[time >= latest], time[time >= latest]
        order = np.lexsort((-self.graph.column("number")[rows].astype(np.int64), -time))
        newest: Rows = rows[order[:most]]
        return newest

    def weightiest(self, chosen: Bool, most: int) -> Rows:
        """The most important rows of a mask, of equals the newest."""
        rows = np.flatnonzero(chosen)
        importance = self.graph.column("importance")[rows].astype(np.int64)
        number = self.graph.column("number")[rows].astype(np.int64)
        order = np.lexsort((-number, -self.graph.column("time")[rows], -importance))
        first: Rows = rows[order[:most]]
        return first

    def of_kinds(self, kinds: tuple[int, ...]) -> Bool:
        inside: Bool = self.mask & np.isin(self.graph.column("kind"), np.array(kinds, np.uint8))
        return inside

    def checkpoints(self) -> Bool:
        """Summaries of how sessions ended."""
        found: Bool = self.mask & self.graph.having(_CHECKPOINT)
        return found


def scope(
    graph: ActiveGraph, now: int, half_life_days: float | None, *, trusted_only: bool = False
) -> Scope:
    """What of a space may be in an opening context."""
    wanted = RowFilter(without_kinds=_HIDDEN, now=now, holds_at=now, trusted_only=trusted_only)
    allowed = row_mask(graph, wanted)
    whole = graph.column("parent") == 0
    return Scope(graph, now, half_life_days, whole if allowed is None else whole & allowed)


def pinned(within: Scope, most: int) -> Rows:
    """Pinned memories."""
    return within.weightiest(within.mask & within.graph.column("pinned"), most)


def persona(within: Scope, most: int) -> Rows:
    """Persona and traits that hold now: persona first."""
    parts = [within.weightiest(within.of_kinds((kind,)), most) for kind in _PERSONA]
    rows: Rows = np.concatenate(parts)[:most]
    return rows


def working(within: Scope, most: int) -> Rows:
    """Goals and threads that are open."""
    chosen = within.of_kinds(_WORKING)
    if chosen.any():
        for ended in _ENDED:
            chosen &= ~within.graph.having(ended)
    return within.weightiest(chosen, most)


def last_checkpoint(within: Scope) -> Rows:
    """How the last session ended: one row, or none."""
    return within.newest(within.checkpoints(), 1)


def recent(within: Scope, most: int) -> Rows:
    """What was said last."""
    said = within.of_kinds(_SAID) & ~within.checkpoints()
    if within.graph.has_derived:
        said &= ~within.graph.derived
    return within.newest(said, most)


@dataclass(frozen=True, slots=True)
class Ties:
    """Strong links: to `row`, from the row `origin`, of the type `kind` (a code), at `strength`
    now; strongest first, each row once."""

    row: Rows
    origin: Rows
    kind: I64
    strength: F64


def linked(within: Scope, rows: Rows, above: float = STRONG) -> Ties:
    """What links of more than `above` lead to from `rows` and to them: learned ones, decayed to
    now, and those that people made."""
    graph = within.graph
    origin, other, kind, strength = _links_of(within, rows)
    target = graph.rows_of(other).astype(np.intp)
    kept = np.flatnonzero((strength > above) & (target >= 0))
    kept = kept[within.mask[target[kept]] & ~np.isin(target[kept], rows)]
    origin, target, kind, strength = origin[kept], target[kept], kind[kept], strength[kept]
    high, low = graph.ties
    order = np.lexsort((origin, low[target], high[target], -strength))
    _, first = np.unique(target[order], return_index=True)
    chosen = order[np.sort(first)]
    return Ties(target[chosen], rows[origin[chosen]], kind[chosen], strength[chosen])


def _links_of(within: Scope, rows: Rows) -> tuple[I64, I64, I64, F64]:
    """(position among rows, number at the other end, type, strength now) of the links that may
    bring something along."""
    graph = within.graph
    numbers = graph.column("number")[rows].astype(np.int64)
    taught = graph.links.learned(numbers, _LEARNED, inward=True)
    made = graph.neighbours(rows, _MADE)
    others = graph.column("number")[made.target].astype(np.int64)
    now = _decayed(taught.strength, taught.when, within)
    return (
        np.concatenate([taught.origin, made.origin]),
        np.concatenate([taught.other, others]),
        np.concatenate([np.full(len(now), _LEARNED, np.int64), made.type.astype(np.int64)]),
        np.concatenate([now, made.strength.astype(np.float64)]),
    )


def learned_neighbours(within: Scope, number: int, most: int) -> list[int]:
    """The memories that use has linked with one, the strongest links first, `most` of them."""
    graph = within.graph
    taught = graph.links.learned(np.array([number], np.int64), _LEARNED, inward=True)
    strength = _decayed(taught.strength, taught.when, within)
    there = (graph.rows_of(taught.other) >= 0) & (strength > 0.0)
    others, strength = taught.other[there], strength[there]
    order = np.lexsort((others, -strength))[:most]
    return [int(other) for other in others[order]]


def _decayed(strength: F32, when: I32, within: Scope) -> F64:
    """S · 2^(-age / half-life), see `plasticity.decayed`; links that nothing taught keep theirs."""
    now = strength.astype(np.float64)
    if within.half_life_days is None:
        return now
    age = np.where(when > 0, np.maximum(within.now - when.astype(np.int64) * MINUTE, 0), 0)
    left: F64 = now * np.exp2(-age / (within.half_life_days * DAY_US))
    return left


@dataclass(frozen=True, slots=True)
class Drawn:
    """Memories drawn by chance, in the order in which they were: `row`, its `strength`, and the
    `turn` it got (lower is earlier), by which draws from several spaces are put in order."""

    row: Rows
    strength: F64
    turn: F64


def involuntary(within: Scope, seed: int, without: Rows, most: int) -> Drawn:
    """Old memories drawn at random, without replacement, with a probability proportional to

        FLOOR + sum of the strengths of their learned and hand-made links

    (Atamaia, section 6.4: "the random surfacing of memories"; that strength decides is ours). The
    draw is a race of exponential clocks, one per memory, started by a hash of `seed` and its id.
    """
    graph = within.graph
    old = within.of_kinds(_SAID) & (
        graph.column("time") <= within.now - int(OLD_DAYS * DAY_US)
    )  # fmt: skip
    old &= ~graph.column("pinned") & ~within.checkpoints()
    old &= (graph.column("signals") & np.uint32(int(Signal.PLEASANTRY))) == 0
    if graph.has_derived:
        old &= ~graph.derived
    old[without] = False
    rows = np.flatnonzero(old)
    strength = _strengths(within)[rows]
    turn = -np.log(_chance(graph, rows, seed)) / (FLOOR + strength)
    first = best_positions(-turn, most)
    high, low = graph.ties
    order = first[np.lexsort((low[rows[first]], high[rows[first]], turn[first]))[:most]]
    return Drawn(rows[order], strength[order], turn[order])


def _strengths(within: Scope) -> F64:
    """What the learned and hand-made links of every row add up to now."""
    graph = within.graph
    sums = np.zeros(graph.size, np.float64)
    source, target, kind, strength, when = graph.links.arrays(graph.numbers.array)
    counts = np.isin(kind, np.array((_LEARNED, *_MADE), np.uint8))
    if counts.any():
        left = _decayed(strength[counts], when[counts], within)
        for ends in (source[counts], target[counts]):
            sums += np.bincount(graph.rows_of(ends), left, minlength=graph.size)
    return sums


def _chance(graph: ActiveGraph, rows: Rows, seed: int) -> F64:
    """A number in (0, 1) for each row that depends on `seed` and its id alone: splitmix64's
    finaliser (Steele, Lea and Flood 2014) over both words of the id."""
    high, low = graph.ties
    start = np.uint64(seed & _ALL)
    mixed = _mix(low[rows] ^ _mix(high[rows] ^ _mix(np.full(len(rows), start, np.uint64))))
    chance: F64 = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return chance


def _mix(words: U64) -> U64:
    mixed = words + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    done: U64 = mixed ^ (mixed >> np.uint64(31))
    return done


_ALL = (1 << 64) - 1

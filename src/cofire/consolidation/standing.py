"""Where every memory of the active graph stands: what the rules of forgetting weigh, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cofire.consolidation.night import Night
from cofire.dynamics import retention
from cofire.dynamics.arrays import F64, I64, U32, Bool, Rows
from cofire.dynamics.plasticity import DAY_US
from cofire.encoding.signals import Signal
from cofire.graph.active import ActiveGraph
from cofire.graph.snapshot import MINUTE
from cofire.store.records import KIND_CODES, LINK_CODES
from cofire.types import INTERNAL_KINDS, Kind, LinkType

STRUCTURAL = frozenset(
    {
        LinkType.TEMPORAL,
        LinkType.ABSTRACTION,
        LinkType.EVIDENCE,
        LinkType.CONTRADICTS,
        LinkType.SUPERSEDES,
    }
)
"""Links that every memory has, or that say no good of it: they protect nothing. Every turn of a
session has two temporal links, so counting those would keep every turn for ever."""
_STRUCTURAL = np.array(sorted(LINK_CODES[kind.value] for kind in STRUCTURAL), np.uint8)
_OWN_LIFE = frozenset({*INTERNAL_KINDS, Kind.GOAL, Kind.THREAD})
"""Kinds whose coming and going other rules decide: cues, concepts, shapes; goals and threads are
opened and closed."""
_LIVING = np.array(sorted(KIND_CODES[kind.value] for kind in _OWN_LIFE), np.uint8)
_STANDING_IN = np.array(
    [KIND_CODES[kind.value] for kind in (Kind.GIST, Kind.WORD, Kind.CONCEPT)], np.uint8
)
_TELLING = (Signal.HAS_NAME, Signal.HAS_NUMBER, Signal.HAS_TIME)


@dataclass(frozen=True, slots=True)
class Standing:
    """The memories (n,) that may fade: wholes of the active graph, by number. Not those kinds that
    live by rules of their own (cues, concepts, shapes, goals, threads).

    strength: sum of what links to and from it carry now, but for structural ones and those so weak
    that pruning would take them (candidates, which nobody has confirmed, among them). stored, last:
    µs when it was stored and when it was last accessed (or stored, if never). changed: µs when a
    learned link of it last changed, or when it was stored. parts: rows it takes in the graph.
    derived: made by consolidation. kept: nothing may take it.
    """

    number: I64
    importance: I64
    kept: Bool
    derived: Bool
    uses: I64
    strength: F64
    stored: I64
    last: I64
    changed: I64
    information: F64
    parts: I64

    def __len__(self) -> int:
        return len(self.number)


def standing(night: Night) -> Standing:
    """How the memories of the space stand at `night.now`."""
    graph = night.graph()
    rows = _fading_rows(graph)
    number = graph.column("number")[rows].astype(np.int64)
    order = np.argsort(number)
    rows, number = rows[order], number[order]
    stored = graph.column("recorded")[rows].astype(np.int64)
    importance = graph.column("importance")[rows].astype(np.int64)
    signals: U32 = graph.column("signals")[rows]
    uses, last = _uses(number, stored, night.store.accesses(night.space))
    strength, changed = _links(graph, number, stored, night)
    return Standing(
        number=number,
        importance=importance,
        kept=retention.kept(graph.column("pinned")[rows], importance),
        derived=graph.derived[rows],
        uses=uses,
        strength=strength,
        stored=stored,
        last=last,
        changed=changed,
        information=informative(signals),
        parts=_parts(graph, number),
    )


def size_of(graph: ActiveGraph) -> int:
    """How many rows of the active graph count towards its size: all but gists, words and concepts.
    Those only stand for memories and go with them. If they counted, as all nodes do in the paper,
    memories would be archived to make room for what stands for them."""
    counts = ~np.isin(graph.column("kind"), _STANDING_IN)
    if graph.live is not None:
        counts &= graph.live
    return int(np.count_nonzero(counts))


def _fading_rows(graph: ActiveGraph) -> Rows:
    chosen = (graph.column("parent") == 0) & ~np.isin(graph.column("kind"), _LIVING)
    if graph.live is not None:
        chosen &= graph.live
    return np.flatnonzero(chosen)


def informative(signals: U32) -> F64:
    """How much texts (n,) tell, in [0, 1], by their `encoding.signals`: nothing if they are but
    politeness, a quarter if they only ask, else a half and more for a name, a number, a time."""
    told = np.full(len(signals), 0.5)
    for signal in _TELLING:
        told += ((signals & np.uint32(int(signal))) != 0) / (2.0 * len(_TELLING))
    told[(signals & np.uint32(int(Signal.QUESTION))) != 0] = 0.25
    told[(signals & np.uint32(int(Signal.PLEASANTRY))) != 0] = 0.0
    return told


def _uses(number: I64, stored: I64, accesses: Sequence[tuple[int, int, int]]) -> tuple[I64, I64]:
    """(how often, last time) each was accessed."""
    uses, last = np.zeros(len(number), np.int64), stored.copy()
    if not accesses or not len(number):
        return uses, last
    counted = np.array(accesses, np.int64)
    place = np.searchsorted(number, counted[:, 0])
    place[place == len(number)] = 0
    known = number[place] == counted[:, 0]
    uses[place[known]] = counted[known, 1]
    last[place[known]] = np.maximum(stored[place[known]], counted[known, 2])
    return uses, last


def _links(graph: ActiveGraph, number: I64, stored: I64, night: Night) -> tuple[F64, I64]:
    """(sum of strengths now, last change of a learned link) of each."""
    strength, changed = np.zeros(len(number), np.float64), stored.copy()
    source, target, kind, held, when = graph.links.arrays(graph.numbers.array)
    counts = ~np.isin(kind, _STRUCTURAL)
    source, target, held, when = source[counts], target[counts], held[counts], when[counts]
    if not len(number) or not len(source):
        return strength, changed
    since = when.astype(np.int64) * MINUTE
    left = held.astype(np.float64)
    half_life = night.store.rule(night.space).half_life_days
    if half_life is not None:
        idle = np.where(since > 0, np.maximum(night.now - since, 0), 0)
        left *= np.exp2(-idle / (half_life * DAY_US))
    left[left < night.rule.prune_below] = 0.0
    for ends in (source, target):
        place = np.searchsorted(number, ends)
        place[place == len(number)] = 0
        known = number[place] == ends
        np.add.at(strength, place[known], left[known])
        np.maximum.at(changed, place[known], since[known])
    return strength, changed


def _parts(graph: ActiveGraph, number: I64) -> I64:
    """Rows that each takes: itself and its segments."""
    parents = graph.column("parent")
    inside = parents > 0
    if graph.live is not None:
        inside &= graph.live
    parts = np.ones(len(number), np.int64)
    owners = parents[inside].astype(np.int64)
    if len(owners) and len(number):
        place = np.searchsorted(number, owners)
        place[place == len(number)] = 0
        known = number[place] == owners
        np.add.at(parts, place[known], 1)
    return parts

"""The step that finds hubs: memories that use has tied to many others, and what belongs to them.

HeLa-Mem (eq. 2) sums what the learned links of a memory carry, D(v) = Σ_u w_uv; a hub is one with
D(v) > δ. The paper leaves δ open, and the rule's `hub_strength` is ours. The rival counts how often
a memory was accessed (`SleepRule.hub_by`). A hub and its strongest neighbours are a cluster
(`clusters`), and of every cluster

- there is an extractive gist: its most central sentences, verbatim, in the order in which they were
  said. It is a node of kind "gist" with the slot "hub" and the hub's id as value, rests on every
  member, and leads to each over an abstraction link;
- a language model, where there is one, is asked what the members say together (`distilling`).

A cluster is looked at again only when its members are others, or one was edited. What is asked
about is noted in the ledger by a number that stands for the members; the ledger has no words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from cofire.consolidation.abstracting import ABSTRACTION, bare, readable
from cofire.consolidation.clusters import clusters, density, frequency
from cofire.consolidation.distilling import distilled
from cofire.consolidation.drafts import Turn
from cofire.consolidation.gist import central, told
from cofire.consolidation.night import DAY_US, Night, Work
from cofire.consolidation.turns import read_turns, trusted
from cofire.dynamics.arrays import F64, I64
from cofire.errors import GenerationError
from cofire.graph.active import ActiveGraph
from cofire.graph.snapshot import MINUTE
from cofire.graph.vectors import unpacked
from cofire.store.planning import Applied, Plan
from cofire.store.records import KIND_CODES, DerivedRow, NewDerived, StepRow
from cofire.types import VISIBLE_KINDS, Kind, LinkType, Message
from cofire.views import public_id

SLOT = "hub"
"""Slot and subject of a hub's gist."""
SENTENCES = 5
"""Sentences of a gist, at most."""
READ = 12
"""Sentences of one member that are compared, at most: the first."""
MOST = 100
"""Clusters that are kept, at most: the densest."""
MOST_ASKED = 20
"""Clusters that a model is asked about in one night, at most."""
_VISIBLE = np.array([KIND_CODES[kind.value] for kind in VISIBLE_KINDS], np.uint8)

Working = Generator[Work, Applied, None]


@dataclass(frozen=True, slots=True)
class Hub:
    """A cluster as it is now: the hub's public `id` and what its members say, the hub first."""

    id: str
    turns: tuple[Turn, ...]

    @property
    def mark(self) -> int:
        """A number that stands for the members and their texts, < 2^62."""
        text = ",".join(sorted(f"{turn.number}:{turn.version}" for turn in self.turns))
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 2


def hubs(night: Night, row: StepRow) -> Working:
    """Makes the gists of clusters that are new or changed, and takes away those of what is no
    cluster any more. A model is asked about the clusters that it was not asked about yet."""
    stored = _stored(night)
    notes = night.store.steps(night.space)
    found = _hubs(night)
    gone = [one for id, rows in stored.items() if id not in found for one in rows]
    names = {_note(id) for id in found}
    dropped = tuple(
        name for name in sorted(notes) if name.startswith(_note("")) and name not in names
    )
    if gone or dropped:
        retired = tuple(one.item.number for one in gone)
        yield Work(plan=Plan(retired=retired, dropped=dropped), row=row, last=False)
    asking = _Asking(night, notes)
    for hub in found.values():
        plan, counts = asking.about(hub)
        kept = [one for one in stored.get(hub.id, ()) if _is_of(one, hub)]
        if not kept:
            former = tuple(one.item.number for one in stored.get(hub.id, ()))
            gist = _gist(night, hub)
            made = () if gist is None else (gist,)
            if former or made:
                plan = replace(
                    plan,
                    derived=(*plan.derived, *made),
                    retired=(*plan.retired, *former),
                )
        if plan != Plan() or counts.total():
            yield Work(plan=plan, row=row, counts=counts, last=False)
    if asking.error is not None:
        raise asking.error


# -- Clusters ------------------------------------------------------------------------------------


def _hubs(night: Night) -> dict[str, Hub]:
    """The clusters of the space by the id of their hub, the densest first."""
    graph = night.graph()
    said = (graph.column("parent") == 0) & np.isin(graph.column("kind"), _VISIBLE) & ~graph.derived
    if graph.live is not None:
        said &= graph.live
    number = np.sort(graph.column("number")[np.flatnonzero(said)].astype(np.int64))
    source, target, strength = _learned(night, graph, number)
    if night.rule.hub_by == "frequency":
        score = _uses(night, number)
    else:
        score = density(source, target, strength, len(number))
    found = clusters(
        source, target, strength, score,
        least=night.rule.hub_strength, neighbours=night.rule.neighbours,
    )[:MOST]  # fmt: skip
    by_id = {}
    for cluster in found:
        members = number[list(cluster.members)].tolist()
        turns = trusted(readable(read_turns(night.store, night.space, members)))
        if len(turns) > 1 and turns[0].number == members[0]:
            id = public_id(graph.uid(graph.row(members[0])))
            by_id[id] = Hub(id, tuple(turns))
    return by_id


def _learned(night: Night, graph: ActiveGraph, number: I64) -> tuple[I64, I64, F64]:
    """The learned links between memories (ascending `number`) as positions, with their strength
    now."""
    source, target, _, held, when = graph.links.arrays(graph.numbers.array)
    ends = np.searchsorted(number, source), np.searchsorted(number, target)
    inside = when > 0
    for place, end in zip(ends, (source, target), strict=True):
        place[place == len(number)] = 0
        inside &= (number[place] == end) if len(number) else False
    strength = held.astype(np.float64)
    half_life = night.store.rule(night.space).half_life_days
    if half_life is not None:
        idle = np.maximum(night.now - when.astype(np.int64) * MINUTE, 0)
        strength *= np.exp2(-idle / (half_life * DAY_US))
    return ends[0][inside], ends[1][inside], strength[inside]


def _uses(night: Night, number: I64) -> F64:
    """How often each memory was accessed."""
    counted = [(one, count) for one, count, _ in night.store.accesses(night.space)]
    if not counted or not len(number):
        return np.zeros(len(number), np.float64)
    used, count = np.array(counted, np.int64).T
    place = np.searchsorted(number, used)
    place[place == len(number)] = 0
    known = number[place] == used
    return frequency(np.repeat(place[known], count[known]), len(number))


# -- Gists ---------------------------------------------------------------------------------------


def _stored(night: Night) -> dict[str, list[DerivedRow]]:
    """The gists of hubs that are stored, by the hub's id."""
    found: dict[str, list[DerivedRow]] = {}
    for one in night.store.derived_about(night.space, [SLOT]):
        if one.item.kind == Kind.GIST.value and one.slot == SLOT:
            found.setdefault(one.value or "", []).append(one)
    return found


def _is_of(one: DerivedRow, hub: Hub) -> bool:
    """Whether a gist is of these very members and texts."""
    resting = {(source.source, source.version) for source in one.sources}
    return (
        one.state == "current"
        and one.item.archived is None
        and resting == {(turn.number, turn.version) for turn in hub.turns}
    )


def _gist(night: Night, hub: Hub) -> NewDerived | None:
    """The most central sentences of the members; None without vectors, or if nothing is told."""
    sentences = [
        (turn, sentence)
        for turn in sorted(hub.turns, key=lambda turn: turn.number)
        for sentence in told(turn)[:READ]
    ]
    if not sentences:
        return None
    items = night.make([_message(turn, sentence.text) for turn, sentence in sentences])
    known = [place for place, item in enumerate(items) if item.vector is not None]
    if not known:
        return None
    vectors = np.stack([unpacked(items[place].vector or b"") for place in known])
    chosen = [sentences[known[at]] for at in central(vectors, SENTENCES).tolist()]
    last = max((turn for turn, _ in chosen), key=lambda turn: turn.time)
    (item,) = night.make([_message(last, " ".join(sentence.text for _, sentence in chosen))])
    quoted = {turn.number for turn, _ in chosen}
    return NewDerived(
        item=bare(item, Kind.GIST),
        maker="extractive",
        subject=SLOT,
        slot=SLOT,
        value=hub.id,
        sources=(
            *((turn.number, turn.version, one.start, one.end) for turn, one in chosen),
            *((turn.number, turn.version, 0, 0) for turn in hub.turns if turn.number not in quoted),
        ),
        links=tuple((turn.number, LinkType.ABSTRACTION.value, ABSTRACTION) for turn in hub.turns),
    )


def _message(turn: Turn, text: str) -> Message:
    return Message(content=text, kind=Kind.GIST, time=turn.time)


# -- Asking a model ------------------------------------------------------------------------------


def _note(id: str) -> str:
    return f"hub/{id}"


class _Asking:
    """Which clusters a model has been asked about, and asking it about the others."""

    def __init__(self, night: Night, notes: Mapping[str, StepRow]) -> None:
        self._night = night
        self._notes = notes
        self._asked = 0
        self._stopped = night.generator is None
        self.error: GenerationError | None = None

    def about(self, hub: Hub) -> tuple[Plan, Counter[str]]:
        """What the model's answer makes of a cluster; nothing if it has been asked already, was
        asked in vain too often, or is not to be asked any more tonight. The note's `period` counts
        the tries, `revision` is 1 once there was an answer, `seq` stands for the members."""
        name = _note(hub.id)
        note = self._notes.get(name, StepRow(name))
        tried = note.period if note.seq == hub.mark else 0
        answered = note.seq == hub.mark and note.revision == 1
        given_up = answered or tried >= self._night.rule.tries
        if self._stopped or given_up or self._asked >= MOST_ASKED:
            return Plan(), Counter()
        self._asked += 1
        labelled = [replace(turn, label=f"T{at}") for at, turn in enumerate(_told(hub.turns), 1)]
        plan, counts, asked = distilled(self._night, labelled)
        self._stopped = asked.stopped is not None
        self.error = asked.error
        if not self._stopped:
            done = int(not asked.unanswered)
            row = StepRow(name, tried + 1, done, hub.mark, self._night.now)
            plan = replace(plan, notes=(*plan.notes, row))
        return plan, counts


def _told(turns: Sequence[Turn]) -> list[Turn]:
    return sorted(turns, key=lambda turn: (turn.time, turn.number))

"""The concepts of a space as they are stored, and what turns and models make of them.

Turns are read into the picture; the plan is what has changed in it (`concept_records`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from cofire.consolidation.abstracting import readable
from cofire.consolidation.concept_records import (
    EXTRACTIVE,
    Changes,
    Concept,
    State,
    change,
    filed,
    state_of,
    stored,
)
from cofire.consolidation.concepts import (
    SAME_NAME,
    Heard,
    is_acronym,
    is_distinct,
    may_be_one,
    named,
    same_digits,
    same_name,
    spelled,
    stands_in,
)
from cofire.consolidation.drafts import ConceptDraft, RelationDraft, Turn
from cofire.consolidation.night import Night
from cofire.consolidation.turns import read_turns, trusted
from cofire.dynamics.arrays import F64
from cofire.encoding.analysis import analyse
from cofire.encoding.terms import term_hash
from cofire.encoding.text import fold
from cofire.graph.active import ActiveGraph
from cofire.graph.vectors import unpacked
from cofire.store.planning import Plan
from cofire.store.records import KIND_CODES
from cofire.types import Kind, LinkType, Message

RELATED = 0.5
"""Strength of a link between concepts that belong together: a new link's (Atamaia)."""
MOST_CONCEPTS = 10_000
"""Concepts of a space that rules find, at most: every name read is sought among them all."""
LOOKED_THROUGH = 100
"""Turns of the space that are looked through for a new name, at most: the latest."""
_EPISODE = KIND_CODES[Kind.EPISODE.value]
_CONCEPT = KIND_CODES[Kind.CONCEPT.value]


@dataclass(slots=True)
class Picture:
    """The concepts of a space as they are stored, and what turns make of them."""

    night: Night
    _graph: ActiveGraph = field(init=False)
    """As it is in the beginning: to ask for it name by name would be a round trip for each."""
    _mentions: dict[str, list[int]] = field(default_factory=dict)
    """See `_earlier`, of names whose turns were read for something else."""
    _by_name: dict[str, Concept] = field(default_factory=dict)
    _related: list[tuple[Concept, Concept]] = field(default_factory=list)
    _absorbed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        graph = self._graph = self.night.graph()
        mask = graph.column("kind") == _CONCEPT
        if graph.live is not None:
            mask &= graph.live
        numbers = graph.column("number")[np.flatnonzero(mask)].tolist()
        rows = self.night.store.derived(self.night.space, sorted(numbers)) if numbers else []
        for row in rows:
            self._know(stored(row))

    def _know(self, concept: Concept) -> None:
        for name in concept.names:
            self._by_name.setdefault(same_name(name), concept)

    def _concepts(self) -> list[Concept]:
        return list(dict.fromkeys(self._by_name.values()))

    def forget(self, turns: Sequence[Turn]) -> None:
        """Concepts that no longer stand in turns which they rested on rest on them no more, nor on
        turns that are not trusted any more."""
        texts = {turn.number: "" if turn.marked else turn.content for turn in turns}
        for concept in self._concepts():
            for number in sorted(concept.turns & texts.keys()):
                if not any(spelled(texts[number], name) for name in concept.names):
                    concept.turns.discard(number)
                    concept.changed = True

    def found_by_rules(self, turns: Sequence[Turn]) -> None:
        """Adds who and what is named in turns. A known name is found without signs of one, too,
        where it can be nothing else; a new one is sought in earlier turns."""
        numbers = {turn.label: turn.number for turn in turns}
        fresh: list[Concept] = []
        drafts = named(turns)
        self._wake([draft.name for draft in drafts])
        known = len(self._concepts())
        for draft in drafts:
            concept = self._by_name.get(same_name(draft.name))
            if concept is None:
                if known + len(fresh) >= MOST_CONCEPTS or self._is_common(draft.name):
                    continue
                concept = Concept(None, [draft.name, *draft.aliases], set(), changed=True)
                fresh.append(concept)
                self._know(concept)
            self._add(concept, [numbers[label] for label in draft.labels])
        heard = Heard.of(turn.content for turn in turns)
        for concept in self._concepts():
            for name in concept.names:
                there = [turns[place] for place in heard.places(name)]
                self._add(concept, [t.number for t in there if stands_in(t.content, name)])
        for concept in self._merged(fresh):
            self._add(concept, self._earlier(concept.names[0]))

    def _wake(self, names: Sequence[str]) -> None:
        """Concepts of these names that are out of the graph because a mention of theirs was edited
        or deleted are told anew instead of made twice."""
        unknown = [name for name in names if same_name(name) not in self._by_name]
        found = self.night.store.derived_about(self.night.space, unknown) if unknown else []
        for row in found:
            if row.item.kind == Kind.CONCEPT.value:
                concept = stored(row)
                concept.changed = True
                self._know(concept)

    def _add(self, concept: Concept, numbers: Iterable[int]) -> None:
        more = set(numbers) - concept.turns
        concept.turns |= more
        concept.changed |= bool(more)

    def _is_common(self, name: str) -> bool:
        """Whether a word is a name only because a capital happens to be there: the space writes it
        small more often."""
        if is_distinct(name) or is_acronym(name):
            return False
        turns = self._saying(name)
        said = [spelling for turn in turns for spelling in spelled(turn.content, name.lower())]
        small = sum(spelling.islower() for spelling in said)
        if 2 * small > len(said):
            return True
        self._mentions[name] = _mentioning(turns, name)
        return False

    def _earlier(self, name: str) -> list[int]:
        """The latest turns of the space that mention a name beyond doubt."""
        known = self._mentions.get(name)
        return _mentioning(self._saying(name), name) if known is None else known

    def _saying(self, name: str) -> list[Turn]:
        """The latest turns of the space that have the words of a name, inflected or not."""
        terms = sorted({term_hash(term) for term in analyse(name).terms})
        if not terms:
            return []
        graph = self._graph
        found = [one.rows for one in graph.terms_rows(np.array(terms, np.uint64))]
        rows = reduce(np.intersect1d, found)
        said = (graph.column("kind")[rows] == _EPISODE) & ~graph.derived[rows]
        said &= graph.column("parent")[rows] == 0
        numbers = np.sort(graph.column("number")[rows[said]])[-LOOKED_THROUGH:]
        return trusted(readable(read_turns(self.night.store, self.night.space, numbers.tolist())))

    def _merged(self, fresh: Sequence[Concept]) -> list[Concept]:
        """New concepts, without those whose name is another's by likeness (cosine ≥ `SAME_NAME`,
        see `may_be_one`): they become aliases of that."""
        by_word: dict[str, list[Concept]] = {}
        for concept in self._concepts() if fresh else ():
            for word in set(fold(concept.names[0]).split()):
                by_word.setdefault(word, []).append(concept)
        near = {
            id(concept): dict.fromkeys(
                one for word in fold(concept.names[0]).split() for one in by_word[word]
            )
            for concept in fresh
        }
        pairs = [
            (concept, other)
            for concept in fresh
            for other in near[id(concept)]
            if other is not concept and may_be_one(concept.names[0], other.names[0])
        ]
        names = list(dict.fromkeys(one.names[0] for pair in pairs for one in pair))
        vectors = _vectors(self.night, names)
        gone: set[int] = set()
        for concept, other in pairs:
            one, two = vectors.get(concept.names[0]), vectors.get(other.names[0])
            if {id(concept), id(other)} & gone or one is None or two is None:
                continue
            if float(one @ two) >= SAME_NAME:
                self._absorb(other, concept)
                gone.add(id(concept))
        return [concept for concept in fresh if id(concept) not in gone]

    def found_by_model(
        self,
        turns: Sequence[Turn],
        drafts: Sequence[ConceptDraft],
        relations: Sequence[RelationDraft],
    ) -> Counter[str]:
        """Adds what a model says that turns speak of, as far as they do; counts what was left out:
        names that stand in none of the turns cited for them, and relations that no cited turn has
        both ends of."""
        offered = {turn.label: turn for turn in turns}
        self._wake([name for draft in drafts for name in (draft.name, *draft.aliases)])
        counts: Counter[str] = Counter()
        by_name: dict[str, Concept] = {}
        own = {same_name(draft.name) for draft in drafts}
        for draft in drafts:
            cited = [offered[label] for label in draft.labels if label in offered]
            names = [draft.name, *draft.aliases]
            said = [n for n in names if any(spelled(turn.content, n) for turn in cited)]
            counts["dropped alias"] += len(names) - len(said)
            if not said:
                counts["dropped name"] += 1
                continue
            concept = self._proposed(draft, said, own, counts)
            here = [turn for turn in cited if any(spelled(turn.content, n) for n in said)]
            self._add(concept, [turn.number for turn in here])
            by_name.update({same_name(name): concept for name in names})
        for relation in relations:
            ends = [by_name.get(same_name(name)) for name in (relation.source, relation.target)]
            cited = [offered[label] for label in relation.labels if label in offered]
            source, target = ends
            if source is None or target is None or source is target or not any(
                all(any(spelled(turn.content, n) for n in end.names) for end in (source, target))
                for turn in cited
            ):  # fmt: skip
                counts["dropped relation"] += 1
            else:
                self._related.append((source, target))
        return counts

    def _proposed(
        self, draft: ConceptDraft, said: Sequence[str], own: Set[str], counts: Counter[str]
    ) -> Concept:
        """The concept that a draft is about, known by the first of its names that is, with its
        other names. What rules found by such a name becomes part of it, unless the answer has it
        as a concept of its `own`, a model named it before, or their digits differ."""
        known = {name: self._by_name.get(same_name(name)) for name in said}
        concept = next((one for one in known.values() if one is not None), None)
        if concept is None:
            concept = Concept(None, [], set(), changed=True)
        for name, owner in known.items():
            if owner is concept:
                continue
            apart = not all(same_digits(name, other) for other in concept.names)
            apart |= owner is not None and owner.maker != EXTRACTIVE
            if apart or (name != draft.name and same_name(name) in own):
                counts["dropped alias"] += 1
            else:
                self._absorb(concept, owner or Concept(None, [name], set()))
                concept.maker, concept.prompt = draft.maker, draft.prompt
        return concept

    def _absorb(self, concept: Concept, other: Concept) -> None:
        """Makes another concept a part of one."""
        concept.names += other.names
        concept.turns |= other.turns
        concept.changed = True
        self._by_name.update({same_name(name): concept for name in other.names})
        if other.number is not None:
            self._absorbed.append(other.number)

    def plan(self) -> Plan:
        """What has to be done for the store to be as the picture is."""
        touched = [one for one in self._concepts() if one.changed]
        numbers = sorted(set[int]().union(*(one.turns for one in touched)))
        rows = read_turns(self.night.store, self.night.space, numbers) if numbers else []
        turns = {turn.number: turn for turn in trusted(rows)}
        fresh: list[tuple[Concept, State]] = []
        changes = Changes(retired=list(self._absorbed))
        for one in touched:
            state = state_of(one.names, (turns[n] for n in sorted(one.turns) if n in turns))
            if one.row is not None:
                change(self.night, one.row, state, (one.maker, one.prompt), changes)
            elif state is not None:
                fresh.append((one, state))
        items = filed(self.night, fresh)
        references = {id(one): -1 - place for place, (one, _) in enumerate(fresh)}
        references |= {id(one): one.number for one in self._concepts() if one.number is not None}
        joins = dict.fromkeys(
            (references[id(source)], references[id(target)], LinkType.RELATED.value, RELATED)
            for source, target in self._related
            if id(source) in references and id(target) in references
        )
        return replace(changes.plan(), derived=items, joins=tuple(joins))


def _mentioning(turns: Iterable[Turn], name: str) -> list[int]:
    return [turn.number for turn in turns if stands_in(turn.content, name)]


def _vectors(night: Night, names: Sequence[str]) -> Mapping[str, F64]:
    """Unit vectors of names, of those that have one."""
    if not names:
        return {}
    items = night.make([Message(content=name, kind=Kind.CONCEPT) for name in names])
    found = {}
    for name, item in zip(names, items, strict=True):
        if item.vector is not None:
            vector = unpacked(item.vector).astype(np.float64)
            length = float(np.linalg.norm(vector))
            if length > 0.0:
                found[name] = vector / length
    return found

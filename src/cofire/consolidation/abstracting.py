"""The steps that make memories easier to find, without a model: gists of turns, and words akin.

    gists   per turn at most two sentences-long records (`gist`): nodes of kind "gist", an
            abstraction link to the turn, the spans they are made of as sources
    words   the words of the space as nodes of kind "word", related links to those akin

Neither is ever returned as a memory: they carry activation to what they stand for
(`retrieval.abstractions`). They have vectors, but no terms: they are no documents, and must not
change what a word is worth in its space.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cofire.consolidation import gist
from cofire.consolidation.concepts import KIN, Word, kin, most_said
from cofire.consolidation.concepts import words as words_of
from cofire.consolidation.drafts import Turn
from cofire.consolidation.gist import Gist, Sentence
from cofire.consolidation.night import Night, Work
from cofire.consolidation.turns import MOST_CHARACTERS, read_turns, trusted
from cofire.consolidation.unread import batches
from cofire.dynamics.arrays import F32, F64, I64, U64
from cofire.encoding.analysis import analyse
from cofire.encoding.terms import pack_terms, term_hash
from cofire.graph.active import ActiveGraph
from cofire.graph.vectors import unpacked
from cofire.store.planning import Applied, Plan, Restated
from cofire.store.records import KIND_CODES, LINK_CODES, DerivedRow, NewDerived, NewItem, StepRow
from cofire.types import Kind, LinkType, Message

BATCH = 200
"""Turns whose gists and words are filed in one transaction."""
ABSTRACTION = 0.8
"""Strength of a link from a gist to its turn (Synapse's of abstraction links)."""
MOST_WORDS = 10_000
"""Words of a space that are nodes, at most: what a language has in daily use. Made-up words must
not make every night longer."""
NOTED = 8
"""Turns that a word's node rests on: the first that say it. It goes with the last of them."""
_SAID = (Kind.EPISODE.value,)
_WORD = KIND_CODES[Kind.WORD.value]
_TEMPORAL = LINK_CODES[LinkType.TEMPORAL.value]
_RELATED = LINK_CODES[LinkType.RELATED.value]

Working = Generator[Work, Applied, None]


# -- Gists ---------------------------------------------------------------------------------------


def gists(night: Night, row: StepRow) -> Working:
    """Files gists of turns that are new or were edited since the last run."""
    former = row.seq
    for reached, numbers in batches(night, row, _SAID, BATCH):
        edited = [number for number in numbers if number <= former]
        again = {*numbers, *_turns_beside(night.graph(), edited, after=True).values()}
        outdated = [one for one in _gists_on(night, sorted(again)) if _target(one) in again]
        turns = readable(read_turns(night.store, night.space, sorted(again)))
        yield Work(
            plan=Plan(
                derived=_filed_gists(night, turns),
                retired=tuple(one.item.number for one in outdated),
            ),
            row=reached,
            counts={"turns read": len(turns)},
            last=False,
            seen=reached.time,
        )


def _gists_on(night: Night, numbers: Sequence[int]) -> list[DerivedRow]:
    """The gists that rest on any of these turns; those of hubs are others' affair."""
    resting = night.store.resting_on(night.space, numbers) if numbers else {}
    rows = night.store.derived(night.space, sorted(resting)) if resting else []
    return [one for one in rows if one.item.kind == Kind.GIST.value and one.slot is None]


def _target(one: DerivedRow) -> int:
    """The turn that a gist stands for: an answer comes after its question."""
    return max(source.source for source in one.sources)


def readable(turns: Iterable[Turn]) -> list[Turn]:
    return [turn for turn in turns if len(turn.content) <= MOST_CHARACTERS]


def _filed_gists(night: Night, turns: Sequence[Turn]) -> tuple[NewDerived, ...]:
    """The gists of turns, embedded in one call."""
    before = _turns_before(night, turns)
    exchanges = [_exchange(turn, before.get(turn.number)) for turn in turns]
    told: list[list[Sentence]] = [gist.told(turn) for turn in turns]
    several = [sentences if len(sentences) > 1 else [] for sentences in told]
    messages = [
        _message(text, turn)
        for turn, exchange, sentences in zip(turns, exchanges, several, strict=True)
        for text in (
            *([] if exchange is None else [exchange.text]),
            *(sentence.text for sentence in sentences),
        )
    ]
    if not messages:
        return ()
    items = iter(night.make(messages))
    wholes = night.store.vectors(night.space, [turn.number for turn in turns])
    filed = []
    for turn, exchange, sentences in zip(turns, exchanges, several, strict=True):
        if exchange is not None:
            filed.append((exchange, next(items)))
        made = [next(items) for _ in sentences]
        whole = wholes.get(turn.number)
        if whole is None or not made or any(item.vector is None for item in made):
            continue
        vectors = np.stack([unpacked(item.vector or b"") for item in made])
        chosen = int(gist.central(vectors, whole=unpacked(whole))[0])
        filed.append((gist.core(turn, sentences, chosen), made[chosen]))
    return tuple(_gist(found, item) for found, item in filed if item.vector is not None)


def _exchange(turn: Turn, before: Turn | None) -> Gist | None:
    """The gist of question and answer; none of what was answered to somebody from outside, whose
    words must not stand for the answer."""
    if before is not None and before.marked and not turn.marked:
        return None
    return gist.exchange(turn, before)


def _turns_before(night: Night, turns: Sequence[Turn]) -> dict[int, Turn]:
    """By a turn's number the turn before it in its session."""
    led = _turns_beside(night.graph(), [turn.number for turn in turns], after=False)
    known = {turn.number: turn for turn in turns}
    missing = sorted(set(led.values()) - known.keys())
    if missing:
        found = readable(read_turns(night.store, night.space, missing))
        known.update({turn.number: turn for turn in found})
    return {number: known[other] for number, other in led.items() if other in known}


def _turns_beside(graph: ActiveGraph, numbers: Sequence[int], *, after: bool) -> dict[int, int]:
    """By number the number of the turn after (or before) it in its session."""
    own = [number for number in numbers if graph.row(number) >= 0]
    if not own:
        return {}
    rows = np.array([graph.row(number) for number in own], np.intp)
    beside = graph.adjacent(rows, _TEMPORAL)[after]
    column = graph.column("number")
    return {
        number: int(column[row])
        for number, row in zip(own, beside.tolist(), strict=True)
        if row >= 0
    }


def _message(text: str, turn: Turn) -> Message:
    return Message(content=text, kind=Kind.GIST, time=turn.time, untrusted=turn.marked)


def _gist(found: Gist, item: NewItem) -> NewDerived:
    return NewDerived(
        item=bare(item, Kind.GIST),
        maker="extractive",
        sources=tuple((one.number, one.version, one.start, one.end) for one in found.spans),
        links=((found.number, LinkType.ABSTRACTION.value, ABSTRACTION),),
    )


def bare(item: NewItem, kind: Kind, concepts: bytes = b"") -> NewItem:
    """The item with its vector and without anything that its words are found by."""
    return replace(
        item, kind=kind.value, terms=b"", length=0, facets=b"", keywords=(), event_times=(),
        signals=0, concepts=concepts,
    )  # fmt: skip


# -- Words ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """Words that are nodes already: their `hashes`, `numbers` and `vectors` (v, d), in one order,
    and the `floor` (v,) that a new link of theirs must exceed (`concepts.kin`)."""

    hashes: U64
    numbers: I64
    vectors: F32
    floor: F64


def words(night: Night, row: StepRow) -> Working:
    """Files the words of turns that are new or were edited since the last run, and links those
    that are akin. What comes from outside makes none: it could make up all there is room for."""
    for reached, numbers in batches(night, row, _SAID, BATCH):
        turns = trusted(readable(read_turns(night.store, night.space, numbers)))
        yield Work(plan=_plan_words(night, turns), row=reached, last=False, seen=reached.time)


def _plan_words(night: Night, turns: Sequence[Turn]) -> Plan:
    found = words_of((turn.content, turn.language) for turn in turns)
    said = _said(turns)
    known = _known(night.graph())
    places = {int(value): place for place, value in enumerate(known.hashes.tolist())}
    hashes = {word.term: term_hash(word.term) for word in found}
    unknown = [word for word in found if hashes[word.term] not in places]
    fresh = most_said(unknown, MOST_WORDS - len(places))
    held = {
        int(known.numbers[places[hashes[word.term]]]): said[word.term]
        for word in found
        if hashes[word.term] in places
    }
    items = night.make([_word_message(word, turns) for word in fresh]) if fresh else []
    usable = [(word, item) for word, item in zip(fresh, items, strict=True) if item.vector]
    return Plan(
        derived=tuple(_word(word, item, said[word.term]) for word, item in usable),
        joins=_akin(known, [item for _, item in usable]),
        restated=_noted(night, held),
    )


def _word_message(word: Word, turns: Sequence[Turn]) -> Message:
    return Message(content=word.spelling, kind=Kind.WORD, time=turns[0].time)


def _word(word: Word, item: NewItem, said: Sequence[int]) -> NewDerived:
    return NewDerived(
        item=bare(item, Kind.WORD, pack_terms([word.term])),
        maker="extractive",
        subject=word.term,
        sources=tuple((number, 0, 0, 0) for number in said[:NOTED]),
    )


def _said(turns: Sequence[Turn]) -> dict[str, list[int]]:
    """By term the turns that say it, in order."""
    found: dict[str, list[int]] = {}
    for turn in turns:
        for term in set(analyse(turn.content, turn.language).terms):
            found.setdefault(term, []).append(turn.number)
    return found


def _known(graph: ActiveGraph) -> _Known:
    mask = (graph.column("kind") == _WORD) & graph.column("has_vector") & graph.derived
    if graph.live is not None:
        mask &= graph.live
    rows = np.flatnonzero(mask)
    at, hashes, _ = graph.concepts_of(rows)
    rows = rows[at]
    edges = graph.neighbours(rows, (_RELATED,), inward=False)
    order = np.lexsort((-edges.strength, edges.origin))
    first = np.searchsorted(edges.origin[order], np.arange(len(rows)))
    count = np.bincount(edges.origin, minlength=len(rows))
    full = np.flatnonzero(count >= KIN)
    floor = np.zeros(len(rows), np.float64)
    floor[full] = edges.strength[order][first[full] + KIN - 1]
    return _Known(
        hashes,
        graph.column("number")[rows].astype(np.int64),
        graph.column("vector")[rows].astype(np.float32),
        floor,
    )


def _akin(known: _Known, items: Sequence[NewItem]) -> tuple[tuple[int, int, str, float], ...]:
    """Links between words; the new ones by reference (see `Plan`)."""
    if not items:
        return ()
    own = np.stack([unpacked(item.vector or b"") for item in items])
    first = len(known.numbers)
    vectors = np.concatenate([known.vectors, own]) if first else own

    def reference(place: int) -> int:
        return int(known.numbers[place]) if place < first else first - 1 - place

    return tuple(
        (reference(one.source), reference(one.target), LinkType.RELATED.value, one.cosine)
        for one in kin(vectors, first=first, floor=known.floor)
    )


def _noted(night: Night, held: Mapping[int, Sequence[int]]) -> tuple[Restated, ...]:
    """Known words that rest on few turns, with those that say it now."""
    restated = []
    for one in night.store.derived(night.space, sorted(held)) if held else ():
        before = [source.source for source in one.sources]
        after = list(dict.fromkeys([*before, *held[one.item.number]]))[:NOTED]
        if len(after) > len(before) and one.state == "current":
            sources = tuple((number, 0, 0, 0) for number in after)
            restated.append(Restated(number=one.item.number, sources=sources, confidence=None))
    return tuple(restated)


def still_said(night: Night, one: DerivedRow) -> Restated | None:
    """What becomes of a word when a turn that said it was edited or deleted: it rests on those that
    say it still; None: nobody does."""
    numbers = list(dict.fromkeys(source.source for source in one.sources))
    turns = trusted(read_turns(night.store, night.space, numbers))
    left = _said(turns).get(one.subject, [])
    if not left:
        return None
    sources = tuple((number, 0, 0, 0) for number in left)
    return Restated(number=one.item.number, sources=sources, confidence=None)

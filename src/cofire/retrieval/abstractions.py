"""What sleep has made of a space, as terms of a score: gists and words that are akin.

    gist   a sentence, an exchange or a fact that stands for the memory matches the question
           better than the memory itself
    kin    the memory has words that are akin to the question's ("hiking" for "activities")

Both are spreading over links that consolidation left: from a gist or record along abstraction and
evidence links to the memories it rests on, and from a word of the question along related links to
other words of the space and to the memories that have them. Both take the strongest way and never
a sum. In a space that never slept, `gist` is 0, and `kin` goes by the memory's own words.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from cofire.dynamics.arrays import F64, I32, U64, Bool, Rows, distinct
from cofire.graph.active import ActiveGraph
from cofire.store.records import KIND_CODES, LINK_CODES
from cofire.types import Kind, LinkType

WORD = KIND_CODES[Kind.WORD.value]
CONCEPT = KIND_CODES[Kind.CONCEPT.value]
_RESTS = (LINK_CODES[LinkType.ABSTRACTION.value], LINK_CODES[LinkType.EVIDENCE.value])
_AKIN = (LINK_CODES[LinkType.RELATED.value],)
TELLING = 4.0
"""idf from which a word says all it can of a memory: in about one of fifty."""
KEPT_AKIN = 256
"""Words of questions whose akin words are kept with a snapshot, at most."""


@dataclass(frozen=True, slots=True)
class Abstractions:
    """Records of a snapshot that stand for memories: pair i says that `record[i]` stands for
    `memory[i]` (rows), in the order of `memory`. `rows` (size,): which rows are such records.

    `first` (size + 1,): where the pairs of each memory begin; `by_record` and `first_by_record`
    the same from the other side: the memories by record, and where those of each begin."""

    record: Rows
    memory: Rows
    rows: Bool
    first: Rows
    by_record: Rows
    first_by_record: Rows

    @classmethod
    def of_pairs(cls, record: Rows, memory: Rows, size: int) -> Abstractions:
        order = np.lexsort((record, memory))
        standing = np.zeros(size, np.bool_)
        standing[record] = True
        return cls(
            record=record[order],
            memory=memory[order],
            rows=standing,
            first=_begins(memory, size),
            by_record=memory[np.argsort(record, kind="stable")],
            first_by_record=_begins(record, size),
        )

    def __len__(self) -> int:
        return len(self.record)

    def of(self, rows: Rows) -> tuple[Rows, Rows]:
        """(position within ascending `rows`, record) of every record that stands for one."""
        at, places = _pairs(self.first, rows)
        return at, self.record[places]

    def reached(self, records: Rows) -> Rows:
        """The memories that some records stand for, ascending."""
        _, places = _pairs(self.first_by_record, records)
        return distinct(self.by_record[places])


def _begins(rows: Rows, size: int) -> Rows:
    """Where the pairs of each row begin (size + 1,) once they are in the order of `rows`."""
    first = np.zeros(size + 1, np.intp)
    np.cumsum(np.bincount(rows, minlength=size), out=first[1:])
    return first


def _pairs(first: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """(position within `rows`, place) of every pair of these rows."""
    begin = first[rows]
    count = first[rows + 1] - begin
    at = np.repeat(np.arange(len(rows)), count)
    return at, np.arange(len(at)) + np.repeat(begin - np.cumsum(count) + count, count)


def abstractions_of(graph: ActiveGraph) -> Abstractions:
    """The abstractions of a snapshot; kept with it. A name or a word is no statement that could
    match a question in a memory's place."""
    kept: Abstractions | None = graph.cache.get("abstractions")
    if kept is None:
        kind = graph.table["kind"]
        made = graph.derived & graph.table["has_vector"] & (kind != WORD) & (kind != CONCEPT)
        if graph.live is not None:
            made &= graph.live
        rows = np.flatnonzero(made)
        edges = graph.neighbours(rows, _RESTS, inward=False)
        record, memory = rows[edges.origin], edges.target.astype(np.intp)
        kept = Abstractions.of_pairs(record, memory, graph.size)
        graph.cache["abstractions"] = kept
    return kept


@dataclass(frozen=True, slots=True)
class Words:
    """Words of a snapshot as nodes: row `row[i]` is of the word hashed `term[i]`, ascending."""

    term: U64
    row: Rows
    term_of_row: dict[int, int]

    def node(self, term: int) -> int:
        """The row of a word; -1: it is none."""
        place = int(self.term.searchsorted(np.uint64(term)))
        known = place < len(self.term) and int(self.term[place]) == term
        return int(self.row[place]) if known else -1


class Akin(NamedTuple):
    """A word akin to one of the question, at row `word`: `rows` that have it get `amount`."""

    word: int
    rows: I32
    amount: float


class AskedTerm(NamedTuple):
    """A term of the question that the space knows: its `share` of the idf of all of these, the
    `rows` that have it, what they get for that, and the words akin to it."""

    share: float
    rows: I32
    amount: float
    akin: tuple[Akin, ...]


def kin(graph: ActiveGraph, terms: U64, idfs: F64, mask: Bool | None) -> F64:
    """kin (size,) of every row, in [0, 1]:

        say(w) = min(idf(w) / 4, 1)
        kin(m) = Σ_t idf(t) · max over words w of m of link(t, w) · say(w)  /  Σ_t idf(t)

    over the question's `terms` (t,) (hashes) with `idfs` (t,) that the space knows; link(t, t) = 1,
    other links are what consolidation found akin. 0 outside of `mask`.
    """
    total = np.zeros(graph.size, np.float64)
    for term in asked_terms(graph, terms, idfs):
        best = np.zeros(graph.size, np.float64)
        ways = [(term.amount, term.rows), *((akin.amount, akin.rows) for akin in term.akin)]
        for amount, rows in sorted(ways, key=itemgetter(0)):  # the strongest is written last
            best[rows] = amount
        best *= term.share
        total += best
    if mask is not None:
        total *= mask
    return total


def akin_words(graph: ActiveGraph, terms: U64, idfs: F64, row: int) -> list[tuple[int, float]]:
    """(row of a word, what it gives to the memory at `row`) for each term of the question whose
    strongest way to it is over a word akin."""
    given = []
    for term in asked_terms(graph, terms, idfs):
        own = term.amount if row in term.rows else 0.0
        ways = [(akin.amount, -akin.word) for akin in term.akin if row in akin.rows]
        if ways and max(ways)[0] > own:
            amount, word = max(ways)
            given.append((-word, term.share * amount))
    return given


def asked_terms(graph: ActiveGraph, terms: U64, idfs: F64) -> list[AskedTerm]:
    """What is known of the question's terms (t,) with their `idfs` (t,)."""
    if not len(terms):
        return []
    words = words_of(graph)
    known = [
        (float(idf), found, words.node(int(term)))
        for term, idf, found in zip(
            terms.tolist(), idfs.tolist(), graph.terms_rows(terms), strict=True
        )
    ]
    known = [one for one in known if len(one[1].rows) or one[2] >= 0]
    total = sum(idf for idf, _, _ in known)
    if total <= 0.0:
        return []
    akin = _akin(graph, words, [node for _, _, node in known if node >= 0])
    return [
        AskedTerm(idf / total, found.rows, _say(found.idf), tuple(akin.get(node, ())))
        for idf, found, node in known
    ]


def _akin(graph: ActiveGraph, words: Words, nodes: list[int]) -> dict[int, list[Akin]]:
    """By node the words akin to it; those of the last nodes asked for are kept with the snapshot:
    most questions have words that others have, too."""
    kept: dict[int, list[Akin]] = graph.cache.setdefault("akin", {})
    known = {node: found for node in nodes if (found := kept.get(node)) is not None}
    unknown = [node for node in nodes if node not in known]
    if unknown:
        made = _found_akin(graph, words, unknown)
        if len(kept) + len(made) > KEPT_AKIN:
            kept.clear()
        kept.update(made)
        known.update(made)
    return known


def _found_akin(graph: ActiveGraph, words: Words, nodes: list[int]) -> dict[int, list[Akin]]:
    akin: dict[int, list[Akin]] = {node: [] for node in nodes}
    edges = graph.neighbours(np.array(nodes, np.intp), _AKIN, inward=False)
    others = [
        (nodes[origin], row, strength)
        for origin, row, strength in zip(
            edges.origin.tolist(), edges.target.tolist(), edges.strength.tolist(), strict=True
        )
        if row in words.term_of_row
    ]
    if not others:
        return akin
    terms = np.array([words.term_of_row[row] for _, row, _ in others], np.uint64)
    for (node, row, strength), found in zip(others, graph.terms_rows(terms), strict=True):
        akin[node].append(Akin(row, found.rows, strength * _say(found.idf)))
    return akin


def _say(idf: float) -> float:
    return min(idf / TELLING, 1.0)


def words_of(graph: ActiveGraph) -> Words:
    """The words of a snapshot; kept with it."""
    kept: Words | None = graph.cache.get("words")
    if kept is None:
        mask: Bool = graph.table["kind"] == WORD
        if graph.live is not None:
            mask = mask & graph.live
        rows = np.flatnonzero(mask)
        at, hashes, _ = graph.concepts_of(rows)
        order = np.argsort(hashes, kind="stable")
        terms, held = hashes[order], rows[at[order]]
        kept = Words(terms, held, dict(zip(held.tolist(), terms.tolist(), strict=True)))
        graph.cache["words"] = kept
    return kept

"""The terms of a score written down plainly, one candidate at a time: what `retrieval.features`
must give for a small space in which every memory is a candidate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cofire.graph.active import ActiveGraph
from cofire.retrieval.profiles import Profile
from cofire.store.records import Changes

TEMPORAL = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A memory: term and concept counts, a unit vector (None: none), its session (0: none), the
    hashes of its speaker's names, its time in µs, when what it tells of was, and importance."""

    terms: Mapping[int, int]
    concepts: Mapping[int, int] = field(default_factory=dict)
    vector: Sequence[float] | None = None
    session: int = 0
    names: tuple[int, ...] = ()
    time: int = 0
    event: tuple[int, int] | None = None
    importance: int = 5


def bm25(
    documents: Sequence[Mapping[int, int]],
    lengths: Sequence[int],
    query: Sequence[int],
    k1: float,
    b: float,
) -> list[float]:
    """Documents without terms count for nothing but themselves."""
    real = [length for length in lengths if length]
    average = sum(real) / len(real) if real else 0.0
    scores = [0.0] * len(documents)
    for term in query:
        holders = sum(term in document for document in documents)
        idf = math.log(1 + (len(real) - holders + 0.5) / (holders + 0.5))
        for index, document in enumerate(documents):
            count = document.get(term, 0)
            if count:
                norm = k1 * (1 - b + (b * lengths[index] / average if average else 0.0))
                scores[index] += idf * count * (k1 + 1) / (count + norm)
    return scores


def idfs(turns: Sequence[Turn], query: Sequence[int]) -> list[float]:
    count = sum(bool(turn.terms) for turn in turns)
    found = []
    for term in query:
        holders = sum(term in turn.terms for turn in turns)
        found.append(math.log(1 + (count - holders + 0.5) / (holders + 0.5)))
    return found


def spread_coverage(
    turns: Sequence[Turn],
    before: Sequence[int],
    after: Sequence[int],
    query: Sequence[int],
    window: Mapping[int, float],
) -> list[float]:
    """Share of the question's idf that a memory or, discounted, those around it hold."""
    weights = idfs(turns, query)
    total = sum(weights) or 1.0
    scores = []
    for at in range(len(turns)):
        score = 0.0
        for term, weight in zip(query, weights, strict=True):
            best = 1.0 if term in turns[at].terms else 0.0
            for step, share in window.items():
                other = walk(at, step, before, after)
                if other >= 0 and term in turns[other].terms:
                    best = max(best, share)
            score += weight * best
        scores.append(score / total)
    return scores


def walk(at: int, step: int, before: Sequence[int], after: Sequence[int]) -> int:
    """The turn so many steps away, -1 if there is none."""
    way = before if step < 0 else after
    for _ in range(abs(step)):
        at = way[at] if at >= 0 else -1
    return at


def chain(turns: Sequence[Turn]) -> tuple[list[int], list[int]]:
    """The turns before and after each in its session, -1 for none."""
    before, after = [-1] * len(turns), [-1] * len(turns)
    last: dict[int, int] = {}
    for at, turn in enumerate(turns):
        if turn.session:
            if turn.session in last:
                before[at] = last[turn.session]
                after[last[turn.session]] = at
            last[turn.session] = at
    return before, after


def session_bm25(turns: Sequence[Turn], query: Sequence[int], profile: Profile) -> list[float]:
    """BM25 of each memory's session as one text, divided by the best session's."""
    sessions = sorted({turn.session for turn in turns if turn.session})
    texts = []
    for session in sessions:
        counts: dict[int, int] = {}
        for turn in turns:
            if turn.session == session:
                for term, count in turn.terms.items():
                    counts[term] = min(counts.get(term, 0) + count, 255)
        texts.append(counts)
    lengths = [
        sum(sum(turn.terms.values()) for turn in turns if turn.session == session)
        for session in sessions
    ]
    constants = profile.session_bm25
    average = sum(lengths) / len(lengths) if lengths else 0.0
    scores = dict.fromkeys(sessions, 0.0)
    for term in query:
        holders = sum(term in text for text in texts)
        idf = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for session, text, length in zip(sessions, texts, lengths, strict=True):
            if term in text:
                relative = length / average if average else 1.0
                norm = constants.k1 * (1 - constants.b + constants.b * relative)
                scores[session] += idf * text[term] * (constants.k1 + 1) / (text[term] + norm)
    best = max(scores.values(), default=0.0)
    return [scores[turn.session] / best if turn.session and best > 0 else 0.0 for turn in turns]


def concept_activation(turns: Sequence[Turn], energy: Sequence[float]) -> list[float]:
    """Σ over a memory's concepts of the strongest other seed's energy / √fan."""
    arrived = []
    for at, turn in enumerate(turns):
        total = 0.0
        for concept in turn.concepts:
            holders = [other for other, one in enumerate(turns) if concept in one.concepts]
            others = [energy[other] for other in holders if other != at]
            # Of two equal ones the first counts as the strongest; either way this is the rest.
            total += max(others, default=0.0) / math.sqrt(len(holders))
        arrived.append(total)
    return arrived


def cosines(turns: Sequence[Turn], vector: Sequence[float]) -> NDArray[np.float64]:
    """0 for a memory without a vector. Vectors as they are stored: float16."""
    query = np.asarray(vector, np.float64)
    query = query / np.linalg.norm(query)
    return np.array(
        [
            0.0
            if turn.vector is None
            else float(np.asarray(turn.vector, np.float16).astype(np.float64) @ query)
            for turn in turns
        ]
    )


def graph_of(turns: Sequence[Turn], dimension: int = 4) -> ActiveGraph:
    """The space as the store would give it: numbers from 1, uids in the same order, temporal links
    within sessions."""
    before, _ = chain(turns)
    rows = []
    for number, turn in enumerate(turns, 1):
        start, end = turn.event or (None, None)
        vector = None if turn.vector is None else np.asarray(turn.vector, "<f2").tobytes()
        rows.append(
            (
                *(number, number.to_bytes(16, "big"), 1, 0, 0, 0, turn.session, turn.time),
                *(start, end, None, turn.importance, 0, 0, sum(turn.terms.values())),
                *(_packed(turn.terms), _packed(turn.concepts)),
                np.array(sorted(turn.names), "<u8").tobytes(),
                *(vector, None, None, 0),
            )
        )
    changes = Changes(
        revision=1,
        rebuild=True,
        rows=rows,
        links=[(last + 1, at + 1, TEMPORAL, 0.5, 1) for at, last in enumerate(before) if last >= 0],
        removed_items=[],
        removed_links=[],
    )
    return ActiveGraph.empty(dimension).apply(changes)


def _packed(counts: Mapping[int, int]) -> bytes:
    keys = sorted(counts)
    return np.array(keys, "<u8").tobytes() + bytes(counts[key] for key in keys)

"""Which questions a memory learns from, and which it is then asked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import F64

SAME = 0.9
"""Cosine from which a test question is near-identical to a training question, and dropped."""
CHRONOLOGICAL = "chronological"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Positions of questions: those learned from, in order, and those tested; `shared` are tested
    questions with a piece of evidence that a question learned from has too. `dropped` counts
    those too like one learned from to be tested."""

    name: str
    train: tuple[int, ...]
    test: tuple[int, ...]
    shared: frozenset[int]
    dropped: int


def random_orders(count: int, splits: int, seed: int) -> list[tuple[str, tuple[int, ...]]]:
    """`splits` named orders of `count` questions, the same for the same seed."""
    orders = []
    for number in range(splits):
        order = list(range(count))
        random.Random(1_000 * seed + number).shuffle(order)  # noqa: S311  no secret
        orders.append((str(number), tuple(order)))
    return orders


def chronological_order(
    evidence: Sequence[Sequence[str]], place: dict[str, int]
) -> tuple[int, ...]:
    """Questions in the order in which they could first be answered: by their latest evidence.
    `place` is each turn's place in the conversation."""
    latest = [max(place[id] for id in one) for one in evidence]
    return tuple(sorted(range(len(evidence)), key=lambda question: (latest[question], question)))


def split_at(
    name: str,
    order: Sequence[int],
    share: float,
    evidence: Sequence[Sequence[str]],
    vectors: F64,
) -> Split:
    """The first `share` of the order to learn from, the rest to test, but for what is
    near-identical. `vectors` (n, d) are the questions' unit vectors; a zero vector is like none."""
    count = round(share * len(order))
    train, rest = tuple(order[:count]), list(order[count:])
    if train and rest:
        likeness = (vectors[rest] @ vectors[list(train)].T).max(axis=1)
        test = tuple(one for one, like in zip(rest, likeness, strict=True) if like < SAME)
    else:
        test = tuple(rest)
    known = {id for question in train for id in evidence[question]}
    return Split(
        name=name,
        train=train,
        test=test,
        shared=frozenset(one for one in test if not known.isdisjoint(evidence[one])),
        dropped=len(rest) - len(test),
    )


def permuted(sets: Sequence[Sequence[str]], seed: int) -> list[tuple[str, ...]]:
    """The sets dealt out anew, so that with two or more none stays where it was."""
    order = list(range(len(sets)))
    random.Random(seed).shuffle(order)  # noqa: S311  no secret
    dealt: list[tuple[str, ...]] = [()] * len(sets)
    for at, receiver in enumerate(order):
        dealt[receiver] = tuple(sets[order[at - 1]])
    return dealt


def unit_vectors(vectors: Sequence[F64]) -> F64:
    """Rows of length 1; zeros stay zeros."""
    stacked = np.array(vectors, np.float64)
    length = np.linalg.norm(stacked, axis=1, keepdims=True)
    return stacked / np.where(length > 0.0, length, 1.0)

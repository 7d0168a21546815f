"""One conversation to learn from: what is asked of it, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cofire.evaluation.adjusting import Untaught, untaught
from cofire.evaluation.arms import TRUSTED, K, Lesson, Pupil
from cofire.evaluation.benches import Bench, copied
from cofire.evaluation.splits import (
    CHRONOLOGICAL,
    Split,
    chronological_order,
    random_orders,
    split_at,
    unit_vectors,
)
from cofire.memory import Memory
from cofire.models import Embedder
from cofire.retrieval.profiles import Profile

SEED = 0
"""Of the random orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What one test question brought back: its evidence by place (0 first), None where it was
    not among the `K` returned."""

    conversation: int
    question: int
    split: str
    category: int
    shared: bool
    places: tuple[int | None, ...]

    @property
    def multi(self) -> bool:
        """Whether there are several pieces of evidence."""
        return len(self.places) > 1

    def found(self, k: int) -> frozenset[int]:
        """Which pieces of its evidence are among the first k."""
        return frozenset(
            at for at, place in enumerate(self.places) if (K if place is None else place) < k
        )

    def recall(self, k: int) -> float:
        """Evidence recall@k, in [0, 1]."""
        return len(self.found(k)) / len(self.places)


@dataclass(slots=True)
class Course:
    """One conversation: its frozen store, the recall that learning builds on, untaught rankings by
    it and orders of questions."""

    index: int
    bench: Bench
    store: Path
    embedder: Embedder | str | None
    ground: Profile
    ranked: list[Untaught]
    orders: list[tuple[str, tuple[int, ...]]]
    split: Callable[[str, Sequence[int], float], Split]

    def lessons(self, train: Sequence[int]) -> list[Lesson]:
        """The training questions."""
        asked, evidence = self.bench.asked(), self.bench.evidence
        return [
            Lesson(
                asked[question],
                evidence[question],
                tuple(
                    sorted(set(evidence[question]).intersection(self.ranked[question].returned()))
                ),
            )
            for question in train
        ]

    @contextmanager
    def pupil(self, seed: int) -> Iterator[Pupil]:
        """A copy of the store to teach."""
        with copied(self.store, self.embedder, (TRUSTED,)) as (memory, workings):
            yield Pupil(
                memory, workings, self.bench.now, len(self.bench.session_of), seed, self.ground
            )

    def tested(self, split: Split, ranked: Mapping[int, Sequence[str]]) -> list[Tested]:
        """What the test questions brought back."""
        found = []
        for question in split.test:
            place = {id: at for at, id in enumerate(ranked[question][:K])}
            found.append(
                Tested(
                    conversation=self.index,
                    question=question,
                    split=split.name,
                    category=self.bench.questions[question].category,
                    shared=question in split.shared,
                    places=tuple(place.get(id) for id in self.bench.evidence[question]),
                )
            )
        return found

    def asked(self, split: Split, memory: Memory, profile: Profile) -> list[Tested]:
        """Every test question asked of a memory. A profile may return in order of time; what is
        scored is the order of scores."""
        questions = self.bench.asked()
        ranked = {}
        for question in split.test:
            recall = memory.recall(questions[question], K, profile=profile, now=self.bench.now)
            ranked[question] = [hit.id for hit in sorted(recall, key=lambda hit: -hit.score)]
        return self.tested(split, ranked)


def course_of(
    index: int,
    bench: Bench,
    folder: Path,
    embedder: Embedder | str | None,
    *,
    splits: int,
    ground: Profile,
) -> Course:
    """Copies the store into `folder` and ranks every question once. `splits` random orders of the
    questions and the chronological one."""
    store = folder / f"{index}.db"
    bench.memory.backup(store)
    vectors = unit_vectors(
        [bench.workings.embedder.embed_query(text)[0].astype(np.float64) for text in bench.asked()]
    )
    place = {id: at for at, id in enumerate(bench.session_of)}
    orders = random_orders(len(bench.questions), splits, SEED)
    orders.append((CHRONOLOGICAL, chronological_order(bench.evidence, place)))
    return Course(
        index=index,
        bench=bench,
        store=store,
        embedder=embedder,
        ground=ground,
        ranked=untaught(bench, ground),
        orders=orders,
        split=lambda name, order, share: split_at(name, order, share, bench.evidence, vectors),
    )

"""Choosing a profile's constants without looking at what is scored.

Leave one conversation out: on the others, for every point of a small grid of constants, fit the
weights (`fitting`); keep the point that ranks their evidence best; score the conversation left out
with it. No constant of the profile that is scored has seen the conversation's questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from types import MappingProxyType
from typing import Protocol

import numpy as np

from cofire.dynamics.arrays import F64
from cofire.dynamics.scoring import Bm25
from cofire.evaluation.fitting import Example, fit_weights
from cofire.errors import InputError
from cofire.memory import Memory
from cofire.retrieval.features import TERMS
from cofire.retrieval.profiles import Profile
from cofire.types import Progress

OBJECTIVE = (10, 30)
"""The grid is judged by mean evidence recall at these k, on the conversations kept."""


class Questions(Protocol):
    """A remembered conversation with questions whose evidence is known."""

    @property
    def memory(self) -> Memory: ...
    @property
    def now(self) -> datetime: ...
    @property
    def evidence(self) -> tuple[tuple[str, ...], ...]: ...
    def asked(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """What was chosen for one conversation left out."""

    left_out: int
    profile: Profile


@dataclass(frozen=True, slots=True)
class Measured:
    """One question's candidates and how many pieces of evidence there are, found or not."""

    example: Example
    wanted: int


def grid(profile: Profile) -> Iterator[Profile]:
    """Profiles that differ in the constants which are not weights."""
    for k1, reach in product((0.9, 1.4), (1.0, 0.75)):
        yield replace(
            profile,
            bm25=Bm25(k1=k1, b=profile.bm25.b),
            window=_scaled(profile.window, reach),
            even_window=_scaled(profile.even_window, reach),
        )


def _scaled(window: Mapping[int, float], reach: float) -> Mapping[int, float]:
    return MappingProxyType({step: share * reach for step, share in window.items()})


def measure(bench: Questions, profile: Profile) -> list[Measured]:
    """The terms of every candidate of every question."""
    measured = []
    for question, evidence in zip(bench.asked(), bench.evidence, strict=True):
        ids, terms = bench.memory.candidates(question, profile=profile, now=bench.now)
        place = {id: index for index, id in enumerate(ids)}
        found = np.array([place[id] for id in evidence if id in place], np.int64)
        measured.append(Measured(Example(terms, found), len(evidence)))
    return measured


def fitted(profile: Profile, measured: Sequence[Measured], name: str) -> Profile:
    """The profile with weights fitted to some questions; terms it does not use stay unused."""
    used = [index for index, term in enumerate(TERMS) if profile.uses(term)]
    weights = fit_weights(
        [Example(one.example.terms[:, used], one.example.evidence) for one in measured]
    )
    named = {TERMS[index]: float(weight) for index, weight in zip(used, weights, strict=True)}
    return replace(profile, name=name, weights=MappingProxyType(named))


def goodness(profile: Profile, measured: Sequence[Measured]) -> float:
    """Mean evidence recall over `OBJECTIVE`, in [0, 1]."""
    weights = np.array([profile.weights.get(term, 0.0) for term in TERMS])
    return float(np.mean([_recall(one, weights) for one in measured]))


def _recall(one: Measured, weights: F64) -> float:
    scores = one.example.terms @ weights
    ranks = np.array([np.count_nonzero(scores > scores[e]) for e in one.example.evidence])
    return float(np.mean([np.count_nonzero(ranks < k) / one.wanted for k in OBJECTIVE]))


def cross_validated(
    benches: Sequence[Questions], profile: Profile, told: Progress | None = None
) -> list[Fold]:
    """For each conversation the profile chosen on all others. Raises InputError for fewer than
    two conversations."""
    if len(benches) < 2:
        raise InputError("leaving one conversation out needs a file with at least two")
    points = list(grid(profile))
    best: list[tuple[float, Profile]] = [(-1.0, profile)] * len(benches)
    for step, point in enumerate(points):
        measured = [measure(bench, point) for bench in benches]
        for left_out in range(len(benches)):
            kept = [one for index, some in enumerate(measured) if index != left_out for one in some]
            candidate = fitted(point, kept, f"{profile.name} without conversation {left_out}")
            value = goodness(candidate, kept)
            if value > best[left_out][0]:
                best[left_out] = (value, candidate)
        if told is not None:
            told(step + 1, len(points))
    return [Fold(left_out=index, profile=chosen) for index, (_, chosen) in enumerate(best)]


def best_on_all(benches: Sequence[Questions], profile: Profile) -> Profile:
    """The grid point and weights that fit every conversation: what a release ships."""
    chosen: tuple[float, Profile] = (-1.0, profile)
    for point in grid(profile):
        measured = [one for bench in benches for one in measure(bench, point)]
        candidate = fitted(point, measured, profile.name)
        value = goodness(candidate, measured)
        if value > chosen[0]:
            chosen = (value, candidate)
    return chosen[1]

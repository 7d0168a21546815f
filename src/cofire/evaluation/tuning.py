"""Choosing a profile's constants without looking at what is scored.

Leave one conversation out: on the others, fit the weights (`fitting`) for the profile as it stands
and with each other constant changed in turn; take the changes that rank their evidence better, fit
again, and score the conversation left out with that. No weight and none of the constants of
`alternatives` has seen the conversation's questions. What stays fixed is the form of the score: the
set of terms, the shape of the window, the penalty of the fit; and `depth` and `cutoff`, which weigh
speed and tokens against recall.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Protocol

import numpy as np

from cofire.dynamics.arrays import F64
from cofire.errors import InputError
from cofire.evaluation.fitting import Example, fit_weights
from cofire.memory import Memory
from cofire.retrieval.features import TERMS
from cofire.retrieval.learned import LEARNED
from cofire.retrieval.profiles import Profile
from cofire.types import Progress

OBJECTIVE = (10, 30)
"""Constants are judged by mean evidence recall at these k, on the conversations kept."""


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


def alternatives(profile: Profile) -> Iterator[tuple[str, Profile]]:
    """The profile with one of its constants changed at a time: what is tried besides weights."""
    turn, session = profile.bm25, profile.session_bm25
    yield "k1", replace(profile, bm25=replace(turn, k1=turn.k1 * 1.5))
    yield "b", replace(profile, bm25=replace(turn, b=turn.b * 1.5))
    yield "session k1", replace(profile, session_bm25=replace(session, k1=session.k1 * 1.5))
    yield "session b", replace(profile, session_bm25=replace(session, b=session.b * 0.5))
    yield "reach", replace(profile, window=_scaled(profile.window, 0.75))
    yield "seeds", replace(profile, seeds=profile.seeds * 2)
    yield "fan", replace(profile, fan=profile.fan * 2)
    yield "days after", replace(profile, days_after=profile.days_after * 2)


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
    """The profile with weights fitted to some questions; terms it does not use stay unused, and
    those of what use has taught stay as they are: nothing was taught yet."""
    used = [index for index, term in enumerate(TERMS) if profile.uses(term) and term not in LEARNED]
    weights = fit_weights(
        [Example(one.example.terms[:, used], one.example.evidence) for one in measured]
    )
    named = {TERMS[index]: float(weight) for index, weight in zip(used, weights, strict=True)}
    taught = {term: profile.weights[term] for term in LEARNED if profile.uses(term)}
    return replace(profile, name=name, weights=MappingProxyType({**named, **taught}))


def goodness(profile: Profile, measured: Sequence[Measured]) -> float:
    """Mean evidence recall over `OBJECTIVE`, in [0, 1]."""
    weights = np.array([profile.weights.get(term, 0.0) for term in TERMS])
    return float(np.mean([_recall(one, weights) for one in measured]))


def _recall(one: Measured, weights: F64) -> float:
    scores = one.example.terms @ weights
    ranks = np.array([np.count_nonzero(scores > scores[e]) for e in one.example.evidence])
    return float(np.mean([np.count_nonzero(ranks < k) / one.wanted for k in OBJECTIVE]))


class _Bank:
    """Measurements by profile constants and conversation, each made once."""

    def __init__(self, benches: Sequence[Questions], told: Progress | None) -> None:
        self._benches = benches
        self._told = told
        self._known: dict[tuple[object, ...], list[Measured]] = {}

    def of(self, profile: Profile, kept: Sequence[int]) -> list[Measured]:
        """Every question of the conversations `kept`."""
        return [one for index in kept for one in self._measured(profile, index)]

    def _measured(self, profile: Profile, index: int) -> list[Measured]:
        key = (*_constants(profile), index)
        if key not in self._known:
            self._known[key] = measure(self._benches[index], profile)
            if self._told is not None:
                self._told(len(self._known), None)
        return self._known[key]


def _constants(profile: Profile) -> tuple[object, ...]:
    """What of a profile decides the terms of candidates."""
    return (
        profile.bm25,
        profile.session_bm25,
        tuple(profile.window.items()),
        profile.depth,
        profile.seeds,
        profile.fan,
        profile.days_after,
        frozenset(term for term in TERMS if profile.uses(term)),
    )


def _chosen(bank: _Bank, kept: Sequence[int], profile: Profile, name: str) -> Profile:
    """The profile with every constant chosen on the conversations `kept`: each alternative that
    ranks their evidence better is taken, then the weights are fitted."""
    measured = bank.of(profile, kept)
    start = goodness(fitted(profile, measured, name), measured)
    point = profile
    for constant, candidate in alternatives(profile):
        tried = bank.of(candidate, kept)
        if goodness(fitted(candidate, tried, name), tried) > start:
            point = dict(alternatives(point))[constant]
    return fitted(point, bank.of(point, kept), name)


def cross_validated(
    benches: Sequence[Questions], profile: Profile, told: Progress | None = None
) -> list[Fold]:
    """For each conversation the profile chosen on all others. Raises InputError for fewer than
    two conversations."""
    if len(benches) < 2:
        raise InputError("leaving one conversation out needs a file with at least two")
    bank = _Bank(benches, told)
    folds = []
    for left_out in range(len(benches)):
        kept = [index for index in range(len(benches)) if index != left_out]
        name = f"{profile.name} without conversation {left_out}"
        folds.append(Fold(left_out=left_out, profile=_chosen(bank, kept, profile, name)))
    return folds


def best_on_all(
    benches: Sequence[Questions], profile: Profile, told: Progress | None = None
) -> Profile:
    """The constants chosen on every conversation: what a release ships."""
    return _chosen(_Bank(benches, told), range(len(benches)), profile, profile.name)

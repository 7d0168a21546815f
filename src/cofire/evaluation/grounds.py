"""Recalls for learning to build on: the default, and weaker ones that leave it more to do.

What learning can add depends on what a memory finds that learned nothing. The weaker grounds take
fewer terms of the score, at the weight that the default gives them or gives a cosine: nothing is
fitted to them, and what is learned weighs what it does by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from cofire.errors import InputError
from cofire.retrieval.profiles import AWAKE, MECHANISMS, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A recall to build on, and what it goes by."""

    profile: Profile
    says: str

    @property
    def name(self) -> str:
        """What the profile is called."""
        return self.profile.name


SIMPLE = MECHANISMS["temporal_spreading"] | MECHANISMS["speaker"] | {"similarity"}
"""The default without sessions, concepts, times and priors."""


def _weaker(name: str, weights: Mapping[str, float]) -> Profile:
    """The default with these weights and those of what is learned. No cutoff: the default's is in
    units of the whole score."""
    learned = {term: AWAKE.weights[term] for term in MECHANISMS["learning"]}
    weighed = MappingProxyType({**weights, **learned})
    return replace(AWAKE, name=name, weights=weighed, cutoff=None, gate=None)


_COSINE = AWAKE.weights["similarity"]
_GROUNDS = (
    Ground(profile=AWAKE, says="the default"),
    Ground(
        profile=_weaker(
            "simple",
            {term: AWAKE.weights[term] for term in AWAKE.weights if term in SIMPLE},
        ),
        says="the default's vectors, words, turns around and speaker, no more",
    ),
    Ground(
        profile=_weaker("fusion", {"similarity": _COSINE, "bm25": _COSINE}),
        says="vectors and BM25 in equal parts",
    ),
    Ground(profile=_weaker("dense", {"similarity": _COSINE}), says="vectors only"),
)
GROUNDS: Mapping[str, Ground] = MappingProxyType({ground.name: ground for ground in _GROUNDS})
"""By name, the strongest first."""


def ground_named(name: str) -> Ground:
    """The ground of that name. Raises InputError."""
    if name not in GROUNDS:
        raise InputError(f"there is no ground {name!r}; use one of {', '.join(GROUNDS)}")
    return GROUNDS[name]

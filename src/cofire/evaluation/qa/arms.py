"""Arms: what is compared, as data. A way to find context, and how much of it.

The names of the columns are names of profiles, `without(...)` of one mechanism of `cofire`, or
"full context", which recalls nothing. What each ablation means is written once, in `ABLATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from cofire.consolidation.steps import STEPS
from cofire.errors import InputError
from cofire.retrieval.profiles import AWAKE, COFIRE, MECHANISMS, Profile, asked_of, profile_named

DEPTH = 60
"""Memories recalled for a context that tokens bound."""
SEMANTIC = 5
"""Records of the semantic store beside them, at most."""
FORGETTING_STEPS = frozenset(
    {"prune", "cap", "staircase", "archive", "adaptive", "dormant", "shapes"}
)
"""Steps of consolidation by which something fades, is archived or leaves a shape."""
KEEPING_STEPS = tuple(step.name for step in STEPS if step.name not in FORGETTING_STEPS)
"""What runs in "without forgetting"."""
FULL = "full context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One column of the tables.

    `tokens`: wordpieces of context at most (None: `k` alone bounds it), `k`: memories recalled,
    `semantic`: records of the semantic store at most. `slept`: asked of a memory that was
    consolidated once, `forgetting`: with the steps that let things fade. `gate`: it may refuse
    before the model is asked. `learn`: what answers cite teaches while the run goes on. `full`: the
    whole material is the context and nothing is recalled. `base` is the name without the bound;
    `left_out`: the profile's constants are chosen without the material that is asked.
    """

    name: str
    profile: Profile
    tokens: int | None = 1000
    k: int = DEPTH
    slept: bool = True
    forgetting: bool = True
    gate: bool = True
    semantic: int = SEMANTIC
    learn: bool = False
    full: bool = False
    left_out: bool = False
    base: str = ""

    def __post_init__(self) -> None:
        if not self.base:
            object.__setattr__(self, "base", self.name)

    @property
    def bounded(self) -> str:
        """What bounds the context, as in "1,000 tokens" or "10 memories"."""
        if self.full:
            return "everything"
        return f"{self.k} memories" if self.tokens is None else f"{self.tokens:,} tokens"

    def at(self, *, tokens: int | None = None, k: int | None = None) -> Arm:
        """This arm with a context of so many tokens, or of so many memories."""
        if self.full:
            return self
        if tokens is not None:
            return replace(self, name=f"{self.base} @{tokens}", tokens=tokens, k=DEPTH)
        memories = self.k if k is None else k
        return replace(self, name=f"{self.base} k={memories}", tokens=None, k=memories)


def _without(*terms: str) -> Callable[[Arm], Arm]:
    def changed(arm: Arm) -> Arm:
        kept = {name: weight for name, weight in arm.profile.weights.items() if name not in terms}
        return replace(arm, profile=replace(arm.profile, weights=MappingProxyType(kept)))

    return changed


_NEIGHBOURS = MECHANISMS["temporal_spreading"] - {"spread_coverage"}
_CONCEPTS = MECHANISMS["concept_spreading"]
_SEMANTIC_TERMS = _CONCEPTS | MECHANISMS["abstraction"] | MECHANISMS["kin"]


def _alone(arm: Arm) -> Arm:
    """What a memory itself says still counts (`spread_coverage` over a window of no steps), what is
    said around it does not."""
    cut = _without(*_NEIGHBOURS)(arm)
    return replace(cut, profile=replace(cut.profile, window=MappingProxyType({})))


def _unspread(arm: Arm) -> Arm:
    return _without(*_CONCEPTS, *MECHANISMS["associations"])(_alone(arm))


def _awake(arm: Arm) -> Arm:
    profile = AWAKE if arm.profile.name == COFIRE.name else arm.profile
    return replace(arm, slept=False, profile=profile)


ABLATIONS: Mapping[str, tuple[str, Callable[[Arm], Arm]]] = MappingProxyType(
    {
        "learning": (
            "nothing that was cited teaches (differs only in a run that learns)",
            lambda arm: replace(arm, learn=False),
        ),
        "spreading": (
            "no activation over links: of time, of concepts, or learned",
            _unspread,
        ),
        "consolidation": ("the memory never slept; the default's weights for that", _awake),
        "forgetting": (
            f"slept without the steps {', '.join(sorted(FORGETTING_STEPS))}",
            lambda arm: replace(arm, forgetting=False),
        ),
        "gate": (
            "the model is asked however unsure the recall is",
            lambda arm: replace(arm, gate=False),
        ),
        "semantic nodes": (
            "no records in the context; no concepts, gists or words in the score",
            lambda arm: replace(_without(*_SEMANTIC_TERMS)(arm), semantic=0),
        ),
        "temporal links": ("what was said before and after a turn adds nothing to it", _alone),
    }
)
"""By the word after "without": what it means, and how it changes an arm. Weights are not fitted
anew: what is measured is the loss of the mechanism, not the best recipe that lacks it."""


def arm_named(name: str, *, slept: bool = True, learn: bool = False) -> Arm:
    """The arm of that name, without a bound: a profile, "cofire without learning", "vectors only",
    "full context". Raises InputError."""
    plain = " ".join(name.split())
    if plain == FULL:
        return Arm(
            name=FULL, profile=asked_of(COFIRE, slept=False), tokens=None,
            slept=False, gate=False, semantic=0, full=True,
        )  # fmt: skip
    if plain == "vectors only":
        return replace(arm_named("dense", slept=slept, learn=learn), name=plain, base=plain)
    base, found, mechanism = plain.partition(" without ")
    profile = asked_of(profile_named(base), slept=slept)
    arm = Arm(name=base, profile=profile, slept=slept, learn=learn)
    if not found:
        return arm
    if mechanism not in ABLATIONS:
        raise InputError(f"there is no ablation {mechanism!r}; use one of {', '.join(ABLATIONS)}")
    return replace(ABLATIONS[mechanism][1](arm), name=plain, base=plain)


def arms_for(
    names: Sequence[str],
    *,
    ablations: bool = False,
    tokens: Sequence[int] = (),
    ks: Sequence[int] = (),
    slept: bool = True,
    learn: bool = False,
    left_out: bool = False,
) -> tuple[Arm, ...]:
    """The columns of a run: each name, with each bound.

    `ablations` adds the first profile without each mechanism, "vectors only" and "full context";
    `left_out` adds the first with constants chosen without the material that is asked. Each is
    asked with contexts of `tokens`, and (bounded by nothing else) of `ks` memories; with neither,
    of 1,000 tokens. Raises InputError.
    """
    bases = [arm_named(name, slept=slept, learn=learn) for name in names]
    if not bases:
        raise InputError("there is nothing to compare: name a profile")
    if left_out:
        chosen = f"{bases[0].base} (left out)"
        bases.append(replace(bases[0], name=chosen, base=chosen, left_out=True))
    if ablations:
        first = bases[0].base
        more = [f"{first} without {mechanism}" for mechanism in ABLATIONS]
        more += ["vectors only", FULL]
        known = {arm.base for arm in bases}
        bases += [arm_named(n, slept=slept, learn=learn) for n in more if n not in known]
    bounded = [
        arm
        for base in bases
        for arm in (
            *(base.at(tokens=count) for count in (tokens or (() if ks else (1000,)))),
            *(base.at(k=count) for count in ks),
        )
    ]
    return tuple({arm.name: arm for arm in bounded}.values())

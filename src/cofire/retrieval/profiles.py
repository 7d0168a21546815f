"""Profiles: recipes of recall as data.

A profile says which legs find anchors and what each term of the score weighs. `dense` and
`lexical` are the baselines, `cofire` is the default. The weights of `cofire` were fitted by
`cofire.evaluation.fitting` (a regularised listwise softmax over LoCoMo's questions, asked of
memories that were consolidated); the figures that count leave the scored conversation out
(`cofire evaluate locomo --slept --cross-validate`).
`hela_mem`, `synapse` and `atamaia` are three papers' recipes: their constants, and what was chosen
where a paper gives none or contradicts itself, are in `recipes` and in the modules of their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from cofire.dynamics.cues import CueRule
from cofire.dynamics.gate import Gate
from cofire.dynamics.plasticity import COFIRE_RULE
from cofire.dynamics.scoring import Bm25
from cofire.errors import InputError
from cofire.retrieval.recipes import (
    ATAMAIA_RECIPE,
    HELA_MEM_RECIPE,
    SYNAPSE_RECIPE,
    Order,
    Recipe,
)

MECHANISMS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "dense": frozenset(
            {"similarity", "similarity_before", "similarity_before_2", "similarity_after",
             "similarity_after_2", "session_similarity", "gist"}
        ),
        "lexical": frozenset(
            {"bm25", "coverage", "spread_coverage", "session_bm25", "kin"}
        ),
        "temporal_spreading": frozenset(
            {"spread_coverage", "similarity_before",
             "similarity_before_2", "similarity_after", "similarity_after_2"}
        ),
        "concept_spreading": frozenset({"concepts"}),
        "abstraction": frozenset({"gist"}),
        "kin": frozenset({"kin"}),
        "session": frozenset({"session_bm25", "session_similarity"}),
        "speaker": frozenset({"speaker", "speaker_first"}),
        "time": frozenset({"in_range", "near_range", "time_for_when"}),
        "cues": frozenset({"cue"}),
        "associations": frozenset({"association"}),
        "learning": frozenset({"cue", "association"}),
        "priors": frozenset(
            {"question_only", "asks", "tells_time", "first_person", "name_for_who"}
        ),
    }
)  # fmt: skip
"""What can be switched off in turn, and the terms of the score that fall to zero with it."""


CUTOFF = 6.0
"""Scores are log-odds of a softmax, so 6 below the best means 400 times less likely. When it was
chosen (LoCoMo, conversations left out, an earlier set of weights) it left 24 of 30 memories and
1,187 of 1,494 wordpieces, and evidence recall@30 went from 92.7 to 92.5. Ranking short memories
higher had cost 1.8 points for about the same saving."""
TURN_BM25 = Bm25(k1=0.9, b=0.4)
SESSION_BM25 = Bm25(k1=1.8, b=0.6)
WINDOW: Mapping[int, float] = MappingProxyType({-1: 0.9, -2: 0.6, -3: 0.4, 1: 0.4})
"""What was said just before often names what a turn is about; what comes after seldom does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A recipe.

    `ranking`: the function that scores (`ranking.RANKINGS`). `weights`: what a unit of each term
    (`features.TERMS`) adds to the score. `depth`: anchors taken from each leg (dense, lexical).
    `cutoff`: a memory whose score is further than this below the best is not returned (but the
    first ten always may be); None: never. `take_names_out`: names of speakers are matched as
    speakers and not as words. `bm25`, `session_bm25`: constants for single memories and for
    whole sessions. `window`: what a term of the question counts, in [0, 1], where it occurs so
    many turns before (negative) or after the memory and not in itself. `seeds`: best anchors of
    each leg whose concepts are activated; `fan`: what a concept gives is divided by its fan to
    this power. `days_after`: people tell of a thing up to so many days after it. `cues`:
    how past questions are matched. `half_life_days`: learned links fade by half in so many days;
    None: never. `gate`: how sure a recall is of holding an answer (`gating.gate_features`); None:
    it does not say.
    `recipe`: constants of its own that a `ranking` other than "terms" goes by (`profile_of`).
    `order`: what is returned is the best by score in any case; "time" puts it oldest first.
    """

    name: str
    weights: Mapping[str, float]
    ranking: str = "terms"
    depth: int = 200
    cutoff: float | None = None
    take_names_out: bool = True
    bm25: Bm25 = TURN_BM25
    session_bm25: Bm25 = SESSION_BM25
    seeds: int = 10
    fan: float = 0.5
    days_after: int = 20
    window: Mapping[int, float] = field(default_factory=lambda: WINDOW)
    cues: CueRule = field(default_factory=CueRule)
    half_life_days: float | None = COFIRE_RULE.half_life_days
    gate: Gate | None = None
    recipe: Recipe | None = None
    order: Order = "score"
    _weighed: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weighed = frozenset(term for term, weight in self.weights.items() if weight != 0.0)
        object.__setattr__(self, "_weighed", weighed)

    def uses(self, *terms: str) -> bool:
        """Whether any of these terms can change the score."""
        return not self._weighed.isdisjoint(terms)

    def without(self, mechanism: str) -> Profile:
        """This profile with one mechanism switched off (`MECHANISMS`, or "names")."""
        name = f"{self.name} without {mechanism}"
        if mechanism == "names":
            return replace(self, name=name, take_names_out=False)
        off = MECHANISMS[mechanism]
        kept = {term: weight for term, weight in self.weights.items() if term not in off}
        return replace(self, name=name, weights=MappingProxyType(kept))


GATE_AWAKE = Gate(
    weights={"score": 3.35, "unmet": -2.08, "speaker_share": 5.95, "speaker_gap": 1.96},
    bias=-2.64,
    threshold=0.13,
)
"""Fitted to LoCoMo's questions (logistic; those with an answer against, in equal parts, those of
category 5 and those of other conversations), so a confidence is a probability where half of what is
asked has an answer. The threshold refuses about 2.5 % of the questions that do."""
GATE = Gate(
    weights={"score": 3.26, "unmet": -2.3, "speaker_share": 5.63, "speaker_gap": 1.52},
    bias=-2.73,
    threshold=0.12,
)
"""The same, fitted to memories that slept."""

DENSE = Profile(name="dense", weights=MappingProxyType({"similarity": 1.0}))
LEXICAL = Profile(name="lexical", weights=MappingProxyType({"bm25": 1.0}), take_names_out=False)
AWAKE = Profile(
    name="cofire",
    weights=MappingProxyType(
        {
            "similarity": 5.1,
            "spread_coverage": 3.82,
            "similarity_before_2": 1.53,
            "similarity_after": 1.39,
            "similarity_after_2": 0.42,
            "session_bm25": 1.52,
            "session_similarity": 2.7,
            "concepts": 1.06,
            "speaker": 2.26,
            "speaker_first": 0.91,
            "in_range": 2.72,
            "near_range": 2.29,
            "time_for_when": 1.65,
            "name_for_who": 0.99,
            "question_only": -1.32,
            "asks": -0.3,
            "tells_time": 0.51,
            "first_person": 0.46,
            "cue": 0.6,
            "association": 0.5,
        }
    ),
    cutoff=CUTOFF,
    gate=GATE_AWAKE,
)
"""Fitted to memories that never slept."""
COFIRE = Profile(
    name="cofire",
    weights=MappingProxyType(
        {
            "similarity": 5.09,
            "spread_coverage": 2.8,
            "similarity_before_2": 1.75,
            "similarity_after": 1.31,
            "similarity_after_2": 0.49,
            "session_bm25": 1.47,
            "session_similarity": 2.86,
            "concepts": 0.96,
            "gist": 6.61,
            "kin": 1.11,
            "speaker": 2.18,
            "speaker_first": 0.95,
            "in_range": 2.65,
            "near_range": 2.16,
            "time_for_when": 1.61,
            "name_for_who": 1.07,
            "question_only": -1.2,
            "asks": -0.25,
            "tells_time": 0.5,
            "first_person": 0.39,
            "cue": 0.6,
            "association": 0.5,
        }
    ),
    cutoff=CUTOFF,
    gate=GATE,
)


def asked_of(profile: Profile, *, slept: bool) -> Profile:
    """The default profile as it was fitted to what is asked: spaces that slept, or none that did.
    A profile of one's own is always itself."""
    return AWAKE if profile is COFIRE and not slept else profile


def profile_of(recipe: Recipe, name: str) -> Profile:
    """A paper's recipe as a profile.

    Questions are read as for `cofire` and `dense`, names of speakers taken out. The papers say
    nothing of that, but their turns have the speaker's name in the text. Here a name in the
    question would meet only turns that address its bearer (`take_names_out=False`: the letter).
    """
    return Profile(
        name=name,
        weights=recipe.weights,
        ranking=recipe.ranking,
        depth=recipe.depth,
        half_life_days=None,
        gate=recipe.gate,
        recipe=recipe,
        order=recipe.order,
    )


HELA_MEM = profile_of(HELA_MEM_RECIPE, "hela_mem")
SYNAPSE = profile_of(SYNAPSE_RECIPE, "synapse")
ATAMAIA = profile_of(ATAMAIA_RECIPE, "atamaia")
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {profile.name: profile for profile in (COFIRE, DENSE, LEXICAL, HELA_MEM, SYNAPSE, ATAMAIA)}
)


def profile_named(name: str) -> Profile:
    """The profile of that name. Raises InputError."""
    try:
        return PROFILES[name]
    except KeyError:
        raise InputError(
            f"there is no profile {name!r}; use one of {', '.join(sorted(PROFILES))}"
        ) from None

"""Three published recipes as data: the constants that `hela_mem`, `synapse` and `atamaia` rank by.

Each field says where its value comes from: the paper, its authors' code, or "ours" with the reason,
where the paper gives none. What a recipe weighs in the sum of terms follows from its constants
(`weights`), so a constant is changed in one place:

    PAPER = profile_of(replace(HELA_MEM_RECIPE, tau_days=None), "hela_mem without decay")

All three read links as they are stored: no paper lets a strength fade with time, so no half-life
applies here. How strengths come about is not decided here but by the space's learning rule
(`dynamics.plasticity.RULES`: hela_mem, atamaia, echomcp), which is how EchoMCP's linear rule is
switched on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Literal, Protocol

from cofire.dynamics.activation import SynapseRule
from cofire.dynamics.gate import SYNAPSE_THRESHOLD, Gate
from cofire.dynamics.papers import AtamaiaBoosts, SynapseWeights
from cofire.types import CONDUCTS, LinkType

Order = Literal["score", "time"]
"""How what is returned is ordered: best first, or oldest first."""


class Recipe(Protocol):
    """What a profile takes from a recipe; see `Profile` for what each of them means there."""

    @property
    def ranking(self) -> str: ...
    @property
    def weights(self) -> Mapping[str, float]: ...
    @property
    def depth(self) -> int: ...
    @property
    def order(self) -> Order: ...
    @property
    def gate(self) -> Gate | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HelaMemRecipe:
    """HeLa-Mem (arXiv 2604.16839), section 3.4: base activation, one hop, two paths.

    keyword_weight: α of eq. 3, ≥ 0. Not in the paper for LoCoMo: 0.5 as in its code (0.7 on
        LongMemEval-S, appendix D).
    tau_days: τ of γ = exp(-Δt / τ), > 0; the paper's 60. None: no decay, γ = 1. Δt counts from
        when a memory was said to the recall's `now`.
    mapped: sim is (cos + 1) / 2 as in the code, and θ needs it: few cosines pass 0.6. False: the
        paper's word, plain cosine.
    beta: β of eq. 4, in [0, 1]: the paper's 0.1. (Its case study adds 0.36 over an edge of 0.52,
        which needs 0.84.) 0: nothing spreads.
    theta: θ ≥ 0, only memories of a base activation above it spread: the paper's 0.6 on LoCoMo
        (0.4 on LongMemEval-S). With decay few memories older than a month pass it.
    links: types of links that spread, each at its strength, both ways. Ours: the turns around
        (the paper starts with edges between consecutive turns) and what was learned.
    base: k of eq. 5, ≥ 1: the paper's 10 on LoCoMo (15 on LongMemEval-S).
    flips: m of eq. 5, ≥ 0. The paper gives 3 for LongMemEval-S only; 5 on LoCoMo as in its code.
    raised_only: the flip path takes only what spreading raised. False by the letter: it takes the
        next best in any case.

    Raises:
        ValueError: a constant is out of its range.
    """

    ranking: ClassVar[str] = "hela_mem"
    order: ClassVar[Order] = "score"
    gate: ClassVar[Gate | None] = None

    keyword_weight: float = 0.5
    tau_days: float | None = 60.0
    mapped: bool = True
    beta: float = 0.1
    theta: float = 0.6
    links: tuple[str, ...] = (LinkType.TEMPORAL, LinkType.COACTIVATION)
    base: int = 10
    flips: int = 5
    raised_only: bool = False

    def __post_init__(self) -> None:
        _at_least_zero(self, "keyword_weight", "theta")
        if self.tau_days is not None and not (math.isfinite(self.tau_days) and self.tau_days > 0.0):
            raise ValueError(f"tau_days must be a positive number or None, got {self.tau_days}")
        _share(self, "beta")
        _known_links(self.links)
        _counts(self, base=1, flips=0)

    @property
    def weights(self) -> Mapping[str, float]:
        """(cos + 1) / 2 as ½ · cos + ½ for what has a vector; the decay as what it takes away."""
        return MappingProxyType(
            {
                "similarity": 0.5 if self.mapped else 1.0,
                "embedded": 0.5 if self.mapped else 0.0,
                "keywords": self.keyword_weight,
                "age": -1.0,
                "passed_on": self.beta,
            }
        )

    @property
    def depth(self) -> int:
        """What both paths bring."""
        return self.base + self.flips


@dataclass(frozen=True, slots=True, kw_only=True)
class SynapseRecipe:
    """Synapse (arXiv 2601.02744), sections 3.1 to 3.4.

    anchors: best of each trigger (dense, BM25) that are given energy, ≥ 1. The paper says "Top-k"
        without a number. Ours: 30, the only k it names.
    alpha: α of eq. 1, ≥ 0. Not given. Ours: 1, so that energy is the cosine.
    rule: T = 3, S = 0.8, δ = 0.5, M = 7 of the paper; β, γ, θ and what a silent node does are
        ours, see `SynapseRule`.
    rho: ρ = 0.01 of a temporal edge's weight exp(-ρ |Δ|), ≥ 0. The paper contradicts itself (its
        algorithm 1 sets 1.0, which is ρ = 0); eq. 2's text is followed.
    rho_hours: the unit ρ counts in, in hours, > 0. Not given. Ours: 1 (see `temporal_weight`).
    temporal_back: activation also goes from a turn to the one before. False is the letter
        ("v_t → v_{t+1}"), but eq. 2 sums over neighbours N(i). Ours: True.
    abstraction: weight of an edge between an episode and a concept, in [0, 1], both ways: 0.8 as
        in the algorithm (eq. 2 would have the similarity of the two, and Cofire's candidate
        concepts have no vectors).
    episodes_of_concept: least episodes that name a concept for it to be a node, ≥ 1. Ours: 2; a
        concept of one leads nowhere (the paper links each to all five turns of its window).
    incoming: at most so many edges lead to a node, the heaviest, ≥ 1: K = 15 of section 3.1; None:
        no bound. Among equals the paper names no order. Ours: to a concept from the latest
        episodes, to an episode from the rarest concepts.
    shares: λ of eq. 5: the paper's 0.5, 0.3 and 0.2.
    scaled_pagerank: PageRank is divided by its maximum. Not said. False is the letter of eq. 5:
        ranks that sum to 1 are next to nothing among hundreds of nodes.
    threshold: τ_gate in [0, 1]: the paper's 0.12.

    Associations between concepts (similarity above 0.92) need vectors of concepts and are left
    out; the paper merges concepts above the same 0.92, which leaves hardly any. Its archiving of
    nodes that stay silent for ten windows is the business of consolidation, not of recall.

    Raises:
        ValueError: a constant is out of its range.
    """

    ranking: ClassVar[str] = "synapse"
    order: ClassVar[Order] = "time"

    anchors: int = 30
    alpha: float = 1.0
    rule: SynapseRule = field(default_factory=SynapseRule)
    rho: float = 0.01
    rho_hours: float = 1.0
    temporal_back: bool = True
    abstraction: float = 0.8
    episodes_of_concept: int = 2
    incoming: int | None = 15
    shares: SynapseWeights = field(default_factory=SynapseWeights)
    scaled_pagerank: bool = False
    threshold: float = SYNAPSE_THRESHOLD

    def __post_init__(self) -> None:
        _counts(self, anchors=1, episodes_of_concept=1)
        _at_least_zero(self, "alpha", "rho")
        if not (math.isfinite(self.rho_hours) and self.rho_hours > 0.0):
            raise ValueError(f"rho_hours must be a positive number, got {self.rho_hours}")
        _share(self, "abstraction", "threshold")
        if self.incoming is not None and self.incoming < 1:
            raise ValueError(f"incoming must be ≥ 1 or None, got {self.incoming}")

    @property
    def weights(self) -> Mapping[str, float]:
        """Of "similarity" and "bm25" a recall has one: BM25 stands in where there is no vector."""
        return MappingProxyType(
            {
                "similarity": self.shares.similarity,
                "bm25": self.shares.similarity,
                "activation": self.shares.activation,
                "pagerank": self.shares.pagerank,
            }
        )

    @property
    def depth(self) -> int:
        """The best so many are candidates: enough for a token budget to choose from."""
        return 200

    @property
    def gate(self) -> Gate:
        """The threshold alone: the ranking itself says how sure it is."""
        return Gate(weights={}, threshold=self.threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtamaiaRecipe:
    """Atamaia, sections 3.7 and 6.1: full-text shortlist, blend, boosts, link-adjacent expansion.

    shortlist: candidates that full text finds, ≥ 1: the paper's 200.
    text_weight: 0.2 of FTS rank, in [0, 1]; the rest, 0.8, is of the cosine. Ours: BM25 divided by
        its best stands in for PostgreSQL's rank, whose scale the paper does not say.
    boosts: the paper announces "configurable boost factors" and lists none; see `AtamaiaBoosts`.
        Recency counts from when a memory was said.
    links: types of links that boost and that expansion follows. Ours: all that conduct, but not
        temporal ones, which Atamaia does not have.
    expand_from: best hits whose links are followed, ≥ 0 (0: no expansion). "Already selected
        memories" in the paper. Ours: 20, the `topK` of its search contract.
    expand_over: a link stronger than this is followed, outwards, in [0, 1]: the paper's 0.7.

    Raises:
        ValueError: a constant is out of its range.
    """

    ranking: ClassVar[str] = "atamaia"
    order: ClassVar[Order] = "score"
    gate: ClassVar[Gate | None] = None

    shortlist: int = 200
    text_weight: float = 0.2
    boosts: AtamaiaBoosts = field(default_factory=AtamaiaBoosts)
    links: tuple[str, ...] = tuple(sorted(CONDUCTS - {LinkType.TEMPORAL}))
    expand_from: int = 20
    expand_over: float = 0.7

    def __post_init__(self) -> None:
        _counts(self, shortlist=1, expand_from=0)
        _share(self, "text_weight", "expand_over")
        _known_links(self.links)

    @property
    def weights(self) -> Mapping[str, float]:
        return MappingProxyType(
            {
                "similarity": 1.0 - self.text_weight,
                "bm25": self.text_weight,
                "importance": self.boosts.importance,
                "recency": self.boosts.recency,
                "linked": self.boosts.hebbian,
            }
        )

    @property
    def depth(self) -> int:
        return self.shortlist


def _at_least_zero(recipe: object, *names: str) -> None:
    for name in names:
        value = getattr(recipe, name)
        if not (math.isfinite(value) and value >= 0.0):
            raise ValueError(f"{name} must be a finite number ≥ 0, got {value}")


def _share(recipe: object, *names: str) -> None:
    for name in names:
        value = getattr(recipe, name)
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} must be in [0, 1], got {value}")


def _counts(recipe: object, **least: int) -> None:
    for name, lowest in least.items():
        value = getattr(recipe, name)
        if value < lowest:
            raise ValueError(f"{name} must be ≥ {lowest}, got {value}")


def _known_links(links: tuple[str, ...]) -> None:
    odd = sorted(set(links) - set(LinkType))
    if odd:
        raise ValueError(f"there is no link type {', '.join(map(repr, odd))}")


HELA_MEM_RECIPE = HelaMemRecipe()
SYNAPSE_RECIPE = SynapseRecipe()
ATAMAIA_RECIPE = AtamaiaRecipe()

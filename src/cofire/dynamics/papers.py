"""What HeLa-Mem, Synapse and Atamaia rank by, each equation as a pure function.

Spreading is in `activation`, updates of links in `plasticity`, Synapse's gate in `gate`, PageRank
in `centrality`. Where a paper leaves a constant or a form open, the choice is a parameter and the
docstring says so. `papers_reference` has readable twins, and both pass the same tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cofire.dynamics.activation import Ties
from cofire.dynamics.arrays import F64, I64, Floats, Indices, Rows
from cofire.dynamics.edges import Adjacency, Edges
from cofire.dynamics.ranking import best, round_scores, top_k
from cofire.dynamics.scoring import unit_cosine

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


# -- HeLa-Mem (arXiv 2604.16839) -----------------------------------------------------------------


def hela_mem_keywords(common: Floats, asked: int) -> F64:
    """keyword_match = |q_kw ∩ v_kw| / |q_kw|, in [0, 1]; 0 for a question without keywords.

    `common` (n,): how many of the question's `asked` keywords each memory has. The paper does not
    define the match; this is its code's.
    """
    wide = np.asarray(common, np.float64)
    return wide / asked if asked > 0 else np.zeros_like(wide)


def hela_mem_base(
    cosine: Floats,
    keywords: Floats,
    age_us: I64 | F64,
    *,
    keyword_weight: float = 0.5,
    tau_days: float | None = 60.0,
    mapped: bool = True,
) -> F64:
    """S_base = (sim + α · keyword_match) · exp(-Δt / τ), eq. 3.

    `cosine` (n,) in [-1, 1], `keywords` (n,) in [0, 1], `age_us` (n,) in µs; an age below 0 counts
    as 0. `keyword_weight` is α, not in the paper: 0.5 in its code, 0.7 on LongMemEval-S. `mapped`:
    sim is (cos + 1) / 2, as in the code; the paper says cosine. `tau_days` None: no decay.

    Raises:
        ValueError: `keyword_weight` is negative or `tau_days` not positive.
    """
    if not (math.isfinite(keyword_weight) and keyword_weight >= 0.0):
        raise ValueError(f"keyword_weight must be a finite number ≥ 0, got {keyword_weight}")
    if tau_days is not None and not tau_days > 0.0:
        raise ValueError(f"tau_days must be positive or None, got {tau_days}")
    similarity = unit_cosine(cosine) if mapped else np.asarray(cosine, np.float64)
    matched = similarity + keyword_weight * np.asarray(keywords, np.float64)
    if tau_days is None:
        return matched
    return matched * np.exp(-np.maximum(age_us, 0.0) / (tau_days * DAY_US))


class DualPath(NamedTuple):
    """Rows of both paths, each best first, without a row in common."""

    base: Rows
    flipped: Rows


def dual_path(
    base: F64, spread: F64, ties: Ties, *, k: int = 10, m: int = 5, raised_only: bool = False
) -> DualPath:
    """R = Top-k(S_base) ∪ Top-m(S | v ∉ Top-k), eq. 5.

    `base` and `spread` (n,) are S_base and S (`activation.hela_mem`); -inf means "never". k = 10
    on LoCoMo and 15 on LongMemEval-S (with m = 3). Equals to 1e-6 go by `ties`. By the letter the
    flip path takes the next best even if nothing spread to them; `raised_only` admits only those
    that spreading raised.
    """
    first, _ = best(base, *ties, k)
    rest = spread.astype(np.float64)
    rest[first] = -np.inf
    if raised_only:
        rest[~(spread > base)] = -np.inf
    flipped, _ = best(rest, *ties, m)
    return DualPath(first, flipped)


# -- Synapse (arXiv 2601.02744) ------------------------------------------------------------------


def synapse_anchors(cosine: Floats, lexical: Floats, ties: Ties, k: int) -> Rows:
    """Anchors T, ascending: the k best by dense search and the k best by BM25 (those above 0),
    section 3.2. The paper gives no k."""
    dense, _ = best(cosine, *ties, k)
    matching = np.where(lexical > 0.0, lexical, -np.inf)
    sparse, _ = best(matching, *ties, k)
    return np.union1d(dense, sparse).astype(np.intp)


def anchor_energy(cosine: Floats, *, alpha: float = 1.0) -> F64:
    """a(0) = α · sim(h_i, h_q) of the anchors, eq. 1; what is not an anchor has none.

    A cosine below 0 gives 0 (the paper does not say; energy is not negative). α is not given; 1
    keeps energy within [0, 1].

    Raises:
        ValueError: `alpha` is negative or not finite.
    """
    if not (math.isfinite(alpha) and alpha >= 0.0):
        raise ValueError(f"alpha must be a finite number ≥ 0, got {alpha}")
    return alpha * np.maximum(np.asarray(cosine, np.float64), 0.0)


def temporal_weight(gap_us: I64 | F64, *, rho: float = 0.01, unit_us: float = HOUR_US) -> F64:
    """w = exp(-ρ · |τ_i - τ_j|) of a temporal edge (below eq. 2), in [0, 1].

    `gap_us` is τ_i - τ_j in µs, `unit_us` the unit that ρ counts in. The paper gives none; with
    hours a session stays together (0.99 an hour) and last month's is cut off (0.0007), with
    seconds every session would be, and with days nothing. Its algorithm 1 sets 1.0 instead: ρ = 0.

    Raises:
        ValueError: `rho` is negative or `unit_us` not positive.
    """
    if not (math.isfinite(rho) and rho >= 0.0):
        raise ValueError(f"rho must be a finite number ≥ 0, got {rho}")
    if not unit_us > 0.0:
        raise ValueError(f"unit_us must be positive, got {unit_us}")
    return np.exp(-rho * np.abs(np.asarray(gap_us, np.float64)) / unit_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynapseWeights:
    """λ of Synapse's eq. 5, each finite and ≥ 0.

    Raises:
        ValueError: a weight is not.
    """

    similarity: float = 0.5
    activation: float = 0.3
    pagerank: float = 0.2

    def __post_init__(self) -> None:
        for name in ("similarity", "activation", "pagerank"):
            _check_weight(name, getattr(self, name))


def synapse_score(
    cosine: Floats, activation: F64, pagerank: F64, weights: SynapseWeights | None = None
) -> F64:
    """λ1 · sim + λ2 · a(T) + λ3 · PageRank, eq. 5; all (n,).

    A PageRank sums to 1 over the graph, so among thousands of nodes the third term is next to
    nothing; whether the authors scaled it the paper does not say. Pass
    `scoring.divide_by_maximum(pagerank)` to give it weight.
    """
    share = weights or SynapseWeights()
    similar = share.similarity * np.asarray(cosine, np.float64)
    score: F64 = similar + share.activation * activation + share.pagerank * pagerank
    return score


def chronological(rows: Indices, times: I64, ties: Ties) -> Rows:
    """`rows` re-ordered by time, oldest first, then by id. `times` and `ties` are of all rows.

    Synapse's "re-ordered topologically" (section 3.3), along its temporal edges.
    """
    high, low = ties
    ordered: Rows = np.asarray(rows, np.intp)[np.lexsort((low[rows], high[rows], times[rows]))]
    return ordered


# -- Atamaia -------------------------------------------------------------------------------------


def atamaia_blend(text_rank: Floats, cosine: Floats, *, text_weight: float = 0.2) -> F64:
    """0.2 · FTS_rank + 0.8 · cosine_similarity (section 3.7); `text_weight` in [0, 1].

    `text_rank` (n,) in [0, 1] is what full text gave; the paper does not say how it is scaled
    (PostgreSQL's ts_rank is below 1, BM25 needs `scoring.saturate` or `divide_by_maximum`).

    Raises:
        ValueError: `text_weight` is outside [0, 1].
    """
    if not 0.0 <= text_weight <= 1.0:
        raise ValueError(f"text_weight must be in [0, 1], got {text_weight}")
    blend: F64 = text_weight * np.asarray(text_rank, np.float64)
    blend += (1.0 - text_weight) * np.asarray(cosine, np.float64)
    return blend


@dataclass(frozen=True, slots=True, kw_only=True)
class AtamaiaBoosts:
    """How much each boost can add to a score, as a share of it, each ≥ 0.

    The paper names the boosts and gives neither constants nor form. Ours: they multiply, so that
    no boost makes a match of what is none, and the Hebbian one is the largest ("the key
    integration point").

    importance: at importance 10 (none at 1). recency: at age 0; halves every `recency_days`
        (30: when the paper calls a memory stale), > 0. hebbian: at a link of strength 1 to
        another hit.

    Raises:
        ValueError: a constant is out of its range.
    """

    importance: float = 0.2
    recency: float = 0.1
    hebbian: float = 0.3
    recency_days: float = 30.0

    def __post_init__(self) -> None:
        for name in ("importance", "recency", "hebbian"):
            _check_weight(name, getattr(self, name))
        if not (math.isfinite(self.recency_days) and self.recency_days > 0.0):
            raise ValueError(f"recency_days must be a positive number, got {self.recency_days}")


def atamaia_boosted(
    blend: F64,
    importance: Floats | I64,
    age_us: I64 | F64,
    strength: F64,
    boosts: AtamaiaBoosts | None = None,
) -> F64:
    """s + max(s, 0) · (b_i · (importance - 1) / 9 + b_r · 2^(-age / days) + b_h · strength).

    All (n,): `blend` from `atamaia_blend`, `importance` 1 to 10, `age_us` in µs (below 0 counts as
    0), `strength` in [0, 1] from `strength_to_hits`. Rises with each but the age, and falls with
    that.
    """
    chosen = boosts or AtamaiaBoosts()
    days = np.maximum(age_us, 0.0) / DAY_US
    share: F64 = (
        chosen.importance * (np.clip(np.asarray(importance, np.float64), 1.0, 10.0) - 1.0) / 9.0
    )
    share = share + chosen.recency * np.exp2(-days / chosen.recency_days)
    share = share + chosen.hebbian * strength
    boosted: F64 = blend + np.maximum(blend, 0.0) * share
    return boosted


def strength_to_hits(graph: Adjacency, hits: I64, conductance: F64) -> F64:
    """Strength of each node's strongest link to a hit other than itself, (size,), in [0, 1].

    The paper's "Hebbian strength to other hits"; strongest and not summed, so that a hub of many
    weak links gains nothing. `graph` gives each link from both ends, `hits` are distinct,
    `conductance` is by link type (0: a link that does not count).
    """
    edges = _links(graph, hits, conductance)
    strongest = np.zeros(graph.size, np.float64)
    np.maximum.at(strongest, edges.target, edges.strength * conductance[edges.type])
    return strongest


class Adjacent(NamedTuple):
    """Rows that a strong link leads to, the strongest link first, and its strength."""

    rows: Rows
    strengths: F64


def link_adjacent(
    graph: Adjacency, selected: I64, ties: Ties, conductance: F64, *, threshold: float = 0.7
) -> Adjacent:
    """What outgoing links of strength above `threshold` lead to from `selected` (distinct), and is
    not among them: Atamaia's graph expansion (section 6.1). Equals go by `ties`. Links whose type
    does not conduct are left out; how well it does is not asked.

    Raises:
        ValueError: `threshold` is outside [0, 1].
    """
    if not 0.0 <= threshold <= 1.0:
        raise ValueError(f"threshold must be in [0, 1], got {threshold}")
    edges = _links(graph, selected, conductance)
    # In float32, as strengths are stored: 0.7 is not above 0.7.
    edges = edges.where(edges.outward & (edges.strength > np.float32(threshold)))
    strongest = np.full(graph.size, -np.inf)
    np.maximum.at(strongest, edges.target, edges.strength)
    strongest[selected] = -np.inf
    rows = top_k(round_scores(strongest), *ties, len(edges))
    return Adjacent(rows, strongest[rows])


def _links(graph: Adjacency, nodes: I64, conductance: F64) -> Edges:
    """Conducting links of `nodes`, without any from a node to itself."""
    edges = graph.edges(nodes)
    return edges.where((conductance[edges.type] > 0.0) & (edges.target != nodes[edges.origin]))


def _check_weight(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0.0):
        raise ValueError(f"{name} must be a finite number ≥ 0, got {value}")

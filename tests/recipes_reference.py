"""The papers' recipes written down plainly, one memory at a time: what `retrieval.hela_mem`,
`synapse` and `atamaia` must give for a small space. Equals are told apart by position."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cofire.dynamics import activation_reference, centrality_reference, papers_reference
from cofire.graph.active import ActiveGraph
from cofire.retrieval.profiles import TURN_BM25
from cofire.retrieval.recipes import AtamaiaRecipe, HelaMemRecipe, SynapseRecipe
from cofire.store.records import LINK_CODES, Changes
from retrieval_reference import Turn, bm25, chain, cosines, graph_of

HOUR_US = 3_600_000_000
TEMPORAL = LINK_CODES["temporal"]
ABSTRACTION = LINK_CODES["abstraction"]

Learned = Mapping[tuple[int, int], tuple[str, float]]
"""(from, to) → (type, strength), by position."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A space and a question. `vector` None: by words only; `allowed` None: every turn."""

    turns: Sequence[Turn]
    learned: Learned
    query: tuple[int, ...]
    vector: Sequence[float] | None
    now: int = 0
    allowed: Collection[int] | None = None

    def may(self, at: int) -> bool:
        return self.allowed is None or at in self.allowed

    def graph(self) -> ActiveGraph:
        """The space as the store would give it."""
        links = [
            (source + 1, target + 1, LINK_CODES[kind], strength, 2)
            for (source, target), (kind, strength) in self.learned.items()
        ]
        changes = Changes(
            revision=2, rebuild=False, rows=[], links=links, removed_items=[], removed_links=[]
        )
        return graph_of(self.turns).apply(changes)

    def mask(self) -> np.ndarray | None:
        if self.allowed is None:
            return None
        return np.array([self.may(at) for at in range(len(self.turns))])

    def similarity(self) -> list[float | None]:
        """None where there is nothing to compare."""
        if self.vector is None:
            return [None] * len(self.turns)
        found = cosines(self.turns, self.vector).tolist()
        return [
            round(cosine, 6) if turn.vector is not None and self.may(at) else None
            for at, (turn, cosine) in enumerate(zip(self.turns, found, strict=True))
        ]

    def words(self) -> list[float]:
        lengths = [sum(turn.terms.values()) for turn in self.turns]
        documents = [turn.terms for turn in self.turns]
        scores = bm25(documents, lengths, self.query, TURN_BM25.k1, TURN_BM25.b)
        return [score if self.may(at) else 0.0 for at, score in enumerate(scores)]

    def both_ways(self) -> dict[int, list[tuple[int, int, float]]]:
        """Links from both ends."""
        graph: dict[int, list[tuple[int, int, float]]] = {}
        for (source, target), (kind, strength) in links(self).items():
            graph.setdefault(source, []).append((target, LINK_CODES[kind], strength))
            graph.setdefault(target, []).append((source, LINK_CODES[kind], strength))
        return graph


def links(case: Case) -> dict[tuple[int, int], tuple[str, float]]:
    before, _ = chain(case.turns)
    found = {(last, at): ("temporal", 0.5) for at, last in enumerate(before) if last >= 0}
    return {**found, **case.learned}


def _relative(values: Sequence[float]) -> list[float]:
    best = max(values, default=0.0)
    return [value / best if best > 0.0 else 0.0 for value in values]


def _first(scores: Mapping[int, float], count: int) -> list[int]:
    return sorted(scores, key=lambda at: (-round(scores[at], 6), at))[:count]


def hela_mem(case: Case, recipe: HelaMemRecipe, wanted: int = 0) -> dict[int, float]:
    """S of what both paths bring together."""
    base = []
    for at, (turn, cosine) in enumerate(zip(case.turns, case.similarity(), strict=True)):
        nothing = -1.0 if recipe.mapped else 0.0
        mapped = nothing if cosine is None else cosine
        own = papers_reference.hela_mem_base(
            mapped if recipe.mapped else 2.0 * mapped - 1.0,
            [str(term) for term in case.query],
            [str(term) for term in turn.terms],
            case.now - turn.time,
            keyword_weight=recipe.keyword_weight,
            tau_days=recipe.tau_days,
        )
        base.append(own if case.may(at) else -math.inf)
    conductance = {LINK_CODES[link]: 1.0 for link in recipe.links}
    spread = activation_reference.hela_mem(
        case.both_ways(), base, recipe.beta, recipe.theta, conductance
    )
    first, flipped = papers_reference.dual_path(
        base, spread, max(recipe.base, wanted - recipe.flips), recipe.flips, recipe.raised_only
    )
    return {at: spread[at] for at in (*first, *flipped) if spread[at] > -math.inf}


def synapse(case: Case, recipe: SynapseRecipe) -> tuple[dict[int, float], dict[int, float]]:
    """(score, activation) of every memory that anything speaks for."""
    size = len(case.turns)
    edges, nodes = _network(case, recipe)
    rank = _pagerank(nodes, edges)
    words, similarity = case.words(), case.similarity()
    like = _relative(words) if case.vector is None else [one or 0.0 for one in similarity]
    dense = _first(
        {at: one for at, one in enumerate(similarity) if one is not None}, recipe.anchors
    )
    sparse = _first({at: one for at, one in enumerate(words) if one > 0.0}, recipe.anchors)
    energy = {at: recipe.alpha * max(like[at], 0.0) for at in {*dense, *sparse}}
    open_edges: dict[int, list[tuple[int, int, float]]] = {}
    for (source, target), (kind, weight) in edges.items():
        if all(node >= size or case.may(node) for node in (source, target)):
            open_edges.setdefault(source, []).append((target, kind, weight))
    active = activation_reference.synapse(
        open_edges, nodes, energy, recipe.rule, {TEMPORAL: 1.0, ABSTRACTION: 1.0}
    )
    top = max(rank[:size], default=0.0)
    scores = {}
    for at in range(size):
        told = similarity[at] is not None or active.get(at, 0.0) > 0.0 or words[at] > 0.0
        if case.may(at) and told:
            share = rank[at] / top if recipe.scaled_pagerank else rank[at]
            scores[at] = papers_reference.synapse_score(
                like[at], active.get(at, 0.0), share, recipe.shares
            )
    return scores, {at: active.get(at, 0.0) for at in scores}


def _network(
    case: Case, recipe: SynapseRecipe
) -> tuple[dict[tuple[int, int], tuple[int, float]], int]:
    """(from, to) → (type, weight), and how many nodes; concepts are those after the turns."""
    size = len(case.turns)
    edges: dict[tuple[int, int], tuple[int, float]] = {}
    for (source, target), (kind, _) in links(case).items():
        if kind == "temporal":
            gap = case.turns[target].time - case.turns[source].time
            weight = math.exp(-recipe.rho * abs(gap) / HOUR_US / recipe.rho_hours)
            edges[source, target] = (TEMPORAL, weight)
            if recipe.temporal_back:
                edges[target, source] = (TEMPORAL, weight)
    concepts = sorted({concept for turn in case.turns for concept in turn.concepts})
    named = {c: [at for at, turn in enumerate(case.turns) if c in turn.concepts] for c in concepts}
    shared = [c for c in concepts if len(named[c]) >= recipe.episodes_of_concept]
    precedence = [turn.time for turn in case.turns] + [-len(named[c]) for c in shared]
    for node, concept in enumerate(shared, size):
        for at in named[concept]:
            edges[at, node] = edges[node, at] = (ABSTRACTION, recipe.abstraction)
    if recipe.incoming is None:
        return edges, len(precedence)
    kept = {}
    for target in {target for _, target in edges}:
        leading = [edge for edge in edges if edge[1] == target]
        leading.sort(key=lambda e: (-np.float32(edges[e][1]), -precedence[e[0]], e[0]))
        kept.update({edge: edges[edge] for edge in leading[: recipe.incoming]})
    return kept, len(precedence)


def _pagerank(nodes: int, edges: Mapping[tuple[int, int], tuple[int, float]]) -> list[float]:
    leaving: dict[int, list[tuple[int, float]]] = {}
    for (source, target), (_, weight) in edges.items():
        leaving.setdefault(source, []).append((target, weight))
    return centrality_reference.pagerank(nodes, leaving)


def atamaia(case: Case, recipe: AtamaiaRecipe, wanted: int = 0) -> dict[int, float]:
    """Scores of the shortlist and of what expansion adds."""
    words = case.words()
    relative = _relative(words)
    hits = _first(
        {at: score for at, score in enumerate(words) if score > 0.0}, max(recipe.shortlist, wanted)
    )
    conductance = {LINK_CODES[link]: 1.0 for link in recipe.links}
    strength = papers_reference.strength_to_hits(
        case.both_ways(), len(case.turns), hits, conductance
    )
    scores = {}
    for at, (turn, cosine) in enumerate(zip(case.turns, case.similarity(), strict=True)):
        if case.may(at):
            # The reference has the paper's 0.2 and 0.8; other weights are those times this.
            scores[at] = papers_reference.atamaia_score(
                relative[at] * recipe.text_weight / 0.2,
                (cosine or 0.0) * (1.0 - recipe.text_weight) / 0.8,
                turn.importance,
                case.now - turn.time,
                strength=strength[at],
                boosts=recipe.boosts,
            )
    selected = _first({at: scores[at] for at in hits}, recipe.expand_from)
    outward: dict[int, list[tuple[int, int, float]]] = {}
    for (source, target), (kind, weight) in links(case).items():
        outward.setdefault(source, []).append((target, LINK_CODES[kind], weight))
    found = papers_reference.link_adjacent(outward, selected, conductance, recipe.expand_over)
    return {at: scores[at] for at in {*hits, *found} if at in scores}

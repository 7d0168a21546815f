"""Synapse's recall (arXiv 2601.02744, sections 3.1 to 3.4); the constants are
`recipes.SynapseRecipe`'s.

    graph     episodes and concepts; temporal and abstraction edges
    anchors   the best of the dense and of the lexical trigger; a_i(0) = α · sim
    cycle     T times: propagate with fan effect, inhibit, fire (`dynamics.activation.synapse`)
    score     λ1 · sim + λ2 · a(T) + λ3 · PageRank
    gate      activation of the top-ranked memory < τ_gate: not mentioned

Choices where the paper is silent:

- *Concepts*: the candidate concepts that Cofire finds in every memory (names, titles, topics) stand
  in for those a language model extracts, so a concept leads to the memories that name it and not to
  a whole window of five turns.
- *Order*: the best by score are returned oldest first, as the paper has it ("re-ordered
  topologically"), and each keeps its score (`Profile.order`). A token budget is filled by score.
  The paper's 30 is the caller's k.
- *PageRank* is of the whole graph whatever the filters, made once for a snapshot of the memory and
  kept with it: the paper refreshes it at consolidation. Of several spaces each has as much of the
  rank as it has of the nodes, as if they were one graph.
- *Filters*: what they exclude is no node of the graph that activation goes through.
- *No vector*: a memory without one has sim = 0 and no energy. Where the question has none, BM25
  divided by its best stands in for sim, in energy and score; the gate then hardly ever refuses.
- *The top-ranked memory* is the first by score, not the most active.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cofire.dynamics import activation, gate, papers
from cofire.dynamics.arrays import F32, F64, I64, Bool, Rows
from cofire.dynamics.centrality import pagerank
from cofire.dynamics.edges import Adjacency, Csr, Edges, csr_from_pairs, join_edges
from cofire.dynamics.ranking import best
from cofire.graph.active import ActiveGraph
from cofire.retrieval.candidates import Scored, Searched
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked
from cofire.retrieval.recipes import SYNAPSE_RECIPE, SynapseRecipe
from cofire.retrieval.survey import Survey, scored, survey
from cofire.store.records import KIND_CODES, LINK_CODES
from cofire.types import INTERNAL_KINDS

TEMPORAL = LINK_CODES["temporal"]
ABSTRACTION = LINK_CODES["abstraction"]
CONDUCTANCE = activation.conducting({TEMPORAL: 1.0, ABSTRACTION: 1.0})
HIDDEN = np.array([KIND_CODES[kind.value] for kind in INTERNAL_KINDS], np.uint8)


def synapse(searched: Searched, asked: Asked, profile: Profile) -> list[Scored]:
    """The `Profile.depth` best of all memories by eq. 5."""
    recipe = profile.recipe if isinstance(profile.recipe, SynapseRecipe) else SYNAPSE_RECIPE
    seen = survey(searched, asked, profile.bm25)
    term, similarity = "similarity", seen.cosine
    if asked.vector is None:
        term, similarity = "bm25", seen.relative_words()
    anchors = papers.synapse_anchors(
        seen.only(seen.cosine, seen.compared), seen.words, seen.ties, recipe.anchors
    )
    nodes = Nodes.of(seen, recipe)
    energy = papers.anchor_energy(similarity[anchors], alpha=recipe.alpha)
    active = nodes.spread(anchors, energy, seen.allowed, recipe)
    central = nodes.pagerank(seen)
    if recipe.scaled_pagerank and central.max(initial=0.0) > 0.0:
        central = central / central.max()
    score = papers.synapse_score(similarity, active, central, recipe.shares)
    # PageRank alone recalls nothing: it is the same whatever was asked.
    told = seen.compared | (active > 0.0) | (seen.words > 0.0)
    ranked, _ = best(seen.only(score, told), *seen.ties, profile.depth)
    places: Rows = np.sort(ranked)
    is_anchor = np.isin(places, anchors)
    unmoved = ~is_anchor & (active[places] <= 0.0)  # neither anchor nor reached: by similarity
    return scored(
        seen,
        places,
        {
            term: similarity[places],
            "activation": active[places],
            "pagerank": central[places],
        },
        profile,
        dense=(is_anchor | unmoved) & seen.compared[places],
        lexical=is_anchor & (seen.words[places] > 0.0),
        confidence=gate.synapse_confidence(active[ranked[:1]]),
    )


# -- The graph -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Network:
    """Episodes and concepts of one space. Nodes are numbered, the episodes first: `rows` (e,)
    are theirs, ascending. `edges` lead from node to node, `rank` (nodes,) is PageRank."""

    rows: Rows
    edges: Csr
    rank: F64


def network(graph: ActiveGraph, recipe: SynapseRecipe) -> Network:
    """The graph of a snapshot, made once and kept with it. O(edges · log edges)."""
    shape = (
        recipe.rho, recipe.rho_hours, recipe.temporal_back, recipe.abstraction,
        recipe.episodes_of_concept, recipe.incoming,
    )  # fmt: skip
    kept: tuple[object, Network] | None = graph.cache.get("synapse")
    if kept is None or kept[0] != shape:
        kept = graph.cache["synapse"] = (shape, _make(graph, recipe))
    return kept[1]


def prior(graph: ActiveGraph, recipe: SynapseRecipe = SYNAPSE_RECIPE) -> int:
    """Makes the graph and its PageRank before a question needs them, as the paper has it at
    consolidation; returns how many nodes there are. Each snapshot's is made from the beginning:
    starting from the former ranks would save rounds, but what a question finds would then depend,
    in the eighth digit, on what the process had seen before."""
    return network(graph, recipe).edges.size


def _make(graph: ActiveGraph, recipe: SynapseRecipe) -> Network:
    visible = graph.recallable & ~np.isin(graph.column("kind"), HIDDEN)
    if graph.live is not None:
        visible = visible & graph.live
    rows = np.flatnonzero(visible)
    times = graph.column("time")[rows].astype(np.int64)
    place = np.full(graph.size, -1, np.int64)
    place[rows] = np.arange(len(rows))

    links = graph.neighbours(rows, (TEMPORAL,), inward=False)
    earlier, later = links.origin, place[links.target]
    earlier, later = earlier[later >= 0], later[later >= 0]
    gaps = times[later] - times[earlier]
    weight = papers.temporal_weight(gaps, rho=recipe.rho, unit_us=papers.HOUR_US * recipe.rho_hours)

    naming, hashes, _ = graph.concepts_of(rows)
    _, concept, episodes = np.unique(hashes, return_inverse=True, return_counts=True)
    shared = episodes >= recipe.episodes_of_concept
    number = len(rows) + np.cumsum(shared) - 1
    kept = shared[concept]
    naming, named = naming[kept], number[concept[kept]]
    abstract = np.full(len(naming), recipe.abstraction)

    back = recipe.temporal_back
    sources = [earlier, later if back else later[:0], naming, named]
    targets = [later, earlier if back else earlier[:0], named, naming]
    weights = [weight, weight if back else weight[:0], abstract, abstract]
    kinds = [np.full(len(part), code, np.uint8) for part, code in zip(
        sources, (TEMPORAL, TEMPORAL, ABSTRACTION, ABSTRACTION), strict=True)]  # fmt: skip
    source, target = np.concatenate(sources), np.concatenate(targets)
    strength, kind = np.concatenate(weights).astype(np.float32), np.concatenate(kinds)
    if recipe.incoming is not None:
        # Among equally heavy edges: from the latest episode, from the rarest concept.
        precedence = np.concatenate([times, -episodes[shared]])
        chosen = _heaviest(target, strength, precedence[source], source, recipe.incoming)
        source, target, strength, kind = (
            source[chosen], target[chosen], strength[chosen], kind[chosen]
        )  # fmt: skip
    size = len(rows) + int(np.count_nonzero(shared))
    edges = csr_from_pairs(size, source, target, kind, strength)
    return Network(rows, edges, pagerank(edges.offsets, edges.targets, edges.strengths))


def _heaviest(target: I64, strength: F32, precedence: I64, source: I64, most: int) -> Rows:
    """The `most` heaviest of the edges to each target; equals by falling precedence, then by
    source."""
    order = np.lexsort((source, -precedence, -strength, target))
    ordered = target[order]
    first = np.searchsorted(ordered, ordered)
    chosen: Rows = np.sort(order[np.arange(len(order)) - first < most])
    return chosen


@dataclass(frozen=True, slots=True)
class Nodes:
    """The networks of all spaces as one graph without edges between them. `starts`: first node of
    each; `place` (nodes,): the place of an episode, -1 for a concept."""

    networks: tuple[Network, ...]
    starts: I64
    place: I64

    @classmethod
    def of(cls, seen: Survey, recipe: SynapseRecipe) -> Nodes:
        networks = tuple(network(graph, recipe) for graph in seen.graphs)
        sizes = [one.edges.size for one in networks]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        place = np.full(int(starts[-1]), -1, np.int64)
        for one, start, first in zip(networks, starts, seen.starts, strict=False):
            place[start : start + len(one.rows)] = first + one.rows
        return cls(networks, starts, place)

    def spread(self, anchors: Rows, energy: F64, allowed: Bool, recipe: SynapseRecipe) -> F64:
        """Activation by place."""
        episodes = np.flatnonzero(self.place >= 0)
        node = np.full(len(allowed), -1, np.int64)
        node[self.place[episodes]] = episodes
        open_nodes = np.ones(len(self.place), np.bool_)
        open_nodes[episodes] = allowed[self.place[episodes]]
        graph: Adjacency = _Joined([one.edges for one in self.networks], self.starts)
        if not open_nodes.all():
            graph = _Open(graph, open_nodes)
        known = node[anchors] >= 0
        active = activation.synapse(
            graph, node[anchors][known], energy[known], recipe.rule, CONDUCTANCE
        )
        values = np.zeros(len(allowed), np.float64)
        values[self.place[episodes]] = active.values[episodes]
        values[~allowed] = 0.0
        return values

    def pagerank(self, seen: Survey) -> F64:
        """PageRank by place."""
        values = np.zeros(seen.size, np.float64)
        every = max(len(self.place), 1)
        for one, first in zip(self.networks, seen.starts, strict=False):
            values[first + one.rows] = one.rank[: len(one.rows)] * (one.edges.size / every)
        return values


@dataclass(frozen=True, slots=True)
class _Joined:
    """Graphs side by side as one `Adjacency`."""

    parts: Sequence[Csr]
    starts: I64

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    def edges(self, nodes: I64, /) -> Edges:
        if len(self.parts) == 1:
            return self.parts[0].edges(nodes)
        found = []
        for part, start, end in zip(self.parts, self.starts[:-1], self.starts[1:], strict=True):
            here = np.flatnonzero((nodes >= start) & (nodes < end))
            edges = part.edges(nodes[here] - start)
            found.append(
                Edges(
                    here[edges.origin],
                    edges.target + start,
                    edges.type,
                    edges.strength,
                    edges.outward,
                )
            )
        return join_edges(found)


@dataclass(frozen=True, slots=True)
class _Open:
    """A graph without the nodes that are not `open`."""

    graph: Adjacency
    open: Bool

    @property
    def size(self) -> int:
        return self.graph.size

    def edges(self, nodes: I64, /) -> Edges:
        edges = self.graph.edges(nodes)
        # A closed node can fire, too, where every node does (`SynapseRule.silent`).
        return edges.where(self.open[edges.target] & self.open[nodes[edges.origin]])

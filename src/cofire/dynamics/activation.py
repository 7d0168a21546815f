"""Spreading activation over a graph, as pure functions.

`spread` is Cofire's own rule, with every choice a constant of `SpreadRule`; `synapse` and
`hela_mem` are the published equations (mechanisms.md, sections 1 and 2). Each has a readable twin
in `activation_reference`, and both pass the same tests.

All sums are float64 in ascending order of nodes, so neither the order of seeds nor that of edges
changes a bit of a result; other numbers for the nodes change its last bits only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cofire.dynamics.arrays import F64, I64, U8, U64, Rows
from cofire.dynamics.edges import Adjacency
from cofire.dynamics.ranking import best_positions, round_scores, top_k

TYPES = 256
"""Link types are codes below this; a conductance array has one entry for each."""

SILENCE = 1e-9
"""Synapse: an inhibited potential up to this counts as 0, so that float noise does not fire."""

Ties = tuple[U64, U64]
"""(high, low) id words of every node: who goes first where activations are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRule:
    """Constants of `spread`.

    steps: rounds of spreading, ≥ 0 (T).
    gain: share of a node's activation that it sends along a link of strength 1 and conductance
        1, in [0, 1] (Synapse's S, HeLa-Mem's β).
    decay: share of its own activation that a node loses in a step, in [0, 1] (Synapse's δ).
    fan: exponent of the fan effect: what a node sends is divided by (its conducting links) **
        fan. 1 divides by out-degree (ACT-R, Synapse's eq. 2), 0 switches it off.
    combine: "sum" adds what arrives; "max" takes the strongest single arrival or the node's own
        remainder, so that many weak paths never add up to a strong one.
    frontier: at most this many nodes spread in a step, the most active ones; None for all.
    threshold: only nodes above this activation spread, ≥ 0.
    keep_direct: no seed ends below its own energy: spreading never demotes a direct hit.
    ceiling: no node rises above the strongest seed. Always so under "max"; under "sum" this
        clips after every step.

    Raises:
        ValueError: a constant is out of its range.
    """

    steps: int = 2
    gain: float = 0.4
    decay: float = 0.0
    fan: float = 0.0
    combine: Literal["max", "sum"] = "max"
    frontier: int | None = 250
    threshold: float = 0.0
    keep_direct: bool = True
    ceiling: bool = True

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise ValueError(f"steps must be ≥ 0, got {self.steps}")
        for name in ("gain", "decay"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {value}")
        for name in ("fan", "threshold"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} must be a finite number ≥ 0, got {value}")
        if self.frontier is not None and self.frontier < 1:
            raise ValueError(f"frontier must be ≥ 1 or None, got {self.frontier}")
        if self.combine not in ("max", "sum"):
            raise ValueError(f"combine must be 'max' or 'sum', got {self.combine!r}")


@dataclass(frozen=True, slots=True)
class Step:
    """What flowed in one step: along edge i, `amount[i]` from `source[i]` to `target[i]`."""

    source: I64
    target: I64
    type: U8
    amount: F64


@dataclass(frozen=True, slots=True)
class Activation:
    """`values` (size,) ≥ 0 of all nodes; `touched` are the nodes that had any, ascending;
    `seeds` those that had it from the start; `steps` what flowed in each step (empty unless
    recorded)."""

    values: F64
    touched: Rows
    seeds: I64
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """How activation came to a node: `nodes` from a seed to it, the type of the last link, and
    the amount that arrived by that link."""

    nodes: tuple[int, ...]
    type: int
    amount: float


def spread(
    graph: Adjacency,
    seeds: I64,
    energy: F64,
    rule: SpreadRule,
    conductance: F64,
    *,
    ties: Ties | None = None,
    record: bool = False,
) -> Activation:
    """Activation of every node after `rule.steps` rounds from `seeds` with `energy`.

    One round, for every node i, over the edges j → i of the frontier:

        in_i  = Σ or max of  gain · c(type) · w_ji · a_j / fan(j)^φ
        a_i  ←  (1 - δ) a_i + in_i        ("sum")      max((1 - δ) a_i, in_i)      ("max")

    `conductance[t]` in [0, 1] is c of link type t (0: does not conduct and does not count as
    fan). Seeds are distinct nodes, energies ≥ 0; a seed without energy is none. Nodes of equal
    activation at the edge of the frontier go by `ties`, else by node.

    Raises:
        ValueError: lengths differ, or an energy is negative or not finite.
    """
    seeds, energy = _checked_seeds(graph, seeds, energy)
    values = np.zeros(graph.size, np.float64)
    values[seeds] = energy
    touched = seeds
    top = float(energy.max()) if len(energy) else 0.0
    steps: list[Step] = []
    for _ in range(rule.steps):
        active = touched[values[touched] > rule.threshold]
        flow = _flow(graph, _frontier(values, active, rule.frontier, ties), values, rule,
                     conductance)  # fmt: skip
        if record:
            steps.append(flow)
        if rule.decay:
            values[touched] *= 1.0 - rule.decay
        if rule.combine == "sum":
            np.add.at(values, flow.target, flow.amount)
        else:
            np.maximum.at(values, flow.target, flow.amount)
        touched = np.union1d(touched, flow.target[flow.amount > 0.0])
        if rule.ceiling:
            values[touched] = np.minimum(values[touched], top)
    if rule.keep_direct:
        values[seeds] = np.maximum(values[seeds], energy)
    return Activation(values, touched.astype(np.intp), seeds, tuple(steps))


def _checked_seeds(graph: Adjacency, seeds: I64, energy: F64) -> tuple[I64, F64]:
    if len(seeds) != len(energy):
        raise ValueError(f"{len(seeds)} seeds have {len(energy)} energies")
    if not np.isfinite(energy).all() or (energy < 0.0).any():
        raise ValueError("energies must be finite and not negative")
    kept = np.flatnonzero(energy > 0.0)
    order = kept[np.argsort(seeds[kept], kind="stable")]
    chosen = seeds[order].astype(np.int64)
    if len(chosen) and (chosen[0] < 0 or chosen[-1] >= graph.size):
        raise ValueError(f"seeds must be nodes of the graph, 0 to {graph.size - 1}")
    if (chosen[1:] == chosen[:-1]).any():
        raise ValueError("seeds must be distinct")
    return chosen, energy[order].astype(np.float64)


def _frontier(values: F64, active: I64, limit: int | None, ties: Ties | None) -> I64:
    """The `limit` most active of `active` (compared at 1e-6), ascending."""
    if limit is None or len(active) <= limit:
        return active
    rounded = round_scores(values[active])
    if ties is None:
        order = np.lexsort((active, -rounded))[:limit]
        return np.sort(active[order])
    return np.sort(top_k(rounded, *ties, limit, rows=active)).astype(np.int64)


def _flow(graph: Adjacency, nodes: I64, values: F64, rule: SpreadRule, conductance: F64) -> Step:
    edges = graph.edges(nodes)
    conducts = conductance[edges.type]
    if not conducts.all():
        kept = conducts > 0.0
        edges, conducts = edges.where(kept), conducts[kept]
    sent = rule.gain * values[nodes]
    if rule.fan:
        degree = np.bincount(edges.origin, minlength=len(nodes))
        sent /= np.maximum(degree, 1) ** rule.fan
    amount = sent[edges.origin] * conducts * edges.strength
    return _ordered(Step(nodes[edges.origin], edges.target, edges.type, amount))


def _ordered(step: Step) -> Step:
    """By (target, source, type, amount), so that sums run in an order of their own."""
    order = np.lexsort((step.amount, step.type, step.source, step.target))
    return Step(step.source[order], step.target[order], step.type[order], step.amount[order])


def route(activation: Activation, node: int) -> Route | None:
    """The shortest way by which activation came from a seed to `node`; the strongest of several.

    Follows the first step that reached each node, so a way never turns back on itself. None for
    seeds, for nodes that nothing reached, and if no steps were recorded.
    """
    seeds = set(activation.seeds.tolist())
    nodes, last = [node], None
    before = len(activation.steps)
    while nodes[-1] not in seeds:
        arrival = _first_arrival(activation.steps[:before], nodes[-1])
        if arrival is None:
            return None
        before, source, kind, amount = arrival
        last = last or (kind, amount)
        nodes.append(source)
    return None if last is None else Route(tuple(reversed(nodes)), *last)


def _first_arrival(steps: Sequence[Step], node: int) -> tuple[int, int, int, float] | None:
    """(step, source, type, amount) of the largest amount in the first step that reached `node`;
    of equal amounts the one from the lowest source."""
    for index, step in enumerate(steps):
        start, end = np.searchsorted(step.target, [node, node + 1])
        if start < end:
            place = int(start) + int(np.argmax(step.amount[start:end]))
            amount = float(step.amount[place])
            if amount > 0.0:
                return index, int(step.source[place]), int(step.type[place]), amount
    return None


# -- Synapse -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SynapseRule:
    """Constants of Synapse's equations 2 to 4.

    S = `spreading`, δ = `decay`, M = `competitors`, T = `steps` are the paper's, and so is `fan`,
    the exponent of the out-degree that divides what a node sends (1; 0: no fan effect). It gives no
    β (`inhibition`), γ (`steepness`), θ (`firing`); these are ours. `silent` says what a node does
    whose inhibited potential is 0 (up to `SILENCE`): "zero": it stays silent (a sigmoid alone
    would make every node of the graph fire at σ(-γθ) and spread that); "rest": the letter of
    eq. 4, every node of the graph fires (O(size + edges) a step, and there is no frontier).

    Raises:
        ValueError: a constant is out of its range.
    """

    steps: int = 3
    spreading: float = 0.8
    decay: float = 0.5
    inhibition: float = 0.15
    competitors: int = 7
    fan: float = 1.0
    steepness: float = 5.0
    firing: float = 0.5
    silent: Literal["zero", "rest"] = "zero"

    def __post_init__(self) -> None:
        if self.steps < 0 or self.competitors < 0:
            raise ValueError("steps and competitors must be ≥ 0")
        if not (0.0 <= self.decay <= 1.0 and self.spreading >= 0.0 and self.inhibition >= 0.0):
            raise ValueError("decay must be in [0, 1], spreading and inhibition ≥ 0")
        if not (math.isfinite(self.fan) and self.fan >= 0.0):
            raise ValueError(f"fan must be a finite number ≥ 0, got {self.fan}")
        if not (math.isfinite(self.steepness) and self.steepness > 0.0):
            raise ValueError(f"steepness must be a positive number, got {self.steepness}")
        if self.silent not in ("zero", "rest"):
            raise ValueError(f"silent must be 'zero' or 'rest', got {self.silent!r}")


def synapse(
    graph: Adjacency,
    seeds: I64,
    energy: F64,
    rule: SynapseRule,
    conductance: F64,
) -> Activation:
    """Synapse's cycle (arXiv 2601.02744, eq. 2–4), `rule.steps` times: propagate, inhibit, fire.

        u_i = (1 - δ) a_i + Σ_{j→i} S · c(type) · w_ji · a_j / outdegree(j)
        û_i = max(0, u_i - β Σ_{k ∈ top M} (u_k - u_i) [u_k > u_i])
        a_i = 1 / (1 + exp(-γ (û_i - θ)))         see `SynapseRule.silent`

    `energy` is eq. 1: α · sim of the anchors. Out-degrees count conducting edges.

    Raises:
        ValueError: see `spread`.
    """
    seeds, energy = _checked_seeds(graph, seeds, energy)
    values = np.zeros(graph.size, np.float64)
    values[seeds] = energy
    propagation = SpreadRule(gain=1.0, fan=rule.fan, frontier=None)
    touched = seeds
    if rule.silent == "rest":
        touched = np.arange(graph.size, dtype=np.int64)
    for _ in range(rule.steps):
        active = touched[values[touched] > 0.0]
        flow = _flow(graph, active, values, propagation, conductance)
        potential = np.zeros(graph.size, np.float64)
        potential[touched] = (1.0 - rule.decay) * values[touched]
        np.add.at(potential, flow.target, rule.spreading * flow.amount)
        touched = np.union1d(touched, flow.target)
        potential[touched] = inhibit(potential[touched], rule.inhibition, rule.competitors)
        values[touched] = fire(potential[touched], rule.steepness, rule.firing)
        if rule.silent == "zero":
            values[touched[potential[touched] <= SILENCE]] = 0.0
    return Activation(values, np.flatnonzero(values > 0.0), seeds)


def inhibit(potential: F64, strength: float, competitors: int) -> F64:
    """Lateral inhibition (Synapse eq. 3): û_i = max(0, u_i - β Σ_k (u_k - u_i) [u_k > u_i]) over
    the `competitors` highest potentials k."""
    if not strength or not competitors or not len(potential):
        return np.maximum(potential, 0.0)
    # Which of several equal potentials are among the top M does not matter: only values enter.
    top = np.sort(potential[best_positions(potential, competitors)])[::-1][:competitors]
    loss = np.maximum(top[None, :] - potential[:, None], 0.0).sum(axis=1)
    inhibited: F64 = np.maximum(potential - strength * loss, 0.0)
    return inhibited


def fire(potential: F64, steepness: float, threshold: float) -> F64:
    """Firing rate (Synapse eq. 4): 1 / (1 + exp(-γ (u - θ))), without overflow."""
    rate: F64 = 0.5 * (1.0 + np.tanh(0.5 * steepness * (potential - threshold)))
    return rate


# -- HeLa-Mem ------------------------------------------------------------------------------------


def hela_mem(
    graph: Adjacency, base: F64, *, beta: float = 0.1, theta: float = 0.6, conductance: F64
) -> F64:
    """HeLa-Mem's one hop (arXiv 2604.16839, eq. 4): S_j = base_j + β Σ_{i: base_i > θ} base_i w_ij.

    `base` (size,) is S_base of every node; the graph gives each link from both ends. θ is the
    authors' code's, 0.6 on LoCoMo and 0.4 on LongMemEval-S.

    Raises:
        ValueError: `base` is not of the graph's size.
    """
    if base.shape != (graph.size,):
        raise ValueError(f"base has shape {base.shape}, the graph {graph.size} nodes")
    sources = np.flatnonzero(base > theta).astype(np.int64)
    rule = SpreadRule(gain=1.0, frontier=None)
    flow = _flow(graph, sources, base, rule, conductance)
    values = base.astype(np.float64)
    np.add.at(values, flow.target, beta * flow.amount)
    return values


def conducting(types: dict[int, float]) -> F64:
    """A conductance array from {link type code: conductance}; 0 for all others.

    Raises:
        ValueError: a conductance is outside [0, 1].
    """
    array = np.zeros(TYPES, np.float64)
    for code, value in types.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"the conductance of link type {code} must be in [0, 1], got {value}")
        array[code] = value
    return array

"""The mechanisms of `activation`, written to be read: plain loops over one edge at a time.

They define what the fast versions must compute; tests run both on the same graphs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cofire.dynamics.activation import SILENCE, SpreadRule, SynapseRule
from cofire.dynamics.ranking import SCALE

Edge = tuple[int, int, float]
"""(target, link type code, strength)."""
Graph = Mapping[int, Sequence[Edge]]
"""Edges that leave each node."""


def _conducting(graph: Graph, conductance: Mapping[int, float], node: int) -> list[Edge]:
    return [edge for edge in graph.get(node, ()) if conductance.get(edge[1], 0.0) > 0.0]


def spread(
    graph: Graph, seeds: Mapping[int, float], rule: SpreadRule, conductance: Mapping[int, float]
) -> dict[int, float]:
    """`activation.spread`: activation of the nodes that have any."""
    seeds = {node: energy for node, energy in seeds.items() if energy > 0.0}
    values = dict(seeds)
    top = max(seeds.values(), default=0.0)
    for _ in range(rule.steps):
        active = [node for node in values if values[node] > rule.threshold]
        active.sort(key=lambda node: (-round(values[node] * SCALE), node))
        arrivals: dict[int, list[tuple[int, int, float]]] = {}
        for node in sorted(active[: rule.frontier]):
            edges = _conducting(graph, conductance, node)
            for target, kind, strength in edges:
                sent = rule.gain * values[node] / len(edges) ** rule.fan
                amount = sent * conductance[kind] * strength
                arrivals.setdefault(target, []).append((node, kind, amount))
        values = {node: (1.0 - rule.decay) * value for node, value in values.items()}
        for target, arrived in arrivals.items():
            for _, _, amount in sorted(arrived):
                own = values.get(target, 0.0)
                values[target] = max(own, amount) if rule.combine == "max" else own + amount
        if rule.ceiling:
            values = {node: min(value, top) for node, value in values.items()}
    if rule.keep_direct:
        for node, energy in seeds.items():
            values[node] = max(values[node], energy)
    return {node: value for node, value in values.items() if value > 0.0}


def synapse(
    graph: Graph,
    size: int,
    seeds: Mapping[int, float],
    rule: SynapseRule,
    conductance: Mapping[int, float],
) -> dict[int, float]:
    """`activation.synapse`: firing rates of the nodes that fire."""
    rates = {node: energy for node, energy in seeds.items() if energy > 0.0}
    nodes = set(range(size)) if rule.silent == "rest" else set(rates)
    for _ in range(rule.steps):
        potential = {node: (1.0 - rule.decay) * rates.get(node, 0.0) for node in nodes}
        for node in sorted(rates):
            edges = _conducting(graph, conductance, node)
            for target, kind, strength in edges:
                weight = conductance[kind] * strength
                sent = rule.spreading * weight * rates[node] / len(edges) ** rule.fan
                potential[target] = potential.get(target, 0.0) + sent
        nodes = set(potential)
        winners = sorted(potential.values(), reverse=True)[: rule.competitors]
        rates = {}
        for node, own in potential.items():
            loss = sum(winner - own for winner in winners if winner > own)
            inhibited = max(0.0, own - rule.inhibition * loss)
            if inhibited > SILENCE or rule.silent == "rest":
                rates[node] = 1.0 / (1.0 + math.exp(-rule.steepness * (inhibited - rule.firing)))
    return rates


def hela_mem(
    graph: Graph,
    base: Sequence[float],
    beta: float,
    theta: float,
    conductance: Mapping[int, float],
) -> list[float]:
    """`activation.hela_mem`: S of every node."""
    values = list(base)
    for node, own in enumerate(base):
        if own > theta:
            for target, kind, strength in _conducting(graph, conductance, node):
                values[target] += beta * own * conductance[kind] * strength
    return values

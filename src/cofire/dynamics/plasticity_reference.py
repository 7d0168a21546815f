"""The rules of `credit` and `plasticity`, written to be read: pair by pair, event by event.

They define what the fast versions must compute; tests run both on the same events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from cofire.dynamics.credit import Credits
from cofire.dynamics.plasticity import DAY_US, LinkState, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEvent:
    """One event as it bears on one link; see `plasticity.apply`."""

    credit: float
    signal: str
    time: int
    principal: str | None = None
    trusted: bool = False
    tick: int = 0


@dataclass(slots=True)
class Link:
    strength: float = 0.0
    coactivations: int = 0
    rejections: int = 0
    last: int = 0
    tick: int = 0
    day: int = 0
    moved: dict[str, float] = field(default_factory=dict)

    def state(self) -> LinkState:
        return LinkState(
            self.strength, self.coactivations, self.last, self.tick, self.rejections, self.day,
            tuple(sorted(self.moved.items())),
        )  # fmt: skip


def fold(rule: Rule, events: Sequence[LinkEvent]) -> LinkState | None:
    """`plasticity.apply` over all events, from no link."""
    link: Link | None = None
    for event in events:
        if link is None:
            link = Link(last=event.time, tick=event.tick, day=event.time // DAY_US)
        if event.credit != 0.0 and rule.alpha[event.signal] > 0.0:
            _pass_time(rule, link, event)
            _move(rule, link, event)
    return None if link is None else link.state()


def _pass_time(rule: Rule, link: Link, event: LinkEvent) -> None:
    elapsed_days = max(0, event.time - link.last) / DAY_US
    if rule.half_life_days is not None:
        link.strength *= math.exp2(-elapsed_days / rule.half_life_days)
    if rule.kind == "hela_mem":
        for _ in range(event.tick - link.tick):
            link.strength *= rule.retention
    link.last = max(link.last, event.time)
    link.tick = max(link.tick, event.tick)
    if link.last // DAY_US != link.day:
        link.day = link.last // DAY_US
        link.moved = {}


def _move(rule: Rule, link: Link, event: LinkEvent) -> None:
    wanted = _change(rule, link, event)
    if rule.cap_per_day is not None and not event.trusted and wanted != 0.0:
        principal = event.principal or ""
        so_far = link.moved.get(principal, 0.0)
        size = min(abs(wanted), rule.cap_per_day - so_far)
        link.moved[principal] = so_far + size
        wanted = math.copysign(size, wanted)
    link.strength = min(1.0, max(0.0, link.strength + wanted))
    if event.credit > 0.0:
        link.coactivations += 1
    else:
        link.rejections += 1


def _change(rule: Rule, link: Link, event: LinkEvent) -> float:
    rate = rule.alpha[event.signal]
    size = abs(event.credit) if rule.graded else 1.0
    if event.credit < 0.0:
        return -link.strength * rule.alpha_rejected * size
    if rule.initial > 0.0 and link.strength == 0.0 and link.coactivations == 0:
        return rule.initial
    steps = {
        "asymptotic": (1.0 - link.strength) * rate * size,
        "linear": rate * size,
        "hela_mem": rule.eta * rate * size,
    }
    return min(steps[rule.kind], 1.0 - link.strength)


def pair_credits(
    items: Mapping[int, float], linked_via: Mapping[int, int], outcome: float
) -> Credits:
    """`credit.pair_credits`, for {number: credit}."""
    used = sum(credit > 0.0 for credit in items.values())
    credits = []
    for i, j in combinations(sorted(items), 2):
        product = items[i] * items[j]
        only_linked = linked_via.get(i) == j or linked_via.get(j) == i
        if items[i] > 0.0 and items[j] > 0.0:
            credit = outcome * product / (used - 1)
            if credit > 0.0 and only_linked:
                credit = 0.0
        elif items[i] > 0.0 or items[j] > 0.0:
            credit = abs(outcome) * min(product, 0.0) / used
        else:
            credit = 0.0
        if credit != 0.0:
            credits.append((i, j, credit))
    return credits


def coactivation_window(times: Sequence[int], rule: Rule) -> float:
    """`plasticity.coactivation_window`, in seconds."""
    ordered = sorted(times)
    gaps = sorted(b - a for a, b in pairwise(ordered))
    if not gaps:
        return rule.window_least_seconds
    middle = (gaps[(len(gaps) - 1) // 2] + gaps[len(gaps) // 2]) / 2
    width = rule.window_gaps * middle / 1e6
    return min(rule.window_most_seconds, max(rule.window_least_seconds, width))

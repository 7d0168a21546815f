"""What the steps of one consolidation share: the space, the moment, the means and the constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Generator as Generating
from dataclasses import dataclass, field
from typing import Protocol

from cofire.consolidation.budgets import Budget
from cofire.errors import InputError
from cofire.graph.active import ActiveGraph
from cofire.models.generator import Generator
from cofire.store import Store
from cofire.store.claims import Claim
from cofire.store.planning import Applied, Plan
from cofire.store.records import NewItem, SpaceInfo, StepRow
from cofire.types import Message

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepRule:
    """Constants of consolidation. Defaults are the papers' where they name one.

    turns_per_window: turns after which concepts are extracted (Synapse: N = 5), ≥ 1.
    interactions: how many of the last interactions are looked back on (Atamaia: 10), ≥ 1.
    hub_strength: δ of HeLa-Mem's eq. 2, which the paper leaves open: a memory whose learned links
        add up to more is a hub.
    hub_by: "strength" (eq. 2) or "frequency" (how often it was used), the rival.
    neighbours: strong neighbours of a hub that make a cluster with it, at most, ≥ 1.
    strengthen_below, strengthen_hours: links used within so many hours and weaker than this get
        one background signal a period (Atamaia: 0.95, 24 h).
    prune_below, prune_days: learned links weaker than this and unused for so long go (Atamaia: 0.1,
        60 days).
    staircase_days: importance falls by 1 for so many days without access (Atamaia: 30), floor 1.
    protect_strength: memories whose links add up to this keep their importance.
    archive_days: unpinned memories of importance 1, never accessed, older than this are archived
        (Atamaia: 90 days).
    idle_days, idle_strength: HeLa-Mem's three criteria: links weaker in sum than this, without
        change for so long, no access for so long.
    stale_days: goals and threads to which nothing happened for so long are stale. Ours.
    links_per_item: most links that may lead to a memory (Synapse: K = 15), ≥ 1.
    most_items: size that the active graph is kept at (Synapse: 10,000), ≥ 1.
    turns_per_request: how many turns a language model is asked about at once, ≥ 1.
    tries: in how many consolidations turns are asked about that brought no usable answer, ≥ 1.
    similar: cosine from which an unlinked pair becomes a candidate link, in (0, 1].
    """

    turns_per_window: int = 5
    interactions: int = 10
    hub_strength: float = 1.0
    hub_by: str = "strength"
    neighbours: int = 12
    strengthen_below: float = 0.95
    strengthen_hours: float = 24.0
    prune_below: float = 0.1
    prune_days: float = 60.0
    staircase_days: float = 30.0
    protect_strength: float = 0.5
    archive_days: float = 90.0
    idle_days: float = 90.0
    idle_strength: float = 0.1
    stale_days: float = 30.0
    links_per_item: int = 15
    most_items: int = 10_000
    turns_per_request: int = 30
    tries: int = 3
    similar: float = 0.8

    def __post_init__(self) -> None:
        """Raises InputError for what is out of range."""
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.hub_by not in HUBS_BY:
            raise InputError(f"hub_by is one of {', '.join(HUBS_BY)}, not {self.hub_by!r}")


HUBS_BY = ("strength", "frequency")
_POSITIVE = (
    "turns_per_window", "interactions", "neighbours", "links_per_item", "most_items",
    "turns_per_request", "tries",
)  # fmt: skip
SLEEP = SleepRule()


class Maker(Protocol):
    """Turns messages into items, with vectors where there is a model; all are made in one call."""

    def __call__(self, messages: Sequence[Message], /) -> Sequence[NewItem]: ...


@dataclass(slots=True, kw_only=True)
class Night:
    """One consolidation of one space.

    now: µs. graph: the active graph as it is at the moment of the call. make: see `Maker`.
    generator: a language model, or None: rules alone. budget: what it may take; counted over all
    spaces of one consolidation. prior: makes what a profile keeps with a graph before any question
    needs it, and returns of how many nodes; None: nothing. wall: µs by the clock on the wall
    (0: nobody looks at it). claim: under which all is written; None: under none. stopped: whether
    to end after the part of a step that is being worked on; asked after each.
    """

    store: Store
    space: SpaceInfo
    now: int
    graph: Callable[[], ActiveGraph]
    make: Maker
    rule: SleepRule = SLEEP
    generator: Generator | None = None
    budget: Budget = field(default_factory=Budget)
    prior: Callable[[ActiveGraph], int] | None = None
    wall: int = 0
    claim: Claim | None = None
    stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A part of a step that is done in one transaction, with how far the step has come then, and
    what the step wants counted besides what was done. `last`: no other part follows; with it the
    period counts as done. `seen`: what was edited before then (µs) has been read; None: before
    this night."""

    plan: Plan
    row: StepRow
    counts: Mapping[str, int] = field(default_factory=dict)
    last: bool = True
    seen: int | None = None


Run = Callable[[Night, StepRow], Generating[Work, Applied, None]]
"""A step: given how far it had come, yields parts of its work, and is sent what became of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A named step. `period` µs: it is applied once in each, however often it is called; None: it
    works on what changed since its last run."""

    name: str
    run: Run
    period: int | None = None

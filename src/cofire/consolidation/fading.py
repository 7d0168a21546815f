"""The steps that let go: links that nothing confirms, importance that nothing asks for, memories
that nobody needs in the active graph. All of it but pruning is reversible; nothing is deleted.

The rules are `dynamics.retention`'s; here is who they are applied to, and when. What is archived
keeps its text, vector and links, and `restore` brings it back as it was.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from cofire.consolidation.night import DAY_US, Night, Step, Work
from cofire.consolidation.shapes import shapes, shapes_to_come
from cofire.consolidation.standing import Standing, size_of, standing
from cofire.consolidation.strengthening import candidates, strengthen, window
from cofire.dynamics import retention
from cofire.dynamics.arrays import I64, Bool
from cofire.store.planning import Applied, Plan
from cofire.store.records import KIND_CODES, LINK_CODES, StepRow
from cofire.types import Kind, LinkType

DORMANT_WINDOWS = 10
"""Windows of silence after which a memory is dormant (Synapse, section 3.1)."""
SPARE = 0.02
"""Share of the rows of a full graph that a night leaves free."""
PORTION = 500
"""Links taken away in one transaction: others can write in between."""
_CAPPED = np.array(
    [LINK_CODES[kind.value] for kind in (LinkType.ABSTRACTION, LinkType.RELATED)], np.uint8
)
"""Links made by rule, of which there may be too many. Learned ones have the rule's own K; what
orders, proves or contradicts is never one too many."""

_STANDING_FOR = np.array([KIND_CODES[kind.value] for kind in (Kind.GIST, Kind.WORD)], np.uint8)

Working = Generator[Work, Applied, None]


def prune(night: Night, row: StepRow) -> Working:
    """Learned links that are weak now and were not confirmed for long go (Atamaia, section 4.4;
    see `retention.prunable`). Links of what is archived stay as they are."""
    rule = night.rule
    before = night.now - int(rule.prune_days * DAY_US)
    idle = night.store.idle_links(night.space, before, now=night.now)
    if not idle:
        return
    ends = np.array([link[:2] for link in idle], np.int64)
    unused = np.array([night.now - last for *_, last in idle], np.int64)
    strength = np.array([link[2] for link in idle], np.float64)
    gone = retention.prunable(strength, unused, below=rule.prune_below, idle_days=rule.prune_days)
    graph = night.graph()
    gone &= (graph.rows_of(ends[:, 0]) >= 0) & (graph.rows_of(ends[:, 1]) >= 0)
    yield from _unlinking([(int(a), int(b)) for a, b in ends[gone]], row)


def cap(night: Night, row: StepRow) -> Working:
    """At most K links of a kind that rules make lead to a memory, the strongest (Synapse, section
    3.1: K = 15; see `retention.beyond`). What use has taught has its own K, and gists and words
    have no more than their steps give them: a frequent word is akin to many others."""
    graph = night.graph()
    source, target, kind, strength, when = graph.links.arrays(graph.numbers.array)
    made = np.isin(kind, _CAPPED) & (when == 0)
    made &= ~np.isin(graph.column("kind")[graph.rows_of(source)], _STANDING_FOR)
    source, target, strength = source[made], target[made], strength[made]
    gone = retention.beyond(target, strength, source, most=night.rule.links_per_item)
    pairs = zip(source[gone].tolist(), target[gone].tolist(), strict=True)
    yield from _unlinking(sorted(pairs), row)


def _unlinking(pairs: Sequence[tuple[int, int]], row: StepRow) -> Working:
    for start in range(0, len(pairs), PORTION):
        portion = tuple(pairs[start : start + PORTION])
        yield Work(plan=Plan(pruned=portion), row=row, last=start + PORTION >= len(pairs))


def staircase(night: Night, row: StepRow) -> Working:
    """Importance falls by one for each month without access (Atamaia, section 4.4; see
    `retention.steps_due`): as many steps as fall between the last run and this one. All in one
    transaction, because the time of the last run is what keeps a step from being taken twice."""
    now = standing(night)
    due = retention.steps_due(now.last, row.time, night.now, night.rule.staircase_days)
    importance = retention.lowered(
        now.importance,
        due,
        now.kept,
        now.strength,
        protect_strength=night.rule.protect_strength,
    )
    lower = importance != now.importance
    if lower.any():
        changes = zip(now.number[lower].tolist(), importance[lower].tolist(), strict=True)
        yield Work(plan=Plan(importance=tuple(changes)), row=row)


def archive(night: Night, row: StepRow) -> Working:
    """What was never accessed and has become unimportant is archived (Atamaia, section 4.4; see
    `retention.archivable`). What consolidation made is not: its evidence speaks for it."""
    now = standing(night)
    chosen = retention.archivable(
        now.importance,
        now.uses,
        night.now - now.stored,
        now.kept | now.derived,
        archive_days=night.rule.archive_days,
    )
    yield from _archiving(now.number[chosen], row)


def adaptive(night: Night, row: StepRow) -> Working:
    """What is weakly linked, unchanged and unused for long is archived (HeLa-Mem, section 3.3, all
    three criteria; see `retention.forgettable`). What consolidation made is not."""
    now = standing(night)
    chosen = retention.forgettable(
        now.strength,
        night.now - now.changed,
        night.now - now.last,
        now.kept | now.derived,
        idle_strength=night.rule.idle_strength,
        idle_days=night.rule.idle_days,
    )
    yield from _archiving(now.number[chosen], row)


def dormant(night: Night, row: StepRow) -> Working:
    """Keeps the active graph at `SleepRule.most_items` rows (Synapse, section 3.1: 10,000; see
    `standing.size_of`): where there are more, those go for which least speaks
    (`retention.retention_score`), dormant ones first.

    Synapse calls a node dormant if its activation stayed below 0.01 for 10 windows of N = 5 turns.
    Activation is not kept between recalls, so access stands in for it: a memory is dormant if no
    recall returned it since the last 50 memories began to be stored. By itself that archives
    nothing: a week of silence would empty the memory. A part stays free (`SPARE`) for the shapes of
    what goes and for what comes before the next night.
    """
    over = size_of(night.graph()) - int((1.0 - SPARE) * night.rule.most_items)
    if over <= 0:
        return
    now = standing(night)
    score = retention.retention_score(
        now.importance, now.strength, now.uses, night.now - now.last, now.information
    )
    silent = _is_dormant(night, now)
    chosen = retention.surplus(score, silent, now.stored, now.parts, now.kept, over=over)
    more = shapes_to_come(night, now.number[chosen].tolist())
    chosen = retention.surplus(score, silent, now.stored, now.parts, now.kept, over=over + more)
    yield from _archiving(now.number[chosen], row)


def _is_dormant(night: Night, now: Standing) -> Bool:
    turns = DORMANT_WINDOWS * night.rule.turns_per_window
    since = night.store.recorded_before(night.space, turns - 1)
    if since is None:
        return np.zeros(len(now), np.bool_)
    silent: Bool = now.last < since
    return silent


def _archiving(numbers: I64, row: StepRow) -> Working:
    if len(numbers):
        yield Work(plan=Plan(archived=tuple(numbers.tolist())), row=row)


def prior(night: Night, row: StepRow) -> Working:
    """Makes the PageRank prior of the graph as the steps before left it, so that no question waits
    for it (Synapse, section 3.2, refreshes it at consolidation). It is kept in memory only: to note
    it in the store would make the graph another, and the prior void."""
    if night.prior is not None:
        night.prior(night.graph())
    yield from ()


FADING_STEPS: tuple[Step, ...] = (
    Step(name="window", run=window),
    Step(name="strengthen", run=strengthen, period=DAY_US),
    Step(name="candidates", run=candidates),
    Step(name="prune", run=prune, period=DAY_US),
    Step(name="cap", run=cap, period=DAY_US),
    Step(name="staircase", run=staircase, period=DAY_US),
    Step(name="archive", run=archive, period=DAY_US),
    Step(name="adaptive", run=adaptive, period=DAY_US),
    Step(name="dormant", run=dormant),
    Step(name="shapes", run=shapes),
    Step(name="pagerank", run=prior),
)
"""In the order in which they are to run: what use says first, then what fades by it, then the
shapes of what has faded. The papers run everything hourly but for rules of days; those run daily
here. The others work on what changed, so that they may run at any time."""

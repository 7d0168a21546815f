"""A year of one agent's life in a few minutes: what forgetting keeps, and what it costs.

    python -m benchmarks.year                      # 365 days, both arms, some minutes
    python -m benchmarks.year --short              # 60 days in which everything goes faster
    python -m benchmarks.year --json year.json --plot docs/explanation/a-year.png

Every day 50 turns are remembered and two questions asked, whose outcome is fed back; every night
the steps of forgetting run. Nothing is random from run to run, nothing reads the clock, and the
embedder is a hash, so that a year takes minutes. Planted in the first month are

- *evidence in use*: 40 facts, each of which a question asks for once in 40 days, in random order,
- *silent evidence*: facts of the same kind that nobody asks for,
- *important facts*: pinned, or of importance 8 and more, and never asked for either.

What the questions find is measured once a week, by a look that leaves no trace: it counts as no
access. Arms: "default" (all rules), and "cap alone" (no rule of age: only the size of the active
graph is kept at its most).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.corpus import messages, questions, vocabulary
from cofire.consolidation.cycle import run
from cofire.consolidation.fading import FADING_STEPS
from cofire.consolidation.night import SLEEP, Night, SleepRule
from cofire.memory import Memory
from cofire.settings import load_settings
from cofire.types import Message, to_micros

BEGINNING = datetime(2026, 1, 5, 8, tzinfo=UTC)
EMBEDDER = "hashing:64"
TURNS = 50
SESSION = 20
"""Turns of a session."""
MONTH = 30
"""Days in which things are planted."""
POLITE = ("Thanks a lot!", "You're welcome.", "Great, thank you.", "Good night!", "Ha, nice.")
NEVER = 1e6
"""Days after which something happens that is switched off."""
ARMS: Mapping[str, SleepRule] = {
    "default": SLEEP,
    "cap alone": replace(SLEEP, staircase_days=NEVER, archive_days=NEVER, idle_days=NEVER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long, how much. `asked`, `silent`, `important`: how many facts are planted of each."""

    days: int = 365
    turns: int = TURNS
    asked: int = 40
    silent: int = 20
    important: int = 20
    seed: int = 1


SHORT = Plan(days=60, turns=20, asked=8, silent=8, important=8)
SHORT_MOST = 500


def quicker(rule: SleepRule, times: float) -> SleepRule:
    """The rule with all its days so many times shorter."""
    return replace(
        rule,
        prune_days=rule.prune_days / times,
        staircase_days=rule.staircase_days / times,
        archive_days=rule.archive_days / times,
        idle_days=rule.idle_days / times,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A fact, the question that asks for it, and the day it is told."""

    sort: str
    day: int
    fact: Message
    question: str


@dataclass(slots=True, kw_only=True)
class Year:
    """What was measured. By night: rows of the active graph, what the steps did, seconds. By week:
    of each sort of planted facts, the share found at 10."""

    active: list[int] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)
    shapes: list[int] = field(default_factory=list)
    operations: list[dict[str, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    weeks: list[int] = field(default_factory=list)
    found: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    lost: int = 0
    asked: int = 0
    answered: int = 0


# -- What is said --------------------------------------------------------------------------------

_PLACES = ("cellar", "attic", "garage", "blue cupboard", "garden shed", "red suitcase")
_RANKS = slice(60, 400)
"""Of the vocabulary by frequency: words that some dozen turns of a year name."""


def planted(plan: Plan) -> list[Planted]:
    """Facts about a thing each. Other turns name those things, too, more as time goes by."""
    rng = random.Random(plan.seed)
    sorts = ["asked"] * plan.asked + ["silent"] * plan.silent + ["important"] * plan.important
    names = rng.sample(vocabulary()[_RANKS], len(sorts))
    rng.shuffle(sorts)
    made = []
    for place, (sort, thing) in enumerate(zip(sorts, names, strict=True)):
        where = rng.choice(_PLACES)
        weighty = sort == "important"
        made.append(
            Planted(
                sort=sort,
                day=place * min(MONTH, plan.days // 2) // len(sorts),
                fact=Message(
                    content=f"I have put the old {thing} into the {where} behind the books.",
                    speaker="Nora",
                    importance=8 + place % 3 if weighty and place % 2 else 5,
                    pinned=weighty and place % 2 == 0,
                ),
                question=f"Where did Nora put the {thing}?",
            )
        )
    return made


def told(plan: Plan) -> list[list[Message]]:
    """The turns of each day: the corpus with some politeness, in sessions."""
    rng = random.Random(plan.seed + 1)
    days = []
    source = iter(messages(plan.days * plan.turns, plan.seed))
    for day in range(plan.days):
        turns = []
        for place in range(plan.turns):
            turn = next(source)
            polite = rng.random() < 0.15
            number = day * plan.turns + place
            turns.append(
                Message(
                    content=rng.choice(POLITE) if polite else turn.content,
                    speaker=turn.speaker,
                    session=f"session {number // SESSION}",
                    time=BEGINNING + timedelta(days=day, minutes=10 * place),
                )
            )
        days.append(turns)
    return days


# -- The year ------------------------------------------------------------------------------------


class Life:
    """One agent that lives through the plan with one rule."""

    def __init__(self, memory: Memory, plan: Plan, rule: SleepRule) -> None:
        self.memory = memory
        self.plan = plan
        self.rule = rule
        self.rng = random.Random(plan.seed + 2)
        self.facts = planted(plan)
        self.ids: dict[str, str] = {}
        self.recent: list[tuple[str, Message]] = []
        self.year = Year()
        self.hits: dict[str, bool] = {}
        self.round: list[str] = []

    def live(self) -> Year:
        for day, turns in enumerate(told(self.plan)):
            evening = BEGINNING + timedelta(days=day, hours=10)
            self._remember(day, turns, evening)
            self._ask(evening)
            self._sleep(evening + timedelta(hours=9))
            if day % 7 == 6:
                self._measure(day, evening + timedelta(hours=12))
        important = [self.ids[one.question] for one in self.facts if one.sort == "important"]
        items = [self.memory.get(id) for id in important]
        self.year.lost = sum(item is None or item.archived is not None for item in items)
        return self.year

    def _remember(self, day: int, turns: Sequence[Message], evening: datetime) -> None:
        today = [one for one in self.facts if one.day == day]
        facts = [
            replace(one.fact, session=turns[-1].session, time=evening - timedelta(minutes=5))
            for one in today
        ]
        ids = self.memory.remember([*turns, *facts], now=evening).ids
        self.ids.update(zip((one.question for one in today), ids[len(turns) :], strict=True))
        self.recent = [*self.recent, *zip(ids, turns, strict=False)][-MONTH * self.plan.turns :]

    def _ask(self, evening: datetime) -> None:
        """Two questions a day, an hour apart: for a planted fact, and for something of late."""
        pending = []
        if not self.round:
            self.round = [
                one.question
                for one in self.facts
                if one.sort == "asked" and one.question in self.ids
            ]
            self.rng.shuffle(self.round)
        if self.round:
            question = self.round.pop()
            pending.append((question, self.ids[question]))
        telling = [one for one in self.recent if one[1].content not in POLITE]
        id, turn = self.rng.choice(telling)
        pending.append((questions([turn], 1, self.rng.randrange(1 << 30))[0], id))
        for place, (question, wanted) in enumerate(pending):
            now = evening + timedelta(hours=place)
            recall = self.memory.recall(question, now=now)
            self.year.asked += 1
            if wanted in recall.ids:
                self.year.answered += 1
                self.memory.feedback(recall, used=[wanted], now=now + timedelta(minutes=1))

    def _sleep(self, now: datetime) -> None:
        began = time.perf_counter()
        done: Counter[str] = Counter()
        for report in run(self._night(now), FADING_STEPS):
            assert report.error is None, report
            for name, count in report.counts.items():
                if report.name != "pagerank":
                    done[f"{report.name}: {name}"] += count
        self.year.seconds.append(time.perf_counter() - began)
        stats = self.memory.stats().spaces[0]
        graph = self._night(now).graph()
        self.year.operations.append(dict(sorted(done.items())))
        self.year.active.append(graph.items)
        self.year.stored.append(stats.items)
        self.year.shapes.append(stats.by_kind.get("shape", 0))

    def _night(self, now: datetime) -> Night:
        workings = self.memory._workings
        workings.settle()
        space = workings.spaces.all()[0]
        return Night(
            store=workings.store,
            space=workings.store.refreshed(space),
            now=to_micros(now),
            graph=lambda: workings.recaller.graph(space),
            make=lambda given: (
                workings.encoder.derive(list(given), now=now, counter=workings.embedder).items
            ),
            rule=self.rule,
        )

    def _measure(self, day: int, now: datetime) -> None:
        """What the questions find now. Of every fact the first look counts as its first week."""
        found: dict[str, list[bool]] = {"asked": [], "silent": [], "important": []}
        for one in self.facts:
            if one.question not in self.ids:
                continue
            ids, _ = self.memory.candidates(one.question, now=now)
            hit = self.ids[one.question] in ids[:10]
            self.hits.setdefault(one.question, hit)
            found[one.sort].append(hit)
        self.year.weeks.append(day + 1)
        for sort, hits in found.items():
            self.year.found.setdefault(sort, []).append(statistics.mean(hits) if hits else 0.0)
            first = [self.hits[one.question] for one in self.facts
                     if one.sort == sort and one.question in self.hits]  # fmt: skip
            self.year.first[sort] = statistics.mean(first) if first else 0.0


def simulate(plan: Plan, rule: SleepRule, folder: Path, name: str = "year") -> Year:
    """One arm, in a store of its own."""
    path = folder / f"{name.replace(' ', '-')}.db"
    settings = load_settings(durability="normal", embedder=EMBEDDER)
    with Memory.open(path, settings=settings) as memory:
        year = Life(memory, plan, rule).live()
        assert memory.replay() == 0, "the log says something else than the links"
        assert not memory.check(), "the store does not agree with itself"
    return year


# -- What it comes to ----------------------------------------------------------------------------


def summary(year: Year) -> dict[str, Any]:
    """The figures that the targets speak of. Operations are of the last quarter of the nights, by
    week, as shares of their mean: a night's own count is that of a day's turns 30, 60, … ago."""
    nights = len(year.active)
    late = [sum(one.values()) for one in year.operations[nights - nights // 4 :]]
    weeks = [statistics.mean(late[at : at + 7]) for at in range(0, len(late) - 6, 7)]
    mean = statistics.mean(weeks) if weeks else 0.0
    spread = max((abs(week - mean) / mean for week in weeks), default=0.0) if mean else 0.0
    kept = {
        sort: (found[-1] / year.first[sort] if year.first[sort] else 0.0)
        for sort, found in year.found.items()
    }
    lowest = {
        sort: (min(found[4:] or found) / year.first[sort] if year.first[sort] else 0.0)
        for sort, found in year.found.items()
    }
    return {
        "most active": max(year.active),
        "active at the end": year.active[-1],
        "memories at the end": year.stored[-1],
        "shapes at the end": year.shapes[-1],
        "operations a night, last quarter": mean,
        "  of which": _by_step(year.operations[nights - nights // 4 :]),
        "farthest week from that": spread,
        "seconds a night, median": statistics.median(year.seconds),
        "seconds a night, worst": max(year.seconds),
        "first week's recall@10": year.first,
        "kept at the end": kept,
        "kept in the worst week after the first month": lowest,
        "important facts lost": year.lost,
        "questions answered": year.answered / year.asked if year.asked else 0.0,
    }


def _by_step(nights: Sequence[Mapping[str, int]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for night in nights:
        total.update(night)
    return {name: count / len(nights) for name, count in sorted(total.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--short", action="store_true", help="60 days, 20 turns, 500 active")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--most", type=int, default=SLEEP.most_items, help="rows kept active")
    parser.add_argument("--arm", choices=list(ARMS), action="append", help="default: all")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, action="append", help=".png or .svg; may be repeated")
    options = parser.parse_args()
    plan = SHORT if options.short else Plan(days=options.days)
    most = SHORT_MOST if options.short else options.most
    results: dict[str, Any] = {"plan": asdict(plan), "most": most, "arms": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.arm or ARMS:
            began = time.perf_counter()
            rule = replace(ARMS[name], most_items=most)
            if options.short:
                rule = quicker(rule, 365 / plan.days)
            year = simulate(plan, rule, Path(folder), name)
            told_of = summary(year)
            results["arms"][name] = {"summary": told_of, **asdict(year)}
            print(f"{name} ({time.perf_counter() - began:.0f} s)")
            for what, value in told_of.items():
                print(f"  {what:45} {_shown(value)}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for path in options.plot or ():
        from benchmarks.year_picture import plot_year

        plot_year(results, path)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()

"""The steps that keep working memory: what people mean to do is inferred from what they say, closed
when they say that it is done, and what nobody touches for long becomes stale (Atamaia, section 6.2,
phase 3).

What is inferred is a derived memory in the speaker's own words and the state "inferred" until
somebody confirms it (`Memory.advance`, `conclude`, or `checkpoint` naming it). What ends it is a
derived fact that supersedes it, so that it opens again if that fact's turn is deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, replace

from cofire import lifecycle, views
from cofire.consolidation.drafts import Turn
from cofire.consolidation.intentions import (
    Completion,
    Intention,
    Undertaking,
    completes,
    completions,
    intention_of,
    intentions,
)
from cofire.consolidation.night import DAY_US, Night, Step, Work
from cofire.consolidation.quoting import spelled
from cofire.consolidation.registry import EVIDENCE
from cofire.consolidation.turns import MOST_CHARACTERS, read_turns
from cofire.consolidation.unread import batches
from cofire.consolidation.verifying import confidence
from cofire.encoding.facets import packed_facets
from cofire.lifecycle import WORKING, Change
from cofire.store import Store
from cofire.store.marking import Marked
from cofire.store.planning import Applied, Plan
from cofire.store.records import ListedRow, NewDerived, NewItem, SpaceInfo, StepRow
from cofire.types import Filters, Kind, LinkType, Message, ThreadState, to_micros

BATCH = 200
"""Turns that are read for one transaction."""
PAGE = 500
"""Goals and threads listed at a time."""
_SAID = (Kind.EPISODE.value,)

Working = Generator[Work, Applied, None]


def listed(store: Store, spaces: Sequence[SpaceInfo], kinds: Collection[Kind]) -> list[ListedRow]:
    """Every goal and thread of these spaces that is neither archived nor in doubt."""
    filters = Filters(kinds=tuple(kinds))
    found: list[ListedRow] = []
    after: tuple[int, bytes] | None = None
    while True:
        page = store.list(spaces, filters, after=after, limit=PAGE)
        found += page
        if len(page) < PAGE:
            return found
        after = (page[-1].item.time, page[-1].item.uid)


# -- What nobody touches -------------------------------------------------------------------------


def stale_threads(night: Night, row: StepRow) -> Working:
    """Goals and threads to which nothing happened for `SleepRule.stale_days` are stale: no session
    opens with them. Nothing is deleted, and to advance one opens it again."""
    before = night.now - int(night.rule.stale_days * DAY_US)
    wanted = []
    for _, item in listed(night.store, [night.space], WORKING):
        is_open = lifecycle.state_of(item, night.now) in lifecycle.OPEN
        if is_open and lifecycle.touched(item) < before:
            log = [*lifecycle.log_of(item), Change(ThreadState.STALE, night.now)]
            metadata = lifecycle.marked(item.metadata, log)
            facets = packed_facets(replace(views.message(item), metadata=metadata))
            wanted.append(Marked(item.number, item.revision, metadata, facets))
    if wanted:
        yield Work(plan=Plan(marked=tuple(wanted)), row=row)


# -- What people mean to do ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """Something inferred that waits to be done: by whom (casefolded), what, since when (µs)."""

    number: int
    subject: str
    what: Undertaking
    since: int
    content: str


def infer_threads(night: Night, row: StepRow) -> Working:
    """Opens what is meant to be done and closes what is said to be done, in turns that are new or
    were edited since the last run. What was meant longer ago than `SleepRule.stale_days` would be
    stale at once, and is left alone; so is what a later turn of the same batch says was done."""
    waiting: list[Open] | None = None
    for reached, numbers in batches(night, row, _SAID, BATCH):
        turns = [
            turn
            for turn in read_turns(night.store, night.space, numbers)
            if len(turn.content) <= MOST_CHARACTERS
        ]
        batch = Batch(night, _waiting(night) if waiting is None else waiting)
        for turn in sorted(turns, key=lambda turn: (turn.time, turn.number)):
            batch.read(turn)
        applied = yield Work(
            plan=batch.plan(), row=reached, counts=batch.counts, last=False, seen=reached.time
        )
        waiting = batch.left(applied)


def _waiting(night: Night) -> list[Open]:
    """What was inferred before and is still open."""
    numbers = [
        item.number
        for _, item in listed(night.store, [night.space], WORKING)
        if lifecycle.state_of(item, night.now) in lifecycle.OPEN
    ]
    found = []
    for one in night.store.derived(night.space, numbers) if numbers else ():
        statement = lifecycle.statement_of(one.item)
        read = intention_of(statement)
        if read is not None:
            subject = one.subject.casefold()
            found.append(Open(one.item.number, subject, read[1], one.item.time, statement))
    return found


class Batch:
    """What some turns open and close."""

    def __init__(self, night: Night, waiting: Iterable[Open]) -> None:
        self._night = night
        self._waiting = list(waiting)
        self._fresh: dict[int, tuple[Turn, Intention]] = {}
        self._ended: list[tuple[Turn, Completion, Open]] = []
        self._next = -1
        self.counts: Counter[str] = Counter()

    def read(self, turn: Turn) -> None:
        """Takes note of what a turn opens, and of what it says is done."""
        for intention in intentions(turn):
            self._open(turn, intention)
        for done in completions(turn):
            self._close(turn, done)

    def _open(self, turn: Turn, intention: Intention) -> None:
        said = to_micros(turn.time)
        if said < self._night.now - int(self._night.rule.stale_days * DAY_US):
            return
        content = turn.content[intention.start : intention.end]
        subject = _subject(turn)
        words = spelled(content)
        if any(one.subject == subject and spelled(one.content) == words for one in self._waiting):
            return
        self._fresh[self._next] = (turn, intention)
        self._waiting.append(Open(self._next, subject, intention.what, said, content))
        self._next -= 1

    def _close(self, turn: Turn, done: Completion) -> None:
        """Ends the one undertaking that a completion is of; of several, none."""
        said, subject = to_micros(turn.time), _subject(turn)
        scores = [
            (completes(done, one.what), one)
            for one in self._waiting
            if one.subject == subject and one.since < said
        ]
        best = max((score for score, _ in scores), default=0.0)
        ended = [one for score, one in scores if score == best]
        if best == 0.0 or len(ended) != 1:
            return
        self._waiting.remove(ended[0])
        if ended[0].number < 0:  # begun and done: nothing waits
            del self._fresh[ended[0].number]
            return
        self._ended.append((turn, done, ended[0]))

    def plan(self) -> Plan:
        """What is to be filed: first what is opened."""
        opened = [
            (turn, intention.kind, intention.start, intention.end)
            for turn, intention in self._fresh.values()
        ]
        ended = [(turn, Kind.FACT, done.start, done.end) for turn, done, _ in self._ended]
        sentences = [*opened, *ended]
        if not sentences:
            return Plan()
        items = self._night.make([_message(*one) for one in sentences])
        filed = [
            _derived(turn, start, end, item)
            for (turn, _, start, end), item in zip(sentences, items, strict=True)
        ]
        for place, (turn, _, one) in enumerate(self._ended, len(opened)):
            filed[place] = replace(filed[place], supersedes=((one.number, to_micros(turn.time)),))
        self.counts["opened"] += len(opened)
        self.counts["closed"] += len(ended)
        return Plan(derived=tuple(filed))

    def left(self, applied: Applied) -> list[Open]:
        """What still waits, with the numbers that were given."""
        given = dict(zip(self._fresh, applied.filed, strict=False))
        numbered = [
            replace(one, number=given.get(one.number, one.number) or 0) for one in self._waiting
        ]
        return [one for one in numbered if one.number > 0]


def _subject(turn: Turn) -> str:
    return (turn.speaker or turn.role or "").casefold()


def _message(turn: Turn, kind: Kind, start: int, end: int) -> Message:
    """A sentence as a memory in its speaker's own words, said when the turn was."""
    inferred = [Change(ThreadState.INFERRED, to_micros(turn.time))]
    return Message(
        content=turn.content[start:end],
        kind=kind,
        speaker=turn.speaker,
        role=turn.role,
        time=turn.time,
        metadata=lifecycle.marked({}, inferred) if kind in WORKING else {},
    )


def _derived(turn: Turn, start: int, end: int, item: NewItem) -> NewDerived:
    return NewDerived(
        item=replace(item, confidence=confidence([turn]), valid_from=to_micros(turn.time)),
        maker="extractive",
        subject=turn.speaker or turn.role or "",
        sources=((turn.number, turn.version, start, end),),
        links=((turn.number, LinkType.EVIDENCE.value, EVIDENCE),),
    )


WORKING_STEPS: tuple[Step, ...] = (
    Step(name="infer_threads", run=infer_threads),
    Step(name="stale_threads", run=stale_threads, period=DAY_US),
)
"""Infer first: what was said to be done today is not called stale tonight."""

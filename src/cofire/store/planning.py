"""What a step of consolidation wants done, and doing it with the note that it is done: as one
transaction, so that a step that dies midway has done nothing, and one that is done is not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cofire.errors import NotFoundError, StoreBusyError
from cofire.store import archiving, deriving, forgetting, learning, ledger, linking, marking
from cofire.store.learning import NewEvent
from cofire.store.marking import Marked
from cofire.store.records import NewDerived, SpaceInfo, StepRow
from cofire.store.respelling import Respelled, respell
from cofire.store.rules import read_rule
from cofire.store.session import Session
from cofire.store.writing import take_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Restated:
    """A derived memory that rests on other evidence now; see `deriving.set_sources`."""

    number: int
    sources: tuple[tuple[int, int, int, int], ...]
    confidence: float | None
    state: str = "current"
    reasons: tuple[str, ...] = ()
    links: tuple[tuple[int, str, float], ...] = ()


class Validity(NamedTuple):
    """From when until when (µs) a derived memory holds. `because` of one that the same plan files
    (as a reference, see `Plan`), and only if it is filed; 0: in any case."""

    number: int
    valid_from: int | None
    valid_to: int | None
    because: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Changes that belong together. Numbers that are not there any more are passed over.

    A reference is a number, or -1 - i for entry i of `derived`, which has no number yet.

    derived: to be filed. joins: (source, target, type, strength) of links between references,
    added where there is room. validity: see `Validity`. retired: derived memories that others
    replace; deleted. restated: given other evidence. archived: numbers. importance: (number, 1 to
    10). events: evidence for the learning log, trusted. pruned: (source, target) of links to
    remove. marked: goals and threads whose state changes. respelled: concepts that get other names.
    notes: rows of the ledger beside the step's own, and dropped: names of such rows to take away.
    """

    derived: tuple[NewDerived, ...] = ()
    joins: tuple[tuple[int, int, str, float], ...] = ()
    validity: tuple[Validity, ...] = ()
    retired: tuple[int, ...] = ()
    restated: tuple[Restated, ...] = ()
    archived: tuple[int, ...] = ()
    importance: tuple[tuple[int, int], ...] = ()
    events: tuple[NewEvent, ...] = ()
    pruned: tuple[tuple[int, int], ...] = ()
    marked: tuple[Marked, ...] = ()
    respelled: tuple[Respelled, ...] = ()
    notes: tuple[StepRow, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What of a plan was done: `filed` are the numbers of what was derived (None: its sources
    changed meanwhile), the others count."""

    filed: tuple[int | None, ...] = ()
    retired: int = 0
    restated: int = 0
    archived: int = 0
    importance: int = 0
    events: int = 0
    pruned: int = 0
    marked: int = 0
    respelled: int = 0


class OutdatedPlanError(StoreBusyError):
    """Another process ran the step after the plan was made."""


def apply(
    session: Session,
    space: SpaceInfo,
    plan: Plan,
    step: StepRow | None,
    *,
    before: StepRow | None = None,
    now: int,
) -> Applied:
    """Does what a plan says and notes the step, within one transaction. `before` is how far the
    step had come when the plan was made. Raises OutdatedPlanError if it has come farther since;
    then nothing is done."""
    if step is not None and before is not None:
        _require_unchanged(session, space, step.name, before, untaken=plan == Plan())
    retired = (
        forgetting.forget(session, space, plan.retired, now=now, thorough=False)
        if plan.retired
        else None
    )
    filed = deriving.file_derived(session, space, plan.derived, now=now) if plan.derived else None
    restated = _restate(session, space, plan.restated, now)
    _order(session, space, plan, () if filed is None else filed.numbers, now)
    archived = archiving.archive(session, space, plan.archived, now=now) if plan.archived else ()
    if plan.importance:
        archiving.set_importance(session, space, plan.importance)
    applied = Applied(
        filed=() if filed is None else filed.numbers,
        retired=0 if retired is None else retired.memories,
        restated=restated,
        archived=len(archived),
        importance=len(plan.importance),
        events=_learn(session, space, plan.events, now),
        pruned=_prune(session, space, plan.pruned, now),
        marked=marking.mark(session, space, plan.marked) if plan.marked else 0,
        respelled=respell(session, space, plan.respelled) if plan.respelled else 0,
    )
    for name in plan.dropped:
        ledger.drop_step(session, space, name)
    for note in (*plan.notes, *(() if step is None else (step,))):
        ledger.put_step(session, space, note)
    return applied


def _require_unchanged(
    session: Session, space: SpaceInfo, name: str, before: StepRow, *, untaken: bool
) -> None:
    """Raises OutdatedPlanError if the step has gone on since. With `untaken` the revision is given
    back: a note alone changes nothing that anybody reads."""
    turn = take_turn(session, space)  # nobody else writes from here on
    if (ledger.read_steps(session, space).get(name) or StepRow(name)) != before:
        raise OutdatedPlanError(f"{space.ref}: another process ran the step {name} meanwhile")
    if untaken:
        learning.untake(session, turn)


def _order(
    session: Session, space: SpaceInfo, plan: Plan, filed: Sequence[int | None], now: int
) -> None:
    """What holds from when until when, and what follows what."""
    if not (plan.validity or plan.joins):
        return
    turn = take_turn(session, space)

    def resolved(reference: int) -> int | None:
        return reference if reference >= 0 else filed[-1 - reference]

    for one in plan.validity:
        if resolved(one.because) is not None:
            deriving.set_validity(session, turn, one.number, one.valid_from, one.valid_to, now=now)
    ends = [(resolved(one[0]), resolved(one[1]), *one[2:]) for one in plan.joins]
    known = [(one, other, kind, weight) for one, other, kind, weight in ends if one and other]
    deriving.join(session, turn, known, now=now)


def _restate(session: Session, space: SpaceInfo, wanted: Sequence[Restated], now: int) -> int:
    there = deriving.read_derived(session, space, [one.number for one in wanted]) if wanted else ()
    present = {row.item.number for row in there}
    for one in wanted:
        if one.number in present:
            deriving.set_sources(
                session, space, one.number, one.sources,
                state=one.state, confidence=one.confidence, reasons=one.reasons,
                links_to=one.links, now=now,
            )  # fmt: skip
    return len(present)


def _learn(session: Session, space: SpaceInfo, events: Sequence[NewEvent], now: int) -> int:
    if not events:
        return 0
    rule = read_rule(session, space)
    told = (learning.learn(session, space, event, rule, trusted=True, now=now) for event in events)
    return sum(one.seq is not None for one in told)


def _prune(session: Session, space: SpaceInfo, pairs: Sequence[tuple[int, int]], now: int) -> int:
    done = 0
    for source, target in pairs:
        try:
            linking.unlink(session, space, source, target, now=now)
        except NotFoundError:  # it went meanwhile
            continue
        done += 1
    return done

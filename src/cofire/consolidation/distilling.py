"""The step that asks a language model: turns → drafts → verified, reconciled, filed.

Turns are taken in the order in which they were stored, some at a time; each request's records are
filed in one transaction with the note of how far the step has come. The model is asked while no
lock is held: a turn that was edited or deleted meanwhile takes no part, and is read again next
time. Turns that brought no usable answer are noted in the ledger and asked about again in the
next consolidations, a bounded number of times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace

from cofire.consolidation.asking import Asked, ask
from cofire.consolidation.drafts import Draft, Turn
from cofire.consolidation.filing import plan_drafts
from cofire.consolidation.night import Night, Work
from cofire.consolidation.prompts import load
from cofire.consolidation.turns import MOST_CHARACTERS, TOLD, may_support, read_turns
from cofire.consolidation.unread import IN_FLIGHT_US, again, edited, new, too_few
from cofire.store.planning import Applied, Plan
from cofire.store.records import StepRow


def distil(night: Night, row: StepRow) -> Generator[Work, Applied, None]:
    """Asks about what failed before, then about what is new or was edited since the last run."""
    if night.generator is None:
        return
    size = night.rule.turns_per_request
    for note in again(night, "distil"):
        numbers = new(night, row._replace(seq=note.revision - 1), TOLD, size)
        stopped = yield from _ask(night, row, [n for n in numbers if n <= note.seq], note)
        if stopped:
            return
    for part in edited(night, row, TOLD, size):
        row = row._replace(time=part.seen)
        if (yield from _ask(night, row, part.numbers)):
            return
    row = row._replace(time=night.now - IN_FLIGHT_US)
    while numbers := new(night, row, TOLD, size):
        if too_few(night, numbers, min(size, night.rule.turns_per_window)):
            return  # more may come
        row = row._replace(seq=numbers[-1])
        if (yield from _ask(night, row, numbers)):
            return


def _ask(
    night: Night, row: StepRow, numbers: Sequence[int], note: StepRow | None = None
) -> Generator[Work, Applied, bool]:
    """One request's worth of turns; whether to stop afterwards. `row`: how far the step has come
    then. `note`: of an earlier try."""
    turns = [
        turn
        for turn in may_support(read_turns(night.store, night.space, numbers))
        if len(turn.content) <= MOST_CHARACTERS
    ]
    plan, counts, asked = distilled(night, turns)
    left = [turn.number for turn in turns if turn.label in asked.unanswered]
    dropped = () if note is None else (note.name,)
    plan = _with_notes(plan, _notes(night, left, note, asked), dropped)
    yield Work(plan=plan, row=row, counts=counts, last=False, seen=row.time)
    if asked.error is not None:
        raise asked.error
    return asked.stopped is not None


def distilled(night: Night, turns: Sequence[Turn]) -> tuple[Plan, Counter[str], Asked]:
    """What is to be filed of a model's answer about turns, counts for the report, and how the
    asking went. Without a model: nothing."""
    asked = _asked(night, turns)
    drafts, outdated = _of_today(night, turns, asked.drafts)
    plan, counts = plan_drafts(night, turns, drafts)
    counts.update(troubles(asked))
    counts["outdated"] += outdated
    return plan, counts, asked


def _of_today(
    night: Night, turns: Sequence[Turn], drafts: Sequence[Draft]
) -> tuple[list[Draft], int]:
    """Without the drafts that cite what was edited or deleted while the model thought, and how
    many those were. Causes ("D2") are counted anew."""
    now = {row.number: row.version for row in night.store.fetch(night.space, _numbers(turns))}
    gone = {turn.label for turn in turns if now.get(turn.number) != turn.version}
    if not gone:
        return list(drafts), 0
    places: dict[str, str] = {}
    kept: list[Draft] = []
    for place, draft in enumerate(drafts, 1):
        if gone.isdisjoint(quote.label for quote in draft.quotes):
            kept.append(draft)
            places[f"D{place}"] = f"D{len(kept)}"
    moved = [replace(draft, causes=tuple(_moved(draft.causes, places, gone))) for draft in kept]
    return moved, len(drafts) - len(kept)


def _moved(causes: Sequence[str], places: Mapping[str, str], gone: set[str]) -> Iterator[str]:
    for cause in causes:
        if cause in places:
            yield places[cause]
        elif cause.startswith("T") and cause not in gone:
            yield cause


def _numbers(turns: Sequence[Turn]) -> list[int]:
    return [turn.number for turn in turns]


def _asked(night: Night, turns: Sequence[Turn]) -> Asked:
    if not turns or night.generator is None:
        return Asked()
    return ask(night.generator, load("distil"), turns, night.budget)


def troubles(asked: Asked) -> Counter[str]:
    """What went wrong with the answers, as counts of the report."""
    counts = Counter({f"dropped {name}": count for name, count in asked.dropped.items()})
    counts.update({f"failed {name}": count for name, count in asked.failures.items()})
    counts["unanswered"] += len(asked.unanswered)
    counts["out of budget"] += asked.stopped == "budget"
    return counts


def _notes(
    night: Night, left: Sequence[int], note: StepRow | None, asked: Asked
) -> Iterator[StepRow]:
    """A note for turns that are to be asked about again. What the budget or the endpoint stopped
    was no try of the turns' own."""
    if not left:
        return
    tried = (0 if note is None else note.period) + (asked.stopped is None)
    if tried < night.rule.tries:
        yield StepRow(f"distil/{left[0]}", tried, left[0], left[-1], night.now)


def _with_notes(plan: Plan, notes: Iterator[StepRow], dropped: tuple[str, ...]) -> Plan:
    return replace(plan, notes=tuple(notes), dropped=dropped)

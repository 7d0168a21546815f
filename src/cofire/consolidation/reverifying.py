"""The step that looks again at records whose evidence was edited or deleted.

Such a record is "stale": out of recall since the very transaction that took its evidence away. It
is verified against what is left. If that still says so, it is current again, with the confidence
that the rest gives; if not, it goes for good where something was deleted (its words may be those
that were to be forgotten), and is quarantined where something was only edited.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from cofire.consolidation.abstracting import still_said
from cofire.consolidation.concept_records import still_named
from cofire.consolidation.dating import start_agrees
from cofire.consolidation.drafts import DISTILLED, Draft, Quote, Turn
from cofire.consolidation.night import Night, Work
from cofire.consolidation.pictured import EXTRACTIVE
from cofire.consolidation.quoting import locate, sentences
from cofire.consolidation.registry import Registry
from cofire.consolidation.slots import subject_key, value_key
from cofire.consolidation.statements import since
from cofire.consolidation.turns import read_turns
from cofire.consolidation.verifying import verify
from cofire.encoding.analysis import analyse
from cofire.store.ledger import unread
from cofire.store.planning import Applied, Plan, Restated, Validity
from cofire.store.records import DerivedRow, StepRow
from cofire.types import Kind, from_micros, to_micros

MOST_QUOTES = 5
"""Sentences of one turn that are offered as evidence in place of what was quoted."""


def reverify(night: Night, row: StepRow) -> Generator[Work, Applied, None]:
    """Decides about every stale record, a hundred in one transaction; then puts in order again the
    lines of values in which one is gone or has other evidence."""
    stale = [one for one in night.store.derived(night.space) if one.state == "stale"]
    for start in range(0, len(stale), 100):
        plan = _decided(night, stale[start : start + 100])
        trusted = sum(one.state == "current" for one in plan.restated)
        yield Work(plan=plan, row=row, counts={"reverified": trusted}, last=False)
    subjects = _broken(night.store.derived(night.space))
    if subjects:
        registry = Registry(night, subjects)
        registry.settle()
        yield Work(plan=registry.plan(()), row=row)


def _decided(night: Night, stale: Sequence[DerivedRow]) -> Plan:
    restated: list[Restated] = []
    retired: list[int] = []
    validity: list[Validity] = []
    notes: list[StepRow] = []
    renamed: list[Plan] = []
    for one in stale:
        if one.item.kind == Kind.CONCEPT.value:
            renamed.append(still_named(night, one))
            continue
        decided = decide(night, one)
        if decided is None:
            retired.append(one.item.number)
        else:
            restated.append(decided)
        if decided is not None and decided.state == "current":
            validity += _moved(night, one, decided)
        elif Kind(one.item.kind) in DISTILLED:
            notes += [unread(number, one.maker, now=night.now) for number in _unchanged(night, one)]
    for plan in renamed:
        restated += plan.restated
        retired += plan.retired
    return Plan(
        restated=tuple(restated),
        retired=tuple(retired),
        validity=tuple(validity),
        respelled=tuple(one for plan in renamed for one in plan.respelled),
        pruned=tuple(dict.fromkeys(pair for plan in renamed for pair in plan.pruned)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _unchanged(night: Night, one: DerivedRow) -> list[int]:
    """The sources of a record that are as they were when it was made, and so are not read again
    for their own sake: they may say it in other words than those that went."""
    versions = {source.source: source.version for source in one.sources}
    rows = night.store.fetch(night.space, sorted(versions))
    return [row.number for row in rows if versions[row.number] == row.version]


def _moved(night: Night, one: DerivedRow, decided: Restated) -> list[Validity]:
    """Since when a record holds by the evidence that it has now, if that is another time."""
    item = one.item
    if item.valid_from is None or not decided.sources:
        return []
    since = to_micros(_since(night, one, decided))
    return [] if since == item.valid_from else [Validity(item.number, since, item.valid_to)]


def _since(night: Night, one: DerivedRow, decided: Restated) -> datetime:
    numbers = sorted({source[0] for source in decided.sources})
    turns = {turn.number: turn for turn in read_turns(night.store, night.space, numbers)}
    given = from_micros(one.item.valid_from or one.item.time)
    if one.maker == EXTRACTIVE:
        return min(
            (
                since(turns[number].content[start:end], turns[number])
                for number, _, start, end in decided.sources
                if number in turns
            ),
            default=given,
        )
    quoted = [
        (turns[number], turns[number].content[start:end])
        for number, _, start, end in decided.sources
        if number in turns
    ]
    if not quoted or start_agrees(given, quoted):
        return given
    return min(turn.time for turn, _ in quoted)


def _broken(rows: Sequence[DerivedRow]) -> set[str]:
    """The subjects of lines of values that do not follow each other without a gap."""
    lines: dict[tuple[str, str], list[DerivedRow]] = {}
    for one in rows:
        if one.state == "current" and one.slot and one.single and one.item.valid_from is not None:
            lines.setdefault((subject_key(one.subject), one.slot), []).append(one)
    found = set()
    for line in lines.values():
        line.sort(key=lambda one: (one.item.valid_from or 0, one.item.valid_to is None))
        ends = [one.item.valid_to for one in line]
        starts = [one.item.valid_from for one in line[1:]]
        values = [value_key(one.value or "") for one in line]
        if ends != [*starts, None] or any(one == other for one, other in pairwise(values)):
            found |= {one.subject for one in line}
    return found


def decide(night: Night, one: DerivedRow) -> Restated | None:
    """What becomes of a stale record; None: it goes. What is no record (gists, shapes) goes: the
    steps that make those make them anew. Words stay while somebody says them."""
    if one.item.kind == Kind.WORD.value:
        return still_said(night, one)
    if Kind(one.item.kind) not in DISTILLED:
        return None
    deleted = any("deleted" in reason for reason in one.reasons)
    numbers = list(dict.fromkeys(source.source for source in one.sources))
    turns = read_turns(night.store, night.space, numbers)
    if Kind(one.item.kind) is Kind.PROCEDURE and any(t.marked for t in turns) != one.item.untrusted:
        return None  # it has to be made anew, with the mark that its sources give it now
    draft = _draft(one, turns)
    verdict = verify(draft, {turn.label: turn for turn in turns}) if draft.quotes else None
    if verdict is not None and not verdict.holds:
        undated = verify(replace(draft, valid_from=None), {turn.label: turn for turn in turns})
        verdict = undated if undated.holds else verdict  # it holds from another time, see `_since`
    if verdict is not None and verdict.holds:
        return Restated(
            number=one.item.number,
            sources=tuple((s.number, s.version, s.start, s.end) for s in verdict.spans),
            confidence=verdict.confidence,
        )
    if deleted:
        return None
    reasons = ("quote: its source was edited",) if verdict is None else verdict.reasons
    return Restated(
        number=one.item.number,
        sources=tuple((turn.number, turn.version, 0, 0) for turn in turns),
        confidence=0.0,
        state="quarantined",
        reasons=reasons,
    )


def _draft(one: DerivedRow, turns: Sequence[Turn]) -> Draft:
    """The record as a draft again, resting on what its sources say now: what it quoted, where that
    is still there, else the sentences that have its words."""
    row = one.item
    quotes: list[Quote] = []
    wanted = set(analyse(row.content).terms)
    for turn in turns:
        kept = [
            turn.content[source.start : source.end]
            for source in one.sources
            if source.source == turn.number and source.version == turn.version and source.end
        ]
        kept = kept or _alike(row.content, turn, wanted, verbatim=one.maker == EXTRACTIVE)
        quotes += [Quote(label=turn.label, text=text) for text in kept]
    return Draft(
        kind=Kind(row.kind),
        content=row.content,
        subject=one.subject,
        quotes=tuple(quotes),
        slot=one.slot,
        value=one.value,
        single=one.single,
        valid_from=None if row.valid_from is None else from_micros(row.valid_from),
        language=row.language,
        maker=one.maker,
        prompt=one.prompt,
    )


def _alike(content: str, turn: Turn, wanted: set[str], *, verbatim: bool) -> list[str]:
    """The record's own words in a turn, or (unless it must be `verbatim`) the sentences that share
    the most words with it."""
    place = locate(content, turn.content)
    if place is not None:
        return [turn.content[place[0] : place[1]]]
    if verbatim:
        return []
    shared = [
        (len(wanted.intersection(analyse(turn.content[start:end]).terms)), start, end)
        for start, end in sentences(turn.content)
    ]
    best = sorted((one for one in shared if one[0]), key=lambda one: (-one[0], one[1]))
    return [turn.content[start:end] for _, start, end in best[:MOST_QUOTES]]

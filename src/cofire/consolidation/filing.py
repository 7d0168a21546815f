"""Drafts → a plan: verified, placed among what is known, and made into items.

What fails verification is kept apart, with the reason, where it can be seen and is never recalled.
What holds is placed in a picture of the records of its subjects, draft by draft, so that drafts of
one answer are reconciled with each other as with what came before; the plan is what has changed in
that picture (`registry`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cofire.consolidation.drafts import Draft, Turn, Verdict
from cofire.consolidation.night import Night
from cofire.consolidation.reconciling import New, Replaces, Same, reconcile
from cofire.consolidation.registry import Registry
from cofire.consolidation.slots import subject_key
from cofire.consolidation.verifying import verify
from cofire.encoding.text import fold
from cofire.graph.vectors import unpacked
from cofire.ids import new_uuid7
from cofire.store.planning import Plan
from cofire.store.records import NewDerived, NewItem
from cofire.types import Kind, Message, to_micros

IMPORTANCE = 6
"""Of a distilled record: what is worth distilling is worth a little more than a turn."""


def plan_drafts(
    night: Night,
    turns: Sequence[Turn],
    drafts: Sequence[Draft],
) -> tuple[Plan, Counter[str]]:
    """What is to be filed of drafts made from `turns`, and counts for the report."""
    offered = {turn.label: turn for turn in turns}
    drafts = [_slotted(night, draft, offered) for draft in drafts]
    verdicts = [verify(draft, offered) for draft in drafts]
    counts: Counter[str] = Counter()
    failed = [
        _quarantined(night, draft, verdict, offered)
        for draft, verdict in zip(drafts, verdicts, strict=True)
        if not verdict.holds
    ]
    counts["quarantined"] += len(failed)
    held = [
        (draft, verdict) for draft, verdict in zip(drafts, verdicts, strict=True) if verdict.holds
    ]
    if not held:
        return Plan(derived=tuple(failed)), counts
    rested = [_resting(draft, verdict, offered) for draft, verdict in held]
    items = night.make(
        [_message(draft, cited) for (draft, _), cited in zip(held, rested, strict=True)]
    )
    registry = Registry(night, [draft.subject for draft, _ in held])
    placed: dict[str, int] = {turn.label: turn.number for turn in turns if not turn.marked}
    names = {id(draft): f"D{place}" for place, draft in enumerate(drafts, 1)}
    for (draft, verdict), item, cited in zip(held, items, rested, strict=True):
        what, number = _place(registry, draft, verdict, item, cited)
        counts[what] += 1
        if not item.untrusted:  # what comes from outside leads to nothing, and nothing to it
            placed[names[id(draft)]] = number
    for draft, _ in held:
        for cause in draft.causes:
            if cause in placed and names[id(draft)] in placed:
                registry.led_to(placed[cause], placed[names[id(draft)]])
    return registry.plan(failed), counts


def _slotted(night: Night, draft: Draft, offered: Mapping[str, Turn]) -> Draft:
    """A draft with the slot that it may fill. What tools did fills none: no run of a tool may end
    what somebody said."""
    cited = (offered.get(quote.label) for quote in draft.quotes)
    if draft.kind is Kind.PROCEDURE and any(turn is not None and turn.untrusted for turn in cited):
        return replace(draft, slot=None, value=None, single=False)
    return _unslotted(draft, offered) if _shared(night) else draft


def _resting(draft: Draft, verdict: Verdict, offered: Mapping[str, Turn]) -> list[Turn]:
    """The turns that a verified draft rests on, in the order of its quotes."""
    numbers = {span.number for span in verdict.spans}
    cited = (offered[quote.label] for quote in draft.quotes)
    return [turn for turn in cited if turn.number in numbers]


def _shared(night: Night) -> bool:
    """Whether several people write to the space, so that its "user" is more than one."""
    return night.space.ref.project is not None


def _unslotted(draft: Draft, offered: Mapping[str, Turn]) -> Draft:
    """Without its slot where all that is known of a speaker is the role: the next one's home must
    not end this one's."""
    cited = [offered[quote.label] for quote in draft.quotes if quote.label in offered]
    named = any(turn.speaker for turn in cited)
    roles = {fold(turn.role or "user") for turn in cited} | {"user", "i", "me"}
    if named or subject_key(draft.subject) not in roles:
        return draft
    return replace(draft, slot=None, value=None, single=False)


def _place(
    registry: Registry, draft: Draft, verdict: Verdict, item: NewItem, cited: Sequence[Turn]
) -> tuple[str, int]:
    """Puts a verified draft where it belongs: what that was, for the report, and the number of the
    record that says so now. What tools did is evidence of procedures alone, and what is trusted
    and what is not stay apart: neither is evidence of the other's record."""
    said = max(turn.time for turn in cited)
    vector = None if item.vector is None else unpacked(item.vector)
    tools = any(turn.untrusted for turn in cited)
    known = [
        one
        for one in registry.known(draft.subject, vector)
        if one.untrusted == item.untrusted and (not tools or one.kind is Kind.PROCEDURE)
    ]
    decision = reconcile(draft, known, said=said)
    match decision:
        case Same():
            return registry.same(decision, draft, verdict, cited, said), decision.number
        case Replaces():
            record = registry.add(draft, verdict, item, cited, said)
            registry.replace(decision, record)
            return "replaced" if decision.numbers else "filed late", record.number
        case New():
            return "new", registry.add(draft, verdict, item, cited, said).number


def _message(draft: Draft, cited: Sequence[Turn]) -> Message:
    """A draft as a message: said when its latest evidence was, so that words of time in it mean
    what they meant there; in the speaker's own words it is theirs. It is no more to be trusted
    than what it rests on."""
    last = max(cited, key=lambda turn: turn.time)
    own = draft.maker == "extractive"
    return Message(
        content=draft.content,
        kind=draft.kind,
        speaker=last.speaker if own else None,
        role=last.role if own else None,
        time=last.time,
        importance=IMPORTANCE,
        untrusted=any(turn.marked for turn in cited),
    )


def _quarantined(
    night: Night, draft: Draft, verdict: Verdict, offered: Mapping[str, Turn]
) -> NewDerived:
    """A draft that failed, as it is kept: neither words nor vector are indexed. It rests on every
    turn it was made from, so that it goes with any of them."""
    labels = {quote.label for quote in draft.quotes} & offered.keys()
    cited = [offered[label] for label in sorted(labels)] or list(offered.values())
    quoted = {span.number for span in verdict.spans}
    sources = [(span.number, span.version, span.start, span.end) for span in verdict.spans]
    sources += [(turn.number, turn.version, 0, 0) for turn in cited if turn.number not in quoted]
    return NewDerived(
        item=NewItem(
            uid=new_uuid7().bytes,
            content=draft.content,
            time=to_micros(max(turn.time for turn in cited)),
            recorded=night.now,
            kind=draft.kind.value,
            confidence=0.0,
            untrusted=any(turn.marked for turn in cited),
        ),
        maker=draft.maker,
        prompt=draft.prompt,
        sources=tuple(sources),
        state="quarantined",
        subject=draft.subject,
        slot=draft.slot,
        value=draft.value,
        single=draft.single,
        reasons=verdict.reasons,
    )

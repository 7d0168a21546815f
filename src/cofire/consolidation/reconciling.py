"""Reconciliation: what a verified record is to those already known of its subject.

The same again, a new value of a slot that has one value at a time, or something new. Values are
ordered by when they hold, never by when they came: a fact that arrives late becomes history of the
newer one. What is decided depends on the records of one subject and slot alone, so that unrelated
facts never retire each other, and the same values in any order give the same intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cofire.consolidation.drafts import DISTILLED, Draft
from cofire.consolidation.quantities import quantities
from cofire.consolidation.quoting import spelled
from cofire.consolidation.slots import Slot, slot_filled, slot_named, subject_key, value_key
from cofire.consolidation.wording import DISLIKES, NEGATORS
from cofire.encoding.concepts import concepts, key_of
from cofire.types import Kind

DUPLICATE = 0.92
"""Cosine from which two records of one subject and slot are one (Synapse, section 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A record that the space has of a subject, current or ended.

    It holds for `valid_from` ≤ time < `valid_to` (None: still); `times` are the moments from which
    its evidence says so, ascending, the first of them `valid_from`. `cosine` is that to the draft,
    None where it is not at hand; `evidence` counts its spans. `untrusted`: it rests on what is.
    """

    number: int
    kind: Kind
    subject: str
    content: str
    valid_from: datetime
    slot: str | None = None
    value: str | None = None
    single: bool = False
    valid_to: datetime | None = None
    recorded: datetime | None = None
    cosine: float | None = None
    evidence: int = 1
    times: tuple[datetime, ...] = ()
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Same:
    """The draft says again what record `number` says: its quotes become more evidence of it.

    `since`: the record holds from then, earlier than was known. `ended` are records of another
    value whose validity ends there instead of later.
    """

    number: int
    since: datetime | None = None
    ended: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Replaces:
    """The draft is another value of a slot that has one at a time.

    The records `numbers` end at `since`, from which on the draft holds; there are none where it is
    older than all that are known. It holds until `until` (None: still), when record `by` follows.
    `resumes`: the record that it interrupts has later evidence and holds again from `until` on; it
    is to be filed once more from there, with that evidence.
    """

    numbers: tuple[int, ...]
    since: datetime
    until: datetime | None = None
    by: int | None = None
    resumes: bool = False


@dataclass(frozen=True, slots=True)
class New:
    """The draft says something that nothing known says or denies."""


Decision = Same | Replaces | New


def reconcile(
    draft: Draft,
    known: Sequence[Known],
    *,
    said: datetime,
    aliases: Mapping[str, str] | None = None,
) -> Decision:
    """What to do with a verified draft.

    Args:
        draft: the record; it holds from `draft.valid_from`, else from `said`.
        known: records of the space; those of other subjects are passed over, but all of the
            draft's subject and slot must be there, ended ones included.
        said: when the latest of the turns quoted was said.
        aliases: other names of subjects (`slots.subject_key`) → the one they stand for.

    In any order of arrival, values with distinct times end in the same intervals; of two with one
    time the later comer holds.
    """
    names = dict(aliases or {})
    subject = subject_key(draft.subject, names)
    own = [one for one in known if subject_key(one.subject, names) == subject]
    slot = slot_filled(draft)
    if slot is not None and slot.single and slot.value:
        line = [one for one in own if _slot(one) is not None and _in_slot(one, slot)]
        return _place(slot.value, draft.valid_from or said, line)
    same = _repeated(draft, slot, own)
    return New() if same is None else Same(same.number)


def _slot(known: Known) -> Slot | None:
    return slot_named(known.slot, known.value, single=known.single) if known.slot else None


def _in_slot(known: Known, slot: Slot) -> bool:
    own = _slot(known)
    return own is not None and own.name == slot.name and own.single and bool(own.value)


def _place(value: str, start: datetime, line: Sequence[Known]) -> Decision:
    """Where a value that holds from `start` on belongs among those of its slot."""
    line = sorted(line, key=lambda one: (one.valid_from, one.valid_to is None, one.number))
    holding = next((one for one in reversed(line) if _holds(one, start)), None)
    if holding is not None and _equal(holding, value):
        return Same(holding.number)
    following = next((one for one in line if one.valid_from > start), None)
    numbers = () if holding is None else (holding.number,)
    if holding is not None:
        later = [time for time in holding.times if time > start]
        if later:
            return Replaces(numbers, start, until=later[0], resumes=True)
    if following is None:
        return Replaces(numbers, start) if numbers else New()
    if _equal(following, value):
        return Same(following.number, since=start, ended=numbers)
    return Replaces(numbers, start, until=following.valid_from, by=following.number)


def _holds(known: Known, moment: datetime) -> bool:
    return known.valid_from <= moment and (known.valid_to is None or moment < known.valid_to)


def _equal(known: Known, value: str) -> bool:
    slot = _slot(known)
    return slot is not None and same_value(slot._replace(value=value), slot, known.cosine)


def same_value(one: Slot, other: Slot, cosine: float | None) -> bool:
    """Whether two values of one slot are one: in other words ("Harsk", "harsk, Norway") they may
    be, if the records' vectors are near."""
    ours, theirs = value_key(one.value or ""), value_key(other.value or "")
    return ours == theirs or ((cosine or 0.0) >= DUPLICATE and _within(ours, theirs))


def _within(one: str, other: str) -> bool:
    """Whether all words of one value are in the other, numbers being alike."""
    ours, theirs = set(one.split()), set(other.split())
    numbers = {word for word in ours ^ theirs if any(letter.isdigit() for letter in word)}
    return not numbers and (ours <= theirs or theirs <= ours)


def _repeated(draft: Draft, slot: Slot | None, own: Iterable[Known]) -> Known | None:
    """The record that says what the draft says: word for word, else the nearest of its slot."""
    current = sorted(
        (one for one in own if one.valid_to is None),
        key=lambda one: (-(one.cosine or 0), one.number),
    )
    words = spelled(draft.content)
    for one in current:
        if spelled(one.content) == words:
            return one
    for one in current:
        if (one.cosine or 0.0) < DUPLICATE or one.kind != draft.kind or one.kind not in DISTILLED:
            continue
        theirs = _slot(one)
        if (theirs and theirs.name) != (slot and slot.name):
            continue
        if _alike(draft, one) and _values_alike(slot, theirs):
            return one
    return None


def _values_alike(ours: Slot | None, theirs: Slot | None) -> bool:
    if ours is None or theirs is None or not ours.value or not theirs.value:
        return True
    return _within(value_key(ours.value), value_key(theirs.value))


def _alike(draft: Draft, known: Known) -> bool:
    """Whether two near records do not differ in what vectors hardly tell apart: numbers, names,
    and denial."""
    if _numbers(draft.content) != _numbers(known.content):
        return False
    if _denied(draft.content) != _denied(known.content):
        return False
    subject = {*key_of(draft.subject).split(), *key_of(known.subject).split()}
    return _names(draft.content) - subject == _names(known.content) - subject


def _numbers(text: str) -> frozenset[str]:
    return frozenset(number.value for number in quantities(text))


def _names(text: str) -> frozenset[str]:
    return frozenset(word for concept in concepts(text) for word in concept.key.split())


def _denied(text: str) -> bool:
    words = spelled(text).replace("n't", " not").split()
    return sum(word in NEGATORS or word in DISLIKES for word in words) % 2 == 1


def applied(
    decision: Decision, draft: Draft, known: Sequence[Known], *, said: datetime, number: int
) -> list[Known]:
    """The records of a slot after a decision: the readable reference of what filing does. `number`
    is that of the record filed; one filed once more after an interruption gets `number` + 1."""
    start = draft.valid_from or said
    records = {one.number: one for one in known}
    fresh = Known(
        number=number, kind=draft.kind, subject=draft.subject, content=draft.content,
        valid_from=start, slot=draft.slot, value=draft.value, single=draft.single, times=(start,),
    )  # fmt: skip
    match decision:
        case Same(same, since, ended):
            old = records[same]
            times = tuple(sorted({*old.times, start}))
            records[same] = replace(
                old, valid_from=since or old.valid_from, times=times, evidence=old.evidence + 1
            )
            for one in ended:
                records[one] = replace(records[one], valid_to=since)
        case Replaces(numbers, since, until, _, resumes):
            for one in numbers:
                old = records[one]
                before = tuple(time for time in old.times if time <= since)
                if resumes:
                    after = tuple(time for time in old.times if time > since)
                    records[number + 1] = replace(
                        old, number=number + 1, valid_from=after[0], times=after
                    )
                records[one] = replace(old, valid_to=since, times=before)
            records[number] = replace(fresh, valid_to=until)
        case New():
            records[number] = fresh
    return list(records.values())

"""Forgotten shapes: what is left in recall of what was archived (Atamaia, section 4.4).

A shape says that something was once here, about what and when; the archived memories are its
sources, and `restore` brings them back. Its text is made of keywords, counts and dates, never of
sentences, and its vector is the mean of its members' (Atamaia's representative embedding), so that
a question which would have found them finds it. It inherits no links.

An *area* is what one shape covers: the archived memories of one session, and once that is a year
past (or where there was no session), of one calendar month, so that the older, the coarser, and so
many shapes do not become a memory of their own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any

import numpy as np

from cofire.consolidation.night import DAY_US, Night, Work
from cofire.store.planning import Applied, Plan
from cofire.store.records import DerivedRow, EventTimeRow, ItemRow, NewDerived, NewItem, StepRow
from cofire.types import Kind, Message, from_micros

SHAPE_IMPORTANCE = 3
"""Atamaia, section 4.4."""
SESSION_DAYS = 365
"""Days after which the shapes of sessions are merged into those of months. Ours."""
TOPICS = 4
"""Keywords that a shape names, at most."""
PORTION = 50
"""Shapes filed in one transaction."""

Working = Generator[Work, Applied, None]


@dataclass(frozen=True, slots=True)
class Area:
    """What one shape covers: a session by name, or a month ("2023-05")."""

    sort: str
    name: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A stored shape and the memories that it stands for."""

    number: int
    area: Area
    members: frozenset[int]
    whole: bool


def area_of(session: str | None, time: int, now: int) -> Area:
    """Where an archived memory said at `time` (µs) in a session belongs at `now`."""
    if session is not None and now - time <= SESSION_DAYS * DAY_US:
        return Area("session", session)
    return Area("month", from_micros(time).strftime("%Y-%m"))


def shapes(night: Night, row: StepRow) -> Working:
    """Makes the shapes be those of what is archived: new ones for areas that had none, others in
    place of those whose members have changed (archived, restored, deleted), none where nothing is
    archived any more. Shapes whose members are as they were stay as they are."""
    archived = {
        number: area_of(session, time, night.now)
        for number, session, time in night.store.archived_wholes(night.space)
    }
    there = [_as_shape(one) for one in night.store.shapes(night.space)]
    if not archived and not there:
        return
    wanted: dict[Area, set[int]] = defaultdict(set)
    for number, area in archived.items():
        wanted[area].add(number)
    standing = {shape.area for shape in there if _stands(shape, wanted)}
    gone = [shape for shape in there if not _stands(shape, wanted)]
    kept_once = {shape.area: shape.number for shape in there if shape.area in standing}
    gone += [
        shape for shape in there if shape.area in standing and shape.number != kept_once[shape.area]
    ]
    areas = sorted(
        (area for area in wanted if area not in standing), key=lambda a: (a.sort, a.name)
    )
    if not areas and not gone:
        return
    yield from _remade(night, row, areas, wanted, gone)


def shapes_to_come(night: Night, also: Sequence[int]) -> int:
    """How many shapes more there will be once what is archived, and these too, have theirs."""
    sessions = [(row.number, row.session, row.time) for row in night.store.fetch(night.space, also)]
    wanted = {
        area_of(session, time, night.now)
        for _, session, time in [*night.store.archived_wholes(night.space), *sessions]
    }
    return len(wanted - {_as_shape(one).area for one in night.store.shapes(night.space)})


def _stands(shape: Shape, wanted: Mapping[Area, Collection[int]]) -> bool:
    return shape.whole and shape.members == wanted.get(shape.area)


def _as_shape(one: DerivedRow) -> Shape:
    told = one.item.metadata
    area = Area(str(told.get("area", "")), str(told.get("of", "")))
    members = frozenset(source.source for source in one.sources)
    whole = one.state == "current" and one.item.archived is None
    return Shape(one.item.number, area, members, whole)


def _remade(
    night: Night,
    row: StepRow,
    areas: Sequence[Area],
    wanted: Mapping[Area, Collection[int]],
    gone: Sequence[Shape],
) -> Working:
    """The former shapes of an area go in the transaction that files its new one."""
    former: dict[Area, list[int]] = defaultdict(list)
    for shape in gone:
        former[shape.area].append(shape.number)
    lone = [number for area, own in former.items() if area not in set(areas) for number in own]
    portions = [areas[start : start + PORTION] for start in range(0, len(areas), PORTION)] or [()]
    for place, portion in enumerate(portions):
        retired = list(chain.from_iterable(former.get(area, ()) for area in portion))
        made = _made(night, {area: sorted(wanted[area]) for area in portion}) if portion else ()
        plan = Plan(derived=made, retired=tuple(sorted([*retired, *(() if place else lone)])))
        yield Work(plan=plan, row=row, last=place == len(portions) - 1)


def _made(night: Night, areas: Mapping[Area, Sequence[int]]) -> tuple[NewDerived, ...]:
    numbers = sorted(chain.from_iterable(areas.values()))
    rows = {row.number: row for row in night.store.fetch(night.space, numbers)}
    vectors = night.store.vectors_of_wholes(night.space, numbers)
    members = {area: [rows[n] for n in own if n in rows] for area, own in areas.items()}
    members = {area: own for area, own in members.items() if own}
    items = night.make([_message(area, own) for area, own in members.items()])
    return tuple(
        _filed(area, own, item, vectors)
        for (area, own), item in zip(members.items(), items, strict=True)
    )


def _message(area: Area, members: Sequence[ItemRow]) -> Message:
    """What a shape says of its members, which are in the order of their numbers."""
    times = sorted(member.time for member in members)
    first, last = from_micros(times[0]), from_micros(times[-1])
    topics = topics_of(member.keywords for member in members if not member.untrusted)
    told: dict[str, Any] = {
        "area": area.sort,
        "of": area.name,
        "count": len(members),
        "since": first.isoformat(),
        "until": last.isoformat(),
    }
    return Message(
        content=shape_text(len(members), topics, first, last),
        title=", ".join(topics) or None,
        kind=Kind.SHAPE,
        time=last,
        importance=SHAPE_IMPORTANCE,
        metadata=told,
        untrusted=any(member.untrusted for member in members),
    )


def topics_of(keywords: Iterable[Sequence[str]], most: int = TOPICS) -> tuple[str, ...]:
    """The keywords that most members share, by how many do and how early they name them; of equals
    the first by alphabet. None without a letter, none that is part of another."""
    counts: Counter[str] = Counter()
    for own in keywords:
        for place, word in enumerate(dict.fromkeys(own)):
            counts[word] += 1000 - min(place, 99)  # first by count, then by place
    chosen: list[str] = []
    for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        lowered = word.casefold()
        if not any(letter.isalpha() for letter in word) or any(
            lowered in one.casefold() or one.casefold() in lowered for one in chosen
        ):
            continue
        chosen.append(word)
        if len(chosen) == most:
            break
    return tuple(chosen)


def shape_text(count: int, topics: Sequence[str], first: datetime, last: datetime) -> str:
    """ "12 memories about pottery, kitchen (3 May to 9 June 2023) were archived." """
    about = f" about {', '.join(topics)}" if topics else ""
    noun, verb = ("memory", "was") if count == 1 else ("memories", "were")
    return f"{count} {noun}{about} ({date_range(first, last)}) {verb} archived."


def date_range(first: datetime, last: datetime) -> str:
    """ "3 May to 9 June 2023", as short as it is clear; in UTC."""
    if first.date() == last.date():
        return _day(last)
    if first.year != last.year:
        return f"{_day(first)} to {_day(last)}"
    if first.month != last.month:
        return f"{_day(first, year=False)} to {_day(last)}"
    return f"{first.day} to {_day(last)}"


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def _day(moment: datetime, *, year: bool = True) -> str:
    day = f"{moment.day} {_MONTHS[moment.month - 1]}"
    return f"{day} {moment.year}" if year else day


def _filed(
    area: Area,
    members: Sequence[ItemRow],
    item: NewItem,
    vectors: Mapping[int, Sequence[bytes]],
) -> NewDerived:
    own = [vectors[member.number] for member in members if member.number in vectors]
    vector = mean_vector(list(chain.from_iterable(own)))
    if vector is not None:
        item = replace(item, vector=vector, pending=False)
    return NewDerived(
        item=replace(item, kind=Kind.SHAPE.value, event_times=(_hull(item.content, members),)),
        maker="extractive",
        sources=tuple((member.number, 0, 0, 0) for member in members),
    )


def _hull(content: str, members: Sequence[ItemRow]) -> EventTimeRow:
    """When what is archived was said, with the words that say so."""
    times = [member.time for member in members]
    words = date_range(from_micros(min(times)), from_micros(max(times)))
    start = content.find(f"({words})") + 1
    return (words, min(times), max(times) + 1, start, start + len(words))


def mean_vector(stored: Sequence[bytes]) -> bytes | None:
    """The mean of vectors (float16, little-endian, unit length), of unit length again; None without
    any, or if they cancel out."""
    usable = [np.frombuffer(one, "<f2").astype(np.float64) for one in stored]
    if not usable:
        return None
    mean = np.mean(usable, axis=0)
    length = float(np.linalg.norm(mean))
    if not np.isfinite(length) or length < 1e-6:
        return None
    packed: bytes = (mean / length).astype("<f2").tobytes()
    return packed

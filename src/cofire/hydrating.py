"""Hydration: what a session opens with, within a budget of tokens (Atamaia, section 6.1).

Section by section, in the order of `types.HEADINGS`. Each may take its share of the budget and what
those before it left; a memory that does not fit whole is passed over, and taken after all if
something is left in the end. The whole is recorded as a recall, so that feedback on any of it
works.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple
from uuid import UUID

import numpy as np

from cofire import fences, lifecycle, views
from cofire.dynamics.arrays import Rows
from cofire.ids import new_uuid7
from cofire.retrieval import opening
from cofire.retrieval.opening import Scope
from cofire.retrieval.profiles import COFIRE
from cofire.retrieval.room import cost_of
from cofire.store.records import HYDRATION, LINK_TYPES, ItemRow, RecallHit, RecallRecord, SpaceInfo
from cofire.types import (
    HEADINGS,
    Filters,
    Hydrated,
    Hydration,
    Recalled,
    Segment,
    SemanticRecord,
    from_micros,
    line_header,
    to_micros,
)
from cofire.workings import Workings

SHARES: Mapping[str, float] = {
    "pinned": 0.30,
    "persona": 0.15,
    "working": 0.20,
    "recent": 0.10,
    "relevant": 0.15,
    "linked": 0.05,
    "involuntary": 0.05,
}
"""Parts of the token budget. Without an opening cue, its share is what was said last's."""
MOST: Mapping[str, int] = {
    "pinned": 50,
    "persona": 20,
    "working": 20,
    "recent": 12,
    "relevant": 8,
    "linked": 5,
    "involuntary": 2,
}
"""Memories in a section, at most."""
RECORDS = 4
"""Records of what consolidation made that a cue may bring along, at most."""
SPARE = 4
"""More memories than a section may have that are looked at, in case some do not fit."""
DRAWN = 4
"""Memories drawn by chance of which those that fit are taken."""

SECTIONS = tuple(HEADINGS)
_NUMBER = (1 << 32) - 1

Entries = list[tuple[SpaceInfo, RecallRecord]]


class Candidate(NamedTuple):
    """A memory that a section would have: of which space (index), its number, why, the number of
    the one whose link brought it (0: none did), and a text to show in place of the whole."""

    space: int
    number: int
    why: str
    via: int = 0
    part: tuple[str, Segment] | None = None


class Offer(NamedTuple):
    """A candidate as it was found, with the header it would have and what it costs in wordpieces:
    its line, the bullet included."""

    section: str
    candidate: Candidate
    row: ItemRow
    header: str
    cost: int


@dataclass(slots=True)
class Draft:
    """An opening context in the making. `taken` is in, `passed` did not fit into the share of its
    section; `limits`: up to how many tokens there may be after each section. `untrusted`: what
    comes from outside may be in, too."""

    workings: Workings
    spaces: Sequence[SpaceInfo]
    now: int
    limits: Mapping[str, int]
    untrusted: bool
    taken: list[Offer] = field(default_factory=list)
    passed: list[Offer] = field(default_factory=list)
    there: set[tuple[int, int]] = field(default_factory=set)
    filled: Counter[str] = field(default_factory=Counter)
    framed: set[str] = field(default_factory=set)
    tokens: int = 0

    def fill(self, section: str, wanted: Sequence[Candidate]) -> None:
        """Takes what fits into the section's share, and what those before it left of theirs."""
        fresh: dict[tuple[int, int], Candidate] = {}
        for candidate in wanted:
            place = (candidate.space, candidate.number)
            if place not in self.there:
                fresh.setdefault(place, candidate)
        for candidate, row in self._fetched(list(fresh.values())[: MOST[section] + SPARE]):
            header = _header(section, row, self.now)
            text, tokens = row.content, row.tokens
            if candidate.part is not None:
                text = candidate.part[0]
                tokens = self._count(text)
            cost = cost_of(tokens, text) + self._count(f"- {header}")
            offer = Offer(section, candidate, row, header, cost)
            if not self._take(offer, self.limits[section]):
                self.passed.append(offer)

    def refill(self, budget: int) -> None:
        """Gives what is left in the end to what did not fit before, in order."""
        passed, self.passed = self.passed, []
        for offer in passed:
            if not self._take(offer, budget):
                self.passed.append(offer)

    def _take(self, offer: Offer, limit: int) -> bool:
        section = offer.section
        place = (offer.candidate.space, offer.row.number)
        full = self.filled[section] >= MOST[section] or place in self.there
        fresh = {name: cost for name, cost in self._frames(offer) if name not in self.framed}
        cost = offer.cost + sum(fresh.values())
        if full or self.tokens + cost > limit:
            return False
        self.tokens += cost
        self.framed |= fresh.keys()
        self.filled[section] += 1
        self.there.add(place)
        self.taken.append(offer)
        return True

    def _frames(self, offer: Offer) -> Iterator[tuple[str, int]]:
        """What has to stand around a line, once, and its wordpieces."""
        yield "marks", sum(map(self._count, fences.marks(fences.LONGEST_NUMBER)))
        if offer.row.untrusted:
            yield "fences", sum(map(self._count, fences.fences(fences.LONGEST_NUMBER)))
        else:
            yield offer.section, self._count(HEADINGS[offer.section])

    def left_out(self) -> dict[str, int]:
        """How many of each section did not fit, of those that it should have had. What several
        would have had counts in the first."""
        out: Counter[str] = Counter()
        seen = set(self.there)
        for section, candidate, row, *_ in self.passed:
            place = (candidate.space, row.number)
            if place not in seen and self.filled[section] + out[section] < MOST[section]:
                seen.add(place)
                out[section] += 1
        return dict(out)

    def ordered(self) -> list[Offer]:
        """What is in, section by section; what was said last in the order in which it was."""

        def place(offer: Offer) -> tuple[int, int, int]:
            by_time = offer.section == "recent"
            return (
                SECTIONS.index(offer.section),
                offer.row.time if by_time else 0,
                offer.row.number if by_time else 0,
            )

        return sorted(self.taken, key=place)

    def rows(self, index: int, scope: Scope) -> Rows:
        """The rows of what is in already, of one space."""
        numbers = [number for space, number in sorted(self.there) if space == index]
        rows = scope.graph.rows_of(np.array(numbers, np.int64))
        there: Rows = rows[rows >= 0].astype(np.intp)
        return there

    def _fetched(self, wanted: Sequence[Candidate]) -> Iterator[tuple[Candidate, ItemRow]]:
        """The rows of candidates; what was deleted meanwhile is left out."""
        rows: dict[tuple[int, int], ItemRow] = {}
        for index, space in enumerate(self.spaces):
            numbers = [one.number for one in wanted if one.space == index]
            if numbers:
                for row in self.workings.store.fetch(space, numbers):
                    rows[index, row.number] = row
        for candidate in wanted:
            found = rows.get((candidate.space, candidate.number))
            if found is not None and (self.untrusted or not found.untrusted):
                yield candidate, found

    def _count(self, text: str) -> int:
        return self.workings.recaller.header_tokens(text)


def hydrate(
    workings: Workings,
    cue: str | None,
    *,
    token_budget: int,
    now: datetime,
    seed: int | None,
    untrusted: bool,
) -> tuple[Hydration, Entries]:
    """See `Memory.hydrate`; also what is to be recorded of it."""
    uid = new_uuid7()
    seed = uid.int & ((1 << 53) - 1) if seed is None else seed  # JSON keeps so many bits
    spaces = workings.spaces.all()
    moment = to_micros(now)
    scopes = [
        opening.scope(
            workings.recaller.graph(space),
            moment,
            workings.store.rule(space).half_life_days,
            trusted_only=not untrusted,
        )
        for space in spaces
    ]
    limits = _limits(token_budget, cued=cue is not None)
    draft = Draft(workings, spaces, moment, limits, untrusted)
    draft.fill("pinned", _merged(scopes, opening.pinned, "pinned"))
    draft.fill("persona", _merged(scopes, opening.persona, "persona"))
    draft.fill("working", [*_checkpoint(scopes), *_merged(scopes, opening.working, "working")])
    draft.fill("recent", _recent(scopes, len(draft.there)))
    warnings: tuple[str, ...] = ()
    if cue is not None:
        relevant, warnings = _relevant(workings, spaces, cue, now, trusted_only=not untrusted)
        draft.fill("relevant", relevant)
    draft.fill("linked", _linked(draft, scopes))
    draft.fill("involuntary", _involuntary(draft, scopes, seed))
    draft.refill(token_budget)
    offers = draft.ordered()
    hydration = Hydration(
        id=str(uid),
        cue=cue,
        entries=tuple(_hydrated(spaces, offer, moment) for offer in offers),
        tokens=0,
        seed=seed,
        left_out=draft.left_out(),
        warnings=warnings,
    )
    hydration = replace(hydration, tokens=workings.embedder.count_tokens(hydration.text))
    return hydration, _recorded(spaces, offers, uid, cue, moment)


def _limits(budget: int, *, cued: bool) -> dict[str, int]:
    """Up to how many tokens the context may have grown after each section."""
    shares = dict(SHARES)
    if not cued:
        shares["recent"] += shares.pop("relevant")
    limits: dict[str, int] = {}
    total = 0.0
    for section in SECTIONS:
        total += shares.get(section, 0.0)
        limits[section] = int(budget * total + 1e-9)
    return limits


_WHY = {
    "pinned": "it is pinned",
    "persona": "it says what holds of somebody now",
    "working": "",
}


def _merged(
    scopes: Sequence[Scope], choose: Callable[[Scope, int], Rows], section: str
) -> list[Candidate]:
    """What every space has for a section, the agent's own first."""
    return [
        Candidate(index, number, _WHY[section])
        for index, scope in enumerate(scopes)
        for number in scope.graph.column("number")[choose(scope, MOST[section])].tolist()
    ]


def _recent(scopes: Sequence[Scope], there: int) -> list[Candidate]:
    """What was said last in any space, newest first: so many that enough are left where `there`
    memories are in already."""
    most = MOST["recent"] + there
    found: list[tuple[int, int, int]] = []
    for index, scope in enumerate(scopes):
        rows = opening.recent(scope, most)
        times = scope.graph.column("time")[rows].tolist()
        numbers = scope.graph.column("number")[rows].tolist()
        found += [(time, -index, number) for time, number in zip(times, numbers, strict=True)]
    found.sort(reverse=True)
    return [Candidate(-place, number, "it was said last") for _, place, number in found[:most]]


def _checkpoint(scopes: Sequence[Scope]) -> list[Candidate]:
    """How the last session ended, in whichever space that was said last."""
    found = [
        (scope.graph.column("time")[row], index, int(scope.graph.column("number")[row]))
        for index, scope in enumerate(scopes)
        for row in opening.last_checkpoint(scope).tolist()
    ]
    return [
        Candidate(index, number, "it says how the last session ended")
        for _, index, number in sorted(found)[-1:]
    ]


def _relevant(
    workings: Workings,
    spaces: Sequence[SpaceInfo],
    cue: str,
    now: datetime,
    *,
    trusted_only: bool,
) -> tuple[list[Candidate], tuple[str, ...]]:
    """What a recall of the opening cue brings, and its warnings."""
    recall, _ = workings.recaller.recall(
        spaces, cue, MOST["relevant"],
        profile=COFIRE, now=now, filters=Filters(trusted_only=trusted_only), semantic=RECORDS,
    )  # fmt: skip
    places = {space.space_id: index for index, space in enumerate(spaces)}
    hits: list[Recalled | SemanticRecord] = [*recall.semantic, *recall.items]
    found = [_of_recall(places, hit) for hit in hits]
    return found, recall.warnings


def _of_recall(places: Mapping[int, int], hit: Recalled | SemanticRecord) -> Candidate:
    segment = hit.segment if isinstance(hit, Recalled) else None
    return Candidate(
        places[hit.item.number >> 32],
        hit.item.number & _NUMBER,
        f"it bears on how the session opens (score {hit.score:.2f})",
        part=None if segment is None else (hit.content, segment),
    )


def _linked(draft: Draft, scopes: Sequence[Scope]) -> list[Candidate]:
    """What strong links lead to from what is in, the strongest first."""
    found: list[tuple[float, Candidate]] = []
    for index, scope in enumerate(scopes):
        ties = opening.linked(scope, draft.rows(index, scope))
        number = scope.graph.column("number")
        for row, origin, kind, strength in zip(
            ties.row.tolist(), ties.origin.tolist(), ties.kind.tolist(), ties.strength.tolist(),
            strict=True,
        ):  # fmt: skip
            other = views.public_id(scope.graph.uid(origin))
            why = f"a link ({LINK_TYPES[kind].value}, {strength:.2f}) joins it with {other}"
            found.append((strength, Candidate(index, int(number[row]), why, int(number[origin]))))
    found.sort(key=lambda one: -one[0])
    return [candidate for _, candidate in islice(found, 2 * MOST["linked"])]


def _involuntary(draft: Draft, scopes: Sequence[Scope], seed: int) -> list[Candidate]:
    """What is drawn by chance, over all spaces."""
    found: list[tuple[float, Candidate]] = []
    for index, scope in enumerate(scopes):
        drawn = opening.involuntary(scope, seed, draft.rows(index, scope), DRAWN)
        number = scope.graph.column("number")
        for row, strength, turn in zip(
            drawn.row.tolist(), drawn.strength.tolist(), drawn.turn.tolist(), strict=True
        ):
            why = f"it came up by chance (strength {strength:.2f})"
            found.append((turn, Candidate(index, int(number[row]), why)))
    found.sort(key=lambda one: one[0])
    return [candidate for _, candidate in found]


def _why_working(row: ItemRow, now: int) -> str:
    return f"the {row.kind} is open: {lifecycle.state_of(row, now).value}"


def _header(section: str, row: ItemRow, now: int) -> str:
    """What stands before the text: the day and the speaker; of a goal where it stands since
    when."""
    own = line_header(from_micros(row.time), row.offset, row.speaker or row.role)
    if section != "working":
        return own
    if row.kind not in lifecycle.WORKING:
        return line_header(from_micros(row.time), row.offset, "end of the last session")
    last = lifecycle.log_of(row)[-1]
    since = line_header(from_micros(last.time), row.offset, row.speaker)
    return f"{row.kind.capitalize()}, {lifecycle.state_of(row, now).value} {since}"


def _hydrated(spaces: Sequence[SpaceInfo], offer: Offer, now: int) -> Hydrated:
    candidate, row = offer.candidate, offer.row
    content, segment = candidate.part or (row.content, None)
    item = views.item(spaces[candidate.space], row)
    return Hydrated(
        id=item.id,
        content=content,
        section=offer.section,
        why=candidate.why or _why_working(row, now),
        header=offer.header,
        item=item,
        segment=segment,
    )


def _recorded(
    spaces: Sequence[SpaceInfo], offers: Sequence[Offer], uid: UUID, cue: str | None, now: int
) -> Entries:
    """One recall record for each space that gave something."""
    record = RecallRecord(uid=uid.bytes, query=cue or "", time=now, profile=HYDRATION, hits=())
    entries: Entries = []
    for index, space in enumerate(spaces):
        hits = tuple(
            RecallHit(
                offer.candidate.number,
                position,
                float(SECTIONS.index(offer.section)),
                bool(offer.candidate.via),
                offer.candidate.via,
            )
            for position, offer in enumerate(offers)
            if offer.candidate.space == index
        )
        if hits:
            entries.append((space, replace(record, hits=hits)))
    return entries

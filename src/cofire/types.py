"""The values that cross Cofire's public surface: frozen, keyword-only, each field explained.

Ids are canonical UUIDv7 strings. Times are timezone-aware `datetime` objects in UTC; where the
caller gave another offset it is kept beside the time as `offset` (minutes east of UTC).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Protocol, TypedDict

TimeLike = datetime | date | str | int | float
"""A point in time: aware `datetime` (naive is read as UTC), `date` (its midnight in UTC), ISO 8601
text, or epoch seconds or milliseconds (number or text, Slack's "1704067200.000100" included)."""


class Kind(enum.StrEnum):
    """What a memory is."""

    EPISODE = "episode"
    TOOL_EVENT = "tool_event"
    PROCEDURE = "procedure"
    FACT = "fact"
    TRAIT = "trait"
    PERSONA = "persona"
    GOAL = "goal"
    THREAD = "thread"
    CONCEPT = "concept"
    CUE = "cue"
    SHAPE = "shape"


INTERNAL_KINDS = frozenset({Kind.CONCEPT, Kind.CUE, Kind.SHAPE})
"""Kinds that Cofire makes itself; callers cannot remember them and recall never returns cues."""
VISIBLE_KINDS = tuple(kind for kind in Kind if kind not in INTERNAL_KINDS)
"""Kinds that are listed where none is asked for."""


class LinkType(enum.StrEnum):
    """What a link says, and so whether and how it conducts activation (`CONDUCTS`)."""

    TEMPORAL = "temporal"
    ABSTRACTION = "abstraction"
    ASSOCIATION = "association"
    COACTIVATION = "coactivation"
    RELATED = "related"
    SUPPORTS = "supports"
    CAUSES = "causes"
    EVOLVES_TO = "evolves_to"
    ANNOTATES = "annotates"
    EVIDENCE = "evidence"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"


CONDUCTS = frozenset(LinkType) - {LinkType.CONTRADICTS, LinkType.SUPERSEDES}
"""Link types that carry activation; contradiction and supersession never excite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRef:
    """Names a space: an agent's own (one per user it serves), or a project's, within a tenant."""

    tenant: str = "default"
    identity: str | None = None
    user: str | None = None
    project: str | None = None

    def __str__(self) -> str:
        if self.project is not None:
            return f"{self.tenant}/project:{self.project}"
        return f"{self.tenant}/{self.identity}" + (f"/{self.user}" if self.user else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing to remember.

    `content` is kept verbatim. `importance` is 1–10. `tags` is a tuple, never a single text. `key`
    is the caller's own id: remembering the same key again in the same space changes nothing.
    `time` is when it was said (default: now); `expires` is when it stops being recalled.
    """

    content: str
    title: str | None = None
    kind: Kind | str = Kind.EPISODE
    speaker: str | None = None
    role: str | None = None
    time: TimeLike | None = None
    session: str | None = None
    tags: tuple[str, ...] = ()
    importance: int = 5
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires: TimeLike | None = None
    key: str | None = None


class MessageChanges(TypedDict, total=False):
    """Fields of a memory that `update` can change; None clears those that can be empty."""

    title: str | None
    kind: Kind | str
    speaker: str | None
    role: str | None
    time: TimeLike
    session: str | None
    tags: Sequence[str] | None
    importance: int
    pinned: bool
    metadata: Mapping[str, Any] | None
    expires: TimeLike | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """When something told of in a text happened, resolved from words such as "last Friday".

    `start` ≤ event < `end` (both UTC); `text` are the words at characters `span` of the content.
    """

    text: str
    start: datetime
    end: datetime
    span: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Part `index` (from 0) of `count` of a long text: characters `start` to `end`."""

    index: int
    count: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A memory as stored. `number` is its 64-bit id, `version` counts its texts from 1."""

    id: str
    number: int
    space: SpaceRef
    kind: Kind
    content: str
    title: str | None = None
    speaker: str | None = None
    role: str | None = None
    session: str | None = None
    time: datetime
    offset: int | None = None
    recorded: datetime
    updated: datetime
    event_times: tuple[EventTime, ...] = ()
    tags: tuple[str, ...] = ()
    importance: int = 5
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires: datetime | None = None
    archived: datetime | None = None
    key: str | None = None
    language: str | None = None
    keywords: tuple[str, ...] = ()
    tokens: int = 0
    access_count: int = 0
    last_accessed: datetime | None = None
    version: int = 1
    embedded: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A former text of a memory: `content` was current until `replaced`."""

    version: int
    content: str
    title: str | None
    replaced: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A typed, directed link between two memories of one space; `strength` in [0, 1]."""

    source: str
    target: str
    type: LinkType
    strength: float
    coactivations: int = 0
    last_coactivated: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What `remember` did. `ids` are in the order of the messages; `created[i]` is False where
    the caller's key had been remembered before. `warnings` say what could not be done fully, and
    which messages have no id because there was no text in them."""

    ids: tuple[str, ...]
    created: tuple[bool, ...]
    revision: int
    warnings: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The only id, when one thing was remembered."""
        if len(self.ids) != 1:
            raise ValueError(f"this receipt has {len(self.ids)} ids; use .ids")
        return self.ids[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which memories may be recalled or listed; every given condition must hold.

    `kinds`, `speakers`, `sessions`: any of these. `tags`: all of these. `metadata`: equal at
    every given top-level key. `since` ≤ time < `until`. Matching is literal and exact.
    """

    kinds: tuple[Kind, ...] = ()
    speakers: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One addend of a score: `contribution` = `weight` · `value`."""

    name: str
    value: float
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A way by which activation reached a memory: `via` ids (or concept words) from the anchor
    to it, the link type of the last step, and how much activation arrived."""

    via: tuple[str, ...]
    type: str
    activation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTrace:
    """Why one memory was recalled: `terms` add up to `score` (within 1e-6)."""

    id: str
    score: float
    anchors: tuple[str, ...]
    terms: tuple[Term, ...]
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Why a recall returned what it did. `timings` are milliseconds by stage."""

    profile: str
    terms: tuple[str, ...]
    time_range: tuple[datetime, datetime] | None
    items: tuple[ItemTrace, ...]
    timings: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A recalled memory. For a long text `content` is the segment that matched and `segment`
    says which; `Memory.get(id)` gives the whole."""

    id: str
    content: str
    score: float
    item: Item
    segment: Segment | None = None

    @property
    def header(self) -> str:
        """What stands before the text in a rendered line: the day it was said, and by whom."""
        return line_header(self.item.time, self.item.offset, self.item.speaker or self.item.role)

    @property
    def line(self) -> str:
        """The memory as one rendered line: date, speaker, text."""
        return f"{self.header} {self.content}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a question brought back, best first (by a profile whose `order` is "time": oldest
    first); `tokens` are wordpieces of the rendered lines.

    `confidence` in [0, 1]: how likely the memory holds an answer at all (None: the profile does not
    say); `abstain`: too unlikely, so the honest answer is that nothing of the kind was said.
    """

    id: str
    query: str
    items: tuple[Recalled, ...]
    profile: str
    tokens: int
    warnings: tuple[str, ...] = ()
    confidence: float | None = None
    abstain: bool = False
    trace: Trace | None = None

    def __iter__(self) -> Iterator[Recalled]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __getitem__(self, index: int) -> Recalled:
        return self.items[index]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(hit.id for hit in self.items)

    @property
    def text(self) -> str:
        """The rendered lines, in the order of the items, for a prompt."""
        return "\n".join(hit.line for hit in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """A learned link between memories `a` and `b` (or the cue `a` and what answered it): how
    strongly it conducts, in [0, 1], how often they were used together, and how often one was
    rejected where the other was used."""

    a: str
    b: str
    strength: float
    coactivations: int = 0
    rejections: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What feedback changed. `counted`: False if all of it had been said before, by the same
    principal about the same question; then nothing changed. `links` are those that moved, with
    their new strength; `evicted` counts links that went because a memory had too many."""

    counted: bool
    links: tuple[Strength, ...]
    evicted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One event of the learning log that moved a link: when, of what `type` and by what `signal`
    (`used`, `cited`, `opened`, `explicit`, `background`), `by` whom, with what `outcome` in
    [-1, 1], in which `recall` (`question` while its record is kept), by how much the strength
    moved and what it was then."""

    sequence: int
    time: datetime
    type: str
    signal: str | None
    by: str | None
    outcome: float | None
    recall: str | None
    question: str | None
    movement: float
    strength: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Two memories that may contradict each other: one was rejected `rejections` times where the
    other was used. Say so with `link(a, b, type="contradicts")`, or leave it."""

    a: str
    b: str
    rejections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a listing; pass `next` as `after` for the following page (None at the end)."""

    items: tuple[Item, ...]
    next: str | None

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceStats:
    """Counts of one space. `pending` memories wait for an embedding."""

    space: SpaceRef
    items: int
    segments: int
    links: int
    by_kind: Mapping[str, int]
    pending: int
    revision: int
    embedding_model: str | None
    dimension: int | None
    oldest: datetime | None
    newest: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Counts of everything a `Memory` can see; sizes are bytes."""

    spaces: tuple[SpaceStats, ...]
    store_bytes: int
    graph_bytes: int

    @property
    def items(self) -> int:
        return sum(space.items for space in self.spaces)

    @property
    def links(self) -> int:
        return sum(space.links for space in self.spaces)


def line_header(time: datetime, offset: int | None, who: str | None) -> str:
    """ "8 May 2023 Ada:" — the day in the speaker's own calendar where the offset is known.
    Month names are English on every host, and cost a language model one token."""
    local = time + timedelta(minutes=offset or 0)
    day = f"{local.day} {_MONTHS[local.month - 1]} {local.year}"
    return f"{day} {who}:" if who else f"{day}:"


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


class Progress(Protocol):
    """Called during long work with what is done and, if known, the total."""

    def __call__(self, done: int, total: int | None, /) -> None: ...


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970-01-01 UTC, exactly."""
    delta = moment.astimezone(UTC) - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def from_micros(micros: int) -> datetime:
    """The inverse of `to_micros`."""
    return _EPOCH + timedelta(microseconds=micros)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

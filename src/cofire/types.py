"""The values that cross Cofire's public surface: frozen, keyword-only, each field explained.

Ids are canonical UUIDv7 strings. Times are timezone-aware `datetime` objects in UTC; where the
caller gave another offset it is kept beside the time as `offset` (minutes east of UTC).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, Protocol, TypedDict

from cofire.fences import fenced_line, rendered

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
    GIST = "gist"
    WORD = "word"


INTERNAL_KINDS = frozenset({Kind.CONCEPT, Kind.CUE, Kind.SHAPE, Kind.GIST, Kind.WORD})
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
    `untrusted`: it comes from outside, a tool or a web page, and must not speak for anybody; None:
    if its role is "tool".
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
    untrusted: bool | None = None


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
    untrusted: bool


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
    """A memory as stored. `number` is its 64-bit id, `version` counts its texts, and
    changes of whether it is trusted, from 1. `untrusted`: it comes from outside, or rests on what
    does."""

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
    untrusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a memory said formerly: `content` was current until `replaced`.

    In the history of a semantic record there are also the records that others took the place of:
    `id` names them, and they held from `valid_from` until `valid_to`.
    """

    version: int
    content: str
    title: str | None
    replaced: datetime
    id: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


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


class Selectors(TypedDict, total=False):
    """What `forget` may choose memories by, as in `Filters`. What is given must not be empty or
    None: leaving a condition out deletes more, so it is never done by accident."""

    kinds: Sequence[Kind | str] | Kind | str
    speakers: Sequence[str] | str
    sessions: Sequence[str] | str
    tags: Sequence[str] | str
    metadata: Mapping[str, Any]
    since: TimeLike
    until: TimeLike


Traces = Literal["scrubbed", "pending", "operator"]
"""Whether copies of what was deleted are left in the store's files; see `Deletion`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What `forget` deleted: a receipt that names ids and counts, and no content.

    `memories` is how many were chosen. With them went `derived` records that rested on them alone
    or repeat them, `cues` and recorded questions (`recalls`) that led to nothing else or repeat
    them, and their `links`. `ids` are those of everything that went; of a whole space
    (`everything`) they are not listed. `doubtful` are ids of records that lost a part of their
    evidence and are out of recall until they are verified again, `reopened` those that hold again
    because what had ended them is gone.

    `scrubbed` is "scrubbed" once no copy of it is left in the store's files, and "pending" until
    then: `Memory.verify` says how it is now; on PostgreSQL it is "operator": what the server's
    files, log and backups still hold is not Cofire's to clear. `id` is None for a dry run, which
    deletes nothing.
    """

    id: str | None
    time: datetime
    spaces: tuple[SpaceRef, ...]
    everything: bool = False
    ids: tuple[str, ...] = ()
    memories: int = 0
    derived: int = 0
    cues: int = 0
    links: int = 0
    recalls: int = 0
    doubtful: tuple[str, ...] = ()
    reopened: tuple[str, ...] = ()
    scrubbed: Traces = "pending"

    @property
    def dry_run(self) -> bool:
        """Whether this only says what would be deleted."""
        return self.id is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What of a deletion holds at `time`. `found`: in which tables of the store there still is (or
    is again, after restoring a backup or importing an export) how much of what it names; empty if
    nothing. `scrubbed` as in `Deletion`."""

    id: str
    time: datetime
    found: Mapping[str, int]
    scrubbed: Traces

    def __bool__(self) -> bool:
        """Whether nothing of it is in the store, nor in unused parts of files that are Cofire's to
        clear."""
        return not self.found and self.scrubbed != "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which memories may be recalled or listed; every given condition must hold.

    `kinds`, `speakers`, `sessions`: any of these. `tags`: all of these. `metadata`: equal at
    every given top-level key. `since` ≤ time < `until`. `trusted_only`: nothing that comes from
    outside. Matching is literal and exact.
    """

    kinds: tuple[Kind, ...] = ()
    speakers: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    trusted_only: bool = False


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
    def untrusted(self) -> bool:
        """Whether it comes from outside (see `Message.untrusted`)."""
        return self.item.untrusted

    @property
    def header(self) -> str:
        """What stands before the text in a rendered line: the day it was said, and by whom."""
        return line_header(self.item.time, self.item.offset, self.item.speaker or self.item.role)

    @property
    def line(self) -> str:
        """The memory as one rendered line: date, speaker, text."""
        return f"{self.header} {self.content}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """Words that a semantic record rests on: `text` of the memory `id`, said by `speaker` at
    `time`."""

    id: str
    text: str
    time: datetime
    speaker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticRecord:
    """Something consolidation made of memories (a fact, trait, persona, procedure or concept),
    with the `evidence` it rests on.

    `subject` is whom or what it is about, `slot` the attribute it fills and `value` what with, if
    it fills one. It holds from `valid_from` until `valid_to` (None: without end), as was recorded
    at `closed`. `confidence` in [0, 1) grows with the number and independence of the evidence.
    `maker` is "extractive" (words from the memories, by rules) or a model's name, `prompt` the
    name and version of what that was asked. `state` is "current", "quarantined" or "stale" (see
    `Memory.quarantine`), and `reasons` say why it is not trusted. `score` is that of a recall.
    """

    id: str
    content: str
    item: Item
    evidence: tuple[Quoted, ...]
    score: float = 0.0
    subject: str = ""
    slot: str | None = None
    value: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    closed: datetime | None = None
    confidence: float | None = None
    maker: str = "extractive"
    prompt: str | None = None
    state: str = "current"
    reasons: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """What it is: a fact, trait, persona, procedure or concept."""
        return self.item.kind

    @property
    def untrusted(self) -> bool:
        """Whether it rests on what comes from outside."""
        return self.item.untrusted

    @property
    def header(self) -> str:
        """What stands before the text in a rendered line."""
        return line_header(self.item.time, self.item.offset, self.item.speaker)

    @property
    def line(self) -> str:
        """The record as one rendered line: date, who said it (if it is in their words), text."""
        return f"{self.header} {self.content}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is left of memories that were archived: that `count` of them were once here, said from
    `since` to `until`, and in `content` about what. `Memory.unarchive(id)` brings them back.
    """

    id: str
    content: str
    count: int
    since: datetime
    until: datetime
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a question brought back, best first (by a profile whose `order` is "time": oldest
    first); `tokens` are wordpieces of `text`.

    `items` are what was said and remembered, `semantic` what consolidation made of it (best first;
    their lines come before those of the items), `shapes` say that something of the kind was once
    here and is archived.

    `confidence` in [0, 1]: how likely the memory holds an answer at all (None: the profile does not
    say); `abstain`: too unlikely, so the honest answer is that nothing of the kind was said.
    """

    id: str
    query: str
    items: tuple[Recalled, ...]
    profile: str
    tokens: int
    semantic: tuple[SemanticRecord, ...] = ()
    shapes: tuple[Shape, ...] = ()
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
        """The rendered lines for a prompt: those of the semantic records, then the items', between
        two marks by which they are known again if a transcript brings them back. What is not
        trusted stands last, in a fence that none of it can close. Empty if there is nothing."""
        return rendered(*told_lines([*self.semantic, *self.items]))


def told_lines(told: Iterable[SemanticRecord | Recalled]) -> tuple[list[str], list[str]]:
    """The lines of a recall as they stand in its `text`, and those of what is not trusted."""
    lines: tuple[list[str], list[str]] = ([], [])
    for one in told:
        lines[one.untrusted].append(fenced_line(one.line, untrusted=one.untrusted))
    return lines


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


class ThreadState(enum.StrEnum):
    """Where a goal or thread of working memory stands. `INFERRED`: consolidation read it out of
    what was said, and nobody has confirmed it."""

    OPENED = "opened"
    ADVANCED = "advanced"
    CLOSED = "closed"
    STALE = "stale"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadChange:
    """A thread came into `state` at `time`; `note` is what was said of it."""

    state: ThreadState
    time: datetime
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A goal or an open thread: `content` is what was opened, `note` the latest word on it,
    `touched` when something last happened to it, `history` what did, oldest first."""

    id: str
    kind: Kind
    content: str
    state: ThreadState
    opened: datetime
    touched: datetime
    note: str | None
    history: tuple[ThreadChange, ...]
    item: Item

    @property
    def is_open(self) -> bool:
        """Whether something still waits to be done."""
        return self.state not in (ThreadState.CLOSED, ThreadState.STALE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The end of a session: `id` is the memory that keeps its `summary`, `open` are the goals and
    threads that were open then, the last one touched first. `warnings` as in `Receipt`."""

    id: str
    time: datetime
    session: str | None
    summary: str
    open: tuple[Thread, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hydrated:
    """A memory of a session's opening context: in which `section` it is, and `why`. For a long
    text `content` may be the segment that matched the cue, which `segment` names."""

    id: str
    content: str
    section: str
    why: str
    header: str
    item: Item
    segment: Segment | None = None

    @property
    def untrusted(self) -> bool:
        """Whether it comes from outside (see `Message.untrusted`)."""
        return self.item.untrusted

    @property
    def line(self) -> str:
        """The memory as one rendered line: date, speaker (or what sort of thread it is), text."""
        return f"{self.header} {self.content}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hydration:
    """A session's opening context, section by section, none of it twice.

    `id` is that of a recall: feedback on any of it is given as on a recall's. `tokens` are
    wordpieces of `text`. With the same `seed`, memories, cue, budget and moment the same comes
    back. `left_out` counts by section what was due and did not fit into the budget.
    """

    id: str
    cue: str | None
    entries: tuple[Hydrated, ...]
    tokens: int
    seed: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Hydrated]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(entry.id for entry in self.entries)

    @property
    def sections(self) -> Mapping[str, tuple[Hydrated, ...]]:
        """The entries by section, in order; sections without any are left out."""
        names = dict.fromkeys(entry.section for entry in self.entries)
        return {
            name: tuple(entry for entry in self.entries if entry.section == name) for name in names
        }

    @property
    def text(self) -> str:
        """The whole for a prompt: each section's heading, then its lines, between two marks by
        which it is known again. What is not trusted stands last, in a fence that none of it can
        close. Empty if nothing is."""
        parts = []
        for name, entries in self.sections.items():
            # Lines of one text are indented, so that none can pass for a heading.
            lines = [fenced_line(one.line, bullet="- ") for one in entries if not one.untrusted]
            if lines:
                parts.append("\n".join((HEADINGS.get(name, name), *lines)))
        outside = [
            fenced_line(one.line, untrusted=True, bullet="- ")
            for one in self.entries
            if one.untrusted
        ]
        return rendered(["\n\n".join(parts)] if parts else [], outside)


HEADINGS: Mapping[str, str] = {
    "pinned": "Always kept in mind:",
    "persona": "What is known of people here:",
    "working": "Goals and open threads:",
    "recent": "What was said last:",
    "relevant": "Bearing on how this session opens:",
    "linked": "Used together with some of this before:",
    "involuntary": "What else came to mind:",
}
"""The sections of a hydration in their order, each with its heading in a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What one step of a consolidation did in one space.

    `counts` by what was counted. `skipped` says why it had nothing to do, `error` why it could not
    go on (what it had done before stays done). `seconds` of wall time; `calls`, `tokens` and `cost`
    of a language model (`cost` in the currency of the prices in the settings).
    """

    name: str
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    skipped: str | None = None
    error: str | None = None
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepReport:
    """What one consolidation did in one space, step by step.

    `claimed_by` names the worker that has claimed the space (machine, process and a random part):
    it is consolidating it, so this one did nothing, or stopped after `steps` when the other took
    over. `claimed_until`: when the claim expires unless it is renewed; None if it was released.
    """

    space: SpaceRef
    started: datetime
    seconds: float
    steps: tuple[StepReport, ...]
    claimed_by: str | None = None
    claimed_until: datetime | None = None

    @property
    def failed(self) -> tuple[str, ...]:
        """The steps that could not finish. What they did stays done, the rest is tried again."""
        return tuple(step.name for step in self.steps if step.error is not None)

    @property
    def status(self) -> str:
        """ "done", "partial" if a step failed, "claimed" if it was left to another worker."""
        if self.claimed_by is not None:
            return "claimed"
        return "partial" if self.failed else "done"

    @property
    def counts(self) -> Mapping[str, int]:
        """The counts of all steps, added up."""
        total: dict[str, int] = {}
        for step in self.steps:
            for name, count in step.counts.items():
                total[name] = total.get(name, 0) + count
        return total

    @property
    def calls(self) -> int:
        """Calls of a language model."""
        return sum(step.calls for step in self.steps)

    @property
    def tokens(self) -> int:
        """Tokens that those read and wrote."""
        return sum(step.tokens for step in self.steps)

    @property
    def cost(self) -> float:
        """What they cost, by the prices in the settings."""
        return sum(step.cost for step in self.steps)


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
    """Counts of one space. `pending` memories wait for an embedding; `learning_rule` is the name of
    the rule it learns by (`Memory.learn_by`); `encrypted`: what it holds is encrypted at rest."""

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
    learning_rule: str
    encrypted: bool = False


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
    day = f"{local.day} {MONTHS[local.month - 1]} {local.year}"
    return f"{day} {who}:" if who else f"{day}:"


MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
"""Names of months in rendered lines."""


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

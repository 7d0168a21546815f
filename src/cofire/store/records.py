"""The store's records: what goes in and what comes out, as plain values.

Times are integer microseconds since 1970-01-01 UTC, offsets minutes east of UTC, uids 16 bytes
(UUIDv7), numbers positive integers that are dense within a space and never used again. Hashes
are unsigned 64-bit integers made by `text_hash`.

Rows that are read in bulk (`GraphRow`, `GraphLink`, `ItemRow`, …) are named tuples: making one
costs a fifth of a frozen dataclass, and a refresh makes a hundred thousand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cofire.types import Kind, LinkType, SpaceRef

KINDS: tuple[Kind, ...] = tuple(Kind)
"""Kinds by their stored code (the position). Append only: the codes are in people's files."""
KIND_CODES: Mapping[str, int] = {kind.value: code for code, kind in enumerate(KINDS)}
LINK_TYPES: tuple[LinkType, ...] = tuple(LinkType)
"""Link types by their stored code (the position). Append only."""
LINK_CODES: Mapping[str, int] = {kind.value: code for code, kind in enumerate(LINK_TYPES)}

TEMPORAL_STRENGTH = 0.5
"""Strength of a new temporal link (HeLa-Mem's code; mechanisms.md, section 1)."""

EventTimeRow = tuple[str, int, int, int, int]
"""Words, start µs, end µs (exclusive), first character, character after the last."""


def text_hash(text: str) -> int:
    """The unsigned 64-bit hash of a term or facet: BLAKE2b, 8 bytes, little-endian."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def tenant_number(name: str) -> int:
    """The number of a new tenant: 63 bits of the hash of its name, so that whoever knows the name
    need not ask for the number, and two stores agree on it."""
    return text_hash(f"tenant\0{name}") >> 1


def facet_hash(facet: str, value: str) -> int:
    """Hash of a facet such as ("speaker", "Ada"); 0 never occurs in practice and means none."""
    return text_hash(f"{facet}\0{value}")


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, characters as they are."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def comparable_json(value: Any) -> str:
    """Canonical JSON in which equal values are spelled alike: 1.0 as 1. What filters compare."""
    return canonical_json(_comparable(value))


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _comparable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(part) for part in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegment:
    """Part of a long text: characters `start` to `end` of its whole.

    `length` is the BM25 document length in terms; `terms` and `concepts` are packed pairs (see
    `NewItem`); `vector` is float16 little-endian or None, `pending` when one is wanted.
    """

    uid: bytes
    start: int
    end: int
    tokens: int = 0
    length: int = 0
    terms: bytes = b""
    concepts: bytes = b""
    vector: bytes | None = None
    pending: bool = False
    signals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """A memory ready to be stored.

    `terms` and `concepts`: n x uint64 hash (little-endian, ascending, unique), then n x uint8
    count. `facets`: n x uint64, ascending, unique. `vector`: float16 little-endian, L2-normalised
    before rounding; None for a segmented whole or when `pending`. `importance` is 1–10,
    `confidence` in [0, 1]. `valid_from` ≤ t < `valid_to` is when a fact holds. `untrusted` marks
    what comes from outside, or rests on what does. `segments` not empty makes this a whole.
    """

    uid: bytes
    content: str
    time: int
    recorded: int
    kind: str = Kind.EPISODE.value
    title: str | None = None
    speaker: str | None = None
    role: str | None = None
    session: str | None = None
    offset: int | None = None
    expires: int | None = None
    tags: tuple[str, ...] = ()
    importance: int = 5
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    language: str | None = None
    keywords: tuple[str, ...] = ()
    tokens: int = 0
    event_times: tuple[EventTimeRow, ...] = ()
    signals: int = 0
    length: int = 0
    terms: bytes = b""
    concepts: bytes = b""
    facets: bytes = b""
    vector: bytes | None = None
    pending: bool = False
    segments: tuple[NewSegment, ...] = ()
    archived: int | None = None
    confidence: float | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    untrusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceInfo:
    """A space as last read. Every verb of the store takes one to say where.

    `model` and `dimension` describe the space's vectors (None before the first). They are
    compared when vectors are written, so a stale copy cannot mix two models.
    """

    tenant_id: int
    space_id: int
    ref: SpaceRef
    revision: int
    model: str | None
    dimension: int | None
    settings: Mapping[str, Any]
    created: int = 0
    """When it was made, µs: tells a space from a later one of the same id."""
    encrypted: bool = False
    """Whether what it holds is encrypted. Never changes."""
    indexed: bool = False
    """Whether it was too large to be held in memory, and is searched by the database's indexes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What `append` did, in the order given; `created[i]` is False for a repeated key."""

    numbers: tuple[int, ...]
    uids: tuple[bytes, ...]
    created: tuple[bool, ...]
    revision: int


class GraphRow(NamedTuple):
    """What the active graph needs of an item or segment. `parent` 0 and hashes 0 mean none."""

    number: int
    uid: bytes
    revision: int
    parent: int
    kind: int
    speaker: int
    session: int
    time: int
    event_start: int | None
    event_end: int | None
    expires: int | None
    importance: int
    pinned: int
    signals: int
    length: int
    terms: bytes
    concepts: bytes
    facets: bytes
    vector: bytes | None
    valid_from: int | None = None
    valid_to: int | None = None
    recorded: int = 0


class GraphLink(NamedTuple):
    """A link as the active graph needs it; `type` is a position in `LINK_TYPES`, `last` when use
    last moved its strength (µs; None: never)."""

    source: int
    target: int
    type: int
    strength: float
    revision: int
    last: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed in a space since a revision, as of `revision`.

    With `rebuild`, `rows` and `links` are everything there is and what the caller had is void.
    Otherwise they are the new state of what was added or changed; apply the removals first.

    `rows` and `links` are plain tuples in the order of `GraphRow` and `GraphLink`: the garbage
    collector looks through named ones again and again, which makes a large load a third slower.
    `named` gives them names.
    """

    revision: int
    rebuild: bool
    rows: list[tuple[Any, ...]]
    links: list[tuple[Any, ...]]
    removed_items: list[int]
    removed_links: list[tuple[int, int]]

    def named(self) -> tuple[list[GraphRow], list[GraphLink]]:
        """The rows and links with named fields, for when there are few."""
        return list(map(GraphRow._make, self.rows)), list(map(GraphLink._make, self.links))


class ItemRow(NamedTuple):
    """An item as stored. For a segment (`parent` > 0) `content` is the segment's text, `whole`
    the uid of the text it is part of, and the descriptive fields are the whole's."""

    number: int
    uid: bytes
    parent: int
    whole: bytes
    segment: int
    segments: int
    start: int
    end: int
    kind: str
    content: str
    title: str | None
    speaker: str | None
    role: str | None
    session: str | None
    time: int
    offset: int | None
    recorded: int
    updated: int
    expires: int | None
    archived: int | None
    tags: tuple[str, ...]
    importance: int
    pinned: bool
    metadata: dict[str, Any]
    key: str | None
    language: str | None
    keywords: tuple[str, ...]
    tokens: int
    event_times: tuple[EventTimeRow, ...]
    access_count: int
    last_accessed: int | None
    version: int
    pending: bool
    confidence: float | None
    valid_from: int | None
    valid_to: int | None
    untrusted: bool
    revision: int


class NewVector(NamedTuple):
    """A vector made after the fact: float16 little-endian, of the text that the item or segment
    had at `revision` (`ItemRow.revision`)."""

    number: int
    revision: int
    vector: bytes


class ListedRow(NamedTuple):
    """One row of a listing and the space it is in."""

    space: SpaceInfo
    item: ItemRow


class VersionRow(NamedTuple):
    """A former text: `content` and `title` were current until `replaced`."""

    number: int
    version: int
    content: str
    title: str | None
    replaced: int


class LinkRow(NamedTuple):
    """A link as stored; `type` is a `LinkType` value, strength in [0, 1].

    Of a learned link (`last_coactivated` is not None) the strength is as of then; decay since is
    not taken off. The fields from `coactivations` on, but for `created` and `revision`, are those
    of `dynamics.plasticity.LinkState`.
    """

    source: int
    target: int
    source_uid: bytes
    target_uid: bytes
    type: str
    strength: float
    coactivations: int
    last_coactivated: int | None
    created: int
    revision: int
    rejections: int = 0
    tick: int = 0
    quota_day: int | None = None
    quota: tuple[tuple[str, float], ...] = ()


class RecallHit(NamedTuple):
    """One memory of a recall; `linked` when it came only over links.

    `via` is the number of the memory or cue whose link alone brought it; 0 if it had a match of
    its own, or came over several links.
    """

    number: int
    position: int
    score: float
    linked: bool
    via: int = 0


HYDRATION = "hydration"
"""`RecallRecord.profile` of a session's opening context: neither a use nor a retrieval of what is
in it. The `score` of a hit is the place of its section in `types.HEADINGS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRecord:
    """A question and what was returned for it from one space."""

    uid: bytes
    query: str
    time: int
    profile: str
    hits: tuple[RecallHit, ...]
    principal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """One entry of the learning log. `seq` is given by the store when it is appended (0 before).

    `items` are (number, credit) pairs; `outcome` in [-1, 1] (None: 1); `signal` says what told us.
    `question` is the hash of what was asked, `cue` the number of the cue that stands for it.
    `trusted`: the principal was exempt from the daily cap. `via` pairs items with the memory of
    the same event, or the cue, whose link alone brought them: such a link earns nothing.
    An "evict" or "prune" event names the link's ends first, then what caused it; one with a cue
    and no items took away the cue.
    """

    seq: int = 0
    recall: bytes | None
    type: str
    items: tuple[tuple[int, float], ...]
    outcome: float | None
    signal: str | None
    principal: str | None
    time: int
    question: int | None = None
    cue: int | None = None
    trusted: bool = False
    via: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """The fields of an imported item that only use gives it, and its former texts."""

    number: int
    updated: int
    version: int = 1
    access_count: int = 0
    last_accessed: int | None = None
    history: tuple[VersionRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceCounts:
    """Counts of one space; `items` are wholes, `pending` rows wait for a vector."""

    items: int
    segments: int
    links: int
    by_kind: Mapping[str, int]
    pending: int
    revision: int
    model: str | None
    dimension: int | None
    oldest: int | None
    newest: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something `check` found wrong: what, where, how often, and a few examples."""

    code: str
    message: str
    count: int
    examples: tuple[str, ...] = ()


DERIVED_SIGNAL = 1 << 30
"""The bit of `signals` that marks what was derived, for the active graph."""
UNTRUSTED_SIGNAL = 1 << 29
"""The bit of `signals` that marks what is not trusted, segments included, for the active graph. The
store sets it by `NewItem.untrusted`."""
STATES: tuple[str, ...] = ("current", "quarantined", "stale")
"""States of what was derived by their stored code. Only what is current is recalled; quarantined
failed verification; stale rests on something that was edited or deleted and waits for it."""
STATE_CODES: Mapping[str, int] = {state: code for code, state in enumerate(STATES)}


class SourceRow(NamedTuple):
    """What a derived memory rests on: characters `start` to `end` of version `version` of the
    memory `source` (all 0: the memory as a whole)."""

    number: int
    source: int
    version: int = 0
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDerived:
    """Something that consolidation made, ready to be filed.

    `sources` are (source, version, start, end). It is filed only while every source has that
    version (version 0: while it is there). `links` are (other end, type, strength) from it,
    `supersedes` numbers of derived memories that it ends, each with its end of validity (µs).
    `subject`, `slot`, `value`, `single`: see `consolidation.drafts.Draft`.
    """

    item: NewItem
    maker: str
    sources: tuple[tuple[int, int, int, int], ...]
    prompt: str | None = None
    state: str = "current"
    subject: str = ""
    slot: str | None = None
    value: str | None = None
    single: bool = False
    reasons: tuple[str, ...] = ()
    closed: int | None = None
    links: tuple[tuple[int, str, float], ...] = ()
    supersedes: tuple[tuple[int, int], ...] = ()


class DerivedRow(NamedTuple):
    """A derived memory: `item` and what is known of its making. `closed` is when its end of
    validity was recorded (µs), `sources` in the order of their numbers."""

    item: ItemRow
    maker: str
    prompt: str | None
    state: str
    subject: str
    slot: str | None
    value: str | None
    single: bool
    reasons: tuple[str, ...]
    closed: int | None
    sources: tuple[SourceRow, ...]


class DerivedFields(NamedTuple):
    """What is known of the making of the derived memory `number`, without its item."""

    number: int
    maker: str
    prompt: str | None
    state: str
    subject: str
    slot: str | None
    value: str | None
    single: bool
    reasons: tuple[str, ...]
    closed: int | None
    sources: tuple[SourceRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What deleting did: how many `memories` that were named, `uids` of everything that went and
    `numbers` of all its rows (segments too), how many `derived` memories and `cues` went with them,
    which derived ones are `doubtful` now (they lost a part of what they rest on and wait for
    verification, out of recall), which `reopened` (what had ended them is gone), how many `links`
    and `recalls` (questions) went."""

    memories: int = 0
    uids: tuple[bytes, ...] = ()
    numbers: tuple[int, ...] = ()
    derived: int = 0
    cues: int = 0
    doubtful: tuple[int, ...] = ()
    reopened: tuple[int, ...] = ()
    links: int = 0
    recalls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptPart:
    """What went from one space: `uids` of memories, `numbers` of rows, and how much of what.
    `whole`: all of the space, whose `uids` and `numbers` are then not listed. `doubtful` and
    `reopened` are uids of derived memories that stay."""

    ref: SpaceRef
    space_id: int
    whole: bool = False
    uids: tuple[bytes, ...] = ()
    numbers: tuple[int, ...] = ()
    doubtful: tuple[bytes, ...] = ()
    reopened: tuple[bytes, ...] = ()
    memories: int = 0
    derived: int = 0
    cues: int = 0
    links: int = 0
    recalls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptRow:
    """A receipt of deletion: ids, counts and a time (µs). `scrubbed`: no copy of what went is left
    in the store's files either."""

    tenant_id: int
    uid: bytes
    time: int
    scrubbed: bool
    parts: tuple[ReceiptPart, ...]


class StepRow(NamedTuple):
    """How far a step of consolidation has come: the last `period` it was applied in, and up to
    which `revision` and event `seq` it has seen everything, at `time` (µs)."""

    name: str
    period: int = -1
    revision: int = 0
    seq: int = 0
    time: int = 0

"""What passes between reading turns, drafting records from them, verifying and filing those."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from cofire.types import Kind

DISTILLED = (Kind.FACT, Kind.TRAIT, Kind.PERSONA, Kind.PROCEDURE)
"""Kinds that are distilled from turns and recalled as semantic records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A stored memory as it is offered for distillation.

    `number` and `version` name its text in the store; `label` is what a prompt calls it ("T3") and
    the only name by which a reply may cite it. `time` is when it was said, `offset` minutes east of
    UTC or None; `event_times` the hulls (start ≤ event < end) of what its words resolve to.
    `untrusted`: it came from a tool or a document, not from somebody in the conversation; `marked`:
    the memory itself says so, and what rests on it must, too.
    """

    number: int
    version: int
    label: str
    content: str
    time: datetime
    kind: Kind = Kind.EPISODE
    speaker: str | None = None
    role: str | None = None
    session: str | None = None
    offset: int | None = None
    language: str | None = None
    event_times: tuple[tuple[datetime, datetime], ...] = ()
    untrusted: bool = False
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Words said to stand in the turn called `label`: one or more whole sentences, verbatim."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A record somebody proposes: nothing of it is believed before it is verified.

    `content` is one statement in the language of the turns. `subject` is whom or what it is about,
    by name; `slot` the attribute it fills ("lives in", "employer"; lower case, None: it fills
    none, so nothing can replace it) and `value` what with. `single`: the slot has one value at a
    time, so a new value ends the old one. `happened` is the hull of when the thing told happened,
    `valid_from` from when it holds (UTC). `causes` are labels of turns or indexes ("D2") of drafts
    of the same reply that it follows from. `maker` is "extractive" or the model's name,
    `prompt` the name and version of what it was asked, None for rules.
    """

    kind: Kind
    content: str
    subject: str
    quotes: tuple[Quote, ...]
    slot: str | None = None
    value: str | None = None
    single: bool = False
    happened: tuple[datetime, datetime] | None = None
    valid_from: datetime | None = None
    causes: tuple[str, ...] = ()
    language: str | None = None
    maker: str = "extractive"
    prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptDraft:
    """An entity or topic that turns speak of: `name`, other names, and the turns' labels."""

    name: str
    aliases: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    maker: str = "extractive"
    prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationDraft:
    """How two concepts belong together, and the labels of the turns that say so: `source` and
    `target` are names of concepts of the same reply, `relation` a few words ("works at")."""

    source: str
    relation: str
    target: str
    labels: tuple[str, ...]
    maker: str
    prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where a verified quote stands: characters `start` to `end` of version `version` of the
    memory `number`. No words are copied, so there are none to erase."""

    number: int
    version: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What verification found. `reasons` say why a draft failed (empty: it holds); each begins
    with a fixed word ("quote", "subject", "number", "name", "date", "support", "negation",
    "hypothetical", "reported", "kind", "language"). `confidence` in [0, 1) grows with the number
    and independence of the evidence and is 0 for what failed; `spans` locate the quotes.
    """

    reasons: tuple[str, ...]
    confidence: float = 0.0
    spans: tuple[Span, ...] = field(default=())

    @property
    def holds(self) -> bool:
        return not self.reasons

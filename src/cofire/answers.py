"""What an answer from memory is made of: its text, what it rests on, and what it took.

Values like those of `types`: frozen, keyword-only, each field explained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

from cofire.types import Kind, Learned, Recall, TimeLike

Section = Literal["said", "known", "user"]
"""Parts of a context: what was said, what consolidation made of it, what is known of people."""

Reason = Literal["", "gate", "evidence", "nothing", "refusal", "failed"]
"""Why there is no answer ("": there is one): the gate finds it too unlikely that the memory holds
one; the model found none in the evidence; nothing was recalled; the model declined or its
endpoint's filter stopped it; its reply could not be used."""

NOT_MENTIONED = "Not mentioned."
"""The text of an answer that is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a context. `label` is the number before it, from 1, by which a model cites it;
    `text` the line without it, as rendered; `id` the memory's or record's. `quote` is what the
    memory itself says there, and `evidence` are the memories that a record rests on."""

    label: int
    id: str
    text: str
    quote: str
    section: Section
    time: datetime
    speaker: str | None = None
    evidence: tuple[str, ...] = ()
    untrusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is put before a model: `text` (empty: nothing was recalled) of `tokens` wordpieces, and
    its lines in their order. What did not fit is counted by `left_out`."""

    text: str = ""
    entries: tuple[Entry, ...] = ()
    tokens: int = 0
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.entries)

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the memories and records in it, in its order."""
        return tuple(entry.id for entry in self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A memory or record that an answer rests on. `text` is what it says (of a long memory the
    part that was shown), `label` its number in the context."""

    id: str
    text: str
    time: datetime
    label: int
    speaker: str | None = None
    section: Section = "said"
    untrusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an answer took: wordpieces of the context, tokens that the endpoint counted (0: it did
    not say), their cost by the prices in the settings, calls of the model, and seconds: of the
    recall with its context, and waited for the model."""

    context_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    calls: int = 0
    recall_seconds: float = 0.0
    model_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer from memory.

    `text` is for a reader, without marks; `marked` has [1], [2] behind what rests on the first,
    the second of `citations`. `confidence` in [0, 1] is how likely the memory holds an answer at
    all (None: the profile does not say). `abstained`: the honest answer is that there is none, for
    the `reason` given. `extractive`: no model wrote it; it is the sentence of a memory that fits
    best, with those around it that leave it short, in its own words. `model` and `prompt`
    ("answer@1") made it. `malformed` says what was wrong with the model's reply, if anything was.
    `learned` is what its citations taught (None: nothing was to be learned from them).
    """

    question: str
    text: str
    marked: str
    citations: tuple[Citation, ...] = ()
    confidence: float | None = None
    abstained: bool = False
    reason: Reason = ""
    extractive: bool = False
    model: str = "extractive"
    prompt: str = ""
    malformed: str = ""
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()
    learned: Learned | None = None
    recall: Recall
    context: Context

    def __str__(self) -> str:
        return self.text

    @property
    def cited(self) -> tuple[str, ...]:
        """The ids of its citations, in their order."""
        return tuple(citation.id for citation in self.citations)


class AnswerOptions(TypedDict, total=False):
    """What may be said of how to answer, beside the question and the model.

    tokens        wordpieces of the context at most (default: COFIRE_ANSWER_TOKENS)
    k, semantic   memories recalled at most (60), and records of consolidation (5)
    profile       as in `Memory.recall`; its `cutoff` does not apply, `tokens` bounds the context
    gate          no model is asked where it is too unlikely that the memory holds an answer (True)
    prompt        "answer" (sentences), "short" (a phrase), "choice", or one of your own in the
                  folder COFIRE_ANSWER_PROMPTS
    choices       what "choice" chooses from, 2 to 26 texts
    recent        the turns of a conversation before the question, for the prompt "chat"; given, a
                  model is asked though nothing was recalled
    max_tokens    of the model's reply (default: COFIRE_ANSWER_MAX_TOKENS)
    temperature   in [0, 2] (default: COFIRE_ANSWER_TEMPERATURE)
    seed          for the model, where it takes one
    learn         whether what is cited gains by it (default: COFIRE_ANSWER_LEARN)
    by            in whose name
    now           when the question is asked (default: the clock)

    The others are the filters of `Memory.recall`.
    """

    tokens: int | None
    k: int
    semantic: int
    profile: Any  # a name, or a Profile, which this module may not know
    gate: bool
    prompt: str
    choices: Sequence[str]
    recent: str | None
    max_tokens: int | None
    temperature: float | None
    seed: int | None
    learn: bool | None
    by: str | None
    now: TimeLike | None
    kinds: Sequence[Kind | str] | Kind | str
    speakers: Sequence[str] | str
    sessions: Sequence[str] | str
    tags: Sequence[str] | str
    metadata: Mapping[str, Any] | None
    since: TimeLike | None
    until: TimeLike | None
    trusted_only: bool

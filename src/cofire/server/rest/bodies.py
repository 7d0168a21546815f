"""What is sent to the routes. Unknown fields are refused, and so is a number given as a text.

What a model lets through the library may still refuse, with reasons: a time that is none, a kind
that is Cofire's own.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    StrictBool,
    StrictFloat,
    StrictInt,
    model_validator,
)  # fmt: skip
from pydantic.json_schema import SkipJsonSchema

from cofire.dynamics.plasticity import RULES
from cofire.interchange import Format
from cofire.retrieval.profiles import PROFILES
from cofire.server.access import DEFAULT_IDENTITY, Scope
from cofire.server.rest.values import MOST
from cofire.types import VISIBLE_KINDS, Kind, LinkType

_A = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"
_B = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a002"
LARGEST = 2**53 - 1
"""Up to here a whole number is the same to everybody who reads JSON."""

MOST_TOKENS = 100_000
"""Of memories for an answer, and of an answer: somebody pays for them."""

Unset = SkipJsonSchema[None]
"""A field that may be left out and must not be null."""

Whole = Annotated[int, Strict()]
Importance = Annotated[int, Strict(), Field(ge=1, le=10)]
Words = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Time = Annotated[
    str | StrictInt | StrictFloat,
    Field(
        description="A moment: ISO 8601 (read as UTC without an offset), or epoch seconds or "
        "milliseconds.",
        examples=["2026-05-08T19:30:00+02:00"],
    ),
]
Id = Annotated[str, Field(max_length=100, description="A memory's id.", examples=[_A])]
Ids = Annotated[list[Id], Field(max_length=MOST)]
Names = Annotated[list[str], Field(max_length=MOST)]
Query = Annotated[str, Field(max_length=20_000)]
"""Of a longer one no model reads the end, and other callers wait meanwhile."""
Metadata = Annotated[dict[str, Any], Field(description="Any JSON object.")]
Profile = Annotated[
    str,
    Field(description="How to rank.", json_schema_extra={"enum": sorted(PROFILES)}),
]
REMEMBERED = [kind.value for kind in VISIBLE_KINDS]
Remembered = Annotated[Kind, Field(json_schema_extra={"enum": REMEMBERED})]


class Body(BaseModel):
    """What all bodies are."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers(cls, sent: Any) -> Any:
        """5.0 is a whole number, as JSON schema has it."""
        if not isinstance(sent, dict):
            return sent
        return {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in sent.items()
        }


def example(*examples: dict[str, Any]) -> ConfigDict:
    """The configuration of a body with examples."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": list(examples)})


class Fields(Body):
    """What a memory has besides its text."""

    title: str | None = None
    speaker: str | None = Field(default=None, description="Who said it.")
    role: str | None = Field(default=None, description="Such as user, assistant or tool.")
    session: str | None = Field(default=None, description="The conversation it belongs to.")
    expires: Time | None = Field(default=None, description="When it stops being recalled.")


class Message(Fields):
    """One thing to remember."""

    model_config = example(
        {
            "content": "The ferry to Norderney leaves at 9:15 from Norddeich.",
            "speaker": "Ada",
            "time": "2026-05-08T19:30:00+02:00",
            "session": "trip",
            "tags": ["travel"],
        }
    )
    content: Words = Field(description="Kept verbatim; must not be blank.")
    kind: Remembered = Field(default=Kind.EPISODE)
    time: Time | None = Field(default=None, description="When it was said; default: now.")
    tags: Names = Field(default_factory=list)
    importance: Importance = 5
    pinned: StrictBool = Field(default=False, description="It neither fades nor is archived.")
    metadata: Metadata = Field(default_factory=dict)
    key: str | None = Field(
        default=None,
        description="Your own id: remembering it again changes nothing, with another text it is "
        "a conflict (409).",
    )
    untrusted: StrictBool | None = Field(
        default=None,
        description="It comes from outside (a tool, a web page) and must not speak for anybody; "
        "null: if its role is tool.",
    )


class Batch(Body):
    """Several things to remember, in one transaction: all, or none."""

    model_config = example({"messages": [{"content": "Ada rows."}, {"content": "Joris swims."}]})
    messages: list[Message] = Field(min_length=1, max_length=MOST)


def _optional(schema: dict[str, Any]) -> None:
    """It may be left out, and has then no value, null neither."""
    schema.pop("default", None)


class Changes(Body):
    """Fields to change; null clears what can be empty. What is left out stays."""

    model_config = example({"content": "The ferry leaves at 9:45.", "tags": ["travel", "ferry"]})
    content: Words | Unset = Field(default=None, json_schema_extra=_optional)
    title: str | None = None
    kind: Remembered | Unset = Field(default=None, json_schema_extra=_optional)
    speaker: str | None = None
    role: str | None = None
    time: Time | Unset = Field(default=None, json_schema_extra=_optional)
    session: str | None = None
    tags: Names | None = None
    importance: Importance | Unset = Field(default=None, json_schema_extra=_optional)
    pinned: StrictBool | Unset = Field(default=None, json_schema_extra=_optional)
    metadata: Metadata | None = None
    expires: Time | None = None
    untrusted: StrictBool | Unset = Field(default=None, json_schema_extra=_optional)


class Filters(Body):
    """Which memories may be recalled at all; every given condition must hold."""

    kinds: Annotated[list[Kind], Field(max_length=len(Kind))] = Field(
        default_factory=list, description="Any of these."
    )
    speakers: Names = Field(default_factory=list, description="Any of these.")
    sessions: Names = Field(default_factory=list, description="Any of these.")
    tags: Names = Field(default_factory=list, description="All of these.")
    metadata: Metadata | None = Field(default=None, description="Equal at every key given.")
    since: Time | None = Field(default=None, description="since ≤ time")
    until: Time | None = Field(default=None, description="time < until")
    trusted_only: StrictBool = Field(default=False, description="Nothing that is from outside.")


class Question(Filters):
    """A question, and what may be recalled."""

    model_config = example(
        {"query": "When does the ferry leave?", "k": 5},
        {"query": "What did Ada say of boats?", "token_budget": 400, "speakers": ["Ada"]},
    )
    query: Query
    k: Whole = Field(default=10, ge=1, le=MOST, description="At most so many memories.")
    token_budget: Whole | None = Field(
        default=None, ge=1, le=LARGEST, description="Wordpieces that `text` may have."
    )
    profile: Profile = "cofire"
    now: Time | None = Field(default=None, description="What relative times count from.")
    semantic: Whole = Field(
        default=5, ge=0, le=MOST, description="Records of what consolidation made, at most."
    )
    as_of: Time | None = Field(default=None, description="What held at this moment.")
    known_at: Time | None = Field(default=None, description="What had been recorded by then.")
    explain: StrictBool = Field(default=False, description="With the trace.")


class AnswerQuestion(Filters):
    """A question to be answered from what is remembered."""

    model_config = example(
        {"question": "When does the ferry leave?"},
        {"question": "What does Ada like?", "tokens": 400, "speakers": ["Ada"], "stream": True},
    )
    question: Query
    tokens: Whole | None = Field(
        default=None,
        ge=1,
        le=MOST_TOKENS,
        description="Wordpieces of memories that the answer is made from; null: as set up.",
    )
    k: Whole = Field(default=60, ge=1, le=MOST, description="Memories recalled at most.")
    semantic: Whole = Field(
        default=5, ge=0, le=MOST, description="Records of what consolidation made, at most."
    )
    profile: Profile = "cofire"
    gate: StrictBool = Field(
        default=True,
        description="No model is asked where it is too unlikely that the memory holds an answer.",
    )
    prompt: str = Field(
        default="answer",
        pattern="^[A-Za-z0-9_-]{1,64}$",
        description="answer (sentences), short (a phrase), choice, or one that the server's "
        "operator has added.",
    )
    choices: Annotated[list[Query], Field(max_length=26)] = Field(
        default_factory=list, description="What the prompt choice chooses from, 2 to 26 texts."
    )
    max_tokens: Whole | None = Field(
        default=None, ge=1, le=MOST_TOKENS, description="Of the model's reply; null: as set up."
    )
    temperature: Number | None = Field(
        default=None, ge=0.0, le=2.0, description="Of the model; null: as set up."
    )
    seed: Whole | None = Field(
        default=None, ge=0, le=LARGEST, description="For the model, where it takes one."
    )
    learn: StrictBool | None = Field(
        default=None,
        description="Whether what is cited gains by it, which takes the scope write; null: as set "
        "up, if the key may write.",
    )
    now: Time | None = Field(default=None, description="When it is asked.")
    model: Literal["none"] | None = Field(
        default=None, description="none: a memory's own sentence; null: the server's model."
    )
    context: StrictBool = Field(default=False, description="With what the model was given.")
    stream: StrictBool | None = Field(
        default=None, description="As events while it is written; null: by the header Accept."
    )


class CandidatesQuestion(Body):
    """A question whose candidates are asked for."""

    model_config = example({"query": "When does the ferry leave?", "k": 100})
    query: Query
    k: Whole = Field(default=100, ge=1, le=MOST, description="At most so many.")
    profile: Profile = "cofire"
    now: Time | None = None


class Texts(Body):
    """A question and texts to compare it with."""

    model_config = example({"query": "ferry", "texts": ["The boat leaves at nine.", "It rains."]})
    query: Query
    texts: Annotated[list[Query], Field(max_length=100)]


class Counted(Body):
    """A text whose wordpieces are counted."""

    model_config = example({"text": "The ferry leaves at 9:15."})
    text: Annotated[str, Field(max_length=1_000_000)]


class Feedback(Body):
    """Which memories of a recall were used, which were rejected, and how it went."""

    model_config = example({"used": [_A], "rejected": [_B], "outcome": 1.0})
    used: Ids = Field(default_factory=list)
    rejected: Ids = Field(default_factory=list)
    outcome: Number = Field(
        default=1.0, ge=-1.0, le=1.0, description="1 helped, 0 no evidence, -1 did harm."
    )
    interaction: str | None = Field(
        default=None,
        min_length=1,
        description="The conversation: what is used soon after each other in one counts, a "
        "little, as used together.",
    )


class Opened(Body):
    """Which results an agent looked at."""

    model_config = example({"ids": [_A]})
    ids: Ids = Field(min_length=1)


class Cited(Body):
    """An answer that was made from a recall."""

    model_config = example({"answer": "It leaves at 9:15 [1]."})
    answer: str = Field(description="It cites by place, [1] or [2, 3], or by id.")


class NewLink(Body):
    """A link between two memories."""

    model_config = example({"source": _A, "target": _B, "type": "supports", "strength": 0.5})
    source: Id
    target: Id
    type: LinkType = LinkType.RELATED
    strength: Number = Field(default=0.5, ge=0.0, le=1.0)


class Rule(Body):
    """A rule to learn by."""

    model_config = example({"rule": "atamaia"})
    rule: str = Field(json_schema_extra={"enum": list(RULES)})


class Opening(Body):
    """How a session opens."""

    model_config = example({"cue": "Planning the trip", "token_budget": 1500})
    cue: Query | None = None
    token_budget: Whole = Field(default=1500, ge=1, le=LARGEST)
    now: Time | None = None
    seed: Whole | None = Field(
        default=None, ge=0, le=LARGEST, description="Makes what comes up by chance repeatable."
    )
    untrusted: StrictBool = Field(default=False, description="Also what is from outside.")


class Ending(Body):
    """How a session ends."""

    model_config = example(
        {"summary": "The ferry is booked.", "threads": ["find a hotel"], "session": "trip"}
    )
    summary: str | None = Field(default=None, min_length=1)
    goals: Names = Field(default_factory=list)
    threads: Names = Field(default_factory=list)
    session: str | None = Field(default=None, min_length=1)


class Note(Body):
    """How far something has come."""

    model_config = example({"note": "Two hotels have answered."})
    note: str = Field(min_length=1)


class Outcome(Body):
    """What came of something."""

    model_config = example({"outcome": "Hotel Inselloft, three nights."})
    outcome: str | None = Field(default=None, min_length=1)


class Consolidation(Body):
    """What consolidation may do."""

    model_config = example({"steps": [], "most_calls": 20})
    steps: Annotated[list[str], Field(max_length=100)] = Field(
        default_factory=list, description="Those to run; empty: all."
    )
    most_calls: Whole | None = Field(default=None, ge=0, le=LARGEST)
    most_tokens: Whole | None = Field(default=None, ge=0, le=LARGEST)
    most_cost: Number | None = Field(default=None, ge=0)


class Named(Body):
    """Memories by their ids."""

    model_config = example({"ids": [_A]})
    ids: Ids = Field(min_length=1)


class Forget(Body):
    """What to delete for good, said in one of three ways: `ids`; conditions with a `scope`; or
    `everything`, with a `confirm` token. A condition that is empty or null is refused."""

    model_config = example(
        {"ids": [_A], "dry_run": True},
        {"scope": "own", "tags": ["travel"]},
        {"everything": True},
    )
    ids: Ids | None = None
    scope: str | None = Field(
        default=None,
        description="'own', the agent's own memories, or the name of a `project` of the request.",
    )
    kinds: list[Kind] | None = Field(default=None, max_length=len(Kind))
    speakers: Names | None = None
    sessions: Names | None = None
    tags: Names | None = None
    metadata: Metadata | None = None
    since: Time | None = None
    until: Time | None = None
    everything: StrictBool = False
    confirm: str | None = Field(
        default=None, description="The token of the 409 that the first request got."
    )
    dry_run: StrictBool = Field(default=False, description="Only say what would go.")


SELECTORS = ("kinds", "speakers", "sessions", "tags", "metadata", "since", "until")


class KeyRequest(Body):
    """A key to make, for this key's own tenant. It can do no more than the key that makes it."""

    model_config = example({"name": "assistant", "scopes": ["read", "write"]})
    name: str = Field(description="The principal of what is done with it.", min_length=1)
    identities: Names | None = Field(
        default_factory=lambda: [DEFAULT_IDENTITY], description="null: any."
    )
    users: Names | None = Field(default=None, description="null: any, and none.")
    projects: Names | None = Field(default_factory=list, description="null: any.")
    scopes: list[Scope] = Field(
        default_factory=lambda: [Scope.READ, Scope.WRITE], min_length=1, max_length=len(Scope)
    )
    expires: Time | None = None


ImportFormat = Literal[Format.JSONL, Format.COFIRE]

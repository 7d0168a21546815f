"""The public values as the OpenAPI document describes them, and as they are sent.

The models are made of the frozen values of `cofire.types` and say what `cofire.plain` makes of
them; they describe answers and are never filled.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, create_model

from cofire import answers as answered
from cofire import types as public
from cofire.interchange.report import ImportReport
from cofire.retrieval.features import TERMS
from cofire.store.records import Finding

MOST = 1_000
"""Things on one page, and memories of one request."""


class Answer(BaseModel):
    """What all descriptions of answers are."""

    model_config = ConfigDict(extra="forbid")


@cache
def described(kind: type) -> type[Answer]:
    """The model of a frozen value: its fields, every one of which is sent."""
    return _model(kind, kind.__name__)


def _model(kind: type, name: str, without: tuple[str, ...] = (), **more: Any) -> type[Answer]:
    hints = typing.get_type_hints(kind)
    fields: dict[str, Any] = {
        field.name: (_described_type(hints[field.name]), ...)
        for field in dataclasses.fields(kind)
        if field.name not in without
    }
    made: type[Answer] = create_model(
        name, __base__=Answer, __doc__=inspect.cleandoc(kind.__doc__ or ""), **(fields | more)
    )
    return made


def _described_type(hint: Any) -> Any:
    """A field's type, as JSON has it."""
    if dataclasses.is_dataclass(hint):
        return described(typing.cast(type, hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_described_type(one) for one in arguments)]  # noqa: UP007 - made of many
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple[tuple(_described_type(one) for one in arguments)]  # type: ignore[misc]
    if origin in (tuple, list):
        return list[_described_type(arguments[0])]  # type: ignore[misc]
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _described_type(arguments[1])]  # type: ignore[misc]
    return hint


def page_of(item: type[BaseModel], name: str) -> type[Answer]:
    """A page of them."""
    made: type[Answer] = create_model(
        name,
        __base__=Answer,
        __doc__="One page.",
        items=(list[item], Field(max_length=MOST)),  # type: ignore[valid-type]
        next=(
            str | None,
            Field(description="Pass it as `after` for the following page; null: this is the last."),
        ),
    )
    return made


Text = (str, Field(description="The whole as text for a prompt."))

Item = described(public.Item)
Receipt = described(public.Receipt)
Version = described(public.Version)
Link = described(public.Link)
Strength = described(public.Strength)
Learned = described(public.Learned)
Evidence = described(public.Evidence)
Proposal = described(public.Proposal)
Thread = described(public.Thread)
Checkpoint = described(public.Checkpoint)
SemanticRecord = described(public.SemanticRecord)
Shape = described(public.Shape)
Deletion = described(public.Deletion)
Verification = described(public.Verification)
RecalledItem = _model(
    public.Item,
    "RecalledItem",
    score=(float, ...),
    segment=(described(public.Segment) | None, Field(description="Which part of a long text.")),
    line=(str, Field(description="Date, speaker and text, as in `text` of the recall.")),
)
RecallAnswer = _model(
    public.Recall,
    "Recall",
    ("items",),
    items=(list[RecalledItem], ...),  # type: ignore[valid-type]
    text=Text,
)
HydrationAnswer = _model(public.Hydration, "Hydration", text=Text)
Cited = _model(
    answered.Citation,
    "Cited",
    number=(int, Field(ge=1, description="Its mark in `marked`.")),
)


class Near(Answer):
    """A memory that came near an answer."""

    id: str
    text: str
    time: datetime
    speaker: str | None
    score: float
    untrusted: bool


AnswerToQuestion = _model(
    answered.Answer,
    "AnswerToQuestion",
    ("citations", "recall", "context"),
    citations=(list[Cited], ...),  # type: ignore[valid-type]
    recall=(str, Field(description="The recall that it was made from: feedback is given on it.")),
    nearest=(list[Near], Field(description="What came nearest, where there is no answer.")),
    context=(described(answered.Context) | None, Field(description="If it was asked for.")),
)
SleepReport = _model(
    public.SleepReport,
    "SleepReport",
    status=(Literal["done", "partial", "claimed"], ...),
)
Stats = _model(
    public.Stats,
    "Stats",
    ("store_bytes", "graph_bytes"),
    items=(int, Field(description="Memories in all of these spaces.")),
    links=(int, Field(description="Links in all of these spaces.")),
)
Report = _model(ImportReport, "ImportReport")

ItemPage = page_of(Item, "ItemPage")
VersionPage = page_of(Version, "VersionPage")
LinkPage = page_of(Link, "LinkPage")
StrengthPage = page_of(Strength, "StrengthPage")
EvidencePage = page_of(Evidence, "EvidencePage")
ProposalPage = page_of(Proposal, "ProposalPage")
ThreadPage = page_of(Thread, "ThreadPage")
RecordPage = page_of(SemanticRecord, "RecordPage")
ShapePage = page_of(Shape, "ShapePage")
SleepReportPage = page_of(SleepReport, "SleepReportPage")
DeletionPage = page_of(Deletion, "DeletionPage")


class Candidates(Answer):
    """Every candidate of a recall, best first."""

    ids: list[str]
    terms: list[str] = Field(description=f"Names of the columns: {', '.join(TERMS)}.")
    values: list[list[float]] = Field(description="The terms of each one's score, unweighted.")


class Similarity(Answer):
    """How similar a question is to the most similar of some texts."""

    similarity: float = Field(ge=-1.001, le=1.001, description="Cosine; 0 without texts.")


class Tokens(Answer):
    """How many wordpieces a text has."""

    tokens: int = Field(ge=0)


class Unlinked(Answer):
    """A link that was removed."""

    unlinked: int = Field(ge=1)


class Archived(Answer):
    """What was archived."""

    archived: int = Field(ge=0, description="How many were not archived before.")


class Restored(Answer):
    """What was brought back."""

    restored: int = Field(ge=0, description="How many were archived before.")


class Mended(Answer):
    """What replaying the log mended."""

    mended: int = Field(ge=0, description="Strengths that were not what the log says.")


class LinksChanged(Answer):
    """What another rule changed."""

    changed: int = Field(ge=0, description="Links whose strength is another now.")


class Checked(Answer):
    """What a check found; empty if all is well."""

    findings: list[described(Finding)]  # type: ignore[valid-type]


class Reports(Answer):
    """What a consolidation did, space by space."""

    reports: list[SleepReport]  # type: ignore[valid-type]


class Key(Answer):
    """An API key, without its secret. Null for identities, users or projects means any."""

    id: str
    name: str
    tenant: str
    state: Literal["good", "expired", "revoked"]
    identities: list[str] | None
    users: list[str] | None
    projects: list[str] | None
    scopes: list[str]
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    last_used: datetime | None


class NewKey(Key):
    """A key that was just made."""

    token: str = Field(description="The key itself: it is shown now and never again.")


KeyPage = page_of(Key, "KeyPage")


class Revoked(Answer):
    """A key that is good for nothing from now on."""

    id: str
    revoked: bool = Field(description="False if it was revoked before.")


class AuditRecord(Answer):
    """Something that somebody did, or was refused; never what it was about."""

    id: str
    time: datetime
    surface: str
    action: str
    outcome: Literal["ok", "denied", "error"]
    principal: str | None
    key: str | None
    code: str | None = Field(description="The class of the error.")
    count: int | None = Field(description="How many memories it was about.")
    request: str | None = Field(description="The request's id.")


AuditPage = page_of(AuditRecord, "AuditPage")


class Job(Answer):
    """A space that background consolidation gave up."""

    space: described(public.SpaceRef)  # type: ignore[valid-type]
    revision: int
    ran: datetime | None
    attempts: int
    next_at: datetime | None
    dead: datetime | None
    error: str | None


class Jobs(Answer):
    """Background consolidation in numbers, and what it gave up."""

    due: int
    waiting: int
    dead: int
    running: int
    oldest_seconds: float = Field(ge=0, description="How long the oldest has been due.")
    given_up: list[Job]


class Retried(Answer):
    """What is tried again."""

    retried: int = Field(ge=0, description="How many spaces.")


class Me(Answer):
    """Who asks, as the server knows them. Null for identities, users or projects means any."""

    name: str = Field(description="The principal of feedback and of the audit trail.")
    tenant: str
    identity: str | None = Field(description="Whose memories a request means that names none.")
    user: str | None
    identities: list[str] | None
    users: list[str] | None
    projects: list[str] | None
    scopes: list[str]
    key: str | None = Field(description="The id of the API key.")
    identity_number: int | None = Field(description="The 64-bit id of this identity under /api.")

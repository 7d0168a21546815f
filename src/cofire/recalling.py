"""Recalling: one question to all spaces of a memory, and the record of what it brought back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from cofire.retrieval.engine import NOW, Moments
from cofire.retrieval.profiles import Profile
from cofire.types import Filters, Recall
from cofire.workings import Workings


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: `text` as the store knows texts (redacted, clean), the clock, and what may be
    ranked at all."""

    text: str
    now: datetime
    filters: Filters = field(default_factory=Filters)
    moments: Moments = NOW


def recall(
    workings: Workings,
    question: Question,
    k: int,
    *,
    profile: Profile,
    token_budget: int | None = None,
    semantic: int = 5,
    explain: bool = False,
) -> Recall:
    """See `Memory.recall`."""
    recaller, spaces = workings.recaller, workings.spaces
    with workings.embedding.shared():
        found, records = spaces.lasting(
            lambda: recaller.recall(
                spaces.all(), question.text, k,
                profile=profile, now=question.now, filters=question.filters,
                token_budget=token_budget, semantic=semantic, moments=question.moments,
                explain=explain,
            )
        )  # fmt: skip
    workings.log.add(records)
    return found

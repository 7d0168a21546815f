"""What comes from outside as evidence: of which records, how it is shown to a model, and what it
leaves behind."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cofire.consolidation.drafts import Draft, Quote, Turn
from cofire.consolidation.fencing import fenced
from cofire.consolidation.turns import may_support, trusted
from cofire.consolidation.verifying import verify
from cofire.encoding.encoder import is_untrusted
from cofire.types import Kind, Message, Recalled, SemanticRecord

SAID = datetime(2024, 3, 13, 10, tzinfo=UTC)
MIRA = Turn(
    number=7, version=1, label="T1", content="I like rowing.", time=SAID, speaker="Mira",
    role="user", language="en",
)  # fmt: skip
PAGE = replace(MIRA, number=8, label="T2", speaker=None, role="tool", untrusted=True, marked=True)
RUN = replace(PAGE, number=9, label="T3", kind=Kind.TOOL_EVENT)


def cited(kind: Kind, *turns: Turn) -> Draft:
    quotes = tuple(Quote(label=turn.label, text=turn.content) for turn in turns)
    return Draft(kind=kind, content="Mira likes rowing.", subject="Mira", quotes=quotes)


@pytest.mark.parametrize("outside", [PAGE, RUN])
def test_a_fact_rests_on_what_was_said_alone_and_a_trait_must_not_cite_more(outside: Turn) -> None:
    turns = {turn.label: turn for turn in (MIRA, outside)}
    fact = verify(cited(Kind.FACT, MIRA, outside), turns)
    assert fact.holds
    assert [span.number for span in fact.spans] == [MIRA.number]
    trait = verify(cited(Kind.TRAIT, MIRA, outside), turns)
    assert trait.reasons == ("support: it rests on tools or documents in part",)
    assert verify(cited(Kind.TRAIT, MIRA), turns).holds
    for kind in (Kind.FACT, Kind.TRAIT, Kind.PERSONA):
        assert not verify(cited(kind, outside), turns).holds


def test_what_a_model_is_asked_about() -> None:
    assert trusted([MIRA, PAGE, RUN]) == [MIRA]
    assert may_support([MIRA, PAGE, RUN]) == [MIRA, RUN]
    _, text = fenced([MIRA, RUN], 100)
    lines = [json.loads(line) for line in text.split("\n") if line.startswith("{")]
    assert [line.get("untrusted") for line in lines] == [None, True]


@pytest.mark.parametrize(
    ("role", "said", "untrusted"),
    [("tool", None, True), ("TOOL", None, True), ("tool", False, False), ("user", None, False),
     ("user", True, True), (None, None, False), ("tooling", None, False)],
)  # fmt: skip
def test_whose_role_says_it(role: str | None, said: bool | None, untrusted: bool) -> None:
    assert is_untrusted(Message(content="x", role=role, untrusted=said)) is untrusted


def test_public_values_tell_it() -> None:
    for value in (Recalled, SemanticRecord):
        assert "untrusted" in vars(value)

"""Verification and reconciliation: what holds of any text and any order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.consolidation.drafts import Draft, Quote, Turn
from cofire.consolidation.quoting import locate, sentences
from cofire.consolidation.reconciling import Known, applied, reconcile
from cofire.consolidation.statements import drafts_of, slot_of
from cofire.consolidation.verifying import HIGHEST, confidence, verify
from cofire.evaluation.verification import Record, records
from cofire.types import Kind

SAID = datetime(2024, 3, 13, 10, tzinfo=UTC)
SENTENCES = (
    "I live in Solvik.", "I don't eat meat.", "My brother Tom is a pilot!", "We have 3 goats.",
    "I ran a race last Friday.", "Ana said she hates olives.", "If it rains I take the bus.",
    "I might sell the car…", "Do you sail?", "Nobody told me.", "Ich wohne in Harsk.",
    "I've worked at Quill since 2019.", "Mr. Lund met J. Berg in St. Petersburg.",
    "私は東京に住んでいます。",
)  # fmt: skip
texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4).map(" ".join),
)
moments = st.datetimes().map(lambda time: time.replace(tzinfo=UTC))
turns = st.builds(
    Turn,
    number=st.integers(1, 5),
    version=st.just(1),
    label=st.sampled_from(["T1", "T2", "T3"]),
    content=texts,
    time=moments,
    event_times=st.lists(st.tuples(moments, moments), max_size=1).map(tuple),
    speaker=st.none() | st.sampled_from(["Mira", "Tom", "", "Ana Lund", "!"]),
    role=st.none() | st.sampled_from(["user", "assistant"]),
    session=st.none() | st.sampled_from(["a", "b"]),
    offset=st.none() | st.integers(-720, 840),
    untrusted=st.booleans(),
)
quotes = st.builds(Quote, label=st.sampled_from(["T1", "T2", "T3", "T9"]), text=texts)
drafts = st.builds(
    Draft,
    kind=st.sampled_from(list(Kind)),
    content=texts,
    subject=st.sampled_from(["Mira", "Tom", "the user", "I", "", "Ana's brother"]),
    quotes=st.lists(quotes, max_size=3).map(tuple),
    slot=st.none() | st.sampled_from(["lives in", "likes", ":", ""]),
    value=st.none() | texts,
    happened=st.none() | st.tuples(moments, moments),
    valid_from=st.none() | moments,
)


@given(drafts, st.lists(turns, max_size=3))
def test_any_draft_gets_a_verdict(draft: Draft, offered: list[Turn]) -> None:
    verdict = verify(draft, {turn.label: turn for turn in offered})
    assert 0.0 <= verdict.confidence <= HIGHEST
    assert verdict.holds == (verdict.confidence > 0.0)
    assert all(reason.partition(":")[0] in REASONS for reason in verdict.reasons)


REASONS = frozenset(
    [
        "quote",
        "subject",
        "number",
        "name",
        "date",
        "support",
        "negation",
        "hypothetical",
        "reported",
        "kind",
        "language",
    ]
)


@given(st.sampled_from(records()), st.data())
def test_the_order_of_quotes_changes_nothing(one: Record, data: st.DataObject) -> None:
    extra = tuple(
        Quote(label=label, text=turn.content[first:last])
        for label, turn in one.turns.items()
        for first, last in sentences(turn.content)
    )
    draft = replace(one.draft, quotes=one.draft.quotes + extra)
    shuffled = replace(draft, quotes=tuple(data.draw(st.permutations(draft.quotes))))
    assert verify(draft, one.turns) == verify(shuffled, one.turns)


@given(st.lists(turns, min_size=1, max_size=5, unique_by=lambda turn: turn.number))
def test_less_evidence_never_convinces_more(offered: list[Turn]) -> None:
    whole = confidence(offered)
    for place in range(len(offered)):
        assert confidence(offered[:place] + offered[place + 1 :]) <= whole


@pytest.mark.parametrize(
    "one", [one for one in records() if len(one.turns) > 1], ids=lambda one: one.id
)
def test_a_quote_less_is_never_trusted_more(one: Record) -> None:
    verdict = verify(one.draft, one.turns)
    if not verdict.holds:
        return
    for place in range(len(one.draft.quotes)):
        fewer = one.draft.quotes[:place] + one.draft.quotes[place + 1 :]
        assert verify(replace(one.draft, quotes=fewer), one.turns).confidence <= verdict.confidence


STATED = st.sampled_from(
    ["I live in {}.", "I don't like {}.", "My sister is called {}.", "I never went to {}.",
     "We moved to {} in 2019.", "I met {} last Friday.", "I used to work at {}.",
     "{} lent me a tent.", "Ana said that {} is closed.", "I have three friends in {}."]
)  # fmt: skip


@given(STATED, st.from_regex(r"\A[A-Z][a-z]{3,9}\Z"), st.sampled_from(["Mira", "Jens Ohm", "Åsa"]))
def test_words_in_the_first_person_hold_of_who_said_them(
    form: str, name: str, speaker: str
) -> None:
    said = form.format(name)
    turn = Turn(
        number=1, version=1, label="T1", content=f"Hello there! {said} Bye.", time=SAID,
        speaker=speaker,
    )  # fmt: skip
    draft = Draft(
        kind=Kind.FACT, content=said, subject=speaker, quotes=(Quote(label="T1", text=said),)
    )
    verdict = verify(draft, {"T1": turn})
    assert verdict.holds, verdict.reasons
    span = verdict.spans[0]
    assert turn.content[span.start : span.end] == said


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5), st.sampled_from(" \n\t"))
def test_every_sentence_is_found_where_it_stands(parts: list[str], gap: str) -> None:
    text = gap.join(parts)
    for first, last in sentences(text):
        place = locate(text[first:last], text)
        assert place is not None
        assert text[place[0] : place[1]] == text[first:last]


@given(texts)
def test_sentences_cover_a_text(text: str) -> None:
    bounds = sentences(text)
    covered = "".join(text[first:last] for first, last in bounds)
    assert "".join(covered.split()) == "".join(text.split())
    assert all(before[1] <= after[0] for before, after in pairwise(bounds))


@given(texts)
def test_statements_abstain_rather_than_raise(text: str) -> None:
    for first, last in sentences(text):
        slot_of(text[first:last])
    turn = Turn(number=1, version=1, label="T1", content=text, time=SAID, speaker="Mira")
    for draft in drafts_of(turn):
        assert draft.content in text
        assert draft.quotes == (Quote(label="T1", text=draft.content),)
        assert verify(draft, {"T1": turn}).holds


def arrive(values: list[tuple[int, str]]) -> list[tuple[str, datetime, datetime | None]]:
    """The intervals that end up in a slot when values arrive in this order."""
    known: list[Known] = []
    number = 1
    for day, value in values:
        draft = Draft(
            kind=Kind.FACT, content=f"Mira lives in {value}.", subject="Mira", quotes=(),
            slot="lives in", value=value, valid_from=SAID + timedelta(days=day),
        )  # fmt: skip
        decision = reconcile(draft, known, said=SAID)
        known = applied(decision, draft, known, said=SAID, number=number)
        number += 2
    return sorted((str(one.value), one.valid_from, one.valid_to) for one in known)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["Harsk", "Velm", "Oskam"])),
        min_size=1,
        max_size=4,
        unique_by=lambda pair: pair[0],
    )
)
def test_any_order_of_arrival_ends_alike(values: list[tuple[int, str]]) -> None:
    expected = arrive(sorted(values))
    current = [value for value, _, end in expected if end is None]
    assert current == [max(values)[1]]
    for order in permutations(values):
        assert arrive(list(order)) == expected

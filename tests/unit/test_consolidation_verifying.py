"""Verification: records against the words they rest on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cofire.consolidation.drafts import Draft, Quote, Turn
from cofire.consolidation.verifying import confidence, verify
from cofire.evaluation.verification import counts, outcomes, records, score
from cofire.types import Kind

SAID = datetime(2024, 3, 13, 10, tzinfo=UTC)
MIRA = Turn(
    number=7, version=2, label="T1", content="Hello! I live in Solvik. I don't eat meat.",
    time=SAID, speaker="Mira", role="user", session="a",
)  # fmt: skip


def reasons(content: str, said: str, *, speaker: str = "Mira", subject: str = "Mira") -> set[str]:
    """The first words of the reasons against a record that quotes one turn whole."""
    turn = replace(MIRA, content=said, speaker=speaker)
    draft = Draft(
        kind=Kind.FACT, content=content, subject=subject, quotes=(Quote(label="T1", text=said),)
    )
    return {reason.partition(":")[0] for reason in verify(draft, {"T1": turn}).reasons}


def draft(content: str = "Mira lives in Solvik.", *quotes: str, **more: object) -> Draft:
    given = tuple(Quote(label="T1", text=text) for text in quotes or ("I live in Solvik.",))
    base = Draft(kind=Kind.FACT, content=content, subject="Mira", quotes=given)
    return replace(base, **more)  # type: ignore[arg-type]


def test_what_holds_is_located() -> None:
    verdict = verify(draft(), {"T1": MIRA})
    assert verdict.holds
    assert verdict.confidence == 0.5
    (span,) = verdict.spans
    assert (span.number, span.version) == (7, 2)
    assert MIRA.content[span.start : span.end] == "I live in Solvik."


@pytest.mark.parametrize("subject", ["Mira", "mira", "MIRA", "the user", "User", "I", "me"])
def test_the_speaker_by_any_name(subject: str) -> None:
    content = "The user lives in Solvik." if "user" in subject.lower() else "Mira lives in Solvik."
    assert verify(draft(content, subject=subject), {"T1": MIRA}).holds


def test_the_wrong_kind_and_no_turns() -> None:
    assert verify(draft(kind=Kind.EPISODE), {"T1": MIRA}).reasons[0].startswith("kind")
    assert verify(draft(), {}).reasons == ("quote: of a turn that was not offered",)
    assert verify(draft(quotes=()), {"T1": MIRA}).reasons == ("quote: none is given",)


def test_one_bad_quote_is_enough() -> None:
    verdict = verify(draft("Mira lives in Solvik.", "I live in Solvik.", "I live."), {"T1": MIRA})
    assert not verdict.holds
    assert verdict.confidence == 0.0


def test_tools_and_documents_give_no_trust_by_themselves() -> None:
    page = replace(MIRA, untrusted=True)
    verdict = verify(draft(), {"T1": page})
    assert [reason.partition(":")[0] for reason in verdict.reasons] == ["support"]
    both = (
        Quote(label="T1", text="I live in Solvik."),
        Quote(label="T2", text="Mira has 4 boats."),
    )
    document = Turn(
        number=8, version=1, label="T2", content="Mira has 4 boats.", time=SAID, untrusted=True
    )
    leaning = draft("Mira lives in Solvik and has 4 boats.", quotes=both)
    assert not verify(leaning, {"T1": MIRA, "T2": document}).holds


@pytest.mark.parametrize(
    ("content", "said", "reason"),
    [
        ("Mira likes X-rays.", "I don't like X-rays.", "negation"),
        ("Mira doesn't like tea.", "I like tea.", "negation"),
        ("Mira has been to Velm.", "I have never been to Velm.", "negation"),
        ("Mira works at Quill.", "I no longer work at Quill.", "negation"),
        ("Mira plays chess.", "I used to play chess.", "negation"),
        ("Mira no longer plays chess.", "I play chess.", "negation"),
        ("Mira moved to Velm.", "If I ever moved, it would be to Velm.", "hypothetical"),
        ("Mira moved to Velm.", "I might move to Velm.", "hypothetical"),
        ("Mira has a boat.", "I wish I had a boat.", "hypothetical"),
        ("Mira sold the boat.", "Maybe I sell the boat.", "hypothetical"),
        ("Mira has a boat.", "Have I got a boat?", "hypothetical"),
        ("Mira hates olives.", "Ana said she hates olives.", "subject"),
        ("Ben was fired.", "I heard that Ben was fired.", "reported"),
        ("Mira gave Ben a watch.", "Ben gave me a watch.", "subject"),
        ("Mira lent Ben a tent.", "Ben lent me a tent.", "subject"),
        ("Mira borrowed a tent from Ben.", "I lent Ben a tent.", "subject"),
        ("Mira lives in Velm.", "I live in Solvik.", "name"),
        ("Mira has three goats.", "I have 2 goats.", "number"),
        ("Mira has 2 goats and 3 hens.", "I have 3 goats and 2 hens.", "number"),
        ("Mira left on 10 March 2024.", "I left last Friday.", "date"),
        ("Mira trains on Tuesdays.", "I train on Mondays.", "date"),
        ("Mira always eats fish.", "I had fish today.", "support"),
        ("Mira loves fish.", "I had fish today.", "support"),
        ("Mira studied the history of glass.", "I live in Solvik.", "support"),
        ("Der Hund heißt Pip und ist sehr ruhig.", "My dog is called Pip and is very calm.",
         "language"),
    ],
)  # fmt: skip
def test_what_fails(content: str, said: str, reason: str) -> None:
    subject = "Ben" if content.startswith("Ben") else "Mira"
    if reason == "language":
        subject = "Pip"
    assert reason in reasons(content, said, subject=subject)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Mira doesn't like tea.", "I can't stand tea."),
        ("Mira no longer plays chess.", "I stopped playing chess."),
        ("Mira used to play chess.", "I used to play chess."),
        ("Mira might move to Velm.", "I might move to Velm."),
        ("Mira wants a boat.", "I want a boat."),
        ("Mira borrowed a tent from Ben.", "Ben lent me a tent."),
        ("Ben lent Mira a tent.", "Ben lent me a tent."),
        ("Ben said that Ana broke the vase.", "Ben said that Ana broke the vase."),
        ("Mira has 2 goats and 3 hens.", "I have two goats and three hens."),
        ("Mira left on 8 March 2024.", "I left last Friday."),
        ("Mira left in March 2024.", "I left last Friday."),
        ("Mira trains on Tuesdays.", "I train every Tuesday."),
        ("Mira has owned the boat since 2021.", "I've had the boat for three years."),
        ("Mira can't wait to see Velm.", "I can't wait to see Velm!"),
    ],
)
def test_what_holds(content: str, said: str) -> None:
    subject = "Ben" if content.startswith("Ben") else "Mira"
    assert reasons(content, said, subject=subject) == set()


@pytest.mark.parametrize(("year", "holds"), [(2018, True), (2019, False), (2024, False)], ids=str)
def test_the_times_of_a_draft_agree_with_its_quotes(year: int, holds: bool) -> None:
    turn = replace(MIRA, content="I moved to Solvik in 2018.")
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    base = draft("Mira moved to Solvik.", turn.content)
    assert verify(replace(base, valid_from=start), {"T1": turn}).holds is holds
    assert verify(replace(base, happened=(start, end)), {"T1": turn}).holds is holds


def test_reasons_copy_no_words_of_the_conversation() -> None:
    for one in outcomes():
        for reason in one.reasons:
            assert not {"solvik", "harsk", "ana", "runa", "14", "17"} & set(reason.lower().split())


def test_confidence_grows_with_independent_evidence() -> None:
    again = replace(MIRA, number=8)
    ben = replace(MIRA, number=9, speaker="Ben")
    elsewhere = replace(MIRA, number=10, session="b")
    assert confidence([]) == 0.0
    assert confidence([MIRA]) == confidence([MIRA, MIRA]) == 0.5
    alone, repeated = confidence([MIRA]), confidence([MIRA, again])
    assert alone < repeated < confidence([MIRA, ben]) < confidence([MIRA, elsewhere]) == 0.75
    assert confidence([replace(MIRA, untrusted=True)]) == 0.0
    assert confidence([replace(MIRA, number=n, session=str(n)) for n in range(99)]) == 0.99


def test_the_set_is_as_large_as_it_says() -> None:
    tally = counts(outcomes())
    assert len({record.id for record in records()}) == len(records())
    assert sum(count.records for count in tally if not count.holds) >= 100
    assert sum(count.records for count in tally if count.holds) >= 60


@pytest.mark.parametrize("part", ["develop", "held out"])
def test_most_false_records_are_refused_and_few_true_ones(part: str) -> None:
    figures = score(outcomes(), part)
    assert figures.recall >= 0.9
    assert figures.lost <= 0.1


@pytest.mark.parametrize("day", ["7 March", "9 March", "15 March"])
def test_a_shift_by_a_day_is_seen(day: str) -> None:
    assert reasons(f"Mira left on {day} 2024.", "I left last Friday.") == {"date"}

"""Reconciliation, slots, and what sentences say without a model."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cofire.consolidation.drafts import Draft, Turn
from cofire.consolidation.reconciling import (
    Decision,
    Known,
    New,
    Replaces,
    Same,
    applied,
    reconcile,
)
from cofire.consolidation.slots import DISLIKES, LIKES, slot_filled, slot_named, subject_key
from cofire.consolidation.statements import drafts_of, slot_of
from cofire.consolidation.verifying import verify
from cofire.types import Kind

SAID = datetime(2024, 3, 13, 10, tzinfo=UTC)


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


def draft(content: str, subject: str = "Mira", **more: object) -> Draft:
    base = Draft(kind=Kind.FACT, content=content, subject=subject, quotes=())
    return replace(base, **more)  # type: ignore[arg-type]


def home(place: str, since: int, subject: str = "Mira") -> Draft:
    return draft(
        f"{subject} lives in {place}.",
        subject,
        slot="lives in",
        value=place,
        valid_from=year(since),
    )


def known(one: Draft, number: int = 1, **more: object) -> Known:
    (record,) = applied(New(), one, [], said=SAID, number=number)
    return replace(record, **more)  # type: ignore[arg-type]


def decide(one: Draft, *records: Known) -> Decision:
    return reconcile(one, records, said=SAID)


def test_a_newer_value_ends_the_older() -> None:
    assert decide(home("Velm", 2020), known(home("Harsk", 2018))) == Replaces((1,), year(2020))


def test_an_older_value_that_comes_late_becomes_history() -> None:
    later = known(home("Velm", 2020))
    assert decide(home("Harsk", 2018), later) == Replaces((), year(2018), until=year(2020), by=1)


def test_one_between_two() -> None:
    first = known(home("Harsk", 2016), valid_to=year(2020))
    last = known(home("Velm", 2020), 2)
    decision = decide(home("Oskam", 2018), first, last)
    assert decision == Replaces((1,), year(2018), until=year(2020), by=2)


def test_one_that_interrupts_what_was_said_before_and_after() -> None:
    long = known(home("Harsk", 2016), times=(year(2016), year(2022)))
    one = home("Oskam", 2018)
    decision = decide(one, long)
    assert decision == Replaces((1,), year(2018), until=year(2022), resumes=True)
    after = {r.number: r for r in applied(decision, one, [long], said=SAID, number=5)}
    assert (after[1].valid_from, after[1].valid_to) == (year(2016), year(2018))
    assert (after[5].valid_from, after[5].valid_to) == (year(2018), year(2022))
    assert (after[6].value, after[6].valid_from, after[6].valid_to) == ("Harsk", year(2022), None)


def test_the_same_value_again() -> None:
    there = known(home("Harsk", 2018))
    assert decide(home("harsk", 2022), there) == Same(1)
    assert decide(home("Harsk", 2016), there) == Same(1, since=year(2016))


def test_back_where_it_was_is_no_duplicate() -> None:
    first = known(home("Harsk", 2016), valid_to=year(2018))
    second = known(home("Velm", 2018), 2)
    assert decide(home("Harsk", 2020), first, second) == Replaces((2,), year(2020))


def test_slots_named_otherwise_are_one() -> None:
    other = draft("Mira moved to Velm.", slot="Home_City", value="Velm", valid_from=year(2020))
    assert decide(other, known(home("Harsk", 2018))) == Replaces((1,), year(2020))


def test_loving_and_hating_are_two_values_of_one_slot() -> None:
    love = draft("I love mushroom soup", slot="likes:mushroom soup", value=LIKES, single=True)
    hate = draft("Mira hates mushroom soup.", slot="hates", value="mushroom soup")
    assert decide(hate, known(love, valid_from=year(2020))) == Replaces((1,), SAID)
    denied = draft("Mira does not like mushroom soup.", slot="likes", value="the mushroom soup")
    assert slot_filled(denied) == slot_filled(hate)


def test_unrelated_facts_never_retire_each_other() -> None:
    robin = known(home("Fernhill", 2018, "Robin"), 1)
    job = known(draft("Sam works at the harbour.", "Sam", slot="works at", value="the harbour"), 2)
    moved = home("Northport", 2020, "Sam")
    assert decide(moved, robin, job) == New()
    cafe = draft("The harbour cafe closed.", "harbour cafe", slot="status", value="closed")
    assert decide(cafe, robin, job, known(moved, 3)) == New()


def test_pets_are_many() -> None:
    pip = known(draft("Mira has a dog called Pip.", slot="pet", value="Pip"), cosine=0.97)
    assert decide(draft("Mira has a dog called Rex.", slot="pet", value="Rex"), pip) == New()


def test_the_very_words_again() -> None:
    first = known(draft("The boat has two masts.", "boat"))
    assert decide(draft(" the boat has two masts", "the Boat"), first) == Same(1)
    assert decide(draft("The boat has two masts.", "Ana's boat"), first) == New()


@pytest.mark.parametrize(
    ("content", "cosine", "same"),
    [
        ("Mira sails on most weekends.", 0.95, True),
        ("Mira sails on most weekends.", 0.91, False),
        ("Mira never sails at weekends.", 0.95, False),
        ("Mira sails at weekends with Ana.", 0.95, False),
        ("Mira sails on 3 weekends.", 0.95, False),
    ],
)
def test_near_records_without_a_slot(content: str, cosine: float, same: bool) -> None:
    first = known(draft("Mira sails at weekends."), cosine=cosine)
    assert decide(draft(content), first) == (Same(1) if same else New())


def test_names_are_compared_by_key_and_alias() -> None:
    assert subject_key(" The  User") == "user"
    assert subject_key("E\u0301lodie") == subject_key("élodie")
    first = known(home("Harsk", 2018, "user"))
    decision = reconcile(home("Velm", 2020), [first], said=SAID, aliases={"user": "mira"})
    assert decision == Replaces((1,), year(2020))


@pytest.mark.parametrize(
    ("slot", "value", "expected"),
    [
        ("employer", "Quill", ("works at", "Quill", True)),
        ("current_city", "Velm", ("lives in", "Velm", True)),
        ("the user's age", "34", ("age", "34", True)),
        ("favorite colour", "green", ("favourite:color", "green", True)),
        ("dislikes", "olives", ("likes:oliv", DISLIKES, True)),
        ("likes: olives", "yes", ("likes:oliv", LIKES, True)),
        ("shoe size", "44", ("shoe size", "44", False)),
        ("children", "Olle", ("child", "Olle", False)),
    ],
)
def test_slots(slot: str, value: str, expected: tuple[str, str, bool]) -> None:
    assert tuple(slot_named(slot, value)) == expected


@pytest.mark.parametrize(
    ("sentence", "slot", "value"),
    [
        ("I live in Solvik.", "lives in", "Solvik"),
        ("Hey, I now live in New York City, with my cat.", "lives in", "New York City"),
        ("I moved to Harsk last month!", "lives in", "Harsk"),
        ("I work at the Halden library.", "works at", "the Halden library"),
        ("I've worked at Quill since 2019.", "works at", "Quill"),
        ("I work as a nurse.", "job", "nurse"),
        ("I'm 34 years old.", "age", "34"),
        ("My name is Mira Lund.", "name", "Mira Lund"),
        ("My email is mira@lund.example.", "email", "mira@lund.example"),
        ("My dog is called Pip.", "dog's name", "Pip"),
        ("My wife's name is Ana.", "spouse", "Ana"),
        ("Ben is my husband.", "spouse", "Ben"),
        ("My favourite colour is green.", "favourite:colour", "green"),
        ("I love mushroom soup", "likes:mushroom soup", LIKES),
        ("I hate mushroom soup now", "likes:mushroom soup", DISLIKES),
        ("I don't like olives.", "likes:olives", DISLIKES),
        ("I have two dogs.", "number of:dogs", "2"),
        ("I have a dog.", "has", "dog"),
    ],
)
def test_what_a_sentence_says(sentence: str, slot: str, value: str) -> None:
    statement = slot_of(sentence)
    assert statement is not None
    assert (statement.slot, statement.value) == (slot, value)


@pytest.mark.parametrize(
    "sentence",
    [
        "Do I live in Solvik?", "If I live in Solvik, I row.", "I no longer live in Solvik.",
        "I used to live in Solvik.", "I live in fear.", "I'd love a coffee.", "I love it!",
        "I love you.", "I don't know.", "I have a question.", "I have no dog.",
        "Ana lives in Solvik.",
        'My dog is called "Pip".', "I might work at Quill.", "I moved to the kitchen.",
        "I said I hate olives.",
        "I want to live in Solvik.", "I'm 500 years old.", "",
    ],
)  # fmt: skip
def test_in_doubt_it_abstains(sentence: str) -> None:
    assert slot_of(sentence) is None


def test_drafts_are_the_sentences_themselves() -> None:
    turn = Turn(
        number=1, version=1, label="T1", time=SAID, speaker="Mira",
        content="Hi! I moved to Harsk in 2018. Do you row?  I hate olives.",
    )  # fmt: skip
    first, second = drafts_of(turn)
    assert (first.content, first.value, first.valid_from) == (
        "I moved to Harsk in 2018.", "Harsk", year(2018),
    )  # fmt: skip
    assert (second.content, second.valid_from) == ("I hate olives.", SAID)
    assert all(verify(one, {"T1": turn}).holds for one in (first, second))
    assert drafts_of(replace(turn, untrusted=True)) == ()
    assert drafts_of(replace(turn, speaker=None)) == ()

"""What is read as an intention or its completion, and what is left alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cofire.consolidation.drafts import Turn
from cofire.consolidation.intentions import (
    LONGEST,
    MOST_PER_TURN,
    Completion,
    completes,
    completion_of,
    completions,
    intention_of,
    intentions,
)
from cofire.types import Kind


def turn(content: str, **fields: object) -> Turn:
    said = {"time": datetime(2026, 1, 1, tzinfo=UTC), "speaker": "Ada", "language": "en", **fields}
    return Turn(number=1, version=1, label="T1", content=content, **said)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sentence", "kind", "verb", "about"),
    [
        ("I'm going to paint the shed this weekend.", Kind.GOAL, "paint", {"shed"}),
        ("Yes, I'm going to run a marathon in May!", Kind.GOAL, "run", {"marathon"}),
        ("I plan to learn Norwegian this year", Kind.GOAL, "learn", {"norwegian"}),
        ("I've decided to write a novel.", Kind.GOAL, "write", {"novel"}),
        ("My goal for this year is to read 30 books.", Kind.GOAL, "read", {"30", "book"}),
        ("Please remind me to renew my passport.", Kind.THREAD, "renew", {"passport"}),
        ("Don\u2019t let me forget to call the bank", Kind.THREAD, "call", {"bank"}),
        ("We still need to book a venue.", Kind.THREAD, "book", {"venu"}),
        ("TODO: fix the parser", Kind.THREAD, "fix", {"parser"}),
    ],
)
def test_what_is_meant_to_be_done(sentence: str, kind: Kind, verb: str, about: set[str]) -> None:
    read = intention_of(sentence)
    assert read is not None
    assert (read[0], read[1].verb, set(read[1].about)) == (kind, verb, about)


@pytest.mark.parametrize(
    "sentence",
    [
        "I'm going to the park with Sam.",  # a place
        "I'm going to sleep.",
        "I'm going to paint.",  # no object
        "I'm going to grab a coffee right now.",  # done at once
        "I'm going to make it happen!",  # what?
        "I'm not going to sell the boat.",
        "I'm going to not sell the boat.",
        "I might paint the shed.",
        "If it is dry, I'm going to paint the shed.",
        "Are you going to paint the shed?",
        "I was going to paint the shed.",
        'Sam: "I plan to sell the boat."',
        "She said I'm going to win the race.",
        "Sam is going to paint the shed.",
        "I painted the shed.",
        "Ich werde den Schuppen streichen.",
        "",
        "I'm going to paint the shed " + "and the fence " * LONGEST,
    ],
)
def test_what_is_left_alone(sentence: str) -> None:
    assert intention_of(sentence) is None
    assert intentions(turn(sentence)) == ()


GOALS = (
    "I'm going to paint the shed this weekend.",
    "I'm planning to write a report for Ada.",
    "Remind me to call the dentist on Monday.",
    "We still need to book a venue.",
)


@pytest.mark.parametrize(
    ("sentence", "done"),
    [
        ("I finally painted the shed!", GOALS[0]),
        ("I finished painting the shed.", GOALS[0]),
        ("The shed is finally done.", GOALS[0]),
        ("I finally wrote the report.", GOALS[1]),
        ("I've just called the dentist.", GOALS[2]),
        ("We finally booked the venue.", GOALS[3]),
        ("I finished reading the shed book.", None),  # something else with a shed in it
        ("I finally sold the shed.", None),
        ("I never finished the report.", None),
        ("Did you finish the report?", None),
        ("I should have finished the report.", None),
        ("I want to finish the report.", None),
        ("I finished it.", None),
    ],
)
def test_what_completes_what(sentence: str, done: str | None) -> None:
    read = completion_of(sentence)
    found = []
    for goal in GOALS:
        meant = intention_of(goal)
        assert meant is not None
        if read is not None:
            said = Completion(start=0, end=0, verb=read[0], terms=read[1])
            found += [goal] if completes(said, meant[1]) else []
    assert found == ([] if done is None else [done])


def test_only_people_who_speak_for_themselves_mean_something() -> None:
    said = "I'm going to paint the shed. I finally called the dentist."
    assert len(intentions(turn(said))) == len(completions(turn(said))) == 1
    for fields in ({"role": "assistant"}, {"untrusted": True}, {"language": "de"}):
        assert not intentions(turn(said, **fields))
        assert not completions(turn(said, **fields))


def test_spans_are_whole_sentences_and_few() -> None:
    content = "Hello!  I'm going to paint the shed.\n" + " ".join(
        f"I plan to build boat{place} myself." for place in range(9)
    )
    found = intentions(turn(content))
    assert len(found) == MOST_PER_TURN
    assert content[found[0].start : found[0].end] == "I'm going to paint the shed."


@pytest.mark.parametrize(
    "content",
    [
        'My dad wrote: "Dear Ada. I\'m going to paint the shed in spring. Yours, Dad."',
        "Translate this into French: Hello. I'm going to paint the shed in spring.",
        "> I'm going to paint the shed in spring.",
        "I'm going to paint the shed in spring. Just kidding!",
    ],
)
def test_nobody_means_what_is_not_theirs_to_mean(content: str) -> None:
    assert not intentions(turn(content, speaker="Ada"))

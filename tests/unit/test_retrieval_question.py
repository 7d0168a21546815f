"""What a question asks for: whom, when, and for what sort of thing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from cofire.encoding.terms import facet, term_hash
from cofire.retrieval.question import Question, read_question
from cofire.types import to_micros

NOW = datetime(2024, 3, 13, 12, tzinfo=UTC)  # a Wednesday
NORA, ANNE = (term_hash(facet("name", name)) for name in ("nora", "anne-marie"))


def known(names: Sequence[int]) -> set[int]:
    return {NORA, ANNE}.intersection(names)


def read(text: str, *, take_names_out: bool = True) -> Question:
    return read_question(text, NOW, known_names=known, take_names_out=take_names_out)


def test_a_speakers_name_becomes_who_was_asked_about() -> None:
    question = read("What did Nora buy?")
    assert question.names == (NORA,)
    assert question.embedded == "What did I buy?"
    assert question.words == ("buy",)
    assert question.terms == (term_hash("buy"),)


@pytest.mark.parametrize("text", ["Nora's lamp", "Nora’s lamp", "NORA's lamp"])
def test_a_possessive_becomes_my(text: str) -> None:
    question = read(text)
    assert question.embedded == "my lamp"
    assert question.words == ("lamp",)


def test_names_keep_their_order_and_are_told_once() -> None:
    question = read("Did Anne-Marie call Nora, or Nora Anne-Marie?")
    assert question.names == (ANNE, NORA)


def test_a_name_that_nobody_speaks_under_is_a_word() -> None:
    question = read("What did Tilman buy?")
    assert question.names == ()
    assert question.words == ("tilman", "buy")
    assert question.embedded == "What did Tilman buy?"


def test_a_question_of_nothing_but_a_name_keeps_it() -> None:
    question = read("Nora?")
    assert question.names == (NORA,)
    assert question.embedded == "Nora?"
    assert question.words == ("nora",)


def test_names_can_be_left_in() -> None:
    question = read("What did Nora buy?", take_names_out=False)
    assert question.names == ()
    assert question.words == ("nora", "buy")


def test_words_of_the_asking_do_not_count_unless_there_are_no_others() -> None:
    assert read("What kind of lamp would Nora mention?").words == ("lamp",)
    assert read("mention").words == ("mention",)


def test_a_term_counts_once() -> None:
    question = read("lamp, lamps and a LAMP")
    assert question.words == ("lamp",)


def test_the_time_asked_about() -> None:
    question = read("What did Nora do last week?")
    start, end = datetime(2024, 3, 4, tzinfo=UTC), datetime(2024, 3, 11, tzinfo=UTC)
    assert question.range == (to_micros(start), to_micros(end))
    assert read("What did Nora do?").range is None


def test_what_sort_of_answer_is_wanted() -> None:
    assert read("When did Nora move?").asks_when
    assert not read("What did Nora move?").asks_when
    assert read("Who helped Nora?").asks_name
    assert read("What city did they see?").asks_name
    assert not read("How did it end?").asks_name


@pytest.mark.parametrize("text", ["", "   ", "???", "🎭", "the of and"])
def test_a_question_of_hardly_anything_is_still_one(text: str) -> None:
    question = read(text)
    assert question.text == text
    assert len(question.terms) == len(question.words)


def test_all_names_are_looked_up_in_one_call() -> None:
    calls: list[Sequence[int]] = []

    def counting(names: Sequence[int]) -> set[int]:
        calls.append(names)
        return set()

    read_question("Did Nora meet Tilman in Bremen?", NOW, known_names=counting)
    assert len(calls) == 1
    assert len(calls[0]) == 6
